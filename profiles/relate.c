/* Matches operations of traces, and measures each member's steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiles/relate.h"
#include "runtime/base/grow.h"
#include "runtime/base/hash.h"

struct el_relate {
    const struct el_kineto_trace *traces;
    size_t n_traces;
    struct el_relation *relation;
    struct el_relation_entry *entries; /* by class, order and member */
    size_t n;
};

struct el_relate_work {
    struct el_relate relate;
    int64_t *steps; /* the profiler's numbers, ascending, [relation->n_steps]; NULL: none */
    struct el_relation_operation *runs;
    size_t n_runs, n_places;
};

static size_t relate_run(const struct el_relate *relate, size_t first);
static size_t relate_step(const struct el_relate_work *work, int64_t number);

/* Clocks of traces, from the ends of collectives that all leave together. */

/* One trace's missing time, and when. */
struct difference {
    int64_t at_ns;
    double ns;
};
/* Added at a time: base + slope * (time - from). */
struct line {
    double base_ns, slope;
    int64_t from_ns;
    bool known;
};

static int by_time(const void *a, const void *b)
{
    const struct difference *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static double at(const struct line *line, int64_t time_ns)
{
    return line->base_ns + line->slope * (double)(time_ns - line->from_ns);
}

static double median_of(const struct difference *d, size_t n, double *values)
{
    for (size_t i = 0; i < n; i++) values[i] = d[i].ns;
    return el_median(values, n);
}

static int64_t middle_of(const struct difference *d, size_t n)
{
    return d[(n - 1) / 2].at_ns + (d[n / 2].at_ns - d[(n - 1) / 2].at_ns) / 2;
}

static double spread(const struct line *line, const struct difference *d, size_t n, double *values)
{
    for (size_t i = 0; i < n; i++) values[i] = fabs(d[i].ns - at(line, d[i].at_ns));
    el_median(values, n); /* sorts */
    return values[n * 9 / 10 < n ? n * 9 / 10 : n - 1];
}

/* values[n]: workspace. Returns the spread. */
static double fit(const struct difference *d, size_t n, double *values, struct line *line)
{
    const struct line flat = {.base_ns = median_of(d, n, values), .known = true};
    double of_flat = spread(&flat, d, n, values);
    size_t half = n / 2;
    *line = flat;
    if (n < 8) return of_flat;
    double early = median_of(d, half, values), late = median_of(d + half, n - half, values);
    int64_t from_ns = middle_of(d, half), to_ns = middle_of(d + half, n - half);
    if (to_ns <= from_ns) return of_flat;
    const struct line tilted = {
        .base_ns = early, .slope = (late - early) / (double)(to_ns - from_ns), .from_ns = from_ns, .known = true};
    double of_tilted = spread(&tilted, d, n, values);
    if (!(of_tilted < 0.7 * of_flat && fabs(late - early) > 2 * of_tilted)) return of_flat;
    *line = tilted;
    return of_tilted;
}

static size_t trace_of(const struct el_relate *relate, size_t entry)
{
    return relate->relation->members[relate->entries[entry].member].trace;
}

static size_t differences(const struct el_relate *relate, const struct line *lines, size_t t, struct difference *d)
{
    size_t n = 0;
    for (size_t from = 0, to; from < relate->n; from = to) {
        size_t own = SIZE_MAX, other = SIZE_MAX;
        to = relate_run(relate, from);
        for (size_t i = from; i < to && relate->entries[i].syncs; i++) {
            if (trace_of(relate, i) == t) own = i;
            if (other == SIZE_MAX && lines[trace_of(relate, i)].known) other = i;
        }
        if (own == SIZE_MAX || other == SIZE_MAX) continue;
        int64_t own_ns = relate->entries[own].span.end_ns, other_ns = relate->entries[other].span.end_ns;
        double known_ns = (double)(other_ns - own_ns) + at(&lines[trace_of(relate, other)], other_ns);
        d[n++] = (struct difference){own_ns, known_ns};
    }
    qsort(d, n, sizeof *d, by_time);
    return n;
}

static void move(struct el_relate *relate, const struct line *lines)
{
    for (size_t i = 0; i < relate->n; i++) {
        struct el_span *span = &relate->entries[i].span;
        const struct line *line = &lines[trace_of(relate, i)];
        double ns = line->known ? at(line, span->begin_ns) : 0;
        int64_t by_ns = fabs(ns) < 2e18 ? llround(ns) : 0;
        span->begin_ns += by_ns;
        span->end_ns += by_ns;
    }
}

/* Repeatedly, until no more become known. */
static void find_lines(const struct el_relate *relate, struct line *lines, struct difference *d, double *values)
{
    bool all_common = true;
    for (size_t t = 0; t < relate->n_traces; t++) all_common = all_common && relate->traces[t].common_clock;
    lines[0].known = true;
    for (bool found = true; found;) {
        found = false;
        for (size_t t = 1; t < relate->n_traces; t++) {
            size_t n = lines[t].known ? 0 : differences(relate, lines, t, d);
            if (n == 0) continue;
            struct el_relation_clock *clock = &relate->relation->clocks[t];
            double spread_ns = fit(d, n, values, &lines[t]);
            bool within = fabs(lines[t].base_ns) <= spread_ns && lines[t].slope == 0;
            clock->error_s = spread_ns * 1e-9;
            clock->n_ends = n;
            if (all_common) clock->error_s = NAN;
            if (all_common || within) lines[t] = (struct line){.known = true};
            clock->offset_s = lines[t].base_ns * 1e-9;
            clock->drift_ppm = lines[t].slope * 1e6;
            found = true;
        }
    }
    for (size_t t = 0; t < relate->n_traces; t++) {
        struct el_relation_clock *clock = &relate->relation->clocks[t];
        clock->known = lines[t].known || all_common;
        clock->from_ns = lines[t].from_ns;
        clock->base_ns = relate->traces[t].base_ns - relate->traces[0].base_ns;
    }
}

static int64_t limited(double ns)
{
    return llround(fmin(fmax(ns, -1e18), 1e18));
}

int64_t el_relation_time(const struct el_relation *relation, size_t trace, int64_t ns)
{
    const struct el_relation_clock *clock = &relation->clocks[trace];
    const int64_t most = (int64_t)1e18, after = ns - relation->origin_ns;
    int64_t own = (after > most ? most : after < -most ? -most : after) + clock->base_ns;
    double since_ns = (double)own - (double)clock->from_ns;
    return own + limited(clock->offset_s * 1e9 + clock->drift_ppm * 1e-6 * since_ns);
}

static enum el_status relate_clocks(struct el_relate *relate)
{
    struct line *lines = calloc(relate->n_traces + 1, sizeof *lines);
    struct difference *d = malloc((relate->n + 1) * sizeof *d);
    double *values = malloc((relate->n + 1) * sizeof *values);
    bool enough = lines && d && values;
    for (size_t t = 0; t < relate->n_traces; t++) relate->relation->clocks[t].error_s = NAN;
    if (enough) find_lines(relate, lines, d, values);
    if (enough) move(relate, lines);
    free(lines);
    free(d);
    free(values);
    return enough ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for the clocks of traces");
}

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_member(const void *a, const void *b)
{
    const struct el_relation_entry *x = a, *y = b;
    if (x->class != y->class) return compare(x->class, y->class);
    if (x->member != y->member) return compare(x->member, y->member);
    return compare(x->call, y->call);
}

static int by_operation(const void *a, const void *b)
{
    const struct el_relation_entry *x = a, *y = b;
    if (x->class != y->class) return compare(x->class, y->class);
    if (x->order != y->order) return compare(x->order, y->order);
    return compare(x->member, y->member);
}

static struct el_relation_entry entry_of(const struct el_relation_member *member, const struct el_kineto_call *call)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(call->verb);
    const uint64_t kind[] = {call->group, call->local ? member->trace + 1 : 0, row->is_link ? EL_COMM_SEND : call->verb,
                             (uint64_t)call->src, (uint64_t)call->dst};
    return (struct el_relation_entry){.class = el_hash(EL_HASH_BEGIN, kind, sizeof kind),
                                      .step = call->step,
                                      .link = row->is_link,
                                      .syncs = !row->is_link && !row->has_root};
}

