/* One process a device, or a host: starts the workers of each phase as the conductor says, and tells how they ended. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/fleet/fleet.h"
#include "runtime/base/clock.h"
#include "runtime/comm/tcp/socket.h"
#include "runtime/launch/children.h"

enum { STOP_NS = 2000000000 };
enum { LOOK_MS = 50, BEAT_NS = 1000000000, VARIABLES = 12, REASON_BYTES = 400, STUCK_BEATS = 3 };

struct part {
    int rank; /* in the phase */
    char result[EL_PATH_BYTES], log[EL_PATH_BYTES];
    bool told;
    int stuck; /* beats in a row */
};

struct agent {
    const struct el_options *options;
    struct el_fleet_channel channel;
    char folder[EL_PATH_BYTES], program[PATH_MAX], phase[64];
    struct el_device_name devices[EL_MEMBERS_MAX];
    int n_devices, n_parts, number; /* of the phase */
    struct el_child children[EL_MEMBERS_MAX];
    struct part parts[EL_MEMBERS_MAX];
    int listener, port; /* for the next phase's rank 0 */
};

/* ---- how it begins ---- */

static enum el_status listen_again(struct agent *a)
{
    if (a->listener >= 0) close(a->listener);
    a->listener = -1;
    int number = el_tcp_listen("0.0.0.0", 0, false, &a->listener);
    if (number) return el_fail(EL_ERR_IO, "fleet: no port to listen at: %s", strerror(number));
    a->port = el_tcp_port(a->listener);
    return EL_OK;
}

static void boot_id(char text[64])
{
    if (!el_file_line("/proc/sys/kernel/random/boot_id", "", text, 64)) snprintf(text, 64, "?");
}

static json_t *hello(const struct agent *a, const struct el_fleet_meeting *meeting, const char *name, int first)
{
    char boot[64], host[EL_FLEET_HOST_BYTES] = "?", mine[EL_TCP_ADDRESS_BYTES];
    json_t *devices = json_array();
    const char *topology = getenv("SLURM_TOPOLOGY_ADDR"); /* "spine.leaf1.node3" */
    const char *last = topology ? strrchr(topology, '.') : NULL;
    boot_id(boot);
    gethostname(host, sizeof host - 1);
    if (getenv("SLURMD_NODENAME")) snprintf(host, sizeof host, "%.60s", getenv("SLURMD_NODENAME"));
    el_tcp_address(a->channel.socket, false, mine);
    for (int i = 0; i < a->n_devices; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s:%d", a->devices[i].backend, a->devices[i].index);
        json_array_append_new(devices, json_string(text));
    }
    return el_json_of(EL_KEY("hello", meeting->token), EL_KEY("name", *name ? name : host), EL_KEY("boot", boot),
                      EL_KEY("first", first), EL_KEY("devices", devices), EL_KEY("address", (const char *)mine),
                      EL_KEY("port", a->port),
                      EL_KEY("group", last ? json_sprintf("%.*s", (int)(last - topology), topology) : json_null()));
}

static json_t *wait_for_message(struct agent *a, int64_t until_ns)
{
    while (el_clock_ns() < until_ns) {
        struct pollfd wait = {.fd = a->channel.socket, .events = POLLIN};
        poll(&wait, 1, LOOK_MS);
        if (!el_fleet_hear(&a->channel)) return NULL;
        json_t *message = el_fleet_take(&a->channel);
        if (message) return message;
    }
    return NULL;
}

