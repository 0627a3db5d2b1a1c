/* All trials that options ask for: each combination of the values in their lists. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options/options.h"
#include "bench/trial/trial.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/weights.h"

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

/* What the mode makes of a value that it does not have, or of more devices than it takes, is a trial already. */
static bool is_there(const struct el_trial_set *set, const char *id)
{
    for (int t = 0; t < set->n; t++)
        if (!strcmp(set->trials[t].id, id)) return true;
    return false;
}

static enum el_status add_trial(unsigned command, const struct el_options *options, struct el_trial_choice choice,
                                const char *chosen, struct el_trial_set *set)
{
    struct el_trial *trials = realloc(set->trials, (size_t)(set->n + 1) * sizeof *trials);
    if (!trials) return el_fail_errno("%d trials", set->n + 1);
    struct el_trial *trial = &trials[set->n];
    set->trials = trials;
    memset(trial, 0, sizeof *trial);
    snprintf(trial->chosen, sizeof trial->chosen, "%s", chosen);
    EL_TRY(el_trial_resolve(command, options, &choice, trial));
    if (is_there(set, trial->id)) return EL_OK;
    set->n++;
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

/* Each batch, mode and number of devices, of options with one value each. */
static enum el_status add_all(unsigned command, const struct el_options *options, struct el_trial_choice choice,
                              struct el_trial_set *set)
{
    const int n = el_option_combinations(options), counts = options->n_counts ? options->n_counts : 1;
    struct el_options *one = malloc(sizeof *one);
    enum el_status status = one ? EL_OK : el_fail_errno("options of a trial");
    for (int i = 0; i < options->n_batches * options->n_modes * n * counts && status == EL_OK; i++) {
        char chosen[sizeof set->trials->chosen];
        choice.count = i % counts;
        choice.mode = i / counts / n % options->n_modes;
        choice.batch = i / counts / n / options->n_modes;
        status = el_option_choose(options, options->modes[choice.mode], i / counts % n, one, chosen, sizeof chosen);
        if (status == EL_OK) status = add_trial(command, one, choice, chosen, set);
    }
    free(one);
    return status;
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
    if (status == EL_OK) status = add_all(command, options, choice, &set);
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