static bool is_known(const struct el_kineto_call *call)
{
    if (call->verb == EL_COMM_VERB_COUNT) return false;
    return !el_comm_verb_row(call->verb)->is_link || (call->src >= 0 && call->dst >= 0);
}

/* Times since the first trace's first call, limited to 30 years so that sums do not overflow. */
static bool place(const struct el_relate *relate, size_t trace, const struct el_span *span, struct el_span *to)
{
    const int64_t most = (int64_t)1e18, base = relate->traces[trace].base_ns - relate->traces[0].base_ns;
    int64_t begin = span->begin_ns - relate->relation->origin_ns, length = span->end_ns - span->begin_ns;
    if (llabs(begin) > most || llabs(base) > most || length < 0 || length > most) return false;
    *to = (struct el_span){begin + base, begin + base + length};
    return true;
}

static void collect(struct el_relate *relate)
{
    for (size_t m = 0; m < relate->relation->n_members; m++) {
        struct el_relation_member *member = &relate->relation->members[m];
        const struct el_kineto_trace *trace = &relate->traces[member->trace];
        for (size_t c = 0; c < trace->n_calls; c++) {
            const struct el_kineto_call *call = &trace->calls[c];
            if (call->device != member->device) continue;
            member->n_calls++;
            struct el_relation_entry *entry = &relate->entries[relate->n];
            struct el_span span;
            if (!is_known(call) || !place(relate, member->trace, &call->span, &span)) continue;
            *entry = entry_of(member, call);
            entry->span = span;
            relate->n++;
            entry->member = m;
            entry->call = c;
        }
    }
}

