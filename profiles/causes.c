/* Cuts the time before a late arrival into the parts of a training loop. */
#include "profiles/causes.h"

#include <stdlib.h>
#include <string.h>

#include "profiles/intervals.h"

enum { LOOP_PARTS = EL_CAUSE_OTHER }; /* those with intervals; the rest follow */

struct member {
    struct el_intervals parts[LOOP_PARTS]; /* disjoint, on the common clock */
    int64_t *ends_ns;                      /* of its operations, ascending */
    size_t n;
};

struct work {
    const struct el_kineto_trace *traces;
    const struct el_relation *relation;
    struct member *members;
};

const char *el_cause_name(enum el_cause part)
{
#define TEXT(name, text) text,
    static const char *const names[] = {EL_CAUSES(TEXT)};
#undef TEXT
    return names[part];
}

static enum el_status fail_memory(void)
{
    return el_fail(EL_ERR_HOST_MEMORY, "no memory for the causes of lateness");
}

/* ---- a trace's loop ---- */

struct mark {
    struct el_span span;
    enum el_kineto_phase phase;
};

static int by_begin(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    return (x->span.begin_ns > y->span.begin_ns) - (x->span.begin_ns < y->span.begin_ns);
}

/* Of an optimizer that was given a closure what follows the backward pass in it. */
static struct el_span without_closure(const struct el_kineto_trace *trace, struct el_span step)
{
    const struct el_intervals *passes = &trace->phases[EL_KINETO_BACKWARD];
    const size_t low = el_intervals_after(passes, step.end_ns);
    if (low > 0 && passes->spans[low - 1].begin_ns >= step.begin_ns) step.begin_ns = passes->spans[low - 1].end_ns;
    return step;
}

/* What lies between two marks is of the later one, but for what comes before data. */
static bool add_marks(const struct el_kineto_trace *trace, struct el_intervals parts[LOOP_PARTS])
{
    size_t n = 0;
    for (int p = EL_KINETO_LOADS; p < EL_KINETO_PHASES; p++) n += trace->phases[p].n;
    struct mark *marks = calloc(n + 1, sizeof *marks);
    if (!marks) return false;
    n = 0;
    for (int p = EL_KINETO_LOADS; p < EL_KINETO_PHASES; p++)
        for (size_t i = 0; i < trace->phases[p].n; i++)
            marks[n++] = (struct mark){p == EL_KINETO_OPTIMIZER ? without_closure(trace, trace->phases[p].spans[i])
                                                                : trace->phases[p].spans[i],
                                       (enum el_kineto_phase)p};
    qsort(marks, n, sizeof *marks, by_begin);
    for (size_t i = 0; i < n; i++) {
        const struct el_span own = marks[i].span, gap = {i ? marks[i - 1].span.end_ns : own.begin_ns, own.begin_ns};
        const bool after_backward = i && marks[i - 1].phase == EL_KINETO_BACKWARD;
        if (marks[i].phase == EL_KINETO_LOADS) el_intervals_add(&parts[EL_CAUSE_DATA], own);
        if (marks[i].phase == EL_KINETO_BACKWARD) el_intervals_add(&parts[EL_CAUSE_FORWARD], gap);
        if (marks[i].phase == EL_KINETO_BACKWARD) el_intervals_add(&parts[EL_CAUSE_BACKWARD], own);
        if (marks[i].phase == EL_KINETO_OPTIMIZER && after_backward) el_intervals_add(&parts[EL_CAUSE_OPTIMIZER], gap);
        if (marks[i].phase == EL_KINETO_OPTIMIZER) el_intervals_add(&parts[EL_CAUSE_OPTIMIZER], own);
    }
    free(marks);
    return true;
}

static void add_all(struct el_intervals *set, const struct el_intervals *more)
{
    for (size_t i = 0; i < more->n; i++) el_intervals_add(set, more->spans[i]);
    el_intervals_unite(set);
}

