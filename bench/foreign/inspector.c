/* NCCL Inspector's lines (plugins/profiler/inspector/inspector_json.cc), and our profiler's (profiles/nccl). Calls
 * match by communicator, collective and sequence number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/foreign/foreign.h"
#include "runtime/base/grow.h"
#include "runtime/base/hash.h"

static const double LATE_PCT = 50, LATE_RATIO = 0.05; /* of calls, and of their time: limits for naming a rank */

/* NCCL's names and nccl-tests'. The lines have no reduction, type or root. */
static const struct {
    const char *theirs, *ours, *redop;
} collectives[] = {{"AllReduce", "all_reduce", "?"},
                   {"AllGather", "all_gather", "none"},
                   {"ReduceScatter", "reduce_scatter", "?"},
                   {"Broadcast", "broadcast", "none"},
                   {"Reduce", "reduce", "?"},
                   {"All2All", "alltoall", "none"},
                   {"Send", "send", "none"},
                   {"Recv", "recv", "none"},
                   {"SendRecv", "sendrecv", "none"}};
enum { N_COLLECTIVES = sizeof collectives / sizeof collectives[0], RANKS_MAX = 4096 };

struct call {
    uint64_t communicator, number;
    double bytes, us;
    int collective, rank, ranks; /* ranks 0: not in the line */
    char used[EL_FOREIGN_WORD];  /* algorithm and protocol; "": not in the line */
    bool matches;                /* a collective timed on the GPU: its kernel waits for the last rank */
};

struct el_inspector {
    struct call *calls;
    size_t n, room;
    json_t *hosts;
};

static bool read_call(const json_t *line, struct call *call_p)
{
    bool link = json_is_object(json_object_get(line, "p2p_perf"));
    const json_t *perf = json_object_get(line, link ? "p2p_perf" : "coll_perf"),
                 *header = json_object_get(line, "header");
    const char *name = el_json_text(perf, link ? "p2p" : "coll", "");
    const char *id = el_json_text(header, "id", "");
    struct call call = {
        .communicator = el_hash(EL_HASH_BEGIN, id, strlen(id)),
        .number = (uint64_t)el_json_whole(perf, link ? "p2p_sn" : "coll_sn"),
        .bytes = el_json_number(perf, link ? "p2p_msg_size_bytes" : "coll_msg_size_bytes"),
        .us = el_json_number(perf, link ? "p2p_exec_time_us" : "coll_exec_time_us"),
    };
    int64_t rank = el_json_whole(header, "rank"), ranks = el_json_whole(header, "n_ranks");
    while (call.collective < N_COLLECTIVES && strcmp(collectives[call.collective].theirs, name)) call.collective++;
    if (call.collective == N_COLLECTIVES || rank < 0 || ranks < 0 || rank >= (ranks ? ranks : RANKS_MAX) ||
        ranks > RANKS_MAX)
        return false;
    if (!(call.us > 0 && call.us < 1e12 && call.bytes >= 0 && call.bytes < 1e15)) return false;
    call.matches = !link && strncmp(el_json_text(perf, "coll_timing_source", ""), "collective", 10) != 0;
    const char *algorithm = el_json_text(perf, "algorithm", "");
    if (*algorithm) snprintf(call.used, sizeof call.used, "%.15s %.12s", algorithm, el_json_text(perf, "protocol", ""));
    call.rank = (int)rank;
    call.ranks = (int)ranks;
    *call_p = call;
    return true;
}

