/* How a run's trials ended, its sentences, what failed, warnings: as texts. */
#include "bench/page/page.h"

#include <stdlib.h>
#include <string.h>

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
}

static void write_warnings(const json_t *run, FILE *out)
{
    el_report_warnings(json_object_get(run, "trials"), "", out, false);
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

enum el_status el_outcome_of(const json_t *run, struct el_outcome *outcome_p)
{
    *outcome_p = (struct el_outcome){el_page_text(run, write_verdict), el_page_text(run, write_sentences),
                                     el_page_text(run, write_failed), el_page_text(run, write_warnings)};
    bool whole = outcome_p->verdict && outcome_p->sentences && outcome_p->failed && outcome_p->warnings;
    return whole ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for the page's text");
}

void el_outcome_end(struct el_outcome *outcome)
{
    free(outcome->verdict);
    free(outcome->sentences);
    free(outcome->failed);
    free(outcome->warnings);
}

void el_outcome_html(const struct el_outcome *outcome, FILE *out)
{
    fputs("<p class=\"verdict\">", out);
    el_html_text(out, outcome->verdict);
    fputs("</p>\n", out);
    el_html_list(out, "said", outcome->sentences, '*');
    if (*outcome->failed) fputs("<p class=\"failed\">Failed</p>\n", out);
    el_html_list(out, "failed", outcome->failed, '!');
    if (*outcome->warnings) fputs("<p class=\"warned\">Warnings</p>\n", out);
    el_html_list(out, "warned", outcome->warnings, '!');
}
