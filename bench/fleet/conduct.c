/* Runs the phases on all devices that are left. Only this thread touches the state: all waiting is in listen_for(). */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/fleet/conduct.h"
#include "runtime/base/clock.h"
#include "runtime/comm/tcp/socket.h"

enum { HELLO_MOST = 1 << 16 };
enum { LOOK_MS = 100, STOP_NS = 3000000000, LINE_NS = 2000000000, HOSTS_TEXT = 8 * EL_FLEET_RANKS_MAX };

/* ---- what is known of an agent ---- */

static const char *host_name(const struct el_fleet_conductor *c, int agent)
{
    return c->agents[agent].name;
}

static void lose(struct el_fleet_conductor *c, int agent, const char *why)
{
    struct el_fleet_agent_seen *seen = &c->agents[agent];
    if (seen->state != EL_FLEET_HERE) return;
    seen->state = EL_FLEET_LOST;
    snprintf(seen->reason, sizeof seen->reason, "%s", why);
    el_fleet_channel_close(&seen->channel);
    for (int i = 0; i < c->n_devices; i++)
        if (c->devices[i].agent == agent &&
            (c->devices[i].part == EL_FLEET_RUNS || c->devices[i].part == EL_FLEET_WAITS))
            c->devices[i].part = EL_FLEET_FAILED;
    if (!c->options->quiet) el_text_line(stderr, "evenload: %s is lost: %s", seen->name, why);
}

static bool is_left(const struct el_fleet_conductor *c, int device)
{
    return !c->devices[device].failed && c->agents[c->devices[device].agent].state == EL_FLEET_HERE;
}

/* ---- messages ---- */

static void take_links(const struct el_fleet_conductor *c, json_t *document)
{
    EL_EACH(link, json_object_get(document, "links")) {
        int rank = (int)el_json_whole(link, "to");
        for (int i = 0; i < c->n_devices; i++)
            if (c->devices[i].in_phase == rank) el_json_put(link, "to", json_integer(i));
    }
}

static void take_part(struct el_fleet_conductor *c, int agent, const json_t *message, const char *phase)
{
    int rank = (int)el_json_whole(message, "part");
    for (int i = 0; i < c->n_devices; i++) {
        struct el_fleet_device_seen *device = &c->devices[i];
        if (device->in_phase != rank || device->agent != agent || device->part != EL_FLEET_RUNS) continue;
        bool ok = json_is_true(json_object_get(message, "ok"));
        json_t *document = json_object_get(message, "document");
        device->part = ok ? EL_FLEET_DONE : EL_FLEET_FAILED;
        device->killed = json_is_true(json_object_get(message, "killed"));
        snprintf(device->part_reason, sizeof device->part_reason, "%s", el_json_text(message, "reason", "?"));
        if (json_object_get(document, "links")) take_links(c, document);
        if (ok) json_object_set(device->parts, phase, document);
    }
}

static void take_beat(struct el_fleet_conductor *c, int agent, const json_t *message)
{
    c->agents[agent].port = (int)el_json_whole(message, "port");
    for (int i = 0; i < c->n_devices; i++) {
        if (c->devices[i].agent != agent) continue;
        c->devices[i].stuck = false;
        if (el_json_whole(message, "beat") != c->number) continue; /* of the phase before */
        EL_EACH(rank, json_object_get(message, "stuck"))
            c->devices[i].stuck |= json_integer_value(rank) == c->devices[i].in_phase;
    }
}

static void hear_agent(struct el_fleet_conductor *c, int agent, const char *phase)
{
    struct el_fleet_agent_seen *seen = &c->agents[agent];
    bool there = el_fleet_hear(&seen->channel);
    seen->heard_ns = el_clock_ns();
    for (json_t *message; (message = el_fleet_take(&seen->channel));) {
        if (json_object_get(message, "part") && el_json_whole(message, "number") == c->number)
            take_part(c, agent, message, phase);
        if (json_object_get(message, "beat")) take_beat(c, agent, message);
        json_decref(message);
    }
    if (!there) lose(c, agent, "its connection ended");
}

