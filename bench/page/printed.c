/* A row per command with a document of its own. */
#include "bench/page/page.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/comm/wire.h"
#include "bench/explain/explain.h"
#include "bench/fleet/fleet.h"
#include "bench/plan/plan.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/recover/recover.h"
#include "bench/regress/answer.h"
#include "bench/study/study.h"
#include "bench/traces/traces.h"
#include "bench/verify/verify.h"
#include "bench/watch/watch.h"

static bool is_difference(const json_t *document)
{
    return el_json_is(document, "kind", "difference");
}

static void explain_title(const json_t *document, char title[EL_TITLE_BYTES])
{
    snprintf(title, EL_TITLE_BYTES, "%s, batch %.0f", el_json_text(document, "model", "?"),
             el_json_number(document, "global_batch"));
}

static void explain_verdict(const json_t *document, FILE *out)
{
    fputs(is_difference(document) ? "Two records, and what lies between their steps"
                                  : "What makes a mode slower than ddp, cause by cause",
          out);
}

static void explain_print(const json_t *document, FILE *out)
{
    if (is_difference(document))
        el_difference_print(document, out);
    else
        el_explain_print(document, out);
}

static void comm_title(const json_t *document, char title[EL_TITLE_BYTES])
{
    snprintf(title, EL_TITLE_BYTES, "comm, %.0f ranks, %s", el_json_number(document, "ranks"),
             el_json_text(document, "backend", "?"));
}

static void comm_verdict(const json_t *document, FILE *out)
{
    int64_t wrong = el_wire_wrong(document);
    if (wrong > 0)
        fprintf(out, "%lld elements were wrong", (long long)wrong);
    else
        fputs(el_json_number(document, "check") > 0 ? "Time and bandwidth of communication; all data were right"
                                                    : "Time and bandwidth of communication; data were not checked",
              out);
}

static void regress_title(const json_t *document, char title[EL_TITLE_BYTES])
{
    snprintf(title, EL_TITLE_BYTES, "regress: %.110s against %.110s", el_json_text(document, "head", "?"),
             el_json_text(document, "base", "?"));
}

static void regress_verdict(const json_t *document, FILE *out)
{
    fputs(el_json_text(document, "sentence", "?"), out);
}

static void verify_title(const json_t *document, char title[EL_TITLE_BYTES])
{
    (void)document;
    snprintf(title, EL_TITLE_BYTES, "verify");
}

static void recover_title(const json_t *document, char title[EL_TITLE_BYTES])
{
    snprintf(title, EL_TITLE_BYTES, "recover: %s, %s on %.0f devices", el_json_text(document, "model", "?"),
             el_json_text(document, "mode", "?"), el_json_number(document, "devices"));
}

static void recover_verdict(const json_t *document, FILE *out)
{
    char same[EL_TITLE_BYTES];
    el_recover_say_same(document, same);
    fputs(same, out);
}

static void plan_title(const json_t *document, char title[EL_TITLE_BYTES])
{
    snprintf(title, EL_TITLE_BYTES, "plan: %s on %s", el_json_text(document, "model", "?"),
             el_json_text(document, "machine", "no machine"));
}

static void plan_verdict(const json_t *document, FILE *out)
{
    (void)document;
    fputs("Predicted by a machine's rates, not measured", out);
}

static void traces_title(const json_t *document, char title[EL_TITLE_BYTES])
{
    snprintf(title, EL_TITLE_BYTES, "trace-stats: %.200s", el_json_text(document, "folder", "?"));
}

static void traces_verdict(const json_t *document, FILE *out)
{
    fputs(el_json_text(document, "job.blame.sentence", "No collective is in two of the traces"), out);
}

/* ---- watch: one trial without steps and tags ---- */

static void watch_title(const json_t *document, char title[EL_TITLE_BYTES])
{
    const json_t *words = el_json_at(document, "watch.command");
    snprintf(title, EL_TITLE_BYTES, "watch:");
    EL_EACH(word, words)
        el_text_append(title, EL_TITLE_BYTES, " %s", json_is_string(word) ? json_string_value(word) : "?");
}

