#include "runtime/gate/gate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/modes/dp/fix.h"
#include "runtime/modes/mode.h"
#include "runtime/state/buffers.h"

void el_gate_reference_config(const struct el_train_config *config, struct el_train_config *reference_p)
{
    struct el_train_config reference = *config;
    struct el_layout layout;
    bool has_buffers = el_buffers_are_in(&config->model);
    el_layout_of(config, 0, &layout);
    el_mode_change(&reference, el_mode_reference.info.name);
    reference.n_devices = layout.n_feeds; /* shares with equally weighted means */
    reference.n_pieces = config->loss_in_replica || has_buffers ? el_layout_pieces(config, &layout) : 1;
    reference.pieces_in_order = config->n_micro > 1;
    reference.broadcast_buffers =
        (config->broadcast_buffers || config->dp_fix) && has_buffers && reference.n_devices > 1;
    reference.by_samples |= (config->dp_fix & EL_DP_FIX_INPUTS) && !config->loss_in_replica;
    reference.dp_fix = 0;
    reference.zero = 0;
    reference.bucket_view = reference.device_graph = false;
    reference.loading = (struct el_loading){0}; /* loading does not change batches */
    reference.keep_grads = true;                /* gradients accumulate over shares */
    *reference_p = reference;
}

enum el_status el_gate_reference(const struct el_train_config *config, struct el_device *device,
                                 const struct el_dataset *dataset, double *loss_p, double **grads_p)
{
    struct el_train_config reference;
    el_gate_reference_config(config, &reference);
    struct el_bootstrap *self;
    EL_TRY(el_bootstrap_open("self", &self));
    struct el_train_place place = {.devices = &device, .n_devices = 1, .bootstrap = self, .dataset = dataset};
    enum el_status status = el_gate_gradients(&reference, &place, loss_p, grads_p);
    el_bootstrap_close(self);
    return status;
}

static enum el_status append_buffers(const struct el_train_config *config, const struct el_train_result *result,
                                     double **grads_p)
{
    size_t n = (size_t)result->param_bytes / el_dtype_bytes(el_config_stored(config)), more = (size_t)result->n_buffers;
    if (more == 0) return EL_OK;
    double *both = realloc(*grads_p, (n + more) * sizeof *both);
    if (!both) return el_fail_errno("%zu running statistics", more);
    memcpy(both + n, result->buffers, more * sizeof *both);
    *grads_p = both;
    return EL_OK;
}

enum el_status el_gate_gradients(const struct el_train_config *config, const struct el_train_place *place,
                                 double *loss_p, double **grads_p)
{
    struct el_train_config still = *config;
    still.lr = still.clip = 0;
    still.model.max_norm = 0;
    still.keep_grads = true;
    still.warmup = still.epochs = 0;
    still.min_time_s = 0;
    still.control = EL_CONTROL_NONE;
    still.steps = EL_GATE_STEPS;
    if (still.steps < el_mode_ops_find(config->mode)->rounds)
        return el_fail(EL_ERR_INTERNAL, "the gate takes too few steps");
    struct el_train_result result;
    EL_TRY(el_train_with_grads(&still, place, NULL, &result, grads_p));
    *loss_p = result.loss[EL_GATE_STEPS - 1];
    enum el_status status = append_buffers(config, &result, grads_p);
    el_train_result_free(&result);
    return status;
}

static double relative_l2(const double *x, const double *reference, int64_t n)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        difference += (x[i] - reference[i]) * (x[i] - reference[i]);
        norm += reference[i] * reference[i];
    }
    if (difference == 0) return 0;
    return norm > 0 ? sqrt(difference / norm) : INFINITY;
}

struct comparison {
    const double *grads, *reference;
    double worst;
    char *name;
    size_t name_bytes;
};

static void compare(struct comparison *c, const struct el_param *array, int copy)
{
    int64_t n = el_shape_count(&array->shape);
    double difference = relative_l2(c->grads, c->reference, n);
    if (!(difference <= c->worst)) { /* NaN is the worst */
        c->worst = difference;
        snprintf(c->name, c->name_bytes, copy ? "%s of rank %d" : "%s", array->name, copy);
    }
    c->grads += n;
    c->reference += n;
}

enum el_status el_gate_compare(const struct el_train_config *config, const double *grads, const double *reference,
                               double *worst_p, char *name, size_t name_bytes)
{
    struct el_graph *graph;
    struct el_layout layout;
    struct comparison c = {.grads = grads, .reference = reference, .name = name, .name_bytes = name_bytes};
    EL_TRY(el_model_build(&config->model, &graph));
    el_layout_of(config, 0, &layout);
    snprintf(name, name_bytes, "%s", graph->params[0].name);
    for (int p = 0; p < graph->n_params; p++) compare(&c, &graph->params[p], 0);
    for (int copy = 0; copy < el_layout_copies(&layout); copy++)
        for (int b = 0; b < graph->n_buffers; b++) compare(&c, &graph->buffers[b], copy);
    el_graph_destroy(graph);
    *worst_p = c.worst;
    return EL_OK;
}

struct el_gate_limits el_gate_limits(const struct el_train_config *config, enum el_gate_kernels kernels)
{
    const struct el_model_check *check = &el_model_find(config->model.name)->check;
    if (config->model.precision != EL_PRECISION_FULL || el_dtype_bytes(el_config_reduced(config)) == 2)
        return (struct el_gate_limits){.loss = 1e-2, .gradient = 0.2};
    if (kernels == EL_GATE_SAME) return (struct el_gate_limits){.loss = 1e-6, .gradient = EL_GATE_GRADIENT};
    const double loss = kernels == EL_GATE_CPU ? 1e-6 : kernels == EL_GATE_GPU ? 1e-5 : 1e-3;
    const bool switches = kernels == EL_GATE_TF32 || (kernels == EL_GATE_GPU && check->f64_gradients);
    return (struct el_gate_limits){.loss = fmax(loss, check->loss),
                                   .gradient = switches ? EL_GATE_SWITCHED : EL_GATE_GRADIENT};
}
