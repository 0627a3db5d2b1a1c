/* Single ops of the measured steps: collectives in their order, and kernels and copies by name. */
#include <stdlib.h>
#include <string.h>

#include "profiles/median.h"
#include "profiles/recorder_internal.h"

static const struct op_list *list_of(const struct el_recorder *recorder, const struct step *step)
{
    return &recorder->lists[step->list];
}

static bool is_collective(const struct el_op_info *op, int position)
{
    return op->device == position && op->op_class == EL_CLASS_COMM;
}

/* How many there are a step and how many steps; 0 where steps differ. */
static size_t count(const struct el_recorder *recorder, int position, size_t *n_steps_p)
{
    size_t n = 0;
    *n_steps_p = 0;
    for (size_t s = 0; s < recorder->n_steps; s++) {
        const struct op_list *list = list_of(recorder, &recorder->steps[s]);
        size_t found = 0;
        if (list->segment != EL_RECORDER_MEASURED) continue;
        for (int i = 0; i < list->n_ops; i++) found += is_collective(&list->ops[i], position);
        if (*n_steps_p > 0 && found != n) return 0;
        n = found;
        ++*n_steps_p;
    }
    return n;
}

static void fill(const struct el_recorder *recorder, int position, struct el_collectives *c)
{
    size_t at = 0;
    for (size_t s = 0; s < recorder->n_steps; s++) {
        const struct op_list *list = list_of(recorder, &recorder->steps[s]);
        for (int i = 0; i < list->n_ops && list->segment == EL_RECORDER_MEASURED; i++) {
            if (!is_collective(&list->ops[i], position)) continue;
            c->phases[at % c->n] = list->ops[i].phase;
            c->bytes[at % c->n] = list->ops[i].bytes;
            c->spans[at++] = el_recorder_spans(recorder, &recorder->steps[s])[i];
        }
    }
}

enum el_status el_recorder_collectives(const struct el_recorder *recorder, int position,
                                       struct el_collectives *collectives_p)
{
    EL_TRY(el_recorder_check(recorder, position));
    struct el_collectives c = {0};
    c.n = count(recorder, position, &c.n_steps);
    if (c.n > 0) {
        c.spans = calloc(c.n_steps * c.n, sizeof *c.spans);
        c.phases = calloc(c.n, sizeof *c.phases);
        c.bytes = calloc(c.n, sizeof *c.bytes);
        if (c.spans == NULL || c.phases == NULL || c.bytes == NULL) {
            el_collectives_free(&c);
            return el_fail(EL_ERR_HOST_MEMORY, "recorder: no memory for collectives");
        }
        fill(recorder, position, &c);
    }
    *collectives_p = c;
    return EL_OK;
}

enum el_status el_recorder_set_arrivals(struct el_recorder *recorder, int position, const int64_t *latest_ns, size_t n)
{
    EL_TRY(el_recorder_check(recorder, position));
    int64_t *copy = malloc((n + 1) * sizeof *copy);
    if (copy == NULL) return el_fail(EL_ERR_HOST_MEMORY, "recorder: no memory for arrivals");
    if (n > 0) memcpy(copy, latest_ns, n * sizeof *copy);
    free(recorder->latest_ns[position - recorder->first_position]);
    recorder->latest_ns[position - recorder->first_position] = copy;
    recorder->n_latest[position - recorder->first_position] = n;
    return EL_OK;
}

static struct el_op_figures *find(struct el_op_figures *figures, size_t n, const struct el_op_info *op)
{
    for (size_t i = 0; i < n; i++)
        if (figures[i].phase == op->phase && strcmp(figures[i].label, op->label) == 0) return &figures[i];
    return NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static size_t add_ops(struct el_op_figures *figures, size_t n, const struct op_list *list, const struct el_span *spans,
                      int position)
{
    for (int i = 0; i < list->n_ops; i++) {
        const struct el_op_info *op = &list->ops[i];
        if (op->device != position) continue;
        struct el_op_figures *found = find(figures, n, op);
        if (found == NULL) {
            found = &figures[n++];
            *found = (struct el_op_figures){.label = op->label, .phase = op->phase, .how = op->how};
        }
        if (!same_text(found->how, op->how)) found->how = "not the same in all of them";
        found->mean_s += (double)(spans[i].end_ns - spans[i].begin_ns) * 1e-9;
        found->count++;
    }
    return n;
}

/* Seconds of one step by figure, into `totals` [n][n_steps], at column `at`. */
static void add_totals(struct el_op_figures *figures, size_t n, const struct op_list *list, const struct el_span *spans,
                       int position, double *totals, size_t n_steps, size_t at)
{
    for (int i = 0; i < list->n_ops; i++) {
        if (list->ops[i].device != position) continue;
        size_t row = (size_t)(find(figures, n, &list->ops[i]) - figures);
        totals[row * n_steps + at] += (double)(spans[i].end_ns - spans[i].begin_ns) * 1e-9;
    }
}

static enum el_status put_medians(const struct el_recorder *recorder, int position, struct el_op_figures *figures,
                                  size_t n, size_t n_steps)
{
    double *totals = calloc(n * n_steps + 1, sizeof *totals);
    size_t at = 0;
    if (totals == NULL) return el_fail(EL_ERR_HOST_MEMORY, "recorder: no memory for ops");
    for (size_t s = 0; s < recorder->n_steps; s++) {
        const struct step *step = &recorder->steps[s];
        if (list_of(recorder, step)->segment != EL_RECORDER_MEASURED) continue;
        add_totals(figures, n, list_of(recorder, step), el_recorder_spans(recorder, step), position, totals, n_steps,
                   at++);
    }
    for (size_t i = 0; i < n; i++) figures[i].median_s = el_median(&totals[i * n_steps], n_steps);
    free(totals);
    return EL_OK;
}

enum el_status el_recorder_ops(const struct el_recorder *recorder, int position, struct el_op_figures **figures_p,
                               size_t *n_p)
{
    EL_TRY(el_recorder_check(recorder, position));
    size_t most = 1, n = 0, n_steps = 0;
    for (int l = 0; l < recorder->n_lists; l++) most += (size_t)recorder->lists[l].n_ops;
    struct el_op_figures *figures = calloc(most, sizeof *figures);
    if (figures == NULL) return el_fail(EL_ERR_HOST_MEMORY, "recorder: no memory for ops");
    for (size_t s = 0; s < recorder->n_steps; s++) {
        const struct step *step = &recorder->steps[s];
        if (list_of(recorder, step)->segment != EL_RECORDER_MEASURED) continue;
        n = add_ops(figures, n, list_of(recorder, step), el_recorder_spans(recorder, step), position);
        n_steps++;
    }
    for (size_t i = 0; i < n; i++) {
        figures[i].mean_s /= (double)n_steps;
        figures[i].count /= (double)n_steps;
    }
    enum el_status status = put_medians(recorder, position, figures, n, n_steps);
    if (status != EL_OK) {
        free(figures);
        return status;
    }
    *figures_p = figures;
    *n_p = n;
    return EL_OK;
}
