/* branch: mlp with a layer that no step goes through, as the auxiliary classifier of a model whose loss leaves it out.
 * Its parameters get no gradients, for which ddp has to be told to look (--find-unused). */
#include "runtime/models/internal.h"

static const struct el_model_size sizes[] = {
    {"features", "input features", 1, 1 << 20, .initial = {1024}, .small = {12}},
    {"hidden", "sizes of the hidden layers, comma-separated, or none", 1, 1 << 20, .list = true, .initial = {1024},
     .small = {11, 7}},
    {.name = NULL},
};

static const double SIDE_BOUND = 0.1; /* of weights that nobody reads */

static int build(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    int64_t width, classes = config->classes;
    int y = el_layers_hidden(graph, config, &width);
    el_graph_param(graph, "side.weight", &(struct el_shape){.n = 2, .d = {classes, width}}, el_uniform(SIDE_BOUND));
    el_graph_param(graph, "side.bias", &(struct el_shape){.n = 1, .d = {classes}}, el_uniform(SIDE_BOUND));
    *loss_p = EL_LOSS_CROSS_ENTROPY;
    return el_layer_linear(graph, "out", y, width, classes, false);
}

const struct el_model el_model_branch = {.info = {.name = "branch",
                                                  .summary = "mlp with a layer that no step uses: it gets no gradients",
                                                  .input = EL_INPUT_FEATURES,
                                                  .sizes = sizes},
                                         .build = build};
