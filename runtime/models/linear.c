/* linear: one layer, 10-10; squared error. The smallest thing that can be trained: what is left is the harness. */
#include "runtime/models/internal.h"

static void defaults(struct el_model_config *config)
{
    config->features = 10;
    config->n_hidden = 0;
    config->classes = 10;
}

static int build(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    int x = el_graph_input(graph, "features", EL_F32, &(struct el_shape){.n = 1, .d = {config->features}});
    *loss_p = EL_LOSS_MSE;
    return el_layer_linear(graph, "linear", x, config->features, config->classes, false);
}

const struct el_model el_model_linear = {.info = {.name = "linear",
                                                  .summary = "one layer, 10-10; squared error",
                                                  .input = EL_INPUT_FEATURES,
                                                  .takes = "features"},
                                         .defaults = defaults,
                                         .build = build};
