/* The gate's answer as a table, and in a sentence. */
#include <math.h>
#include <string.h>

#include "bench/base/text.h"
#include "bench/regress/formats.h"
#include "bench/stats/stats.h"

enum {
    NAME_COLUMNS = 26,
    COLUMNS = 110,
    TEXT_BYTES = 512,
    EXACT_ROWS_MAX = 6,
    INTERVAL_BYTES = 2 * EL_FIGURE_BYTES + 8
};

const char *el_regress_verdict_text(enum el_cell_verdict verdict)
{
    static const char *const words[] = {[EL_CELL_SAME] = "same",
                                        [EL_CELL_REGRESSION] = "REGRESSION",
                                        [EL_CELL_IMPROVEMENT] = "better",
                                        [EL_CELL_INCONCLUSIVE] = "inconclusive",
                                        [EL_CELL_UNREADABLE] = "UNREADABLE",
                                        [EL_CELL_NO_BASELINE] = "no baseline"};
    return words[verdict];
}

static double median(const double *x, size_t n)
{
    return n == 0 ? NAN : el_stats_median(x, n);
}

/* A run's launches as its own table has them: the geometric mean. */
static double centre(const struct el_regress_cell *cell, const double *x, size_t n)
{
    return cell->kind == EL_CELL_SESSION ? el_stats_geometric_mean(x, n) : median(x, n);
}

void el_regress_figures(const struct el_regress_cell *cell, double *base_p, double *head_p)
{
    double ratio = cell->better == EL_BETTER_HIGHER ? 1 / cell->effect : cell->effect;
    *base_p = centre(cell, cell->base, cell->n_base);
    *head_p = centre(cell, cell->head, cell->n_head);
    if (cell->kind == EL_CELL_EXACT || isnan(ratio)) return;
    if (cell->kind == EL_CELL_HISTORY)
        *base_p = *head_p / ratio;
    else
        *head_p = *base_p * ratio;
}

bool el_regress_medians_disagree(const struct el_regress_cell *cell, double *base_p, double *head_p)
{
    *base_p = median(cell->base, cell->n_base);
    *head_p = median(cell->head, cell->n_head);
    double worse = cell->better == EL_BETTER_HIGHER ? *base_p - *head_p : *head_p - *base_p;
    return cell->kind == EL_CELL_PAIRED && worse * (cell->effect - 1) < 0; /* false of NAN */
}

/* "+9.8" of 1.098, "+130" of 2.3, "29 times" of 29: as many digits as mean something. Returns whether it is in
 * percent. */
static bool put_pct(double ratio, bool with_sign, char text[EL_FIGURE_BYTES])
{
    double pct = 100 * (ratio - 1), size = fabs(pct);
    if (size >= 1000)
        snprintf(text, EL_FIGURE_BYTES, ratio < 1e5 ? "%.0f times" : "%.0e times", ratio);
    else
        snprintf(text, EL_FIGURE_BYTES, with_sign ? "%+.*f" : "%.*f", size >= 99.95 ? 0 : 1, pct);
    return size < 1000;
}

/* "-" of NAN. */
static const char *pct(double ratio, bool with_sign, char text[EL_FIGURE_BYTES])
{
    if (isnan(ratio)) return "-";
    if (put_pct(ratio, with_sign, text)) snprintf(text + strlen(text), EL_FIGURE_BYTES - strlen(text), " %%");
    return text;
}

static const char *interval(const struct el_regress_cell *cell, char text[INTERVAL_BYTES])
{
    char low[EL_FIGURE_BYTES], high[EL_FIGURE_BYTES];
    if (isnan(cell->low)) return "-";
    bool low_in_pct = put_pct(cell->low, true, low), high_in_pct = put_pct(cell->high, true, high);
    if (!low_in_pct && !high_in_pct) low[strcspn(low, " ")] = 0; /* "28 .. 30 times" */
    snprintf(text, INTERVAL_BYTES, "%s .. %s", low, high);
    return text;
}

/* An exact one with all its digits, and of others no more than a column has room for. */
static const char *figure(const struct el_regress_cell *cell, double value, char text[EL_FIGURE_BYTES])
{
    bool exact = cell->kind == EL_CELL_EXACT;
    if (isnan(value) || fabs(value) < (exact ? 1e12 : 1e9)) return el_text_figure(value, text);
    snprintf(text, EL_FIGURE_BYTES, exact && fabs(value) < 0x1p53 ? "%.0f" : "%.4g", value);
    return text;
}

static const char *probability(double p, char text[EL_FIGURE_BYTES])
{
    if (isnan(p)) return "-";
    snprintf(text, EL_FIGURE_BYTES, p < 0.001 ? "%.0e" : "%.3f", p);
    return text;
}

/* Where a row's cells end, the verdict's left out. */
static const int ENDS[] = {38, 50, 59, 74, 82, 89, 96};
enum { CELLS = sizeof ENDS / sizeof ENDS[0] };

static void put_cells(const char *name, const char *const texts[CELLS], const char *verdict, FILE *out)
{
    int at = fprintf(out, "%s", name);
    for (int i = 0; i < CELLS; i++) el_text_column(texts[i], ENDS[i], &at, out);
    fprintf(out, "  %s\n", verdict);
}

