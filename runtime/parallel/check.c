/* Checks of a configuration that need no device, and what follows from it. */
#include <math.h>
#include <string.h>

#include "runtime/parallel/dp.h"

double el_train_default_lr(enum el_optimizer_kind optimizer)
{
    return optimizer == EL_OPT_ADAM ? 0.001 : 0.01;
}

static void fill_in(struct el_train_config *config)
{
    if (config->lr < 0) config->lr = el_train_default_lr(config->optimizer);
    if (config->foreach == EL_FOREACH_AUTO) config->foreach = EL_FOREACH_OFF;
    if (!config->bucket_first_bytes)
        config->bucket_first_bytes = config->bucket_cap_bytes ? config->bucket_cap_bytes : EL_BUCKET_FIRST_BYTES;
    if (!config->bucket_cap_bytes) config->bucket_cap_bytes = EL_BUCKET_CAP_BYTES;
}

static enum el_status check_numbers(const struct el_train_config *config)
{
    if (!(config->lr >= 0) || isinf(config->lr))
        return el_fail(EL_ERR_INVALID, "--lr %g: must be a number from 0 up", config->lr);
    if (!(config->momentum >= 0 && config->momentum < 1)) {
        return el_fail(EL_ERR_INVALID, "--momentum %g: must be at least 0 and below 1", config->momentum);
    }
    if (config->steps < 1) return el_fail(EL_ERR_INVALID, "--steps %lld: must be at least 1", (long long)config->steps);
    if (config->warmup < 0)
        return el_fail(EL_ERR_INVALID, "--warmup %lld: must not be negative", (long long)config->warmup);
    if (config->control_pairs < 0 || config->control_pairs > EL_CONTROL_PAIRS_MAX) {
        return el_fail(EL_ERR_INVALID, "--control-pairs %d: must be between 1 and %d", config->control_pairs,
                       EL_CONTROL_PAIRS_MAX);
    }
    if (config->epochs < 0)
        return el_fail(EL_ERR_INVALID, "--epochs %lld: must not be negative", (long long)config->epochs);
    return EL_OK;
}

enum el_status el_train_check(struct el_train_config *config)
{
    const struct el_mode_ops *mode = el_mode_ops_find(config->mode);
    if (!mode) return el_fail(EL_ERR_INVALID, "--mode %s: no such mode", config->mode);
    if (config->n_devices < 1 || config->n_devices > EL_MEMBERS_MAX) {
        return el_fail(EL_ERR_INVALID, "--devices %d: must be between 1 and %d", config->n_devices, EL_MEMBERS_MAX);
    }
    if (config->global_batch < 1)
        return el_fail(EL_ERR_INVALID, "--batch %lld: must be at least 1", (long long)config->global_batch);
    if (config->global_batch < config->n_devices && !mode->info.one_device) {
        return el_fail(EL_ERR_INVALID, "--batch %lld: smaller than the number of devices (%d); each needs a sample",
                       (long long)config->global_batch, config->n_devices);
    }
    fill_in(config);
    return check_numbers(config);
}

void el_train_shares(const struct el_train_config *config, int64_t *batch_per_device)
{
    const struct el_mode_ops *mode = el_mode_ops_find(config->mode);
    memset(batch_per_device, 0, EL_MEMBERS_MAX * sizeof *batch_per_device);
    if (mode->info.one_device)
        batch_per_device[0] = config->global_batch;
    else if (mode->info.controller)
        el_dp_chunks(config->global_batch, config->n_devices, batch_per_device);
    else {
        for (int r = 0; r < config->n_devices; r++)
            batch_per_device[r] = el_share_size(config->global_batch, config->n_devices, r);
    }
}