static void watch_verdict(const json_t *document, FILE *out)
{
    fprintf(out, "Exit status %.0f", el_json_number(document, "watch.exit_status"));
}

/* ---- a study of commands: trials without steps and tags ---- */

static void study_title(const json_t *document, char title[EL_TITLE_BYTES])
{
    const json_t *rows = el_json_at(document, "study.rows");
    snprintf(title, EL_TITLE_BYTES, "%s: %s", el_json_text(document, "study.kind", "?"),
             el_json_text(document, "study.command", ""));
    EL_EACH(row, rows)
        if (el_json_is(document, "study.kind", "compare"))
            el_text_append(title, EL_TITLE_BYTES, "%s%s", row_at.i ? ", " : "", el_json_text(row, "name", "?"));
}

static void study_verdict(const json_t *document, FILE *out)
{
    const json_t *rows = el_json_at(document, "study.rows"), *last = json_array_get(rows, json_array_size(rows) - 1);
    char figure[EL_FIGURE_BYTES];
    fprintf(out, "%s: %s times the rate of %s", el_json_text(last, "name", "?"),
            el_text_figure(el_json_number(last, "speedup"), figure), el_json_text(rows, "0.name", "?"));
}

static void fleet_title(const json_t *document, char title[EL_TITLE_BYTES])
{
    snprintf(title, EL_TITLE_BYTES, "fleet of %zu hosts", json_array_size(json_object_get(document, "hosts")));
}

static const struct el_printed_kind kinds[] = {
    {"explain", "explain.json", "From one step to the other", EL_LIST(&el_figure_explain), el_explain_is, explain_title,
     explain_verdict, explain_print, NULL},
    {"comm", "comm.json", "Communication", EL_LIST(&el_figure_wire), el_wire_is, comm_title, comm_verdict,
     el_wire_print, el_wire_csv},
    {"fleet", "fleet.json", "Host by host", EL_LIST(&el_figure_fleet), el_fleet_is, fleet_title, el_fleet_say,
     el_fleet_print, el_fleet_csv},
    {"regress", "regress.json", "Cell by cell", EL_LIST(NULL), el_answer_is, regress_title, regress_verdict,
     el_answer_print, NULL},
    {"verify", "verify.json", "Every mode and model", EL_LIST(NULL), el_verify_is, verify_title, el_verify_say,
     el_verify_print, NULL},
    {"recover", "recover.json", "The loss of a rank", EL_LIST(&el_figure_recover), el_recover_is, recover_title,
     recover_verdict, el_recover_print, NULL},
    {"plan", "plan.json", "More devices", EL_LIST(&el_figure_plan), el_plan_is, plan_title, plan_verdict,
     el_plan_print_sizes, el_plan_csv},
    {"trace-stats", "trace-stats.json", "Who is late, and when", EL_LIST(&el_figure_ranks, &el_figure_lateness),
     el_traces_is, traces_title, traces_verdict, el_traces_print, NULL},
    {"watch", "results.json", "Process by process", EL_LIST(&el_figure_ranks, &el_figure_watch), NULL, watch_title,
     watch_verdict, el_watch_print, NULL},
    {"study", "results.json", "Launched in turns", EL_LIST(&el_figure_study), NULL, study_title, study_verdict,
     el_study_print, NULL}};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

const struct el_printed_kind *el_printed_kind(const json_t *run)
{
    for (size_t k = 0; k < N_KINDS; k++)
        if (json_object_get(run, "printed") && el_json_is(run, "command", kinds[k].command)) return &kinds[k];
    return NULL;
}

const struct el_printed_kind *el_printed_in(const char *dir)
{
    char path[EL_PATH_BYTES + 16];
    for (size_t k = 0; k < N_KINDS; k++) {
        snprintf(path, sizeof path, "%s/%s", dir, kinds[k].file);
        if (access(path, F_OK) == 0) return &kinds[k];
    }
    return NULL;
}

