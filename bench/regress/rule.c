/* The verdicts of a set: which cells can be judged at all, what each is by its kind, and what the set comes to. */
#include "bench/regress/rule.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/text.h"
#include "bench/stats/stats.h"
#include "runtime/base/utf8.h"

double el_regress_sign(const struct el_regress_cell *cell)
{
    return cell->better == EL_BETTER_HIGHER ? -1 : 1;
}

static enum el_cell_verdict fail(struct el_regress_cell *cell, const char *side, const char *what)
{
    snprintf(cell->reason, sizeof cell->reason, "in the %s it %s", side, what);
    return EL_CELL_UNREADABLE;
}

/* SAME: can be read. Exact figures may be 0 or negative; all others have a logarithm. */
static enum el_cell_verdict read_side(struct el_regress_cell *cell, const char *side, const double *x, size_t n)
{
    if (n == 0) return fail(cell, side, "is missing");
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i])) return fail(cell, side, "is not a number");
        if (isinf(x[i])) return fail(cell, side, "is not finite");
        if (cell->kind != EL_CELL_EXACT && x[i] <= 0)
            return fail(cell, side,
                        x[i] < 0 ? "is below 0" : "is 0, to which there is no ratio: choose others with --metric");
    }
    return EL_CELL_SAME;
}

static enum el_cell_verdict read_cell(struct el_regress_cell *cell)
{
    if (cell->fault != EL_CELL_SAME) return cell->fault;
    cell->reason[0] = 0;
    enum el_cell_verdict read = read_side(cell, "base", cell->base, cell->n_base);
    if (read == EL_CELL_SAME) read = read_side(cell, "head", cell->head, cell->n_head);
    if (read != EL_CELL_SAME || cell->kind != EL_CELL_PAIRED) return read;
    if (cell->n_base > EL_SIGNED_RANK_MAX) return fail(cell, "base", "has more than 200 samples");
    if (cell->n_base < cell->n_head) return fail(cell, "base", "has fewer samples than in the head");
    if (cell->n_base > cell->n_head) return fail(cell, "head", "has fewer samples than in the base");
    return EL_CELL_SAME;
}

/* A kind's cells are one family. One that is tested has `measure`, whose p is adjusted before it is decided. */
static const struct kind {
    enum el_cell_kind kind;
    void (*measure)(struct el_regress_cell *cell, double *p_better_p, const struct el_regress_context *context);
    void (*decide)(struct el_regress_cell *cell, double p_better, const struct el_regress_context *context);
} kinds[] = {
    {EL_CELL_PAIRED, el_regress_measure_paired, el_regress_decide_paired},
    {EL_CELL_HISTORY, el_regress_measure_history, el_regress_decide_history},
    {EL_CELL_EXACT, NULL, el_regress_decide_exact},
};

static bool belongs(const struct el_regress_cell *cell, const struct kind *kind)
{
    return cell->kind == kind->kind && cell->verdict == EL_CELL_SAME;
}

static void judge_family(struct el_regress_set *set, const struct kind *kind, struct el_regress_context *context)
{
    double *p = calloc(set->n + 1, sizeof *p), *p_better = calloc(set->n + 1, sizeof *p_better);
    bool can = p != NULL && p_better != NULL; /* else nothing can be judged */
    context->cells = 0;
    context->level = kind->kind == EL_CELL_PAIRED ? el_regress_level(set->stage, set->last_analysis) : EL_REGRESS_LEVEL;
    for (size_t i = 0; i < set->n; i++) context->cells += belongs(&set->cells[i], kind);
    for (size_t i = 0; i < set->n && can; i++) {
        p[i] = p_better[i] = NAN;
        if (!belongs(&set->cells[i], kind)) continue;
        if (kind->measure) kind->measure(&set->cells[i], &p_better[i], context);
        p[i] = set->cells[i].p;
    }
    if (can) {
        el_stats_holm(p, set->n, p);
        el_stats_holm(p_better, set->n, p_better);
    }
    for (size_t i = 0; i < set->n; i++) {
        if (!belongs(&set->cells[i], kind)) continue;
        set->cells[i].p_adjusted = can ? p[i] : NAN;
        kind->decide(&set->cells[i], can ? p_better[i] : NAN, context);
    }
    free(p);
    free(p_better);
}

