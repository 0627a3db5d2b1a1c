/* What the model files share. Nobody else includes it. */
#pragma once

#include "runtime/models/models.h"

/* One model: its row, and its graph. */
struct el_model {
    struct el_model_info info;
    /* Adds inputs, parameters and nodes, the classifier last; returns the output tensor and the loss. `config` is
     * resolved: every size of the row has values in their range. */
    int (*build)(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p);
};

/* A fully connected layer with torch's default initial weights, uniform within 1/sqrt(inputs). Returns its output.
 * `across`: how pieces of the model have it. */
int el_layer_linear_across(struct el_graph *graph, const char *name, int input, int64_t inputs, int64_t outputs,
                           bool relu, enum el_across across);
/* The same, whole in every piece. */
int el_layer_linear(struct el_graph *graph, const char *name, int input, int64_t inputs, int64_t outputs, bool relu);
