/* A run's trials into the store: all are checked before the first is written. */
#include "bench/regress/store.h"

#include <string.h>
#include <time.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/run_folder.h"
#include "bench/regress/session.h"
#include "runtime/base/files.h"

/* A run beside the store. */
struct visit {
    const char *store, *dir;
    json_t *run, *machines;
    struct el_fingerprint print;
    bool accept, force;
    json_t *kept; /* sessions that are new to the store */
};

/* Exact figures have no noise: where one is worse than in the last session, somebody has to say that it is right. */
static enum el_status check_exact(const char *name, const json_t *last, const json_t *session)
{
    char text[2][32];
    EL_EACH_KEY(figure, now, json_object_get(session, "figures")) {
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

/* Checks one trial, which goes to what is kept unless the store has it. */
static enum el_status keep(struct visit *v, const json_t *trial)
{
    json_t *workload = el_workload_of(trial), *session = el_session_of(v->run, trial, v->dir);
    const json_t *past = el_store_sessions(v->machines, v->print.key, workload);
    bool there = el_sessions_have(past, el_json_text(session, "run", ""), v->accept);
    enum el_status status = there ? EL_OK : check(v, trial, past, session);
    json_object_update(session, workload);
    if (v->accept) json_object_set_new(session, "accepted", json_true());
    if (!there) json_array_append(v->kept, session);
    json_decref(workload);
    json_decref(session);
    return status;
}

/* Its name has the run too: no two writers choose the same one. */
static enum el_status write_record(const struct visit *v)
{
    char path[EL_PATH_BYTES], at[32];
    struct timespec now;
    struct tm utc;
    json_t *record = el_record_run(json_deep_copy(json_object_get(v->run, "environment")), json_incref(v->kept));
    json_t *machine = json_pack("{s:s, s:O}", "fingerprint", v->print.key, "fields", v->print.fields);
    json_object_set_new(record, "machine", machine);
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(at, sizeof at, "%Y%m%dT%H%M%S", gmtime_r(&now.tv_sec, &utc));
    enum el_status status = el_folder_make(v->store, "give another --store");
    if ((size_t)snprintf(path, sizeof path, "%s/%s-%s.%09ld-%.16s.json", v->store, v->print.key, at, now.tv_nsec,
                         el_json_text(v->kept, "0.run", "")) >= sizeof path)
        status = el_fail(EL_ERR_INVALID, "%.60s...: the store's name is too long", v->store);
    if (status == EL_OK && !machine) status = el_fail(EL_ERR_HOST_MEMORY, "no memory for a session");
    if (status == EL_OK) status = el_write_json(record, path);
    json_decref(record);
    return status;
}

static enum el_status keep_all(struct visit *v)
{
    const json_t *trials = json_object_get(v->run, "trials");
    EL_EACH(trial, trials) EL_TRY(keep(v, trial));
    if (json_array_size(trials) == 0)
        return el_fail(EL_ERR_INVALID, "%s has no trials: there is nothing to keep", v->dir);
    if (json_array_size(v->kept) == 0)
        return el_fail(EL_ERR_INVALID, "%s is %s in %s already: measure again for another session", v->dir,
                       v->accept ? "the accepted level" : "a session", v->store);
    return write_record(v);
}

enum el_status el_baseline_add(const char *store_dir, const char *run_dir, bool accept, bool force)
{
    struct visit v = {.store = store_dir, .dir = run_dir, .accept = accept, .force = force, .kept = json_array()};
    enum el_status status = el_run_load(run_dir, &v.run);
    if (status == EL_OK) status = el_fingerprint_of(v.run, &v.print);
    if (status == EL_OK) status = el_store_read(store_dir, &v.machines);
    if (status == EL_OK) status = keep_all(&v);
    json_decref(v.run);
    json_decref(v.machines);
    json_decref(v.kept);
    el_fingerprint_free(&v.print);
    return status;
}