/* ---- who comes ---- */

static int place_of(const struct el_fleet_conductor *c, const json_t *hello)
{
    int first = (int)el_json_whole(hello, "first");
    bool named = c->agents[0].remote[0];
    for (int i = 0; i < c->n_agents; i++)
        if (named ? el_json_is(hello, "name", c->agents[i].name) : i == (first < 0 ? 0 : first)) return i;
    return -1;
}

/* Why an agent of this job is not wanted; NULL: it is. */
static const char *refuse(const struct el_fleet_conductor *c, int at)
{
    if (at < 0) return "nobody expects it";
    if (c->agents[at].state != EL_FLEET_EXPECTED) return "another process came with its number, or it came too late";
    return NULL;
}

/* Two machines of one name are two hosts. */
static void name_host(struct el_fleet_conductor *c, struct el_fleet_agent_seen *agent, const char *name)
{
    snprintf(agent->name, sizeof agent->name, "%.60s", name);
    for (int i = 0; i < c->n_agents; i++)
        if (&c->agents[i] != agent && !strcmp(c->agents[i].name, agent->name) && strcmp(c->agents[i].boot, agent->boot))
            snprintf(agent->name, sizeof agent->name, "%.50s-%.8s", name, agent->boot);
}

static void welcome(struct el_fleet_conductor *c, struct el_fleet_channel *channel, const json_t *hello)
{
    if (!el_json_is(hello, "hello", c->token)) { /* of another job: it finds its own conductor at another port */
        el_fleet_channel_close(channel);
        return;
    }
    int at = place_of(c, hello);
    const char *why = refuse(c, at);
    json_t *answer = el_json_of(EL_KEY("say", why ? "refused" : "welcome"), EL_KEY("reason", why));
    bool sent = el_fleet_send(channel, answer);
    json_decref(answer);
    if (why || !sent) {
        el_fleet_channel_close(channel);
        return;
    }
    struct el_fleet_agent_seen *agent = &c->agents[at];
    agent->channel = *channel;
    agent->state = EL_FLEET_HERE;
    agent->heard_ns = el_clock_ns();
    agent->port = (int)el_json_whole(hello, "port");
    snprintf(agent->boot, sizeof agent->boot, "%s", el_json_text(hello, "boot", "?"));
    if (!agent->remote[0]) name_host(c, agent, el_json_text(hello, "name", "?"));
    snprintf(agent->address, sizeof agent->address, "%s", el_json_text(hello, "address", "127.0.0.1"));
    if (!agent->group[0]) snprintf(agent->group, sizeof agent->group, "%.60s", el_json_text(hello, "group", ""));
    const json_t *devices = json_object_get(hello, "devices");
    struct el_fleet_device_seen *grown =
        realloc(c->devices, ((size_t)c->n_devices + json_array_size(devices) + 1) * sizeof *grown);
    if (!grown) return;
    c->devices = grown;
    EL_EACH(name, devices) {
        struct el_fleet_device_seen *device = &c->devices[c->n_devices++];
        *device = (struct el_fleet_device_seen){
            .agent = at, .device = (int)name_at.i, .in_phase = -1, .parts = json_object()};
        snprintf(device->name, sizeof device->name, "%.60s", json_string_value(name));
    }
}

/* A stranger has a second for its first words. */
static void accept_one(struct el_fleet_conductor *c)
{
    struct el_fleet_channel channel = {.socket = -1};
    int64_t until_ns = el_clock_ns() + 1000000000;
    if (el_tcp_accept(c->listener, until_ns, &channel.socket) != 0) return;
    el_tcp_expect_answers(channel.socket);
    while (el_clock_ns() < until_ns) {
        struct pollfd wait = {.fd = channel.socket, .events = POLLIN};
        poll(&wait, 1, LOOK_MS);
        if (!el_fleet_hear(&channel) || channel.n > HELLO_MOST) break;
        json_t *hello = el_fleet_take(&channel);
        if (!hello) continue;
        welcome(c, &channel, hello);
        json_decref(hello);
        return;
    }
    el_fleet_channel_close(&channel);
}