static void put_row(const struct el_regress_cell *cell, FILE *out)
{
    char name[EL_CELL_NAME_BYTES + EL_CELL_UNIT_BYTES + 24], t[6][EL_FIGURE_BYTES], wide[INTERVAL_BYTES];
    snprintf(name, sizeof name, "%s%s%s%s", cell->name, *cell->unit ? ", " : "", cell->unit,
             cell->better == EL_BETTER_HIGHER ? " (more is better)" : "");
    double base, head;
    el_regress_figures(cell, &base, &head);
    const char *const texts[CELLS] = {figure(cell, base, t[0]),
                                      figure(cell, head, t[1]),
                                      pct(cell->effect, true, t[2]),
                                      interval(cell, wide),
                                      probability(cell->p_adjusted, t[3]),
                                      cell->kind == EL_CELL_EXACT ? "exact" : pct(cell->floor, false, t[4]),
                                      pct(cell->detectable, false, t[5])};
    bool fits = strlen(name) < NAME_COLUMNS;
    if (!fits) fprintf(out, "%s\n", name);
    put_cells(fits ? name : "", texts, el_regress_verdict_text(cell->verdict), out);
}

static size_t count(const struct el_regress_set *set, enum el_cell_verdict verdict)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) n += set->cells[i].verdict == verdict;
    return n;
}

/* The largest of the cells' minimal detectable effects; NAN where one of them detects none. */
static double detects(const struct el_regress_set *set)
{
    double most = 1;
    for (size_t i = 0; i < set->n; i++) {
        if (set->cells[i].kind == EL_CELL_EXACT) continue;
        if (isnan(set->cells[i].detectable)) return NAN;
        most = fmax(most, set->cells[i].detectable);
    }
    return most;
}

static void say_after(const struct el_regress_set *set, char *text, size_t bytes)
{
    text[0] = 0;
    if (set->blocks > 0) snprintf(text, bytes, ", after %d block%s", set->blocks, set->blocks == 1 ? "" : "s");
}

void el_regress_sentence(const struct el_regress_set *set, char *text, size_t bytes)
{
    char after[64], seen[128] = "", least[EL_FIGURE_BYTES];
    size_t regressions = count(set, EL_CELL_REGRESSION), open = count(set, EL_CELL_INCONCLUSIVE);
    double most = detects(set);
    say_after(set, after, sizeof after);
    if (most > 1)
        snprintf(seen, sizeof seen, " This run could reliably detect slowdowns of %s or more.",
                 pct(most, false, least));
    switch (el_regress_outcome(set)) {
    case EL_REGRESS_NONE:
        snprintf(text, bytes, "No regression in %zu cell%s%s.%s", set->n, set->n == 1 ? "" : "s", after, seen);
        return;
    case EL_REGRESS_FOUND:
        snprintf(text, bytes, "Regression in %zu of %zu cells%s.%s", regressions, set->n, after,
                 open && !set->last_analysis ? " The others were not waited for." : "");
        return;
    case EL_REGRESS_INCONCLUSIVE:
        snprintf(text, bytes, "Inconclusive: %zu of %zu cell%s%s.%s%s%s", open, set->n, set->n == 1 ? "" : "s", after,
                 *set->environment ? " " : "", set->environment, seen);
        return;
    case EL_REGRESS_NO_BASELINE:
        snprintf(text, bytes, "No baseline that fits, for %zu of %zu cells.", count(set, EL_CELL_NO_BASELINE), set->n);
        return;
    case EL_REGRESS_USE:
        snprintf(text, bytes, "Unreadable: %zu of %zu cells cannot be compared%s.", count(set, EL_CELL_UNREADABLE),
                 set->n, after);
        return;
    }
}

/* Many figures without noise, all as they were, are one line. */
static bool folded(const struct el_regress_set *set, const struct el_regress_cell *cell)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++)
        n += set->cells[i].kind == EL_CELL_EXACT && set->cells[i].verdict == EL_CELL_SAME;
    return n > EXACT_ROWS_MAX && cell->kind == EL_CELL_EXACT && cell->verdict == EL_CELL_SAME;
}

/* Of pairs the effect is what neighbours differ by, and two medians may differ the other way. */
static void put_medians(const struct el_regress_cell *cell, FILE *out)
{
    char text[TEXT_BYTES], t[2][EL_FIGURE_BYTES];
    double base, head;
    if (!el_regress_medians_disagree(cell, &base, &head)) return;
    snprintf(text, sizeof text,
             "%s: the slowdown is that within blocks, and head is base times it; the medians of each side, %s and %s, "
             "differ the other way",
             cell->name, figure(cell, base, t[0]), figure(cell, head, t[1]));
    el_text_wrap(text, "", "  ", COLUMNS, out);
}

void el_regress_print(const struct el_regress_set *set, FILE *out)
{
    char text[TEXT_BYTES];
    static const char *const heads[CELLS] = {"base", "head", "slowdown", "95 %", "p", "floor", "detects"};
    put_cells("cell", heads, "verdict", out);
    size_t n_folded = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (folded(set, &set->cells[i]))
            n_folded++;
        else
            put_row(&set->cells[i], out);
    }
    if (n_folded > 0) fprintf(out, "and %zu exact cells (bytes, memory by tag, operations), all the same\n", n_folded);
    fputc('\n', out);
    for (size_t i = 0; i < set->n; i++) {
        const struct el_regress_cell *cell = &set->cells[i];
        if (!cell->reason[0]) continue;
        snprintf(text, sizeof text, "%s: %s", cell->name, cell->reason);
        el_text_wrap(text, "", "  ", COLUMNS, out);
    }
    for (size_t i = 0; i < set->n; i++) put_medians(&set->cells[i], out);
    el_regress_sentence(set, text, sizeof text);
    el_text_wrap(text, "", "", COLUMNS, out);
}
