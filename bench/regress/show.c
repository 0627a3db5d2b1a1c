/* A store's document as a person reads it: a table a machine, a row a workload, and below a row what is odd about it.
 * The figure shown is a gate's own; the others are in the document. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"
#include "runtime/base/utf8.h"

enum { COLUMNS = 110, NAME_COLUMNS = 38 };

/* Above this the gate passes nothing: its verdict is inconclusive. */
#define DETECTABLE_MAX_PCT 10.0

/* What the rows come to, for what is said below them. */
struct shown {
    bool scatters;
    const char *outlier; /* the folder of a last session that is one; NULL */
    double needs;
};

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
static const char *time_of(const char *utc, char text[32])
{
    snprintf(text, 32, "%.16s", utc);
    if (strchr(text, 'T')) *strchr(text, 'T') = ' ';
    return el_utf8_printable(text), text;
}

static void put_notes(const json_t *workload, const json_t *figure, FILE *out)
{
    char text[256], time[32], last[48] = "";
    double far = el_json_number(figure, "outliers"), skipped = el_json_number(workload, "skipped");
    double since = el_json_number(workload, "since_accepted");
    const char *accepted = el_json_text(workload, "accepted", NULL);
    if (accepted) {
        if (since > EL_LEVEL_SESSIONS_MAX) snprintf(last, sizeof last, "; the last %d count", EL_LEVEL_SESSIONS_MAX);
        snprintf(text, sizeof text, "accepted as the level: the run of %s; %.0f since, with it%s",
                 time_of(accepted, time), since, last);
        el_text_wrap(text, "  ", "  ", COLUMNS, out);
    }
    if (far > 0) {
        double off = 100 * (el_json_number(figure, "last") / el_json_number(figure, "level") - 1);
        bool one = json_is_true(json_object_get(figure, "last_is_outlier"));
        snprintf(last, sizeof last, "; the last session is one (%+.1f %%)", off);
        snprintf(text, sizeof text, "%.0f outlier%s, kept and not counted%s", far, far == 1 ? "" : "s",
                 one ? last : "");
        el_text_wrap(text, "  ", "  ", COLUMNS, out);
    }
    if (skipped > 0) {
        snprintf(text, sizeof text, "%.0f invalid line%s (truncated?), skipped", skipped, skipped == 1 ? "" : "s");
        el_text_wrap(text, "  ", "  ", COLUMNS, out);
    }
}

static const char *one_digit(double value, char text[EL_FIGURE_BYTES])
{
    snprintf(text, EL_FIGURE_BYTES, isnan(value) ? "-" : value >= 99.95 ? "%.0f" : "%.1f", value);
    return text;
}

/* A run's row is named by its trial, a program's by its name and the figure. In virtual time a figure has no noise: one
 * session suffices, and any change is found. */
static void put_row(const json_t *workload, const char *name, const json_t *figure, FILE *out)
{
    char label[512], t[6][EL_FIGURE_BYTES], time[32];
    const char *unit = el_json_text(figure, "unit", "");
    bool program = el_program_is(workload), exact = el_figure_is_exact(figure);
    snprintf(label, sizeof label, "%s%s%s%s%s", el_json_text(workload, "name", "?"), program ? ": " : "",
             program ? name : "", *unit ? ", " : "", unit);
    const char *const cells[6] = {
        el_json_shortest(el_json_number(workload, "sessions"), t[0]),
        exact ? "-" : el_json_shortest(el_json_number(figure, "counted"), t[1]),
        el_text_figure(el_json_number(figure, exact ? "last" : "level"), t[2]),
        one_digit(exact ? 0 : el_json_number(figure, "sd_pct"), t[3]),
        exact ? "any" : one_digit(el_json_number(figure, "detectable_pct"), t[4]),
        exact ? "0" : el_json_shortest(el_json_number(figure, "sessions_needed"), t[5]),
    };
    el_utf8_printable(label);
    put_cells(label, cells, time_of(el_json_text(workload, "last.time_utc", "?"), time), out);
    put_notes(workload, figure, out);
}

static void put_workload(const json_t *workload, struct shown *shown, FILE *out)
{
    const char *name;
    json_t *figure;
    json_object_foreach(json_object_get(workload, "figures"), name, figure)
    {
        if (!el_session_leads(workload, name)) continue;
        put_row(workload, name, figure, out);
        shown->scatters = shown->scatters || el_json_number(figure, "detectable_pct") > DETECTABLE_MAX_PCT;
        shown->needs = fmax(shown->needs, el_json_number(figure, "sessions_needed"));
        if (json_is_true(json_object_get(figure, "last_is_outlier")))
            shown->outlier = el_json_text(workload, "last.dir", "DIR");
    }
}

/* What there is to do next: first what is odd, then what is missing. */
static void put_next(const char *store, const struct shown *shown, FILE *out)
{
    const char *program = el_program_word();
    const bool elsewhere = strcmp(store, EL_BASELINE_STORE) != 0;
    char run[EL_WORD_BYTES], word[EL_WORD_BYTES], more[96] = "";
    el_shell_word(store, word, sizeof word);
    fputc('\n', out);
    if (shown->outlier) {
        el_text_line(out, "Next: %s baseline accept %s%s%s    (if the new level is right)", program,
                     el_shell_word(shown->outlier, run, sizeof run), elsewhere ? " --store " : "",
                     elsewhere ? word : "");
        return;
    }
    if (shown->needs > 0)
        snprintf(more, sizeof more, " --add    (%.0f more session%s before it can judge)", shown->needs,
                 shown->needs == 1 ? "" : "s");
    el_text_line(out, "Next: %s regress --baseline %s --current DIR%s", program, word, more);
}

void el_baseline_print(const json_t *document, FILE *out)
{
    static const char *const heads[6] = {"sessions", "counted", "level", "sd %", "detects %", "needs"};
    const json_t *machine, *workload;
    struct shown shown = {.needs = 0};
    size_t m, w;
    json_array_foreach(json_object_get(document, "machines"), m, machine)
    {
        char words[320];
        el_fingerprint_words(json_object_get(machine, "fields"), words, sizeof words);
        fprintf(out, "%smachine %s: %s\n", m ? "\n" : "", el_json_text(machine, "fingerprint", "?"), words);
        put_cells("trial", heads, "last session, UTC", out);
        json_array_foreach(json_object_get(machine, "workloads"), w, workload) put_workload(workload, &shown, out);
        if (shown.scatters)
            fprintf(
                out,
                "\nWhere 'detects' is above %.0f %% sessions scatter too much: the gate is inconclusive. Longer runs "
                "(--repeats,\n"
                "--min-time, --launches) or a quieter machine help, or evenload regress --ab, which needs no "
                "store.\n",
                DETECTABLE_MAX_PCT);
        shown.scatters = false;
    }
    put_next(el_json_text(document, "store", EL_BASELINE_STORE), &shown, out);
}
