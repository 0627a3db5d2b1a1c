/* What a store holds, as a document: each workload's sessions, and for each figure the level they make. And that as a
 * person reads it: a table a machine, a row a workload, and below a row what is odd about it. The figure shown is a
 * gate's own; the others are in the document. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/regress/history.h"
#include "bench/regress/rule.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"
#include "runtime/base/utf8.h"

/* ---- the document ---- */

static json_t *figure_of(const char *name, const json_t *last, const json_t *sessions, const json_t *history,
                         size_t cells)
{
    bool exact = el_figure_is_exact(last);
    const char *unit = el_json_text(last, "unit", "");
    struct el_level level;
    json_t *figure = el_json_of(EL_KEY("unit", unit), EL_KEY("better", el_better_text(el_figure_better(last))),
                                EL_KEY("exact", exact), EL_KEY("last", el_json_number(last, "value")),
                                EL_KEY("history", history ? el_history_figure(history, name, last) : json_null()));
    if (exact || el_sessions_level(sessions, name, unit, NULL, &level) != EL_OK) return figure;
    el_json_put_all(figure, EL_KEY("level", level.centre), EL_KEY("counted", level.n), EL_KEY("of_level", level.n_era),
                    EL_KEY("outliers", level.n_far), EL_KEY("last_is_outlier", level.last_far),
                    EL_KEY("sd_pct", 100 * level.sd_ratio),
                    EL_KEY("detectable_pct", 100 * (el_regress_history_detects(&level, cells) - 1)),
                    EL_KEY("sessions_needed", level.needs));
    return figure;
}

/* When, and of what, a session was. */
static json_t *event_of(const json_t *session)
{
    static const char *const keys[] = {"time_utc", "commit", "dir", "suspect", NULL};
    json_t *event = json_object();
    el_json_copy(event, session, keys);
    return event;
}

/* Still without its figures. */
static json_t *workload_of(const json_t *sessions)
{
    /* Where the last accepted session stands, counted from 1; 0: none is. */
    size_t n = json_array_size(sessions), at = n;
    while (at > 0 && !json_is_true(json_object_get(json_array_get(sessions, at - 1), "accepted"))) at--;
    const json_t *last = json_array_get(sessions, n - 1), *accepted = at ? json_array_get(sessions, at - 1) : NULL;
    json_t *workload =
        el_json_of(EL_KEY("name", el_json_text(last, "name", "?")), EL_KEY("sessions", n),
                   EL_KEY("first", event_of(json_array_get(sessions, 0))), EL_KEY("last", event_of(last)),
                   EL_KEY("accepted", el_json_text(accepted, "time_utc", NULL)),
                   /* all of them, whether they count or not */
                   EL_KEY("since_accepted", accepted ? json_integer((json_int_t)(n - at + 1)) : json_null()));
    if (el_program_is(last)) json_object_set(workload, "program", json_object_get(last, "program"));
    return workload;
}

static const json_t *last_of(const json_t *sessions)
{
    return json_array_get(sessions, json_array_size(sessions) - 1);
}

/* How many timed figures a gate of all these trials has: one each, but for those in virtual time; a program's all. */
static size_t count_timed(const json_t *workloads)
{
    size_t cells = 0;
    EL_EACH(sessions, workloads) {
        EL_EACH_KEY(name, figure, json_object_get(last_of(sessions), "figures")) {
            cells += el_session_leads(last_of(sessions), name) && !el_figure_is_exact(figure);
        }
    }
    return cells ? cells : 1;
}

/* A machine as it was read, its workloads' sessions replaced by what they come to. `read`: all machines, unchanged. */
static void describe_machine(json_t *machine, const json_t *read)
{
    json_t *all = json_object_get(machine, "workloads"), *workloads = json_array();
    size_t cells = count_timed(all);
    EL_EACH(sessions, all) {
        json_t *workload = workload_of(sessions), *figures = json_object();
        json_t *history = el_history_of(read, machine, sessions);
        EL_EACH_KEY(name, figure, json_object_get(last_of(sessions), "figures")) {
            el_json_put(figures, name, figure_of(name, figure, sessions, history, cells));
        }
        el_json_put(workload, "history", history ? el_history_sessions(history) : json_null());
        el_json_put(workload, "figures", figures);
        json_decref(history);
        json_array_append_new(workloads, workload);
    }
    el_json_put(machine, "workloads", workloads);
}

