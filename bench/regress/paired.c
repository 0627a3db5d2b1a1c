/* Cells of pairs: base and head ran next to each other, in random order.
 *
 * Three things make a regression: signed ranks tell it from chance, it is at least as large as the floor, and its
 * interval lies above 1. The floor is what keeps a tiny difference that many blocks can tell from failing a gate, and
 * it rises with the machine's unrest: launches of one program in neighbouring blocks differ by that unrest alone. */
#include <math.h>
#include <stdio.h>

#include "bench/regress/rule.h"
#include "bench/stats/signed_rank.h"

/* The 90th percentile of the normal distribution: what is to be found in 90 of 100 lies so far above the bound. */
static const double NINETY = 1.2816;
/* By how much the scatter is taken larger, and more where it comes from few pairs, so that nine of ten are found with
 * every kind of noise (tests/unit/test_regress_rates.c). */
static const double SCATTER_MARGIN = 1.3;

double el_regress_level(int stage, bool last_analysis)
{
    static const double shares[] = {0.002, 0.0015, 0.0015};
    double spent = 0;
    for (int s = 0; s < stage && s < 3; s++) spent += shares[s];
    return last_analysis || stage > 2 ? fmax(EL_REGRESS_LEVEL - spent, 0) : shares[stage < 0 ? 0 : stage];
}

int el_regress_blocks_needed(size_t cells, double level)
{
    return (int)floor(log2((double)(cells > 0 ? cells : 1) / level)) + 1;
}

/* Differences of a program from itself: of launches in blocks 1 and 2, 3 and 4, ...; base's and then head's. With an
 * odd number of blocks the last one is left over. As many as there are blocks, and of the same scatter as head minus
 * base. */
static size_t own_differences(const struct el_regress_cell *cell, double *differences)
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < cell->n_base; i += 2) {
        differences[n++] = log(cell->base[i + 1] / cell->base[i]);
        differences[n++] = log(cell->head[i + 1] / cell->head[i]);
    }
    return n;
}

static double half_width(const double *differences, size_t n)
{
    struct el_interval i = el_stats_signed_rank_interval(differences, n, EL_REGRESS_CONFIDENCE);
    return i.valid ? (i.high - i.low) / 2 : NAN;
}

/* What a run like this finds in 90 of 100: beyond the floor, and beyond what the test tells from chance, by so much of
 * the effect's own scatter that nine of ten lie above. */
static double detectable(double own_half, double half, size_t n, const struct el_regress_context *context)
{
    double df = (double)n - 1, share = context->level / (double)context->cells;
    if ((int)n < el_regress_blocks_needed(context->cells, context->level) || isnan(own_half)) return NAN;
    double scatter = (SCATTER_MARGIN + 3 / (double)n) * fmax(own_half, half) / el_stats_t_quantile(0.975, df);
    double by_floor = fmax(log(context->least_effect), own_half) + NINETY * scatter;
    double by_test = (el_stats_t_quantile(1 - share, df) + NINETY) * scatter;
    return exp(fmax(by_floor, by_test));
}

void el_regress_measure_paired(struct el_regress_cell *cell, double *p_better_p,
                               const struct el_regress_context *context)
{
    double differences[EL_SIGNED_RANK_MAX], own[EL_SIGNED_RANK_MAX];
    size_t n = cell->n_base;
    for (size_t i = 0; i < n; i++) differences[i] = el_regress_sign(cell) * log(cell->head[i] / cell->base[i]);
    struct el_signed_rank test = el_stats_signed_rank(differences, n);
    struct el_interval i = el_stats_signed_rank_interval(differences, n, EL_REGRESS_CONFIDENCE);
    double own_half = half_width(own, own_differences(cell, own));
    cell->effect = exp(i.centre);
    cell->low = exp(i.low);
    cell->high = exp(i.high);
    cell->p = test.p_above;
    *p_better_p = test.p_below;
    cell->floor = exp(fmax(log(context->least_effect), own_half)); /* NAN does not count with fmax */
    cell->detectable = detectable(own_half, (i.high - i.low) / 2, n, context);
}

/* How many blocks would tell, if all went on as it was: an effect below the least that counts is told when the interval
 * has shrunk below that, a larger one when it is so many times its own scatter. */
static int more_blocks(const struct el_regress_cell *cell, const struct el_regress_context *context)
{
    double n = (double)cell->n_base, effect = log(cell->effect), least = log(context->least_effect);
    double half = (log(cell->high) - log(cell->low)) / 2;
    int needed = el_regress_blocks_needed(context->cells, context->level);
    if (isnan(half)) return needed - (int)cell->n_base;
    double room = effect < least ? least - effect : effect / 2;
    double blocks = fmax(ceil(n * pow(half / room, 2)), needed);
    if (blocks <= n) blocks = n + 2;
    return blocks <= EL_SIGNED_RANK_MAX ? (int)(blocks - n) : 0;
}

static void say_inconclusive(struct el_regress_cell *cell, const struct el_regress_context *context)
{
    int needed = el_regress_blocks_needed(context->cells, context->level);
    cell->more = more_blocks(cell, context);
    if ((int)cell->n_base < needed)
        snprintf(cell->reason, sizeof cell->reason,
                 "no effect, however large, can be told from chance by so few blocks: %d are needed, %zu were run",
                 needed, cell->n_base);
    else if (cell->floor > fmax(EL_REGRESS_NOISY, context->least_effect))
        snprintf(cell->reason, sizeof cell->reason,
                 "the same program differs from itself by %.1f %%: this machine is "
                 "too noisy",
                 el_regress_pct(cell->floor));
    else if (cell->more > 0)
        snprintf(cell->reason, sizeof cell->reason, "between %+.1f and %+.1f %%: about %d more blocks would tell",
                 el_regress_pct(cell->low), el_regress_pct(cell->high), cell->more);
    else
        snprintf(cell->reason, sizeof cell->reason,
                 "between %+.1f and %+.1f %%: more blocks than %d would be needed to tell", el_regress_pct(cell->low),
                 el_regress_pct(cell->high), EL_SIGNED_RANK_MAX);
}

void el_regress_tell_paired(struct el_regress_cell *cell, double p_better, const struct el_regress_context *context)
{
    bool quiet = cell->floor <= fmax(EL_REGRESS_NOISY, context->least_effect);
    if (cell->p_adjusted < context->level && cell->effect >= cell->floor && cell->low > 1) {
        cell->verdict = EL_CELL_REGRESSION;
        snprintf(cell->reason, sizeof cell->reason, "worse by %.1f %% (95 %%: %.1f to %.1f)",
                 el_regress_pct(cell->effect), el_regress_pct(cell->low), el_regress_pct(cell->high));
    } else if (p_better < context->level && cell->effect <= 1 / cell->floor && cell->high < 1) {
        cell->verdict = EL_CELL_IMPROVEMENT;
        snprintf(cell->reason, sizeof cell->reason, "better by %.1f %% (95 %%: %.1f to %.1f)",
                 -el_regress_pct(cell->effect), -el_regress_pct(cell->high), -el_regress_pct(cell->low));
    } else if (quiet && cell->high < cell->floor) {
        cell->verdict = EL_CELL_SAME;
    } else {
        cell->verdict = EL_CELL_INCONCLUSIVE;
        say_inconclusive(cell, context);
    }
}