static size_t behind(const struct el_relate *relate, size_t at, bool of_member)
{
    const struct el_relation_entry *first = &relate->entries[at];
    while (at < relate->n && relate->entries[at].class == first->class &&
           (!of_member || relate->entries[at].member == first->member))
        at++;
    return at;
}

enum by { BY_SEQUENCE, BY_ORDER, BY_STEP };

static enum by choose(const struct el_relate *relate, size_t from, size_t to)
{
    size_t count = behind(relate, from, true) - from;
    bool numbered = !relate->entries[from].link, equal = true;
    for (size_t i = from; i < to && numbered; i++) {
        const struct el_relation_member *member = &relate->relation->members[relate->entries[i].member];
        numbered = relate->traces[member->trace].calls[relate->entries[i].call].sequence >= 0;
    }
    for (size_t i = from, next; i < to; i = next) {
        next = behind(relate, i, true);
        equal = equal && next - i == count;
    }
    return numbered ? BY_SEQUENCE : equal ? BY_ORDER : BY_STEP;
}

static void number(struct el_relate *relate, size_t from, size_t to, enum by by)
{
    const struct el_relation_member *member = &relate->relation->members[relate->entries[from].member];
    const struct el_kineto_call *calls = relate->traces[member->trace].calls;
    uint64_t last = 0, same = 0;
    for (size_t i = from; i < to; i++) {
        struct el_relation_entry *entry = &relate->entries[i];
        uint64_t is = by == BY_SEQUENCE ? (uint64_t)calls[entry->call].sequence
                      : by == BY_STEP   ? (uint64_t)(entry->step + 1)
                                        : 0;
        same = i > from && is == last ? same + 1 : 0;
        last = is;
        entry->order = is << 24 | (same & 0xffffff);
    }
}