enum el_status el_baseline_describe(const char *store_dir, json_t **document_p)
{
    json_t *machines = NULL;
    EL_TRY(el_store_read(store_dir, &machines));
    enum el_status status = EL_OK;
    if (json_array_size(machines) == 0)
        status = el_fail(EL_ERR_ABSENT,
                         "%s holds no sessions: add some by 'evenload baseline add DIR', DIR being a run's", store_dir);
    json_t *read = json_array();
    EL_EACH(machine, machines) json_array_append_new(read, json_copy(machine));
    EL_EACH(machine, machines) describe_machine(machine, read);
    json_decref(read);
    if (status == EL_OK)
        *document_p = json_pack("{s:o, s:O}", "store", el_json_string(store_dir), "machines", machines);
    json_decref(machines);
    return status;
}

/* ---- the tables ---- */

enum { NAME_COLUMNS = 35 };

/* Above this the gate passes nothing: its verdict is inconclusive. */
#define DETECTABLE_MAX_PCT 10.0

/* What the rows come to, for what is said below them. */
struct shown {
    bool scatters;
    const char *outlier; /* the folder of a last session that is one; NULL */
    double needs;
};

static const struct el_column columns[] = EL_COLUMNS(
    EL_NAME("trial", NAME_COLUMNS, "trial"), EL_COUNT("sessions", 8, "sessions"), EL_COUNT("counted", 8, "counted"),
    EL_FIGURE("level", 8, "level"), EL_PERCENT("sd %", 6, "sd_pct"), EL_TEXT("detects %", 10, "detects"),
    EL_COUNT("needs", 6, "sessions_needed"), EL_TEXT("last session, UTC", -16, "at", .gap = 2));

/* "2026-01-31T14:25:01Z" as "2026-01-31 14:25". */
static const char *time_of(const char *utc, char text[32])
{
    snprintf(text, 32, "%.16s", utc);
    if (strchr(text, 'T')) *strchr(text, 'T') = ' ';
    return el_utf8_printable(text), text;
}

#define NOTE(out, ...) el_text_say("  ", "  ", out, __VA_ARGS__)

static void put_notes(const json_t *workload, const json_t *figure, FILE *out)
{
    char time[32], last[48] = "";
    double far = el_json_number(figure, "outliers"), since = el_json_number(workload, "since_accepted");
    const char *accepted = el_json_text(workload, "accepted", NULL);
    if (since > EL_LEVEL_SESSIONS_MAX) snprintf(last, sizeof last, "; the last %d count", EL_LEVEL_SESSIONS_MAX);
    if (accepted)
        NOTE(out, "accepted as the level: the run of %s; %.0f since, with it%s", time_of(accepted, time), since, last);
    *last = '\0';
    if (json_is_true(json_object_get(figure, "last_is_outlier")))
        snprintf(last, sizeof last, "; the last session is one (%+.1f %%)",
                 100 * (el_json_number(figure, "last") / el_json_number(figure, "level") - 1));
    el_history_print(workload, figure, out);
    if (far > 0) NOTE(out, "%.0f outlier%s, kept and not counted%s", far, far == 1 ? "" : "s", last);
}

/* A run's row is named by its trial, a program's by its name and the figure. In virtual time a figure has no noise: one
 * session suffices, and any change is found. */
