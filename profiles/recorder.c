/* Copies each step's spans as it ends (arithmetic: summary.c). An op list is shared by all steps that ran it and
 * recognized by content: re-issued steps have new programs, and freed addresses come back. Reads a clock only if
 * launches are watched. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "profiles/intervals.h"
#include "profiles/recorder_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/grow.h"
#include "runtime/comm/comm.h"

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

/* Calls of a group are queued side by side: each ends before the next begins. */
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

/* Ops of measured steps. */

size_t el_recorder_count(const struct op_list *list, int position)
{
    size_t n = 0;
    for (int i = 0; i < list->n_ops; i++) n += el_recorder_is_comm(&list->ops[i], position);
    return n;
}

const int64_t *el_recorder_latest(const struct el_recorder *recorder, const struct op_list *list, int position,
                                  size_t number)
{
    const struct told *told = el_recorder_told(recorder, position, list->segment);
    size_t n = el_recorder_count(list, position);
    return told->latest_ns && (number + 1) * n <= told->n_latest ? told->latest_ns + number * n : NULL;
}

/* 0 if steps differ. */
static size_t count(const struct el_recorder *recorder, int position, int segment, size_t *n_steps_p)
{
    size_t n = 0;
    *n_steps_p = 0;
    for (size_t s = 0; s < recorder->n_steps; s++) {
        const struct op_list *list = el_recorder_list(recorder, &recorder->steps[s]);
        size_t found = el_recorder_count(list, position);
        if (list->segment != segment) continue;
        if (*n_steps_p > 0 && found != n) return 0;
        n = found;
        ++*n_steps_p;
    }
    return n;
}

static struct el_span pass_of(const struct op_list *list, const struct el_span *spans, int position)
{
    struct el_span pass = {INT64_MAX, INT64_MIN};
    for (int i = 0; i < list->n_ops; i++) {
        const struct el_op_info *op = &list->ops[i];
        if (op->device != position || op->op_class != EL_CLASS_COMPUTE) continue;
        if (op->phase == EL_PHASE_FORWARD && spans[i].begin_ns < pass.begin_ns) pass.begin_ns = spans[i].begin_ns;
        if (op->phase == EL_PHASE_BACKWARD && spans[i].end_ns > pass.end_ns) pass.end_ns = spans[i].end_ns;
    }
    return pass.begin_ns < pass.end_ns ? pass : (struct el_span){0};
}

/* nccl-tests: 2 (n - 1) / n for all-reduces, (n - 1) / n of the whole if each has a part. */
static double bus_bytes(const struct el_op_messages *messages)
{
    const double n = messages->size, whole = (double)messages->total_bytes, others = n > 0 ? (n - 1) / n : 0;
    const char *verb = messages->verb ? messages->verb : "";
    if (!strcmp(verb, el_comm_verb_row(EL_COMM_ALL_REDUCE)->name)) return 2 * others * whole;
    for (int v = 0; v < EL_COMM_VERB_COUNT; v++) {
        const struct el_comm_verb_row *row = el_comm_verb_row((enum el_comm_verb)v);
        if (!strcmp(verb, row->name)) return (row->all_data || row->all_result ? others : n > 1) * whole;
    }
    return 0;
}

static void fill(const struct el_recorder *recorder, int position, int segment, struct el_collectives *c)
{
    size_t at = 0, step = 0;
    for (size_t s = 0; s < recorder->n_steps; s++) {
        const struct op_list *list = el_recorder_list(recorder, &recorder->steps[s]);
        const struct el_span *spans = el_recorder_spans(recorder, &recorder->steps[s]);
        if (list->segment != segment) continue;
        c->passes[step++] = pass_of(list, spans, position);
        for (int i = 0; i < list->n_ops; i++) {
            const struct el_op_info *op = &list->ops[i];
            if (!el_recorder_is_comm(op, position)) continue;
            c->ops[at % c->n] =
                (struct el_collective){op->operation, op->link, op->phase, op->bytes, bus_bytes(&op->messages)};
            c->spans[at++] = spans[i];
        }
    }
}

enum el_status el_recorder_collectives(const struct el_recorder *recorder, int position, int segment,
                                       struct el_collectives *collectives_p)
{
    EL_TRY(el_recorder_check(recorder, position));
    struct el_collectives c = {0};
    c.n = count(recorder, position, segment, &c.n_steps);
    if (c.n > 0) {
        c.spans = calloc(c.n_steps * c.n, sizeof *c.spans);
        c.ops = calloc(c.n, sizeof *c.ops);
        c.passes = calloc(c.n_steps, sizeof *c.passes);
        if (!c.spans || !c.ops || !c.passes) {
            el_collectives_free(&c);
            return el_fail(EL_ERR_HOST_MEMORY, "recorder: no memory for collectives");
        }
        fill(recorder, position, segment, &c);
    }
    *collectives_p = c;
    return EL_OK;
}

enum el_status el_recorder_tell(struct el_recorder *recorder, int position, int segment, const int64_t *latest_ns,
                                size_t n_latest, const struct el_span *windows, size_t n_windows)
{
    EL_TRY(el_recorder_check(recorder, position));
    struct told *told = el_recorder_told(recorder, position, segment);
    free(told->latest_ns);
    free(told->windows);
    *told = (struct told){.latest_ns = el_recorder_copy(latest_ns, n_latest, sizeof *latest_ns), .n_latest = n_latest};
    if (windows) told->windows = el_recorder_copy(windows, n_windows, sizeof *windows);
    told->n_windows = n_windows;
    return told->latest_ns && (told->windows || !windows)
               ? EL_OK
               : el_fail(EL_ERR_HOST_MEMORY, "recorder: no memory for arrivals");
}

