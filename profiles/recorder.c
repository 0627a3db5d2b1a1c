/* The recorder: copies each step's spans as it ends. The arithmetic is summary.c's.
 *
 * An op list is kept once and shared by all steps that ran it. It is recognised by its content, not by its program's
 * address: a step that is issued anew has a new program, and a freed address comes back. What the intervals mean:
 * docs/metrics.md. It does not write or print, and looks at a
 * clock only where launches are watched.
 */
#include <stdlib.h>
#include <string.h>

#include "profiles/recorder_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/grow.h"

enum el_status el_recorder_create(int first_position, int n_positions, struct el_recorder **recorder_p)
{
    if (first_position < 0 || n_positions < 1)
        return el_fail(EL_ERR_INVALID, "recorder: positions %d..%d", first_position, first_position + n_positions - 1);
    struct el_recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder == NULL) return el_fail_errno("recorder");
    recorder->first_position = first_position;
    recorder->n_positions = n_positions;
    recorder->told = calloc((size_t)n_positions * EL_RECORDER_SEGMENTS, sizeof *recorder->told);
    if (recorder->told == NULL) {
        el_recorder_destroy(recorder);
        return el_fail(EL_ERR_HOST_MEMORY, "recorder: no memory");
    }
    *recorder_p = recorder;
    return EL_OK;
}

static void free_list(struct op_list *list)
{
    for (int i = 0; i < list->n_ops && list->ops != NULL; i++) {
        free((char *)(uintptr_t)list->ops[i].label);
        free((char *)(uintptr_t)list->ops[i].how);
    }
    free(list->ops);
    free(list->cpu_ns);
    free(list->marks);
    free(list->waits);
}

void el_recorder_destroy(struct el_recorder *recorder)
{
    if (recorder == NULL) return;
    for (int i = 0; i < recorder->n_lists; i++) free_list(&recorder->lists[i]);
    for (int i = 0; recorder->told != NULL && i < recorder->n_positions * EL_RECORDER_SEGMENTS; i++) {
        free(recorder->told[i].latest_ns);
        free(recorder->told[i].windows);
    }
    free(recorder->told);
    free(recorder->lists);
    free(recorder->steps);
    free(recorder->spans);
    free(recorder->launches);
    free(recorder->queued);
    free(recorder);
}

static bool same_op(const struct el_op_info *kept, const struct el_op_info *op)
{
    return kept->phase == op->phase && kept->op_class == op->op_class && kept->device == op->device &&
           kept->stream == op->stream && kept->flops == op->flops && kept->sent_bytes == op->sent_bytes &&
           kept->received_bytes == op->received_bytes && kept->peer == op->peer && kept->link == op->link &&
           kept->operation == op->operation && kept->piece.kind == op->piece.kind &&
           kept->piece.part == op->piece.part && kept->piece.micro == op->piece.micro;
}

static bool same_list(const struct op_list *list, const struct el_step_event *event, int segment)
{
    if (list->n_ops != event->n_ops || list->n_marks != event->n_marks || list->segment != segment) return false;
    for (int i = 0; i < list->n_ops; i++) {
        if (!same_op(&list->ops[i], &event->ops[i])) return false;
    }
    for (int i = 0; i < list->n_marks; i++) {
        const struct el_mark *a = &list->marks[i], *b = &event->marks[i];
        if (a->op != b->op || a->device != b->device || a->tag != b->tag || a->bytes != b->bytes) return false;
    }
    return true;
}

static bool copy_list(const struct el_step_event *event, struct op_list *list)
{
    size_t n = (size_t)event->n_ops;
    list->ops = calloc(n + 1, sizeof *list->ops);
    list->cpu_ns = calloc(n + 1, sizeof *list->cpu_ns);
    list->marks = el_recorder_copy(event->marks, (size_t)event->n_marks, sizeof *list->marks);
    list->waits = el_recorder_copy(event->waits, (size_t)event->n_waits, sizeof *list->waits);
    if (list->ops == NULL || list->cpu_ns == NULL || list->marks == NULL || list->waits == NULL) return false;
    list->n_waits = event->n_waits;
    list->n_marks = event->n_marks;
    while (list->n_ops < event->n_ops) {
        const struct el_op_info *from = &event->ops[list->n_ops];
        struct el_op_info *op = &list->ops[list->n_ops++];
        *op = *from;
        op->label = strdup(from->label != NULL ? from->label : "");
        op->how = from->how != NULL ? strdup(from->how) : NULL;
        if (op->label == NULL || (op->how == NULL && from->how != NULL)) return false;
    }
    return true;
}

/* The index of the kept list that equals the event's, a new one if need be; -1 when out of memory. */
static int find_list(struct el_recorder *recorder, const struct el_step_event *event)
{
    for (int i = recorder->n_lists - 1; i >= 0; i--) {
        if (same_list(&recorder->lists[i], event, recorder->segment)) return i;
    }
    struct op_list list = {.segment = recorder->segment};
    if (!copy_list(event, &list) || !EL_GROW(recorder->lists, recorder->lists_room, (size_t)recorder->n_lists + 1)) {
        free_list(&list);
        return -1;
    }
    recorder->lists[recorder->n_lists] = list;
    return recorder->n_lists++;
}

