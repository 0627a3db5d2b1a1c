/* A run's trials into the store: all are checked before the first is written. */
#include "bench/regress/store.h"

#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/run_folder.h"
#include "bench/regress/session.h"
#include "runtime/base/files.h"

/* A run beside its machine's folder. */
struct visit {
    const char *store, *dir;
    json_t *run;
    struct el_fingerprint print;
    char folder[EL_PATH_BYTES];
    FILE *notes;
    bool accept, force;
    size_t there; /* trials that are in the store already */
};

enum el_status el_store_machine(const char *store_dir, const struct el_fingerprint *print, char folder[EL_PATH_BYTES])
{
    if ((size_t)snprintf(folder, EL_PATH_BYTES, "%s/%s", store_dir, print->key) < EL_PATH_BYTES - 128) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%.60s...: the store's name is too long", store_dir);
}

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

/* Exact figures have no noise: where one is worse than in the last session, somebody has to say that it is right. */
static enum el_status check_exact(const char *name, const json_t *last, const json_t *session)
{
    char text[2][32];
    const char *figure;
    json_t *now;
    json_object_foreach(json_object_get(session, "figures"), figure, now)
    {
        const json_t *before = json_object_get(json_object_get(last, "figures"), figure);
        double value = el_json_number(now, "value"), earlier = el_json_number(before, "value");
        enum el_better better = el_figure_better(now);
        bool worse = (value > earlier && better != EL_BETTER_HIGHER) || (value < earlier && better != EL_BETTER_LOWER);
        if (!el_figure_is_exact(now) || !worse) continue;
        return el_fail(EL_ERR_INVALID,
                       "%s: %s is %s %s, and was %s: where that is right, make it the level by 'evenload baseline "
                       "accept'",
                       name, figure, el_json_shortest(value, text[0]), el_json_text(now, "unit", ""),
                       el_json_shortest(earlier, text[1]));
    }
    return EL_OK;
}

static enum el_status check(const struct visit *v, const json_t *trial, const json_t *sessions, const json_t *session)
{
    const char *name = el_json_text(session, "name", "?");
    size_t n = json_array_size(sessions);
    if (!el_json_is(trial, "status", "ok"))
        return el_fail(EL_ERR_INVALID, "%s did not finish (%.100s): a baseline holds only runs that did: run it again",
                       name, el_json_text(trial, "reason", el_json_text(trial, "status", "failed")));
    if (v->force) return EL_OK;
    if (el_json_has(json_object_get(session, "suspect"), "injected"))
        return el_fail(EL_ERR_INVALID, "%s was disturbed on purpose (--inject): --force takes it all the same", name);
    return v->accept ? EL_OK : check_exact(name, json_array_get(sessions, n ? n - 1 : 0), session);
}

/* Checks one trial, or appends it; what is in the store already is only counted. */
static enum el_status keep(struct visit *v, const json_t *trial, bool append)
{
    char path[EL_PATH_BYTES];
    json_t *workload = el_workload_of(trial), *session = el_session_of(v->run, trial, v->dir), *sessions = NULL;
    bool exists = false;
    enum el_status status = el_sessions_path(v->folder, workload, path, sizeof path, &exists);
    if (status == EL_OK && exists) status = el_sessions_read(path, append ? NULL : v->notes, NULL, &sessions, NULL);
    bool there = el_sessions_have(sessions, el_json_text(session, "run", ""), v->accept);
    if (v->accept) json_object_set_new(session, "accepted", json_true());
    if (status == EL_OK && !there)
        status = append ? el_sessions_append(path, workload, session) : check(v, trial, sessions, session);
    if (!append) v->there += there;
    json_decref(workload);
    json_decref(session);
    json_decref(sessions);
    return status;
}

static enum el_status keep_all(struct visit *v)
{
    const json_t *trials = json_object_get(v->run, "trials"), *trial;
    size_t i, n = json_array_size(trials);
    json_array_foreach(trials, i, trial) EL_TRY(keep(v, trial, false));
    if (n == 0) return el_fail(EL_ERR_INVALID, "%s has no trials: there is nothing to keep", v->dir);
    if (v->there == n)
        return el_fail(EL_ERR_INVALID, "%s is %s in %s already: measure again for another session", v->dir,
                       v->accept ? "the accepted level" : "a session", v->store);
    EL_TRY(make_machine(v));
    json_array_foreach(trials, i, trial) EL_TRY(keep(v, trial, true));
    return EL_OK;
}

enum el_status el_baseline_add(const char *store_dir, const char *run_dir, bool accept, bool force, FILE *notes)
{
    struct visit v = {.store = store_dir, .dir = run_dir, .notes = notes, .accept = accept, .force = force};
    enum el_status status = el_run_load(run_dir, &v.run);
    if (status == EL_OK) status = el_fingerprint_of(v.run, &v.print);
    if (status == EL_OK) status = el_store_machine(store_dir, &v.print, v.folder);
    if (status == EL_OK) status = keep_all(&v);
    json_decref(v.run);
    el_fingerprint_free(&v.print);
    return status;
}
