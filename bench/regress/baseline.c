/* The store: a folder a machine, a file a workload. Adding to it, and a run compared with it. What is in a file
 * is sessions_file.c's, what sessions come to level.c's, and what is printed baseline_report.c's. */
#include "bench/regress/baseline.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/options/config.h"
#include "bench/record/record.h"
#include "bench/regress/figure.h"
#include "bench/regress/fingerprint.h"
#include "bench/regress/runs.h"
#include "bench/regress/session.h"
#include "runtime/base/files.h"

/* A run beside its machine's folder. */
struct visit {
    const char *store, *dir;
    json_t *run;
    struct el_fingerprint print;
    char folder[EL_PATH_BYTES];
    FILE *notes;
};

static enum el_status begin_visit(const char *store, const char *dir, FILE *notes, struct visit *v)
{
    *v = (struct visit){.store = store, .dir = dir, .notes = notes};
    EL_TRY(el_run_load(dir, &v->run));
    EL_TRY(el_fingerprint_of(v->run, &v->print));
    if ((size_t)snprintf(v->folder, sizeof v->folder, "%s/%s", store, v->print.key) < sizeof v->folder - 128)
        return EL_OK;
    return el_fail(EL_ERR_INVALID, "%.60s...: the store's name is too long", store);
}

static void end_visit(struct visit *v)
{
    json_decref(v->run);
    el_fingerprint_free(&v->print);
}

static json_t *trials_of(const struct visit *v)
{
    return json_object_get(v->run, "trials");
}

/* ---- adding ---- */

static enum el_status make_machine(const struct visit *v)
{
    char path[EL_PATH_BYTES + 32];
    EL_TRY(el_folder_make(v->folder, "give another --store"));
    snprintf(path, sizeof path, "%s/machine.json", v->folder);
    if (access(path, F_OK) == 0) return EL_OK;
    json_t *machine =
        json_pack("{s:i, s:s, s:O}", "schema", EL_SCHEMA, "fingerprint", v->print.key, "fields", v->print.fields);
    enum el_status status = machine ? el_write_json(machine, path) : el_fail_errno("a machine's document");
    json_decref(machine);
    return status;
}

static bool has_rule(const json_t *trial, const char *rule)
{
    const json_t *rules = json_object_get(trial, "warning_rules");
    for (size_t i = 0; i < json_array_size(rules); i++) {
        const char *its = json_string_value(json_array_get(rules, i));
        if (its && !strcmp(its, rule)) return true;
    }
    return false;
}

static enum el_status check_trial(const char *name, const json_t *trial, bool force)
{
    if (!el_trial_finished(trial))
        return el_fail(EL_ERR_INVALID, "%s did not finish (%.100s): a baseline holds only runs that did: run it again",
                       name, el_json_text(trial, "reason", el_json_text(trial, "status", "failed")));
    if (has_rule(trial, "injected") && !force)
        return el_fail(EL_ERR_INVALID, "%s was disturbed on purpose (--inject): --force takes it all the same", name);
    return EL_OK;
}

/* Exact figures have no noise: where one is worse than in the last session, somebody has to say that it is right. */
static enum el_status check_exact(const char *name, const json_t *last, const json_t *session)
{
    char text[2][32];
    json_t *figures = json_object_get(session, "figures");
    for (void *at = json_object_iter(figures); last && at; at = json_object_iter_next(figures, at)) {
        const json_t *now = json_object_iter_value(at);
        const json_t *before = json_object_get(json_object_get(last, "figures"), json_object_iter_key(at));
        double value = el_json_number(now, "value"), earlier = el_json_number(before, "value");
        const char *better = el_json_text(now, "better", "lower");
        bool rises = value > earlier && strcmp(better, "higher") != 0;
        bool falls = value < earlier && strcmp(better, "lower") != 0;
        if (!json_is_true(json_object_get(now, "exact")) || (!rises && !falls)) continue;
        return el_fail(EL_ERR_INVALID,
                       "%s: %s is %s %s, and was %s: where that is right, make it the level by 'evenload baseline "
                       "accept'",
                       name, json_object_iter_key(at), el_json_shortest(value, text[0]), el_json_text(now, "unit", ""),
                       el_json_shortest(earlier, text[1]));
    }
    return EL_OK;
}

/* What there is to be appended for a trial: {workload, session}, or null where it is in the store already. */
static enum el_status prepare(const struct visit *v, const json_t *trial, bool accept, bool force, json_t *items)
{
    char name[EL_CELL_NAME_BYTES], path[EL_PATH_BYTES];
    json_t *workload = el_workload_of(trial), *session = el_session_of(v->run, trial, v->dir), *sessions = NULL;
    bool exists = false;
    el_workload_name(trial, name, sizeof name);
    enum el_status status = check_trial(name, trial, force);
    if (status == EL_OK) status = el_sessions_path(v->folder, workload, path, sizeof path, &exists);
    if (status == EL_OK && exists) status = el_sessions_read(path, v->notes, NULL, &sessions, NULL);
    size_t n = json_array_size(sessions);
    bool there = el_sessions_have(sessions, el_json_text(session, "run", ""), accept);
    if (status == EL_OK && !there && !accept && !force)
        status = check_exact(name, json_array_get(sessions, n ? n - 1 : 0), session);
    if (accept) json_object_set_new(session, "accepted", json_true());
    if (status == EL_OK)
        json_array_append_new(items,
                              there ? json_null() : json_pack("{s:O, s:O}", "workload", workload, "session", session));
    json_decref(workload);
    json_decref(session);
    json_decref(sessions);
    return status;
}

static enum el_status append_all(const struct visit *v, const json_t *items, bool accept)
{
    size_t there = 0, n = json_array_size(items);
    char path[EL_PATH_BYTES];
    bool exists = false;
    for (size_t i = 0; i < n; i++) there += json_is_null(json_array_get(items, i));
    if (n == 0) return el_fail(EL_ERR_INVALID, "%s has no trials: there is nothing to keep", v->dir);
    if (there == n)
        return el_fail(EL_ERR_INVALID, "%s is %s in %s already: measure again for another session", v->dir,
                       accept ? "the accepted level" : "a session", v->store);
    EL_TRY(make_machine(v));
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(items, i);
        if (json_is_null(item)) continue;
        const json_t *workload = json_object_get(item, "workload");
        EL_TRY(el_sessions_path(v->folder, workload, path, sizeof path, &exists));
        EL_TRY(el_sessions_append(path, workload, json_object_get(item, "session")));
    }
    return EL_OK;
}

enum el_status el_baseline_add(const char *store_dir, const char *run_dir, bool accept, bool force, FILE *notes)
{
    struct visit v;
    json_t *items = json_array();
    enum el_status status = begin_visit(store_dir, run_dir, notes, &v);
    for (size_t i = 0; status == EL_OK && i < json_array_size(trials_of(&v)); i++)
        status = prepare(&v, json_array_get(trials_of(&v), i), accept, force, items);
    if (status == EL_OK) status = append_all(&v, items, accept);
    json_decref(items);
    end_visit(&v);
    return status;
}