/* Later lines that are no call, as of a killed program, are skipped. */
enum el_status el_inspector_add(const char *text, struct el_inspector **inspector_p)
{
    struct el_inspector *all = *inspector_p;
    size_t taken = 0;
    for (const char *end; *text; text = *end ? end + 1 : end) {
        struct call call;
        end = text + strcspn(text, "\n");
        json_t *line = json_loadb(text, (size_t)(end - text), 0, NULL);
        if (!json_is_object(json_object_get(line, "header")) && !taken) {
            json_decref(line);
            return EL_ERR_ABSENT;
        }
        if (!all) all = *inspector_p = calloc(1, sizeof *all);
        if (all && !all->hosts) all->hosts = json_object();
        bool grown = all && EL_GROW(all->calls, all->room, all->n + 1);
        if (grown && read_call(line, &call)) all->calls[all->n++] = call, taken++;
        if (grown && taken) json_object_set_new(all->hosts, el_json_text(line, "metadata.hostname", "?"), json_true());
        json_decref(line);
        if (!grown) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the calls");
    }
    return taken ? EL_OK : EL_ERR_ABSENT;
}

static int by_call(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->collective != y->collective) return x->collective - y->collective;
    if (x->ranks != y->ranks) return x->ranks - y->ranks;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    if (x->communicator != y->communicator) return x->communicator < y->communicator ? -1 : 1;
    if (x->number != y->number) return x->number < y->number ? -1 : 1;
    return x->rank - y->rank;
}

static int by_communicator(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->communicator != y->communicator) return x->communicator < y->communicator ? -1 : 1;
    return y->rank - x->rank;
}

/* Counts the ranks present if lines lack the size. */
static void count_ranks(struct el_inspector *all)
{
    qsort(all->calls, all->n, sizeof *all->calls, by_communicator);
    for (size_t i = 0, first = 0; i < all->n; i++) {
        struct call *call = &all->calls[i];
        if (call->communicator != all->calls[first].communicator) first = i;
        if (!call->ranks) call->ranks = all->calls[first].rank + 1;
    }
}

/* Per communicator: another one numbers other devices. */
struct lateness {
    uint64_t communicator;
    double calls, us;               /* calls with all ranks, and their transfers */
    double *last, *caused, *waited; /* [ranks] */
    int ranks;
};

/* The last rank's kernel does not wait: its time is the transfer. */
static double match(const struct call *calls, struct lateness *late)
{
    int last = 0, first = 0;
    for (int i = 1; i < calls->ranks; i++) {
        if (calls[i].us < calls[last].us) last = i;
        if (calls[i].us > calls[first].us) first = i;
    }
    double transfer = calls[last].us;
    if (calls->communicator != late->communicator || late->ranks < 2) return transfer;
    late->calls++;
    late->us += transfer;
    late->last[last]++;
    late->caused[last] += calls[first].us - transfer;
    for (int i = 0; i < calls->ranks; i++) late->waited[i] += calls[i].us - transfer;
    return transfer;
}

static json_t *late_json(const struct lateness *late)
{
    json_t *ranks = json_array();
    char sentence[256];
    int most = 0;
    if (!(late->calls > 0)) return json_decref(ranks), json_null();
    for (int i = 0; i < late->ranks; i++) {
        if (late->caused[i] > late->caused[most]) most = i;
        json_array_append_new(ranks,
                              el_json_of(EL_KEY("rank", i), EL_KEY("last_pct", 100 * late->last[i] / late->calls),
                                         EL_KEY("caused_us", late->caused[i] / late->calls),
                                         EL_KEY("waited_us", late->waited[i] / late->calls)));
    }
    double pct = 100 * late->last[most] / late->calls, caused = late->caused[most] / late->calls;
    if (pct > LATE_PCT && caused > LATE_RATIO * late->us / late->calls)
        snprintf(
            sentence, sizeof sentence,
            "Rank %d is late: it comes last to %.0f %% of %.0f calls, and the first one then waits %.0f us, beside "
            "a transfer of %.0f us.",
            most, pct, late->calls, late->caused[most] / late->last[most], late->us / late->calls);
    else
        snprintf(
            sentence, sizeof sentence,
            "No rank is late: the one that waits are charged to most, rank %d, comes last to %.0f %% of %.0f calls.",
            most, pct, late->calls);
    return el_json_of(EL_KEY("calls", late->calls), EL_KEY("ranks", ranks), EL_KEY("sentence", (const char *)sentence));
}

