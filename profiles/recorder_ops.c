/* Single ops of the measured steps: collectives in their order, and kernels and copies by name. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "profiles/intervals.h"
#include "profiles/recorder_internal.h"

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

/* How many there are a step and how many steps; 0 where steps differ. */
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

/* From the first kernel of forward to the last of backward. */
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
            c->phases[at % c->n] = op->phase;
            c->bytes[at % c->n] = op->bytes;
            c->operations[at % c->n] = op->operation;
            c->links[at % c->n] = op->link;
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
        c.operations = calloc(c.n, sizeof *c.operations);
        c.links = calloc(c.n, sizeof *c.links);
        c.phases = calloc(c.n, sizeof *c.phases);
        c.bytes = calloc(c.n, sizeof *c.bytes);
        c.passes = calloc(c.n_steps, sizeof *c.passes);
        if (!c.spans || !c.operations || !c.links || !c.phases || !c.bytes || !c.passes) {
            el_collectives_free(&c);
            return el_fail(EL_ERR_HOST_MEMORY, "recorder: no memory for collectives");
        }
        fill(recorder, position, segment, &c);
    }
    *collectives_p = c;
    return EL_OK;
}

static void *copy_of(const void *array, size_t n, size_t element_bytes)
{
    void *copy = malloc(n * element_bytes + 1);
    if (copy && n > 0) memcpy(copy, array, n * element_bytes);
    return copy;
}

enum el_status el_recorder_tell(struct el_recorder *recorder, int position, int segment, const int64_t *latest_ns,
                                size_t n_latest, const struct el_span *windows, size_t n_windows)
{
    EL_TRY(el_recorder_check(recorder, position));
    struct told *told = el_recorder_told(recorder, position, segment);
    free(told->latest_ns);
    free(told->windows);
    *told = (struct told){.latest_ns = copy_of(latest_ns, n_latest, sizeof *latest_ns), .n_latest = n_latest};
    if (windows) told->windows = copy_of(windows, n_windows, sizeof *windows);
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

/* The figures so far, in the order of issue. */
struct found {
    struct el_op_figures *figures; /* has room for all ops */
    size_t n;
    void *tree;    /* of tsearch, to find them by: a program has tens of thousands of ops */
    size_t **rows; /* [n_lists]: the figure of each op of a list that measured steps ran; OTHERS: another device's */
};

static const size_t OTHERS = SIZE_MAX;

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* The figure of an op, a new one if need be; NULL when out of memory. */
static struct el_op_figures *find(struct found *found, const struct el_op_info *op)
{
    struct el_op_figures *next = &found->figures[found->n];
    *next = (struct el_op_figures){.label = op->label, .phase = op->phase, .how = op->how};
    struct el_op_figures **node = tsearch(next, &found->tree, by_phase_and_label);
    if (node == NULL) return NULL;
    if (!same_text((*node)->how, op->how)) (*node)->how = "not the same in all of them";
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

/* Sums over the measured steps, and what each of them spends in a figure, into `totals` [n][n_steps]. */
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

/* Returns whether there was memory for them. */
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
    (void)figure; /* it is the array's */
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