static enum el_status relate_match(struct el_relate *relate)
{
    size_t n = 1;
    for (size_t t = relate->n_traces; t-- > 0; n += relate->traces[t].n_calls)
        if (relate->traces[t].n_calls) relate->relation->origin_ns = relate->traces[t].calls->span.begin_ns;
    relate->entries = calloc(n, sizeof *relate->entries);
    if (!relate->entries) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu collectives of traces", n);
    collect(relate);
    if (relate->n) qsort(relate->entries, relate->n, sizeof *relate->entries, by_member);
    for (size_t from = 0, to; from < relate->n; from = to) {
        to = behind(relate, from, false);
        enum by by = choose(relate, from, to);
        for (size_t i = from, next; i < to; i = next) {
            next = behind(relate, i, true);
            number(relate, i, next, by);
        }
    }
    if (relate->n) qsort(relate->entries, relate->n, sizeof *relate->entries, by_operation);
    return EL_OK;
}

static size_t relate_run(const struct el_relate *relate, size_t first)
{
    size_t at = first;
    while (at < relate->n && relate->entries[at].class == relate->entries[first].class &&
           relate->entries[at].order == relate->entries[first].order)
        at++;
    return at;
}

/* On the member's own clock. */

enum { COMPUTE, COMM, COPY, WAIT, TRANSFER, OUTSIDE, EXPOSED, WAIT_EXPOSED, COPIES, REST, SETS };

/* Waits until the last arrival; no communication of a step: receivers' waits, and calls without a partner. */
static void add_calls(const struct el_relate_work *w, size_t m, struct el_intervals *sets)
{
    struct el_relation_member *member = &w->relate.relation->members[m];
    const struct el_kineto_call *calls = w->relate.traces[member->trace].calls;
    bool *matched = calloc(w->relate.traces[member->trace].n_calls + 1, sizeof *matched);
    sets[OUTSIDE].failed |= !matched;
    for (size_t r = 0; r < w->n_runs && matched; r++) {
        const struct el_relation_operation *run = &w->runs[r];
        for (size_t i = run->first; i < run->first + run->n; i++) {
            const struct el_relation_entry *entry = &w->relate.entries[i];
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

/* One pass over both in order. */
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

/* A step lasts until the next one begins, so that work it leaves queued counts too. */
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
        size_t step = trace->n_steps ? relate_step(w, trace->steps[s].number) : 0;
        if (step == SIZE_MAX) continue;
        double *parts = member->parts_s + step * EL_RELATION_PARTS;
        for (int p = 0; p < EL_RELATION_STEP; p++) parts[p] += within(&sets[of[p]], &at[p], span);
        struct el_span own = trace->n_steps ? trace->steps[s].span : whole_of(sets);
        parts[EL_RELATION_STEP] = (double)(own.end_ns - own.begin_ns) * 1e-9;
    }
}

/* Arrivals are set. */
static enum el_status relate_measure(const struct el_relate_work *w, size_t m)
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
    /* only our traces have it */
    member->row.sent_bytes = member->row.sent_bytes > 0 ? member->row.sent_bytes / n : NAN;
    relation->step_s += sums[EL_RELATION_STEP] / (double)relation->n_members;
    return EL_OK;
}

enum { SPANS_MAX = 1 << 24 }; /* of a member: places in all steps */

