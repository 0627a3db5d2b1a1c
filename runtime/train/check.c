/* Checks of a configuration that need no device. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/modes/mode.h"
#include "runtime/train/train.h"

double el_train_default_lr(enum el_optimizer_kind optimizer)
{
    return optimizer >= EL_OPT_ADAM ? 0.001 : 0.01;
}

double el_train_default_weight_decay(enum el_optimizer_kind optimizer)
{
    return optimizer == EL_OPT_ADAMW ? 0.01 : 0;
}

static void fill_in(struct el_train_config *config, const struct el_mode_ops *mode)
{
    if (config->lr < 0) config->lr = el_train_default_lr(config->optimizer);
    if (config->weight_decay < 0) config->weight_decay = el_train_default_weight_decay(config->optimizer);
    if (config->foreach == EL_FOREACH_AUTO) config->foreach = EL_FOREACH_OFF;
    if (!config->bucket_first_bytes)
        config->bucket_first_bytes = config->bucket_cap_bytes ? config->bucket_cap_bytes : EL_BUCKET_FIRST_BYTES;
    if (!config->bucket_cap_bytes) config->bucket_cap_bytes = EL_BUCKET_CAP_BYTES;
    if (!*config->cut) snprintf(config->cut, sizeof config->cut, "time");
    el_mode_options_reset(config);
    if (!config->n_accumulate) config->n_accumulate = 1;
    if (!*config->schedule) snprintf(config->schedule, sizeof config->schedule, "%s", el_schedule_list()->name);
    config->zero = 0;
    if (mode->resolve) mode->resolve(config);
    if (config->share_weights == EL_SHARE_WEIGHTS_AUTO && config->shares.n > 0)
        config->share_weights = EL_SHARE_WEIGHTS_SAMPLES;
    config->by_samples = config->share_weights == EL_SHARE_WEIGHTS_SAMPLES;
}

static enum el_status check_optimizer(const struct el_train_config *config)
{
    if (!(config->lr >= 0) || isinf(config->lr))
        return el_fail(EL_ERR_INVALID, "--lr %g: must be a number from 0 up", config->lr);
    if (!(config->momentum >= 0 && config->momentum < 1)) {
        return el_fail(EL_ERR_INVALID, "--optimizer momentum=%g: must be at least 0 and below 1", config->momentum);
    }
    if (!(config->weight_decay >= 0) || isinf(config->weight_decay))
        return el_fail(EL_ERR_INVALID, "--optimizer weight-decay=%g: must be a number from 0 up", config->weight_decay);
    if (config->weight_decay > 0 && config->optimizer != EL_OPT_ADAMW)
        return el_fail(EL_ERR_INVALID,
                       "--optimizer weight-decay: only --optimizer adamw has it: leave one of them out");
    if (!(config->clip >= 0) || isinf(config->clip))
        return el_fail(EL_ERR_INVALID, "--clip %g: must be a number from 0 up", config->clip);
    return EL_OK;
}

static enum el_status check_types(const struct el_train_config *config, const struct el_mode_info *mode)
{
    if (mode->one_type && config->model.precision == EL_PRECISION_BF16_MIXED)
        return el_fail(EL_ERR_INVALID,
                       "--precision bf16-mixed: %s has its weights in one type: take another mode "
                       "(ddp, say), or --precision bf16",
                       config->mode);
    if (config->dtype == EL_F64 && config->model.precision != EL_PRECISION_FULL)
        return el_fail(EL_ERR_INVALID, "--precision bf16 and f64: leave one of them out");
    if (config->dtype == EL_F64 && el_config_reduced(config) != EL_F64)
        return el_fail(EL_ERR_INVALID, "--comm-hook %s: gradients of f64 are reduced as they are: leave it out",
                       el_dtype_name(el_config_reduced(config)));
    if (config->bucket_view && el_config_reduced(config) != el_config_stored(config))
        return el_fail(EL_ERR_INVALID, "--bucket-mb view=on: gradients are in the buckets, so that they have one type: "
                                       "leave --comm-hook out");
    return EL_OK;
}

static enum el_status check_numbers(const struct el_train_config *config)
{
    EL_TRY(check_optimizer(config));
    if (config->steps < 1) return el_fail(EL_ERR_INVALID, "--steps %lld: must be at least 1", (long long)config->steps);
    if (config->warmup < 0)
        return el_fail(EL_ERR_INVALID, "--warmup %lld: must not be negative", (long long)config->warmup);
    if (config->control_pairs < 0 || config->control_pairs > EL_CONTROL_PAIRS_MAX) {
        return el_fail(EL_ERR_INVALID, "--control pairs=%d: must be between 1 and %d", config->control_pairs,
                       EL_CONTROL_PAIRS_MAX);
    }
    if (config->loading.transfer == EL_TRANSFER_AHEAD && (config->loading.pageable || config->n_accumulate > 1))
        return el_fail(EL_ERR_INVALID, "--non-blocking ahead: %s",
                       config->loading.pageable
                           ? "from pageable memory a copy keeps the host busy: leave --non-blocking pin=off out"
                           : "each micro-step has a batch of its own: leave --accumulate out");
    if (config->epochs < 0)
        return el_fail(EL_ERR_INVALID, "--epochs %lld: must not be negative", (long long)config->epochs);
    return EL_OK;
}

static enum el_status check_lengths(const struct el_train_config *config)
{
    const struct el_model_info *model = el_model_find(config->model.name);
    const char *reason = NULL;
    if (!config->length_by_batch && !config->bucket_lengths) return EL_OK;
    if (model->input != EL_INPUT_IDS || !model->any_length)
        return el_fail(EL_ERR_INVALID, "--%s: model %s takes no sentences of any length (textcnn does): leave it out",
                       config->length_by_batch ? "lengths pad=batch" : "lengths bucketed", model->name);
    if (!config->length_by_batch) return EL_OK;
    if (el_mode_cuts(config->mode) || config->mesh[EL_AXIS_STAGE] > 1)
        reason = "its stages pass on values of one length: take another mode";
    if (config->device_graph) reason = "a graph has one length: leave --graph on out";
    if (config->loading.transfer == EL_TRANSFER_AHEAD)
        reason = "a batch that comes a step ahead has another length: leave --non-blocking ahead out";
    return reason ? el_fail(EL_ERR_INVALID, "--lengths pad=batch: %s: %s", config->mode, reason) : EL_OK;
}

static enum el_status check_ranks(const struct el_train_config *config)
{
    if (!el_mode_option_of(config->mode, "mesh") || config->mesh[EL_AXIS_DATA] == 0) return EL_OK;
    if (config->mesh[EL_AXIS_DATA] >= 1 && config->n_devices % config->mesh[EL_AXIS_DATA] == 0) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--mesh dp=%d: %d device%s cannot be divided evenly among that many",
                   config->mesh[EL_AXIS_DATA], config->n_devices, config->n_devices == 1 ? "" : "s");
}

static enum el_status check_shares(const struct el_train_config *config)
{
    const struct el_shares *shares = &config->shares;
    if (shares->n == 0) return EL_OK;
    if (shares->n != config->n_devices)
        return el_fail(EL_ERR_INVALID, "--shares: %d weight%s for %d device%s: give one for each", shares->n,
                       shares->n == 1 ? "" : "s", config->n_devices, config->n_devices == 1 ? "" : "s");
    int n = (int)config->n_accumulate, parts = n * shares->n;
    for (int i = 0; i < parts; i++)
        if (el_batch_part(shares, config->global_batch, parts, i).samples == 0)
            return el_fail(EL_ERR_INVALID,
                           "--shares: of %s %lld samples device %d would get none: give a larger --batch, or weights "
                           "that differ less",
                           n > 1 ? "a micro-step's" : "the batch's",
                           (long long)el_share_size(config->global_batch, n, i / shares->n), i % shares->n);
    return EL_OK;
}

static enum el_status check_chunks(const struct el_train_config *config, const struct el_layout *layout)
{
    if (el_mode_ops_find(config->mode)->info.loss == EL_LOSS_OF_BATCH) return EL_OK;
    for (int d = 0; d < layout->n_devices; d++)
        if (el_layout_spot(layout, d).samples == 0)
            return el_fail(EL_ERR_INVALID,
                           "--batch %lld: cut evenly among the devices of a process, it leaves device %d without "
                           "samples: change --batch",
                           (long long)config->global_batch, d);
    return EL_OK;
}

static enum el_status check_accumulate(const struct el_train_config *config, const struct el_layout *layout,
                                       int n_shares)
{
    int n = (int)config->n_accumulate;
    if (n < 1 || config->global_batch < (int64_t)n_shares * n)
        return el_fail(EL_ERR_INVALID,
                       "--accumulate %d: a batch of %lld is smaller than the number of micro-steps on all devices (%d)",
                       n, (long long)config->global_batch, n_shares * n);
    for (int k = 0; k < n && layout->n_workers == 1 && layout->n_feeds == 1; k++) {
        int64_t batch = el_share_size(config->global_batch, n, k);
        if (el_layout_piece(&config->shares, batch, layout->n_devices, layout->n[EL_AXIS_DATA] - 1) > 0) continue;
        return el_fail(
            EL_ERR_INVALID,
            "--accumulate %d: a micro-step of %lld samples, cut evenly among %d devices, leaves the last one "
            "without samples: change --batch",
            n, (long long)batch, layout->n_devices);
    }
    return EL_OK;
}

static int find_single_pixel(const struct el_graph *model)
{
    for (int n = 0; n < model->n_nodes; n++) {
        const struct el_shape *shape = &model->tensors[model->nodes[n].outputs[0]].shape;
        if (model->nodes[n].n_buffers > 0 && el_shape_count(shape) == shape->d[shape->n - 1]) return n;
    }
    return -1;
}

static void find_single_sample(const struct el_train_config *config, const struct el_layout *layout, char *text,
                               size_t bytes)
{
    int n_ranks = layout->n_feeds, n_micro = (int)config->n_accumulate;
    int n_pieces = el_layout_pieces(config, layout);
    const struct el_shares shares = el_layout_feed_shares(layout);
    *text = 0;
    for (int i = n_ranks * n_micro - 1; i >= 0; i--) {
        int64_t share = el_batch_part(&shares, config->global_batch, n_ranks * n_micro, i).samples;
        for (int c = 0; c < n_pieces; c++) {
            if (el_layout_piece(&config->shares, share, n_pieces, c) != 1) continue;
            if (config->n_micro > 1)
                snprintf(text, bytes, "a micro-batch");
            else if (n_pieces > 1)
                snprintf(text, bytes, "the chunk of device %d", i % n_ranks * n_pieces + c);
            else if (n_ranks > 1)
                snprintf(text, bytes, "the share of rank %d", i % n_ranks);
            else
                snprintf(text, bytes, "the batch");
        }
    }
}

/* One value per channel has no variance; PyTorch fails in the step. */
static enum el_status check_statistics(const struct el_train_config *config, const struct el_layout *layout)
{
    struct el_graph *model;
    char which[64];
    EL_TRY(el_model_build(&config->model, &model));
    int node = find_single_pixel(model);
    enum el_status status = EL_OK;
    find_single_sample(config, layout, which, sizeof which);
    if (node >= 0 && *which)
        status =
            el_fail(EL_ERR_INVALID,
                    "%s: %s%s is one sample, and '%s' has planes of one pixel: batch norm needs more than one "
                    "value per channel: give a larger --batch, or --image",
                    config->mode, which, config->n_accumulate > 1 ? " in a micro-step" : "", model->nodes[node].name);
    el_graph_destroy(model);
    return status;
}

