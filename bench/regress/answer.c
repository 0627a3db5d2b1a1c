/* What all forms of the answer share: words of verdicts, rows, the sentence. The answer as a person reads it; and the
 * record. */
#include "bench/regress/answer.h"

#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/machine/environment.h"
#include "bench/record/record.h"
#include "bench/stats/stats.h"

enum { COLUMNS = EL_REPORT_COLUMNS, EXACT_ROWS_MAX = 6 };

static const struct el_answer_verdict verdicts[] = {
    [EL_CELL_SAME] = {"same", "same", NULL, NULL},
    [EL_CELL_REGRESSION] = {"regression", "REGRESSION", "failure", "error"},
    [EL_CELL_IMPROVEMENT] = {"improvement", "better", NULL, NULL},
    [EL_CELL_INCONCLUSIVE] = {"inconclusive", "inconclusive", "skipped", "warning"},
    [EL_CELL_UNREADABLE] = {"unreadable", "UNREADABLE", "error", "error"},
    [EL_CELL_NO_BASELINE] = {"no baseline", "no baseline", "error", "warning"},
};

const struct el_answer_verdict *el_answer_verdict(enum el_cell_verdict verdict)
{
    return &verdicts[verdict];
}

/* ---- rows ---- */

void el_answer_figures(const struct el_regress_cell *cell, double *base_p, double *head_p)
{
    double ratio = cell->better == EL_BETTER_HIGHER ? 1 / cell->effect : cell->effect;
    *base_p = el_stats_median(cell->base, cell->n_base);
    *head_p = el_stats_median(cell->head, cell->n_head);
    if (cell->kind == EL_CELL_EXACT || isnan(ratio)) return;
    if (cell->kind == EL_CELL_HISTORY)
        *base_p = *head_p / ratio;
    else
        *head_p = *base_p * ratio;
}

/* An exact one with all its digits, and of others no more than a column has room for. */
static const char *figure_text(const struct el_regress_cell *cell, double value, char text[EL_FIGURE_BYTES])
{
    bool exact = cell->kind == EL_CELL_EXACT;
    if (isnan(value) || fabs(value) < (exact ? 1e12 : 1e9)) return el_text_figure(value, text);
    snprintf(text, EL_FIGURE_BYTES, exact && fabs(value) < 0x1p53 ? "%.0f" : "%.4g", value);
    return text;
}

/* "+9.8" of 1.098, "+130" of 2.3, "+3e+04" of 280: as many digits as mean something, and a column has room for. */
static const char *pct_text(double ratio, bool with_sign, const char *unit, char text[EL_FIGURE_BYTES])
{
    double pct = 100 * (ratio - 1), size = fabs(pct);
    if (isnan(ratio))
        snprintf(text, EL_FIGURE_BYTES, "-");
    else if (size < 9999.5)
        snprintf(text, EL_FIGURE_BYTES, with_sign ? "%+.*f%s" : "%.*f%s", size >= 99.95 ? 0 : 1, pct, unit);
    else
        snprintf(text, EL_FIGURE_BYTES, with_sign ? "%+.0e%s" : "%.0e%s", pct, unit + strspn(unit, " "));
    return text;
}

const struct el_column el_answer_columns[] = {EL_NAME("cell", 22, "cell"),
                                              EL_TEXT("base", 10, "base"),
                                              EL_TEXT("head", 10, "head"),
                                              EL_TEXT("slowdown", 9, "slowdown"),
                                              EL_TEXT("95 %", 15, "interval"),
                                              EL_TEXT("p", 7, "p"),
                                              EL_TEXT("floor", 6, "floor"),
                                              EL_TEXT("detects", 7, "detects"),
                                              {.head = "verdict", .gap = 2, .width = -12, .path = "verdict"},
                                              EL_NO_MORE};