static enum el_status fail_memory(void)
{
    return el_fail(EL_ERR_HOST_MEMORY, "no memory to relate traces");
}

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
    size_t n = 0, kept = 0, with_steps = 0;
    struct el_relation *relation = w->relate.relation;
    for (size_t t = 0; t < w->relate.n_traces; t++) {
        n += w->relate.traces[t].n_steps;
        with_steps += w->relate.traces[t].n_steps > 0;
    }
    relation->has_steps = n > 0;
    relation->n_steps = 1;
    if (n == 0) return EL_OK;
    w->steps = calloc(n, sizeof *w->steps);
    if (!w->steps) return fail_memory();
    n = 0;
    for (size_t t = 0; t < w->relate.n_traces; t++)
        for (size_t s = 0; s < w->relate.traces[t].n_steps; s++) w->steps[n++] = w->relate.traces[t].steps[s].number;
    qsort(w->steps, n, sizeof *w->steps, by_value);
    for (size_t i = 0; i < n; i++) relation->n_left_out += i == 0 || w->steps[i] != w->steps[i - 1];
    /* Steps that some trace lacks have no partner; without any in common all count. */
    for (size_t least = with_steps; kept == 0; least = 1)
        for (size_t i = 0, to; i < n; i = to) {
            for (to = i + 1; to < n && w->steps[to] == w->steps[i];) to++;
            if (to - i >= least) w->steps[kept++] = w->steps[i];
        }
    relation->steps = w->steps;
    relation->n_steps = kept;
    relation->n_left_out -= kept;
    return EL_OK;
}

/* Without steps all is one. */
static size_t relate_step(const struct el_relate_work *w, int64_t number)
{
    if (!w->steps) return 0;
    const int64_t *found = bsearch(&number, w->steps, w->relate.relation->n_steps, sizeof number, by_value);
    return found ? (size_t)(found - w->steps) : SIZE_MAX;
}

static void look(struct el_relate_work *w, struct el_relation_operation *run)
{
    run->latest_ns = run->end_ns = INT64_MIN;
    run->step = SIZE_MAX;
    for (size_t i = run->first; i < run->first + run->n; i++) {
        const struct el_relation_entry *entry = &w->relate.entries[i];
        if (entry->span.begin_ns > run->latest_ns) run->latest_ns = entry->span.begin_ns;
        if (entry->span.end_ns > run->end_ns) run->end_ns = entry->span.end_ns;
        size_t step = relate_step(w, entry->step);
        if (step < run->step) run->step = step;
    }
}

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

/* A step whose collectives all lack a partner is one that some trace does not have whole. */
static void leave_out(struct el_relate_work *w, bool *lost)
{
    struct el_relation *relation = w->relate.relation;
    size_t kept = 0;
    for (size_t r = 0; r < w->n_runs; r++) lost[w->runs[r].step] = false;
    for (size_t s = 0; s < relation->n_steps && w->n_runs && w->steps; s++) {
        if (lost[s]) continue;
        for (size_t r = 0; r < w->n_runs && kept < s; r++)
            if (w->runs[r].step == s) w->runs[r].step = kept;
        w->steps[kept++] = w->steps[s];
    }
    if (kept == 0) return;
    relation->n_left_out += relation->n_steps - kept;
    relation->n_steps = kept;
}

/* A class has consecutive places, equal in all steps. Operations missing in a member's trace are dropped: their last
 * arrival is unknown. */
static enum el_status list_runs(struct el_relate_work *w)
{
    const struct el_relate *relate = &w->relate;
    size_t *used = calloc(relate->relation->n_steps, sizeof *used), first_place = 0, most = 0, n_members = 0;
    bool *seen = calloc(relate->relation->n_members + 1, sizeof *seen);
    bool *lost = calloc(relate->relation->n_steps, sizeof *lost);
    w->runs = calloc(relate->n + 1, sizeof *w->runs);
    bool enough = used && seen && lost && w->runs;
    for (size_t from = 0, to; from < relate->n && enough; from = to) {
        struct el_relation_operation run = {.first = from};
        bool same = from > 0 && relate->entries[from - 1].class == relate->entries[from].class;
        if (!same) {
            first_place += most;
            most = 0;
            n_members = members_of(relate, from, seen);
            memset(used, 0, relate->relation->n_steps * sizeof *used);
        }
        to = relate_run(relate, from);
        run.n = to - from;
        look(w, &run);
        if (run.step == SIZE_MAX) continue;
        lost[run.step] |= run.n < n_members;
        if (run.n < 2 || run.n < n_members) continue;
        run.place = first_place + used[run.step]++;
        if (used[run.step] > most) most = used[run.step];
        w->runs[w->n_runs++] = run;
    }
    w->n_places = first_place + most;
    if (enough) leave_out(w, lost);
    free(used);
    free(seen);
    free(lost);
    return enough ? EL_OK : fail_memory();
}

