/* From matched operations on one clock to what each member did in a step. */
#include "profiles/relate_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/grow.h"

/* An operation that several members took part in. */
struct run {
    size_t first, n;    /* its entries */
    size_t step, place; /* which step, and which operation of the step it is */
    int64_t latest_ns, end_ns;
};

struct work {
    struct el_relate relate;
    int64_t *steps; /* numbers of the profiler's, rising, [relation->n_steps]; NULL: it has none */
    struct run *runs;
    size_t n_runs, n_places;
};

enum { SPANS_MAX = 1 << 24 }; /* of a member: places in all steps */

static enum el_status fail_memory(void)
{
    return el_fail(EL_ERR_HOST_MEMORY, "no memory to relate traces");
}

/* ---- members and steps ---- */

static int by_rank(const void *a, const void *b)
{
    const struct el_relation_member *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->trace != y->trace) return x->trace < y->trace ? -1 : 1;
    return (x->device > y->device) - (x->device < y->device);
}

static enum el_status list_members(struct work *w)
{
    struct el_relation *relation = w->relate.relation;
    size_t n = 0;
    for (size_t t = 0; t < w->relate.n_traces; t++) n += w->relate.traces[t].n_lanes;
    relation->members = calloc(n + 1, sizeof *relation->members);
    if (!relation->members) return fail_memory();
    for (size_t t = 0; t < w->relate.n_traces; t++) {
        const struct el_kineto_trace *trace = &w->relate.traces[t];
        for (size_t i = 0; i < trace->n_lanes; i++)
            relation->members[relation->n_members++] =
                (struct el_relation_member){.trace = t, .rank = trace->rank, .device = trace->lanes[i].device};
    }
    qsort(relation->members, n, sizeof *relation->members, by_rank);
    return EL_OK;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum el_status list_steps(struct work *w)
{
    size_t n = 0, kept = 0;
    struct el_relation *relation = w->relate.relation;
    for (size_t t = 0; t < w->relate.n_traces; t++) n += w->relate.traces[t].n_steps;
    relation->has_steps = n > 0;
    relation->n_steps = 1;
    if (n == 0) return EL_OK;
    w->steps = calloc(n, sizeof *w->steps);
    if (!w->steps) return fail_memory();
    n = 0;
    for (size_t t = 0; t < w->relate.n_traces; t++)
        for (size_t s = 0; s < w->relate.traces[t].n_steps; s++) w->steps[n++] = w->relate.traces[t].steps[s].number;
    qsort(w->steps, n, sizeof *w->steps, by_value);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || w->steps[kept - 1] != w->steps[i]) w->steps[kept++] = w->steps[i];
    relation->n_steps = kept;
    return EL_OK;
}

/* SIZE_MAX: it is in none. */
static size_t step_of(const struct work *w, int64_t number)
{
    if (!w->steps) return 0;
    const int64_t *found = bsearch(&number, w->steps, w->relate.relation->n_steps, sizeof number, by_value);
    return found ? (size_t)(found - w->steps) : SIZE_MAX;
}

/* ---- operations ---- */

static void look(struct work *w, struct run *run)
{
    run->latest_ns = run->end_ns = INT64_MIN;
    run->step = SIZE_MAX;
    for (size_t i = run->first; i < run->first + run->n; i++) {
        const struct el_relate_entry *entry = &w->relate.entries[i];
        if (entry->span.begin_ns > run->latest_ns) run->latest_ns = entry->span.begin_ns;
        if (entry->span.end_ns > run->end_ns) run->end_ns = entry->span.end_ns;
        size_t step = step_of(w, entry->step);
        if (step < run->step) run->step = step;
    }
}

/* How many members the class that begins there has. */
static size_t members_of(const struct el_relate *relate, size_t from, bool *seen)
{
    size_t n = 0;
    memset(seen, 0, relate->relation->n_members * sizeof *seen);
    for (size_t i = from; i < relate->n && relate->entries[i].class == relate->entries[from].class; i++) {
        n += !seen[relate->entries[i].member];
        seen[relate->entries[i].member] = true;
    }
    return n;
}

/* Those of one class have places one behind another in each step, which are the same in all steps. One that a member's
 * trace does not have is none: who came last at it is not known. */
