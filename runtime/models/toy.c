/* toy: 10-10-5 with its ReLU, the model of many tutorials on DDP and model parallelism; squared error against one-hot
 * labels. */
#include "runtime/models/internal.h"

enum { FEATURES = 10, HIDDEN = 10, CLASSES = 5 };

static const struct el_model_size sizes[] = {
    {"features", "input features", FEATURES, FEATURES, .initial = {FEATURES}},
    {"hidden", "sizes of the hidden layers", HIDDEN, HIDDEN, .list = true, .initial = {HIDDEN}},
    {.name = NULL},
};

static int build(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    (void)config;
    int x = el_graph_input(graph, "features", EL_F32, &(struct el_shape){.n = 1, .d = {FEATURES}});
    int h = el_layer_linear(graph, "net1", x, FEATURES, HIDDEN, true);
    *loss_p = EL_LOSS_MSE;
    return el_layer_linear(graph, "net2", h, HIDDEN, CLASSES, false);
}

const struct el_model el_model_toy = {.info = {.name = "toy",
                                               .summary = "10-10-5 with its ReLU, as in tutorials; squared error",
                                               .input = EL_INPUT_FEATURES,
                                               .sizes = sizes,
                                               .classes = CLASSES},
                                      .build = build};
