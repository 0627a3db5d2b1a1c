/* The record of a judged set, and as a person reads it: words of verdicts, rows, the sentence. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/machine/host.h"
#include "bench/record/record.h"
#include "bench/regress/answer.h"
#include "bench/stats/stats.h"

enum { EXACT_ROWS_MAX = 6 };

static const struct el_answer_verdict verdicts[] = {
    [EL_CELL_SAME] = {"same", "same", NULL, NULL},
    [EL_CELL_REGRESSION] = {"regression", "REGRESSION", "failure", "error"},
    [EL_CELL_IMPROVEMENT] = {"improvement", "better", NULL, NULL},
    [EL_CELL_INCONCLUSIVE] = {"inconclusive", "inconclusive", "skipped", "warning"},
    [EL_CELL_UNREADABLE] = {"unreadable", "UNREADABLE", "error", "error"},
    [EL_CELL_NO_BASELINE] = {"no baseline", "no baseline", "error", "warning"},
};

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

/* "No regression in 3 cells, after 14 blocks." */
static void put_sentence(const struct el_regress_set *set, char *text, size_t bytes)
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
    return el_json_of(
        EL_KEY("name", cell->name), EL_KEY("unit", cell->unit), EL_KEY("better", el_better_text(cell->better)),
        EL_KEY("kind", kinds[cell->kind]), EL_KEY("verdict", verdicts[cell->verdict].record),
        EL_KEY("effect", cell->effect), EL_KEY("ci95", el_json_interval(cell->low, cell->high)), EL_KEY("p", cell->p),
        EL_KEY("p_adjusted", cell->p_adjusted), EL_KEY("floor", cell->floor), EL_KEY("detectable", cell->detectable),
        EL_KEY("more_blocks", cell->more), EL_KEY("reason", cell->reason), EL_KEY("printed", cell->printed),
        EL_KEY("base", el_json_reals(cell->base, cell->n_base)),
        EL_KEY("head", el_json_reals(cell->head, cell->n_head)));
}

json_t *el_answer_json(const struct el_regress_set *set)
{
    static const char *const outcomes[] = {[EL_REGRESS_NONE] = "none",
                                           [EL_REGRESS_FOUND] = "regression",
                                           [EL_REGRESS_USE] = "unreadable",
                                           [EL_REGRESS_INCONCLUSIVE] = "inconclusive",
                                           [EL_REGRESS_NO_BASELINE] = "no baseline"};
    char sentence[512];
    json_t *cells = json_array();
    enum el_regress_exit outcome = el_regress_outcome(set);
    for (size_t i = 0; i < set->n; i++) json_array_append_new(cells, cell_json(&set->cells[i]));
    put_sentence(set, sentence, sizeof sentence);
    return el_json_of(
        EL_KEY("schema", EL_SCHEMA), EL_KEY("outcome", outcomes[outcome]), EL_KEY("exit_status", (int)outcome),
        EL_KEY("sentence", sentence), EL_KEY("base", set->base_name), EL_KEY("head", set->head_name),
        EL_KEY("blocks", set->blocks), EL_KEY("analyses", set->blocks > 0 ? set->stage + 1 : 0),
        EL_KEY("last_analysis", set->last_analysis), EL_KEY("level", el_regress_level(set->stage, set->last_analysis)),
        EL_KEY("environment", set->environment), EL_KEY("machine", el_machine()), EL_KEY("cells", cells),
        EL_KEY("of", set->of_slowest ? "slowest" : "median"),
        EL_KEY("not_judged", set->unjudged ? json_incref(set->unjudged) : json_array()));
}

bool el_answer_is(const json_t *document)
{
    return json_is_array(json_object_get(document, "cells")) && el_json_text(document, "outcome", NULL) &&
           el_json_whole(document, "schema") == EL_SCHEMA;
}

/* ---- rows ---- */

