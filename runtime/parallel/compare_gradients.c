/* The gate between modes: before any timing is believed, a mode's loss and gradients are held against the reference on
 * one device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/parallel/mode.h"

void el_train_reference_config(const struct el_train_config *config, struct el_train_config *reference_p)
{
    struct el_train_config reference = *config;
    struct el_layout layout;
    el_layout_of(config, 0, &layout);
    snprintf(reference.mode, sizeof reference.mode, "%s", el_mode_reference.info.name);
    reference.n_devices = layout.devices[0].n_feeds; /* shares whose means count alike */
    if (config->loss_in_replica) reference.n_devices = config->n_devices;
    reference.bucket_view = false;
    reference.keep_grads = true; /* they add up over the shares */
    *reference_p = reference;
}

enum el_status el_train_reference(const struct el_train_config *config, struct el_device *device,
                                  const struct el_dataset *dataset, double *loss_p, double **grads_p)
{
    struct el_train_config reference;
    el_train_reference_config(config, &reference);
    struct el_bootstrap *self;
    EL_TRY(el_bootstrap_open("self", &self));
    struct el_train_place place = {.devices = &device, .n_devices = 1, .bootstrap = self, .dataset = dataset};
    enum el_status status = el_train_gradients(&reference, &place, loss_p, grads_p);
    el_bootstrap_close(self);
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

enum el_status el_train_compare(const struct el_train_config *config, const double *grads, const double *reference,
                                double *worst_p, char *name, size_t name_bytes)
{
    struct el_graph *graph;
    EL_TRY(el_model_build(&config->model, &graph));
    int64_t at = 0;
    *worst_p = 0;
    snprintf(name, name_bytes, "%s", graph->params[0].name);
    for (int p = 0; p < graph->n_params; p++) {
        int64_t n = el_param_count(graph, p);
        double difference = relative_l2(grads + at, reference + at, n);
        if (!(difference <= *worst_p)) { /* a NaN counts as worst */
            *worst_p = difference;
            snprintf(name, name_bytes, "%s", graph->params[p].name);
        }
        at += n;
    }
    el_graph_destroy(graph);
    return EL_OK;
}
