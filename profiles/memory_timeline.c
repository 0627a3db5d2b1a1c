/* First every mark becomes a point on the mean step's clock, then points at one time merge. */
#include "profiles/memory_timeline.h"

#include <stdlib.h>
#include <string.h>

#include "profiles/recorder_internal.h"
#include "runtime/base/grow.h"

enum { IDLE = EL_PHASE_COUNT, WAIT = EL_PHASE_COUNT, COMPUTE_STREAM = 0 };
enum { GAP_PARTS = 100, SEEN_PARTS = 500 }; /* of a step: a gap that gets a point, and one that a picture shows */

/* The mean step of the device's list with the highest peak. */
struct mean_step {
    struct el_step_event list; /* a step of that list: ops and marks */
    int64_t n_steps, whole_ns;
    struct el_span *spans; /* n_ops; relative to the step's start */
    int64_t *latest_ns;    /* n_ops, likewise: a collective's last arrival, or its begin if unknown */
};

struct maker {
    const struct mean_step *mean;
    int position;
    int mark; /* next one */
    struct el_memory_point now;
    struct el_memory_timeline *timeline;
    bool failed;
};

static int64_t marks_peak(const struct el_step_event *list, int position)
{
    int64_t live = 0, peak = 0;
    for (int i = 0; i < list->n_marks; i++) {
        if (list->marks[i].device != position) continue;
        live += list->marks[i].bytes;
        if (live > peak) peak = live;
    }
    return peak;
}

/* Then with the most steps; then the first. */
static void choose_list(const struct el_recorder *recorder, int position, struct mean_step *mean)
{
    int64_t highest = -1;
    for (int l = 0; l < recorder->n_lists; l++) {
        int64_t count = 0;
        size_t last = 0;
        for (size_t i = 0, n = el_recorder_step_count(recorder); i < n; i++) {
            if (recorder->steps[i].list != l) continue;
            last = i;
            count++;
        }
        struct el_step_event step = count ? el_recorder_step(recorder, last) : (struct el_step_event){0};
        int64_t peak = count ? marks_peak(&step, position) : -1;
        if (peak < highest || (peak == highest && count <= mean->n_steps)) continue;
        highest = peak;
        mean->n_steps = count;
        mean->list = step;
    }
}

/* `latest`: its collectives' last arrivals; NULL: unknown. */
static void add_step(struct mean_step *mean, const struct el_step_event *step, int position, const int64_t *latest)
{
    int64_t from_ns = step->whole.begin_ns;
    mean->whole_ns += step->whole.end_ns - from_ns;
    for (int op = 0; op < step->n_ops; op++) {
        struct el_span span = step->spans[op];
        int64_t came_ns = latest && el_recorder_is_comm(&step->ops[op], position) ? *latest++ : span.begin_ns;
        mean->spans[op].begin_ns += span.begin_ns - from_ns;
        mean->spans[op].end_ns += span.end_ns - from_ns;
        mean->latest_ns[op] += el_recorder_arrival(span, came_ns) - from_ns;
    }
}

static enum el_status make_mean(const struct el_recorder *recorder, int position, struct mean_step *mean)
{
    choose_list(recorder, position, mean);
    if (mean->n_steps == 0) return el_fail(EL_ERR_INVALID, "memory timeline: no step was recorded");
    mean->spans = calloc((size_t)mean->list.n_ops + 1, sizeof *mean->spans);
    mean->latest_ns = calloc((size_t)mean->list.n_ops + 1, sizeof *mean->latest_ns);
    if (!mean->spans || !mean->latest_ns) return el_fail_errno("a memory timeline of %d ops", mean->list.n_ops);
    for (size_t i = 0, n = el_recorder_step_count(recorder); i < n; i++) {
        struct el_step_event step = el_recorder_step(recorder, i);
        const struct op_list *list = el_recorder_list(recorder, &recorder->steps[i]);
        if (step.ops == mean->list.ops)
            add_step(mean, &step, position, el_recorder_latest(recorder, list, position, i));
    }
    mean->whole_ns /= mean->n_steps;
    for (int op = 0; op < mean->list.n_ops; op++) {
        mean->spans[op].begin_ns /= mean->n_steps;
        mean->spans[op].end_ns /= mean->n_steps;
        mean->latest_ns[op] /= mean->n_steps;
    }
    return EL_OK;
}

