/* The network by rounds of disjoint pairs: in each round every host works with one other, all of its devices each with
 * the other's of the same number. First pairs within hosts, in rounds too. Then an all-reduce of all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/fleet/fleet.h"
#include "bench/stats/stats.h"
#include "runtime/base/clock.h"
#include "runtime/base/files.h"
#include "runtime/comm/comm.h"
#include "runtime/device/program.h"

enum { FIRST_BYTES = 256 << 10, MOST_BYTES = 64 << 20, REDUCED_BYTES = 16 << 20, PAGE_BYTES = 4096 };
/* A message of the usual pair shall take MESSAGE_S; a slow pair has smaller ones, and fewer,
 * so that they fit into SLOT_S. */
#define MESSAGE_S 0.02
#define SLOT_S    0.8

struct session {
    struct el_fleet_rank *rank;
    struct el_comm *world;
    struct el_buffer *data;
    size_t bytes;        /* of a message */
    int *locals;         /* [n]: each rank's number on its host */
    int n_hosts, n_most; /* ranks of the fullest host */
    json_t *links;
};

static int rank_of(const struct session *s, int host, int local)
{
    for (int r = 0; r < s->rank->n; r++)
        if (s->rank->hosts[r] == host && s->locals[r] == local) return r;
    return -1;
}

static void number_ranks(struct session *s)
{
    for (int r = 0; r < s->rank->n; r++) {
        for (int k = 0; k < r; k++) s->locals[r] += s->rank->hosts[k] == s->rank->hosts[r];
        if (s->rank->hosts[r] >= s->n_hosts) s->n_hosts = s->rank->hosts[r] + 1;
        if (s->locals[r] >= s->n_most) s->n_most = s->locals[r] + 1;
    }
}

/* ---- one pair ---- */

static enum el_status queue(struct el_comm *pair, struct el_program *program, enum el_comm_verb verb, int root,
                            struct el_buffer *data, size_t bytes, int *id_p)
{
    const struct el_comm_op op = {.verb = verb,
                                  .dtype = EL_F32,
                                  .count = verb == EL_COMM_BARRIER ? 0 : bytes / sizeof(float),
                                  .root = root,
                                  .data = verb == EL_COMM_BARRIER ? (struct el_view){0} : el_view_of(data, 0),
                                  .phase = EL_PHASE_COMM};
    return el_comm_issue(pair, program, &op, id_p);
}

struct marks {
    int ids[3];
    int64_t ends_ns[3];
};

static void keep(void *context, const struct el_step_event *event)
{
    struct marks *marks = context;
    for (int i = 0; i < 3; i++) marks->ends_ns[i] = event->spans[marks->ids[i]].end_ns;
}

/* A barrier, a message, a barrier, a message back, a barrier: what is between two barriers has arrived. */
static enum el_status make_exchange(const struct session *s, struct el_comm *pair, size_t bytes, struct marks *marks,
                                    struct el_program **program_p)
{
    EL_TRY(el_program_create(program_p));
    for (int i = 0; i < 3; i++) {
        if (i) EL_TRY(queue(pair, *program_p, EL_COMM_BROADCAST, i - 1, s->data, bytes, NULL));
        EL_TRY(queue(pair, *program_p, EL_COMM_BARRIER, 0, s->data, 0, &marks->ids[i]));
    }
    return el_program_end(*program_p);
}

static enum el_status exchange(const struct session *s, struct el_comm *pair, size_t bytes, int runs,
                               double (*seconds)[2])
{
    struct marks marks;
    struct el_program *program = NULL;
    const struct el_probe probe = {.context = &marks, .spans = true, .wall_only = true, .step = keep};
    enum el_status status = make_exchange(s, pair, bytes, &marks, &program);
    for (int i = 0; i < runs && status == EL_OK; i++) {
        status = el_program_run(program, 0, &probe);
        for (int k = 0; k < 2; k++) seconds[i][k] = 1e-9 * (double)(marks.ends_ns[k + 1] - marks.ends_ns[k]);
    }
    el_program_destroy(program);
    return status;
}

