/* All trials that options ask for: each combination of the values in their lists. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options/options.h"
#include "bench/trial/trial.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/weights.h"

/* "1,1/3,1", "none,f16" */
static int count_items(const struct el_options *o, const char *option, char between)
{
    struct el_options own = *o;
    int n = 1;
    for (const char *at = el_given_of_modes(own.of_modes, option); *at; at++) n += *at == between;
    return n;
}

/* How many values there are, after what was chosen before. */
static int count_values(const struct el_options *o, enum el_trial_list list, const struct el_trial_choice *choice)
{
    const char *mode = o->modes[choice->at[EL_LIST_MODE]];
    bool reduces = el_mode_option_of(mode, "bucket-mb") && (!el_mode_has_pieces(mode) || *o->mesh);
    int workers = o->workers.n ? o->workers.v[choice->at[EL_LIST_WORKERS]] : 0;
    switch (list) {
    case EL_LIST_BATCH:
        return o->n_batches;
    case EL_LIST_MODE:
        return o->n_modes;
    case EL_LIST_BUCKET_VIEW:
        return o->bucket_view == EL_VIEW_BOTH && el_mode_option_of(mode, "bucket-view") ? 2 : 1;
    case EL_LIST_BUCKETS:
        return reduces ? o->n_buckets : 1;
    case EL_LIST_HOOKS:
        return reduces && el_mode_option_of(mode, "comm-hook") ? count_items(o, "comm-hook", ',') : 1;
    case EL_LIST_SHARES:
        return el_mode_option_of(mode, "shares") ? count_items(o, "shares", '/') : 1;
    case EL_LIST_COUNT:
        return o->n_counts;
    case EL_LIST_PAGE_CACHE:
        return o->page_cache == EL_CACHE_BOTH ? 2 : 1;
    case EL_LIST_PIN_MEMORY:
        return o->pin_memory == EL_PIN_BOTH ? 2 : 1;
    case EL_LIST_WORKERS:
        return o->workers.n;
    default:
        return workers > 0 ? o->prefetch.n : 1;
    }
}

/* Whether the mode makes of it what it made of the value before. */
static bool is_the_same(const struct el_options *o, enum el_trial_list list, int i,
                        const struct el_trial_choice *choice)
{
    const char *mode = o->modes[choice->at[EL_LIST_MODE]];
    return list == EL_LIST_COUNT && i > 0 &&
           el_mode_devices(mode, o->counts[i]) == el_mode_devices(mode, o->counts[i - 1]);
}

static enum el_status resume(struct el_trial *trial, struct el_trial_set *set)
{
    struct el_graph *graph;
    if (!*trial->resume) return EL_OK;
    if (el_checkpoint_is_in(trial->checkpoint, trial->resume) && el_checkpoint_last(trial->checkpoint) < 0)
        return EL_OK; /* its first */
    EL_TRY(el_checkpoint_open(trial->resume, &set->resume));
    snprintf(trial->resume, sizeof trial->resume, "%s", el_checkpoint_path(set->resume)); /* for all ranks the same */
    EL_TRY(el_model_build(&trial->train.model, &graph));
    enum el_status status = el_checkpoint_check(set->resume, &trial->train, graph);
    if (status == EL_OK) status = el_checkpoint_check_data(set->resume, set->dataset);
    el_graph_destroy(graph);
    trial->from = set->resume;
    return status;
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
    if (*trial->checkpoint && options->repeats > 1)
        return el_fail(EL_ERR_INVALID,
                       "--checkpoint with --repeats %d: each launch would begin again: leave one of "
                       "them out",
                       options->repeats);
    EL_TRY(resume(trial, set));
    int64_t samples = el_dataset_size(set->dataset, EL_SPLIT_TRAIN);
    if (trial->train.global_batch <= samples) return EL_OK;
    return el_fail(EL_ERR_INVALID, "a global batch of %" PRId64 " is more than the %" PRId64 " training samples of %s",
                   trial->train.global_batch, samples, trial->data);
}

static enum el_status add_from(enum el_trial_list list, unsigned command, const struct el_options *options,
                               struct el_trial_choice choice, struct el_trial_set *set)
{
    if (list == EL_LISTS) return add_trial(command, options, &choice, set);
    int n = count_values(options, list, &choice);
    for (int i = 0; i == 0 || i < n; i++) {
        if (is_the_same(options, list, i, &choice)) continue;
        choice.at[list] = i;
        EL_TRY(add_from(list + 1, command, options, choice, set));
    }
    return EL_OK;
}

/* Of a resolved model; NULL where no file is to be loaded. */
static enum el_status open_weights(const char *load, const struct el_model_config *model, struct el_trial_set *set)
{
    struct el_safetensors *weights;
    struct el_graph *graph;
    char names[256];
    if (!*load) return EL_OK;
    EL_TRY(el_model_build(model, &graph));
    enum el_status status = el_safetensors_open(load, &weights);
    if (status == EL_OK) {
        status = el_weights_check(weights, graph);
        const int lacks = el_weights_lacks(weights, graph, names, sizeof names);
        if (lacks > 0)
            snprintf(set->drawn, sizeof set->drawn, "%d of %d arrays of the model are not in %.160s and are drawn: %s",
                     lacks, graph->n_params + graph->n_buffers, load, names);
        if (status == EL_OK)
            set->weights = weights;
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
    enum el_status status = open_weights(options->load, &model, &set);
    const struct el_trial_choice choice = {.model = &model, .weights = set.weights};
    if (status == EL_OK) status = add_from(EL_LIST_BATCH, command, options, choice, &set);
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
    el_checkpoint_close(set->resume);
    *set = (struct el_trial_set){0};
}