static const struct el_answer_verdict *answer_verdict(const json_t *cell)
{
    const struct el_answer_verdict *verdict = verdicts;
    while (verdict < &verdicts[EL_CELL_NO_BASELINE] && !el_json_is(cell, "verdict", verdict->record)) verdict++;
    return verdict;
}

static double median_at(const json_t *cell, const char *side)
{
    double *x, median;
    size_t n = el_json_numbers(json_object_get(cell, side), &x);
    median = el_stats_median(x, n);
    free(x);
    return median;
}

static bool is_exact(const json_t *cell)
{
    return el_json_is(cell, "kind", "exact");
}

void el_answer_figures(const json_t *cell, double *base_p, double *head_p)
{
    double effect = el_json_number(cell, "effect"), ratio = el_json_is(cell, "better", "higher") ? 1 / effect : effect;
    *base_p = median_at(cell, "base");
    *head_p = median_at(cell, "head");
    if (is_exact(cell) || isnan(ratio)) return;
    if (el_json_is(cell, "kind", "history"))
        *base_p = *head_p / ratio;
    else
        *head_p = *base_p * ratio;
}

/* An exact one with all its digits, and of others no more than a column has room for. */
static const char *figure_text(bool exact, double value, char text[EL_FIGURE_BYTES])
{
    if (isnan(value) || fabs(value) < (exact ? 1e12 : 1e9)) return el_text_figure(value, text);
    snprintf(text, EL_FIGURE_BYTES, exact && fabs(value) < 0x1p53 ? "%.0f" : "%.4g", value);
    return text;
}

const struct el_column el_answer_columns[] = EL_COLUMNS(
    EL_NAME("cell", 22, "cell"), EL_TEXT("base", 10, "base"), EL_TEXT("head", 10, "head"),
    EL_TEXT("slowdown", 9, "slowdown"), EL_TEXT("95 %", 15, "interval"), EL_TEXT("p", 7, "p"),
    EL_TEXT("floor", 6, "floor"), EL_TEXT("detects", 7, "detects"), EL_TEXT("verdict", -12, "verdict", .gap = 2));

static json_t *answer_row(const json_t *cell)
{
    char t[7][EL_FIGURE_BYTES], interval[2 * EL_FIGURE_BYTES + 4] = "-", p[EL_FIGURE_BYTES] = "-";
    double base, head, low = el_json_number(cell, "ci95.0"), adjusted = el_json_number(cell, "p_adjusted");
    el_answer_figures(cell, &base, &head);
    if (!isnan(low))
        snprintf(interval, sizeof interval, "%s .. %s", pct_text(low, true, "", t[0]),
                 pct_text(el_json_number(cell, "ci95.1"), true, "", t[1]));
    if (!isnan(adjusted)) snprintf(p, sizeof p, adjusted < 0.001 ? "%.0e" : "%.3f", adjusted);
    return el_json_of(
        EL_KEY("cell", el_json_text(cell, "name", "?")), EL_KEY("base", figure_text(is_exact(cell), base, t[2])),
        EL_KEY("head", figure_text(is_exact(cell), head, t[3])),
        EL_KEY("slowdown", pct_text(el_json_number(cell, "effect"), true, " %", t[4])), EL_KEY("interval", interval),
        EL_KEY("p", p),
        EL_KEY("floor", is_exact(cell) ? "exact" : pct_text(el_json_number(cell, "floor"), false, " %", t[5])),
        EL_KEY("detects", pct_text(el_json_number(cell, "detectable"), false, " %", t[6])),
        EL_KEY("verdict", answer_verdict(cell)->table));
}

/* With what its first cell needs beside the name. */
static void put_row(const struct el_table *table, const json_t *cell)
{
    json_t *row = answer_row(cell);
    const char *unit = el_json_text(cell, "unit", "");
    el_json_put(row, "cell",
                json_sprintf("%s%s%s%s", el_json_text(cell, "name", "?"), *unit ? ", " : "", unit,
                             el_json_is(cell, "better", "higher") ? " (more is better)" : ""));
    el_table_row(table, EL_TABLE_PLAIN, row);
    json_decref(row);
}

