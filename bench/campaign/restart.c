/* --checkpoint restarts: from the last checkpoint, with the same or the remaining devices; --elastic: again when a
 * device comes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/trial/events.h"
#include "bench/trial/trial.h"
#include "runtime/state/checkpoint.h"

struct restarts {
    struct el_trial *trial;
    int least, most; /* devices; 0: constant */
    struct el_device_name lost[EL_MEMBERS_MAX];
    int n_lost, n;
    char resume[EL_PATH_BYTES], inject[EL_PATH_BYTES]; /* at the job's begin */
    json_t *list;
    int events;
    /* a device has come: the job ends after one more checkpoint */
    bool coming, came;
    int64_t seen;
};

static bool is_lost(const json_t *document)
{
    return el_json_is(document, "status", "failed") || el_json_is(document, "status", "timeout");
}

/* The rank that "was killed by" a signal, else the last one named: who waited for it is named before it. */
static int rank_of(const char *reason)
{
    static const char killed[] = " was killed by";
    int rank = -1, end = 0;
    for (const char *at = strstr(reason, "rank "); at; at = strstr(at + 1, "rank "))
        if (sscanf(at, "rank %d%n", &rank, &end) == 1 && !strncmp(at + end, killed, sizeof killed - 1)) break;
    return rank;
}

static void set_devices(struct restarts *r, int n)
{
    struct el_trial *trial = r->trial;
    if (trial->procs == trial->n_devices) trial->procs = n;
    if (trial->elastic_device) { /* linear scaling: Goyal et al., 2017 */
        trial->train.global_batch = trial->train.global_batch / trial->n_devices * n;
        trial->train.lr *= (double)n / trial->n_devices;
    }
    trial->n_devices = trial->train.n_devices = n;
    trial->batch_is_per_device = false;
}

static void leave(struct restarts *r, int rank)
{
    struct el_trial *trial = r->trial;
    if (r->least == 0 || rank < 0 || rank >= trial->n_devices || trial->n_devices <= r->least) return;
    r->lost[r->n_lost++] = trial->devices[rank];
    memmove(&trial->devices[rank], &trial->devices[rank + 1],
            (size_t)(trial->n_devices - rank - 1) * sizeof *trial->devices);
    set_devices(r, trial->n_devices - 1);
}

static void come(struct restarts *r)
{
    r->coming = r->came = false;
    if (r->n_lost == 0 || r->trial->n_devices >= r->most) return;
    r->trial->devices[r->trial->n_devices] = r->lost[--r->n_lost];
    set_devices(r, r->trial->n_devices + 1);
}

/* Called while the job runs; true ends it. */
static bool has_come(void *context)
{
    struct restarts *r = context;
    char path[EL_PATH_BYTES + 8];
    snprintf(path, sizeof path, "%s/come", r->trial->checkpoint);
    if (!r->coming && unlink(path) == 0) {
        r->coming = r->n_lost > 0 && r->trial->n_devices < r->most;
        r->seen = el_checkpoint_last(r->trial->checkpoint);
    }
    const struct el_train_config *train = &r->trial->train;
    const int64_t last = el_checkpoint_last(r->trial->checkpoint);
    const bool over = train->epochs == 0 && train->min_time_s <= 0 && /* nothing would be left to do */
                      last >= train->warmup + train->steps;
    r->came = r->coming && last > r->seen && !over;
    return r->came;
}

/* Written by this job, complete, and with steps left. */
static bool is_own(const struct el_trial *trial, const char *path)
{
    struct el_checkpoint *checkpoint;
    if (el_checkpoint_open(path, &checkpoint) != EL_OK) {
        el_text_line(stderr, "left out: %s", el_error_message());
        return false;
    }
    const bool own = el_json_is(el_checkpoint_index(checkpoint), "job", trial->id) &&
                     el_checkpoint_leaves_steps(checkpoint, &trial->train);
    el_checkpoint_close(checkpoint);
    return own;
}

static int64_t find_back(struct restarts *r)
{
    struct el_trial *trial = r->trial;
    for (int64_t step = INT64_MAX; (step = el_checkpoint_before(trial->checkpoint, step)) >= 0;) {
        el_checkpoint_folder(trial->checkpoint, step, true, trial->resume);
        if (is_own(trial, trial->resume)) return step;
    }
    memcpy(trial->resume, r->resume, sizeof r->resume);
    return trial->from ? el_checkpoint_step(trial->from) : 0;
}

/* The injection that ended it is used up. */
static void go_back(struct restarts *r, const char *reason)
{
    struct el_trial *trial = r->trial;
    const int64_t step = find_back(r);
    el_inject_drop_first_fall(trial->inject);
    el_text_line(stderr, "%s: restart %d, on %d devices from step %lld", reason, ++r->n, trial->n_devices,
                 (long long)step);
    json_array_append_new(
        r->list, el_json_of(EL_KEY("reason", reason), EL_KEY("step", step), EL_KEY("devices", trial->n_devices),
                            EL_KEY("global_batch", trial->train.global_batch), EL_KEY("lr", trial->train.lr)));
    el_events_add(r->events, "restart", step);
}

static enum el_status measure_all(const struct el_runner *runner, struct restarts *r, int repeat, int order,
                                  json_t **document_p)
{
    for (int lost = 0;;) {
        EL_TRY(el_runner_measure(runner, r->trial, repeat, order, document_p));
        el_events_add(r->events, "end", 0);
        if (el_runner_interrupted()) return EL_OK;
        if (!*document_p && r->came) {
            come(r);
            go_back(r, "a rank has come");
            continue;
        }
        if (!is_lost(*document_p) || lost++ == r->trial->max_restarts) return EL_OK;
        const char *reason = el_json_text(*document_p, "reason", "");
        leave(r, rank_of(reason));
        go_back(r, reason);
        json_decref(*document_p);
        *document_p = NULL;
    }
}

enum el_status el_restart_measure(const struct el_runner *runner, struct el_trial *trial, int repeat, int order,
                                  json_t **document_p)
{
    struct restarts r = {.trial = trial, .list = json_array(), .events = el_events_open(trial->checkpoint)};
    struct el_runner watching = *runner;
    memcpy(r.resume, trial->resume, sizeof r.resume);
    memcpy(r.inject, trial->inject, sizeof r.inject);
    if (sscanf(trial->elastic, "%d:%d", &r.least, &r.most) == 2) watching.leave = has_come, watching.of_leave = &r;
    enum el_status status = measure_all(&watching, &r, repeat, order, document_p);
    memcpy(trial->resume, r.resume, sizeof r.resume);
    memcpy(trial->inject, r.inject, sizeof r.inject);
    if (r.events >= 0) close(r.events);
    if (*document_p && trial->max_restarts) el_json_put(*document_p, "restarts", json_incref(r.list));
    json_decref(r.list);
    return status;
}