static void put_row(const json_t *workload, const char *name, const json_t *figure, const struct el_table *table)
{
    char time[32];
    const char *unit = el_json_text(figure, "unit", "");
    bool program = el_program_is(workload);
    double detects = el_json_number(figure, "detectable_pct");
    json_t *row = json_copy((json_t *)(uintptr_t)figure);
    el_json_put_all(row,
                    EL_KEY("trial", json_sprintf("%s%s%s%s%s", el_json_text(workload, "name", "?"), program ? ": " : "",
                                                 program ? name : "", *unit ? ", " : "", unit)),
                    EL_KEY("sessions", json_incref(json_object_get(workload, "sessions"))),
                    EL_KEY("detects", isnan(detects) ? json_string("-") : json_sprintf("%.1f", detects)),
                    EL_KEY("at", time_of(el_json_text(workload, "last.time_utc", "?"), time)));
    if (el_figure_is_exact(figure))
        el_json_put_all(row, EL_KEY("level", el_json_number(figure, "last")), EL_KEY("sd_pct", 0),
                        EL_KEY("detects", "any"), EL_KEY("sessions_needed", 0));
    el_table_row(table, EL_TABLE_PLAIN, row);
    json_decref(row);
    put_notes(workload, figure, table->out);
}

static void put_workload(const json_t *workload, struct shown *shown, const struct el_table *table)
{
    EL_EACH_KEY(name, figure, json_object_get(workload, "figures")) {
        if (!el_session_leads(workload, name)) continue;
        put_row(workload, name, figure, table);
        shown->scatters = shown->scatters || el_json_number(figure, "detectable_pct") > DETECTABLE_MAX_PCT;
        shown->needs = fmax(shown->needs, el_json_number(figure, "sessions_needed"));
        if (json_is_true(json_object_get(figure, "last_is_outlier")))
            shown->outlier = el_json_text(workload, "last.dir", "DIR");
    }
}

void el_baseline_print_next(const char *store, const char *run, bool accept, FILE *out)
{
    bool elsewhere = strcmp(store, EL_BASELINE_STORE) != 0;
    char folder[EL_WORD_BYTES], word[EL_WORD_BYTES];
    el_text_line(out, "Next: %s baseline %s %s%s%s%s", el_program_word(), accept ? "accept" : "add",
                 el_shell_word(run, folder, sizeof folder), elsewhere ? " --store " : "",
                 elsewhere ? el_shell_word(store, word, sizeof word) : "",
                 accept ? "    (if the new level is right)" : "");
}

/* What there is to do next: first what is odd, then what is missing. */
static void put_next(const char *store, const struct shown *shown, FILE *out)
{
    char word[EL_WORD_BYTES], more[96] = "";
    fputc('\n', out);
    if (shown->outlier) {
        el_baseline_print_next(store, shown->outlier, true, out);
        return;
    }
    if (shown->needs > 0)
        snprintf(more, sizeof more, " --add    (%.0f more session%s before it can judge)", shown->needs,
                 shown->needs == 1 ? "" : "s");
    el_text_line(out, "Next: %s regress --baseline %s --current DIR%s", el_program_word(),
                 el_shell_word(store, word, sizeof word), more);
}

void el_baseline_print(const json_t *document, FILE *out)
{
    const struct el_table table = {.columns = columns, .out = out};
    struct shown shown = {.needs = 0};
    EL_EACH(machine, json_object_get(document, "machines")) {
        char words[320];
        el_fingerprint_words(json_object_get(machine, "fields"), words, sizeof words);
        fprintf(out, "%smachine %s: %s\n", machine_at.i ? "\n" : "", el_json_text(machine, "fingerprint", "?"), words);
        el_table_heads(&table, EL_TABLE_PLAIN);
        EL_EACH(workload, json_object_get(machine, "workloads")) put_workload(workload, &shown, &table);
        if (shown.scatters) fputc('\n', out);
        if (shown.scatters)
            el_text_say("", "", out,
                        "Where 'detects' is above %.0f %% sessions scatter too much: the gate is inconclusive. Longer "
                        "runs (--repeats, --min-time, --launches) or a quieter machine help, or evenload regress --ab, "
                        "which needs no store.",
                        DETECTABLE_MAX_PCT);
        shown.scatters = false;
    }
    put_next(el_json_text(document, "store", EL_BASELINE_STORE), &shown, out);
}
