/* Cells of pairs: base and head ran next to each other, in random order.
 *
 * Three things make a regression: it is significant by signed ranks, it is at least as large as the floor, and its
 * interval lies above 1. The floor keeps a tiny difference that many blocks make significant from failing a gate, and
 * it rises with the machine's noise: launches of one program in neighbouring blocks differ by that noise alone. */
#include <math.h>
#include <stdio.h>

#include "bench/regress/rule.h"
#include "bench/stats/stats.h"

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

/* By how much a program differs from itself: half the interval of differences of launches in blocks 1 and 2, 3 and 4,
 * ...; base's and then head's. With an odd number of blocks the last one is left over. They are as many as there are
 * blocks, and of the same scatter as head minus base. NAN: too few. */
static double own_half_of(const struct el_regress_cell *cell)
{
    double differences[EL_SIGNED_RANK_MAX];
    size_t n = 0;
    for (size_t i = 0; i + 1 < cell->n_base; i += 2) {
        differences[n++] = log(cell->base[i + 1] / cell->base[i]);
        differences[n++] = log(cell->head[i + 1] / cell->head[i]);
    }
    struct el_interval i = el_stats_signed_rank_interval(differences, n, EL_REGRESS_CONFIDENCE);
    return i.valid ? (i.high - i.low) / 2 : NAN;
}

/* What a run like this finds in 90 of 100: beyond the floor, and beyond what is significant, by so much of
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
    double differences[EL_SIGNED_RANK_MAX], own_half = own_half_of(cell);
    size_t n = cell->n_base;
    for (size_t i = 0; i < n; i++) differences[i] = el_regress_sign(cell) * log(cell->head[i] / cell->base[i]);
    struct el_signed_rank test = el_stats_signed_rank(differences, n);
    struct el_interval i = el_stats_signed_rank_interval(differences, n, EL_REGRESS_CONFIDENCE);
    cell->effect = exp(i.centre);
    cell->low = exp(i.low);
    cell->high = exp(i.high);
    cell->p = test.p_above;
    *p_better_p = test.p_below;
    cell->floor = exp(fmax(log(context->least_effect), own_half)); /* NAN does not count with fmax */
    cell->detectable = detectable(own_half, (i.high - i.low) / 2, n, context);
}

/* Blocks until something that is `half` wide now, at 95 %, has shrunk below `room`, in four of five runs: `times` its
 * standard error is what has to fit. */
static double blocks_for(double n, double half, double room, double times)
{
    static const double EIGHTY = 0.8416;
    double t95 = el_stats_t_quantile(0.975, n - 1);
    return room > 0 ? n * pow(half / t95 * (times + EIGHTY) / room, 2) : INFINITY;
}

/* For an effect (a logarithm) to become significant, or if it is small for its interval to fall below what counts. */
static double blocks_to_decide(double n, double half, double own_half, double effect,
                               const struct el_regress_context *context)
{
    double least = log(context->least_effect), quiet = log(fmax(EL_REGRESS_NOISY, context->least_effect));
    double share = context->level / (double)context->cells;
    double as_worse = blocks_for(n, half, fmax(effect, least), el_stats_t_quantile(1 - share, n - 1));
    double as_same = blocks_for(n, half, least - effect, el_stats_t_quantile(0.975, n - 1));
    return ceil(fmin(as_worse, fmax(as_same, n * pow(own_half / quiet, 2))));
}

/* How many more blocks would decide, if all went on as it was: half-widths shrink with the root of the blocks.
 * Intervals of few blocks are lopsided, since an outlier or two move one end: both sides and what the program differs
 * from itself are estimates of one scatter, and the middle one is taken. Where an effect that looks small would need
 * too many, it may as well be larger by its own standard error. 0: more than are allowed. */
static int more_blocks(const struct el_regress_cell *cell, double own_half, const struct el_regress_context *context)
{
    double n = (double)cell->n_base, effect = log(cell->effect);
    int needed = el_regress_blocks_needed(context->cells, context->level);
    if (isnan(cell->high) || isnan(own_half)) return needed > (int)n ? needed - (int)n : 2;
    double below = effect - log(cell->low), above = log(cell->high) - effect;
    double half = fmax(fmin(below, above), fmin(fmax(below, above), own_half));
    double blocks = blocks_to_decide(n, half, own_half, effect, context);
    if (blocks > EL_SIGNED_RANK_MAX) blocks = blocks_to_decide(n, half, own_half, effect + half / 2, context);
    blocks = fmax(blocks, needed);
    if (blocks <= n) blocks = n + 2;
    return blocks <= EL_SIGNED_RANK_MAX ? (int)(blocks - n) : 0;
}

static void say_inconclusive(struct el_regress_cell *cell, const struct el_regress_context *context)
{
    int needed = el_regress_blocks_needed(context->cells, context->level);
    char advice[80] = "";
    cell->more = more_blocks(cell, own_half_of(cell), context);
    if (cell->more > 0)
        snprintf(advice, sizeof advice, "about %d more block%s would decide", cell->more, cell->more == 1 ? "" : "s");
    else
        snprintf(advice, sizeof advice, "even %d blocks may not decide", EL_SIGNED_RANK_MAX);
    if ((int)cell->n_base < needed)
        snprintf(cell->reason, sizeof cell->reason,
                 "significance cannot be reached with so few blocks: %d are needed, %zu were run", needed,
                 cell->n_base);
    else if (cell->floor > fmax(EL_REGRESS_NOISY, context->least_effect))
        snprintf(cell->reason, sizeof cell->reason,
                 "this machine is too noisy: the same program differs from itself by %.1f %%; %s",
                 el_regress_pct(cell->floor), advice);
    else
        snprintf(cell->reason, sizeof cell->reason, "between %+.1f and %+.1f %%: %s", el_regress_pct(cell->low),
                 el_regress_pct(cell->high), advice);
}

void el_regress_decide_paired(struct el_regress_cell *cell, double p_better, const struct el_regress_context *context)
{
    bool quiet = cell->floor <= fmax(EL_REGRESS_NOISY, context->least_effect);
    if (!el_regress_settle(cell, cell->p_adjusted < context->level && cell->effect >= cell->floor && cell->low > 1,
                           p_better < context->level && cell->effect <= 1 / cell->floor && cell->high < 1,
                           quiet && cell->high < cell->floor))
        say_inconclusive(cell, context);
}
