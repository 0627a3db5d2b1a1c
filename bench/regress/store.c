/* A store's records, read and put by machine and workload, and what the sessions of one workload come to; and a run's
 * trials into a record, all checked before it is written. */
#include "bench/regress/store.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/session.h"
#include "bench/stats/stats.h"
#include "runtime/base/files.h"

enum { KEY_LETTERS = 16 };

/* ---- a run's folder ---- */

static const char *const files[] = {"results.json", "program.json"};

static bool find_record(const char *dir, char path[EL_PATH_BYTES])
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if ((size_t)snprintf(path, EL_PATH_BYTES, "%s/%s", dir, files[i]) < EL_PATH_BYTES && access(path, F_OK) == 0)
            return true;
    return false;
}

bool el_regress_is_run(const char *dir)
{
    char path[EL_PATH_BYTES];
    return find_record(dir, path);
}

enum el_status el_run_load(const char *dir, json_t **run_p)
{
    char path[EL_PATH_BYTES];
    json_t *run = NULL;
    if (!find_record(dir, path))
        return el_fail(EL_ERR_IO, "%.200s: there is no run in it (no %s, no %s): give the folder of a run", dir,
                       files[0], files[1]);
    EL_TRY(el_record_read(path, &run));
    if (json_object_get(run, "watch")) {
        json_decref(run);
        return el_fail(EL_ERR_INVALID,
                       "%s is a watch of one launch: 'baseline add --from' launches a program several "
                       "times",
                       path);
    }
    *run_p = run;
    return EL_OK;
}

/* ---- reading ---- */

/* The one of the same fingerprint. */
static const json_t *find_machine(const json_t *machines, const json_t *like)
{
    EL_EACH(machine, machines) {
        if (el_json_is(machine, "fingerprint", el_json_text(like, "fingerprint", ""))) return machine;
    }
    return NULL;
}

static json_t *sessions_of(const json_t *machine, const json_t *workload)
{
    EL_EACH(sessions, json_object_get(machine, "workloads")) {
        if (el_workload_same(json_array_get(sessions, 0), workload)) return sessions;
    }
    return NULL;
}

const json_t *el_store_sessions(const json_t *machines, const json_t *machine, const json_t *workload)
{
    return sessions_of(find_machine(machines, machine), workload);
}

/* The trials of a record are sessions: each goes to those of its workload. */
static enum el_status put_record(const json_t *record, const char *path, json_t *machines)
{
    const json_t *trials = json_object_get(record, "trials");
    json_t *its = json_object_get(record, "machine");
    bool good = el_json_text(its, "fingerprint", NULL);
    EL_EACH(trial, trials) {
        good = good && json_is_object(json_object_get(trial, "figures")) && el_json_text(trial, "run", NULL);
    }
    if (!good) return el_fail(EL_ERR_INVALID, "%s is no record of a baseline: move the file away", path);
    const json_t *machine = find_machine(machines, its);
    if (!machine) {
        json_array_append_new(machines, json_deep_copy(its));
        machine = json_array_get(machines, json_array_size(machines) - 1);
        json_object_set_new((json_t *)(uintptr_t)machine, "workloads", json_array());
    }
    EL_EACH(trial, trials) {
        json_t *workload = el_workload_of(trial), *sessions = sessions_of(machine, workload);
        if (!sessions) json_array_append_new(json_object_get(machine, "workloads"), sessions = json_array());
        json_object_set(trial, "machine", its);
        json_array_append(sessions, trial);
        json_decref(workload);
    }
    return EL_OK;
}

static int of_store(const struct dirent *entry)
{
    return strspn(entry->d_name, "0123456789abcdef") == KEY_LETTERS;
}

/* A copy that somebody made of a record ("x.json.bak") is none. */
static enum el_status read_entry(const char *store_dir, const char *name, json_t *machines)
{
    static const char ending[] = ".json";
    char path[EL_PATH_BYTES * 2];
    json_t *record = NULL;
    size_t length = strlen(name), its = sizeof ending - 1;
    snprintf(path, sizeof path, "%s/%s", store_dir, name);
    if (name[KEY_LETTERS] != '-' || strcmp(name + length - its, ending) != 0) return EL_OK;
    EL_TRY(el_record_read(path, &record));
    enum el_status status = put_record(record, path, machines);
    json_decref(record);
    return status;
}

