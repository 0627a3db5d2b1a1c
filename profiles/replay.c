/* Replays matched traces. */
#include "profiles/replay.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/grow.h"

/* At equal times in this order. */
enum kind { LEAVE, BUSY_END, MARK, BUSY_BEGIN, ARRIVE };

struct point {
    int64_t ns; /* el_relation_time */
    uint32_t member;
    uint8_t kind; /* enum kind */
    bool ends;    /* MARK: a step's end */
    size_t of;    /* its entry */
};

/* A member's own time: new = ns + shift - what is removed before. */
struct own {
    double shift_ns;
    bool busy;
    int64_t busy_begin_ns, busy_end_ns; /* the last ones */
    double busy_end_new_ns;
    int64_t left_ns, left_begin_ns; /* the call that ended last */
    double left_new_ns, left_most_ns;
    uint64_t left_class;
    struct el_intervals removed; /* this cause's, united */
    size_t removed_at;
    int64_t removed_ns;
};

struct meeting { /* of a collective's members, or a message's */
    size_t n;
    double latest_new_ns, sum_new_ns;
};

struct el_replay {
    struct el_kineto_trace *traces;
    const struct el_relation *relation;
    struct point *points;
    size_t n, room;
    size_t *operation_of; /* [entries]; SIZE_MAX: none */
    double *arrived_ns;   /* [entries], as replayed */
    struct meeting *meetings;
    struct own *owns; /* [n_members] */
};

static enum el_status fail_memory(void)
{
    return el_fail(EL_ERR_HOST_MEMORY, "no memory to replay traces");
}

static bool add(struct el_replay *r, struct point point)
{
    if (!EL_GROW(r->points, r->room, r->n + 1)) return false;
    r->points[r->n++] = point;
    return true;
}

static int by_time(const void *a, const void *b)
{
    const struct point *x = a, *y = b;
    if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
    if (x->kind != y->kind) return (int)x->kind - (int)y->kind;
    return (x->of > y->of) - (x->of < y->of);
}

/* Where all leave together, none left before the last one came: a difference is the clock's error. */
static bool add_operation(struct el_replay *r, const struct el_relation_operation *operation, size_t o)
{
    bool enough = true;
    for (size_t i = operation->first; i < operation->first + operation->n && enough; i++) {
        const struct el_relation_entry *entry = &r->relation->entries[i];
        int64_t end_ns = entry->span.end_ns;
        if (entry->syncs && end_ns <= operation->latest_ns) end_ns = operation->latest_ns + 1;
        if (end_ns <= entry->span.begin_ns) end_ns = entry->span.begin_ns + 1;
        r->operation_of[i] = o;
        enough = add(r, (struct point){entry->span.begin_ns, (uint32_t)entry->member, ARRIVE, false, i}) &&
                 add(r, (struct point){end_ns, (uint32_t)entry->member, LEAVE, false, i});
    }
    return enough;
}

static const struct el_kineto_lane *lane_of(const struct el_replay *r, size_t m)
{
    const struct el_relation_member *member = &r->relation->members[m];
    const struct el_kineto_trace *trace = &r->traces[member->trace];
    size_t i = 0;
    while (trace->lanes[i].device != member->device) i++;
    return &trace->lanes[i];
}

static bool has_step(const struct el_relation *relation, int64_t number)
{
    for (size_t s = 0; s < relation->n_steps; s++)
        if (!relation->steps || relation->steps[s] == number) return true;
    return false;
}

/* Without a profiler's steps all is one. */
static struct el_span whole_of(const struct el_kineto_lane *lane)
{
    struct el_span whole = {INT64_MAX, INT64_MIN};
    for (int c = 0; c < EL_KINETO_CLASSES; c++) {
        const struct el_intervals *set = &lane->sets[c];
        if (set->n && set->spans[0].begin_ns < whole.begin_ns) whole.begin_ns = set->spans[0].begin_ns;
        if (set->n && set->spans[set->n - 1].end_ns > whole.end_ns) whole.end_ns = set->spans[set->n - 1].end_ns;
    }
    return whole;
}

static bool add_step(struct el_replay *r, size_t m, struct el_span span)
{
    if (span.end_ns < span.begin_ns) return true;
    const int64_t begin_ns = el_relation_time(r->relation, r->relation->members[m].trace, span.begin_ns);
    return add(r, (struct point){begin_ns, (uint32_t)m, MARK, false, 0}) &&
           add(r, (struct point){begin_ns + (span.end_ns - span.begin_ns), (uint32_t)m, MARK, true, 0});
}

