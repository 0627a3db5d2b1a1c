/* The recorder: copies each step's spans as it ends, and does the arithmetic when all steps are over.
 *
 * An op list is kept once and shared by all steps that ran it. It is recognised by its content, not by its program's
 * address: a step that is issued anew has a new program, and a freed address comes back. What the intervals mean:
 * docs/metrics.md. It does not write, print, or look at a clock.
 */
#include "profiles/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "profiles/timeline.h"

struct op_list {
    int n_ops;
    struct el_op_info *ops; /* labels are copies: they may end with their program */
    int n_marks;
    struct el_mark *marks;
};

struct step {
    int list;
    size_t first_span;
    struct el_span whole;
};

struct el_recorder {
    int first_position, n_positions;
    struct op_list *lists;
    int n_lists, lists_capacity;
    struct step *steps;
    size_t n_steps, steps_capacity;
    struct el_span *spans;
    size_t n_spans, spans_capacity;
    int64_t n_dropped;
    bool simulated, failed;
};

enum el_status el_recorder_create(int first_position, int n_positions, struct el_recorder **recorder_p)
{
    if (first_position < 0 || n_positions < 1) {
        return el_fail(EL_ERR_INVALID, "recorder: positions %d..%d", first_position, first_position + n_positions - 1);
    }
    struct el_recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder == NULL) return el_fail_errno("recorder");
    recorder->first_position = first_position;
    recorder->n_positions = n_positions;
    *recorder_p = recorder;
    return EL_OK;
}

static void free_list(struct op_list *list)
{
    for (int i = 0; i < list->n_ops; i++) free((char *)(uintptr_t)list->ops[i].label);
    free(list->ops);
    free(list->marks);
}

void el_recorder_destroy(struct el_recorder *recorder)
{
    if (recorder == NULL) return;
    for (int i = 0; i < recorder->n_lists; i++) free_list(&recorder->lists[i]);
    free(recorder->lists);
    free(recorder->steps);
    free(recorder->spans);
    free(recorder);
}

/* Makes room for `wanted` elements, at least doubling. */
static bool reserve(void **array_p, size_t *capacity_p, size_t wanted, size_t element_bytes)
{
    if (wanted <= *capacity_p) return true;
    size_t capacity = *capacity_p * 2 > wanted ? *capacity_p * 2 : wanted + 64;
    void *array = realloc(*array_p, capacity * element_bytes);
    if (array == NULL) return false;
    *array_p = array;
    *capacity_p = capacity;
    return true;
}

static bool same_op(const struct el_op_info *kept, const struct el_op_info *op)
{
    return kept->phase == op->phase && kept->op_class == op->op_class && kept->device == op->device &&
           kept->stream == op->stream && kept->flops == op->flops && kept->sent_bytes == op->sent_bytes &&
           kept->received_bytes == op->received_bytes && kept->peer == op->peer;
}

static bool same_mark(const struct el_mark *kept, const struct el_mark *mark)
{
    return kept->op == mark->op && kept->device == mark->device && kept->tag == mark->tag && kept->bytes == mark->bytes;
}

static bool same_list(const struct op_list *list, const struct el_step_event *event)
{
    if (list->n_ops != event->n_ops || list->n_marks != event->n_marks) return false;
    for (int i = 0; i < list->n_ops; i++) {
        if (!same_op(&list->ops[i], &event->ops[i])) return false;
    }
    for (int i = 0; i < list->n_marks; i++) {
        if (!same_mark(&list->marks[i], &event->marks[i])) return false;
    }
    return true;
}

static bool copy_list(const struct el_step_event *event, struct op_list *list_p)
{
    size_t n_ops = (size_t)event->n_ops, n_marks = (size_t)event->n_marks;
    struct op_list list = {.ops = calloc(n_ops + 1, sizeof *list.ops),
                           .marks = calloc(n_marks + 1, sizeof *list.marks)};
    bool enough = list.ops != NULL && list.marks != NULL;
    for (; enough && list.n_ops < event->n_ops; list.n_ops++) {
        const char *label = event->ops[list.n_ops].label;
        list.ops[list.n_ops] = event->ops[list.n_ops];
        list.ops[list.n_ops].label = strdup(label != NULL ? label : "");
        enough = list.ops[list.n_ops].label != NULL;
    }
    if (!enough) {
        free_list(&list);
        return false;
    }
    if (n_marks > 0) memcpy(list.marks, event->marks, n_marks * sizeof *list.marks);
    list.n_marks = event->n_marks;
    *list_p = list;
    return true;
}