/* Whoever else listens at one of the ports does not answer "welcome". */
static enum el_status meet(struct agent *a, const struct el_fleet_meeting *meeting, const char *name, int first)
{
    int64_t until_ns = el_clock_ns() + (int64_t)(meeting->patience_s * 1e9);
    char why[EL_TCP_WHY_BYTES] = "nobody answers";
    bool hopeless = false;
    for (int k = 0; el_clock_ns() < until_ns && !hopeless; k = (k + 1) % meeting->n_ports) {
        int64_t soon_ns = el_clock_ns() + 2000000000;
        if (el_tcp_connect(meeting->address, meeting->port + k, soon_ns, &a->channel.socket, why, &hopeless)) {
            json_t *mine = hello(a, meeting, name, first), *answer = NULL;
            if (el_fleet_send(&a->channel, mine)) answer = wait_for_message(a, el_clock_ns() + 3000000000);
            bool welcome = el_json_is(answer, "say", "welcome");
            if (el_json_is(answer, "say", "refused")) {
                enum el_status status = el_fail(EL_ERR_PEER, "fleet: refused: %s", el_json_text(answer, "reason", "?"));
                json_decref(mine);
                json_decref(answer);
                return status;
            }
            json_decref(mine);
            json_decref(answer);
            if (welcome) el_tcp_expect_answers(a->channel.socket);
            if (welcome) return EL_OK;
            el_fleet_channel_close(&a->channel);
        }
        el_clock_sleep_until(el_clock_ns() + 200000000);
    }
    return el_fail(EL_ERR_TIMEOUT, "fleet: nobody conducts at %s:%d: %s", meeting->address, meeting->port, why);
}

/* ---- workers ---- */

static enum el_status start_worker(struct agent *a, const json_t *run, int i)
{
    struct part *part = &a->parts[i];
    const json_t *mine = json_array_get(json_object_get(run, "mine"), (size_t)i);
    const char *const variables[VARIABLES] = {"RANK",        "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                              "MASTER_ADDR", "MASTER_PORT"};
    char address[EL_TCP_ADDRESS_BYTES], texts[VARIABLES][160], device[64], repeats[32], soak[64], comm[32], rounds[32],
        wrong[40];
    const char *extra[VARIABLES + 1] = {NULL};
    int device_at = (int)el_json_whole(mine, "device"), n = 0, kept = -1;
    int values[] = {(int)el_json_whole(mine, "rank"), (int)el_json_whole(run, "size"), device_at, a->n_devices};
    *part = (struct part){.rank = values[0]};
    if (device_at < 0 || device_at >= a->n_devices) return el_fail(EL_ERR_INTERNAL, "fleet: no device %d", device_at);
    /* a loopback is the conductor's host's, whose address from here is the channel's other side */
    snprintf(address, sizeof address, "%.60s", el_json_text(run, "address", "127.0.0.1"));
    if (!strncmp(address, "127.", 4) || !strcmp(address, "::1")) el_tcp_address(a->channel.socket, true, address);
    snprintf(part->result, sizeof part->result, "%.900s/%d-%d.json", a->folder, a->number, i);
    snprintf(part->log, sizeof part->log, "%.900s/%d-%d.log", a->folder, a->number, i);
    for (; n < 4; n++) snprintf(texts[n], sizeof texts[n], "%s=%d", variables[n], values[n]);
    snprintf(texts[n++], sizeof texts[0], "%s=%s", variables[4], address);
    snprintf(texts[n++], sizeof texts[0], "%s=%d", variables[5], (int)el_json_whole(run, "port"));
    snprintf(texts[n++], sizeof texts[0], EL_LAUNCH_TOKEN "=%.100s", el_json_text(run, "token", ""));
    if (values[0] == 0) {
        kept = a->listener;
        snprintf(texts[n++], sizeof texts[0], EL_LAUNCH_LISTENER "=%d", kept);
    }
    for (int k = 0; k < n; k++) extra[k] = texts[k];
    snprintf(device, sizeof device, "--devices=%s:%d,", a->devices[device_at].backend, a->devices[device_at].index);
    snprintf(repeats, sizeof repeats, "--repeats=%d", (int)el_json_whole(run, "repeats"));
    snprintf(rounds, sizeof rounds, "--rounds=%d", (int)el_json_whole(run, "rounds"));
    snprintf(soak, sizeof soak, "--soak=%gs", el_json_number(run, "soak_s"));
    snprintf(comm, sizeof comm, "--comm=%s", el_json_text(run, "comm", "auto"));
    snprintf(wrong, sizeof wrong, "%.17g", el_json_number(mine, "wrong"));
    char *const command[] = {
        a->program, "worker", "fleet", part->result, a->phase, (char *)el_json_text(run, "hosts", "0"), wrong, device,
        repeats,    rounds,   comm,    soak,         NULL};
    char **environment = el_launch_make_environment(environ, extra, false, true);
    if (!environment) return el_fail(EL_ERR_HOST_MEMORY, "fleet: no memory");
    const struct el_child_spec spec = {.program = a->program,
                                       .command = command,
                                       .environment = environment,
                                       .log = part->log,
                                       .death_signal = SIGKILL,
                                       .kept_file = kept};
    enum el_status status = el_child_start(&spec, &a->children[i]);
    free(environment);
    return status;
}

/* The process's own words: the last line of "evenload: ...". */
static void last_words(const char *path, char *words, size_t bytes)
{
    char line[REASON_BYTES];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "evenload: ", 10)) snprintf(words, bytes, "%s", line + 10);
    }
    if (file) fclose(file);
}

