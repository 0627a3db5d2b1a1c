/* A trial's record, in the order of docs/record.md. */
#include "bench/record/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/options/options.h"
#include "bench/verdict/verdict.h"

/* From good to bad. */
static const char *const severity[] = {"ok", "absent", "oom", "timeout", "failed"};

static const json_t *worst_repeat(const json_t *repeats)
{
    const json_t *found = NULL;
    size_t worst = 0;
    EL_EACH(repeat, repeats) {
        size_t its = 0;
        while (its + 1 < sizeof severity / sizeof severity[0] && !el_json_is(repeat, "status", severity[its])) its++;
        if (found && its <= worst) continue;
        found = repeat;
        worst = its;
    }
    return found;
}

static json_t *from_first(const json_t *ok, const char *key, json_t *otherwise)
{
    const json_t *value = json_object_get(json_array_get(ok, 0), key);
    if (value == NULL) return otherwise;
    json_decref(otherwise);
    return json_deep_copy(value);
}

static json_t *choice(const char *option, int place)
{
    char word[EL_CHOICE_BYTES];
    return json_string(el_option_choice(option, place, word));
}

/* Other models' sizes are 0 or an empty list. */
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
            el_json_put(sizes, list[i]->name, json_integer(el_model_size(model, list[i]->name)));
        json_decref(array);
    }
    el_json_put(sizes, "classes", json_integer(model->classes));
    el_json_put_real(sizes, "dropout", model->dropout);
    el_json_put_real(sizes, "max_norm", model->max_norm);
    if (!el_model_find(model->name)->experts) return sizes;
    el_json_put_real(sizes, "capacity", model->capacity);
    el_json_put_real(sizes, "aux", model->aux);
    el_json_put_real(sizes, "z", model->z);
    el_json_put(sizes, "routing", el_json_string(*model->routing ? model->routing : "learned"));
    el_json_put(sizes, "placement", el_json_string(strcmp(model->placement, "own") ? model->placement : ""));
    return sizes;
}

static void put_mode_options(json_t *config, const struct el_trial *trial)
{
    struct el_layout layout;
    el_layout_of(&trial->train, trial->procs, &layout);
    el_json_put(config, "ranks", json_integer(layout.n_feeds));
    el_json_put(config, "pieces", json_integer(layout.n[EL_AXIS_TENSOR]));
    for (const struct el_mode_option *const *rows = el_mode_options(); *rows; rows++) {
        char key[EL_MODE_TEXT_BYTES], value[EL_MODE_TEXT_BYTES];
        bool number = (*rows)->kind == EL_MODE_INT || (*rows)->kind == EL_MODE_COUNT;
        if ((*rows)->kind == EL_MODE_ELSEWHERE) continue;
        el_mode_option_show(*rows, &trial->train, value, sizeof value);
        el_json_put(config, el_mode_option_key(*rows, key),
                    number ? json_integer(strtoll(value, NULL, 10)) : el_json_string(value));
    }
}

static void put_training(json_t *config, const struct el_trial *trial)
{
    const struct el_train_config *train = &trial->train;
    const bool cards = el_trial_backend(trial).gpu;
    const bool own_products = el_trial_backend(trial).computes && !cards && train->dtype == EL_F32;
    const char *precision = trial->tf32 ? "tf32" : train->dtype == EL_F64 ? "f64" : NULL;
    json_t *lengths = json_pack("[I, I]", (json_int_t)trial->lengths.shortest, (json_int_t)trial->lengths.longest);
    if (!trial->lengths.longest) json_array_clear(lengths);
    el_json_put_all(
        config, EL_KEY("data", trial->data), EL_KEY("test", trial->test), EL_KEY("load", trial->load),
        EL_KEY("freeze", train->model.freeze),
        EL_KEY("precision", precision ? json_string(precision) : choice("precision", (int)train->model.precision)),
        EL_KEY("model_sizes", model_sizes(&train->model)), EL_KEY("lr", train->lr), EL_KEY("momentum", train->momentum),
        EL_KEY("weight_decay", train->weight_decay), EL_KEY("clip", train->clip),
        EL_KEY("loss_function", choice("loss", (int)train->model.loss)),
        EL_KEY("length_by", choice("length-by", train->length_by_batch)),
        EL_KEY("bucket_lengths", choice("bucket-lengths", train->bucket_lengths)), EL_KEY("lengths", lengths),
        EL_KEY("words", trial->characters ? "characters" : "spaces"),
        EL_KEY("data_in", choice("data-in", trial->in_files)), EL_KEY("workers", train->loading.workers),
        EL_KEY("prefetch", train->loading.prefetch), EL_KEY("page_cache", choice("page-cache", train->loading.cold)),
        EL_KEY("pin_memory", cards ? choice("pin-memory", train->loading.pageable) : json_null()),
        EL_KEY("non_blocking", cards ? choice("non-blocking", (int)train->loading.transfer) : json_null()),
        EL_KEY("recompute", choice("recompute", train->model.recompute)),
        EL_KEY("zero_grad", choice("zero-grad", train->keep_grads)),
        EL_KEY("foreach", choice("foreach", (int)train->foreach)),
        EL_KEY("products", own_products ? choice("products", (int)train->products) : json_null()));
}

