/* mlp: linear layers with ReLU between them, over features: all parameters are in matrices, so communication weighs
 * heavily. */
#include <stdio.h>

#include "runtime/models/internal.h"

static void defaults(struct el_model_config *config)
{
    if (!config->features) config->features = 1024;
    if (config->n_hidden < 0) {
        config->n_hidden = 2;
        config->hidden[0] = config->hidden[1] = 1024;
    }
}

static int build(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    int y = el_graph_input(graph, "features", EL_F32, &(struct el_shape){.n = 1, .d = {config->features}});
    int64_t width = config->features;
    for (int i = 0; i < config->n_hidden; i++) {
        char name[EL_GRAPH_NAME_BYTES];
        snprintf(name, sizeof name, "hidden%d", i + 1);
        y = el_layer_linear(graph, name, y, width, config->hidden[i], true);
        width = config->hidden[i];
    }
    *loss_p = EL_LOSS_CROSS_ENTROPY;
    return el_layer_linear(graph, "out", y, width, config->classes, false);
}

const struct el_model el_model_mlp = {.info = {.name = "mlp",
                                               .summary = "linear layers with ReLU over features",
                                               .input = EL_INPUT_FEATURES,
                                               .takes = "features hidden"},
                                      .defaults = defaults,
                                      .build = build};