/* A run's record, which has no rule of its own, has a member of the kind's name; NULL: it has not. */
static enum el_status read_kind(const struct el_printed_kind *kind, const char *path, json_t **document_p)
{
    if (kind->is_one) return el_read_document(path, kind->is_one, kind->command, document_p);
    EL_TRY(el_record_read(path, document_p));
    if (json_is_object(json_object_get(*document_p, kind->command))) return EL_OK;
    json_decref(*document_p);
    *document_p = NULL;
    return EL_OK;
}

/* Of several kinds in one file that whose document it is; NULL: none. */
static enum el_status open_printed(const char *dir, const struct el_printed_kind **kind_p, json_t **document_p)
{
    char path[EL_PATH_BYTES + 16];
    *document_p = NULL;
    for (size_t k = 0; k < N_KINDS && !*document_p; k++) {
        *kind_p = &kinds[k];
        snprintf(path, sizeof path, "%s/%s", dir, kinds[k].file);
        if (access(path, F_OK) == 0) EL_TRY(read_kind(&kinds[k], path, document_p));
    }
    return EL_OK;
}

static enum el_status draw(const struct el_printed_kind *kind, const json_t *document, const char *dir,
                           const struct el_plot_look *look, FILE *messages)
{
    const char *names[EL_PRINTED_FIGURES_MAX];
    char plots[EL_PATH_BYTES + 16];
    int n = 0;
    bool drawn;
    snprintf(plots, sizeof plots, "%s/plots", dir);
    for (int i = 0; kind->figures[i]; i++) {
        EL_TRY(el_data_save(kind->figures[i], document, plots, &drawn));
        if (drawn) names[n++] = kind->figures[i]->name;
    }
    if (n == 0) return el_fail(EL_ERR_INVALID, "%s/%s: nothing to draw", dir, kind->file);
    return el_plot_draw(plots, names, n, look, messages);
}

enum el_status el_page_plot(const char *dir, const struct el_plot_look *look, FILE *messages)
{
    const struct el_printed_kind *kind;
    json_t *document;
    EL_TRY(open_printed(dir, &kind, &document));
    enum el_status status =
        document && kind->figures[0] ? draw(kind, document, dir, look, messages) : el_plot_run(dir, look, messages);
    json_decref(document);
    return status;
}

enum el_status el_printed_read(const char *dir, json_t **run_p)
{
    const struct el_printed_kind *kind;
    json_t *document;
    *run_p = NULL;
    EL_TRY(open_printed(dir, &kind, &document));
    if (!document) return EL_OK;
    const json_t *environment = json_object_get(document, "environment"),
                 *machine = json_object_get(document, "machine");
    *run_p = json_pack("{s:o, s:s, s:O?, s:[]}", "printed", document, "command", kind->command, "environment",
                       json_is_object(environment) ? environment : machine, "trials");
    return *run_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for the page's document");
}

enum el_status el_printed_show(const char *command, const struct el_options *options, const char *dir,
                               const json_t *document)
{
    const struct el_printed_kind *kind = kinds;
    char path[EL_PATH_BYTES + 16], csv[EL_PATH_BYTES + 32];
    FILE *messages = options->json || options->wire.csv ? NULL : stdout;
    int n_figures = 0;
    while (strcmp(kind->command, command) != 0) kind++;
    while (kind->figures[n_figures]) n_figures++;
    snprintf(path, sizeof path, "%s/%s", dir, kind->file);
    snprintf(csv, sizeof csv, "%s/%s.csv", dir, command);
    EL_TRY(el_write_json(document, path));
    if (kind->csv) EL_TRY(el_write_file(csv, kind->csv, document));
    if (options->json) EL_TRY(el_print_json(document, stdout));
    if (options->wire.csv && !options->json) EL_TRY(kind->csv(document, stdout));
    if (messages) {
        kind->print(document, messages);
        fputc('\n', messages);
        el_text_line(messages, "%s", path);
        if (kind->csv) el_text_line(messages, "%s", csv);
    }
    el_say_not_drawn(el_plot_figures(kind->figures, n_figures, document, dir, messages), messages);
    return EL_OK;
}
