/* What a member did in each step: computation, waits and transfers as sets of intervals, on its own clock. */
#include <math.h>
#include <stdlib.h>

#include "profiles/relate_internal.h"

enum { COMPUTE, COMM, COPY, WAIT, TRANSFER, OUTSIDE, EXPOSED, WAIT_EXPOSED, COPIES, REST, SETS };

/* A call's part before the last one had come; and what is no communication of a step: the waiting of
 * who receives a message, and calls without a partner. */
static void add_calls(const struct el_relate_work *w, size_t m, struct el_intervals *sets)
{
    struct el_relation_member *member = &w->relate.relation->members[m];
    const struct el_kineto_call *calls = w->relate.traces[member->trace].calls;
    bool *matched = calloc(w->relate.traces[member->trace].n_calls + 1, sizeof *matched);
    sets[OUTSIDE].failed |= !matched;
    for (size_t r = 0; r < w->n_runs && matched; r++) {
        const struct el_relate_operation *run = &w->runs[r];
        for (size_t i = run->first; i < run->first + run->n; i++) {
            const struct el_relate_entry *entry = &w->relate.entries[i];
            const struct el_kineto_call *call = &calls[entry->call];
            if (entry->member != m) continue;
            int64_t last_ns = run->latest_ns < entry->span.end_ns ? run->latest_ns : entry->span.end_ns;
            bool sends = entry->link && call->verb == EL_COMM_SEND;
            int64_t arrived_ns = sends ? call->span.begin_ns : call->span.begin_ns + last_ns - entry->span.begin_ns;
            el_intervals_add(&sets[entry->link ? OUTSIDE : WAIT], (struct el_span){call->span.begin_ns, arrived_ns});
            matched[entry->call] = true;
            member->row.sent_bytes += call->sent_bytes;
        }
    }
    for (size_t c = 0; matched && c < w->relate.traces[member->trace].n_calls; c++) {
        if (calls[c].device != member->device || matched[c]) continue;
        el_intervals_add(&sets[OUTSIDE], calls[c].span);
        member->n_alone++;
    }
    free(matched);
}

static const struct el_kineto_lane *lane_of(const struct el_relate_work *w, const struct el_relation_member *member)
{
    const struct el_kineto_trace *trace = &w->relate.traces[member->trace];
    size_t i = 0;
    while (trace->lanes[i].device != member->device) i++;
    return &trace->lanes[i];
}

static void copy_set(struct el_intervals *to, const struct el_intervals *from)
{
    for (size_t i = 0; i < from->n; i++) el_intervals_add(to, from->spans[i]);
}

static void make_sets(const struct el_relate_work *w, size_t m, struct el_intervals *sets)
{
    const struct el_kineto_lane *lane = lane_of(w, &w->relate.relation->members[m]);
    for (int c = 0; c < EL_KINETO_CLASSES; c++)
        copy_set(&sets[c == EL_KINETO_COMPUTE ? COMPUTE : c == EL_KINETO_COMM ? REST : COPY], &lane->sets[c]);
    add_calls(w, m, sets);
    for (int s = 0; s < SETS; s++) el_intervals_unite(&sets[s]);
    el_intervals_less(&sets[REST], &sets[OUTSIDE], &sets[COMM]);
    el_intervals_less(&sets[COMM], &sets[WAIT], &sets[TRANSFER]);
    el_intervals_less(&sets[COMM], &sets[COMPUTE], &sets[EXPOSED]);
    el_intervals_less(&sets[WAIT], &sets[COMPUTE], &sets[WAIT_EXPOSED]);
    el_intervals_clear(&sets[REST]);
    el_intervals_less(&sets[COPY], &sets[COMPUTE], &sets[REST]);
    el_intervals_less(&sets[REST], &sets[COMM], &sets[COPIES]);
}

/* What of the set lies in the span; sets and spans are walked through once, in order. */
static double within(const struct el_intervals *set, size_t *at, struct el_span span)
{
    int64_t ns = 0;
    while (*at < set->n && set->spans[*at].end_ns <= span.begin_ns) ++*at;
    for (size_t i = *at; i < set->n && set->spans[i].begin_ns < span.end_ns; i++) {
        int64_t from = set->spans[i].begin_ns > span.begin_ns ? set->spans[i].begin_ns : span.begin_ns;
        int64_t to = set->spans[i].end_ns < span.end_ns ? set->spans[i].end_ns : span.end_ns;
        ns += to - from;
    }
    return (double)ns * 1e-9;
}

