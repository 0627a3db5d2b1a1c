/* A trial's record from its repeats: the fields in the order of docs/record.md. Statistics are in throughput.c
 * and per_device.c; here they are put together. */
#include "bench/record/record.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/parts.h"
#include "bench/verdict/verdict.h"
#include "runtime/parallel/dp_fix.h"

/* From good to bad. A trial has the status of its worst repeat. */
static const char *const severity[] = {"ok", "absent", "oom", "timeout", "failed"};

static const json_t *worst_repeat(const json_t *repeats)
{
    const json_t *found = NULL;
    size_t worst = 0;
    for (size_t i = 0; i < json_array_size(repeats); i++) {
        const json_t *repeat = json_array_get(repeats, i);
        size_t its = 0;
        while (its + 1 < sizeof severity / sizeof severity[0] && !el_json_is(repeat, "status", severity[its])) its++;
        if (found && its <= worst) continue;
        found = repeat;
        worst = its;
    }
    return found;
}

/* A copy of the first finished repeat's value, or `otherwise` (stolen). */
static json_t *from_first(const json_t *ok, const char *key, json_t *otherwise)
{
    const json_t *value = json_object_get(json_array_get(ok, 0), key);
    if (value == NULL) return otherwise;
    json_decref(otherwise);
    return json_deep_copy(value);
}

static void put_count(json_t *record, const char *key, int64_t value)
{
    el_json_put(record, key, json_integer((json_int_t)value));
}

static const char *const optimizers[] = {[EL_OPT_SGD] = "sgd", [EL_OPT_MOMENTUM] = "momentum", [EL_OPT_ADAM] = "adam"};
static const char *const controls[] = {
    [EL_CONTROL_NONE] = "none", [EL_CONTROL_COMM] = "comm", [EL_CONTROL_RECORD] = "record"};
static const char *const transfers[] = {"on", "off", "ahead"};
static const char *const launchers[] = {"auto", "mpirun", "own"}, *const losses[] = {"own", "cross-entropy", "mse"};

/* Of all models: a size that this one has not is 0, or an empty list. */
static json_t *model_sizes(const struct el_model_config *model)
{
    const struct el_model_size *list[EL_MODEL_SIZES_MAX];
    json_t *sizes = json_object();
    for (int i = 0, n = el_model_size_list(list); i < n; i++) {
        const struct el_model_values *values = el_model_values(model, list[i]->name);
        json_t *array = json_array();
        for (int k = 0; values && k < values->n; k++) json_array_append_new(array, json_integer(values->v[k]));
        if (list[i]->list)
            json_object_set(sizes, list[i]->name, array);
        else
            put_count(sizes, list[i]->name, el_model_size(model, list[i]->name));
        json_decref(array);
    }
    put_count(sizes, "classes", model->classes);
    el_json_put_real(sizes, "dropout", model->dropout);
    el_json_put_real(sizes, "max_norm", model->max_norm);
    return sizes;
}

/* How its mode works: options that only some modes have. */
static void put_schedule(json_t *config, const struct el_trial *trial)
{
    const struct el_train_config *train = &trial->train;
    struct el_layout layout;
    char fixes[EL_DP_FIX_TEXT_BYTES];
    el_layout_of(train, trial->procs, &layout);
    put_count(config, "output_device", train->output_device);
    el_json_put_text(config, "loss_in", train->loss_in_replica ? "replica" : "output");
    el_dp_fix_text(train->dp_fix, fixes, sizeof fixes);
    el_json_put_text(config, "dp_fix", fixes);
    el_json_put_text(config, "sync", train->sync_params ? "param" : "grad");
    el_json_put_text(config, "find_unused", train->find_unused ? "on" : "off");
    el_json_put_text(config, "static_graph", train->static_graph ? "on" : "off");
    el_json_put_text(config, "broadcast_buffers", train->broadcast_buffers ? "on" : "off");
    el_json_put_text(config, "cut", train->cut);
    put_count(config, "ranks", layout.devices[0].n_feeds);
    el_json_put_text(config, "reduce", train->reduce == EL_REDUCE_HIERARCHICAL ? "hierarchical" : "flat");
    put_count(config, "micro_batches", train->n_micro);
    el_json_put_text(config, "schedule", train->schedule);
    put_count(config, "parts_per_device", train->parts);
}

