/* One trial of what options ask for: processes, batches, and the checks of what goes together; and back into options.
 * The range of each option by itself was checked when it was read. */
#include "bench/trial/trial.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/program.h"
#include "bench/base/text.h"
#include "bench/options/options.h"
#include "profiles/nvml.h"
#include "runtime/launch/launch.h"
#include "runtime/train/forecast.h"

static const double MIB = 1 << 20;
/* Of shorter windows the driver tells no utilization (profiles/nvml.h). */
static const double GPU_MIN_TIME_S = EL_NVML_UTILIZATION_MIN_S + 0.2;

static enum el_status resolve_procs(unsigned command, const struct el_options *options, struct el_trial *trial)
{
    struct el_layout layout;
    int n = trial->n_devices, asked = options->procs;
    const char *mode = trial->train.mode;
    bool simulated = el_trial_backend(trial).simulated;
    if (el_mode_find(mode)->one_process) {
        trial->procs = 1;
        if (asked > 1 && command == EL_CMD_RUN)
            return el_fail(EL_ERR_INVALID, "--procs %d: mode %s is one process: leave --procs out", asked, mode);
        return EL_OK;
    }
    if (asked > 1 && simulated)
        return el_fail(EL_ERR_INVALID, "--procs %d: simulated devices live in one process: leave --procs out", asked);
    if (asked > 1 && n == 1)
        return el_fail(EL_ERR_INVALID, "--procs %d: there is one device: leave --procs out", asked);
    el_layout_of(&trial->train, asked || !simulated ? asked : 1, &layout);
    if (asked && asked != layout.n_processes)
        return layout.n_processes == n
                   ? el_fail(EL_ERR_INVALID,
                             "--procs %d does not go with %d devices: give 1 (a thread per device) or %d (a process "
                             "per device)",
                             asked, n, n)
                   : el_fail(EL_ERR_INVALID, "--procs %d: %d devices%s%s cannot be divided evenly among that many",
                             asked, n, *options->mesh ? " with --mesh " : "", options->mesh);
    trial->procs = layout.n_processes;
    if (el_mode_find(mode)->many_a_rank && !trial->train.mesh[EL_AXIS_DATA])
        trial->train.mesh[EL_AXIS_DATA] = layout.n_workers;
    return EL_OK;
}

/* Fills in the devices that there are for the trial. */
static enum el_status choose_devices(const struct el_options *options, int count, struct el_device_name *devices,
                                     int *n_p)
{
    for (int i = 0; i < count && i < EL_MEMBERS_MAX; i++) {
        devices[i] = (struct el_device_name){.index = i};
        memcpy(devices[i].backend, options->counts_backend, sizeof devices[i].backend);
    }
    *n_p = count;
    if (count > 0) return EL_OK;
    if (options->n_devices == 0) return el_devices_default(devices, n_p);
    memcpy(devices, options->devices, sizeof options->devices);
    *n_p = options->n_devices;
    return EL_OK;
}

/* torch.optim's: on where all parameters are on GPUs. */
static enum el_foreach usual_foreach(const struct el_trial *trial)
{
    return el_trial_backend(trial).gpu ? EL_FOREACH_ON : EL_FOREACH_OFF;
}

/* Ranks that others start would each try, and may find different ones. */
static enum el_products usual_products(const struct el_trial *trial)
{
    struct el_launch_place place;
    const struct el_backend_facts facts = el_trial_backend(trial);
    const bool tries = facts.computes && !facts.gpu && trial->train.dtype == EL_F32 &&
                       trial->train.model.precision == EL_PRECISION_FULL;
    if (!tries || el_launch_environment(el_launch_getenv, NULL, &place) != EL_OK || place.is_rank)
        return EL_PRODUCTS_ONEDNN;
    return el_kernels_cpu_fastest();
}

void el_trial_identify(struct el_trial *trial)
{
    struct el_options options;
    el_trial_options(trial, &options);
    options.train.model = trial->train.model;
    while (el_inject_drop_first_fall(options.inject)) continue;
    json_t *echo = el_options_echo(EL_CMD_RUN, &options);
    static const char *const changed[] = {"timeout", "resume", "devices", "procs", "batch", "batch-per-device", "lr"};
    for (size_t i = 0; i < (*trial->elastic ? sizeof changed / sizeof *changed : 2); i++)
        json_object_del(echo, changed[i]);
    char *text = json_dumps(echo, JSON_SORT_KEYS | JSON_COMPACT);
    uint64_t build = el_build_hash(), hash = el_hash(EL_HASH_BEGIN, &build, sizeof build);
    if (text) hash = el_hash(hash, text, strlen(text));
    snprintf(trial->id, sizeof trial->id, "%016" PRIx64, hash);
    free(text);
    json_decref(echo);
}

static enum el_status check_of_gpus(const struct el_trial *trial)
{
    const char *option = trial->tf32 ? "precision tf32" : trial->train.device_graph ? "graph on" : NULL;
    if (!option || el_trial_backend(trial).gpu) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--%s is for GPUs, and the devices are %s: leave it out", option,
                   trial->devices[0].backend);
}

