/* mlp: linear layers with ReLU between them, over features: all parameters are in matrices, so communication weighs
 * heavily. */
#include "runtime/models/internal.h"

static const struct el_model_size sizes[] = {
    {"features", "input features", 1, 1 << 20, .initial = {1024}, .small = {12}},
    {"hidden", "sizes of the hidden layers, comma-separated, or none", 1, 1 << 20, .list = true,
     .initial = {1024, 1024}, .small = {11, 9, 7}},
    {.name = NULL},
};

static int build(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    int64_t width;
    int y = el_layers_hidden(graph, config, &width);
    *loss_p = EL_LOSS_CROSS_ENTROPY;
    return el_layer_linear(graph, "out", y, width, config->classes, false);
}

const struct el_model el_model_mlp = {.info = {.name = "mlp",
                                               .summary = "linear layers with ReLU over features",
                                               .input = EL_INPUT_FEATURES,
                                               .sizes = sizes},
                                      .build = build};