/* One look at all connections. */
static void listen_for(struct el_fleet_conductor *c, const char *phase, bool guests)
{
    int n = 0;
    c->polls[n++] = (struct pollfd){.fd = guests ? c->listener : -1, .events = POLLIN};
    for (int i = 0; i < c->n_agents; i++)
        c->polls[n++] = (struct pollfd){.fd = c->agents[i].channel.socket, .events = POLLIN};
    poll(c->polls, (nfds_t)n, LOOK_MS);
    if (guests && c->polls[0].revents) accept_one(c);
    for (int i = 0; i < c->n_agents; i++)
        if (c->agents[i].state == EL_FLEET_HERE && c->polls[i + 1].revents) hear_agent(c, i, phase);
    for (int i = 0; i < c->n_agents; i++)
        if (c->agents[i].state == EL_FLEET_HERE &&
            el_clock_ns() - c->agents[i].heard_ns > EL_FLEET_SILENCE_S * INT64_C(1000000000))
            lose(c, i, "it says nothing: stopped, or cut off");
}

static enum el_status await_agents(struct el_fleet_conductor *c)
{
    int64_t until_ns = el_clock_ns() + (int64_t)(c->options->fleet.wait_s * 1e9);
    int here = 0;
    for (bool all = false; !all && el_clock_ns() < until_ns && !el_runner_interrupted();) {
        listen_for(c, "", true);
        el_children_wait(c->children, c->n_children, 0);
        all = true;
        for (int i = 0; i < c->n_agents; i++) {
            bool gone = i < c->n_children && c->children[i].ended;
            if (c->agents[i].state == EL_FLEET_EXPECTED && gone) c->agents[i].state = EL_FLEET_ABSENT;
            all &= c->agents[i].state != EL_FLEET_EXPECTED;
        }
    }
    for (int i = 0; i < c->n_agents; i++) {
        here += c->agents[i].state == EL_FLEET_HERE;
        if (c->agents[i].state == EL_FLEET_HERE || c->agents[i].state == EL_FLEET_LOST || el_runner_interrupted())
            continue;
        c->agents[i].state = EL_FLEET_ABSENT;
        if (!c->agents[i].reason[0]) el_fleet_why_absent(c, i, c->agents[i].reason, sizeof c->agents[i].reason);
        if (!c->options->quiet)
            el_text_line(stderr, "evenload: %s is absent: %s", c->agents[i].name, c->agents[i].reason);
    }
    if (here == 0 && !el_runner_interrupted())
        return el_fail(EL_ERR_ABSENT, "fleet: no host came within %g s: %s", c->options->fleet.wait_s,
                       c->agents[0].reason);
    return EL_OK;
}

/* By agents, whatever order they came in. */
static int by_agent(const void *a, const void *b)
{
    const struct el_fleet_device_seen *x = a, *y = b;
    return x->agent != y->agent ? x->agent - y->agent : x->device - y->device;
}

/* ---- a phase ---- */

struct phase {
    const char *name, *word; /* the kind, and what the worker gets */
    bool together;           /* one job; else each device by itself */
    double limit_s;
};

static double injected(const struct el_fleet_conductor *c, int device)
{
    int at;
    double x;
    return sscanf(c->options->inject, "wrong=%d:%lf", &at, &x) == 2 && at == device ? x : 0;
}

/* The first agent with this name. */
static int host_of(const struct el_fleet_conductor *c, int agent)
{
    int first = 0;
    while (strcmp(c->agents[first].name, c->agents[agent].name) != 0) first++;
    return first;
}

