/* The verdicts of a set: which cells can be judged at all, what each is by its kind, and what the set comes to. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/text.h"
#include "bench/regress/rule.h"
#include "bench/stats/stats.h"
#include "runtime/base/utf8.h"

/* The scale the effect is on: 1 where more is worse, -1 where less is. */
static double regress_sign(const struct el_regress_cell *cell)
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

/* Cells of pairs: base and head ran next to each other, in random order.
 *
 * Three things make a regression: it is significant by signed ranks, it is at least as large as the floor, and its
 * interval lies above 1. The floor keeps a tiny difference that many blocks make significant from failing a gate, and
 * it rises with the machine's noise: launches of one program in neighbouring blocks differ by that noise alone. */

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

static void regress_measure_paired(struct el_regress_cell *cell, double *p_better_p,
                                   const struct el_regress_context *context)
{
    double differences[EL_SIGNED_RANK_MAX], own_half = own_half_of(cell);
    size_t n = cell->n_base;
    for (size_t i = 0; i < n; i++) differences[i] = regress_sign(cell) * log(cell->head[i] / cell->base[i]);
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

static double regress_pct(double ratio);

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
                 regress_pct(cell->floor), advice);
    else
        snprintf(cell->reason, sizeof cell->reason, "between %+.1f and %+.1f %%: %s", regress_pct(cell->low),
                 regress_pct(cell->high), advice);
}

static bool regress_settle(struct el_regress_cell *cell, bool worse, bool better, bool same);

static void regress_decide_paired(struct el_regress_cell *cell, double p_better,
                                  const struct el_regress_context *context)
{
    bool quiet = cell->floor <= fmax(EL_REGRESS_NOISY, context->least_effect);
    if (!regress_settle(cell, cell->p_adjusted < context->level && cell->effect >= cell->floor && cell->low > 1,
                        p_better < context->level && cell->effect <= 1 / cell->floor && cell->high < 1,
                        quiet && cell->high < cell->floor))
        say_inconclusive(cell, context);
}

/* Cells whose sides did not run interleaved: exact figures, and a history of sessions.
 *
 * Sessions of one machine differ by more than their launches do (another load, another temperature, other pages), and
 * nothing in one of them says by how much. A history holds that very spread. */

/* 5 of 1.05. */
static double regress_pct(double ratio)
{
    return 100 * (ratio - 1);
}

/* The verdict, by the first that applies, with the reason "worse by 5.2 % (95 %: 4.1 to 6.3)" of an effect. false:
 * inconclusive, and the reason is the caller's to give. */
static bool regress_settle(struct el_regress_cell *cell, bool worse, bool better, bool same)
{
    double pct = regress_pct(cell->effect), low = regress_pct(cell->low), high = regress_pct(cell->high);
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

/* Not tested: no p to adjust. */
static void regress_decide_exact(struct el_regress_cell *cell, double no_p, const struct el_regress_context *context)
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
    double change = alike(base, head) ? 0 : regress_sign(cell) * (head - base);
    if (base > 0 && head > 0) cell->effect = change == 0 ? 1 : pow(head / base, regress_sign(cell));
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

static void regress_measure_history(struct el_regress_cell *cell, double *p_better_p,
                                    const struct el_regress_context *context)
{
    struct past past = past_of(cell);
    double away = regress_sign(cell) * (log(cell->head[0]) - past.mean), df = (double)past.df;
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
    if (copy.n > 0) regress_measure_history(&cell, &p_better, &context);
    return cell.detectable;
}

static void regress_decide_history(struct el_regress_cell *cell, double p_better,
                                   const struct el_regress_context *context)
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
    } else if (!regress_settle(cell, cell->p_adjusted < context->level && cell->effect >= context->least_effect,
                               p_better < context->level && cell->effect <= 1 / context->least_effect,
                               cell->is_level || cell->detectable <= detectable_max)) {
        snprintf(cell->reason, sizeof cell->reason,
                 "sessions differ so much that only slowdowns of %.0f %% are detected: compare with --ab instead",
                 regress_pct(cell->detectable));
    }
}

/* A kind's cells are one family. One that is tested has `measure`, whose p is adjusted before it is decided. */
static const struct kind {
    enum el_cell_kind kind;
    void (*measure)(struct el_regress_cell *cell, double *p_better_p, const struct el_regress_context *context);
    void (*decide)(struct el_regress_cell *cell, double p_better, const struct el_regress_context *context);
} kinds[] = {
    {EL_CELL_PAIRED, regress_measure_paired, regress_decide_paired},
    {EL_CELL_HISTORY, regress_measure_history, regress_decide_history},
    {EL_CELL_EXACT, NULL, regress_decide_exact},
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
