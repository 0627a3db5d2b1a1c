/* Checks of a configuration that need no device, and what follows from it. */
#include <math.h>
#include <stdio.h>

#include "runtime/modes/dp/fix.h"
#include "runtime/modes/mode.h"
#include "runtime/train/train.h"

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
    if (!*config->cut) snprintf(config->cut, sizeof config->cut, "time");
    if (!el_mode_takes(config->mode, "bucket-view")) config->bucket_view = false;
    if (!el_mode_takes(config->mode, "output-device")) config->output_device = 0;
    if (!el_mode_takes(config->mode, "loss-in")) config->loss_in_replica = false;
    if (!el_mode_takes(config->mode, "dp-fix")) config->dp_fix = 0;
    if (config->dp_fix && config->loss_in_replica) config->dp_fix |= EL_DP_FIX_OUTPUTS;
    config->dp_fix = el_dp_fix_close(config->dp_fix);
    if (config->dp_fix & EL_DP_FIX_OUTPUTS) config->loss_in_replica = true;
    if (!el_mode_takes(config->mode, "sync")) config->sync_params = false;
    if (!el_mode_takes(config->mode, "find-unused")) config->find_unused = false;
    if (!el_mode_takes(config->mode, "static-graph")) config->static_graph = false;
    if (!el_mode_takes(config->mode, "broadcast-buffers")) config->broadcast_buffers = false;
    if (!config->n_accumulate || !el_mode_takes(config->mode, "accumulate")) config->n_accumulate = 1;
    if (!el_mode_takes(config->mode, "micro")) config->n_micro = 1;
    if (!el_mode_takes(config->mode, "schedule")) *config->schedule = 0;
    if (!*config->schedule) snprintf(config->schedule, sizeof config->schedule, "%s", el_schedule_list()->name);
    if (!el_mode_takes(config->mode, "parts")) config->parts = 0;
    if (!el_mode_takes(config->mode, "graph")) config->device_graph = false;
}

/* What a graph cannot have in the middle of a step, and what is not what it would seem. */
static enum el_status check_graph(const struct el_train_config *config)
{
    const char *reason = NULL;
    if (config->control == EL_CONTROL_RECORD)
        reason = "--control record: recorded steps are no graph, so that their difference is not the recorder's";
    if (config->loading.pageable) reason = "--pin-memory off: a graph copies from pinned memory alone";
    if (config->loading.transfer == EL_TRANSFER_BLOCKING)
        reason = "--non-blocking off: within a graph the host waits for no copy";
    if (config->loading.transfer == EL_TRANSFER_AHEAD)
        reason = "--non-blocking ahead: a batch is made before the graph is launched, not beside it";
    if (!config->device_graph || !reason) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--graph on and %s: leave one of them out", reason);
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
    if (config->loading.transfer == EL_TRANSFER_AHEAD && (config->loading.pageable || config->n_accumulate > 1))
        return el_fail(EL_ERR_INVALID, "--non-blocking ahead: %s",
                       config->loading.pageable
                           ? "from pageable memory a copy keeps the host busy: leave --pin-memory off out"
                           : "each micro-step has a batch of its own: leave --accumulate out");
    if (config->epochs < 0)
        return el_fail(EL_ERR_INVALID, "--epochs %lld: must not be negative", (long long)config->epochs);
    return EL_OK;
}

/* A part whose forwards are not in the order of micro-batches; -1: there is none. */
static int find_out_of_order(const struct el_schedule *schedule)
{
    int next[EL_PARTS_MAX] = {0};
    for (int d = 0; d < schedule->n_devices; d++)
        for (int i = 0; i < schedule->n_actions[d]; i++) {
            struct el_action action = schedule->actions[d][i];
            if (action.kind == EL_ACTION_FORWARD && action.micro != next[action.part]++) return action.part;
        }
    return -1;
}

/* Running statistics take micro-batches one after another, and another order gives others. */
static enum el_status check_order(const struct el_train_config *config, const struct el_parts *parts)
{
    int part = parts->model->n_buffers > 0 ? find_out_of_order(&parts->schedule) : -1;
    if (part < 0) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "--schedule %s: the forwards of part %d are not in the order of micro-batches, on which the running "
                   "statistics of %s depend",
                   config->schedule, part, config->model.name);
}

/* Whether the model can be cut as the schedule has it, and the batch too. */
static enum el_status check_pipeline(struct el_train_config *config, const struct el_layout *layout)
{
    struct el_parts parts;
    enum el_status status = el_parts_open(config, layout, &parts);
    config->n_micro = parts.schedule.n_micro;
    if (status == EL_OK) status = check_order(config, &parts);
    el_parts_close(&parts);
    EL_TRY(status);
    if (config->global_batch % (layout->n[EL_AXIS_DATA] * config->n_micro) == 0) return EL_OK;
    if (layout->n[EL_AXIS_DATA] > 1)
        return el_fail(EL_ERR_INVALID,
                       "--micro %lld: a batch of %lld cannot be divided into that many equal parts in each of %d "
                       "copies of the model: change --batch",
                       (long long)config->n_micro, (long long)config->global_batch, layout->n[EL_AXIS_DATA]);
    return el_fail(EL_ERR_INVALID,
                   "--micro %lld: a batch of %lld cannot be divided into that many equal parts: change --batch",
                   (long long)config->n_micro, (long long)config->global_batch);
}

