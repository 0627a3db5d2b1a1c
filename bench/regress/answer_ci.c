/* The answer as continuous integration reads it: JUnit, Markdown, GitHub's annotations. */
#include <stdlib.h>
#include <string.h>

#include "bench/base/escape.h"
#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/answer.h"

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

/* ---- JUnit ---- */

static size_t count(const struct el_regress_set *set, const char *element)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        const char *its = el_answer_verdict(set->cells[i].verdict)->junit;
        n += its && !strcmp(its, element);
    }
    return n;
}

static void put_case(const struct el_regress_cell *cell, FILE *out)
{
    json_t *row = el_answer_row(cell);
    const char *element = el_answer_verdict(cell->verdict)->junit;
    put_in(&el_escape_xml, "  <testcase classname=\"evenload.regress\" name=\"", cell->name, "\">\n", out);
    if (element) {
        fprintf(out, "    <%s message=\"", element);
        put_in(&el_escape_xml, "", cell->reason,
               cell->verdict == EL_CELL_REGRESSION ? "\" type=\"perf-regression\"/>\n" : "\"/>\n", out);
    }
    put_in(&el_escape_xml, "    <system-out>unit ", *cell->unit ? cell->unit : "-", "", out);
    for (const struct el_column *c = el_answer_columns + 1; c[1].head; c++)
        fprintf(out, ", %s %s", c->head, el_json_text(row, c->path, "-"));
    fputs("</system-out>\n  </testcase>\n", out);
    json_decref(row);
}

static enum el_status put_junit(const void *context, FILE *out)
{
    const struct el_regress_set *set = context;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"evenload regress\" tests=\"%zu\" "
            "failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\">\n",
            set->n, count(set, "failure"), count(set, "error"), count(set, "skipped"));
    put_in(&el_escape_xml, "  <properties>\n    <property name=\"base\" value=\"", set->base_name, "\"/>\n", out);
    put_in(&el_escape_xml, "    <property name=\"head\" value=\"", set->head_name, "\"/>\n", out);
    fprintf(out, "    <property name=\"blocks\" value=\"%d\"/>\n  </properties>\n", set->blocks);
    for (size_t i = 0; i < set->n; i++) put_case(&set->cells[i], out);
    fputs("</testsuite>\n", out);
    return EL_OK;
}

enum el_status el_answer_write_junit(const struct el_regress_set *set, const char *path)
{
    return el_write_file(path, put_junit, set);
}

/* ---- Markdown ---- */

static void put_markdown_row(const struct el_regress_cell *cell, FILE *out)
{
    json_t *row = el_answer_row(cell);
    const struct el_answer_verdict *verdict = el_answer_verdict(cell->verdict);
    const char *bold = verdict->github ? "**" : "";
    put_markdown_in("| ", cell->name, " | ", out);
    fprintf(out, "%s | %s ", el_json_text(row, "base", "-"), el_json_text(row, "head", "-"));
    put_markdown_in("", cell->unit, " | ", out);
    fprintf(out, "%s | %s | %s%s%s%s", el_json_text(row, "slowdown", "-"), el_json_text(row, "interval", "-"), bold,
            verdict->table, bold, *cell->reason ? ": " : "");
    put_markdown_in("", cell->reason, " |\n", out);
    json_decref(row);
}

static enum el_status put_markdown(const void *context, FILE *out)
{
    const struct el_regress_set *set = context;
    char sentence[512];
    const char *bold = el_regress_outcome(set) != EL_REGRESS_NONE ? "**" : "";
    el_answer_sentence(set, sentence, sizeof sentence);
    fprintf(out, "### Did it get slower?\n\n%s", bold);
    put_markdown_in("", sentence, bold, out);
    fputs("\n\n| cell | base | head | slowdown | 95 % | verdict |\n| --- | ---: | ---: | ---: | --- | --- |\n", out);
    for (size_t i = 0; i < set->n; i++) put_markdown_row(&set->cells[i], out);
    for (size_t i = 0; i < set->n_unjudged; i++)
        put_markdown_in(i ? ", " : "\nNot judged, because no unit says which way is better: ", set->unjudged[i],
                        i + 1 < set->n_unjudged ? "" : "\n", out);
    put_markdown_in("\nBase: ", set->base_name, "  \n", out);
    put_markdown_in("Head: ", set->head_name, "\n", out);
    return EL_OK;
}

enum el_status el_answer_write_markdown(const struct el_regress_set *set, const char *path)
{
    return el_write_file(path, put_markdown, set);
}

/* ---- GitHub's annotations ---- */

void el_answer_print_github(const struct el_regress_set *set, FILE *out)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct el_regress_cell *cell = &set->cells[i];
        const char *level = el_answer_verdict(cell->verdict)->github;
        if (!level) continue;
        fprintf(out, "::%s ", level);
        put_in(&el_escape_title, "title=evenload regress%3A ", cell->name, "::", out);
        put_in(&el_escape_annotation, "", cell->reason, "\n", out);
    }
}