char *el_given_of_modes(char of_modes[EL_MODE_OPTIONS_MAX][EL_MODE_TEXT_BYTES], const char *name)
{
    int i = 0;
    while (strcmp(el_mode_options()[i]->name, name)) i++;
    return of_modes[i];
}

/* Sizes and classes, which may be the data's, are resolved once; the rest may be one of a list. */
static enum el_status model_of(const struct el_options *options, const struct el_trial_choice *choice,
                               struct el_model_config *model)
{
    *model = options->train.model;
    memcpy(model->sizes, choice->model->sizes, sizeof model->sizes);
    model->classes = choice->model->classes;
    EL_TRY(el_sizes_check_taken(options));
    return el_model_resolve(model);
}

enum el_status el_trial_resolve(unsigned command, const struct el_options *options,
                                const struct el_trial_choice *choice, struct el_trial *trial)
{
    struct el_layout layout;
    char *shares = el_given_of_modes(trial->of_modes, "shares");
    const char *mode = options->modes[choice->mode];
    trial->train = options->train;
    trial->given = options->train.model;
    EL_TRY(model_of(options, choice, &trial->train.model));
    trial->train.weights = choice->weights;
    trial->settings = options->settings;
    memcpy(trial->of_modes, options->of_modes, sizeof trial->of_modes);
    if (!strcmp(shares, "equal")) *shares = 0; /* as if none were given */
    EL_TRY(choose_devices(options, options->counts[choice->count], trial->devices, &trial->train.n_devices));
    bool chosen = el_option_given(options, "min-time") || trial->train.min_time_s <= 0 || command == EL_CMD_EXPLAIN;
    if (!chosen && el_trial_backend(trial).gpu) trial->train.min_time_s = GPU_MIN_TIME_S;
    EL_TRY(el_trial_use_mode(trial, mode, &trial->train));
    if (options->bucket_mib > 0) trial->train.bucket_cap_bytes = (size_t)(options->bucket_mib * MIB + 0.5);
    if (options->first_bucket_mib > 0)
        trial->train.bucket_first_bytes = (size_t)(options->first_bucket_mib * MIB + 0.5);
    if (el_mode_option_of(trial->train.mode, "mesh"))
        EL_TRY(el_mesh_read(options->mesh, el_mode_find(trial->train.mode), trial->train.n_devices, trial->train.mesh));
    el_layout_of(&trial->train, 0, &layout);
    trial->n_devices = trial->train.n_devices = layout.n_devices;
    for (int i = trial->n_devices; i < EL_MEMBERS_MAX; i++) trial->devices[i] = (struct el_device_name){.index = 0};
    EL_TRY(check_of_gpus(trial));
    EL_TRY(resolve_procs(command, options, trial));
    trial->batch_is_per_device = options->batch_is_per_device;
    trial->train.global_batch = options->batches[choice->batch] * (trial->batch_is_per_device ? trial->n_devices : 1);
    if (trial->train.foreach == EL_FOREACH_AUTO) trial->train.foreach = usual_foreach(trial);
    if (trial->train.products == EL_PRODUCTS_AUTO) trial->train.products = usual_products(trial);
    EL_TRY(el_train_check(&trial->train));
    EL_TRY(el_trial_check(command, trial));
    el_trial_identify(trial);
    return EL_OK;
}

enum el_status el_trial_use_mode(const struct el_trial *trial, const char *mode, struct el_train_config *config)
{
    const struct el_mode_option *const *options = el_mode_options();
    el_mode_change(config, mode);
    for (int i = 0; options[i]; i++) {
        const struct el_mode_option *own = el_mode_option_of(mode, options[i]->name);
        if (own && *trial->of_modes[i]) EL_TRY(el_mode_option_set(config, own->name, trial->of_modes[i]));
    }
    return EL_OK;
}

/* Whether an option of the mode changes anything: a model in pieces may have one copy, or one stage. */
static bool has_effect(const struct el_train_config *train, const char *name)
{
    const struct el_mode_option *option = el_mode_option_of(train->mode, name);
    return option && (!option->of_copies || !el_mode_has_pieces(train->mode) || train->mesh[EL_AXIS_DATA] > 1) &&
           (!option->of_stages || el_mode_cuts(train->mode) || train->mesh[EL_AXIS_STAGE] > 1);
}

/* A GPU's kernels have other workspaces than a CPU's. */
enum el_status el_trial_forecast(const struct el_trial *trial, struct el_memory_forecast *forecasts_p)
{
    const struct el_kernel_table *kernels = el_kernels_cpu();
    if (el_trial_backend(trial).gpu) EL_TRY(el_device_gpu_kernels(&kernels));
    return el_train_forecast(&trial->train, kernels, forecasts_p);
}

