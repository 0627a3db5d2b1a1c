/* From spans to a device's figures: unions and intersections per step, then means. */
#include <string.h>

#include "profiles/intervals.h"
#include "profiles/recorder_internal.h"

/* Each phase, and these. */
enum {
    ALL = EL_PHASE_COUNT, /* every op */
    COMPUTE,              /* C: kernels, on any stream */
    COMM,                 /* K: collectives, and copies between devices */
    WAIT,                 /* W: collectives before the last arrival */
    LOADING,              /* making the batch, and its copies from the host */
    BUSY,                 /* kernels and copies on the compute stream */
    STAGE,                /* not bubble: all but preparation and follow-up of a pass */
    WINDOW,               /* of the step */
    GROUPS,               /* a communicator's part of K each */
    SETS = GROUPS + EL_COMM_GROUPS_MAX
};

static bool op_is_comm(const struct el_op_info *op)
{
    return op->op_class == EL_CLASS_COMM || (op->op_class == EL_CLASS_COPY && op->peer >= 0);
}

static struct el_comm_figures *group_of(struct el_device_summary *sum, const struct el_op_info *op)
{
    int g = 0;
    if (!op->communicator) return NULL;
    while (g < sum->n_groups && strcmp(sum->groups[g].name, op->communicator) != 0) g++;
    if (g == EL_COMM_GROUPS_MAX) return NULL;
    if (g == sum->n_groups) sum->groups[sum->n_groups++] = (struct el_comm_figures){.name = op->communicator};
    return &sum->groups[g];
}

/* Operations of one communicator are sequential. */
static void add_to_group(struct el_device_summary *sum, struct el_intervals *sets, const struct el_op_info *op,
                         struct el_span span, int64_t latest_ns)
{
    struct el_comm_figures *group = group_of(sum, op);
    int64_t arrived_ns = el_recorder_arrival(span, latest_ns);
    if (!group) return;
    if (op->link == EL_LINK_RECEIVE) span.begin_ns = arrived_ns;
    group->total_s += (double)(span.end_ns - span.begin_ns) * 1e-9;
    group->wait_s += (double)(arrived_ns - span.begin_ns) * 1e-9;
    group->sent_bytes += (double)op->sent_bytes;
    group->received_bytes += (double)op->received_bytes;
    el_intervals_add(&sets[GROUPS + (group - sum->groups)], span);
}

/* `latest_ns`: span.begin_ns for ops that are no collectives. A receiver is idle until the message is sent. */
static void add_op(struct el_intervals *sets, const struct el_op_info *op, struct el_span span, int64_t latest_ns)
{
    bool compute = op->op_class == EL_CLASS_COMPUTE, copy = op->op_class == EL_CLASS_COPY;
    int64_t arrived_ns = el_recorder_arrival(span, latest_ns);
    if (op->link == EL_LINK_RECEIVE) span.begin_ns = arrived_ns;
    bool loads = op->phase == EL_PHASE_DATA || op->phase == EL_PHASE_H2D;
    /* Work before and after a pass may hide in bubbles, but does not fill them. */
    if (!loads && op->phase != EL_PHASE_OPTIMIZER) el_intervals_add(&sets[STAGE], span);
    el_intervals_add(&sets[op->phase], (struct el_span){arrived_ns, span.end_ns});
    el_intervals_add(&sets[WAIT], (struct el_span){span.begin_ns, arrived_ns});
    el_intervals_add(&sets[ALL], span);
    if (loads) el_intervals_add(&sets[LOADING], span);
    if (compute) el_intervals_add(&sets[COMPUTE], span);
    if (op_is_comm(op)) el_intervals_add(&sets[COMM], span);
    if ((compute || copy) && op->stream == 0) el_intervals_add(&sets[BUSY], span);
}

static bool each_set(struct el_intervals *sets, void (*act)(struct el_intervals *))
{
    bool failed = false;
    for (int i = 0; i < SETS; i++) {
        act(&sets[i]);
        failed |= sets[i].failed;
    }
    return !failed;
}

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

static void add_times(struct el_device_summary *sum, struct el_intervals *sets, struct el_span whole)
{
    int64_t total = el_intervals_measure(&sets[COMM]), hidden = el_intervals_common(&sets[COMM], &sets[COMPUTE]);
    int64_t step = whole.end_ns - whole.begin_ns, active = el_intervals_measure(&sets[ALL]);
    int64_t compute = el_intervals_measure(&sets[COMPUTE]), wait = el_intervals_measure(&sets[WAIT]);
    for (int p = 0; p < EL_PHASE_COUNT; p++) sum->phase_s[p] += seconds(el_intervals_measure(&sets[p]));
    int64_t window = el_intervals_measure(&sets[WINDOW]);
    sum->step_s += seconds(step);
    sum->window_s += seconds(window);
    sum->bubble_s += seconds(window - el_intervals_common(&sets[WINDOW], &sets[STAGE]));
    sum->busy_s += seconds(el_intervals_measure(&sets[BUSY]));
    sum->idle_s += seconds(step > active ? step - active : 0);
    sum->other_s += seconds(active - compute - total + hidden);
    sum->loading_exposed_s +=
        seconds(el_intervals_measure(&sets[LOADING]) - el_intervals_common(&sets[LOADING], &sets[COMPUTE]));
    sum->compute_s += seconds(compute);
    sum->wait_s += seconds(wait);
    sum->wait_exposed_s += seconds(wait - el_intervals_common(&sets[WAIT], &sets[COMPUTE]));
    sum->comm_total_s += seconds(total);
    sum->comm_overlapped_s += seconds(hidden);
    sum->comm_exposed_s += seconds(total - hidden);
    for (int g = 0; g < sum->n_groups; g++) {
        struct el_intervals *of_group = &sets[GROUPS + g];
        sum->groups[g].exposed_s +=
            seconds(el_intervals_measure(of_group) - el_intervals_common(of_group, &sets[COMPUTE]));
    }
}