static enum el_status list_runs(struct work *w)
{
    const struct el_relate *relate = &w->relate;
    size_t *used = calloc(relate->relation->n_steps, sizeof *used), first_place = 0, most = 0, n_members = 0;
    bool *seen = calloc(relate->relation->n_members + 1, sizeof *seen);
    w->runs = calloc(relate->n + 1, sizeof *w->runs);
    bool enough = used && seen && w->runs;
    for (size_t from = 0, to; from < relate->n && enough; from = to) {
        struct run run = {.first = from};
        bool same = from > 0 && relate->entries[from - 1].class == relate->entries[from].class;
        if (!same) {
            first_place += most;
            most = 0;
            n_members = members_of(relate, from, seen);
            memset(used, 0, relate->relation->n_steps * sizeof *used);
        }
        to = el_relate_run(relate, from);
        run.n = to - from;
        look(w, &run);
        if (run.n < 2 || run.n < n_members || run.step == SIZE_MAX) continue;
        run.place = first_place + used[run.step]++;
        if (used[run.step] > most) most = used[run.step];
        w->runs[w->n_runs++] = run;
    }
    w->n_places = first_place + most;
    free(used);
    free(seen);
    return enough ? EL_OK : fail_memory();
}

/* ---- arrivals ---- */

/* A place that a step does not have is an operation of no length there, for all alike. */
static enum el_status make_collectives(const struct work *w, struct el_collectives *members)
{
    size_t n_steps = w->relate.relation->n_steps, n = w->n_places;
    if (n * n_steps > SPANS_MAX) return el_fail(EL_ERR_INVALID, "traces: their steps have too little in common");
    for (size_t m = 0; m < w->relate.relation->n_members; m++) {
        members[m] = (struct el_collectives){.n_steps = n_steps};
        members[m].spans = calloc(n * n_steps + 1, sizeof *members[m].spans);
        members[m].ops = calloc(n + 1, sizeof *members[m].ops);
        if (!members[m].spans || !members[m].ops) return fail_memory();
    }
    return EL_OK;
}

/* Which place a member's operation is at: each only has those that it takes part in. */
static enum el_status fill_collectives(const struct work *w, struct el_collectives *members)
{
    size_t n = w->n_places, n_members = w->relate.relation->n_members;
    size_t *index = calloc(n * n_members + 1, sizeof *index); /* 1 more than its own number; 0: none */
    if (!index) return fail_memory();
    for (size_t r = 0; r < w->n_runs; r++) {
        const struct run *run = &w->runs[r];
        for (size_t i = run->first; i < run->first + run->n; i++) {
            size_t m = w->relate.entries[i].member, *own = &index[m * n + run->place];
            if (*own) continue;
            members[m].ops[members[m].n].operation = run->place + 1;
            members[m].ops[members[m].n].link = w->relate.entries[i].link ? EL_LINK_SEND : EL_LINK_NONE;
            *own = ++members[m].n;
        }
    }
    for (size_t r = 0; r < w->n_runs; r++) {
        const struct run *run = &w->runs[r];
        for (size_t i = run->first; i < run->first + run->n; i++) {
            size_t m = w->relate.entries[i].member;
            members[m].spans[run->step * members[m].n + index[m * n + run->place] - 1] = w->relate.entries[i].span;
        }
    }
    free(index);
    return EL_OK;
}

static enum el_status find_arrivals(const struct work *w)
{
    struct el_relation *relation = w->relate.relation;
    struct el_collectives *members = calloc(relation->n_members, sizeof *members);
    struct el_rank_row *rows = calloc(relation->n_members, sizeof *rows);
    enum el_status status = members && rows ? make_collectives(w, members) : fail_memory();
    if (status == EL_OK) status = fill_collectives(w, members);
    if (status == EL_OK) status = el_ranks_arrivals(members, (int)relation->n_members, rows);
    for (size_t m = 0; m < relation->n_members && status == EL_OK; m++) relation->members[m].row = rows[m];
    for (size_t m = 0; m < relation->n_members && members; m++) el_collectives_free(&members[m]);
    free(members);
    free(rows);
    return status;
}

/* ---- a member's time ---- */

enum { COMPUTE, COMM, COPY, WAIT, TRANSFER, OUTSIDE, EXPOSED, WAIT_EXPOSED, COPIES, REST, SETS };

/* A call's part before the last one had come; and what is no communication of a step: the waiting of
 * who receives a message, and calls without a partner. */
static void add_calls(const struct work *w, size_t m, struct el_intervals *sets)
{
    struct el_relation_member *member = &w->relate.relation->members[m];
    const struct el_kineto_call *calls = w->relate.traces[member->trace].calls;
    bool *matched = calloc(w->relate.traces[member->trace].n_calls + 1, sizeof *matched);
    sets[OUTSIDE].failed |= !matched;
    for (size_t r = 0; r < w->n_runs && matched; r++) {
        const struct run *run = &w->runs[r];
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

static const struct el_kineto_lane *lane_of(const struct work *w, const struct el_relation_member *member)
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

static void make_sets(const struct work *w, size_t m, struct el_intervals *sets)
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
static void put_parts(const struct work *w, struct el_relation_member *member, const struct el_intervals *sets)
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
        size_t step = trace->n_steps ? step_of(w, trace->steps[s].number) : 0;
        double *parts = member->parts_s + step * EL_RELATION_PARTS;
        for (int p = 0; p < EL_RELATION_STEP; p++) parts[p] += within(&sets[of[p]], &at[p], span);
        struct el_span own = trace->n_steps ? trace->steps[s].span : whole_of(sets);
        parts[EL_RELATION_STEP] = (double)(own.end_ns - own.begin_ns) * 1e-9;
    }
}