static bool same_and_exact(const json_t *cell)
{
    return is_exact(cell) && el_json_is(cell, "verdict", "same");
}

/* What a launch printed several times, as its ranks or steps do. */
static void say_printed(const json_t *document, FILE *out)
{
    char list[256] = "";
    EL_EACH(cell, json_object_get(document, "cells"))
        if (el_json_number(cell, "printed") > 1 && strlen(list) < sizeof list / 2)
            el_text_append(list, sizeof list, "%s%.80s %.0f times", *list ? ", " : "", el_json_text(cell, "name", "?"),
                           el_json_number(cell, "printed"));
    const bool slowest = el_json_is(document, "of", "slowest");
    if (*list)
        EL_SAY(out, "Each launch printed %s: the %s counts%s.", list, slowest ? "slowest" : "median",
               slowest ? "" : " (--of slowest: the slowest)");
}

void el_answer_print(const json_t *document, FILE *out)
{
    const struct el_table table = {.columns = el_answer_columns, .out = out};
    const json_t *cells = json_object_get(document, "cells");
    size_t n_same = 0;
    EL_EACH(cell, cells) n_same += same_and_exact(cell);
    bool folded = n_same > EXACT_ROWS_MAX;
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(cell, cells) {
        if (!folded || !same_and_exact(cell)) put_row(&table, cell);
    }
    if (folded) fprintf(out, "and %zu exact cells (bytes, memory by tag, operations), all the same\n", n_same);
    fputc('\n', out);
    EL_EACH(cell, cells) {
        const char *reason = el_json_text(cell, "reason", "");
        if (*reason) EL_SAY(out, "%s: %s", el_json_text(cell, "name", "?"), reason);
    }
    say_printed(document, out);
    el_answer_unjudged(json_object_get(document, "not_judged"), out);
    el_text_wrap(el_json_text(document, "sentence", ""), "", "", out);
}

void el_answer_unjudged(const json_t *names, FILE *out)
{
    char list[256] = "";
    size_t shown = 0, n = json_array_size(names);
    EL_EACH(name, names) {
        const char *text = json_is_string(name) ? json_string_value(name) : "?";
        if (strlen(list) + strlen(text) + 2 >= sizeof list - 1) break;
        el_text_append(list, sizeof list, "%s%s", shown++ ? ", " : "", text);
    }
    if (shown < n) el_text_append(list, sizeof list, "%s%zu more", shown ? " and " : "", n - shown);
    if (n > 0)
        EL_SAY(out, "Not judged: %s, because no unit says which way is better (--higher NAME and --lower NAME say it).",
               list);
}

/* The answer as continuous integration reads it: JUnit, Markdown, GitHub's annotations. */

/* The text between two others. */
static void put_in(const struct el_escape *form, const char *before, const char *text, const char *after, FILE *out)
{
    fputs(before, out);
    el_escape_put(form, text, out);
    fputs(after, out);
}

static void put_markdown_in(const char *before, const char *text, const char *after, FILE *out)
{
    fputs(before, out);
    el_escape_markdown(text, out);
    fputs(after, out);
}

static const char *text_of(const json_t *object, const char *key)
{
    return el_json_text(object, key, "");
}

/* ---- JUnit ---- */

static int count(const json_t *document, const char *element)
{
    int n = 0;
    EL_EACH(cell, json_object_get(document, "cells")) {
        const char *its = answer_verdict(cell)->junit;
        n += its && !strcmp(its, element);
    }
    return n;
}

static void put_case(const json_t *cell, FILE *out)
{
    json_t *row = answer_row(cell);
    const char *element = answer_verdict(cell)->junit, *unit = text_of(cell, "unit");
    put_in(&el_escape_xml, "  <testcase classname=\"evenload.regress\" name=\"", text_of(cell, "name"), "\">\n", out);
    if (element) {
        fprintf(out, "    <%s message=\"", element);
        put_in(&el_escape_xml, "", text_of(cell, "reason"),
               strcmp(element, "failure") ? "\"/>\n" : "\" type=\"perf-regression\"/>\n", out);
    }
    put_in(&el_escape_xml, "    <system-out>unit ", *unit ? unit : "-", "", out);
    for (const struct el_column *c = el_answer_columns + 1; c[1].head; c++)
        fprintf(out, ", %s %s", c->head, el_json_text(row, c->path, "-"));
    fputs("</system-out>\n  </testcase>\n", out);
    json_decref(row);
}