static bool tell_part(struct agent *a, int i)
{
    struct part *part = &a->parts[i];
    const struct el_child *child = &a->children[i];
    char reason[REASON_BYTES] = "";
    json_t *document = NULL;
    bool killed = WIFSIGNALED(child->wait_status), good = child->wait_status == 0;
    if (good && el_read_json(part->result, &document) != EL_OK) good = false;
    if (!good) last_words(part->log, reason, sizeof reason);
    if (!good && killed) snprintf(reason, sizeof reason, "it was killed by signal %d", WTERMSIG(child->wait_status));
    if (!good && WEXITSTATUS(child->wait_status) >= EL_WORKER_CANNOT_WRITE && !killed)
        snprintf(reason, sizeof reason, "its result could not be written to %.200s: is there room? (TMPDIR)",
                 a->folder);
    if (!good && !*reason) snprintf(reason, sizeof reason, "it ended with status %d", WEXITSTATUS(child->wait_status));
    json_t *message = el_json_of(EL_KEY("part", part->rank), EL_KEY("number", a->number), EL_KEY("ok", good),
                                 EL_KEY("killed", killed), EL_KEY("reason", (const char *)reason),
                                 EL_KEY("document", document ? document : json_null()));
    bool sent = el_fleet_send(&a->channel, message);
    json_decref(message);
    unlink(part->result);
    unlink(part->log);
    part->told = true;
    return sent;
}

static void stop_workers(struct agent *a)
{
    el_children_signal(a->children, a->n_parts, SIGKILL);
    el_children_await(a->children, a->n_parts, STOP_NS);
    for (int i = 0; i < a->n_parts; i++) {
        unlink(a->parts[i].result);
        unlink(a->parts[i].log);
    }
    a->n_parts = 0;
}

/* Ranks whose processes have been stopped, or are in a call of the kernel, at several beats in a row. */
static json_t *stuck(struct agent *a)
{
    json_t *ranks = json_array();
    for (int i = 0; i < a->n_parts; i++) {
        char path[64], line[512];
        snprintf(path, sizeof path, "/proc/%d/stat", (int)a->children[i].pid);
        const char *after =
            !a->children[i].ended && el_file_line(path, "", line, sizeof line) ? strrchr(line, ')') : NULL;
        a->parts[i].stuck = after && (after[2] == 'T' || after[2] == 'D') ? a->parts[i].stuck + 1 : 0;
        if (a->parts[i].stuck >= STUCK_BEATS) json_array_append_new(ranks, json_integer(a->parts[i].rank));
    }
    return ranks;
}

static bool beat(struct agent *a)
{
    json_t *message = el_json_of(EL_KEY("beat", a->number), EL_KEY("stuck", stuck(a)), EL_KEY("port", a->port));
    bool sent = el_fleet_send(&a->channel, message);
    json_decref(message);
    return sent;
}