static void free_mean(struct mean_step *mean)
{
    free(mean->spans);
    free(mean->latest_ns);
}

static void add_point(struct maker *maker, int64_t at_ns, int phase, const char *label)
{
    struct el_memory_timeline *timeline = maker->timeline;
    maker->failed |= !EL_GROW(timeline->points, timeline->room, (size_t)timeline->n + 1);
    if (maker->failed) return;
    maker->now.at_ns = at_ns;
    maker->now.phase = phase;
    maker->now.label = label;
    timeline->points[timeline->n++] = maker->now;
}

static void add_marks(struct maker *maker, int end, int64_t at_ns, int phase, const char *label)
{
    const struct el_step_event *list = &maker->mean->list;
    for (; maker->mark < list->n_marks && list->marks[maker->mark].op <= end; maker->mark++) {
        const struct el_mark *mark = &list->marks[maker->mark];
        if (mark->device != maker->position) continue;
        maker->now.bytes[mark->tag] += mark->bytes;
        maker->now.total_bytes += mark->bytes;
        add_point(maker, at_ns, phase, label);
    }
}

/* While the compute stream is idle the device's other streams (copies, collectives) give the phase. */
static void add_gap(struct maker *maker, int64_t from_ns, int64_t to_ns)
{
    const struct mean_step *mean = maker->mean;
    int64_t gap_ns = mean->whole_ns / GAP_PARTS;
    if (to_ns - from_ns <= gap_ns) return;
    for (int i = 0; i < mean->list.n_ops; i++) {
        const struct el_op_info *op = &mean->list.ops[i];
        struct el_span span = mean->spans[i];
        if (op->device != maker->position || op->stream == COMPUTE_STREAM) continue;
        if (span.end_ns <= from_ns || span.begin_ns >= to_ns) continue;
        if (span.begin_ns - from_ns > gap_ns) add_point(maker, from_ns, IDLE, "");
        add_point(maker, span.begin_ns > from_ns ? span.begin_ns : from_ns, (int)op->phase, "");
        from_ns = span.end_ns;
    }
    if (to_ns - from_ns > gap_ns) add_point(maker, from_ns, IDLE, "");
}

static void add_all(struct maker *maker)
{
    const struct mean_step *mean = maker->mean;
    int64_t free_ns = 0;
    int phase = IDLE;
    add_point(maker, 0, IDLE, "");
    for (int i = 0; i < mean->list.n_ops; i++) {
        const struct el_op_info *op = &mean->list.ops[i];
        if (op->device != maker->position || op->stream != COMPUTE_STREAM) continue;
        phase = (int)op->phase;
        add_gap(maker, free_ns, mean->spans[i].begin_ns);
        if (maker->timeline->n == 1) maker->timeline->points[0].phase = phase; /* not known before */
        add_marks(maker, i, mean->spans[i].begin_ns, phase, op->label);
        add_point(maker, mean->spans[i].begin_ns, phase, op->label);
        free_ns = mean->spans[i].end_ns;
    }
    add_gap(maker, free_ns, mean->whole_ns);
    phase = maker->timeline->n ? maker->timeline->points[maker->timeline->n - 1].phase : IDLE;
    add_marks(maker, mean->list.n_ops, mean->whole_ns, phase, "");
    add_point(maker, mean->whole_ns, phase, "");
}