static enum el_status put_junit(const void *context, FILE *out)
{
    const json_t *document = context, *cells = json_object_get(document, "cells");
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"evenload regress\" tests=\"%zu\" "
            "failures=\"%d\" errors=\"%d\" skipped=\"%d\">\n",
            json_array_size(cells), count(document, "failure"), count(document, "error"), count(document, "skipped"));
    put_in(&el_escape_xml, "  <properties>\n    <property name=\"base\" value=\"", text_of(document, "base"), "\"/>\n",
           out);
    put_in(&el_escape_xml, "    <property name=\"head\" value=\"", text_of(document, "head"), "\"/>\n", out);
    fprintf(out, "    <property name=\"blocks\" value=\"%.0f\"/>\n  </properties>\n",
            el_json_number(document, "blocks"));
    EL_EACH(cell, cells) put_case(cell, out);
    fputs("</testsuite>\n", out);
    return EL_OK;
}

enum el_status el_answer_write_junit(const json_t *document, const char *path)
{
    return el_write_file(path, put_junit, document);
}

/* ---- Markdown ---- */

static void put_markdown_row(const json_t *cell, FILE *out)
{
    json_t *row = answer_row(cell);
    const struct el_answer_verdict *verdict = answer_verdict(cell);
    const char *bold = verdict->github ? "**" : "", *reason = text_of(cell, "reason");
    put_markdown_in("| ", text_of(cell, "name"), " | ", out);
    fprintf(out, "%s | %s ", text_of(row, "base"), text_of(row, "head"));
    put_markdown_in("", text_of(cell, "unit"), " | ", out);
    fprintf(out, "%s | %s | %s%s%s%s", text_of(row, "slowdown"), text_of(row, "interval"), bold, verdict->table, bold,
            *reason ? ": " : "");
    put_markdown_in("", reason, " |\n", out);
    json_decref(row);
}

static enum el_status put_markdown(const void *context, FILE *out)
{
    const json_t *document = context, *names = json_object_get(document, "not_judged");
    const char *bold = el_json_is(document, "outcome", "none") ? "" : "**";
    fprintf(out, "### Did it get slower?\n\n%s", bold);
    put_markdown_in("", text_of(document, "sentence"), bold, out);
    fputs("\n\n| cell | base | head | slowdown | 95 % | verdict |\n| --- | ---: | ---: | ---: | --- | --- |\n", out);
    EL_EACH(cell, json_object_get(document, "cells")) put_markdown_row(cell, out);
    EL_EACH(name, names)
        put_markdown_in(name_at.i ? ", " : "\nNot judged, because no unit says which way is better: ",
                        json_string_value(name), name_at.i + 1 < json_array_size(names) ? "" : "\n", out);
    put_markdown_in("\nBase: ", text_of(document, "base"), "  \n", out);
    put_markdown_in("Head: ", text_of(document, "head"), "\n", out);
    return EL_OK;
}

enum el_status el_answer_write_markdown(const json_t *document, const char *path)
{
    return el_write_file(path, put_markdown, document);
}

/* ---- GitHub's annotations ---- */

void el_answer_print_github(const json_t *document, FILE *out)
{
    EL_EACH(cell, json_object_get(document, "cells")) {
        const char *level = answer_verdict(cell)->github;
        if (!level) continue;
        fprintf(out, "::%s ", level);
        put_in(&el_escape_title, "title=evenload regress%3A ", text_of(cell, "name"), "::", out);
        put_in(&el_escape_annotation, "", text_of(cell, "reason"), "\n", out);
    }
}