/* What is trained, on what, and how. */
static void put_training(json_t *config, const struct el_trial *trial)
{
    const struct el_train_config *train = &trial->train;
    el_json_put_text(config, "data", trial->data);
    el_json_put_text(config, "test", trial->test);
    el_json_put_text(config, "load", trial->load);
    el_json_put_text(config, "vectors", trial->vectors);
    el_json_put_text(config, "freeze", train->model.freeze);
    el_json_put(config, "model_sizes", model_sizes(&train->model));
    el_json_put_real(config, "lr", train->lr);
    el_json_put_real(config, "momentum", train->momentum);
    el_json_put_text(config, "loss_function", losses[train->model.loss]);
    el_json_put_text(config, "augment", train->augment ? "on" : "off");
    el_json_put_text(config, "words", trial->characters ? "characters" : "spaces");
    el_json_put_text(config, "data_in", trial->in_files ? "disk" : "memory");
    put_count(config, "workers", train->loading.workers);
    put_count(config, "prefetch", train->loading.prefetch);
    el_json_put_text(config, "page_cache", train->loading.cold ? "cold" : "warm");
    const bool cards = !strcmp(trial->devices[0].backend, "cuda");
    el_json_put_text(config, "pin_memory", !cards ? NULL : train->loading.pageable ? "off" : "on");
    el_json_put_text(config, "non_blocking", cards ? transfers[train->loading.transfer] : NULL);
    el_json_put_text(config, "zero_grad", train->keep_grads ? "keep" : "free");
    el_json_put_text(config, "graph", train->device_graph ? "on" : "off");
    el_json_put_text(config, "foreach", train->foreach == EL_FOREACH_ON ? "on" : "off");
}

/* The configuration as resolved, beyond what has a field of its own. */
static json_t *config(const struct el_trial *trial)
{
    const struct el_train_config *train = &trial->train;
    json_t *config = json_object();
    put_training(config, trial);
    el_json_put_text(config, "overlap", train->overlap ? "on" : "off");
    el_json_put_text(config, "bucket_view", train->bucket_view ? "on" : "off");
    el_json_put_text(config, "batch_given", trial->batch_is_per_device ? "per_device" : "global");
    put_count(config, "warmup", train->warmup);
    put_count(config, "steps", train->steps);
    el_json_put_real(config, "min_time_s", train->min_time_s);
    put_count(config, "epochs", train->epochs);
    put_count(config, "bucket_first_bytes", (int64_t)train->bucket_first_bytes);
    put_count(config, "bucket_cap_bytes", (int64_t)train->bucket_cap_bytes);
    put_count(config, "accumulate", train->n_accumulate);
    put_count(config, "beside", trial->beside);
    put_schedule(config, trial);
    el_json_put(config, "device_mem_bytes",
                trial->device_mem_bytes > 0 ? json_integer(trial->device_mem_bytes) : json_null());
    el_json_put_real(config, "timeout_s", trial->timeout_s);
    el_json_put_text(config, "comm", trial->comm);
    el_json_put_text(config, "comm_algorithm", el_comm_algorithm_name(train->comm_algorithm));
    el_json_put_real(config, "comm_timeout_s", train->comm_timeout_s);
    el_json_put_text(config, "comm_check", train->comm_check ? "on" : "off");
    el_json_put_text(config, "costs", trial->costs);
    el_json_put_text(config, "machine", trial->machine);
    el_json_put_text(config, "launcher", launchers[trial->launcher]);
    el_json_put(config, "record", json_boolean(trial->record));
    el_json_put_text(config, "control", controls[train->control]);
    put_count(config, "control_pairs", train->control_pairs);
    el_json_put_text(config, "inject", trial->inject);
    return config;
}

static void put_configuration(json_t *record, const struct el_trial *trial, const json_t *ok)
{
    const struct el_train_config *train = &trial->train;
    el_json_put_text(record, "id", trial->id);
    el_json_put_text(record, "mode", train->mode);
    el_json_put_text(record, "model", train->model.name);
    put_count(record, "devices", trial->n_devices);
    el_json_put(record, "device_names", el_trial_device_names(trial));
    put_count(record, "procs", trial->procs);
    el_json_put_text(record, "dtype", el_dtype_name(train->dtype));
    put_count(record, "global_batch", train->global_batch);
    el_json_put(record, "batch_per_device", from_first(ok, "batch_per_device", json_array()));
    el_json_put(record, "seed",
                train->seed <= INT64_MAX ? json_integer((json_int_t)train->seed)
                                         : json_sprintf("%" PRIu64, train->seed));
    el_json_put_text(record, "optimizer", optimizers[train->optimizer]);
    el_json_put(record, "config", config(trial));
}

static void put_outcome(json_t *record, const char *command, const json_t *repeats, const json_t *ok)
{
    const json_t *bad = worst_repeat(repeats);
    const char *status = el_json_text(bad, "status", "failed");
    json_t *warnings = json_array(), *rules = json_array();
    const char *verdict = el_verdict_judge(repeats, ok, warnings, rules);
    json_t *order = json_object_get(json_array_get(repeats, 0), "order");
    el_json_put(record, "order", json_is_integer(order) ? json_incref(order) : json_null());
    el_json_put_text(record, "command", command);
    el_json_put_text(record, "status", status);
    el_json_put_text(record, "reason", el_json_text(bad, "reason", NULL));
    el_json_put_text(record, "verdict", strcmp(status, "ok") == 0 ? verdict : "suspect");
    el_json_put(record, "warnings", warnings);
    el_json_put(record, "warning_rules", rules);
    el_json_put(record, "simulated", from_first(ok, "simulated", json_false()));
    const json_t *prediction = el_verdict_prediction(ok);
    el_json_put(record, "prediction", prediction ? json_deep_copy(prediction) : json_null());
}