static bool same_bytes(const struct el_memory_point *a, const struct el_memory_point *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static void merge(struct el_memory_timeline *timeline)
{
    struct el_memory_point *points = timeline->points;
    int kept = 0;
    for (int i = 0, end; i < timeline->n; i = end) {
        int top = i;
        for (end = i + 1; end < timeline->n && points[end].at_ns == points[i].at_ns; end++) {
            if (points[end].total_bytes > points[top].total_bytes) top = end;
        }
        struct el_memory_point highest = points[top], last = points[end - 1];
        bool higher = kept == 0 || highest.total_bytes > points[kept - 1].total_bytes;
        if (higher && !same_bytes(&highest, &last)) points[kept++] = highest;
        bool news = kept == 0 || points[kept - 1].phase != last.phase || !same_bytes(&points[kept - 1], &last);
        if (news || end == timeline->n) points[kept++] = last;
    }
    timeline->n = kept;
}

/* If phase and communicator match and no visible gap lies between. */
static void add_box(const struct mean_step *mean, struct el_timeline_box new, struct el_memory_timeline *timeline)
{
    int last = timeline->n_boxes - 1;
    const struct el_span span = new.span;
    if (span.end_ns <= span.begin_ns) return;
    while (last >= 0 && timeline->boxes[last].lane != new.lane) last--;
    struct el_timeline_box *box = last < 0 ? NULL : &timeline->boxes[last];
    if (box && box->phase == new.phase &&
        box->communicator == new.communicator &&span.begin_ns - box->span.end_ns <= mean->whole_ns / SEEN_PARTS) {
        if (span.end_ns > box->span.end_ns) box->span.end_ns = span.end_ns;
        return;
    }
    timeline->boxes[timeline->n_boxes++] = new;
}

static enum el_status add_lanes(const struct mean_step *mean, int position, struct el_memory_timeline *timeline)
{
    timeline->boxes = calloc(2 * (size_t)mean->list.n_ops + 1, sizeof *timeline->boxes);
    if (!timeline->boxes) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the lanes of a timeline");
    for (int i = 0; i < mean->list.n_ops; i++) {
        const struct el_op_info *op = &mean->list.ops[i];
        struct el_span span = mean->spans[i];
        if (op->device != position) continue;
        bool moves = op->op_class == EL_CLASS_COMM || (op->op_class == EL_CLASS_COPY && op->peer >= 0);
        enum el_timeline_lane lane = moves || op->stream != COMPUTE_STREAM ? EL_LANE_COMM : EL_LANE_COMPUTE;
        struct el_timeline_box wait = {lane, WAIT, NULL, {span.begin_ns, mean->latest_ns[i]}};
        add_box(mean, wait, timeline);
        struct el_timeline_box work = {lane, (int)op->phase, op->communicator, {mean->latest_ns[i], span.end_ns}};
        add_box(mean, work, timeline);
    }
    return EL_OK;
}

enum el_status el_memory_timeline_make(const struct el_recorder *recorder, int position,
                                       const size_t base[EL_TAG_COUNT], struct el_memory_timeline *timeline_p)
{
    struct mean_step mean = {0};
    struct el_memory_timeline timeline = {0};
    struct maker maker = {.mean = &mean, .position = position, .timeline = &timeline};
    enum el_status status = make_mean(recorder, position, &mean);
    if (status == EL_OK) status = add_lanes(&mean, position, &timeline);
    if (status != EL_OK) {
        free_mean(&mean);
        return status;
    }
    for (int tag = 0; tag < EL_TAG_COUNT; tag++) {
        maker.now.bytes[tag] = (int64_t)base[tag];
        maker.now.total_bytes += (int64_t)base[tag];
    }
    add_all(&maker);
    free_mean(&mean);
    if (maker.failed) {
        el_memory_timeline_free(&timeline);
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for a memory timeline");
    }
    merge(&timeline);
    for (int i = 1; i < timeline.n; i++)
        if (timeline.points[i].total_bytes > timeline.points[timeline.peak].total_bytes) timeline.peak = i;
    *timeline_p = timeline;
    return EL_OK;
}

void el_memory_timeline_free(struct el_memory_timeline *timeline)
{
    free(timeline->points);
    free(timeline->boxes);
    *timeline = (struct el_memory_timeline){0};
}