/* Hosts of a phase are numbered without gaps. Returns how many devices take part. */
static int number_phase(struct el_fleet_conductor *c, char *hosts)
{
    int *numbers = calloc((size_t)c->n_agents + 1, sizeof *numbers), n = 0, n_hosts = 0;
    size_t used = 0;
    hosts[0] = 0;
    for (int i = 0; i < c->n_devices && numbers; i++) {
        c->devices[i].in_phase = -1;
        c->devices[i].part = EL_FLEET_IDLE;
        c->devices[i].stuck = c->devices[i].killed = false;
        c->devices[i].part_reason[0] = 0;
        if (!is_left(c, i)) continue;
        int *number = &numbers[host_of(c, c->devices[i].agent)];
        if (*number == 0) *number = ++n_hosts;
        used += (size_t)snprintf(hosts + used, HOSTS_TEXT - used, "%s%d", n ? "," : "", *number - 1);
        c->devices[i].in_phase = n++;
        c->devices[i].part = EL_FLEET_WAITS;
    }
    free(numbers);
    return n;
}

/* Tells one agent to start those of its devices that wait. */
static void start_on(struct el_fleet_conductor *c, int agent, const struct phase *phase, const char *hosts, int n,
                     const struct el_fleet_agent_seen *first)
{
    json_t *mine = json_array();
    char token[64];
    snprintf(token, sizeof token, "%s-%d", c->token, c->number);
    for (int i = 0; i < c->n_devices; i++) {
        struct el_fleet_device_seen *device = &c->devices[i];
        if (device->agent != agent || device->part != EL_FLEET_WAITS) continue;
        device->part = EL_FLEET_RUNS;
        json_array_append_new(mine, el_json_of(EL_KEY("rank", device->in_phase), EL_KEY("device", device->device),
                                               EL_KEY("wrong", injected(c, i))));
    }
    json_t *run =
        el_json_of(EL_KEY("run", phase->word), EL_KEY("number", c->number), EL_KEY("mine", mine), EL_KEY("size", n),
                   EL_KEY("hosts", hosts), EL_KEY("address", first->address), EL_KEY("port", first->port),
                   EL_KEY("token", (const char *)token), EL_KEY("repeats", c->options->repeats),
                   EL_KEY("rounds", c->options->fleet.rounds), EL_KEY("comm", (const char *)c->options->comm),
                   EL_KEY("soak_s", c->options->fleet.soak_s));
    if (!el_fleet_send(&c->agents[agent].channel, run)) lose(c, agent, "its connection ended");
    json_decref(run);
}

/* Hosts that are one machine share its cores: where each device works by itself they take turns. */
static bool must_wait(const struct el_fleet_conductor *c, int agent)
{
    for (int i = 0; i < c->n_devices; i++) {
        int other = c->devices[i].agent;
        if (c->devices[i].part == EL_FLEET_RUNS && host_of(c, other) != host_of(c, agent) &&
            !strcmp(c->agents[other].boot, c->agents[agent].boot) && strncmp(c->devices[i].name, "cuda", 4))
            return true;
    }
    return false;
}

/* Of the machine with most hosts. */
static int most_turns(const struct el_fleet_conductor *c)
{
    int most = 1;
    for (int a = 0; a < c->n_agents; a++) {
        int n = 0;
        for (int b = 0; b < c->n_agents; b++) n += host_of(c, b) == b && !strcmp(c->agents[a].boot, c->agents[b].boot);
        if (n > most) most = n;
    }
    return most;
}

static void start_waiting(struct el_fleet_conductor *c, const struct phase *phase, const char *hosts, int n)
{
    const struct el_fleet_agent_seen *first = NULL;
    for (int i = 0; i < c->n_devices && !first; i++)
        if (c->devices[i].in_phase == 0) first = &c->agents[c->devices[i].agent];
    for (int a = 0; a < c->n_agents && first; a++) {
        bool any = false;
        for (int i = 0; i < c->n_devices; i++) any |= c->devices[i].agent == a && c->devices[i].part == EL_FLEET_WAITS;
        if (any && c->agents[a].state == EL_FLEET_HERE && (phase->together || !must_wait(c, a)))
            start_on(c, a, phase, hosts, n, first);
    }
}

