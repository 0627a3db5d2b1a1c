/* From matched operations on one clock to what each member did in a step. */
#include "profiles/relate_internal.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/grow.h"

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

static enum el_status list_members(struct el_relate_work *w)
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

static enum el_status list_steps(struct el_relate_work *w)
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

size_t el_relate_step(const struct el_relate_work *w, int64_t number)
{
    if (!w->steps) return 0;
    const int64_t *found = bsearch(&number, w->steps, w->relate.relation->n_steps, sizeof number, by_value);
    return found ? (size_t)(found - w->steps) : SIZE_MAX;
}

/* ---- operations ---- */

static void look(struct el_relate_work *w, struct el_relate_operation *run)
{
    run->latest_ns = run->end_ns = INT64_MIN;
    run->step = SIZE_MAX;
    for (size_t i = run->first; i < run->first + run->n; i++) {
        const struct el_relate_entry *entry = &w->relate.entries[i];
        if (entry->span.begin_ns > run->latest_ns) run->latest_ns = entry->span.begin_ns;
        if (entry->span.end_ns > run->end_ns) run->end_ns = entry->span.end_ns;
        size_t step = el_relate_step(w, entry->step);
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
static enum el_status list_runs(struct el_relate_work *w)
{
    const struct el_relate *relate = &w->relate;
    size_t *used = calloc(relate->relation->n_steps, sizeof *used), first_place = 0, most = 0, n_members = 0;
    bool *seen = calloc(relate->relation->n_members + 1, sizeof *seen);
    w->runs = calloc(relate->n + 1, sizeof *w->runs);
    bool enough = used && seen && w->runs;
    for (size_t from = 0, to; from < relate->n && enough; from = to) {
        struct el_relate_operation run = {.first = from};
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
static enum el_status make_collectives(const struct el_relate_work *w, struct el_collectives *members)
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
static enum el_status fill_collectives(const struct el_relate_work *w, struct el_collectives *members)
{
    size_t n = w->n_places, n_members = w->relate.relation->n_members;
    size_t *index = calloc(n * n_members + 1, sizeof *index); /* 1 more than its own number; 0: none */
    if (!index) return fail_memory();
    for (size_t r = 0; r < w->n_runs; r++) {
        const struct el_relate_operation *run = &w->runs[r];
        for (size_t i = run->first; i < run->first + run->n; i++) {
            size_t m = w->relate.entries[i].member, *own = &index[m * n + run->place];
            if (*own) continue;
            members[m].ops[members[m].n].operation = run->place + 1;
            members[m].ops[members[m].n].link = w->relate.entries[i].link ? EL_LINK_SEND : EL_LINK_NONE;
            *own = ++members[m].n;
        }
    }
    for (size_t r = 0; r < w->n_runs; r++) {
        const struct el_relate_operation *run = &w->runs[r];
        for (size_t i = run->first; i < run->first + run->n; i++) {
            size_t m = w->relate.entries[i].member;
            members[m].spans[run->step * members[m].n + index[m * n + run->place] - 1] = w->relate.entries[i].span;
        }
    }
    free(index);
    return EL_OK;
}

static enum el_status find_arrivals(const struct el_relate_work *w)
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

/* ---- by size ---- */

static int by_size(const void *a, const void *b)
{
    const struct el_relation_size *x = a, *y = b;
    if (x->verb != y->verb) return x->verb < y->verb ? -1 : 1;
    if (x->n_ranks != y->n_ranks) return x->n_ranks < y->n_ranks ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return (x->transfer_s > y->transfer_s) - (x->transfer_s < y->transfer_s);
}

static enum el_status list_sizes(const struct el_relate_work *w)
{
    struct el_relation *relation = w->relate.relation;
    struct el_relation_size *all = calloc(w->n_runs + 1, sizeof *all);
    size_t n = 0, kept = 0;
    if (!all) return fail_memory();
    for (size_t r = 0; r < w->n_runs; r++) {
        const struct el_relate_operation *run = &w->runs[r];
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

static enum el_status relate(struct el_relate_work *w)
{
    EL_TRY(list_members(w));
    EL_TRY(list_steps(w));
    EL_TRY(el_relate_match(&w->relate));
    EL_TRY(el_relate_clocks(&w->relate));
    EL_TRY(list_runs(w));
    EL_TRY(list_sizes(w));
    EL_TRY(find_arrivals(w));
    for (size_t m = 0; m < w->relate.relation->n_members; m++) EL_TRY(el_relate_measure(w, m));
    return EL_OK;
}

enum el_status el_relate(struct el_kineto_trace *traces, size_t n_traces, struct el_relation *relation_p)
{
    struct el_relation relation = {.clocks = calloc(n_traces + 1, sizeof *relation.clocks)};
    struct el_relate_work w = {.relate = {.traces = traces, .n_traces = n_traces, .relation = &relation}};
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