static json_t *repeat_row(const json_t *repeat, double global_batch)
{
    static const char *const copied[] = {"repeat", "order", "status", "reason", "graph_steps", NULL},
                             *const of_system[] = {"system", NULL};
    static const char *const samples[] = {"step_ms", "recorded_step_ms", "warmup_step_ms"};
    json_t *row = json_object();
    el_json_copy(row, repeat, copied);
    el_json_put_real(row, "samples_per_s", el_repeat_samples_per_s(repeat, global_batch));
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        json_t *value = json_object_get(repeat, samples[i]);
        el_json_put(row, samples[i], json_is_array(value) ? json_deep_copy(value) : json_array());
    }
    el_json_copy(row, repeat, of_system);
    json_object_del(json_object_get(row, "system"), "processes"); /* they stay in the repeat's own file */
    return row;
}

static json_t *null_phases(void)
{
    json_t *phases = json_object();
    for (int p = 0; p < EL_PHASE_COUNT; p++) el_json_put(phases, el_phase_name((enum el_phase)p), json_null());
    return phases;
}

static void put_devices(json_t *record, const json_t *ok, double global_batch)
{
    json_t *per_device = el_trial_per_device(ok, global_batch);
    int slowest = el_trial_slowest(per_device);
    const json_t *of = slowest < 0 ? NULL : json_array_get(per_device, (size_t)slowest);
    const json_t *phases = json_object_get(of, "busy_ms");
    el_json_put(record, "slowest_member", slowest < 0 ? json_null() : json_integer(slowest));
    el_json_put(record, "phases_ms", phases == NULL ? null_phases() : json_deep_copy(phases));
    el_json_put_real(record, "idle_ms", el_json_number(of, "idle_ms"));
    el_json_put_real(record, "bubble_pct", el_trial_bubble_pct(ok));
    json_t *breakdown = el_trial_breakdown(ok, slowest);
    el_json_put(record, "comm", el_trial_comm(per_device, slowest, breakdown));
    el_json_put(record, "breakdown", breakdown);
    el_json_put(record, "collectives", from_first(ok, "collectives", json_array()));
    el_json_put_real(json_object_get(record, "comm"), "busbw_gb_per_s", el_trial_busbw(ok));
    el_json_put(record, "recorder", el_trial_recorder(ok));
    el_json_put(record, "communicator", from_first(ok, "communicator", json_null()));
    el_json_put(record, "comm_algorithms", from_first(ok, "comm_algorithms", json_null()));
    el_json_put(record, "clock", from_first(ok, "clock", json_null()));
    el_json_put(record, "beside_step_ratio", from_first(ok, "beside_step_ratio", json_null()));
    el_json_put(record, "imbalance", el_trial_imbalance(ok));
    el_json_put(record, "per_device", per_device);
    el_json_put(record, "processes", from_first(ok, "processes", json_array()));
}

json_t *el_record_trial(const struct el_trial *trial, const char *command, json_t *repeats)
{
    json_t *record = json_object(), *rows = json_array(), *ok = json_array(); /* those that finished */
    double batch = (double)trial->train.global_batch;
    for (size_t i = 0; i < json_array_size(repeats); i++) {
        json_t *repeat = json_array_get(repeats, i);
        if (el_json_is(repeat, "status", "ok")) json_array_append(ok, repeat);
        json_array_append_new(rows, repeat_row(repeat, batch));
    }
    put_configuration(record, trial, ok);
    put_outcome(record, command, repeats, ok);
    el_json_put(record, "throughput", el_trial_throughput(ok, batch));
    el_json_put(record, "step_ms", el_trial_step_ms(ok));
    put_devices(record, ok, batch);
    el_json_put(record, "loss", from_first(ok, "loss", json_array()));
    el_json_put(record, "rank_loss", from_first(ok, "rank_loss", json_null()));
    el_json_put(record, "epochs", from_first(ok, "epochs", json_array()));
    el_json_put(record, "accuracy", from_first(ok, "accuracy", json_null()));
    el_json_put(record, "flops_per_step", from_first(ok, "flops_per_step", json_null()));
    el_json_put(record, "param_bytes", from_first(ok, "param_bytes", json_null()));
    el_json_put(record, "trained_bytes", from_first(ok, "trained_bytes", json_null()));
    json_t *profile = from_first(ok, "profile", NULL); /* where one was asked for */
    if (profile) el_json_put(record, "profile", profile);
    el_json_put(record, "repeats", rows);
    json_decref(ok);
    return record;
}

void el_record_learn(json_t *environment, const json_t *repeat)
{
    static const char *const names[] = {"gpu_driver", "gpu_libraries", "nccl"};
    const json_t *theirs = json_object_get(repeat, "environment");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_t *value = json_object_get(theirs, names[i]);
        if (value && !json_is_null(value))
            json_object_set(environment, names[i], value);
        else if (!json_object_get(environment, names[i]))
            el_json_put(environment, names[i], json_null());
    }
}

json_t *el_record_run(json_t *environment, json_t *trials)
{
    json_t *run = json_object();
    put_count(run, "schema", EL_SCHEMA);
    el_record_learn(environment, NULL);
    el_json_put(run, "environment", environment);
    el_json_put(run, "trials", trials);
    return run;
}