static struct el_span whole_of(const struct el_intervals *sets)
{
    struct el_span whole = {INT64_MAX, INT64_MIN};
    for (int s = COMPUTE; s <= OUTSIDE; s++) {
        if (sets[s].n == 0) continue;
        if (sets[s].spans[0].begin_ns < whole.begin_ns) whole.begin_ns = sets[s].spans[0].begin_ns;
        if (sets[s].spans[sets[s].n - 1].end_ns > whole.end_ns) whole.end_ns = sets[s].spans[sets[s].n - 1].end_ns;
    }
    return whole.end_ns > whole.begin_ns ? whole : (struct el_span){0, 0};
}

/* A step lasts until the next one begins, so that work which the host queued in it and leaves behind is in one, too. */
static void put_parts(const struct el_relate_work *w, struct el_relation_member *member,
                      const struct el_intervals *sets)
{
    static const int of[] = {
        [EL_RELATION_COMPUTE] = COMPUTE, [EL_RELATION_EXPOSED] = EXPOSED, [EL_RELATION_WAIT_EXPOSED] = WAIT_EXPOSED,
        [EL_RELATION_COPIES] = COPIES,   [EL_RELATION_WAIT] = WAIT,       [EL_RELATION_TRANSFER] = TRANSFER};
    const struct el_kineto_trace *trace = &w->relate.traces[member->trace];
    size_t at[EL_RELATION_STEP] = {0}, n = trace->n_steps ? trace->n_steps : 1;
    for (size_t s = 0; s < n; s++) {
        struct el_span span = {INT64_MIN, INT64_MAX};
        if (s > 0) span.begin_ns = trace->steps[s].span.begin_ns;
        if (s + 1 < n) span.end_ns = trace->steps[s + 1].span.begin_ns;
        size_t step = trace->n_steps ? el_relate_step(w, trace->steps[s].number) : 0;
        double *parts = member->parts_s + step * EL_RELATION_PARTS;
        for (int p = 0; p < EL_RELATION_STEP; p++) parts[p] += within(&sets[of[p]], &at[p], span);
        struct el_span own = trace->n_steps ? trace->steps[s].span : whole_of(sets);
        parts[EL_RELATION_STEP] = (double)(own.end_ns - own.begin_ns) * 1e-9;
    }
}

enum el_status el_relate_measure(const struct el_relate_work *w, size_t m)
{
    struct el_relation *relation = w->relate.relation;
    struct el_relation_member *member = &relation->members[m];
    struct el_intervals sets[SETS] = {{0}};
    double sums[EL_RELATION_PARTS] = {0}, n = (double)relation->n_steps;
    bool failed = false;
    member->parts_s = calloc(relation->n_steps * EL_RELATION_PARTS, sizeof *member->parts_s);
    if (!member->parts_s) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the times of traces");
    make_sets(w, m, sets);
    for (int s = 0; s < SETS; s++) failed |= sets[s].failed;
    if (!failed) put_parts(w, member, sets);
    for (int s = 0; s < SETS; s++) el_intervals_free(&sets[s]);
    if (failed) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the times of traces");
    for (size_t i = 0; i < relation->n_steps * EL_RELATION_PARTS; i++)
        sums[i % EL_RELATION_PARTS] += member->parts_s[i] / n;
    member->row.compute_s = sums[EL_RELATION_COMPUTE];
    member->row.wait_s = sums[EL_RELATION_WAIT];
    member->row.transfer_s = sums[EL_RELATION_TRANSFER];
    member->row.exposed_s = sums[EL_RELATION_EXPOSED];
    member->row.wait_exposed_s = sums[EL_RELATION_WAIT_EXPOSED];
    member->row.sent_bytes = member->row.sent_bytes > 0 ? member->row.sent_bytes / n : NAN; /* only ours say it */
    relation->step_s += sums[EL_RELATION_STEP] / (double)relation->n_members;
    return EL_OK;
}