static void say_noisy(struct el_regress_set *set, double limit)
{
    double most = 0;
    for (size_t i = 0; i < set->n; i++)
        if (set->cells[i].kind == EL_CELL_PAIRED && set->cells[i].floor > fmax(most, limit)) most = set->cells[i].floor;
    set->environment[0] = 0;
    if (most > 0)
        snprintf(set->environment, sizeof set->environment,
                 "This machine is too noisy: the same program differs from itself by up to %.1f %%, above %.0f %%.",
                 100 * (most - 1), 100 * (limit - 1));
}

void el_regress_judge(struct el_regress_set *set)
{
    struct el_regress_context context = {.least_effect = set->least_effect > 0 ? set->least_effect : 1.02};
    for (size_t i = 0; i < set->n; i++) {
        struct el_regress_cell *cell = &set->cells[i];
        cell->effect = cell->low = cell->high = cell->p = cell->p_adjusted = cell->floor = cell->detectable = NAN;
        cell->more = 0;
        cell->verdict = read_cell(cell);
    }
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) judge_family(set, &kinds[k], &context);
    for (size_t i = 0; i < set->n; i++) {
        struct el_regress_cell *cell = &set->cells[i];
        /* What makes a side doubtful belongs to the reason, in every form it is printed in. */
        if (cell->reason[0] && cell->doubt[0] && !strstr(cell->reason, cell->doubt))
            el_text_append(cell->reason, sizeof cell->reason, "; %s", cell->doubt);
        el_utf8_printable(cell->reason);
    }
    say_noisy(set, fmax(EL_REGRESS_NOISY, context.least_effect));
}

enum el_regress_exit el_regress_outcome(const struct el_regress_set *set)
{
    size_t count[EL_CELL_NO_BASELINE + 1] = {0};
    for (size_t i = 0; i < set->n; i++) count[set->cells[i].verdict]++;
    if (set->n == 0 || count[EL_CELL_UNREADABLE] > 0) return EL_REGRESS_USE;
    if (count[EL_CELL_REGRESSION] > 0) return EL_REGRESS_FOUND;
    if (count[EL_CELL_NO_BASELINE] > 0) return EL_REGRESS_NO_BASELINE;
    return count[EL_CELL_INCONCLUSIVE] > 0 ? EL_REGRESS_INCONCLUSIVE : EL_REGRESS_NONE;
}

void el_regress_name_sides(struct el_regress_set *set, const char *base, const char *head)
{
    snprintf(set->base_name, sizeof set->base_name, "%s", base);
    snprintf(set->head_name, sizeof set->head_name, "%s", head);
    el_utf8_printable(set->base_name);
    el_utf8_printable(set->head_name);
}

enum el_status el_regress_add(struct el_regress_set *set, const char *name, struct el_regress_cell **cell_p)
{
    struct el_regress_cell *cells = realloc(set->cells, (set->n + 1) * sizeof *cells);
    if (cells == NULL) return el_fail(EL_ERR_HOST_MEMORY, "no memory for cells");
    set->cells = cells;
    struct el_regress_cell *cell = &cells[set->n++];
    memset(cell, 0, sizeof *cell);
    snprintf(cell->name, sizeof cell->name, "%s", name);
    el_utf8_printable(cell->name);
    *cell_p = cell;
    return EL_OK;
}

enum el_status el_regress_append(double **values, size_t *n, double value)
{
    double *grown = realloc(*values, (*n + 1) * sizeof *grown);
    if (grown == NULL) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a sample");
    grown[(*n)++] = value;
    *values = grown;
    return EL_OK;
}

void el_regress_fault(struct el_regress_cell *cell, enum el_cell_verdict fault, const char *format, ...)
{
    va_list arguments;
    if (cell->fault != EL_CELL_SAME) return;
    cell->fault = fault;
    va_start(arguments, format);
    vsnprintf(cell->reason, sizeof cell->reason, format, arguments);
    va_end(arguments);
}

bool el_regress_listed(const char *list, const char *name)
{
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n > 0 && !strncmp(at, name, n) && strchr(" [", name[n])) return true; /* its end is found too */
    }
    return false;
}

void el_regress_free(struct el_regress_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        free(set->cells[i].base);
        free(set->cells[i].head);
    }
    free(set->cells);
    json_decref(set->unjudged);
    *set = (struct el_regress_set){0};
}
