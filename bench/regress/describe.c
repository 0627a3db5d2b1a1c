/* What a store holds, as a document: each workload's sessions, and for each figure the level they make. */
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/regress/rule.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"

static json_t *figure_of(const char *name, const json_t *last, const json_t *sessions, size_t cells)
{
    bool exact = el_figure_is_exact(last);
    const char *unit = el_json_text(last, "unit", "");
    struct el_level level;
    json_t *figure = json_pack("{s:s, s:b, s:o}", "unit", unit, "exact", (int)exact, "last",
                               el_json_real(el_json_number(last, "value")));
    if (exact || el_sessions_level(sessions, name, unit, NULL, &level) != EL_OK) return figure;
    json_t *of_level =
        json_pack("{s:o, s:I, s:I, s:I, s:b, s:o, s:o, s:I}", "level", el_json_real(level.centre), "counted",
                  (json_int_t)level.n, "of_level", (json_int_t)level.n_era, "outliers", (json_int_t)level.n_far,
                  "last_is_outlier", (int)level.last_far, "sd_pct", el_json_real(100 * level.sd_ratio),
                  "detectable_pct", el_json_real(100 * (el_regress_history_detects(&level, cells) - 1)),
                  "sessions_needed", (json_int_t)level.needs);
    json_object_update(figure, of_level);
    json_decref(of_level);
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
    json_t *workload = json_pack(
        "{s:s, s:I, s:o, s:o, s:o, s:o}", "name", el_json_text(last, "name", "?"), "sessions", (json_int_t)n, "first",
        event_of(json_array_get(sessions, 0)), "last", event_of(last), "accepted",
        el_json_string(el_json_text(accepted, "time_utc", NULL)), "since_accepted",
        /* all of them, whether they count or not */ accepted ? json_integer((json_int_t)(n - at + 1)) : json_null());
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

/* A machine as it was read, its workloads' sessions replaced by what they come to. */
static void describe_machine(json_t *machine)
{
    json_t *all = json_object_get(machine, "workloads"), *workloads = json_array();
    size_t cells = count_timed(all);
    EL_EACH(sessions, all) {
        json_t *workload = workload_of(sessions), *figures = json_object();
        EL_EACH_KEY(name, figure, json_object_get(last_of(sessions), "figures")) {
            el_json_put(figures, name, figure_of(name, figure, sessions, cells));
        }
        el_json_put(workload, "figures", figures);
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
    EL_EACH(machine, machines) describe_machine(machine);
    if (status == EL_OK)
        *document_p = json_pack("{s:o, s:O}", "store", el_json_string(store_dir), "machines", machines);
    json_decref(machines);
    return status;
}
