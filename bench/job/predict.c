/* Each draw resamples one launch of each training record and the calls of each wire record, and predicts the step again
 * (docs/metrics.md). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/job/worker.h"
#include "bench/stats/stats.h"
#include "bench/trial/costs.h"
#include "bench/trial/machine.h"
#include "runtime/train/train.h"

enum { DRAWS = 20, WARMUP = 2, STEPS = 2 }; /* ddp's buckets are rebuilt after the first step */

/* Model error: root mean square of log(predicted / measured) by scripts/prediction-error --coverage, for ddp and
 * pipeline on two cores in 8 sessions (0.063 and 0.089). Includes the scatter of launches. */
static const double MODEL_ERROR = 0.08;

/* ---- what times rest on ---- */

static json_t *share_json(const struct el_cost_share *share)
{
    if (share->ns <= 0) return json_null();
    const int ranks = share->ranks, measured = share->basis.ranks;
    return el_json_of(EL_KEY("ms", share->ns / 1e6), EL_KEY("op", share->label), EL_KEY("bytes", share->bytes),
                      EL_KEY("low_bytes", share->basis.low_bytes), EL_KEY("high_bytes", share->basis.high_bytes),
                      EL_KEY("ranks", ranks ? json_integer(ranks) : json_null()),
                      EL_KEY("measured_ranks", measured ? json_integer(measured) : json_null()));
}

static void put_uses(json_t *prediction, const struct el_job_devices *devices)
{
    static const char *const names[EL_COST_KINDS] = {"outside", "other_ranks", "borrowed", "by_rates"};
    struct el_cost_use all = {.all_ns = 0};
    for (int i = 0; i < devices->n; i++) {
        const struct el_cost_use *use = &devices->sources->uses[i];
        all.all_ns += use->all_ns;
        for (int k = 0; k < EL_COST_KINDS; k++) {
            double sum_ns = all.shares[k].ns + use->shares[k].ns;
            if (use->shares[k].largest_ns > all.shares[k].largest_ns) all.shares[k] = use->shares[k];
            all.shares[k].ns = sum_ns;
        }
    }
    el_json_put_real(prediction, "all_ms", all.all_ns / 1e6);
    for (int k = 0; k < EL_COST_KINDS; k++) el_json_put(prediction, names[k], share_json(&all.shares[k]));
}

static enum el_status train(const struct el_job *job, struct el_job_devices *devices, double *step_ms_p)
{
    struct el_train_config few = job->trial->train;
    struct el_train_place place = el_job_place(job, devices);
    struct el_train_hooks hooks = {.probes = NULL};
    struct el_train_result result;
    double sum_ns = 0;
    few.warmup = WARMUP;
    few.steps = STEPS;
    few.min_time_s = 0;
    few.epochs = 0;
    few.control = EL_CONTROL_NONE;
    place.save = NULL;
    place.checkpoint = (struct el_checkpoint_spec){.dir = NULL};
    EL_TRY(el_train(&few, &place, &hooks, &result));
    for (int64_t s = 0; s < result.n_steps; s++) sum_ns += (double)result.step_ns[s];
    *step_ms_p = sum_ns / (double)result.n_steps / 1e6;
    el_train_result_free(&result);
    return EL_OK;
}

static enum el_status predict_draws(const struct el_job *job, const struct el_cost_set *set, double *step_ms)
{
    for (int d = 0; d < set->n_draws; d++) {
        struct el_job_devices devices;
        EL_TRY(el_job_open_with_costs(job, &set->costs[d + 1], &devices));
        enum el_status status = train(job, &devices, &step_ms[d]);
        el_job_close_devices(&devices);
        EL_TRY(status);
    }
    return EL_OK;
}

static const char *why_none(const struct el_cost_set *set)
{
    if (set->records && set->n_draws == 0) return "no launches were drawn";
    if (set->n_draws == 0) return "simulated without --costs: there are no launches to draw from";
    if (set->n_launches == 0) return "--costs has no record of training, whose launches could be drawn";
    return set->n_launches < 2 ? "a record of --costs has one launch: measure it with --repeats 5" : NULL;
}

static json_t *steps_json(const struct el_cost_set *set, const double *step_ms)
{
    struct el_interval interval = {.low = NAN, .high = NAN};
    const char *reason = why_none(set);
    if (!reason) interval = el_stats_prediction(step_ms, (size_t)set->n_draws, (size_t)set->n_launches, MODEL_ERROR);
    return el_json_of(EL_KEY("draws", el_json_reals(step_ms, reason ? 0 : (size_t)set->n_draws)),
                      EL_KEY("launches", set->n_launches), EL_KEY("model_error_pct", 100 * MODEL_ERROR),
                      EL_KEY("low", interval.low), EL_KEY("high", interval.high), EL_KEY("reason", reason));
}

enum el_status el_job_predict(const struct el_job *job, const struct el_job_devices *devices, bool draw,
                              json_t **prediction_p)
{
    const struct el_trial *trial = job->trial;
    struct el_cost_set set = {.n_draws = 0};
    double step_ms[DRAWS];
    if (*trial->costs) EL_TRY(el_cost_set_read(trial->costs, &trial->train, draw ? DRAWS : 0, &set));
    enum el_status status = why_none(&set) ? EL_OK : predict_draws(job, &set, step_ms);
    if (status == EL_OK) {
        *prediction_p = el_json_of(EL_KEY("machine", el_machine_json(&devices->sources->machine)),
                                   EL_KEY("costs", el_json_filled(trial->costs)), EL_KEY("devices", trial->n_devices),
                                   EL_KEY("records", set.records ? json_incref(set.records) : json_array()));
        put_uses(*prediction_p, devices);
        el_json_put(*prediction_p, "step_ms", steps_json(&set, step_ms));
    }
    el_cost_set_free(&set);
    return status;
}
