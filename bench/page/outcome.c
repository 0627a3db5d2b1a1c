/* How a run's trials ended, its sentences, what failed, warnings: as texts. */
#include "bench/page/page.h"

#include <stdlib.h>
#include <string.h>

#include "bench/base/escape.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/page/html.h"
#include "bench/report/report.h"

char *el_page_text(const json_t *of, void (*write)(const json_t *of, FILE *out))
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    write(of, out);
    fclose(out);
    return text;
}

static void write_sentences(const json_t *run, FILE *out)
{
    if (el_printed_kind(run)) return; /* its text has them */
    el_report_sentences(run, out);
    el_report_say_evaluations(json_object_get(run, "trials"), out);
}

static void write_warnings(const json_t *run, FILE *out)
{
    el_report_warnings(json_object_get(run, "trials"), "", out);
}

static void write_failed(const json_t *run, FILE *out)
{
    const json_t *trials = json_object_get(run, "trials");
    char head[2 * EL_CELL_BYTES], mode[64], batch[EL_CELL_BYTES];
    EL_EACH(trial, trials) {
        if (el_report_is_ok(trial)) continue;
        el_table_mode(trial, mode, sizeof mode);
        el_table_batch(trial, NULL, batch);
        snprintf(head, sizeof head, "! %s, batch %s: ", mode, batch);
        el_report_failed(trial, head, "  ", EL_REPORT_COLUMNS, out);
    }
}

/* "9 trials: 6 valid, 3 suspect" */
static void write_verdict(const json_t *run, FILE *out)
{
    static const char *const verdicts[] = {"valid", "simulated", "unchecked", "suspect", "failed"};
    const json_t *trials = json_object_get(run, "trials");
    size_t n = json_array_size(trials);
    const char *between = ": ";
    const struct el_printed_kind *kind = el_printed_kind(run);
    if (kind) {
        kind->verdict(json_object_get(run, "printed"), out);
        return;
    }
    fprintf(out, "%zu trial%s", n, n == 1 ? "" : "s");
    for (size_t v = 0; v < sizeof verdicts / sizeof verdicts[0]; v++) {
        size_t count = 0;
        EL_EACH(trial, trials) {
            const char *its = el_report_is_ok(trial) ? el_report_verdict(trial) : "failed";
            count += strcmp(its, verdicts[v]) == 0;
        }
        if (count > 0) fprintf(out, "%s%zu %s", between, count, verdicts[v]);
        if (count > 0) between = ", ";
    }
}

static const struct {
    void (*write)(const json_t *run, FILE *out);
    const char *style, *heading; /* NULL: none */
    char mark;                   /* that begins each item of a list */
} parts[EL_OUTCOMES] = {[EL_OUTCOME_VERDICT] = {write_verdict, "verdict", NULL, '\0'},
                        [EL_OUTCOME_SENTENCES] = {write_sentences, "said", NULL, '*'},
                        [EL_OUTCOME_FAILED] = {write_failed, "failed", "Failed", '!'},
                        [EL_OUTCOME_WARNINGS] = {write_warnings, "warned", "Warnings", '!'}};

enum el_status el_outcome_put(const json_t *run, enum el_outcome part, bool html, FILE *out)
{
    char *text = el_page_text(run, parts[part].write);
    const char *style = parts[part].style, *heading = parts[part].heading;
    if (!text) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the page's text");
    if (html && (heading ? *text : !parts[part].mark)) {
        fprintf(out, "<p class=\"%s\">", style);
        el_html_text(out, heading ? heading : text);
        fputs("</p>\n", out);
    }
    if (html && parts[part].mark) el_html_list(out, style, text, parts[part].mark);
    if (!html && parts[part].mark) el_markdown_list(out, text, parts[part].mark);
    if (!html && !parts[part].mark) {
        el_escape_markdown(text, out);
        fputs("\n\n", out);
    }
    free(text);
    return EL_OK;
}
