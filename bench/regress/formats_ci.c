/* The gate's answer as continuous integration reads it: JUnit, Markdown, GitHub's annotations; and launches as CSV. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/options/config.h"
#include "bench/record/record.h"
#include "bench/regress/ab.h"
#include "bench/regress/formats.h"

/* Writes `text` with each character of `special` replaced by the words at its place; control characters are left out.
 */
static void put_escaped(const char *text, const char *special, const char *const *words, FILE *out)
{
    for (; *text; text++) {
        const char *at = strchr(special, *text);
        if (at)
            fputs(words[at - special], out);
        else if ((unsigned char)*text >= ' ')
            fputc(*text, out);
    }
}

static void put_xml(const char *text, FILE *out)
{
    static const char *const words[] = {"&amp;", "&lt;", "&gt;", "&quot;", " "};
    put_escaped(text, "&<>\"\n", words, out);
}

/* A cell of a table ends at a bar, its line at a line's end. */
static void put_markdown(const char *text, FILE *out)
{
    static const char *const words[] = {"\\|", " ", "&lt;", "&gt;", "\\`", "\\*", "\\_"};
    put_escaped(text, "|\n<>`*_", words, out);
}

/* In a property (the title) colons and commas have a meaning; in the message they are plain, and must stay so. */
static void put_annotation(const char *text, bool property, FILE *out)
{
    static const char *const words[] = {"%25", "%0D", "%0A", "%3A", "%2C"};
    put_escaped(text, property ? "%\r\n:," : "%\r\n", words, out);
}

static size_t count(const struct el_regress_set *set, enum el_cell_verdict one, enum el_cell_verdict other)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) n += set->cells[i].verdict == one || set->cells[i].verdict == other;
    return n;
}

static void put_case(const struct el_regress_cell *cell, FILE *out)
{
    static const char *const elements[] = {[EL_CELL_REGRESSION] = "failure",
                                           [EL_CELL_INCONCLUSIVE] = "skipped",
                                           [EL_CELL_UNREADABLE] = "error",
                                           [EL_CELL_NO_BASELINE] = "error"};
    char t[2][EL_FIGURE_BYTES];
    double base, head;
    const char *element =
        cell->verdict == EL_CELL_SAME || cell->verdict == EL_CELL_IMPROVEMENT ? NULL : elements[cell->verdict];
    fputs("  <testcase classname=\"evenload.regress\" name=\"", out);
    put_xml(cell->name, out);
    fputs("\">\n", out);
    if (element) {
        fprintf(out, "    <%s message=\"", element);
        put_xml(cell->reason, out);
        fputs(cell->verdict == EL_CELL_REGRESSION ? "\" type=\"perf-regression\"/>\n" : "\"/>\n", out);
    }
    fputs("    <system-out>", out);
    el_regress_figures(cell, &base, &head);
    fprintf(out, "base %s, head %s ", el_json_shortest(base, t[0]), el_json_shortest(head, t[1]));
    put_xml(cell->unit, out);
    if (isfinite(cell->effect)) fprintf(out, ", slowdown %+.2f %%", 100 * (cell->effect - 1));
    if (isfinite(cell->low)) fprintf(out, " (95 %%: %+.2f to %+.2f)", 100 * (cell->low - 1), 100 * (cell->high - 1));
    if (isfinite(cell->detectable)) fprintf(out, ", minimal detectable %.2f %%", 100 * (cell->detectable - 1));
    fputs("</system-out>\n  </testcase>\n", out);
}

enum el_status el_regress_write_junit(const struct el_regress_set *set, const char *path)
{
    char temporary[EL_PATH_BYTES + 64];
    FILE *out = el_file_begin(path, temporary, sizeof temporary);
    if (out == NULL) return el_fail_errno("%s could not be written", path);
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"evenload regress\" tests=\"%zu\" "
            "failures=\"%zu\" "
            "errors=\"%zu\" skipped=\"%zu\">\n",
            set->n, count(set, EL_CELL_REGRESSION, EL_CELL_REGRESSION),
            count(set, EL_CELL_UNREADABLE, EL_CELL_NO_BASELINE),
            count(set, EL_CELL_INCONCLUSIVE, EL_CELL_INCONCLUSIVE));
    fputs("  <properties>\n    <property name=\"base\" value=\"", out);
    put_xml(set->base_name, out);
    fputs("\"/>\n    <property name=\"head\" value=\"", out);
    put_xml(set->head_name, out);
    fprintf(out, "\"/>\n    <property name=\"blocks\" value=\"%d\"/>\n  </properties>\n", set->blocks);
    for (size_t i = 0; i < set->n; i++) put_case(&set->cells[i], out);
    fputs("</testsuite>\n", out);
    return el_file_end(out, temporary, path);
}