static json_t *config(const struct el_trial *trial)
{
    const struct el_train_config *train = &trial->train;
    json_t *config = json_object();
    put_training(config, trial);
    el_json_put_all(config, EL_KEY("batch_given", trial->batch_is_per_device ? "per_device" : "global"),
                    EL_KEY("warmup", train->warmup), EL_KEY("steps", train->steps),
                    EL_KEY("min_time_s", train->min_time_s), EL_KEY("epochs", train->epochs),
                    EL_KEY("eval", choice("eval", (int)train->eval)),
                    EL_KEY("bucket_first_bytes", train->bucket_first_bytes),
                    EL_KEY("bucket_cap_bytes", train->bucket_cap_bytes), EL_KEY("beside", trial->beside));
    put_mode_options(config, trial);
    el_json_put_all(
        config,
        EL_KEY("device_mem_bytes", trial->device_mem_bytes > 0 ? json_integer(trial->device_mem_bytes) : json_null()),
        EL_KEY("timeout_s", trial->timeout_s), EL_KEY("comm", trial->comm),
        EL_KEY("comm_algorithm", el_comm_algorithm_name(train->comm_algorithm)),
        EL_KEY("comm_timeout_s", train->comm_timeout_s), EL_KEY("comm_check", choice("comm-check", train->comm_check)),
        EL_KEY("costs", trial->costs), EL_KEY("machine", trial->machine),
        EL_KEY("launcher", choice("launcher", (int)trial->launcher)), EL_KEY("record", trial->record),
        EL_KEY("control", choice("control", (int)train->control)), EL_KEY("control_pairs", train->control_pairs),
        EL_KEY("inject", trial->inject));
    return config;
}

static void put_configuration(json_t *record, const struct el_trial *trial, const json_t *ok)
{
    const struct el_train_config *train = &trial->train;
    el_json_put_all(
        record, EL_KEY("id", trial->id), EL_KEY("mode", train->mode), EL_KEY("model", train->model.name),
        EL_KEY("chosen", trial->chosen), EL_KEY("devices", trial->n_devices),
        EL_KEY("device_names", el_trial_device_names(trial)), EL_KEY("procs", trial->procs),
        EL_KEY("dtype", el_dtype_name(train->dtype)), EL_KEY("global_batch", train->global_batch),
        EL_KEY("tokens_per_sample", el_trial_tokens(trial) ? json_integer(el_trial_tokens(trial)) : json_null()),
        EL_KEY("batch_per_device", from_first(ok, "batch_per_device", json_array())),
        EL_KEY("seed", train->seed <= INT64_MAX ? json_integer((json_int_t)train->seed)
                                                : json_sprintf("%" PRIu64, train->seed)),
        EL_KEY("optimizer", choice("optimizer", (int)train->optimizer)), EL_KEY("config", config(trial)));
}