static int count_parts(const struct el_fleet_conductor *c, enum el_fleet_part part)
{
    int n = 0;
    for (int i = 0; i < c->n_devices; i++) n += c->devices[i].part == part;
    return n;
}

static int count_lost(const struct el_fleet_conductor *c)
{
    int n = 0;
    for (int a = 0; a < c->n_agents; a++) n += c->agents[a].state == EL_FLEET_LOST;
    return n;
}

static void stop_all(struct el_fleet_conductor *c, const char *word)
{
    json_t *stop = el_json_of(EL_KEY("say", word));
    for (int a = 0; a < c->n_agents; a++)
        if (c->agents[a].state == EL_FLEET_HERE && !el_fleet_send(&c->agents[a].channel, stop))
            lose(c, a, "its connection ended");
    json_decref(stop);
}

static void say_progress(struct el_fleet_conductor *c, const struct phase *phase, int n)
{
    if (c->options->quiet || el_clock_ns() < c->next_line_ns) return;
    c->next_line_ns = el_clock_ns() + LINE_NS;
    fprintf(stderr, "%s%s: %d of %d devices done%s", isatty(2) ? "\r" : "", phase->name, count_parts(c, EL_FLEET_DONE),
            n, isatty(2) ? "   " : "\n");
}

/* Devices whose processes died by themselves, hang, or do not end: those that others wait for. `lost`: a host was,
 * which explains what others say. */
static void drop_culprits(struct el_fleet_conductor *c, const struct phase *phase, bool late, bool lost)
{
    bool blamed = false, explained = lost; /* blamed: some say that another rank failed */
    for (int i = 0; i < c->n_devices; i++) {
        const struct el_fleet_device_seen *device = &c->devices[i];
        blamed |= device->part == EL_FLEET_FAILED && strstr(device->part_reason, "rank ");
        explained |= is_left(c, i) && (device->killed || device->stuck);
    }
    for (int i = 0; i < c->n_devices; i++) {
        struct el_fleet_device_seen *device = &c->devices[i];
        const char *why = NULL;
        bool own = device->part == EL_FLEET_FAILED && is_left(c, i) && (device->killed || !phase->together);
        bool runs = device->part == EL_FLEET_RUNS;
        if (device->stuck && (runs || own))
            why = "its process was stopped, or is stuck in the kernel";
        else if (own || (is_left(c, i) && device->part == EL_FLEET_FAILED && blamed && !explained &&
                         !strstr(device->part_reason, "rank ")))
            why = device->part_reason;
        else if (runs && (phase->together ? !explained && 2 * count_parts(c, EL_FLEET_RUNS) < c->n_devices : late))
            why = "it did not end in time";
        if (!why) continue;
        device->failed = true;
        snprintf(device->reason, sizeof device->reason, "%s: %.200s", phase->name, why);
        if (!c->options->quiet)
            el_text_line(stderr, "evenload: %s of %s is left out: %s", device->name, host_name(c, device->agent),
                         device->reason);
    }
}

/* A failed rank's own words, not what it says of others. */
static const char *reason_of(const struct el_fleet_conductor *c)
{
    const char *reason = "";
    for (int i = 0; i < c->n_devices; i++) {
        const char *its = c->devices[i].part_reason;
        if (c->devices[i].part == EL_FLEET_FAILED && *its && (!*reason || !strstr(its, "rank "))) reason = its;
    }
    return reason;
}