static bool add_steps(struct el_replay *r, size_t m)
{
    const struct el_kineto_trace *trace = &r->traces[r->relation->members[m].trace];
    bool enough = trace->n_steps > 0 || add_step(r, m, whole_of(lane_of(r, m)));
    for (size_t s = 0; s < trace->n_steps && enough; s++)
        if (has_step(r->relation, trace->steps[s].number)) enough = add_step(r, m, trace->steps[s].span);
    return enough;
}

static bool add_member(struct el_replay *r, size_t m)
{
    const struct el_kineto_lane *lane = lane_of(r, m);
    const struct el_intervals *busy = &lane->sets[EL_KINETO_COMPUTE];
    const size_t t = r->relation->members[m].trace;
    bool enough = true;
    for (size_t i = 0; i < busy->n && enough; i++) {
        int64_t begin_ns = el_relation_time(r->relation, t, busy->spans[i].begin_ns);
        int64_t end_ns = begin_ns + (busy->spans[i].end_ns - busy->spans[i].begin_ns);
        enough = add(r, (struct point){begin_ns, (uint32_t)m, BUSY_BEGIN, false, 0}) &&
                 add(r, (struct point){end_ns, (uint32_t)m, BUSY_END, false, 0});
    }
    return enough && add_steps(r, m);
}

static enum el_status list_points(struct el_replay *r)
{
    const struct el_relation *relation = r->relation;
    bool enough = true;
    for (size_t i = 0; i < relation->n_entries; i++) r->operation_of[i] = SIZE_MAX;
    for (size_t o = 0; o < relation->n_operations && enough; o++)
        enough = add_operation(r, &relation->operations[o], o);
    for (size_t m = 0; m < relation->n_members && enough; m++) enough = add_member(r, m);
    if (!enough) return fail_memory();
    if (r->n) qsort(r->points, r->n, sizeof *r->points, by_time);
    return EL_OK;
}

enum el_status el_replay_begin(struct el_kineto_trace *traces, const struct el_relation *relation,
                               struct el_replay **replay_p)
{
    struct el_replay *r = calloc(1, sizeof *r);
    if (!r) return fail_memory();
    *r = (struct el_replay){.traces = traces, .relation = relation};
    r->operation_of = calloc(relation->n_entries + 1, sizeof *r->operation_of);
    r->arrived_ns = calloc(relation->n_entries + 1, sizeof *r->arrived_ns);
    r->meetings = calloc(relation->n_operations + 1, sizeof *r->meetings);
    r->owns = calloc(relation->n_members + 1, sizeof *r->owns);
    enum el_status status = r->operation_of && r->arrived_ns && r->meetings && r->owns ? list_points(r) : fail_memory();
    if (status == EL_OK)
        *replay_p = r;
    else
        el_replay_free(r);
    return status;
}

/* ---- what a cause removes ---- */

/* Exposed communication is not the host's own time, and stays. */
static enum el_status list_removed(struct el_replay *r, size_t m, enum el_replay_kind kind)
{
    const struct el_kineto_lane *lane = lane_of(r, m);
    const size_t t = r->relation->members[m].trace;
    struct el_intervals exposed = {0}, all = {0}, rest = {0}, none = {0}, *removed = &r->owns[m].removed;
    const struct el_intervals *from = kind == EL_REPLAY_DATA ? &r->traces[t].phases[EL_KINETO_LOADS] : &lane->named;
    const struct el_intervals *beside = kind == EL_REPLAY_NAMED ? &lane->others
                                        : lane->device >= 0     ? &lane->sets[EL_KINETO_COMPUTE]
                                                                : &none;
    el_intervals_clear(removed);
    if (kind != EL_REPLAY_DATA && kind != EL_REPLAY_NAMED) return EL_OK;
    el_intervals_less(&lane->sets[EL_KINETO_COMM], &lane->sets[EL_KINETO_COMPUTE], &exposed);
    for (size_t i = 0; i < from->n; i++) el_intervals_add(&all, from->spans[i]);
    el_intervals_unite(&all);
    el_intervals_less(&all, &exposed, &rest);
    el_intervals_less(&rest, beside, removed);
    for (size_t i = 0; i < removed->n; i++) {
        int64_t begin_ns = el_relation_time(r->relation, t, removed->spans[i].begin_ns);
        removed->spans[i].end_ns += begin_ns - removed->spans[i].begin_ns;
        removed->spans[i].begin_ns = begin_ns;
    }
    const bool failed = exposed.failed || all.failed || rest.failed || removed->failed;
    el_intervals_free(&exposed);
    el_intervals_free(&all);
    el_intervals_free(&rest);
    return failed ? fail_memory() : EL_OK;
}

