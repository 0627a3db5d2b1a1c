/* Cells whose sides did not run interleaved: exact figures, and a history of sessions.
 *
 * Sessions of one machine differ by more than their launches do (another load, another temperature, other pages), and
 * nothing in one of them says by how much. A history holds that very spread. */
#include <math.h>
#include <stdio.h>

#include "bench/regress/rule.h"
#include "bench/stats/stats.h"

double el_regress_pct(double ratio)
{
    return 100 * (ratio - 1);
}

bool el_regress_settle(struct el_regress_cell *cell, bool worse, bool better, bool same)
{
    double pct = el_regress_pct(cell->effect), low = el_regress_pct(cell->low), high = el_regress_pct(cell->high);
    cell->verdict = worse    ? EL_CELL_REGRESSION
                    : better ? EL_CELL_IMPROVEMENT
                    : same   ? EL_CELL_SAME
                             : EL_CELL_INCONCLUSIVE;
    if (worse)
        snprintf(cell->reason, sizeof cell->reason, "worse by %.1f %% (95 %%: %.1f to %.1f)", pct, low, high);
    else if (better)
        snprintf(cell->reason, sizeof cell->reason, "better by %.1f %% (95 %%: %.1f to %.1f)", -pct, -high, -low);
    return worse || better || same;
}

/* Bytes and operations are whole numbers, and one more is one more; a time in virtual seconds may differ by how it was
 * summed. */
static bool alike(double x, double y)
{
    bool whole = x == floor(x) && y == floor(y) && fabs(x) < 0x1p53 && fabs(y) < 0x1p53;
    return x == y || (!whole && fabs(x - y) <= 1e-9 * fabs(x));
}

bool el_regress_constant(const double *x, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (!alike(x[0], x[i])) return false;
    return true;
}

/* All digits of what is whole. */
static const char *exact_figure(double value, char text[32])
{
    snprintf(text, 32, value == floor(value) && fabs(value) < 0x1p53 ? "%.0f" : "%.15g", value);
    return text;
}

void el_regress_decide_exact(struct el_regress_cell *cell, double no_p, const struct el_regress_context *context)
{
    (void)no_p, (void)context;
    double base = cell->base[0], head = cell->head[0];
    bool base_constant = el_regress_constant(cell->base, cell->n_base);
    char t[2][32];
    if (!base_constant || !el_regress_constant(cell->head, cell->n_head)) {
        cell->verdict = EL_CELL_UNREADABLE;
        snprintf(cell->reason, sizeof cell->reason, "declared deterministic, but varies among launches of the %s",
                 base_constant ? "head" : "base");
        return;
    }
    double change = alike(base, head) ? 0 : el_regress_sign(cell) * (head - base);
    if (base > 0 && head > 0) cell->effect = change == 0 ? 1 : pow(head / base, el_regress_sign(cell));
    cell->floor = 1;
    cell->verdict = change == 0                                       ? EL_CELL_SAME
                    : change > 0 || cell->better == EL_BETTER_NEITHER ? EL_CELL_REGRESSION
                                                                      : EL_CELL_IMPROVEMENT;
    if (change != 0)
        snprintf(cell->reason, sizeof cell->reason, "was %s%s%s, is %s", exact_figure(base, t[0]),
                 *cell->unit ? " " : "", cell->unit, exact_figure(head, t[1]));
}

/* The last sessions, as logarithms: how many, their mean, and how much the next one may differ from it. */
struct past {
    size_t n, df;
    double mean, spread;
};

static struct past past_of(const struct el_regress_cell *cell)
{
    double logs[EL_LEVEL_SESSIONS_MAX] = {0};
    struct past past = {.n = cell->n_base < EL_LEVEL_SESSIONS_MAX ? cell->n_base : EL_LEVEL_SESSIONS_MAX};
    for (size_t i = 0; i < past.n; i++) logs[i] = log(cell->base[cell->n_base - past.n + i]);
    past.df = cell->base_df ? cell->base_df : past.n ? past.n - 1 : 0;
    past.mean = el_stats_mean(logs, past.n);
    past.spread = past.n < 2 ? NAN : el_stats_stddev(logs, past.n) * sqrt(1 + 1 / (double)past.n);
    return past;
}

/* A session that is slower by the floor and d lies above the floor with the probability that t is below d / spread: as
 * the spread is itself an estimate, it is Student's t and not a normal quantile, with which 88 of 100 were found at 8
 * sessions. The hundredth above 0.90 is for what is left out as an outlier, which makes the spread look a little
 * smaller: by 0.4 of 100 at 12 sessions. */
#define FOUND 0.91

void el_regress_measure_history(struct el_regress_cell *cell, double *p_better_p,
                                const struct el_regress_context *context)
{
    struct past past = past_of(cell);
    double away = el_regress_sign(cell) * (log(cell->head[0]) - past.mean), df = (double)past.df;
    cell->effect = exp(away);
    if (past.df < EL_LEVEL_DF_MIN) return;
    double bound = el_stats_t_quantile(1 - context->level / (double)context->cells, df) * past.spread;
    double half = el_stats_t_quantile(0.975, df) * past.spread;
    double t = past.spread > 0 ? away / past.spread : away > 0 ? INFINITY : away < 0 ? -INFINITY : 0;
    cell->p = isinf(t) ? (t > 0 ? 0 : 1) : el_stats_t_cdf(-t, df);
    *p_better_p = 1 - cell->p;
    cell->low = exp(away - half);
    cell->high = exp(away + half);
    cell->floor = fmax(context->least_effect, exp(bound));
    cell->detectable = exp(log(cell->floor) + el_stats_t_quantile(FOUND, df) * past.spread);
}

double el_regress_history_detects(const struct el_level *level, size_t cells)
{
    struct el_level copy = *level;
    struct el_regress_cell cell = {.base = copy.values, .n_base = copy.n, .base_df = copy.df, .head = &copy.centre};
    const struct el_regress_context context = {cells, EL_REGRESS_LEVEL, EL_LEVEL_FLOOR_RATIO};
    double p_better;
    cell.detectable = NAN;
    if (copy.n > 0) el_regress_measure_history(&cell, &p_better, &context);
    return cell.detectable;
}

void el_regress_decide_history(struct el_regress_cell *cell, double p_better, const struct el_regress_context *context)
{
    size_t df = past_of(cell).df;
    /* A history whose sessions differ by more shows nothing worth a pass. Where only a larger effect counts, that much
     * larger may what is found be. */
    double detectable_max = 1.10 * fmax(1, context->least_effect / 1.02);
    if (df < EL_LEVEL_DF_MIN) {
        cell->verdict = EL_CELL_NO_BASELINE;
        cell->more = EL_LEVEL_DF_MIN - (int)df;
        snprintf(cell->reason, sizeof cell->reason, "%zu sessions of this machine, %d are needed", cell->n_base,
                 EL_LEVEL_SESSIONS_MIN);
    } else if (!el_regress_settle(cell, cell->p_adjusted < context->level && cell->effect >= context->least_effect,
                                  p_better < context->level && cell->effect <= 1 / context->least_effect,
                                  cell->is_level || cell->detectable <= detectable_max)) {
        snprintf(cell->reason, sizeof cell->reason,
                 "sessions differ so much that only slowdowns of %.0f %% are detected: compare with --ab instead",
                 el_regress_pct(cell->detectable));
    }
}
