/* Rank 0's document of a launch (fields: record.h). */
#include <string.h>

#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/job/measurement.h"
#include "bench/machine/host.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "bench/trial/machine.h"
#include "runtime/layout/layout.h"

static json_t *accuracy(double value)
{
    return value < 0 ? json_null() : json_real(value);
}

/* Tokens are bytes of the text, except drawn ids. */
static json_t *score_of(const struct el_score *score, const struct el_trial *trial)
{
    const double loss = score->loss / score->counted;
    const bool tokens = el_trial_tokens(trial) > 0, bytes = tokens && strcmp(trial->data, "dummy") != 0;
    return el_json_of(EL_KEY("accuracy", score->correct / score->counted), EL_KEY("loss", loss),
                      EL_KEY("perplexity", tokens ? exp(loss) : NAN),
                      EL_KEY("bits_per_byte", bytes ? score->loss / log(2) / score->bytes : NAN),
                      EL_KEY("correct", (int64_t)score->correct), EL_KEY("counted", (int64_t)score->counted));
}

static json_t *evaluation_of(const struct el_evaluation *evaluation, const struct el_trial *trial)
{
    if (evaluation->n_ranks == 0) return json_null();
    json_t *all = score_of(&evaluation->all, trial), *ranks = json_array();
    for (int r = 0; r < evaluation->n_ranks; r++) json_array_append_new(ranks, score_of(&evaluation->ranks[r], trial));
    el_json_put_all(all, EL_KEY("samples", evaluation->samples), EL_KEY("own_statistics", evaluation->own_buffers),
                    EL_KEY("ranks", ranks));
    return all;
}

static json_t *epochs_of(const struct el_train_result *result, const struct el_trial *trial)
{
    json_t *epochs = json_array();
    for (int e = 0; e < result->n_epochs; e++) {
        const struct el_epoch_result *epoch = &result->epochs[e];
        json_array_append_new(
            epochs,
            el_json_of(EL_KEY("seconds", epoch->seconds), EL_KEY("train_loss", epoch->train_loss),
                       EL_KEY("held_out_accuracy", accuracy(epoch->held_out.accuracy)),
                       EL_KEY("test_accuracy", e == result->best_epoch ? accuracy(result->test.accuracy) : json_null()),
                       EL_KEY("held_out", evaluation_of(&epoch->held_out, trial))));
    }
    return epochs;
}

static json_t *checkpoints_of(const struct el_train_result *result, const struct el_trial *trial)
{
    const struct el_checkpoint_result *of = &result->checkpoints;
    if (!*trial->checkpoint) return json_null();
    const double seconds = (double)of->write_ns / 1e9;
    int64_t every = 0;
    double every_s = 0;
    el_trial_checkpoint_every(trial, &every, &every_s);
    return el_json_of(EL_KEY("dir", trial->checkpoint), EL_KEY("every", every ? json_integer(every) : json_null()),
                      EL_KEY("every_s", every ? NAN : every_s), EL_KEY("n", of->n), EL_KEY("failed", of->n_failed),
                      EL_KEY("reason", el_json_filled(of->reason)), EL_KEY("bytes", of->bytes),
                      EL_KEY("copy_bytes", of->copied),
                      EL_KEY("copy_ms", of->n ? (double)of->copy_ns / 1e6 / of->n : NAN),
                      EL_KEY("wait_ms", of->n ? (double)of->wait_ns / 1e6 / of->n : NAN),
                      EL_KEY("write_ms", of->n ? seconds * 1e3 / of->n : NAN),
                      EL_KEY("write_mb_per_s", of->n ? (double)of->bytes * of->n / 1e6 / seconds : NAN));
}

static json_t *control_of(const struct el_job_measurement *m)
{
    char kind[EL_CHOICE_BYTES];
    const struct el_train_result *result = &m->result;
    if (result->n_control_pairs == 0) return json_null();
    json_t *on = json_array(), *off = json_array();
    for (int p = 0; p < result->n_control_pairs; p++) {
        json_array_append_new(on, json_real(result->control_on_ns[p] / 1e6));
        json_array_append_new(off, json_real(result->control_off_ns[p] / 1e6));
    }
    el_option_choice("control", (int)m->job->trial->train.control, kind);
    return el_json_of(EL_KEY("kind", kind), EL_KEY("steps", result->control_steps), EL_KEY("on_ms", on),
                      EL_KEY("off_ms", off));
}