/* The index of the kept list that equals the event's, a new one if need be; -1 when out of memory. */
static int find_list(struct el_recorder *recorder, const struct el_step_event *event)
{
    for (int i = recorder->n_lists - 1; i >= 0; i--) {
        if (same_list(&recorder->lists[i], event)) return i;
    }
    size_t capacity = (size_t)recorder->lists_capacity;
    if (!reserve((void **)&recorder->lists, &capacity, (size_t)recorder->n_lists + 1, sizeof recorder->lists[0])) {
        return -1;
    }
    recorder->lists_capacity = (int)capacity;
    if (!copy_list(event, &recorder->lists[recorder->n_lists])) return -1;
    return recorder->n_lists++;
}

static void record_step(void *context, const struct el_step_event *event)
{
    struct el_recorder *recorder = context;
    if (event->spans == NULL) return;
    size_t n = (size_t)event->n_ops;
    if (recorder->n_spans + n > EL_RECORDER_SPANS_MAX) {
        recorder->n_dropped++;
        return;
    }
    int list = find_list(recorder, event);
    if (list < 0 ||
        !reserve((void **)&recorder->spans, &recorder->spans_capacity, recorder->n_spans + n, sizeof(struct el_span)) ||
        !reserve((void **)&recorder->steps, &recorder->steps_capacity, recorder->n_steps + 1, sizeof(struct step))) {
        recorder->failed = true;
        return;
    }
    if (n > 0) memcpy(recorder->spans + recorder->n_spans, event->spans, n * sizeof(struct el_span));
    recorder->steps[recorder->n_steps++] =
        (struct step){.list = list, .first_span = recorder->n_spans, .whole = event->whole};
    recorder->n_spans += n;
    recorder->simulated |= event->simulated;
}

struct el_probe el_recorder_probe(struct el_recorder *recorder)
{
    return (struct el_probe){.context = recorder, .spans = true, .step = record_step};
}

void el_recorder_begin(struct el_recorder *recorder)
{
    recorder->n_steps = 0;
    recorder->n_spans = 0;
    recorder->n_dropped = 0;
    recorder->failed = false;
}

size_t el_recorder_step_count(const struct el_recorder *recorder)
{
    return recorder->n_steps;
}

struct el_step_event el_recorder_step(const struct el_recorder *recorder, size_t index)
{
    const struct step *step = &recorder->steps[index];
    const struct op_list *list = &recorder->lists[step->list];
    return (struct el_step_event){.step = index,
                                  .simulated = recorder->simulated,
                                  .whole = step->whole,
                                  .n_ops = list->n_ops,
                                  .ops = list->ops,
                                  .spans = recorder->spans + step->first_span,
                                  .n_marks = list->n_marks,
                                  .marks = list->marks};
}

/* The interval sets of one device in one step. */
struct step_sets {
    struct el_timeline phase[EL_PHASE_COUNT];
    struct el_timeline all;     /* every op */
    struct el_timeline compute; /* C: kernels, on any stream */
    struct el_timeline comm;    /* K: collectives, and copies between devices */
    struct el_timeline busy;    /* kernels and copies on the compute stream */
};

/* Collectives, and copies that come from another device. */
static bool op_is_comm(const struct el_op_info *op)
{
    return op->op_class == EL_CLASS_COMM || (op->op_class == EL_CLASS_COPY && op->peer >= 0);
}

static void add_op(struct step_sets *sets, const struct el_op_info *op, struct el_span span)
{
    bool compute = op->op_class == EL_CLASS_COMPUTE, copy = op->op_class == EL_CLASS_COPY;
    el_timeline_add(&sets->phase[op->phase], span);
    el_timeline_add(&sets->all, span);
    if (compute) el_timeline_add(&sets->compute, span);
    if (op_is_comm(op)) el_timeline_add(&sets->comm, span);
    if ((compute || copy) && op->stream == 0) el_timeline_add(&sets->busy, span);
}

