/* toy: 10-10-5 with its ReLU, the model of many tutorials on DDP and model parallelism; squared error against one-hot
 * labels. */
#include "runtime/models/internal.h"

static void defaults(struct el_model_config *config)
{
    config->features = 10;
    config->n_hidden = 1;
    config->hidden[0] = 10;
    config->classes = 5;
}

static int build(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    int x = el_graph_input(graph, "features", EL_F32, &(struct el_shape){.n = 1, .d = {config->features}});
    int h = el_layer_linear(graph, "net1", x, config->features, config->hidden[0], true);
    *loss_p = EL_LOSS_MSE;
    return el_layer_linear(graph, "net2", h, config->hidden[0], config->classes, false);
}

const struct el_model el_model_toy = {.info = {.name = "toy",
                                               .summary = "10-10-5 with its ReLU, as in tutorials; squared error",
                                               .input = EL_INPUT_FEATURES,
                                               .takes = "features"},
                                      .defaults = defaults,
                                      .build = build};