static int by_phase_and_label(const void *a, const void *b)
{
    const struct el_op_figures *x = a, *y = b;
    return x->phase != y->phase ? (x->phase > y->phase) - (x->phase < y->phase) : strcmp(x->label, y->label);
}

struct found {
    struct el_op_figures *figures; /* room for all ops */
    size_t n;
    void *tree;    /* tsearch's: a program has tens of thousands of ops */
    size_t **rows; /* [n_lists]: figure by op of each measured list; OTHERS: another device's */
};

static const size_t OTHERS = SIZE_MAX;

static struct el_op_figures *find(struct found *found, const struct el_op_info *op)
{
    struct el_op_figures *next = &found->figures[found->n];
    *next = (struct el_op_figures){.label = op->label, .phase = op->phase, .how = op->how};
    struct el_op_figures **node = tsearch(next, &found->tree, by_phase_and_label);
    if (node == NULL) return NULL;
    const char *how = (*node)->how;
    bool same = how && op->how ? strcmp(how, op->how) == 0 : how == op->how;
    if (!same) (*node)->how = "not the same in all of them";
    found->n += *node == next;
    return *node;
}

static size_t *rows_of(struct found *found, const struct op_list *list, int position)
{
    size_t *rows = malloc(((size_t)list->n_ops + 1) * sizeof *rows);
    for (int i = 0; i < list->n_ops && rows != NULL; i++) {
        rows[i] = OTHERS;
        if (list->ops[i].device != position) continue;
        const struct el_op_figures *figure = find(found, &list->ops[i]);
        if (figure == NULL) {
            free(rows);
            return NULL;
        }
        rows[i] = (size_t)(figure - found->figures);
    }
    return rows;
}

/* `totals` [n][n_steps]: each step's time by figure. */
static void add_steps(const struct el_recorder *recorder, struct found *found, double *totals, size_t n_steps)
{
    size_t at = 0;
    for (size_t s = 0; s < recorder->n_steps; s++) {
        const struct op_list *list = el_recorder_list(recorder, &recorder->steps[s]);
        const struct el_span *spans = el_recorder_spans(recorder, &recorder->steps[s]);
        const size_t *rows = found->rows[recorder->steps[s].list];
        if (list->segment != EL_RECORDER_MEASURED) continue;
        for (int i = 0; i < list->n_ops; i++) {
            double took_s = (double)(spans[i].end_ns - spans[i].begin_ns) * 1e-9;
            if (rows[i] == OTHERS) continue;
            found->figures[rows[i]].mean_s += took_s;
            found->figures[rows[i]].count++;
            found->figures[rows[i]].bytes += list->ops[i].bytes;
            totals[rows[i] * n_steps + at] += took_s;
        }
        at++;
    }
}

static bool fill_figures(const struct el_recorder *recorder, int position, struct found *found)
{
    size_t n_steps = 0;
    for (size_t s = 0; s < recorder->n_steps; s++) {
        int l = recorder->steps[s].list;
        if (recorder->lists[l].segment != EL_RECORDER_MEASURED) continue;
        if (found->rows[l] == NULL) found->rows[l] = rows_of(found, &recorder->lists[l], position);
        if (found->rows[l] == NULL) return false;
        n_steps++;
    }
    double *totals = calloc(found->n * n_steps + 1, sizeof *totals);
    if (totals == NULL) return false;
    add_steps(recorder, found, totals, n_steps);
    for (size_t i = 0; i < found->n; i++) {
        found->figures[i].mean_s /= (double)n_steps;
        found->figures[i].count /= (double)n_steps;
        found->figures[i].bytes /= (double)n_steps;
        found->figures[i].median_s = el_median(&totals[i * n_steps], n_steps);
    }
    free(totals);
    return true;
}

static void keep(void *figure)
{
    (void)figure; /* the array owns it */
}

enum el_status el_recorder_ops(const struct el_recorder *recorder, int position, struct el_op_figures **figures_p,
                               size_t *n_p)
{
    EL_TRY(el_recorder_check(recorder, position));
    size_t most = 1;
    for (int l = 0; l < recorder->n_lists; l++) most += (size_t)recorder->lists[l].n_ops;
    struct found found = {.figures = calloc(most, sizeof *found.figures),
                          .rows = calloc((size_t)recorder->n_lists + 1, sizeof *found.rows)};
    bool enough = found.figures != NULL && found.rows != NULL && fill_figures(recorder, position, &found);
    for (int l = 0; l < recorder->n_lists && found.rows != NULL; l++) free(found.rows[l]);
    free(found.rows);
    tdestroy(found.tree, keep);
    if (!enough) {
        free(found.figures);
        return el_fail(EL_ERR_HOST_MEMORY, "recorder: no memory for ops");
    }
    *figures_p = found.figures;
    *n_p = found.n;
    return EL_OK;
}

/* ---- what a stage did in one step, as papers on pipelines draw it: a row of boxes ---- */

static bool same_piece(struct el_op_piece a, struct el_op_piece b)
{
    return a.kind == b.kind && a.part == b.part && a.micro == b.micro;
}

/* Kernels of one box, or of one phase, merge across gaps. */
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

static size_t fill_boxes(const struct op_list *list, int position, const struct el_span *spans, const int64_t *latest,
                         struct el_lane_box *boxes)
{
    struct el_lane_box *last = NULL;
    size_t n = 0;
    for (int i = 0; i < list->n_ops; i++) {
        const struct el_op_info *op = &list->ops[i];
        struct el_span span = spans[i];
        if (el_recorder_is_comm(op, position)) span.begin_ns = el_recorder_arrival(span, *latest++);
        if (op->device != position || (op->stream != 0 && op->op_class != EL_CLASS_COMM)) continue;
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