/* What is the same without being given is left out, so that commands stay short. */
static void set_as_given(const struct el_trial *trial, struct el_options *o)
{
    const struct el_train_config *train = &trial->train;
    size_t cap = train->bucket_cap_bytes, first = train->bucket_first_bytes;
    bool buckets = has_effect(train, "bucket-mb");
    bool cap_given = buckets && (cap != EL_BUCKET_CAP_BYTES || first == cap);
    if (cap_given) o->bucket_mib = (double)cap / MIB;
    if (buckets && first != (cap_given ? cap : EL_BUCKET_FIRST_BYTES)) o->first_bucket_mib = (double)first / MIB;
    /* zero1's gradients always are views. */
    o->train.bucket_view = train->bucket_view && has_effect(train, "bucket-view");
    if (train->lr == el_train_default_lr(train->optimizer)) o->train.lr = -1;
    if (train->weight_decay == el_train_default_weight_decay(train->optimizer)) o->train.weight_decay = -1;
    if (train->foreach == usual_foreach(trial)) o->train.foreach = EL_FOREACH_AUTO;
    if (train->products == EL_PRODUCTS_ONEDNN) o->train.products = EL_PRODUCTS_AUTO;
    const struct el_mode_option *const *options = el_mode_options();
    for (int i = 0; options[i]; i++)
        if (has_effect(train, options[i]->name)) memcpy(o->of_modes[i], trial->of_modes[i], sizeof o->of_modes[i]);
    bool by_procs = el_mode_find(train->mode)->many_a_rank &&
                    trial->procs == train->mesh[EL_AXIS_DATA]; /* stages are processes too */
    if (el_mode_option_of(train->mode, "mesh") && train->mesh[EL_AXIS_DATA] > 1 && !by_procs)
        snprintf(o->mesh, sizeof o->mesh, "dp=%d", train->mesh[EL_AXIS_DATA]);
    const int *mesh = train->mesh, copies = mesh[EL_AXIS_DATA] > 1 ? mesh[EL_AXIS_DATA] : 1,
              pieces = mesh[EL_AXIS_TENSOR] > 1 ? mesh[EL_AXIS_TENSOR] : 1,
              stages = mesh[EL_AXIS_STAGE] > 1 ? mesh[EL_AXIS_STAGE] : 1;
    const bool shards = el_mode_find(train->mode)->axes & 1U << EL_AXIS_SHARD;
    if (shards && pieces * stages > 1) {
        snprintf(o->mesh, sizeof o->mesh, "dp=%d,shard=%d", copies, trial->n_devices / copies / stages / pieces);
        if (stages > 1) el_text_append(o->mesh, sizeof o->mesh, ",pp=%d", stages);
        if (pieces > 1) el_text_append(o->mesh, sizeof o->mesh, ",tp=%d", pieces);
    }
    if (el_mode_cuts(train->mode) && pieces > 1)
        snprintf(o->mesh, sizeof o->mesh, "dp=%d,pp=%d,tp=%d", copies, trial->n_devices / copies / pieces, pieces);
}

void el_trial_options(const struct el_trial *trial, struct el_options *options_p)
{
    struct el_options *o = options_p;
    el_options_defaults(EL_CMD_RUN, o);
    memcpy(o->modes[0], trial->train.mode, sizeof o->modes[0]);
    memcpy(o->devices, trial->devices, sizeof o->devices);
    o->n_devices = trial->n_devices;
    o->procs = el_mode_find(trial->train.mode)->one_process ? 0 : trial->procs;
    o->batch_is_per_device = trial->batch_is_per_device;
    o->batches[0] = trial->train.global_batch / (trial->batch_is_per_device ? trial->n_devices : 1);
    const int prefetch = o->train.loading.prefetch;
    o->train = trial->train;
    if (!o->train.loading.workers) o->train.loading.prefetch = prefetch;
    const struct el_settings usual = o->settings;
    o->settings = trial->settings;
    if (!*o->checkpoint) { /* nothing is written */
        memcpy(o->checkpoint_every, usual.checkpoint_every, sizeof o->checkpoint_every);
        o->checkpoint_keep = usual.checkpoint_keep;
        o->checkpoint_async = usual.checkpoint_async;
    }
    set_as_given(trial, o);
    o->train.model = trial->given;
}

enum el_status el_trial_command(const struct el_trial *trial, char *text, size_t bytes)
{
    struct el_options options;
    el_trial_options(trial, &options);
    return el_options_command_line(EL_CMD_RUN, &options, text, bytes);
}

struct el_backend_facts el_trial_backend(const struct el_trial *trial)
{
    return el_backend_facts(trial->devices[0].backend);
}

int64_t el_trial_tokens(const struct el_trial *trial)
{
    const struct el_model_info *info = el_model_find(trial->train.model.name);
    return info && info->input == EL_INPUT_TOKENS ? el_model_size(&trial->train.model, "seq") : 0;
}

json_t *el_trial_device_names(const struct el_trial *trial)
{
    json_t *names = json_array();
    for (int i = 0; i < trial->n_devices; i++)
        json_array_append_new(names,
                              json_sprintf("%s:%d", trial->devices[0].backend, el_nth_device(trial->devices, i).index));
    return names;
}
