/* Past sessions into a level.
 *
 * The prediction interval of one more value about the mean of K is t s sqrt(1 + 1/K). Where only n of the K are of the
 * level, the mean has the variance 1/n instead of 1/K, and as the scatter is that about E means, it is the squares over
 * K - E instead of K - 1: values are therefore stretched about the level by sqrt((1 + 1/n) / (1 + 1/K) * (K - 1) / (K -
 * E)), and t is to be that of K - E degrees of freedom. An era of one session has no scatter: its residual is 0 by
 * construction, and it would only fill a place. */
#include "bench/regress/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/stats/stats.h"

/* Of sorted values, between neighbours in proportion. */
static double quartile(const double *sorted, size_t n, double q)
{
    double place = q * (double)(n - 1);
    size_t below = (size_t)place, above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

void el_level_far(const double *values, size_t n, bool *far)
{
    memset(far, 0, n * sizeof *far);
    double *sorted = n < EL_LEVEL_SESSIONS_MIN ? NULL : malloc(n * sizeof *sorted);
    if (!sorted) return;
    for (size_t i = 0; i < n; i++) sorted[i] = log(values[i]);
    el_stats_sort(sorted, n);
    double low = quartile(sorted, n, 0.25), high = quartile(sorted, n, 0.75);
    double reach = fmax(3 * (high - low), log(EL_LEVEL_FLOOR_RATIO));
    for (size_t i = 0; i < n; i++) far[i] = log(values[i]) > high + reach || log(values[i]) < low - reach;
    free(sorted);
}

/* What counts, newest first: each session's distance from its own era's level. */
struct gathered {
    double residuals[EL_LEVEL_SESSIONS_MAX], centre;
    size_t n, eras; /* eras: those that are among the residuals */
};

/* [n] of one era. */
static void gather_era(const double *values, const bool *far, size_t n, struct gathered *g)
{
    double sum = 0, counted = 0;
    for (size_t i = 0; i < n; i++) {
        sum += far[i] ? 0 : log(values[i]);
        counted += !far[i];
    }
    double centre = sum / counted; /* NAN for none */
    if (!g->eras++) g->centre = centre;
    for (size_t i = n; i > 0; i--)
        if (!far[i - 1]) g->residuals[g->n++] = log(values[i - 1]) - centre;
}

/* The last era, and where that is short as many before it as there is room for. */
static void gather(const double *values, const bool *accepted, size_t n, struct gathered *g, struct el_level *level)
{
    bool far[EL_LEVEL_SESSIONS_MAX];
    for (size_t end = n; end > 0 && g->n + 1 < EL_LEVEL_SESSIONS_MAX && level->n_era < EL_LEVEL_SESSIONS_MIN;) {
        /* As many as there is room for; an accepted session is an era's first. */
        size_t begin = end - 1, most = EL_LEVEL_SESSIONS_MAX - g->n;
        while (begin > 0 && end - begin < most && !accepted[begin]) begin--;
        const double *part = values + begin;
        size_t length = end - begin;
        level->n_eras++;
        if (end == n || length > 1) {
            el_level_far(part, length, far);
            gather_era(part, far, length, g);
        }
        if (end == n) {
            level->n_era = g->n;
            level->n_far = length - g->n;
            level->last_far = far[length - 1];
        }
        end = begin;
    }
}

void el_level_of(const double *values, const bool *accepted, size_t n, struct el_level *level_p)
{
    struct el_level level = {.centre = NAN, .sd_ratio = NAN};
    struct gathered g = {.centre = NAN};
    gather(values, accepted, n, &g, &level);
    double k = (double)g.n, of_level = (double)level.n_era, stretch = 1, squares = 0;
    for (size_t i = 0; i < g.n; i++) squares += g.residuals[i] * g.residuals[i];
    level.df = g.n - g.eras;
    if (level.df > 0) {
        level.sd_ratio = sqrt(squares / (double)level.df);
        stretch = sqrt((1 + 1 / of_level) / (1 + 1 / k) * (k - 1) / (double)level.df);
    }
    for (size_t i = 0; i < g.n; i++) level.values[i] = exp(g.centre + stretch * g.residuals[g.n - 1 - i]);
    level.n = g.n;
    level.centre = g.n ? exp(g.centre) : NAN;
    level.needs = level.df < EL_LEVEL_DF_MIN ? EL_LEVEL_DF_MIN - level.df + (g.n == 0) : 0;
    *level_p = level;
}