json_t *el_answer_row(const struct el_regress_cell *cell)
{
    char t[6][EL_FIGURE_BYTES], interval[2 * EL_FIGURE_BYTES + 4] = "-", p[EL_FIGURE_BYTES] = "-";
    double base, head;
    el_answer_figures(cell, &base, &head);
    if (!isnan(cell->low))
        snprintf(interval, sizeof interval, "%s .. %s", pct_text(cell->low, true, "", t[0]),
                 pct_text(cell->high, true, "", t[1]));
    if (!isnan(cell->p_adjusted)) snprintf(p, sizeof p, cell->p_adjusted < 0.001 ? "%.0e" : "%.3f", cell->p_adjusted);
    return json_pack("{s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "cell", el_json_string(cell->name), "base",
                     figure_text(cell, base, t[0]), "head", figure_text(cell, head, t[1]), "slowdown",
                     pct_text(cell->effect, true, " %", t[2]), "interval", interval, "p", p, "floor",
                     cell->kind == EL_CELL_EXACT ? "exact" : pct_text(cell->floor, false, " %", t[4]), "detects",
                     pct_text(cell->detectable, false, " %", t[5]), "verdict", verdicts[cell->verdict].table);
}

/* With what its first cell needs beside the name. */
static void put_row(const struct el_table *table, const struct el_regress_cell *cell)
{
    json_t *row = el_answer_row(cell);
    el_json_put(row, "cell",
                json_sprintf("%s%s%s%s", cell->name, *cell->unit ? ", " : "", cell->unit,
                             cell->better == EL_BETTER_HIGHER ? " (more is better)" : ""));
    el_table_row(table, EL_TABLE_PLAIN, row);
    json_decref(row);
}

static bool same_and_exact(const struct el_regress_cell *cell)
{
    return cell->kind == EL_CELL_EXACT && cell->verdict == EL_CELL_SAME;
}

void el_answer_print(const struct el_regress_set *set, FILE *out)
{
    const struct el_table table = {.columns = el_answer_columns, .out = out};
    char sentence[512];
    size_t n_same = 0;
    for (size_t i = 0; i < set->n; i++) n_same += same_and_exact(&set->cells[i]);
    bool folded = n_same > EXACT_ROWS_MAX;
    el_table_heads(&table, EL_TABLE_PLAIN);
    for (size_t i = 0; i < set->n; i++)
        if (!folded || !same_and_exact(&set->cells[i])) put_row(&table, &set->cells[i]);
    if (folded) fprintf(out, "and %zu exact cells (bytes, memory by tag, operations), all the same\n", n_same);
    fputc('\n', out);
    for (size_t i = 0; i < set->n; i++)
        if (set->cells[i].reason[0])
            el_text_say("", "  ", COLUMNS, out, "%s: %s", set->cells[i].name, set->cells[i].reason);
    el_answer_unjudged(set, out);
    el_answer_sentence(set, sentence, sizeof sentence);
    el_text_wrap(sentence, "", "", COLUMNS, out);
}

void el_answer_unjudged(const struct el_regress_set *set, FILE *out)
{
    char names[256] = "";
    size_t shown = 0;
    for (; shown < set->n_unjudged && strlen(names) + strlen(set->unjudged[shown]) + 2 < sizeof names - 1; shown++)
        el_text_append(names, sizeof names, "%s%s", shown ? ", " : "", set->unjudged[shown]);
    if (set->n_unjudged == 0) return;
    if (shown < set->n_unjudged)
        el_text_append(names, sizeof names, "%s%zu more", shown ? " and " : "", set->n_unjudged - shown);
    el_text_say("", "  ", COLUMNS, out,
                "Not judged: %s, because no unit says which way is better (--higher NAME and --lower NAME say it).",
                names);
}

/* ---- the sentence ---- */

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

/* Times without noise: only simulated devices have them. */
static bool has_simulated_times(const struct el_regress_set *set)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->cells[i].kind == EL_CELL_EXACT && strstr(set->cells[i].name, "step_median_ms")) return true;
    return false;
}