/* Once. Returns whether it is worth another time: somebody was left out. `reason`: of what remains a failure. */
static bool run_once(struct el_fleet_conductor *c, const struct phase *phase, char reason[240])
{
    static char hosts[HOSTS_TEXT];
    int n = number_phase(c, hosts), lost = count_lost(c);
    int64_t until_ns = el_clock_ns() + (int64_t)(phase->limit_s * 1e9), stop_ns = 0;
    reason[0] = 0;
    if (n == 0) return false;
    c->number++;
    for (;;) {
        int stuck = 0;
        start_waiting(c, phase, hosts, n);
        listen_for(c, phase->name, false);
        say_progress(c, phase, n);
        for (int i = 0; i < c->n_devices; i++) stuck += c->devices[i].stuck && c->devices[i].part == EL_FLEET_RUNS;
        int open = count_parts(c, EL_FLEET_RUNS) + count_parts(c, EL_FLEET_WAITS);
        bool broken = count_parts(c, EL_FLEET_FAILED) > 0 || count_lost(c) > lost || stuck > 0;
        if (open == 0 || el_runner_interrupted()) break;
        if (el_clock_ns() > until_ns) break;
        if (phase->together && broken && !stop_ns) stop_ns = el_clock_ns() + STOP_NS;
        if (stop_ns && el_clock_ns() > stop_ns) break;
        for (int i = 0; i < c->n_devices && !phase->together; i++)
            if (c->devices[i].stuck && c->devices[i].part == EL_FLEET_RUNS) c->devices[i].part = EL_FLEET_FAILED;
    }
    bool whole = count_parts(c, EL_FLEET_DONE) == n;
    if (whole || el_runner_interrupted()) return false;
    drop_culprits(c, phase, el_clock_ns() > until_ns, count_lost(c) > lost);
    snprintf(reason, 240, "%s", *reason_of(c) ? reason_of(c) : "it did not end in time");
    stop_all(c, "stop");
    int left = 0, before = n;
    for (int i = 0; i < c->n_devices; i++) left += is_left(c, i);
    return phase->together && left > 0 && left < before;
}

static void run_phase(struct el_fleet_conductor *c, const struct phase *phase)
{
    char reason[240] = "";
    int64_t begin_ns = el_clock_ns();
    while (!el_runner_interrupted() && run_once(c, phase, reason)) continue;
    if (!c->options->quiet && isatty(2)) fputs("\r\033[K", stderr);
    json_array_append_new(c->phases, el_json_of(EL_KEY("name", phase->name),
                                                EL_KEY("seconds", 1e-9 * (double)(el_clock_ns() - begin_ns)),
                                                EL_KEY("reason", el_json_filled(reason))));
}

/* ---- the soak's first passes ---- */

enum { LOCATED_MOST = 4, LOCATE_S = 60 };

/* All make the step again, of whom two count: first hashes of blocks of what the op wrote, then the numbers of one
 * block. */
static void locate(struct el_fleet_conductor *c, int device, const struct el_fleet_difference *found)
{
    json_t *soak = json_object_get(c->devices[device].parts, "soak");
    int at = -1, block = -1, element = -1;
    double values[2] = {NAN, NAN};
    for (int turn = 0; turn < 2 && (turn == 0 || block >= 0); turn++) {
        char word[64];
        snprintf(word, sizeof word, "locate:%d:%d:%d", found->step, found->op, block);
        run_phase(c, &(struct phase){"locate", word, false, LOCATE_S * c->n_devices});
        at = el_fleet_first_difference(c, device, found->right, values);
        if (turn == 0) block = at;
    }
    int64_t length = el_json_whole(json_object_get(c->devices[device].parts, "locate"), "block");
    if (block >= 0 && at >= 0) element = block * (int)length + at;
    el_json_put(soak, "wrong",
                el_json_of(EL_KEY("op", json_incref(json_array_get(json_object_get(soak, "ops"), (size_t)found->op))),
                           EL_KEY("step", found->step), EL_KEY("pass", 0), EL_KEY("element", el_json_count(element)),
                           EL_KEY("is", element < 0 ? (double)NAN : values[0]),
                           EL_KEY("was", element < 0 ? (double)NAN : values[1])));
}