enum el_status el_train_check(struct el_train_config *config)
{
    const struct el_mode_ops *mode = el_mode_ops_find(config->mode);
    if (!mode) return el_fail(EL_ERR_INVALID, "--mode %s: no such mode", config->mode);
    if (config->n_devices < 1 || config->n_devices > EL_SIMULATED_MAX) {
        return el_fail(EL_ERR_INVALID, "--devices %d: must be between 1 and %d", config->n_devices, EL_SIMULATED_MAX);
    }
    if (config->global_batch < 1)
        return el_fail(EL_ERR_INVALID, "--batch %lld: must be at least 1", (long long)config->global_batch);
    struct el_layout layout;
    fill_in(config, mode);
    EL_TRY(check_lengths(config));
    EL_TRY(check_ranks(config));
    EL_TRY(check_shares(config));
    el_layout_of(config, 0, &layout);
    const bool cut = el_layout_per_copy(&layout) > 1;
    int n_shares = cut ? layout.n_feeds : layout.n_devices;
    if (config->global_batch < n_shares)
        return el_fail(EL_ERR_INVALID, "--batch %lld is smaller than the %d %s: give at least %d, or fewer devices",
                       (long long)config->global_batch, n_shares, cut ? "copies of the model" : "devices", n_shares);
    EL_TRY(check_chunks(config, &layout));
    EL_TRY(check_accumulate(config, &layout, n_shares));
    if (mode->check) EL_TRY(mode->check(config, &layout));
    EL_TRY(check_statistics(config, &layout));
    EL_TRY(check_types(config, &mode->info));
    return check_numbers(config);
}