/* Of a time in two parts the first one in the enum has it. */
static bool make_disjoint(struct el_intervals parts[LOOP_PARTS])
{
    struct el_intervals taken = {0}, rest = {0};
    bool enough = true;
    for (int p = 0; p < LOOP_PARTS; p++) {
        el_intervals_unite(&parts[p]);
        el_intervals_less(&parts[p], &taken, &rest);
        enough = enough && !parts[p].failed && !rest.failed;
        el_intervals_free(&parts[p]);
        parts[p] = rest;
        rest = (struct el_intervals){0};
        add_all(&taken, &parts[p]);
    }
    enough = enough && !taken.failed;
    el_intervals_free(&taken);
    return enough;
}

static void move(const struct el_relation *relation, size_t trace, struct el_intervals *set)
{
    for (size_t i = 0; i < set->n; i++)
        set->spans[i] = (struct el_span){el_relation_time(relation, trace, set->spans[i].begin_ns),
                                         el_relation_time(relation, trace, set->spans[i].end_ns)};
}

static bool add_member(const struct work *w, size_t m)
{
    const struct el_relation_member *of = &w->relation->members[m];
    const struct el_kineto_trace *trace = &w->traces[of->trace];
    struct el_intervals *parts = w->members[m].parts;
    for (size_t i = 0; i < trace->n_lanes && of->device >= 0; i++) {
        if (trace->lanes[i].device != of->device) continue;
        add_all(&parts[EL_CAUSE_COMPUTE], &trace->lanes[i].sets[EL_KINETO_COMPUTE]);
        add_all(&parts[EL_CAUSE_COPIES], &trace->lanes[i].sets[EL_KINETO_COPY]);
    }
    add_all(&parts[EL_CAUSE_PAUSE], &trace->phases[EL_KINETO_PAUSE]);
    if (!add_marks(trace, parts) || !make_disjoint(parts)) return false;
    for (int p = 0; p < LOOP_PARTS; p++) move(w->relation, of->trace, &parts[p]);
    return true;
}