enum el_status el_store_read(const char *store_dir, json_t **machines_p)
{
    struct dirent **entries = NULL;
    json_t *machines = json_array();
    enum el_status status = EL_OK;
    int n = scandir(store_dir, &entries, of_store, alphasort);
    if (n < 0 && errno != ENOENT) status = el_fail_errno("%s could not be read", store_dir);
    for (int i = 0; i < n; i++) {
        if (status == EL_OK) status = read_entry(store_dir, entries[i]->d_name, machines);
        free(entries[i]);
    }
    free(entries);
    if (status == EL_OK) *machines_p = json_incref(machines);
    json_decref(machines);
    return status;
}

/* ---- the sessions of one workload ---- */

struct el_standing el_sessions_standing(const json_t *sessions, const char *run)
{
    struct el_standing standing = {false, false, false};
    bool others = false, found = false; /* since the last accepted one, which is found */
    for (size_t i = json_array_size(sessions); i > 0; i--) {
        const json_t *session = json_array_get(sessions, i - 1);
        bool same = el_json_is(session, "run", run);
        standing.there |= same;
        others |= !same;
        if (found || !json_is_true(json_object_get(session, "accepted"))) continue;
        found = true;
        standing.accepted = same;
        standing.is_level = !others;
    }
    return standing;
}

enum el_status el_sessions_level(const json_t *sessions, const char *figure, const char *unit, const char *except,
                                 struct el_level *level_p)
{
    size_t n = json_array_size(sessions), counted = 0;
    double *values = calloc(n + 1, sizeof *values);
    bool *accepted = calloc(n + 1, sizeof *accepted), begins = false;
    /* The last of each run: one that was added and accepted later is there twice, and counts once, as the later one. */
    json_t *last = json_object();
    bool made = values && accepted && last;
    for (size_t i = 0; i < n && made; i++)
        json_object_set(last, el_json_text(json_array_get(sessions, i), "run", ""), json_array_get(sessions, i));
    for (size_t i = 0; i < n && made; i++) {
        const json_t *session = json_array_get(sessions, i);
        const json_t *its = json_object_get(json_object_get(session, "figures"), figure);
        const char *run = el_json_text(session, "run", "");
        double value = el_json_number(its, "value");
        /* Also of a session that does not count here: the era is that of those after it. */
        begins |= json_is_true(json_object_get(session, "accepted"));
        if (json_object_get(last, run) != session || (except && !strcmp(run, except))) continue;
        if (!(value > 0) || !isfinite(value) || !el_json_is(its, "unit", unit)) continue;
        accepted[counted] = begins;
        values[counted++] = value;
        begins = false;
    }
    if (begins) counted = 0; /* of the level that was accepted last there is none */
    if (made) el_level_of(values, accepted, counted, level_p);
    json_decref(last);
    free(values);
    free(accepted);
    return made ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu sessions", n);
}

/* ---- a run into the store ---- */

/* A run beside the store. */
struct visit {
    const char *store, *dir;
    json_t *run, *machines, *machine; /* machine: the run's */
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
    const json_t *past = el_store_sessions(v->machines, v->machine, workload);
    struct el_standing standing = el_sessions_standing(past, el_json_text(session, "run", ""));
    bool there = v->accept ? standing.accepted : standing.there;
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
    json_object_set(record, "machine", v->machine);
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(at, sizeof at, "%Y%m%dT%H%M%S", gmtime_r(&now.tv_sec, &utc));
    enum el_status status = el_folder_make(v->store, "give another --store");
    if ((size_t)snprintf(path, sizeof path, "%s/%s-%s.%09ld-%.16s.json", v->store,
                         el_json_text(v->machine, "fingerprint", ""), at, now.tv_nsec,
                         el_json_text(v->kept, "0.run", "")) >= sizeof path)
        status = el_fail(EL_ERR_INVALID, "%.60s...: the store's name is too long", v->store);
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
    if (status == EL_OK) status = el_store_read(store_dir, &v.machines);
    v.machine = status == EL_OK ? el_fingerprint_of(v.run) : NULL;
    if (status == EL_OK) status = keep_all(&v);
    json_decref(v.run);
    json_decref(v.machines);
    json_decref(v.machine);
    json_decref(v.kept);
    return status;
}