/* A copy between devices runs on the receiver; the sender sends as much. */
static void add_counts(struct el_device_summary *sum, const struct el_op_info *op, int position)
{
    double sent = op->device == position ? (double)op->sent_bytes : 0;
    if (op->op_class == EL_CLASS_COPY && op->peer == position) sent += (double)op->received_bytes;
    sum->sent_bytes += sent;
    sum->comm_bytes += sent;
    if (op->device != position) return;
    sum->received_bytes += (double)op->received_bytes;
    sum->flops += op->flops;
}

static bool add_step(struct el_device_summary *sum, struct el_intervals *sets, const struct el_recorder *recorder,
                     const struct step *step, int position, size_t number)
{
    const struct op_list *list = el_recorder_list(recorder, step);
    const struct el_span *spans = el_recorder_spans(recorder, step);
    const struct told *told = el_recorder_told(recorder, position, list->segment);
    const int64_t *latest = el_recorder_latest(recorder, list, position, number);
    each_set(sets, el_intervals_clear);
    if (number < told->n_windows) el_intervals_add(&sets[WINDOW], told->windows[number]);
    for (int i = 0; i < list->n_ops; i++) {
        const struct el_op_info *op = &list->ops[i];
        add_counts(sum, op, position);
        if (op->device != position) continue;
        bool known = latest != NULL && op->op_class == EL_CLASS_COMM;
        int64_t latest_ns = known ? *latest++ : spans[i].begin_ns;
        add_op(sets, op, spans[i], latest_ns);
        add_to_group(sum, sets, op, spans[i], latest_ns);
    }
    if (!each_set(sets, el_intervals_unite)) return false;
    add_times(sum, sets, step->whole);
    sum->queue_s += seconds(step->queue_ns);
    return true;
}

/* CPU time is kept as sums over a list's steps. */
static void add_cpu(struct el_device_summary *sum, const struct el_recorder *recorder, int position, int segment)
{
    for (int l = 0; l < recorder->n_lists; l++) {
        const struct op_list *list = &recorder->lists[l];
        for (int i = 0; i < list->n_ops && list->segment == segment; i++)
            if (list->ops[i].device == position && op_is_comm(&list->ops[i]))
                sum->comm_cpu_s += seconds(list->cpu_ns[i]);
    }
}

static void divide(struct el_device_summary *sum, double n)
{
    double *const values[] = {
        &sum->step_s,         &sum->busy_s,         &sum->other_s,  &sum->idle_s,           &sum->compute_s,
        &sum->comm_total_s,   &sum->sent_bytes,     &sum->wait_s,   &sum->wait_exposed_s,   &sum->comm_overlapped_s,
        &sum->comm_exposed_s, &sum->received_bytes, &sum->flops,    &sum->comm_bytes,       &sum->comm_cpu_s,
        &sum->queue_s,        &sum->bubble_s,       &sum->window_s, &sum->loading_exposed_s};
    for (int p = 0; p < EL_PHASE_COUNT; p++) sum->phase_s[p] /= n;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) *values[i] /= n;
    for (int g = 0; g < sum->n_groups; g++) {
        struct el_comm_figures *group = &sum->groups[g];
        group->total_s /= n;
        group->wait_s /= n;
        group->exposed_s /= n;
        group->sent_bytes /= n;
        group->received_bytes /= n;
    }
}

enum el_status el_recorder_check(const struct el_recorder *recorder, int position)
{
    if (position < recorder->first_position || position >= recorder->first_position + recorder->n_positions)
        return el_fail(EL_ERR_INVALID, "recorder: no device at position %d", position);
    if (recorder->failed) return el_fail(EL_ERR_HOST_MEMORY, "recorder: out of memory, spans were lost");
    return EL_OK;
}

enum el_status el_recorder_summarize(const struct el_recorder *recorder, int position, int segment,
                                     struct el_device_summary *summary_p)
{
    EL_TRY(el_recorder_check(recorder, position));
    const struct told *told = el_recorder_told(recorder, position, segment);
    struct el_device_summary sum = {.simulated = recorder->simulated,
                                    .arrivals_known = told->latest_ns != NULL,
                                    .bubble_known = told->latest_ns && told->windows};
    struct el_intervals sets[SETS] = {{0}};
    bool enough = true;
    for (size_t i = 0; i < recorder->n_steps && enough; i++) {
        const struct step *step = &recorder->steps[i];
        if (recorder->lists[step->list].segment != segment) continue;
        enough = add_step(&sum, sets, recorder, step, position, (size_t)sum.n_steps++);
    }
    each_set(sets, el_intervals_free);
    if (!enough) return el_fail(EL_ERR_HOST_MEMORY, "recorder: out of memory in the summary");
    if (sum.n_steps == 0) return el_fail(EL_ERR_INVALID, "recorder: no step was recorded");
    add_cpu(&sum, recorder, position, segment);
    divide(&sum, (double)sum.n_steps);
    *summary_p = sum;
    return EL_OK;
}

int64_t el_recorder_computed_ns(const struct el_recorder *recorder, int position, size_t index, uint64_t *step_p)
{
    const struct step *step = &recorder->steps[index];
    const struct op_list *list = el_recorder_list(recorder, step);
    const struct el_span *spans = el_recorder_spans(recorder, step);
    int64_t sum_ns = 0;
    for (int i = 0; i < list->n_ops; i++)
        if (list->ops[i].device == position && list->ops[i].op_class == EL_CLASS_COMPUTE)
            sum_ns += spans[i].end_ns - spans[i].begin_ns;
    *step_p = step->number;
    return sum_ns;
}