static void compare_soaks(struct el_fleet_conductor *c)
{
    for (int i = 0, n = 0; i < c->n_devices && n < LOCATED_MOST && !el_runner_interrupted(); i++) {
        struct el_fleet_difference found;
        if (!el_fleet_differs(c, i, &found)) continue;
        locate(c, i, &found);
        n++;
    }
    c->no_majority = el_fleet_no_majority(c);
}

/* ---- what it costs, said before ---- */

static int count_hosts(const struct el_fleet_conductor *c)
{
    int n = 0;
    for (int i = 0; i < c->n_agents; i++) n += c->agents[i].state == EL_FLEET_HERE && host_of(c, i) == i;
    return n;
}

static int fullest_host(const struct el_fleet_conductor *c)
{
    int most = 0;
    for (int a = 0; a < c->n_agents; a++) {
        int n = 0;
        for (int i = 0; i < c->n_devices; i++) n += is_left(c, i) && host_of(c, c->devices[i].agent) == host_of(c, a);
        if (n > most) most = n;
    }
    return most;
}

/* As many rounds as the budget has time for. */
static double plan(struct el_fleet_conductor *c, double *links_s_p)
{
    int hosts = count_hosts(c), between = el_fleet_rounds(hosts), within = el_fleet_rounds(fullest_host(c));
    double budget_s = c->options->fleet.budget_s;
    int fit = (int)fmax(1, floor(budget_s / EL_FLEET_ROUND_S) - within);
    if (c->options->fleet.rounds == 0 || c->options->fleet.rounds > between) c->options->fleet.rounds = between;
    if (c->options->fleet.rounds > fit) c->options->fleet.rounds = fit;
    *links_s_p = (c->options->fleet.rounds + within) * EL_FLEET_ROUND_S;
    double others_s = 0.35 * c->options->repeats + 6;
    if (!c->options->quiet)
        fprintf(
            stderr,
            "%d host%s, %d devices: %d of %d rounds of pairs between hosts, %d within; at most %.0f s for pairs, about "
            "%.0f s for devices and a step%s\n",
            hosts, hosts == 1 ? "" : "s", c->n_devices, c->options->fleet.rounds, between, within, *links_s_p, others_s,
            c->options->fleet.soak_s > 0 ? ", then the soak" : "");
    return others_s;
}

static json_t *gather(struct el_fleet_conductor *c);

/* What a neighbour did for a second is no fault of a device: one that is slow is measured again, with its peers. */
static bool any_is_slow(struct el_fleet_conductor *c)
{
    json_t *document = NULL;
    bool any = false;
    if (el_fleet_document(c->options, gather(c), NULL, &document) != EL_OK) return false;
    EL_EACH(host, json_object_get(document, "hosts")) any |= json_is_string(json_object_get(host, "worst"));
    json_decref(document);
    return any;
}

static void run_phases(struct el_fleet_conductor *c)
{
    double links_s, others_s = plan(c, &links_s), soak_s = c->options->fleet.soak_s;
    int n = c->n_devices, turns = most_turns(c);
    run_phase(c, &(struct phase){"devices", "devices", false, 60 + 10 * others_s * turns});
    if (any_is_slow(c)) run_phase(c, &(struct phase){"again", "devices", false, 60 + 10 * others_s * turns});
    if (n > 1) run_phase(c, &(struct phase){"links", "links", true, 120 + 2 * links_s});
    if (n <= EL_MEMBERS_MAX) run_phase(c, &(struct phase){"step", "step", true, 120}); /* a trial has no more */
    if (soak_s <= 0) return;
    run_phase(c, &(struct phase){"soak", "soak", false, 60 + 2 * soak_s * turns});
    compare_soaks(c);
}

/* ---- the whole ---- */

