/* The gate's answer as a table, and in a sentence. */
#include <math.h>
#include <string.h>

#include "bench/regress/formats.h"
#include "bench/report/text.h"
#include "bench/stats/stats.h"

enum { NAME_COLUMNS = 26, COLUMNS = 110, TEXT_BYTES = 512, EXACT_ROWS_MAX = 6 };

const char *el_regress_verdict_text(enum el_cell_verdict verdict)
{
    static const char *const words[] = {[EL_CELL_SAME] = "same",
                                        [EL_CELL_REGRESSION] = "REGRESSION",
                                        [EL_CELL_IMPROVEMENT] = "better",
                                        [EL_CELL_INCONCLUSIVE] = "not told",
                                        [EL_CELL_UNREADABLE] = "UNREADABLE",
                                        [EL_CELL_NO_BASELINE] = "no baseline"};
    return words[verdict];
}

double el_regress_figure(const double *x, size_t n)
{
    return n == 0 ? NAN : el_stats_median(x, n);
}

/* "+9.8 %" of 1.098; "-" of NAN. */
static const char *pct(double ratio, bool with_sign, char text[EL_FIGURE_BYTES])
{
    if (isnan(ratio)) return "-";
    snprintf(text, EL_FIGURE_BYTES, with_sign ? "%+.1f %%" : "%.1f %%", 100 * (ratio - 1));
    return text;
}

/* The table's columns are for nine digits. */
static const char *figure(double value, char text[EL_FIGURE_BYTES])
{
    if (fabs(value) < 1e9 || isnan(value)) return el_text_figure(value, text);
    snprintf(text, EL_FIGURE_BYTES, "%.4g", value);
    return text;
}

static const char *probability(double p, char text[EL_FIGURE_BYTES])
{
    if (isnan(p)) return "-";
    snprintf(text, EL_FIGURE_BYTES, p < 0.001 ? "%.0e" : "%.3f", p);
    return text;
}

static void put_row(const struct el_regress_cell *cell, FILE *out)
{
    char name[EL_CELL_NAME_BYTES + EL_CELL_UNIT_BYTES + 4], t[7][EL_FIGURE_BYTES], interval[2 * EL_FIGURE_BYTES] = "-";
    snprintf(name, sizeof name, "%s%s%s", cell->name, *cell->unit ? ", " : "", cell->unit);
    if (!isnan(cell->low))
        snprintf(interval, sizeof interval, "%+.1f .. %+.1f", 100 * (cell->low - 1), 100 * (cell->high - 1));
    if (strlen(name) >= NAME_COLUMNS) fprintf(out, "%s\n", name);
    fprintf(out, "%-*s%12s%12s%9s%15s%8s%7s%7s  %s\n", NAME_COLUMNS, strlen(name) < NAME_COLUMNS ? name : "",
            figure(el_regress_figure(cell->base, cell->n_base), t[0]),
            figure(el_regress_figure(cell->head, cell->n_head), t[1]), pct(cell->effect, true, t[2]), interval,
            probability(cell->p_adjusted, t[3]), cell->kind == EL_CELL_EXACT ? "exact" : pct(cell->floor, false, t[4]),
            pct(cell->detectable, false, t[5]), el_regress_verdict_text(cell->verdict));
}

static size_t count(const struct el_regress_set *set, enum el_cell_verdict verdict)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) n += set->cells[i].verdict == verdict;
    return n;
}

/* The largest of the effects that would have been found; NAN where there is one of which no effect would. */
static double sees(const struct el_regress_set *set)
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
    char after[64], seen[128] = "";
    size_t regressions = count(set, EL_CELL_REGRESSION), untold = count(set, EL_CELL_INCONCLUSIVE);
    double most = sees(set);
    say_after(set, after, sizeof after);
    if (most > 1)
        snprintf(seen, sizeof seen, " An effect of %.1f %% would have been found in 9 of 10 such runs.",
                 100 * (most - 1));
    switch (el_regress_outcome(set)) {
    case EL_REGRESS_NONE:
        snprintf(text, bytes, "No regression in %zu cell%s%s.%s", set->n, set->n == 1 ? "" : "s", after, seen);
        return;
    case EL_REGRESS_FOUND:
        snprintf(text, bytes, "Regression in %zu of %zu cells%s.%s", regressions, set->n, after,
                 untold && !set->last_look ? " The others were not waited for." : "");
        return;
    case EL_REGRESS_INCONCLUSIVE:
        snprintf(text, bytes, "Inconclusive: %zu of %zu cells cannot be told%s.%s%s%s", untold, set->n, after,
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

void el_regress_print(const struct el_regress_set *set, FILE *out)
{
    char text[TEXT_BYTES];
    fprintf(out, "%-*s%12s%12s%9s%15s%8s%7s%7s  %s\n", NAME_COLUMNS, "cell", "base", "head", "worse by", "95 %", "p",
            "floor", "sees", "verdict");
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
    el_regress_sentence(set, text, sizeof text);
    el_text_wrap(text, "", "", COLUMNS, out);
}
