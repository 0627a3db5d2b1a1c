/* A store's records, read and put by machine and workload; and what the sessions of one workload come to. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/session.h"
#include "bench/regress/store.h"

enum { KEY_LETTERS = EL_FINGERPRINT_BYTES - 1 };

/* ---- reading ---- */

static const json_t *machine_of(const json_t *machines, const char *key)
{
    EL_EACH(machine, machines) {
        if (el_json_is(machine, "fingerprint", key)) return machine;
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

const json_t *el_store_sessions(const json_t *machines, const char *key, const json_t *workload)
{
    return sessions_of(machine_of(machines, key), workload);
}

/* The trials of a record are sessions: each goes to those of its workload. */
static enum el_status put_record(const json_t *record, const char *path, json_t *machines)
{
    const char *key = el_json_text(record, "machine.fingerprint", NULL);
    const json_t *trials = json_object_get(record, "trials");
    EL_EACH(trial, trials) {
        if (!json_is_object(json_object_get(trial, "figures")) || !el_json_text(trial, "run", NULL)) key = NULL;
    }
    if (!key) return el_fail(EL_ERR_INVALID, "%s is no record of a baseline: move the file away", path);
    if (!machine_of(machines, key)) {
        json_t *machine = json_deep_copy(json_object_get(record, "machine"));
        json_object_set_new(machine, "workloads", json_array());
        json_array_append_new(machines, machine);
    }
    const json_t *machine = machine_of(machines, key);
    EL_EACH(trial, trials) {
        json_t *workload = el_workload_of(trial), *sessions = sessions_of(machine, workload);
        if (sessions)
            json_array_append(sessions, trial);
        else
            json_array_append_new(json_object_get(machine, "workloads"), json_pack("[O]", trial));
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
    if (length == KEY_LETTERS)
        return el_fail(EL_ERR_INVALID,
                       "%s: sessions in the form of an older version: move %s away, or give another folder", path,
                       store_dir);
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

bool el_sessions_have(const json_t *sessions, const char *run, bool accepted)
{
    for (size_t i = json_array_size(sessions); i > 0; i--) {
        const json_t *session = json_array_get(sessions, i - 1);
        bool is_accepted = json_is_true(json_object_get(session, "accepted"));
        bool same = el_json_is(session, "run", run);
        if (same && is_accepted >= accepted) return true;
        if (accepted && is_accepted) return false;
    }
    return false;
}

bool el_sessions_is_level(const json_t *sessions, const char *run)
{
    for (size_t i = json_array_size(sessions); i > 0; i--) {
        const json_t *session = json_array_get(sessions, i - 1);
        if (!el_json_is(session, "run", run)) return false;
        if (json_is_true(json_object_get(session, "accepted"))) return true;
    }
    return false;
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
