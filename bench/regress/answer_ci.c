/* The answer as continuous integration reads it: JUnit, Markdown, GitHub's annotations. */
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

static const char *text_of(const json_t *object, const char *key)
{
    return el_json_text(object, key, "");
}

/* ---- JUnit ---- */

static int count(const json_t *document, const char *element)
{
    int n = 0;
    EL_EACH(cell, json_object_get(document, "cells")) {
        const char *its = el_answer_verdict(cell)->junit;
        n += its && !strcmp(its, element);
    }
    return n;
}

static void put_case(const json_t *cell, FILE *out)
{
    json_t *row = el_answer_row(cell);
    const char *element = el_answer_verdict(cell)->junit, *unit = text_of(cell, "unit");
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
    json_t *row = el_answer_row(cell);
    const struct el_answer_verdict *verdict = el_answer_verdict(cell);
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
        const char *level = el_answer_verdict(cell)->github;
        if (!level) continue;
        fprintf(out, "::%s ", level);
        put_in(&el_escape_title, "title=evenload regress%3A ", text_of(cell, "name"), "::", out);
        put_in(&el_escape_annotation, "", text_of(cell, "reason"), "\n", out);
    }
}
