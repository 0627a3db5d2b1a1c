/* The gate's judgement and rows (its work: job/measure.c). */
#include "bench/campaign/gate.h"

#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "runtime/gate/gate.h"

/* The most devices, there the smallest batch. */
static const struct el_trial *smallest(const struct el_campaign *campaign, const char *mode, bool bucket_view)
{
    const struct el_trial *found = NULL;
    for (int t = 0; t < campaign->set.n; t++) {
        const struct el_trial *trial = &campaign->set.trials[t];
        if (strcmp(trial->train.mode, mode) || trial->train.bucket_view != bucket_view) continue;
        bool more = found && trial->n_devices > found->n_devices, fewer = found && trial->n_devices < found->n_devices;
        if (!found || more || (!fewer && trial->train.global_batch < found->train.global_batch)) found = trial;
    }
    return found;
}

json_t *el_gate_judge(const char *mode, bool bucket_view, const json_t *verdict)
{
    const char *status = el_json_text(verdict, "status", "failed");
    double loss = el_json_number(verdict, "loss"), reference = el_json_number(verdict, "reference_loss");
    double worst = el_json_number(verdict, "worst"), difference = fabs(loss - reference) / fmax(1, fabs(reference));
    const char *parameter = el_json_text(verdict, "parameter", "?");
    double loss_limit = el_json_number(verdict, "loss_limit");
    double gradient_limit = el_json_number(verdict, "gradient_limit");
    bool compared = !strcmp(status, "ok");
    bool same_loss = difference <= loss_limit, same_gradients = worst <= gradient_limit; /* false for NaN */
    json_t *reason = !compared ? json_sprintf("its first steps could not be compared with the reference (%s): %s",
                                              status, el_json_text(verdict, "reason", "no reason was given"))
                     : !same_gradients
                         ? json_sprintf("the gradient of %s differs from the reference by %.2g (at most %g)", parameter,
                                        worst, gradient_limit)
                     : !same_loss ? json_sprintf("the loss is %.9g, the reference's %.9g", loss, reference)
                                  : json_null();
    return el_json_of(EL_KEY("mode", mode), EL_KEY("bucket_view", bucket_view), EL_KEY("status", status),
                      EL_KEY("agrees", compared ? json_boolean(same_loss && same_gradients) : json_null()),
                      EL_KEY("reason", reason), EL_KEY("loss", loss), EL_KEY("reference_loss", reference),
                      EL_KEY("worst", worst), EL_KEY("parameter", parameter));
}

/* A switched maximum can explain the difference. */
static bool is_chance(const struct el_trial *trial, const json_t *verdict)
{
    double worst = el_json_number(verdict, "worst");
    return el_trial_backend(trial).gpu && worst > el_json_number(verdict, "gradient_limit") &&
           worst <= EL_GATE_SWITCHED;
}

/* Keeps earlier agreements, as the name includes configuration and build; possible accidents are tried twice. NULL:
 * interrupted. */
static enum el_status verdict_of(const struct el_campaign *campaign, const struct el_runner *runner,
                                 const struct el_trial *trial, json_t **verdict_p)
{
    json_t *earlier = el_store_load_repeat(&campaign->store, trial, EL_STORE_GATE);
    json_t *row = el_gate_judge(trial->train.mode, trial->train.bucket_view, earlier);
    bool agreed = json_is_true(json_object_get(row, "agrees"));
    json_decref(row);
    *verdict_p = agreed ? earlier : NULL;
    if (!agreed) json_decref(earlier);
    for (int i = 0; i < 2 && el_runner_may_pass(*verdict_p) && !el_runner_interrupted(); i++) {
        json_decref(*verdict_p);
        EL_TRY(el_runner_gate(runner, trial, verdict_p));
    }
    struct el_trial other = *trial;
    for (int i = 0; i < 2 && is_chance(trial, *verdict_p) && !el_runner_interrupted(); i++) {
        json_decref(*verdict_p);
        other.train.seed++;
        el_trial_identify(&other);
        EL_TRY(el_runner_gate(runner, &other, verdict_p));
    }
    return EL_OK;
}

enum el_status el_gate_run(struct el_campaign *campaign, const struct el_runner *runner, struct el_progress *progress)
{
    const struct el_options *options = campaign->options;
    json_t *rows = json_array();
    bool computes = el_trial_backend(campaign->set.trials).computes;
    for (int m = 0; m < 2 * options->n_modes && computes && !el_runner_interrupted(); m++) {
        const char *mode = options->modes[m / 2];
        bool view = m % 2;
        const struct el_trial *trial = smallest(campaign, mode, view);
        json_t *verdict = NULL;
        if (!trial) continue;
        enum el_status status = verdict_of(campaign, runner, trial, &verdict);
        if (status != EL_OK) {
            json_decref(rows);
            return status;
        }
        if (!verdict) break;
        json_t *row = el_gate_judge(mode, view, verdict);
        json_decref(verdict);
        const char *reason = el_json_text(row, "reason", NULL);
        if (reason) el_progress_say(progress, "%s%s is not timed: %s", mode, view ? " view" : "", reason);
        json_array_append_new(rows, row);
    }
    json_decref(campaign->gate);
    campaign->gate = rows;
    return EL_OK;
}

const char *el_gate_refusal(const struct el_campaign *campaign, const struct el_trial *trial, const char **status_p)
{
    EL_EACH(row, campaign->gate) {
        if (strcmp(el_json_text(row, "mode", ""), trial->train.mode)) continue;
        if (json_is_true(json_object_get(row, "bucket_view")) != trial->train.bucket_view) continue;
        if (json_is_true(json_object_get(row, "agrees"))) return NULL;
        const char *status = el_json_text(row, "status", "failed");
        *status_p = strcmp(status, "ok") ? status : "failed";
        return el_json_text(row, "reason", "it disagrees");
    }
    return NULL;
}