/* A place missing in a step is an empty span for all members. */
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

static enum el_status fill_collectives(const struct el_relate_work *w, struct el_collectives *members)
{
    size_t n = w->n_places, n_members = w->relate.relation->n_members;
    size_t *index = calloc(n * n_members + 1, sizeof *index); /* own number plus 1; 0: none */
    if (!index) return fail_memory();
    for (size_t r = 0; r < w->n_runs; r++) {
        const struct el_relation_operation *run = &w->runs[r];
        for (size_t i = run->first; i < run->first + run->n; i++) {
            size_t m = w->relate.entries[i].member, *own = &index[m * n + run->place];
            if (*own) continue;
            members[m].ops[members[m].n].operation = run->place + 1;
            members[m].ops[members[m].n].link = w->relate.entries[i].link ? EL_LINK_SEND : EL_LINK_NONE;
            *own = ++members[m].n;
        }
    }
    for (size_t r = 0; r < w->n_runs; r++) {
        const struct el_relation_operation *run = &w->runs[r];
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
    size_t n_steps = relation->n_steps;
    double *late_s = calloc(relation->n_members * n_steps + 1, sizeof *late_s);
    if (status == EL_OK && !late_s) status = fail_memory();
    if (status == EL_OK) status = el_ranks_arrivals(members, (int)relation->n_members, rows, late_s);
    for (size_t m = 0; m < relation->n_members && status == EL_OK; m++) {
        relation->members[m].row = rows[m];
        relation->members[m].late_s = calloc(n_steps + 1, sizeof *late_s);
        if (relation->members[m].late_s)
            memcpy(relation->members[m].late_s, late_s + m * n_steps, n_steps * sizeof *late_s);
        else
            status = fail_memory();
    }
    free(late_s);
    for (size_t m = 0; m < relation->n_members && members; m++) el_collectives_free(&members[m]);
    free(members);
    free(rows);
    return status;
}

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
        const struct el_relation_operation *run = &w->runs[r];
        const struct el_relation_entry *entry = &w->relate.entries[run->first];
        const struct el_kineto_call *call =
            &w->relate.traces[relation->members[entry->member].trace].calls[entry->call];
        if (entry->link) continue;
        relation->n_collectives++;
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

static enum el_status relate(struct el_relate_work *w)
{
    EL_TRY(list_members(w));
    EL_TRY(list_steps(w));
    EL_TRY(relate_match(&w->relate));
    EL_TRY(relate_clocks(&w->relate));
    EL_TRY(list_runs(w));
    EL_TRY(list_sizes(w));
    EL_TRY(find_arrivals(w));
    for (size_t m = 0; m < w->relate.relation->n_members; m++) EL_TRY(relate_measure(w, m));
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
    relation.entries = w.relate.entries;
    relation.n_entries = w.relate.n;
    relation.operations = w.runs;
    relation.n_operations = w.n_runs;
    if (status == EL_OK)
        *relation_p = relation;
    else
        el_relation_free(&relation);
    return status;
}

void el_relation_free(struct el_relation *relation)
{
    for (size_t m = 0; m < relation->n_members; m++) {
        free(relation->members[m].parts_s);
        free(relation->members[m].late_s);
    }
    free(relation->members);
    free(relation->entries);
    free(relation->operations);
    free(relation->steps);
    free(relation->clocks);
    free(relation->sizes);
    *relation = (struct el_relation){0};
}
