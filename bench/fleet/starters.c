/* Which agents there should be: a launcher's ranks, the hosts of a file, or this host. */
#include <limits.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/base/text.h"
#include "bench/fleet/conduct.h"
#include "bench/options/options.h"
#include "runtime/comm/tcp/socket.h"

enum { LINE_BYTES = 512 };

static enum el_status room_for(struct el_fleet_conductor *c, int n)
{
    EL_TRY(el_bootstrap_check_files(n));
    c->agents = calloc((size_t)n + 1, sizeof *c->agents);
    c->children = calloc((size_t)n + 1, sizeof *c->children);
    c->polls = calloc((size_t)n + 2, sizeof *c->polls);
    if (!c->agents || !c->children || !c->polls) return el_fail_errno("fleet: %d hosts", n);
    c->n_agents = n;
    for (int i = 0; i < n; i++) c->agents[i].channel.socket = -1;
    return EL_OK;
}

/* "10.0.0.5 name=node5 devices=cuda:8 switch=leaf1" */
static enum el_status read_words(struct el_fleet_agent_seen *agent, const char *path, int number, char *line)
{
    char *rest = line, *word = strsep(&rest, " \t");
    if (strlen(word) >= sizeof agent->remote)
        return el_fail(EL_ERR_INVALID, "%s, line %d: a name has at most %zu letters", path, number,
                       sizeof agent->remote - 1);
    snprintf(agent->remote, sizeof agent->remote, "%s", word);
    snprintf(agent->name, sizeof agent->name, "%s", word);
    while ((word = strsep(&rest, " \t"))) {
        struct el_device_name devices[EL_MEMBERS_MAX];
        char *value = strchr(word, '=');
        int n;
        if (!*word) continue;
        if (value) *value++ = 0;
        if (value && *value && !strcmp(word, "name"))
            snprintf(agent->name, sizeof agent->name, "%s", value);
        else if (value && *value && !strcmp(word, "switch"))
            snprintf(agent->group, sizeof agent->group, "%s", value);
        else if (value && *value && !strcmp(word, "devices")) {
            char why[EL_ERROR_TEXT_BYTES];
            bool read = el_devices_parse(value, devices, &n) == EL_OK;
            if (!read) snprintf(why, sizeof why, "%s", el_error_message());
            if (!read) return el_fail(EL_ERR_INVALID, "%s, line %d: %.300s", path, number, why);
            snprintf(agent->devices, sizeof agent->devices, "%s", value);
        } else
            return el_fail(EL_ERR_INVALID, "%s, line %d: '%s': a line is HOST [name=NAME] [devices=LIST] [switch=NAME]",
                           path, number, word);
    }
    if (agent->remote[0] == '-')
        return el_fail(EL_ERR_INVALID, "%s, line %d: '%s' is no host", path, number, agent->remote);
    return EL_OK;
}

static enum el_status read_hosts(struct el_fleet_conductor *c, const char *path)
{
    char line[LINE_BYTES];
    FILE *file = NULL;
    int n = 0;
    enum el_status status = el_file_stream("--hosts ", path, 1 << 20, &file);
    if (status != EL_OK) return status;
    while (fgets(line, sizeof line, file)) n++;
    rewind(file);
    status = room_for(c, n);
    c->n_agents = 0;
    for (int number = 1; status == EL_OK && fgets(line, sizeof line, file); number++) {
        char *at = line + strspn(line, " \t");
        at[strcspn(at, "#\r\n")] = 0;
        for (size_t end = strlen(at); end > 0 && (at[end - 1] == ' ' || at[end - 1] == '\t');) at[--end] = 0;
        if (*at) status = read_words(&c->agents[c->n_agents++], path, number, at);
    }
    fclose(file);
    for (int i = 0; i < c->n_agents && status == EL_OK; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(c->agents[i].name, c->agents[k].name))
                status = el_fail(EL_ERR_INVALID, "%s: %s is there twice: give name=", path, c->agents[i].name);
    if (status == EL_OK && c->n_agents == 0) status = el_fail(EL_ERR_INVALID, "%s: there are no hosts in it", path);
    return status;
}

enum el_status el_fleet_expect(struct el_fleet_conductor *c, const struct el_launch_place *place)
{
    if (!place && c->options->hosts[0]) return read_hosts(c, c->options->hosts);
    EL_TRY(room_for(c, place && place->size > 0 ? place->size : 1));
    for (int i = 0; i < c->n_agents; i++)
        if (place) snprintf(c->agents[i].name, sizeof c->agents[i].name, "rank %d", i);
    return EL_OK;
}

/* ---- starting ---- */