static enum el_status measure(const struct work *w, size_t m)
{
    struct el_relation *relation = w->relate.relation;
    struct el_relation_member *member = &relation->members[m];
    struct el_intervals sets[SETS] = {{0}};
    double sums[EL_RELATION_PARTS] = {0}, n = (double)relation->n_steps;
    bool failed = false;
    member->parts_s = calloc(relation->n_steps * EL_RELATION_PARTS, sizeof *member->parts_s);
    if (!member->parts_s) return fail_memory();
    make_sets(w, m, sets);
    for (int s = 0; s < SETS; s++) failed |= sets[s].failed;
    if (!failed) put_parts(w, member, sets);
    for (int s = 0; s < SETS; s++) el_intervals_free(&sets[s]);
    if (failed) return fail_memory();
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

/* ---- by size ---- */

static int by_size(const void *a, const void *b)
{
    const struct el_relation_size *x = a, *y = b;
    if (x->verb != y->verb) return x->verb < y->verb ? -1 : 1;
    if (x->n_ranks != y->n_ranks) return x->n_ranks < y->n_ranks ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return (x->transfer_s > y->transfer_s) - (x->transfer_s < y->transfer_s);
}

static enum el_status list_sizes(const struct work *w)
{
    struct el_relation *relation = w->relate.relation;
    struct el_relation_size *all = calloc(w->n_runs + 1, sizeof *all);
    size_t n = 0, kept = 0;
    if (!all) return fail_memory();
    for (size_t r = 0; r < w->n_runs; r++) {
        const struct run *run = &w->runs[r];
        const struct el_relate_entry *entry = &w->relate.entries[run->first];
        const struct el_kineto_call *call =
            &w->relate.traces[relation->members[entry->member].trace].calls[entry->call];
        if (entry->link) continue;
        relation->n_operations++;
        double transfer_s = run->end_ns > run->latest_ns ? (double)(run->end_ns - run->latest_ns) * 1e-9 : 0;
        if (call->bytes > 0)
            all[n++] = (struct el_relation_size){call->verb, (int)call->size, call->bytes, 1, transfer_s};
    }
    qsort(all, n, sizeof *all, by_size);
    for (size_t from = 0, to = 0; from < n; from = to) {
        while (to < n && all[to].verb == all[from].verb && all[to].n_ranks == all[from].n_ranks &&
               all[to].bytes == all[from].bytes)
            to++;
        struct el_relation_size size = all[from];
        size.transfer_s = (all[(from + to - 1) / 2].transfer_s + all[(from + to) / 2].transfer_s) / 2;
        size.n = to - from;
        all[kept++] = size;
    }
    relation->sizes = all;
    relation->n_sizes = kept;
    return EL_OK;
}

/* ---- together ---- */

static enum el_status relate(struct work *w)
{
    EL_TRY(list_members(w));
    EL_TRY(list_steps(w));
    EL_TRY(el_relate_match(&w->relate));
    EL_TRY(el_relate_clocks(&w->relate));
    EL_TRY(list_runs(w));
    EL_TRY(list_sizes(w));
    EL_TRY(find_arrivals(w));
    for (size_t m = 0; m < w->relate.relation->n_members; m++) EL_TRY(measure(w, m));
    return EL_OK;
}

enum el_status el_relate(struct el_kineto_trace *traces, size_t n_traces, struct el_relation *relation_p)
{
    struct el_relation relation = {.clocks = calloc(n_traces + 1, sizeof *relation.clocks)};
    struct work w = {.relate = {.traces = traces, .n_traces = n_traces, .relation = &relation}};
    for (size_t t = 0; t < n_traces; t++)
        for (size_t i = 0; i < traces[t].n_lanes; i++)
            for (int c = 0; c < EL_KINETO_CLASSES; c++) el_intervals_unite(&traces[t].lanes[i].sets[c]);
    enum el_status status = relation.clocks ? relate(&w) : fail_memory();
    free(w.relate.entries);
    free(w.steps);
    free(w.runs);
    if (status == EL_OK)
        *relation_p = relation;
    else
        el_relation_free(&relation);
    return status;
}

void el_relation_free(struct el_relation *relation)
{
    for (size_t m = 0; m < relation->n_members; m++) free(relation->members[m].parts_s);
    free(relation->members);
    free(relation->clocks);
    free(relation->sizes);
    *relation = (struct el_relation){0};
}