/* Past sessions into a level.
 *
 * The prediction interval of one more value about the mean of K is t s sqrt(1 + 1/K). Where only n of the K are of the
 * level, the mean has the variance 1/n instead of 1/K, and as the scatter is that about E means, it is the squares over
 * K - E instead of K - 1: values are therefore stretched about the level by sqrt((1 + 1/n) / (1 + 1/K) * (K - 1) / (K -
 * E)), and t is to be that of K - E degrees of freedom. An era of one session has no scatter: its residual is 0 by
 * construction, and it would only fill a place. */

/* Of sorted values, between neighbours in proportion. */
static double quartile(const double *sorted, size_t n, double q)
{
    double place = q * (double)(n - 1);
    size_t below = (size_t)place, above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

void el_level_far(const double *values, size_t n, bool *far)
{
    memset(far, 0, n * sizeof *far);
    double *sorted = n < EL_LEVEL_SESSIONS_MIN ? NULL : malloc(n * sizeof *sorted);
    if (!sorted) return;
    for (size_t i = 0; i < n; i++) sorted[i] = log(values[i]);
    el_stats_sort(sorted, n);
    double low = quartile(sorted, n, 0.25), high = quartile(sorted, n, 0.75);
    double reach = fmax(3 * (high - low), log(EL_LEVEL_FLOOR_RATIO));
    for (size_t i = 0; i < n; i++) far[i] = log(values[i]) > high + reach || log(values[i]) < low - reach;
    free(sorted);
}

/* What counts, newest first: each session's distance from its own era's level. */
struct gathered {
    double residuals[EL_LEVEL_SESSIONS_MAX], centre;
    size_t n, eras; /* eras: those that are among the residuals */
};

/* [n] of one era. */
static void gather_era(const double *values, const bool *far, size_t n, struct gathered *g)
{
    double sum = 0, counted = 0;
    for (size_t i = 0; i < n; i++) {
        sum += far[i] ? 0 : log(values[i]);
        counted += !far[i];
    }
    double centre = sum / counted; /* NAN for none */
    if (!g->eras++) g->centre = centre;
    for (size_t i = n; i > 0; i--)
        if (!far[i - 1]) g->residuals[g->n++] = log(values[i - 1]) - centre;
}

/* The last era, and where that is short as many before it as there is room for. */
static void gather(const double *values, const bool *accepted, size_t n, struct gathered *g, struct el_level *level)
{
    bool far[EL_LEVEL_SESSIONS_MAX];
    for (size_t end = n; end > 0 && g->n + 1 < EL_LEVEL_SESSIONS_MAX && level->n_era < EL_LEVEL_SESSIONS_MIN;) {
        /* As many as there is room for; an accepted session is an era's first. */
        size_t begin = end - 1, most = EL_LEVEL_SESSIONS_MAX - g->n;
        while (begin > 0 && end - begin < most && !accepted[begin]) begin--;
        const double *part = values + begin;
        size_t length = end - begin;
        level->n_eras++;
        if (end == n || length > 1) {
            el_level_far(part, length, far);
            gather_era(part, far, length, g);
        }
        if (end == n) {
            level->n_era = g->n;
            level->n_far = length - g->n;
            level->last_far = far[length - 1];
        }
        end = begin;
    }
}

void el_level_of(const double *values, const bool *accepted, size_t n, struct el_level *level_p)
{
    struct el_level level = {.centre = NAN, .sd_ratio = NAN};
    struct gathered g = {.centre = NAN};
    gather(values, accepted, n, &g, &level);
    double k = (double)g.n, of_level = (double)level.n_era, stretch = 1, squares = 0;
    for (size_t i = 0; i < g.n; i++) squares += g.residuals[i] * g.residuals[i];
    level.df = g.n - g.eras;
    if (level.df > 0) {
        level.sd_ratio = sqrt(squares / (double)level.df);
        stretch = sqrt((1 + 1 / of_level) / (1 + 1 / k) * (k - 1) / (double)level.df);
    }
    for (size_t i = 0; i < g.n; i++) level.values[i] = exp(g.centre + stretch * g.residuals[g.n - 1 - i]);
    level.n = g.n;
    level.centre = g.n ? exp(g.centre) : NAN;
    level.needs = level.df < EL_LEVEL_DF_MIN ? EL_LEVEL_DF_MIN - level.df + (g.n == 0) : 0;
    *level_p = level;
}