/* Points come in order. */
static double removed_before(struct own *own, int64_t ns)
{
    const struct el_intervals *removed = &own->removed;
    while (own->removed_at < removed->n && removed->spans[own->removed_at].end_ns <= ns) {
        own->removed_ns += removed->spans[own->removed_at].end_ns - removed->spans[own->removed_at].begin_ns;
        own->removed_at++;
    }
    const bool within = own->removed_at < removed->n && removed->spans[own->removed_at].begin_ns < ns;
    return (double)(own->removed_ns + (within ? ns - removed->spans[own->removed_at].begin_ns : 0));
}

/* ---- the replay ---- */

static double own_time(struct own *own, int64_t ns)
{
    return (double)ns + own->shift_ns - removed_before(own, ns);
}

static void resume(struct own *own, int64_t ns)
{
    double at_ns = own_time(own, ns), late_ns = own->busy_end_new_ns - at_ns;
    if (late_ns > 0) own->shift_ns += late_ns;
    own->busy = true;
    own->busy_begin_ns = ns;
}

static void pause_at(struct own *own, int64_t ns)
{
    own->busy = false;
    own->busy_end_ns = ns;
    own->busy_end_new_ns = own_time(own, ns);
}

enum { QUEUED_NS_MAX = 1000000, QUEUED_PART = 5 };

/* A call that begins as soon as another of its kind has ended was waiting for it. */
static double arrive_at(struct own *own, const struct el_relation_entry *entry)
{
    const int64_t begin_ns = entry->span.begin_ns, apart_ns = begin_ns - own->left_ns;
    const double at_ns = own_time(own, begin_ns);
    if (own->left_class != entry->class || own->left_ns < own->left_begin_ns) return at_ns;
    if (apart_ns <= QUEUED_NS_MAX && apart_ns <= (own->left_ns - own->left_begin_ns) / QUEUED_PART)
        return own->left_new_ns + (double)apart_ns;
    return at_ns > own->left_new_ns ? at_ns : own->left_new_ns;
}

/* All are there: who would have come earlier? */
static void meet(struct el_replay *r, const struct el_replay_cause *cause, size_t o)
{
    const struct el_relation_operation *operation = &r->relation->operations[o];
    const struct el_relation_entry *entries = r->relation->entries;
    struct meeting *meeting = &r->meetings[o];
    double at_ns = meeting->sum_new_ns / (double)meeting->n;
    const bool all = cause->kind == EL_REPLAY_WAITS && entries[operation->first].syncs;
    bool any = false;
    for (size_t i = operation->first; i < operation->first + operation->n && cause->kind == EL_REPLAY_RANK; i++) {
        if (cause->members[entries[i].member]) continue;
        if (!any || r->arrived_ns[i] > at_ns) at_ns = r->arrived_ns[i];
        any = true;
    }
    if (!all && !any) return;
    for (size_t i = operation->first; i < operation->first + operation->n; i++) {
        const double by_ns = r->arrived_ns[i] - at_ns;
        if (by_ns <= 0 || !(all || cause->members[entries[i].member])) continue;
        r->owns[entries[i].member].shift_ns -= by_ns;
        r->owns[entries[i].member].busy_end_new_ns -= by_ns;
        r->arrived_ns[i] = at_ns;
    }
    if (all || meeting->latest_new_ns > at_ns) meeting->latest_new_ns = at_ns;
}

/* A pause in which a call ends may be one between two kernels, or two lines of Python. It waits for the call if it is
 * longer than such ones are, or if the call lies in it. */
static bool waits_for(const struct el_replay *r, const struct el_relation_entry *entry, int64_t at_ns)
{
    enum { KERNELS_NS = 20000, PYTHON_NS = 200000 };
    const int64_t begin_ns = entry->span.begin_ns, from_ns = r->owns[entry->member].busy_end_ns;
    const int64_t pause_ns = at_ns - (from_ns > begin_ns ? from_ns : begin_ns), of_ns = at_ns - begin_ns;
    const bool host = r->relation->members[entry->member].device < 0;
    return pause_ns >= (host ? PYTHON_NS : KERNELS_NS) || pause_ns >= of_ns * 3 / 10;
}