static json_t *steps_of(const struct el_train_result *result, const int64_t *times_ns, bool recorded)
{
    json_t *ms = json_array();
    for (int64_t s = 0; s < result->n_steps; s++)
        if (!result->alternates || (s % 2 == 1) == recorded)
            json_array_append_new(ms, el_json_real((double)times_ns[s] / 1e6));
    return ms;
}

/* Includes reading the loss. NAN in virtual time. */
static double mean_wall_ms(const struct el_train_result *result)
{
    double sum_ms = 0;
    json_t *walls = steps_of(result, result->wall_ns, false);
    size_t n = json_array_size(walls);
    EL_EACH(wall, walls) sum_ms += json_number_value(wall);
    json_decref(walls);
    return n > 0 && !result->simulated ? sum_ms / (double)n : NAN;
}

static json_t *rank_losses(const struct el_train_result *result)
{
    if (!result->own_loss || !result->loss_valid) return json_null();
    json_t *rows = json_array();
    for (int w = 0; w < result->n_own_workers; w++) {
        json_t *row = json_array();
        for (int s = 0; s < result->n_own; s++)
            json_array_append_new(row, el_json_real(result->own_loss[w * result->n_own + s]));
        json_array_append_new(rows, row);
    }
    return rows;
}

/* NULL: equal shares, or one mean. */
static const char *share_weights(const struct el_train_config *train)
{
    bool several = el_mode_find(train->mode)->loss == EL_LOSS_OF_RANKS || train->loss_in_replica;
    return train->shares.n == 0 || !several ? NULL : train->by_samples ? "samples" : "equal";
}

static const char *emulated(const struct el_trial *trial)
{
    const struct el_backend_facts facts = el_trial_backend(trial);
    return facts.computes && !facts.gpu && trial->train.model.precision != EL_PRECISION_FULL ? el_kernels_cpu_no_bf16()
                                                                                             : NULL;
}

/* The file was validated before. */
static json_t *machine_of(const struct el_trial *trial)
{
    struct el_machine machine;
    const bool given = *trial->machine && !el_trial_backend(trial).simulated;
    return given && el_machine_read(trial->machine, &machine) == EL_OK ? el_machine_json(&machine) : json_null();
}

static void put_result(json_t *repeat, const struct el_job_measurement *m)
{
    const struct el_train_result *result = &m->result;
    const struct el_trial *trial = m->job->trial;
    bool settles = trial->train.min_time_s > 0 && trial->train.epochs == 0;
    int64_t clock_error_ns = m->begin.worst_ns > m->end.worst_ns ? m->begin.worst_ns : m->end.worst_ns;
    json_t *shares = json_array(), *loss = json_array();
    for (int i = 0; i < trial->n_devices; i++)
        json_array_append_new(shares, json_integer(el_layout_spot(&m->open.layout, i).samples));
    for (int64_t s = 0; s < result->n_warmup + result->n_steps; s++)
        json_array_append_new(loss, result->loss_valid ? el_json_real(result->loss[s]) : json_null());
    el_json_put_all(
        repeat, EL_KEY("simulated", result->simulated), EL_KEY("batch_per_device", shares),
        EL_KEY("flops_per_step", result->flops_per_step), EL_KEY("param_bytes", result->param_bytes),
        EL_KEY("trained_bytes", result->trained_bytes), EL_KEY("step_ms", steps_of(result, result->step_ns, false)),
        EL_KEY("recorded_step_ms", result->alternates ? steps_of(result, result->step_ns, true) : json_null()),
        EL_KEY("graph_steps",
               trial->train.device_graph ? json_integer((json_int_t)result->n_graph_steps) : json_null()),
        EL_KEY("wall_ms", mean_wall_ms(result)),
        EL_KEY("warmup_step_ms", el_record_ms(result->warmup_step_ns, sizeof(int64_t), 0, (size_t)result->n_warmup, 0)),
        EL_KEY("loss", loss), EL_KEY("rank_loss", rank_losses(result)),
        EL_KEY("share_weights", share_weights(&trial->train)), EL_KEY("emulated", emulated(trial)),
        EL_KEY("settled", settles ? json_boolean(result->settled) : json_null()),
        EL_KEY("prediction", m->prediction ? json_incref(m->prediction) : json_null()),
        EL_KEY("injected", el_json_filled(trial->inject)), EL_KEY("control", control_of(m)),
        EL_KEY("clock", json_pack("{s:b, s:I}", "shared", m->begin.shared, "error_ns", (json_int_t)clock_error_ns)),
        EL_KEY("beside_step_ratio", m->beside_ratios ? json_incref(m->beside_ratios) : json_null()),
        EL_KEY("communicator", result->comm), EL_KEY("comm_algorithms", el_json_filled(result->comm_algorithms)),
        EL_KEY("collectives", json_incref(m->collectives)), EL_KEY("epochs", epochs_of(result, trial)),
        EL_KEY("accuracy", accuracy(result->test.accuracy)), EL_KEY("evaluation", evaluation_of(&result->test, trial)),
        EL_KEY("checkpoints", checkpoints_of(result, trial)), EL_KEY("first_step", result->start),
        EL_KEY("machine", machine_of(trial)));
}