void el_answer_sentence(const struct el_regress_set *set, char *text, size_t bytes)
{
    static const struct {
        const char *begin;
        enum el_cell_verdict counted; /* so many of all; SAME: all */
    } sentences[] = {
        [EL_REGRESS_NONE] = {"No regression in ", EL_CELL_SAME},
        [EL_REGRESS_FOUND] = {"Regression in ", EL_CELL_REGRESSION},
        [EL_REGRESS_USE] = {"Unreadable: ", EL_CELL_UNREADABLE},
        [EL_REGRESS_INCONCLUSIVE] = {"Inconclusive: ", EL_CELL_INCONCLUSIVE},
        [EL_REGRESS_NO_BASELINE] = {"No baseline that fits, for ", EL_CELL_NO_BASELINE},
    };
    enum el_regress_exit outcome = el_regress_outcome(set);
    size_t n[sizeof verdicts / sizeof verdicts[0]] = {0};
    char least[EL_FIGURE_BYTES];
    double most = detects(set);
    for (size_t i = 0; i < set->n; i++) n[set->cells[i].verdict]++;
    snprintf(text, bytes, "%s", sentences[outcome].begin);
    if (outcome != EL_REGRESS_NONE) el_text_append(text, bytes, "%zu of ", n[sentences[outcome].counted]);
    el_text_append(text, bytes, "%zu cell%s%s", set->n, set->n == 1 ? "" : "s",
                   outcome == EL_REGRESS_USE ? " cannot be compared" : "");
    if (set->blocks > 0) el_text_append(text, bytes, ", after %d block%s", set->blocks, set->blocks == 1 ? "" : "s");
    el_text_append(text, bytes, ".");
    if (has_simulated_times(set)) el_text_append(text, bytes, " Times are simulated, and compared exactly.");
    if (outcome == EL_REGRESS_FOUND && n[EL_CELL_INCONCLUSIVE] > 0 && !set->last_analysis)
        el_text_append(text, bytes, " The others were not waited for.");
    if (outcome == EL_REGRESS_INCONCLUSIVE && *set->environment) el_text_append(text, bytes, " %s", set->environment);
    if (most > 1 && (outcome == EL_REGRESS_NONE || outcome == EL_REGRESS_INCONCLUSIVE))
        el_text_append(text, bytes, " This run could reliably detect slowdowns of %s or more.",
                       pct_text(most, false, " %", least));
}

/* ---- the record ---- */

static json_t *cell_json(const struct el_regress_cell *cell)
{
    static const char *const kinds[] = {
        [EL_CELL_EXACT] = "exact", [EL_CELL_PAIRED] = "paired", [EL_CELL_HISTORY] = "history"};
    return json_pack("{s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "name",
                     el_json_string(cell->name), "unit", el_json_string(cell->unit), "better",
                     el_better_text(cell->better), "kind", kinds[cell->kind], "verdict", verdicts[cell->verdict].record,
                     "effect", el_json_real(cell->effect), "ci95", el_json_interval(cell->low, cell->high), "p",
                     el_json_real(cell->p), "p_adjusted", el_json_real(cell->p_adjusted), "floor",
                     el_json_real(cell->floor), "detectable", el_json_real(cell->detectable), "more_blocks", cell->more,
                     "reason", el_json_string(cell->reason), "base", el_json_reals(cell->base, cell->n_base), "head",
                     el_json_reals(cell->head, cell->n_head));
}

json_t *el_answer_json(const struct el_regress_set *set)
{
    static const char *const outcomes[] = {[EL_REGRESS_NONE] = "none",
                                           [EL_REGRESS_FOUND] = "regression",
                                           [EL_REGRESS_USE] = "unreadable",
                                           [EL_REGRESS_INCONCLUSIVE] = "inconclusive",
                                           [EL_REGRESS_NO_BASELINE] = "no baseline"};
    char sentence[512];
    json_t *cells = json_array(), *unjudged = json_array();
    enum el_regress_exit outcome = el_regress_outcome(set);
    for (size_t i = 0; i < set->n; i++) json_array_append_new(cells, cell_json(&set->cells[i]));
    for (size_t i = 0; i < set->n_unjudged; i++) json_array_append_new(unjudged, el_json_string(set->unjudged[i]));
    el_answer_sentence(set, sentence, sizeof sentence);
    return json_pack("{s:i, s:s, s:i, s:o, s:o, s:o, s:i, s:i, s:b, s:o, s:o, s:o, s:o, s:o}", "schema", EL_SCHEMA,
                     "outcome", outcomes[outcome], "exit_status", (int)outcome, "sentence", el_json_string(sentence),
                     "base", el_json_string(set->base_name), "head", el_json_string(set->head_name), "blocks",
                     set->blocks, "analyses", set->blocks > 0 ? set->stage + 1 : 0, "last_analysis",
                     (int)set->last_analysis, "level", el_json_real(el_regress_level(set->stage, set->last_analysis)),
                     "environment", el_json_string(set->environment), "machine", el_machine(), "cells", cells,
                     "not_judged", unjudged);
}