static void put_markdown_row(const struct el_regress_cell *cell, FILE *out)
{
    char t[2][EL_FIGURE_BYTES];
    double base, head;
    el_regress_figures(cell, &base, &head);
    fputs("| ", out);
    put_markdown(cell->name, out);
    fprintf(out, " | %s | %s ", el_text_figure(base, t[0]), el_text_figure(head, t[1]));
    put_markdown(cell->unit, out);
    if (isfinite(cell->effect))
        fprintf(out, " | %+.1f %%", 100 * (cell->effect - 1));
    else
        fputs(" | -", out);
    if (isfinite(cell->low))
        fprintf(out, " | %+.1f .. %+.1f", 100 * (cell->low - 1), 100 * (cell->high - 1));
    else
        fputs(" | -", out);
    bool loud = cell->verdict != EL_CELL_SAME && cell->verdict != EL_CELL_IMPROVEMENT;
    fprintf(out, " | %s%s%s", loud ? "**" : "", el_regress_verdict_text(cell->verdict), loud ? "**" : "");
    fputs(*cell->reason ? ": " : "", out);
    put_markdown(cell->reason, out);
    fputs(" |\n", out);
}

static void put_summary(const struct el_regress_set *set, FILE *out)
{
    char sentence[512];
    el_regress_sentence(set, sentence, sizeof sentence);
    fputs("### Did it get slower?\n\n", out);
    bool loud = el_regress_outcome(set) != EL_REGRESS_NONE;
    fputs(loud ? "**" : "", out);
    put_markdown(sentence, out);
    fputs(loud ? "**" : "", out);
    fputs("\n\n| cell | base | head | slowdown | 95 % | verdict |\n| --- | ---: | ---: | ---: | --- | --- |\n", out);
    for (size_t i = 0; i < set->n; i++) put_markdown_row(&set->cells[i], out);
    fputs("\nBase: ", out);
    put_markdown(set->base_name, out);
    fputs("  \nHead: ", out);
    put_markdown(set->head_name, out);
    fputs("\n", out);
}

enum el_status el_regress_write_markdown(const struct el_regress_set *set, const char *path)
{
    char temporary[EL_PATH_BYTES + 64];
    const char *shared = getenv("GITHUB_STEP_SUMMARY");
    bool append = shared && !strcmp(shared, path);
    FILE *out = append ? fopen(path, "a") : el_file_begin(path, temporary, sizeof temporary);
    if (out == NULL) return el_fail_errno("%s could not be written", path);
    put_summary(set, out);
    if (!append) return el_file_end(out, temporary, path);
    bool bad = fflush(out) != 0 || ferror(out);
    return fclose(out) == 0 && !bad ? EL_OK : el_fail_errno("%s could not be written", path);
}

void el_regress_print_github(const struct el_regress_set *set, FILE *out)
{
    static const char *const levels[] = {[EL_CELL_REGRESSION] = "error",
                                         [EL_CELL_INCONCLUSIVE] = "warning",
                                         [EL_CELL_UNREADABLE] = "error",
                                         [EL_CELL_NO_BASELINE] = "warning"};
    for (size_t i = 0; i < set->n; i++) {
        const struct el_regress_cell *cell = &set->cells[i];
        if (cell->verdict == EL_CELL_SAME || cell->verdict == EL_CELL_IMPROVEMENT) continue;
        fprintf(out, "::%s title=evenload regress%%3A ", levels[cell->verdict]);
        put_annotation(cell->name, true, out);
        fputs("::", out);
        put_annotation(cell->reason, false, out);
        fputc('\n', out);
    }
}

/* RFC 4180: always in quotes, a quote doubled. */
static void put_csv(const char *text, FILE *out)
{
    static const char *const words[] = {"\"\""};
    fputc('"', out);
    put_escaped(text, "\"", words, out);
    fputc('"', out);
}

static void put_launch(const struct el_regress_cell *cell, size_t block, bool head, int order, FILE *out)
{
    char number[32];
    fprintf(out, "%zu,%d,%s,", block + 1, order, head ? "head" : "base");
    put_csv(cell->name, out);
    fprintf(out, ",%s,", el_json_shortest((head ? cell->head : cell->base)[block], number));
    put_csv(cell->unit, out);
    fputc('\n', out);
}

enum el_status el_regress_write_csv(const struct el_regress_set *set, uint64_t seed, const char *path)
{
    char temporary[EL_PATH_BYTES + 64];
    FILE *out = el_file_begin(path, temporary, sizeof temporary);
    if (out == NULL) return el_fail_errno("%s could not be written", path);
    fputs("block,order,side,metric,value,unit\n", out);
    for (size_t i = 0; i < set->n; i++) {
        const struct el_regress_cell *cell = &set->cells[i];
        for (size_t b = 0; b < cell->n_base || b < cell->n_head; b++) {
            int head_first = cell->n_base == 0 || el_regress_first_side(seed, (int)b + 1);
            if (b < cell->n_base) put_launch(cell, b, false, 1 + head_first, out);
            if (b < cell->n_head) put_launch(cell, b, true, 2 - head_first, out);
        }
    }
    return el_file_end(out, temporary, path);
}
