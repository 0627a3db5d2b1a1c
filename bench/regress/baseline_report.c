/* A store's document as a person reads it: a table a machine, a row a workload, and below a row what is odd about it.
 * The figure shown is a gate's own; the others are in the document. */
#include <math.h>
#include <string.h>

#include "bench/record/jvalue.h"
#include "bench/regress/baseline.h"
#include "bench/regress/fingerprint.h"
#include "bench/regress/session.h"
#include "bench/report/text.h"

enum { COLUMNS = 108, NAME_COLUMNS = 38 };

/* Above this the gate passes nothing: its verdict is inconclusive. */
#define FINDS_MAX_PCT 10.0

/* Long names have a line of their own: what tells trials apart is at their end. */
static void put_cells(const char *trial, const char *const cells[6], const char *last, FILE *out)
{
    static const int ends[6] = {47, 56, 66, 74, 83, 90};
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
    double far = el_json_number(figure, "far"), passed = el_json_number(workload, "skipped");
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
        snprintf(text, sizeof text, "%s far from the level, kept and not counted%s", el_json_shortest(far, value),
                 json_is_true(json_object_get(figure, "last_far")) ? "; the last is one of them" : "");
        if (json_is_true(json_object_get(figure, "last_far")))
            snprintf(text + strlen(text), sizeof text - strlen(text), " (%+.1f %%)", off);
        el_text_wrap(text, "  ", "  ", COLUMNS, out);
    }
    if (passed > 0) {
        snprintf(text, sizeof text, "%.0f line%s cut off in writing, passed over", passed, passed == 1 ? "" : "s");
        el_text_wrap(text, "  ", "  ", COLUMNS, out);
    }
}

static const char *one_digit(double value, char text[EL_FIGURE_BYTES])
{
    snprintf(text, EL_FIGURE_BYTES, isnan(value) ? "-" : value >= 99.95 ? "%.0f" : "%.1f", value);
    return text;
}

/* What a gate would make of the figure: in virtual time it has no noise, one session tells, and any change is found. */
static void put_figure(const json_t *figure, char text[5][EL_FIGURE_BYTES])
{
    bool exact = json_is_true(json_object_get(figure, "exact"));
    snprintf(text[0], EL_FIGURE_BYTES, "-");
    if (!exact) el_json_shortest(el_json_number(figure, "counted"), text[0]);
    el_text_figure(el_json_number(figure, exact ? "last" : "level"), text[1]);
    one_digit(exact ? 0 : el_json_number(figure, "sd_pct"), text[2]);
    snprintf(text[3], EL_FIGURE_BYTES, "any");
    if (!exact) one_digit(el_json_number(figure, "finds_pct"), text[3]);
    snprintf(text[4], EL_FIGURE_BYTES, "0");
    if (!exact) el_json_shortest(el_json_number(figure, "needs"), text[4]);
}

static void put_workload(const json_t *workload, FILE *out)
{
    const json_t *figure = json_object_get(json_object_get(workload, "figures"), el_session_timed()[0]);
    char sessions[EL_FIGURE_BYTES], text[5][EL_FIGURE_BYTES], time[32];
    put_time(el_json_text(workload, "last.time_utc", "?"), time);
    put_figure(figure, text);
    const char *const cells[6] = {
        el_json_shortest(el_json_number(workload, "sessions"), sessions), text[0], text[1], text[2], text[3], text[4]};
    put_cells(el_json_text(workload, "name", "?"), cells, time, out);
    put_notes(workload, figure, out);
}

static bool scatters(const json_t *workloads)
{
    for (size_t w = 0; w < json_array_size(workloads); w++) {
        const json_t *figures = json_object_get(json_array_get(workloads, w), "figures");
        const json_t *figure = json_object_get(figures, el_session_timed()[0]);
        if (el_json_number(figure, "finds_pct") > FINDS_MAX_PCT) return true;
    }
    return false;
}

void el_baseline_print(const json_t *document, FILE *out)
{
    static const char *const heads[6] = {"sessions", "counted", "step ms", "sd %", "finds %", "needs"};
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
                "\nWhere 'finds' is above %.0f %% sessions scatter too much for a gate to pass anything. What helps "
                "are longer\n"
                "ones (--repeats, --min-time), a quieter machine, or both sides in turns: evenload regress --ab\n",
                FINDS_MAX_PCT);
    }
}