/* Calls `act` on every set of the step. */
static bool each_set(struct step_sets *sets, void (*act)(struct el_timeline *))
{
    struct el_timeline *rest[] = {&sets->all, &sets->compute, &sets->comm, &sets->busy};
    bool failed = false;
    for (int p = 0; p < EL_PHASE_COUNT; p++) {
        act(&sets->phase[p]);
        failed |= sets->phase[p].failed;
    }
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
        act(rest[i]);
        failed |= rest[i]->failed;
    }
    return !failed;
}

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

static void add_times(struct el_device_summary *sum, struct step_sets *sets, struct el_span whole)
{
    int64_t total = el_timeline_measure(&sets->comm), hidden = el_timeline_common(&sets->comm, &sets->compute);
    int64_t step = whole.end_ns - whole.begin_ns, active = el_timeline_measure(&sets->all);
    for (int p = 0; p < EL_PHASE_COUNT; p++) sum->phase_s[p] += seconds(el_timeline_measure(&sets->phase[p]));
    sum->step_s += seconds(step);
    sum->busy_s += seconds(el_timeline_measure(&sets->busy));
    sum->idle_s += seconds(step > active ? step - active : 0);
    sum->compute_s += seconds(el_timeline_measure(&sets->compute));
    sum->comm_total_s += seconds(total);
    sum->comm_overlapped_s += seconds(hidden);
    sum->comm_exposed_s += seconds(total - hidden);
}

/* A copy between devices runs on the one that receives: the other one sends as much. */
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

static bool add_step(struct el_device_summary *sum, struct step_sets *sets, const struct el_recorder *recorder,
                     const struct step *step, int position)
{
    const struct op_list *list = &recorder->lists[step->list];
    each_set(sets, el_timeline_clear);
    for (int i = 0; i < list->n_ops; i++) {
        add_counts(sum, &list->ops[i], position);
        if (list->ops[i].device == position) add_op(sets, &list->ops[i], recorder->spans[step->first_span + (size_t)i]);
    }
    if (!each_set(sets, el_timeline_unite)) return false;
    add_times(sum, sets, step->whole);
    return true;
}

static void divide(struct el_device_summary *sum, double n)
{
    double *const values[] = {&sum->step_s,         &sum->busy_s,     &sum->idle_s,
                              &sum->compute_s,      &sum->sent_bytes, &sum->comm_total_s,
                              &sum->received_bytes, &sum->comm_bytes, &sum->comm_overlapped_s,
                              &sum->comm_exposed_s, &sum->flops};
    for (int p = 0; p < EL_PHASE_COUNT; p++) sum->phase_s[p] /= n;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) *values[i] /= n;
}

int64_t el_recorder_dropped(const struct el_recorder *recorder)
{
    return recorder->n_dropped;
}

enum el_status el_recorder_summarize(const struct el_recorder *recorder, int position,
                                     struct el_device_summary *summary_p)
{
    if (position < recorder->first_position || position >= recorder->first_position + recorder->n_positions) {
        return el_fail(EL_ERR_INVALID, "recorder: no device at position %d", position);
    }
    if (recorder->failed) return el_fail(EL_ERR_HOST_MEMORY, "recorder: out of memory, spans were lost");
    if (recorder->n_steps == 0) return el_fail(EL_ERR_INVALID, "recorder: no step was recorded");
    struct el_device_summary sum = {
        .n_steps = (int64_t)recorder->n_steps, .n_dropped = recorder->n_dropped, .simulated = recorder->simulated};
    struct step_sets sets = {0};
    bool enough = true;
    for (size_t i = 0; i < recorder->n_steps && enough; i++) {
        enough = add_step(&sum, &sets, recorder, &recorder->steps[i], position);
    }
    each_set(&sets, el_timeline_free);
    if (!enough) return el_fail(EL_ERR_HOST_MEMORY, "recorder: out of memory in the summary");
    divide(&sum, (double)recorder->n_steps);
    *summary_p = sum;
    return EL_OK;
}