static enum el_status open_listener(struct el_fleet_conductor *c, const struct el_launch_place *place)
{
    int number = EADDRINUSE, n = place && place->host ? place->n_ports : 1;
    for (int k = 0; k < n && number; k++)
        number = el_tcp_listen("0.0.0.0", place && place->host ? place->port + k : 0, false, &c->listener);
    if (number) return el_fail(EL_ERR_IO, "fleet: port %d: %s", place ? place->port : 0, strerror(number));
    c->port = el_tcp_port(c->listener);
    return EL_OK;
}

static json_t *gather(struct el_fleet_conductor *c)
{
    static const char *const states[] = {"absent", "measured", "lost", "absent"};
    json_t *hosts = json_array(), *devices = json_array();
    for (int a = 0; a < c->n_agents; a++) {
        const struct el_fleet_agent_seen *seen = &c->agents[a];
        json_array_append_new(
            hosts, el_json_of(EL_KEY("name", (const char *)seen->name), EL_KEY("boot", (const char *)seen->boot),
                              EL_KEY("group", el_json_filled(seen->group)), EL_KEY("state", states[seen->state]),
                              EL_KEY("reason", el_json_filled(seen->reason))));
    }
    for (int i = 0; i < c->n_devices; i++) {
        const struct el_fleet_device_seen *device = &c->devices[i];
        json_array_append_new(devices, el_json_of(EL_KEY("rank", i), EL_KEY("agent", device->agent),
                                                  EL_KEY("name", (const char *)device->name),
                                                  EL_KEY("reason", el_json_filled(device->reason)),
                                                  EL_KEY("parts", json_incref(device->parts))));
    }
    return el_json_of(EL_KEY("agents", hosts), EL_KEY("devices", devices), EL_KEY("phases", json_incref(c->phases)),
                      EL_KEY("interrupted", el_runner_interrupted()), EL_KEY("no_majority", c->no_majority),
                      EL_KEY("rounds", c->options->fleet.rounds));
}

static void close_all(struct el_fleet_conductor *c)
{
    if (c->agents) stop_all(c, "end");
    if (c->n_children) el_children_await(c->children, c->n_children, STOP_NS);
    el_children_signal(c->children, c->n_children, SIGKILL);
    for (int a = 0; a < c->n_agents && c->agents; a++) el_fleet_channel_close(&c->agents[a].channel);
    for (int i = 0; i < c->n_devices; i++) json_decref(c->devices[i].parts);
    if (c->listener >= 0) close(c->listener);
    free(c->agents);
    free(c->children);
    free(c->polls);
    free(c->devices);
    json_decref(c->phases);
}

enum el_status el_fleet_conduct(struct el_options *options, const struct el_launch_place *place,
                                struct el_fleet_opening *opening, json_t **gathered_p)
{
    struct el_fleet_conductor c = {.options = options, .store = opening->store, .listener = -1, .phases = json_array()};
    char secret[EL_LAUNCH_SECRET_BYTES];
    signal(SIGPIPE, SIG_IGN);
    enum el_status status = el_fleet_expect(&c, place);
    if (status == EL_OK) status = open_listener(&c, place);
    if (status == EL_OK && !opening->token) status = el_launch_make_secret(secret);
    snprintf(c.token, sizeof c.token, "%.36s", opening->token ? opening->token : secret);
    if (status == EL_OK && opening->tell) status = opening->tell(opening->context, c.port, c.token);
    if (status == EL_OK) status = el_fleet_start(&c, place);
    if (status == EL_OK) status = await_agents(&c);
    if (status == EL_OK && c.n_devices > EL_FLEET_RANKS_MAX)
        status = el_fail(EL_ERR_INVALID, "fleet: %d devices: at most %d", c.n_devices, EL_FLEET_RANKS_MAX);
    if (status == EL_OK && !el_runner_interrupted()) {
        qsort(c.devices, (size_t)c.n_devices, sizeof *c.devices, by_agent);
        run_phases(&c);
        *gathered_p = gather(&c);
    }
    for (int a = 0; a < c.n_agents && c.agents; a++) opening->lost |= c.agents[a].state != EL_FLEET_HERE;
    close_all(&c);
    return status;
}