static void put_accounts(json_t *repeat, const struct el_job_measurement *m, const json_t *accounts)
{
    json_t *members = json_array(), *processes = json_array(), *systems = json_array();
    EL_EACH(account, accounts) {
        json_array_extend(members, json_object_get(account, "members"));
        json_array_append(processes, json_object_get(account, "process"));
        json_array_append(systems, json_object_get(account, "system"));
    }
    EL_EACH(member, members) {
        json_t *arrivals = json_array_get(m->arrivals, member_at.i);
        el_json_put(member, "arrivals", arrivals ? json_incref(arrivals) : json_null());
    }
    el_record_shared_cards(members, processes);
    el_json_put(repeat, "members", members);
    el_json_put(repeat, "processes", processes);
    json_t *system = el_record_system_of_job(systems);
    el_json_put_real(system, "core_rate_pct", m->core_rate_pct);
    el_json_put(repeat, "system", system);
}

static void put_profile(json_t *repeat, const json_t *accounts)
{
    json_t *profile = json_object_get(json_array_get(accounts, 0), "profile");
    if (!json_is_object(profile)) return;
    for (size_t r = 1; r < json_array_size(accounts); r++)
        json_array_extend(json_object_get(profile, "devices"),
                          el_json_at(json_array_get(accounts, r), "profile.devices"));
    json_object_set(repeat, "profile", profile);
}

static bool no_such_op(const struct el_job_measurement *m)
{
    bool wanted = false, found = false;
    for (int i = 0; i < m->open.n; i++) {
        const struct el_inject *inject = el_device_inject(m->open.devices[i]);
        wanted |= inject->op_stretch > 0 || inject->pause_ms > 0;
        found |= el_device_inject_hits(m->open.devices[i]) > 0;
    }
    return wanted && !found;
}

static json_t *environment_of(const struct el_device *device)
{
    json_t *environment = el_environment();
    struct el_device_identity identity;
    el_device_identify(device, &identity);
    el_json_put(environment, "gpu_driver", el_json_filled(identity.driver));
    el_json_put(environment, "gpu_libraries", el_json_filled(identity.libraries));
    if (el_device_is_asynchronous(device))
        el_json_put_all(environment, EL_KEY("gpu_variables", el_record_gpu_variables()),
                        EL_KEY("nccl", el_record_nccl()), EL_KEY("gpu_links", el_links_gpus_here()));
    return environment;
}

json_t *el_job_repeat(const struct el_job_measurement *m, const json_t *accounts)
{
    const struct el_job *job = m->job;
    json_t *warnings = json_array();
    int64_t dropped = m->n_recorders ? el_recorder_dropped(m->recorders[0]) : 0;
    if (dropped)
        json_array_append_new(warnings, json_sprintf("recorder full: the last %lld of %lld steps have no spans",
                                                     (long long)dropped, (long long)m->result.n_steps));
    if (m->too_many_collectives)
        json_array_append_new(warnings, json_string("too many collectives to tell waiting from transfer, so phases "
                                                    "hold waits: give a shorter --min-time or fewer --steps"));
    if (no_such_op(m))
        json_array_append_new(
            warnings,
            json_sprintf(
                "--inject %s: no kernel matches, so nothing was injected there; ops[] of the record has the names",
                job->trial->inject));
    json_t *repeat = el_record_failed_repeat(job->trial, job->repeat, job->order, "ok", NULL);
    el_json_put(repeat, "warnings", warnings);
    put_result(repeat, m);
    put_accounts(repeat, m, accounts);
    put_profile(repeat, accounts);
    el_json_put(repeat, "environment", environment_of(m->open.devices[0]));
    return repeat;
}