static bool all_match(const struct call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!calls[i].matches) return false;
    return true;
}

/* Transfers, or plain times if ranks are missing. Returns how many calls it took. */
static size_t take_row(const struct call *calls, size_t n, struct lateness *late, struct el_foreign_row *row,
                       int64_t *lost)
{
    size_t end = 0, whole = 0;
    json_t *all = json_array(), *transfers = json_array();
    while (end < n && calls[end].collective == calls->collective && calls[end].ranks == calls->ranks &&
           calls[end].bytes == calls->bytes) {
        size_t size = 1;
        while (end + size < n && size < (size_t)calls->ranks && calls[end + size].number == calls[end].number &&
               calls[end + size].communicator == calls[end].communicator && calls[end + size].rank == (int)size &&
               calls[end + size].bytes == calls->bytes && calls[end + size].collective == calls->collective)
            size++;
        if (size == (size_t)calls->ranks && calls[end].rank == 0 && all_match(&calls[end], size)) {
            json_array_append_new(transfers, json_real(match(&calls[end], late)));
            whole++;
        }
        *lost += all_match(&calls[end], size) && size < (size_t)calls->ranks;
        for (size_t i = 0; i < size; i++) json_array_append_new(all, json_real(calls[end + i].us));
        end += size;
    }
    row->samples = json_pack("[o]", whole ? transfers : all);
    json_decref(whole ? all : transfers);
    return end;
}

static enum el_status add_rows(struct el_inspector *all, struct lateness *late, struct el_foreign *foreign)
{
    for (size_t i = 0, n; i < all->n; i += n) {
        const struct call *call = &all->calls[i];
        const char *name = collectives[call->collective].ours;
        double parts = el_foreign_has_parts(name) ? call->ranks : 1;
        struct el_foreign_row row = {.type = "bytes",
                                     .root = -1,
                                     .bytes = call->bytes * parts,
                                     .count = call->bytes,
                                     .wrong = NAN,
                                     .bus_ratio = el_foreign_bus_factor(name, call->ranks)};
        bool other = call->ranks != late->ranks; /* a group's name has its size */
        snprintf(row.operation, sizeof row.operation, other ? "%s of %d" : "%s", name, call->ranks);
        memcpy(row.used, call->used, sizeof row.used);
        snprintf(row.redop, sizeof row.redop, "%s", collectives[call->collective].redop);
        n = take_row(call, all->n - i, late, &row, &foreign->lost_calls);
        EL_TRY(el_foreign_add(foreign, &row));
    }
    return EL_OK;
}

enum el_status el_inspector_end(struct el_inspector *all, struct el_foreign *foreign)
{
    struct lateness late = {.ranks = 0};
    if (json_array_size(foreign->curves))
        return el_fail(EL_ERR_INVALID, "files of nccl-tests and of NCCL Inspector are read apart");
    count_ranks(all);
    for (size_t i = 0; i < all->n; i++)
        if (all->calls[i].ranks > late.ranks)
            late.ranks = all->calls[i].ranks, late.communicator = all->calls[i].communicator;
    double *sums = calloc(3 * (size_t)late.ranks + 1, sizeof *sums);
    if (!sums) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %d ranks", late.ranks);
    late.last = sums;
    late.caused = sums + late.ranks;
    late.waited = sums + 2 * (size_t)late.ranks;
    qsort(all->calls, all->n, sizeof *all->calls, by_call);
    enum el_status status = add_rows(all, &late, foreign);
    foreign->ranks = late.ranks;
    foreign->source = "NCCL Inspector";
    if (!(late.calls > 0)) foreign->lost_calls = 0; /* a rank has no file at all */
    foreign->late = late_json(&late);
    json_object_update(foreign->hosts, all->hosts);
    free(sums);
    return status;
}

void el_inspector_free(struct el_inspector *all)
{
    if (!all) return;
    json_decref(all->hosts);
    free(all->calls);
    free(all);
}