static int by_time(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool add_ends(const struct work *w)
{
    const struct el_relation *relation = w->relation;
    for (size_t i = 0; i < relation->n_entries; i++) w->members[relation->entries[i].member].n++;
    for (size_t m = 0; m < relation->n_members; m++) {
        w->members[m].ends_ns = calloc(w->members[m].n + 1, sizeof *w->members[m].ends_ns);
        if (!w->members[m].ends_ns) return false;
        w->members[m].n = 0;
    }
    for (size_t i = 0; i < relation->n_entries; i++) {
        struct member *member = &w->members[relation->entries[i].member];
        member->ends_ns[member->n++] = relation->entries[i].span.end_ns;
    }
    for (size_t m = 0; m < relation->n_members; m++)
        qsort(w->members[m].ends_ns, w->members[m].n, sizeof *w->members[m].ends_ns, by_time);
    return true;
}

/* ---- a step's place ---- */

static bool has_member(const struct el_relation *relation, const struct el_relation_operation *operation, size_t who)
{
    for (size_t i = operation->first; i < operation->first + operation->n; i++)
        if (relation->entries[i].member == who) return true;
    return false;
}

static int64_t first_arrival(const struct el_relation *relation, const struct el_relation_operation *operation)
{
    int64_t first_ns = INT64_MAX;
    for (size_t i = operation->first; i < operation->first + operation->n; i++)
        if (relation->entries[i].span.begin_ns < first_ns) first_ns = relation->entries[i].span.begin_ns;
    return first_ns;
}

/* The last end at or before `ns`; INT64_MIN: none. */
static int64_t end_before(const struct member *member, int64_t ns)
{
    size_t low = 0, high = member->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (member->ends_ns[middle] <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? member->ends_ns[low - 1] : INT64_MIN;
}

static double common_s(const struct el_intervals *set, struct el_span window)
{
    const size_t low = el_intervals_after(set, window.begin_ns);
    if (low == set->n) return 0;
    const struct el_intervals rest = {.spans = set->spans + low, .n = set->n - low}, one = {.spans = &window, .n = 1};
    return (double)el_intervals_common(&rest, &one) * 1e-9;
}

/* Where ends are not known: a backward pass that ends after the collective before, and before the arrival, waits for
 * the transfer in between. */
static int64_t freed_at(const struct member *member, struct el_span window)
{
    const struct el_intervals *passes = &member->parts[EL_CAUSE_BACKWARD];
    const size_t at = el_intervals_after(passes, window.begin_ns);
    if (at == passes->n || passes->spans[at].begin_ns > window.begin_ns) return window.begin_ns;
    return passes->spans[at].end_ns < window.end_ns ? passes->spans[at].end_ns : window.begin_ns;
}

/* `who` minus the mean of the others; false: a member has no collective before. */
static bool cut(const struct work *w, const struct el_relation_operation *operation, size_t who,
                struct el_causes *cut_p)
{
    const int64_t first_ns = first_arrival(w->relation, operation);
    struct el_causes sum = {.n_steps = 1};
    for (size_t i = operation->first; i < operation->first + operation->n; i++) {
        const struct el_relation_entry *entry = &w->relation->entries[i];
        const struct member *member = &w->members[entry->member];
        struct el_span window = {end_before(member, first_ns), entry->span.begin_ns};
        const double weight = entry->member == who ? 1 : -1 / (double)(operation->n - 1);
        if (window.begin_ns == INT64_MIN) return false;
        if (w->traces[w->relation->members[entry->member].trace].no_ends) window.begin_ns = freed_at(member, window);
        double rest_s = (double)(window.end_ns - window.begin_ns) * 1e-9;
        sum.late_s += weight * (double)(window.end_ns - first_ns) * 1e-9;
        sum.parts_s[EL_CAUSE_EARLIER] += weight * (double)(window.begin_ns - first_ns) * 1e-9;
        for (int p = 0; p < LOOP_PARTS; p++) {
            const double part_s = common_s(&member->parts[p], window);
            sum.parts_s[p] += weight * part_s;
            rest_s -= part_s;
        }
        sum.parts_s[EL_CAUSE_OTHER] += weight * rest_s;
    }
    *cut_p = sum;
    return true;
}

static enum el_status add_steps(const struct work *w, size_t who, double least_s, struct el_causes *causes)
{
    const struct el_relation *relation = w->relation;
    const struct el_relation_operation **widest = calloc(relation->n_steps + 1, sizeof *widest);
    int64_t *skew_ns = calloc(relation->n_steps + 1, sizeof *skew_ns);
    for (size_t o = 0; o < relation->n_operations && widest && skew_ns; o++) {
        const struct el_relation_operation *operation = &relation->operations[o];
        if (relation->entries[operation->first].link || !has_member(relation, operation, who)) continue;
        const int64_t its_ns = operation->latest_ns - first_arrival(relation, operation);
        if (widest[operation->step] && its_ns <= skew_ns[operation->step]) continue;
        widest[operation->step] = operation;
        skew_ns[operation->step] = its_ns;
    }
    for (size_t s = 0; s < relation->n_steps && widest && skew_ns; s++) {
        struct el_causes one;
        if (!widest[s] || !cut(w, widest[s], who, &one) || !(one.late_s > least_s)) continue;
        causes->n_steps++;
        causes->late_s += one.late_s;
        for (int p = 0; p < EL_CAUSE_PARTS; p++) causes->parts_s[p] += one.parts_s[p];
    }
    const bool enough = widest && skew_ns;
    free(widest);
    free(skew_ns);
    return enough ? EL_OK : fail_memory();
}

static struct work begin(const struct el_kineto_trace *traces, const struct el_relation *relation, bool *enough_p)
{
    struct work w = {traces, relation, calloc(relation->n_members + 1, sizeof *w.members)};
    *enough_p = w.members && add_ends(&w);
    for (size_t m = 0; m < relation->n_members && *enough_p; m++) *enough_p = add_member(&w, m);
    return w;
}

static void end(struct work *w)
{
    for (size_t m = 0; m < w->relation->n_members && w->members; m++) {
        for (int p = 0; p < LOOP_PARTS; p++) el_intervals_free(&w->members[m].parts[p]);
        free(w->members[m].ends_ns);
    }
    free(w->members);
}

enum el_status el_causes_find(const struct el_kineto_trace *traces, const struct el_relation *relation, size_t who,
                              double least_s, struct el_causes *causes_p)
{
    struct el_causes causes = {0};
    bool enough;
    struct work w = begin(traces, relation, &enough);
    enum el_status status = enough ? add_steps(&w, who, least_s, &causes) : fail_memory();
    end(&w);
    const double n = causes.n_steps ? (double)causes.n_steps : 1;
    causes.late_s /= n;
    for (int p = 0; p < EL_CAUSE_PARTS; p++) causes.parts_s[p] /= n;
    *causes_p = causes;
    return status;
}

/* ---- whole steps ---- */

static void add_windows(const struct work *w, size_t m, struct el_intervals *windows)
{
    const struct el_relation *relation = w->relation;
    const struct el_kineto_trace *trace = &w->traces[relation->members[m].trace];
    for (size_t s = 0; s < trace->n_steps && relation->steps; s++)
        if (bsearch(&trace->steps[s].number, relation->steps, relation->n_steps, sizeof *relation->steps, by_time))
            el_intervals_add(windows, trace->steps[s].span);
    el_intervals_unite(windows);
    move(relation, relation->members[m].trace, windows);
}

/* Of its collectives: until the last one came, and after that. */
static void add_calls(const struct work *w, size_t m, struct el_intervals *waits, struct el_intervals *transfers)
{
    const struct el_relation *relation = w->relation;
    for (size_t o = 0; o < relation->n_operations; o++) {
        const struct el_relation_operation *operation = &relation->operations[o];
        for (size_t i = operation->first; i < operation->first + operation->n; i++) {
            const struct el_relation_entry *entry = &relation->entries[i];
            if (entry->member != m || entry->link) continue;
            el_intervals_add(waits, (struct el_span){entry->span.begin_ns, operation->latest_ns});
            if (relation->members[m].device >= 0)
                el_intervals_add(transfers, (struct el_span){operation->latest_ns, entry->span.end_ns});
        }
    }
    el_intervals_unite(waits);
    el_intervals_unite(transfers);
}

static void leave(struct el_intervals *set, const struct el_intervals *less)
{
    struct el_intervals rest = {0};
    el_intervals_less(set, less, &rest);
    rest.failed |= set->failed;
    el_intervals_free(set);
    *set = rest;
}

static bool measure(const struct work *w, size_t m, struct el_step_parts *parts)
{
    struct el_intervals windows = {0}, waits = {0}, transfers = {0}, busy = {0};
    struct el_intervals *own = w->members[m].parts;
    const double each_s = 1e-9 / (double)w->relation->n_steps;
    add_windows(w, m, &windows);
    add_calls(w, m, &waits, &transfers);
    for (int p = EL_CAUSE_COMPUTE; p <= EL_CAUSE_COPIES; p++) add_all(&busy, &own[p]);
    leave(&waits, &busy);
    leave(&transfers, &busy);
    leave(&transfers, &waits);
    double rest_s = each_s * (double)el_intervals_measure(&windows);
    parts->wait_s = each_s * (double)el_intervals_common(&waits, &windows);
    parts->transfer_s = each_s * (double)el_intervals_common(&transfers, &windows);
    rest_s -= parts->wait_s + parts->transfer_s;
    add_all(&waits, &transfers);
    for (int p = 0; p < LOOP_PARTS; p++) {
        leave(&own[p], &waits);
        parts->parts_s[p] = each_s * (double)el_intervals_common(&own[p], &windows);
        rest_s -= parts->parts_s[p];
    }
    parts->parts_s[EL_CAUSE_OTHER] = rest_s > 0 ? rest_s : 0;
    const bool failed = windows.failed || waits.failed || transfers.failed || busy.failed;
    el_intervals_free(&windows);
    el_intervals_free(&waits);
    el_intervals_free(&transfers);
    el_intervals_free(&busy);
    return !failed;
}

enum el_status el_causes_steps(const struct el_kineto_trace *traces, const struct el_relation *relation,
                               struct el_step_parts *parts)
{
    bool enough;
    struct work w = begin(traces, relation, &enough);
    memset(parts, 0, relation->n_members * sizeof *parts);
    for (size_t m = 0; m < relation->n_members && enough; m++) enough = measure(&w, m, &parts[m]);
    end(&w);
    return enough ? EL_OK : fail_memory();
}