/* Both must make as many of the same size: the first one says it, by a message. */
static enum el_status agree(const struct session *s, struct el_comm *pair, double both_s, size_t *bytes_p, int *runs_p)
{
    double fit = FIRST_BYTES * SLOT_S / 4 / fmax(both_s, 1e-9), bytes = fmin(fmax(fit, FIRST_BYTES), (double)s->bytes);
    double runs = fmin(fmax(SLOT_S / fmax(both_s * bytes / FIRST_BYTES, 1e-9), 1), s->rank->options->repeats);
    size_t pages = (size_t)bytes / PAGE_BYTES;
    float words[2] = {(float)pages, (float)(int)runs};
    double seconds[1][2];
    if (el_comm_rank(pair) == 0) EL_TRY(el_device_write(el_view_of(s->data, 0), words, sizeof words));
    EL_TRY(exchange(s, pair, sizeof words, 1, seconds));
    EL_TRY(el_device_read(el_view_of(s->data, 0), words, sizeof words));
    *bytes_p = (size_t)words[0] * PAGE_BYTES;
    *runs_p = (int)words[1];
    bool right = *bytes_p > 0 && *bytes_p <= MOST_BYTES && *runs_p > 0 && *runs_p <= s->rank->options->repeats;
    return right ? EL_OK : el_fail(EL_ERR_PEER, "a pair's message came wrong");
}

static enum el_status measure_pair(const struct session *s, struct el_comm *pair, int partner, bool within)
{
    enum { SMALL = 3 };
    int runs = 0, side = el_comm_rank(pair);
    size_t bytes = 0;
    double(*seconds)[2] = calloc((size_t)s->rank->options->repeats + SMALL + 1, sizeof *seconds), small[2 * SMALL];
    if (!seconds) return el_fail_errno("%d repeats", s->rank->options->repeats);
    enum el_status status = exchange(s, pair, sizeof(float), SMALL, seconds);
    for (int i = 0; i < 2 * SMALL; i++) small[i] = seconds[i / 2][i % 2] / 2;
    if (status == EL_OK) status = exchange(s, pair, FIRST_BYTES, 1, seconds);
    if (status == EL_OK) status = agree(s, pair, seconds[0][0] + seconds[0][1], &bytes, &runs);
    if (status == EL_OK) status = exchange(s, pair, bytes, runs + 1, seconds); /* the first one is not counted */
    json_t *rates = json_array();
    for (int i = 1; i <= runs && status == EL_OK; i++)
        json_array_append_new(rates, el_json_real(1e-9 * (double)bytes / seconds[i][side]));
    json_array_append_new(s->links, el_json_of(EL_KEY("to", partner), EL_KEY("within", within),
                                               EL_KEY("latency_us", 1e6 * el_stats_median(small, 2 * SMALL)),
                                               EL_KEY("gb_per_s", rates)));
    free(seconds);
    return status;
}

/* ---- rounds ---- */

/* The pair's colour is its lower rank. */
static enum el_status run_round(struct session *s, int partner, bool within)
{
    struct el_comm *pair = NULL;
    int me = s->rank->rank, color = partner < 0 ? -1 : partner < me ? partner : me;
    EL_TRY(el_bootstrap_barrier(s->rank->bootstrap));
    EL_TRY(el_comm_split(s->world, color, me, &pair));
    if (!pair) return EL_OK;
    enum el_status status = measure_pair(s, pair, partner, within);
    if (status != EL_OK) el_comm_abort(s->world);
    el_comm_close(pair);
    return status;
}

/* From a first round of small messages: the median pair's. */
static enum el_status choose_bytes(struct session *s, const json_t *link)
{
    char text[32], **all = NULL;
    double bytes = FIRST_BYTES, rates[EL_FLEET_RANKS_MAX];
    size_t n = 0;
    const json_t *first = json_array_get(json_object_get(link, "gb_per_s"), 0);
    snprintf(text, sizeof text, "%g", first ? json_number_value(first) : 0);
    EL_TRY(el_bootstrap_gather(s->rank->bootstrap, text, &all));
    for (int r = 0; all && r < s->rank->n; r++) {
        double rate = strtod(all[r], NULL);
        if (rate > 0 && n < EL_FLEET_RANKS_MAX) rates[n++] = rate;
        free(all[r]);
    }
    free(all);
    if (n) bytes = fmin(fmax(el_stats_median(rates, n) * 1e9 * MESSAGE_S, FIRST_BYTES), MOST_BYTES);
    EL_TRY(el_bootstrap_broadcast(s->rank->bootstrap, &bytes, sizeof bytes));
    s->bytes = (size_t)bytes / PAGE_BYTES * PAGE_BYTES;
    return EL_OK;
}

static int partner_of(const struct session *s, int round, bool within)
{
    int me = s->rank->rank, host = s->rank->hosts[me];
    if (within) {
        int local = el_fleet_partner(s->n_most, round, s->locals[me]);
        return local < 0 ? -1 : rank_of(s, host, local);
    }
    int other = el_fleet_partner(s->n_hosts, round, host);
    return other < 0 ? -1 : rank_of(s, other, s->locals[me]);
}

static void say(const struct session *s, int k, int n, bool within)
{
    if (s->rank->rank != 0) return;
    printf("[%d/%d] pairs %s hosts\n", k + 1, n, within ? "within" : "between");
    fflush(stdout);
}

