/* Internal to the model files. */
#pragma once

#include "runtime/models/models.h"

struct el_model {
    struct el_model_info info;
    /* Adds inputs, parameters and nodes, the classifier last; returns the output tensor and the loss. `config` is
     * resolved. */
    int (*build)(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p);
};

/* A linear layer with torch's default initial weights. Returns its output. `across`: how pieces cut it. */
int el_layer_linear_across(struct el_graph *graph, const char *name, int input, int64_t inputs, int64_t outputs,
                           bool relu, enum el_across across);
int el_layer_linear(struct el_graph *graph, const char *name, int input, int64_t inputs, int64_t outputs, bool relu);