/* This machine's address on the way to a host. */
static bool own_address(const char *host, char address[64])
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    struct sockaddr_storage mine;
    socklen_t length = sizeof mine;
    bool known = false;
    if (getaddrinfo(host, "9", &hints, &found) != 0) return false;
    for (const struct addrinfo *a = found; a && !known; a = a->ai_next) {
        int udp = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        known = udp >= 0 && connect(udp, a->ai_addr, a->ai_addrlen) == 0 &&
                getsockname(udp, (struct sockaddr *)&mine, &length) == 0 &&
                getnameinfo((struct sockaddr *)&mine, length, address, 64, NULL, 0, NI_NUMERICHOST) == 0;
        if (udp >= 0) close(udp);
    }
    freeaddrinfo(found);
    return known;
}

static enum el_status start_one(struct el_fleet_conductor *c, int i, const char *address, const char *devices)
{
    struct el_fleet_agent_seen *agent = &c->agents[i];
    char program[PATH_MAX] = "", port[16], wait[40], log[EL_PATH_BYTES], given[EL_PATH_BYTES + 16] = "",
         line[3 * EL_PATH_BYTES];
    char word[EL_WORD_BYTES], name[EL_WORD_BYTES];
    const char *rsh = getenv("EVENLOAD_RSH");
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return el_fail_errno("/proc/self/exe");
    snprintf(port, sizeof port, "%d", c->port);
    snprintf(wait, sizeof wait, "--wait=%gs", c->options->fleet.wait_s);
    if (*devices) snprintf(given, sizeof given, "--devices=%s", devices);
    snprintf(log, sizeof log, "%.900s/logs/agent-%d.log", c->store->dir, i);
    snprintf(line, sizeof line, "exec %s worker fleet-agent - %s %s %s %s %s %s",
             el_shell_word(program, word, sizeof word), address, port, c->token,
             el_shell_word(agent->name, name, sizeof name), wait, given);
    char *own = agent->remote[0] ? agent->name : (char *)""; /* its own name */
    char *const remote[] = {(char *)(rsh && *rsh ? rsh : "ssh"),
                            (char *)"-o",
                            (char *)"BatchMode=yes",
                            (char *)"-o",
                            (char *)"ConnectTimeout=10",
                            agent->remote,
                            line,
                            NULL};
    char *const plain[] = {(char *)rsh, agent->remote, line, NULL};
    char *const local[] = {program, "worker", "fleet-agent",         "-", (char *)address, port, c->token,
                           own,     wait,     *given ? given : NULL, NULL};
    char *const *command = !agent->remote[0] ? local : rsh && *rsh ? plain : remote;
    char *path = NULL;
    if (agent->remote[0]) EL_TRY(el_launch_find_program(command[0], &path));
    const struct el_child_spec spec = {
        .program = path ? path : program, .command = command, .environment = environ, .log = log, .kept_file = -1};
    enum el_status status = el_child_start(&spec, &c->children[c->n_children]);
    free(path);
    if (status == EL_OK) c->n_children++;
    return status;
}

enum el_status el_fleet_start(struct el_fleet_conductor *c, const struct el_launch_place *place)
{
    char devices[EL_PATH_BYTES] = "", logs[EL_PATH_BYTES];
    if (c->options->n_devices) el_devices_show(c->options->devices, c->options->n_devices, devices, sizeof devices);
    snprintf(logs, sizeof logs, "%.900s/logs", c->store->dir);
    EL_TRY(el_folder_make(logs, "give another --out"));
    for (int i = 0; i < c->n_agents; i++) {
        char address[64] = "127.0.0.1";
        if (place && i > 0) break; /* this rank's own */
        if (c->agents[i].remote[0] && !own_address(c->agents[i].remote, address)) {
            c->agents[i].state = EL_FLEET_ABSENT;
            snprintf(c->agents[i].reason, sizeof c->agents[i].reason, "its name is unknown here");
            c->children[c->n_children++] = (struct el_child){.ended = true};
            continue;
        }
        EL_TRY(start_one(c, i, address, c->agents[i].devices[0] ? c->agents[i].devices : devices));
    }
    return EL_OK;
}

void el_fleet_why_absent(const struct el_fleet_conductor *c, int agent, char *reason, size_t bytes)
{
    char path[EL_PATH_BYTES], line[240];
    snprintf(path, sizeof path, "%.900s/logs/agent-%d.log", c->store->dir, agent);
    FILE *file = fopen(path, "r");
    snprintf(reason, bytes, "it has not come within %g s", c->options->fleet.wait_s);
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        if (*line) snprintf(reason, bytes, "%.200s", line);
    }
    if (file) fclose(file);
}