static enum el_status run_rounds(struct session *s, int n, int most, bool within)
{
    int rounds = el_fleet_rounds(n), wanted = most > 0 && most < rounds ? most : rounds;
    if (rounds == 0) return EL_OK;
    size_t before = json_array_size(s->links);
    s->bytes = FIRST_BYTES;
    enum el_status status = run_round(s, partner_of(s, 0, within), within);
    if (status == EL_OK) status = choose_bytes(s, json_array_get(s->links, before));
    if (json_array_size(s->links) > before) json_array_remove(s->links, before); /* for the size alone */
    for (int k = 0; k < wanted && status == EL_OK; k++) {
        say(s, k, wanted, within);
        status = run_round(s, partner_of(s, el_fleet_round_of(n, wanted, k), within), within);
    }
    return status;
}

/* ---- all of them ---- */

struct call {
    int id;
    double s;
};

static void keep_call(void *context, const struct el_step_event *event)
{
    struct call *call = context;
    call->s = 1e-9 * (double)(event->spans[call->id].end_ns - event->spans[call->id].begin_ns);
}

static enum el_status reduce_all(struct session *s, json_t *seconds)
{
    struct call call;
    struct el_program *program = NULL;
    const struct el_probe probe = {.context = &call, .spans = true, .wall_only = true, .step = keep_call};
    const struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                                  .dtype = EL_F32,
                                  .count = REDUCED_BYTES / sizeof(float),
                                  .data = el_view_of(s->data, 0),
                                  .phase = EL_PHASE_COMM};
    EL_TRY(el_program_create(&program));
    enum el_status status = queue(s->world, program, EL_COMM_BARRIER, 0, s->data, 0, NULL);
    if (status == EL_OK) status = el_comm_issue(s->world, program, &op, &call.id);
    if (status == EL_OK) status = el_program_end(program);
    for (int i = -1; i < s->rank->options->repeats && status == EL_OK; i++) {
        status = el_program_run(program, 0, &probe);
        if (i >= 0) json_array_append_new(seconds, el_json_real(call.s));
    }
    el_program_destroy(program);
    return status;
}

/* This network's TCP segments since it began. */
static void read_segments(double counts[2])
{
    char line[512];
    FILE *file = fopen("/proc/net/snmp", "r");
    counts[0] = counts[1] = NAN;
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "Tcp: %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %lf %lf", &counts[0], &counts[1]);
    if (file) fclose(file);
}

static enum el_status measure(struct session *s, json_t *document)
{
    json_t *seconds = json_array();
    double begin[2], end[2];
    read_segments(begin);
    enum el_status status = run_rounds(s, s->n_most, 0, true);
    if (status == EL_OK) status = run_rounds(s, s->n_hosts, s->rank->options->fleet.rounds, false);
    read_segments(end);
    size_t bytes = s->bytes;
    if (status == EL_OK) status = reduce_all(s, seconds);
    el_json_put_all(document, EL_KEY("bytes", (int64_t)bytes), EL_KEY("segments", end[0] - begin[0]),
                    EL_KEY("retransmitted", end[1] - begin[1]), EL_KEY("backend", el_comm_backend(s->world)),
                    EL_KEY("all_reduce", el_json_of(EL_KEY("bytes", REDUCED_BYTES), EL_KEY("s", seconds))));
    return status;
}

enum el_status el_fleet_measure_pairs(struct el_fleet_rank *rank, json_t **document_p)
{
    struct session s = {.rank = rank, .locals = calloc((size_t)rank->n + 1, sizeof(int)), .links = json_array()};
    json_t *document = el_json_of(EL_KEY("links", json_incref(s.links)));
    const char *kind = rank->options->comm;
    if (!s.locals) return el_fail_errno("%d ranks", rank->n);
    number_ranks(&s);
    if (!strcmp(kind, "auto")) kind = el_comm_choose(rank->bootstrap, rank->device);
    enum el_status status = el_comm_open_ranks(kind, rank->bootstrap, rank->device, &s.world);
    if (status == EL_OK) el_comm_set_timeout(s.world, EL_FLEET_STUCK_S);
    if (status == EL_OK)
        status = el_device_alloc(rank->device, EL_TAG_WORKSPACE, MOST_BYTES, "fleet's messages", &s.data);
    if (status == EL_OK) {
        float *zeros = calloc(1, MOST_BYTES);
        status = zeros ? el_device_write(el_view_of(s.data, 0), zeros, MOST_BYTES) : el_fail_errno("messages");
        free(zeros);
    }
    if (status == EL_OK) status = measure(&s, document);
    el_device_free(s.data);
    el_comm_close(s.world);
    json_decref(s.links);
    free(s.locals);
    *document_p = document;
    return status;
}