static enum el_status check_ranks(const struct el_train_config *config)
{
    if (!el_mode_takes(config->mode, "mesh") || config->mesh[EL_AXIS_DATA] == 0) return EL_OK;
    if (config->mesh[EL_AXIS_DATA] >= 1 && config->n_devices % config->mesh[EL_AXIS_DATA] == 0) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--mesh dp=%d: %d device%s cannot be divided evenly among that many",
                   config->mesh[EL_AXIS_DATA], config->n_devices, config->n_devices == 1 ? "" : "s");
}

/* What dp leaves without work the others wait for. */
static enum el_status check_chunks(const struct el_train_config *config, const struct el_layout *layout)
{
    if (el_mode_ops_find(config->mode)->info.loss == EL_LOSS_OF_BATCH) return EL_OK;
    for (int d = 0; d < layout->n_devices; d++)
        if (layout->devices[d].samples == 0)
            return el_fail(EL_ERR_INVALID,
                           "--batch %lld: cut evenly among the devices of a process, it leaves device %d without "
                           "samples: change --batch",
                           (long long)config->global_batch, d);
    return EL_OK;
}

static enum el_status check_output(const struct el_train_config *config, const struct el_layout *layout)
{
    if (config->output_device >= 0 && (config->output_device == 0 || config->output_device < layout->n[EL_AXIS_DATA]))
        return EL_OK;
    return el_fail(EL_ERR_INVALID, "--output-device %d: %d devices have a part of the batch; they are numbered from 0",
                   config->output_device, layout->n[EL_AXIS_DATA]);
}

/* Fixes are causes of plain dp's. */
static enum el_status check_fixes(const struct el_train_config *config)
{
    const char *other = config->output_device > 0  ? "--output-device"
                        : config->n_accumulate > 1 ? "--accumulate"
                                                   : NULL;
    if (!config->dp_fix || !other) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--dp-fix and %s do not go together: leave one of them out", other);
}

static enum el_status check_accumulate(const struct el_train_config *config, const struct el_layout *layout,
                                       int n_shares)
{
    int n = (int)config->n_accumulate;
    if (n < 1 || config->global_batch < (int64_t)n_shares * n)
        return el_fail(EL_ERR_INVALID,
                       "--accumulate %d: a batch of %lld is smaller than the number of micro-steps on all devices (%d)",
                       n, (long long)config->global_batch, n_shares * n);
    for (int k = 0; k < n && layout->n_workers == 1 && layout->devices[0].n_feeds == 1; k++) {
        int64_t batch = el_share_size(config->global_batch, n, k);
        if (el_layout_chunk(batch, layout->n_devices, layout->n[EL_AXIS_DATA] - 1) > 0) continue;
        return el_fail(
            EL_ERR_INVALID,
            "--accumulate %d: a micro-step of %lld samples, cut evenly among %d devices, leaves the last one "
            "without samples: change --batch",
            n, (long long)batch, layout->n_devices);
    }
    return EL_OK;
}

/* ---- batch norm ---- */

/* The first batch norm whose planes are of one pixel; -1: none. */
static int find_single_pixel(const struct el_graph *model)
{
    for (int n = 0; n < model->n_nodes; n++) {
        const struct el_shape *shape = &model->tensors[model->nodes[n].outputs[0]].shape;
        if (model->nodes[n].n_buffers > 0 && el_shape_count(shape) == shape->d[shape->n - 1]) return n;
    }
    return -1;
}

/* What goes forward by itself, and is one sample; empty: nothing is. */
static void find_single_sample(const struct el_train_config *config, const struct el_layout *layout, char *text,
                               size_t bytes)
{
    int n_ranks = layout->devices[0].n_feeds, n_micro = (int)config->n_accumulate;
    int n_pieces = el_layout_pieces(config, layout);
    *text = 0;
    for (int i = n_ranks * n_micro - 1; i >= 0; i--) {
        int64_t share = el_share_size(config->global_batch, n_ranks * n_micro, i);
        for (int c = 0; c < n_pieces; c++) {
            if (el_layout_chunk(share, n_pieces, c) != 1) continue;
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

/* One value per channel has no variance: PyTorch raises an error in the step, here it is known before. */
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
    if (!el_mode_ops_find(config->mode)) return el_fail(EL_ERR_INVALID, "--mode %s: no such mode", config->mode);
    if (config->n_devices < 1 || config->n_devices > EL_MEMBERS_MAX) {
        return el_fail(EL_ERR_INVALID, "--devices %d: must be between 1 and %d", config->n_devices, EL_MEMBERS_MAX);
    }
    if (config->global_batch < 1)
        return el_fail(EL_ERR_INVALID, "--batch %lld: must be at least 1", (long long)config->global_batch);
    struct el_layout layout;
    fill_in(config);
    EL_TRY(check_ranks(config));
    el_layout_of(config, 0, &layout);
    int n_shares = layout.n[EL_AXIS_STAGE] > 1 ? layout.n[EL_AXIS_DATA] : layout.n_devices;
    if (config->global_batch < n_shares)
        return el_fail(EL_ERR_INVALID, "--batch %lld is smaller than the %d %s: give at least %d, or fewer devices",
                       (long long)config->global_batch, n_shares,
                       layout.n[EL_AXIS_STAGE] > 1 ? "copies of the model" : "devices", n_shares);
    EL_TRY(check_chunks(config, &layout));
    EL_TRY(check_output(config, &layout));
    EL_TRY(check_fixes(config));
    EL_TRY(check_accumulate(config, &layout, n_shares));
    if (layout.cuts) EL_TRY(check_pipeline(config, &layout));
    EL_TRY(check_statistics(config, &layout));
    EL_TRY(check_graph(config));
    return check_numbers(config);
}