/* ---- when the host queued each op ---- */

static void queue_step(void *context, uint64_t step)
{
    struct el_recorder *recorder = context;
    (void)step;
    recorder->n_queued = 0;
}

static void begin_launch(void *context, const struct el_op_info *op, const struct el_op_info *previous)
{
    struct el_recorder *recorder = context;
    (void)previous;
    if (!EL_GROW(recorder->queued, recorder->queued_room, recorder->n_queued + 1)) return;
    recorder->queued[recorder->n_queued++] = (struct launch){.op = op, .span.begin_ns = el_clock_ns()};
}

/* Of a group's calls, which are made side by side, each ends before the next one begins. */
static void end_launch(void *context, const struct el_op_info *op, const struct el_op_info *next)
{
    struct el_recorder *recorder = context;
    struct launch *last = recorder->n_queued ? &recorder->queued[recorder->n_queued - 1] : NULL;
    (void)next;
    if (last && last->op == op) last->span.end_ns = el_clock_ns();
}

void el_recorder_watch_launches(struct el_recorder *recorder, struct el_watch *watch_p)
{
    recorder->keeps_launches = true;
    *watch_p = (struct el_watch){
        .context = recorder, .step_begin = queue_step, .op_begin = begin_launch, .op_end = end_launch};
}

const struct el_span *el_recorder_launches(const struct el_recorder *recorder, size_t index)
{
    return recorder->keeps_launches ? recorder->launches + recorder->steps[index].first_span : NULL;
}

static bool keep_launches(struct el_recorder *recorder, const struct el_step_event *event)
{
    size_t n = (size_t)event->n_ops;
    if (!recorder->keeps_launches) return true;
    if (!EL_GROW(recorder->launches, recorder->launches_room, recorder->n_spans + n)) return false;
    memset(recorder->launches + recorder->n_spans, 0, n * sizeof *recorder->launches);
    for (size_t i = 0; i < recorder->n_queued; i++)
        recorder->launches[recorder->n_spans + (size_t)(recorder->queued[i].op - event->ops)] =
            recorder->queued[i].span;
    return true;
}

static void record_step(void *context, const struct el_step_event *event)
{
    struct el_recorder *recorder = context;
    if (event->spans == NULL || recorder->segment < 0) return;
    size_t n = (size_t)event->n_ops;
    bool measured = recorder->segment == EL_RECORDER_MEASURED;
    if (recorder->n_spans + n > (measured ? EL_RECORDER_SPANS_MAX / 8 * 7 : EL_RECORDER_SPANS_MAX)) {
        recorder->n_dropped += measured;
        return;
    }
    int list = find_list(recorder, event);
    if (list < 0 || !EL_GROW(recorder->spans, recorder->spans_room, recorder->n_spans + n) ||
        !EL_GROW(recorder->steps, recorder->steps_room, recorder->n_steps + 1) || !keep_launches(recorder, event)) {
        recorder->failed = true;
        return;
    }
    if (n > 0) memcpy(recorder->spans + recorder->n_spans, event->spans, n * sizeof(struct el_span));
    recorder->steps[recorder->n_steps++] = (struct step){.list = list,
                                                         .number = event->step,
                                                         .first_span = recorder->n_spans,
                                                         .whole = event->whole,
                                                         .queue_ns = event->queue_ns};
    recorder->n_spans += n;
    for (size_t i = 0; event->cpu_ns != NULL && i < n; i++) recorder->lists[list].cpu_ns[i] += event->cpu_ns[i];
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
    recorder->segment = EL_RECORDER_MEASURED;
    for (int i = 0; i < recorder->n_lists; i++)
        memset(recorder->lists[i].cpu_ns, 0, (size_t)recorder->lists[i].n_ops * sizeof(int64_t));
}

void el_recorder_segment(struct el_recorder *recorder, int segment)
{
    recorder->segment = segment < EL_RECORDER_SEGMENTS ? segment : -1;
}

size_t el_recorder_kept(const struct el_recorder *recorder, int segment)
{
    size_t n = 0;
    for (size_t i = 0; i < recorder->n_steps; i++) n += recorder->lists[recorder->steps[i].list].segment == segment;
    return n;
}

size_t el_recorder_step_count(const struct el_recorder *recorder)
{
    size_t n = 0;
    while (n < recorder->n_steps && recorder->lists[recorder->steps[n].list].segment == EL_RECORDER_MEASURED) n++;
    return n;
}

struct el_step_event el_recorder_step(const struct el_recorder *recorder, size_t index)
{
    const struct step *step = &recorder->steps[index];
    const struct op_list *list = &recorder->lists[step->list];
    return (struct el_step_event){.step = index,
                                  .simulated = recorder->simulated,
                                  .whole = step->whole,
                                  .queue_ns = step->queue_ns,
                                  .n_ops = list->n_ops,
                                  .ops = list->ops,
                                  .spans = recorder->spans + step->first_span,
                                  .n_marks = list->n_marks,
                                  .marks = list->marks,
                                  .n_waits = list->n_waits,
                                  .waits = list->waits};
}

int64_t el_recorder_dropped(const struct el_recorder *recorder)
{
    return recorder->n_dropped;
}
