/* What a store holds, as a document: each workload's sessions, and for each figure the level they make. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
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

/* A file of a store, read: with sessions, and the document still without its figures. */
static json_t *workload_of(const char *path, const json_t *sessions, size_t skipped)
{
    /* Where the last accepted session stands, counted from 1; 0: none is. */
    size_t n = json_array_size(sessions), at = n;
    while (at > 0 && !json_is_true(json_object_get(json_array_get(sessions, at - 1), "accepted"))) at--;
    const json_t *last = json_array_get(sessions, n - 1), *accepted = at ? json_array_get(sessions, at - 1) : NULL;
    json_t *workload = json_pack(
        "{s:s, s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "name", el_json_text(last, "name", "?"), "file",
        el_json_string(path), "sessions", (json_int_t)n, "skipped", (json_int_t)skipped, "first",
        event_of(json_array_get(sessions, 0)), "last", event_of(last), "accepted",
        el_json_string(el_json_text(accepted, "time_utc", NULL)), "since_accepted",
        /* all of them, whether they count or not */ accepted ? json_integer((json_int_t)(n - at + 1)) : json_null());
    if (el_program_is(last)) json_object_set(workload, "program", json_object_get(last, "program"));
    return workload;
}

static int only_sessions(const struct dirent *entry)
{
    return el_sessions_is_file(entry->d_name);
}

static int only_machines(const struct dirent *entry)
{
    return strlen(entry->d_name) == EL_FINGERPRINT_BYTES - 1 &&
           strspn(entry->d_name, "0123456789abcdef") == EL_FINGERPRINT_BYTES - 1;
}

/* Calls for each entry of the folder that `only` takes, in the order of names. */
static enum el_status walk(const char *folder, int (*only)(const struct dirent *entry),
                           enum el_status (*take)(const char *path, FILE *notes, json_t *list), FILE *notes,
                           json_t *list)
{
    struct dirent **entries = NULL;
    char path[EL_PATH_BYTES * 2];
    enum el_status status = EL_OK;
    int n = scandir(folder, &entries, only, alphasort);
    if (n < 0 && errno != ENOENT) status = el_fail_errno("%s could not be read", folder);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (status == EL_OK) status = take(path, notes, list);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* Adds {"workload", "sessions"}. */
static enum el_status take_file(const char *path, FILE *notes, json_t *files)
{
    json_t *workload = NULL, *sessions = NULL;
    size_t skipped = 0;
    enum el_status status = el_sessions_read(path, notes, &workload, &sessions, &skipped);
    if (status == EL_OK && json_array_size(sessions) > 0)
        json_array_append_new(
            files, json_pack("{s:o, s:O}", "workload", workload_of(path, sessions, skipped), "sessions", sessions));
    json_decref(workload);
    json_decref(sessions);
    return status;
}

static const json_t *last_of(const json_t *file)
{
    const json_t *sessions = json_object_get(file, "sessions");
    return json_array_get(sessions, json_array_size(sessions) - 1);
}

/* How many timed figures a gate of all these trials has: one each, but for those in virtual time; a program's all. */
static size_t count_timed(const json_t *files)
{
    size_t cells = 0, i;
    const json_t *file;
    const char *name;
    json_t *figure;
    json_array_foreach(files, i, file)
    {
        json_object_foreach(json_object_get(last_of(file), "figures"), name, figure)
        {
            cells += el_session_leads(last_of(file), name) && !el_figure_is_exact(figure);
        }
    }
    return cells ? cells : 1;
}

static enum el_status take_machine(const char *path, FILE *notes, json_t *machines)
{
    char of_machine[EL_PATH_BYTES * 2 + 32];
    json_t *files = json_array(), *workloads = json_array(), *file, *figure;
    const char *name;
    size_t i;
    enum el_status status = walk(path, only_sessions, take_file, notes, files);
    size_t cells = count_timed(files);
    json_array_foreach(files, i, file)
    {
        json_t *figures = json_object(), *sessions = json_object_get(file, "sessions");
        json_object_foreach(json_object_get(last_of(file), "figures"), name, figure)
        {
            el_json_put(figures, name, figure_of(name, figure, sessions, cells));
        }
        el_json_put(json_object_get(file, "workload"), "figures", figures);
        json_array_append(workloads, json_object_get(file, "workload"));
    }
    snprintf(of_machine, sizeof of_machine, "%s/machine.json", path);
    json_t *machine = NULL;
    bool known = status == EL_OK && el_read_json(of_machine, &machine) == EL_OK;
    el_json_printable(machine);
    json_t *fields = known ? json_object_get(machine, "fields") : NULL;
    if (json_array_size(workloads) > 0)
        json_array_append_new(machines,
                              json_pack("{s:s, s:o, s:O}", "fingerprint", strrchr(path, '/') + 1, "fields",
                                        fields ? json_incref(fields) : json_object(), "workloads", workloads));
    json_decref(machine);
    json_decref(workloads);
    json_decref(files);
    return status;
}

enum el_status el_baseline_describe(const char *store_dir, FILE *notes, json_t **document_p)
{
    json_t *machines = json_array();
    enum el_status status = walk(store_dir, only_machines, take_machine, notes, machines);
    if (status == EL_OK && json_array_size(machines) == 0)
        status = el_fail(EL_ERR_ABSENT,
                         "%s holds no sessions: add some by 'evenload baseline add DIR', DIR being a run's", store_dir);
    if (status == EL_OK)
        *document_p = json_pack("{s:o, s:O}", "store", el_json_string(store_dir), "machines", machines);
    json_decref(machines);
    return status;
}