/* A host that waits may go on before its call's end is recorded: gloo's threads are late. */
static void go_on(struct el_replay *r, size_t o, const struct point *point)
{
    const struct el_relation_operation *operation = &r->relation->operations[o];
    for (size_t i = operation->first; i < operation->first + operation->n; i++) {
        const struct el_relation_entry *entry = &r->relation->entries[i];
        struct own *own = &r->owns[entry->member];
        if (i == point->of || own->busy || !entry->syncs || r->relation->members[entry->member].device >= 0) continue;
        if (!waits_for(r, entry, point->ns)) continue;
        own->shift_ns += r->meetings[o].latest_new_ns - own_time(own, point->ns);
    }
}

static void arrive(struct el_replay *r, const struct el_replay_cause *cause, const struct point *point)
{
    const size_t o = r->operation_of[point->of];
    struct meeting *meeting = &r->meetings[o];
    const double at_ns = arrive_at(&r->owns[point->member], &r->relation->entries[point->of]);
    r->arrived_ns[point->of] = at_ns;
    meeting->sum_new_ns += at_ns;
    if (meeting->n++ == 0 || at_ns > meeting->latest_new_ns) meeting->latest_new_ns = at_ns;
    if (meeting->n < r->relation->operations[o].n) return;
    meet(r, cause, o);
    go_on(r, o, point);
}

static double leave_at(const struct el_replay *r, const struct el_replay_cause *cause, const struct point *point)
{
    const struct el_relation_operation *operation = &r->relation->operations[r->operation_of[point->of]];
    const struct meeting *meeting = &r->meetings[r->operation_of[point->of]];
    if (meeting->n < operation->n) /* a root or a sender left before the last one came */
        return r->arrived_ns[point->of] + (double)(point->ns - r->relation->entries[point->of].span.begin_ns);
    if (cause->kind == EL_REPLAY_TRANSFERS) return meeting->latest_new_ns;
    return meeting->latest_new_ns + (double)(point->ns - operation->latest_ns);
}

static void leave(struct el_replay *r, const struct el_replay_cause *cause, const struct point *point)
{
    struct own *own = &r->owns[point->member];
    const struct el_relation_entry *entry = &r->relation->entries[point->of];
    const double at_ns = leave_at(r, cause, point);
    const int64_t end_ns = entry->span.end_ns;
    own->left_ns = point->ns;
    own->left_begin_ns = entry->span.begin_ns;
    own->left_new_ns = at_ns;
    own->left_class = entry->class;
    if (at_ns > own->left_most_ns) own->left_most_ns = at_ns;
    const bool in_pause = end_ns >= own->busy_end_ns && (!own->busy || end_ns <= own->busy_begin_ns);
    if (!in_pause || !waits_for(r, entry, end_ns)) return;
    own->shift_ns += at_ns - own_time(own, point->ns);
    if (own->left_most_ns > at_ns) own->shift_ns += own->left_most_ns - at_ns;
}

static double play(struct el_replay *r, const struct el_replay_cause *cause)
{
    double sum_ns = 0, n = (double)r->relation->n_members * (double)r->relation->n_steps;
    for (size_t i = 0; i < r->n; i++) {
        const struct point *point = &r->points[i];
        struct own *own = &r->owns[point->member];
        switch ((enum kind)point->kind) {
        case LEAVE:
            leave(r, cause, point);
            break;
        case BUSY_END:
            pause_at(own, point->ns);
            break;
        case MARK:
            sum_ns += (point->ends ? 1 : -1) * own_time(own, point->ns);
            break;
        case BUSY_BEGIN:
            resume(own, point->ns);
            break;
        case ARRIVE:
            arrive(r, cause, point);
            break;
        }
    }
    return n > 0 ? sum_ns * 1e-9 / n : 0;
}

enum el_status el_replay_step(struct el_replay *r, const struct el_replay_cause *cause, double *step_s_p)
{
    for (size_t o = 0; o < r->relation->n_operations; o++) r->meetings[o] = (struct meeting){0};
    for (size_t m = 0; m < r->relation->n_members; m++) {
        struct el_intervals removed = r->owns[m].removed;
        r->owns[m] = (struct own){.removed = removed,
                                  .busy_end_ns = INT64_MIN,
                                  .busy_end_new_ns = -INFINITY,
                                  .left_ns = -1,
                                  .left_most_ns = -INFINITY};
        EL_TRY(list_removed(r, m, cause->kind));
    }
    *step_s_p = play(r, cause);
    return EL_OK;
}

void el_replay_free(struct el_replay *replay)
{
    for (size_t m = 0; replay && replay->owns && m < replay->relation->n_members; m++)
        el_intervals_free(&replay->owns[m].removed);
    if (!replay) return;
    free(replay->points);
    free(replay->operation_of);
    free(replay->arrived_ns);
    free(replay->meetings);
    free(replay->owns);
    free(replay);
}
