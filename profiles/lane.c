/* What a stage did in one step, as papers on pipelines draw it: a row of boxes. Which step is shown, on which clock,
 * and how it is drawn is others' business. */
#include <stdlib.h>
#include <string.h>

#include "profiles/recorder_internal.h"

static bool same_piece(struct el_op_piece a, struct el_op_piece b)
{
    return a.kind == b.kind && a.part == b.part && a.micro == b.micro;
}

/* Kernels of one box, or of one phase, are one box, with the gaps between them. */
static bool goes_on(const struct el_lane_box *box, const struct el_op_info *op)
{
    if (op->op_class == EL_CLASS_COMM || !same_piece(box->piece, op->piece)) return false;
    return op->piece.kind || box->phase == op->phase;
}

static int by_begin(const void *a, const void *b)
{
    const struct el_lane_box *x = a, *y = b;
    return (x->span.begin_ns > y->span.begin_ns) - (x->span.begin_ns < y->span.begin_ns);
}

/* What the compute stream does, and communication. */
static bool is_shown(const struct el_op_info *op, int position)
{
    return op->device == position && (op->stream == 0 || op->op_class == EL_CLASS_COMM);
}

/* Returns how many boxes were filled. */
static size_t fill_boxes(const struct op_list *list, int position, const struct el_span *spans, const int64_t *latest,
                         struct el_lane_box *boxes)
{
    struct el_lane_box *last = NULL;
    size_t n = 0;
    for (int i = 0; i < list->n_ops; i++) {
        const struct el_op_info *op = &list->ops[i];
        struct el_span span = spans[i];
        if (el_recorder_is_comm(op, position)) span.begin_ns = el_recorder_arrival(span, *latest++);
        if (!is_shown(op, position)) continue;
        if (last && goes_on(last, op)) {
            last->span.end_ns = span.end_ns;
            continue;
        }
        boxes[n] = (struct el_lane_box){op->piece, op->phase, op->link, span};
        if (op->op_class != EL_CLASS_COMM) last = &boxes[n];
        n++;
    }
    return n;
}

enum el_status el_recorder_lane(const struct el_recorder *recorder, int position, size_t step, struct el_lane *lane_p)
{
    EL_TRY(el_recorder_check(recorder, position));
    const struct told *told = el_recorder_told(recorder, position, EL_RECORDER_MEASURED);
    *lane_p = (struct el_lane){0};
    if (step >= told->n_windows || step >= el_recorder_step_count(recorder)) return EL_OK;
    const struct op_list *list = el_recorder_list(recorder, &recorder->steps[step]);
    const int64_t *latest = el_recorder_latest(recorder, list, position, step);
    if (!latest) return EL_OK;
    struct el_lane_box *boxes = calloc((size_t)list->n_ops + 1, sizeof *boxes);
    if (!boxes) return el_fail(EL_ERR_HOST_MEMORY, "recorder: no memory for boxes");
    size_t n = fill_boxes(list, position, el_recorder_spans(recorder, &recorder->steps[step]), latest, boxes);
    for (size_t i = 0; i < n; i++) {
        boxes[i].span.begin_ns -= told->windows[step].begin_ns;
        boxes[i].span.end_ns -= told->windows[step].begin_ns;
    }
    qsort(boxes, n, sizeof *boxes, by_begin);
    *lane_p = (struct el_lane){
        .boxes = boxes, .n = n, .window_ns = told->windows[step].end_ns - told->windows[step].begin_ns};
    return EL_OK;
}

/* Whether a later op of the list still goes back with what op `at` goes back with. */
static bool is_last_of(const struct op_list *list, int at)
{
    const struct el_op_piece *piece = &list->ops[at].piece;
    for (int i = at + 1; i < list->n_ops; i++) {
        const struct el_op_info *op = &list->ops[i];
        if (op->device != list->ops[at].device || op->op_class != EL_CLASS_COMPUTE) continue;
        if (op->piece.kind && op->piece.micro == piece->micro && op->piece.part == piece->part) return false;
    }
    return true;
}

int el_recorder_in_flight(const struct el_recorder *recorder, int position)
{
    size_t n_steps = el_recorder_step_count(recorder);
    int now = 0, most = 0;
    struct el_op_piece before = {0};
    if (n_steps == 0) return 0;
    const struct op_list *list = &recorder->lists[recorder->steps[n_steps - 1].list];
    for (int i = 0; i < list->n_ops; i++) {
        const struct el_op_info *op = &list->ops[i];
        if (op->device != position || op->op_class != EL_CLASS_COMPUTE || !op->piece.kind) continue;
        now += op->piece.kind == 'F' && !same_piece(before, op->piece);
        if (now > most) most = now;
        now -= op->piece.kind != 'F' && is_last_of(list, i);
        before = op->piece;
    }
    return most;
}