static void put_outcome(json_t *record, const char *command, const json_t *repeats, const json_t *ok)
{
    const json_t *bad = worst_repeat(repeats);
    const char *status = el_json_text(bad, "status", "failed");
    json_t *warnings = json_array(), *rules = json_array();
    const char *verdict = el_verdict_judge(repeats, ok, warnings, rules);
    json_t *order = json_object_get(json_array_get(repeats, 0), "order");
    el_json_put_all(record, EL_KEY("order", json_is_integer(order) ? json_incref(order) : json_null()),
                    EL_KEY("command", command), EL_KEY("status", status),
                    EL_KEY("reason", el_json_text(bad, "reason", NULL)),
                    EL_KEY("verdict", strcmp(status, "ok") == 0 ? verdict : "suspect"), EL_KEY("warnings", warnings),
                    EL_KEY("warning_rules", rules), EL_KEY("simulated", from_first(ok, "simulated", json_false())));
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
    json_object_del(json_object_get(row, "system"), "processes"); /* they stay in the repeat's file */
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
    static const char *const communication[] = {"communicator", "comm_algorithms", "clock", "beside_step_ratio", NULL};
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
    el_json_copy(record, json_array_get(ok, 0), communication);
    el_json_put(record, "imbalance", el_trial_imbalance(ok));
    el_json_put(record, "per_device", per_device);
    el_json_put(record, "processes", from_first(ok, "processes", json_array()));
}

json_t *el_record_trial(const struct el_trial *trial, const char *command, json_t *repeats)
{
    json_t *record = json_object(), *rows = json_array(), *ok = json_array(); /* finished ones */
    static const char *const training[] = {"accuracy",       "evaluation",  "checkpoints",   "first_step", "restarts",
                                           "flops_per_step", "param_bytes", "trained_bytes", NULL};
    double batch = (double)trial->train.global_batch;
    EL_EACH(repeat, repeats) {
        if (el_json_is(repeat, "status", "ok")) json_array_append(ok, repeat);
        json_array_append_new(rows, repeat_row(repeat, batch));
    }
    put_configuration(record, trial, ok);
    put_outcome(record, command, repeats, ok);
    el_json_put(record, "throughput", el_trial_throughput(ok, batch, (double)el_trial_tokens(trial)));
    el_json_put(record, "step_ms", el_trial_step_ms(ok));
    put_devices(record, ok, batch);
    el_json_put(record, "loss", from_first(ok, "loss", json_array()));
    el_json_put(record, "rank_loss", from_first(ok, "rank_loss", json_null()));
    el_json_put(record, "epochs", from_first(ok, "epochs", json_array()));
    el_json_copy(record, json_array_get(ok, 0), training);
    el_json_put(record, "arithmetic", el_trial_arithmetic(trial, record, ok));
    json_t *profile = from_first(ok, "profile", NULL);
    if (profile) el_json_put(record, "profile", profile);
    el_json_put(record, "repeats", rows);
    json_decref(ok);
    return record;
}

void el_record_learn(json_t *environment, const json_t *repeat)
{
    static const char *const names[] = {"gpu_driver", "gpu_libraries", "gpu_variables", "nccl", "gpu_links"};
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
    el_json_put(run, "schema", json_integer(EL_SCHEMA));
    el_record_learn(environment, NULL);
    el_json_put(run, "environment", environment);
    el_json_put(run, "trials", trials);
    return run;
}

/* Figures have a column or a bar per device. */
static bool has_devices(const json_t *trials)
{
    EL_EACH(trial, trials) {
        const json_t *devices = json_object_get(trial, "devices");
        if (devices && !(json_is_integer(devices) && json_integer_value(devices) >= 0 &&
                         json_integer_value(devices) <= EL_SIMULATED_MAX))
            return false;
    }
    return true;
}

enum el_status el_record_read(const char *path, json_t **run_p)
{
    json_t *run;
    EL_TRY(el_read_json(path, &run));
    double schema = el_json_number(run, "schema");
    bool has_trials = json_is_array(json_object_get(run, "trials"));
    if (!has_trials || schema != EL_SCHEMA || !has_devices(json_object_get(run, "trials"))) {
        json_decref(run);
        if (!has_trials || !(schema > 0))
            return el_fail(EL_ERR_INVALID, "%s is no record of a run: it has no schema and trials", path);
        if (schema == EL_SCHEMA)
            return el_fail(EL_ERR_INVALID, "%s: a trial's 'devices' is no number from 0 to %d", path, EL_SIMULATED_MAX);
        return el_fail(EL_ERR_INVALID, "%s is a record of schema %g, and this program reads %d: %s", path, schema,
                       EL_SCHEMA, schema < EL_SCHEMA ? "measure again" : "take a newer evenload");
    }
    el_json_printable(run);
    *run_p = run;
    return EL_OK;
}
