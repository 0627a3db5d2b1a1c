/* All trials that options ask for: each combination of the values in their lists. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options/options.h"
#include "bench/trial/trial.h"
#include "runtime/state/weights.h"

/* What there may be several values of, the outermost first. */
enum axis { BATCH, MODE, BUCKET_VIEW, BUCKETS, COUNT, PAGE_CACHE, PIN_MEMORY, WORKERS, PREFETCH, AXES };

/* A list that was not given stands for one value, its default. */
static int or_one(int n)
{
    return n ? n : 1;
}

/* How many values there are, after what was chosen before. */
static int count_values(const struct el_options *o, enum axis axis, const struct el_trial_choice *choice)
{
    switch (axis) {
    case BATCH:
        return o->n_batches;
    case MODE:
        return o->n_modes;
    case BUCKET_VIEW:
        return o->bucket_view == EL_VIEW_BOTH && el_mode_option_of(choice->mode, "bucket-view") ? 2 : 1;
    case BUCKETS: {
        bool reduces = el_mode_option_of(choice->mode, "bucket-mb") && (!el_mode_cuts(choice->mode) || *o->mesh);
        return reduces ? or_one(o->n_buckets) : 1;
    }
    case COUNT:
        return or_one(o->n_counts);
    case PAGE_CACHE:
        return o->page_cache == EL_CACHE_BOTH ? 2 : 1;
    case PIN_MEMORY:
        return o->pin_memory == EL_PIN_BOTH ? 2 : 1;
    case WORKERS:
        return or_one(o->workers.n);
    default:
        return choice->workers > 0 ? or_one(o->prefetch.n) : 1;
    }
}

/* false: the mode makes of it what it made of the value before. */
static bool choose(const struct el_options *o, enum axis axis, int i, struct el_trial_choice *choice)
{
    const char *mode = choice->mode;
    switch (axis) {
    case BATCH:
        choice->batch = o->batches[i];
        return true;
    case MODE:
        choice->mode = o->modes[i];
        return true;
    case BUCKET_VIEW:
        choice->bucket_view = i == 1 || o->bucket_view == EL_VIEW_ON;
        return true;
    case BUCKETS:
        choice->bucket_mib = o->bucket_mib[i];
        return true;
    case COUNT:
        if (i > 0 && el_mode_devices(mode, o->counts[i]) == el_mode_devices(mode, choice->count)) return false;
        choice->count = o->n_counts ? o->counts[i] : 0;
        return true;
    case PAGE_CACHE:
        choice->cold = i == 1 || o->page_cache == EL_CACHE_COLD;
        return true;
    case PIN_MEMORY:
        choice->pageable = i == 1 || o->pin_memory == EL_PIN_OFF;
        return true;
    case WORKERS:
        choice->workers = o->workers.n ? o->workers.v[i] : -1;
        return true;
    default:
        choice->prefetch = o->prefetch.n ? o->prefetch.v[i] : 0;
        return true;
    }
}

static enum el_status add_trial(unsigned command, const struct el_options *options,
                                const struct el_trial_choice *choice, struct el_trial_set *set)
{
    struct el_trial *trials = realloc(set->trials, (size_t)(set->n + 1) * sizeof *trials);
    if (!trials) return el_fail_errno("%d trials", set->n + 1);
    struct el_trial *trial = &trials[set->n++];
    set->trials = trials;
    memset(trial, 0, sizeof *trial);
    EL_TRY(el_trial_resolve(command, options, choice, trial));
    trial->characters = el_dataset_info(set->dataset)->characters;
    int64_t samples = el_dataset_size(set->dataset, EL_SPLIT_TRAIN);
    if (trial->train.global_batch <= samples) return EL_OK;
    return el_fail(EL_ERR_INVALID, "a global batch of %" PRId64 " is more than the %" PRId64 " training samples of %s",
                   trial->train.global_batch, samples, trial->data);
}

static enum el_status add_from(enum axis axis, unsigned command, const struct el_options *options,
                               struct el_trial_choice choice, struct el_trial_set *set)
{
    if (axis == AXES) return add_trial(command, options, &choice, set);
    for (int i = 0, n = count_values(options, axis, &choice); i < n; i++)
        if (choose(options, axis, i, &choice)) EL_TRY(add_from(axis + 1, command, options, choice, set));
    return EL_OK;
}

/* Of a resolved model; NULL where no file is to be loaded. */
static enum el_status open_weights(const char *load, const struct el_model_config *model,
                                   struct el_safetensors **weights_p)
{
    struct el_safetensors *weights;
    struct el_graph *graph;
    if (!*load) return EL_OK;
    EL_TRY(el_model_build(model, &graph));
    enum el_status status = el_safetensors_open(load, &weights);
    if (status == EL_OK) {
        status = el_weights_check(weights, graph);
        if (status == EL_OK)
            *weights_p = weights;
        else
            el_safetensors_close(weights);
    }
    el_graph_destroy(graph);
    return status;
}

enum el_status el_trials_resolve(unsigned command, const struct el_options *options, struct el_trial_set *set_p)
{
    struct el_trial_set set = {0};
    struct el_model_config model;
    if (command == EL_CMD_RUN && options->n_batches != 1)
        return el_fail(EL_ERR_INVALID, "--batch: 'run' takes one batch; 'evenload compare' takes a list");
    EL_TRY(el_sizes_check(&options->train.model));
    EL_TRY(el_sizes_resolve(options, &model, &set.dataset));
    enum el_status status = open_weights(options->load, &model, &set.weights);
    const struct el_trial_choice choice = {.model = &model, .weights = set.weights};
    if (status == EL_OK) status = add_from(BATCH, command, options, choice, &set);
    if (status == EL_OK)
        *set_p = set;
    else
        el_trials_free(&set);
    return status;
}

void el_trials_free(struct el_trial_set *set)
{
    free(set->trials);
    el_dataset_close(set->dataset);
    el_safetensors_close(set->weights);
    *set = (struct el_trial_set){0};
}
