/* A store's document as a person reads it: a table a machine, a row a workload, and below a row what is odd about it.
 * The figure shown is a gate's own; the others are in the document. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/regress/baseline.h"
#include "bench/regress/figure.h"
#include "bench/regress/fingerprint.h"
#include "bench/regress/program.h"
#include "bench/regress/session.h"

enum { COLUMNS = 110, NAME_COLUMNS = 38 };

/* Above this the gate passes nothing: its verdict is inconclusive. */
#define DETECTABLE_MAX_PCT 10.0

/* Long names have a line of their own: what trials differ in is at their end. */
static void put_cells(const char *trial, const char *const cells[6], const char *last, FILE *out)
{
    static const int ends[6] = {46, 55, 65, 73, 84, 91};
    bool fits = strlen(trial) < NAME_COLUMNS;
    int at = fprintf(out, "%s", trial);
    if (!fits) at = 0, fputc('\n', out);
    for (int i = 0; i < 6; i++) el_text_column(cells[i], ends[i], &at, out);
    fprintf(out, "  %s\n", last);
}

/* "2026-01-31T14:25:01Z" as "2026-01-31 14:25". */
static void put_time(const char *utc, char text[32])
{
    snprintf(text, 32, "%.16s", utc);
    char *t = strchr(text, 'T');
    if (t) *t = ' ';
}

static void put_notes(const json_t *workload, const json_t *figure, FILE *out)
{
    char text[256], value[EL_FIGURE_BYTES], time[32];
    double far = el_json_number(figure, "outliers"), passed = el_json_number(workload, "skipped");
    double off = 100 * (el_json_number(figure, "last") / el_json_number(figure, "level") - 1);
    double since = el_json_number(workload, "since_accepted");
    const char *accepted = el_json_text(workload, "accepted", NULL);
    if (accepted) {
        put_time(accepted, time);
        snprintf(text, sizeof text, "accepted as the level: the run of %s; %.0f since, with it", time, since);
        if (since > EL_LEVEL_SESSIONS_MAX)
            snprintf(text + strlen(text), sizeof text - strlen(text), "; the last %d count", EL_LEVEL_SESSIONS_MAX);
        el_text_wrap(text, "  ", "  ", COLUMNS, out);
    }
    if (far > 0) {
        snprintf(text, sizeof text, "%s outlier%s, kept and not counted%s", el_json_shortest(far, value),
                 far == 1 ? "" : "s",
                 json_is_true(json_object_get(figure, "last_is_outlier")) ? "; the last session is one" : "");
        if (json_is_true(json_object_get(figure, "last_is_outlier")))
            snprintf(text + strlen(text), sizeof text - strlen(text), " (%+.1f %%)", off);
        el_text_wrap(text, "  ", "  ", COLUMNS, out);
    }
    if (passed > 0) {
        snprintf(text, sizeof text, "%.0f invalid line%s (truncated?), skipped", passed, passed == 1 ? "" : "s");
        el_text_wrap(text, "  ", "  ", COLUMNS, out);
    }
}

static const char *one_digit(double value, char text[EL_FIGURE_BYTES])
{
    snprintf(text, EL_FIGURE_BYTES, isnan(value) ? "-" : value >= 99.95 ? "%.0f" : "%.1f", value);
    return text;
}

/* What a gate would make of the figure: in virtual time it has no noise, one session suffices, and any change is found.
 */
static void put_figure(const json_t *figure, char text[5][EL_FIGURE_BYTES])
{
    bool exact = json_is_true(json_object_get(figure, "exact"));
    snprintf(text[0], EL_FIGURE_BYTES, "-");
    if (!exact) el_json_shortest(el_json_number(figure, "counted"), text[0]);
    el_text_figure(el_json_number(figure, exact ? "last" : "level"), text[1]);
    one_digit(exact ? 0 : el_json_number(figure, "sd_pct"), text[2]);
    snprintf(text[3], EL_FIGURE_BYTES, "any");
    if (!exact) one_digit(el_json_number(figure, "detectable_pct"), text[3]);
    snprintf(text[4], EL_FIGURE_BYTES, "0");
    if (!exact) el_json_shortest(el_json_number(figure, "sessions_needed"), text[4]);
}

/* A run's row is named by its trial, a program's by its name and the figure. */
static void put_row(const json_t *workload, const char *name, const json_t *figure, FILE *out)
{
    char label[512], sessions[EL_FIGURE_BYTES], text[5][EL_FIGURE_BYTES], time[32];
    const char *unit = el_json_text(figure, "unit", "");
    bool program = el_program_is(workload);
    snprintf(label, sizeof label, "%s%s%s%s%s", el_json_text(workload, "name", "?"), program ? ": " : "",
             program ? name : "", *unit ? ", " : "", unit);
    put_time(el_json_text(workload, "last.time_utc", "?"), time);
    put_figure(figure, text);
    const char *const cells[6] = {
        el_json_shortest(el_json_number(workload, "sessions"), sessions), text[0], text[1], text[2], text[3], text[4]};
    put_cells(label, cells, time, out);
    put_notes(workload, figure, out);
}

static void put_workload(const json_t *workload, FILE *out)
{
    json_t *figures = json_object_get(workload, "figures");
    for (void *at = json_object_iter(figures); at; at = json_object_iter_next(figures, at))
        if (el_figure_leads(workload, json_object_iter_key(at)))
            put_row(workload, json_object_iter_key(at), json_object_iter_value(at), out);
}

static bool scatters(const json_t *workloads)
{
    for (size_t w = 0; w < json_array_size(workloads); w++) {
        const json_t *workload = json_array_get(workloads, w);
        json_t *figures = json_object_get(workload, "figures");
        for (void *at = json_object_iter(figures); at; at = json_object_iter_next(figures, at))
            if (el_figure_leads(workload, json_object_iter_key(at)) &&
                el_json_number(json_object_iter_value(at), "detectable_pct") > DETECTABLE_MAX_PCT)
                return true;
    }
    return false;
}

void el_baseline_print(const json_t *document, FILE *out)
{
    static const char *const heads[6] = {"sessions", "counted", "level", "sd %", "detects %", "needs"};
    const json_t *machines = json_object_get(document, "machines");
    for (size_t m = 0; m < json_array_size(machines); m++) {
        const json_t *machine = json_array_get(machines, m), *workloads = json_object_get(machine, "workloads");
        char words[320];
        el_fingerprint_words(json_object_get(machine, "fields"), words, sizeof words);
        fprintf(out, "%smachine %s: %s\n", m ? "\n" : "", el_json_text(machine, "fingerprint", "?"), words);
        put_cells("trial", heads, "last session, UTC", out);
        for (size_t w = 0; w < json_array_size(workloads); w++) put_workload(json_array_get(workloads, w), out);
        if (!scatters(workloads)) continue;
        fprintf(out,
                "\nWhere 'detects' is above %.0f %% sessions scatter too much: the gate is inconclusive. Longer runs "
                "(--repeats,\n"
                "--min-time, --launches) or a quieter machine help, or evenload regress --ab, which needs no store.\n",
                DETECTABLE_MAX_PCT);
    }
}