/* ---- what it is told ---- */

static bool begin_phase(struct agent *a, const json_t *run)
{
    size_t n = json_array_size(json_object_get(run, "mine"));
    stop_workers(a);
    a->number = (int)el_json_whole(run, "number");
    snprintf(a->phase, sizeof a->phase, "%s", el_json_text(run, "run", "?"));
    for (size_t i = 0; i < n && i < EL_MEMBERS_MAX; i++) {
        a->children[i] = (struct el_child){.ended = true, .wait_status = 1 << 8};
        if (start_worker(a, run, (int)i) != EL_OK) fprintf(stderr, "evenload: %s\n", el_error_message());
        a->n_parts++;
    }
    return listen_again(a) == EL_OK && beat(a); /* with the new port */
}

/* false: it is over. */
static bool follow(struct agent *a)
{
    for (json_t *message; (message = el_fleet_take(&a->channel));) {
        bool on = !el_json_is(message, "say", "end");
        if (el_json_is(message, "say", "stop")) stop_workers(a);
        if (json_object_get(message, "run")) on = begin_phase(a, message);
        json_decref(message);
        if (!on) return false;
    }
    return true;
}

static void work(struct agent *a)
{
    int64_t next_ns = 0;
    for (bool on = true; on;) {
        struct pollfd wait = {.fd = a->channel.socket, .events = POLLIN};
        poll(&wait, 1, LOOK_MS);
        on = el_fleet_hear(&a->channel) && follow(a);
        if (a->n_parts) el_children_wait(a->children, a->n_parts, 0);
        for (int i = 0; i < a->n_parts && on; i++)
            if (a->children[i].ended && !a->parts[i].told) on = tell_part(a, i);
        if (on && el_clock_ns() >= next_ns) {
            on = beat(a);
            next_ns = el_clock_ns() + BEAT_NS;
        }
    }
    stop_workers(a);
}

static enum el_status make_folder(struct agent *a)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(a->folder, sizeof a->folder, "%.900s/evenload-fleet-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(a->folder) ? EL_OK : el_fail_errno("fleet: %s", a->folder);
}

enum el_status el_fleet_agent(const struct el_options *options, const struct el_fleet_meeting *meeting,
                              const char *name, int first)
{
    struct agent *a = calloc(1, sizeof *a);
    if (!a) return el_fail_errno("fleet");
    *a = (struct agent){.options = options, .channel = {.socket = -1}, .listener = -1, .n_devices = options->n_devices};
    memcpy(a->devices, options->devices, sizeof a->devices);
    ssize_t length = readlink("/proc/self/exe", a->program, sizeof a->program - 1);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, 0); /* the channel tells that the conductor has ended; then its folder goes too */
    enum el_status status = length > 0 ? make_folder(a) : el_fail_errno("/proc/self/exe");
    if (status == EL_OK) status = listen_again(a);
    if (status == EL_OK) status = meet(a, meeting, name, first);
    if (status == EL_OK) work(a);
    if (a->folder[0]) rmdir(a->folder);
    if (a->listener >= 0) close(a->listener);
    el_fleet_channel_close(&a->channel);
    free(a);
    return status;
}

enum el_status el_fleet_agent_worker(struct el_worker *worker)
{
    enum { ADDRESS = 1, PORT, TOKEN, NAME };
    char **words = worker->arguments;
    const struct el_fleet_meeting meeting = {.address = words[ADDRESS],
                                             .port = atoi(words[PORT]),
                                             .n_ports = 1,
                                             .token = words[TOKEN],
                                             .patience_s = worker->options.fleet.wait_s};
    struct el_options *options = &worker->options;
    if (options->n_devices == 0) EL_TRY(el_devices_default(options->devices, &options->n_devices));
    return el_fleet_agent(options, &meeting, words[NAME], -1);
}
