/* Launches of `explain`, in fresh processes one after another. */
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/campaign/follow.h"
#include "bench/campaign/runner.h"
#include "bench/explain/explain.h"

static enum el_status read_part(const char *path, json_t *samples)
{
    json_t *part;
    EL_TRY(el_read_json(path, &part));
    unlink(path);
    json_array_append_new(samples, part);
    return EL_OK;
}

/* As the ddp among them is launched, by threads of one process. */
static enum el_status launch(const struct el_store *store, const struct el_options *options, const struct el_trial *dp,
                             int number, json_t *samples)
{
    struct el_trial trial = *dp;
    char path[EL_PATH_BYTES], text[16];
    struct el_follow follow = {.gap_s = 5};
    EL_TRY(el_trial_use_mode(dp, "ddp", &trial.train));
    snprintf(text, sizeof text, "%d", number);
    el_store_path(store, path, "launch-%d.json", number);
    el_store_path(store, follow.logs, "logs/explain-%d", number);
    EL_TRY(el_follow_launch(&follow, store, &trial, (const char *const[]){"worker", "explain", path, text, NULL},
                            EL_CMD_EXPLAIN, options));
    return el_runner_interrupted() ? EL_OK : read_part(path, samples);
}

enum el_status el_explain_measure(const struct el_options *options, const struct el_trial_set *set,
                                  const struct el_store *store, json_t **samples_p)
{
    json_t *samples = json_array();
    enum el_status status = EL_OK;
    for (int i = 0; i < options->repeats && status == EL_OK && !el_runner_interrupted(); i++)
        status = launch(store, options, &set->trials[0], i, samples);
    *samples_p = NULL;
    if (status == EL_OK && !el_runner_interrupted())
        *samples_p = samples;
    else
        json_decref(samples);
    return status;
}
