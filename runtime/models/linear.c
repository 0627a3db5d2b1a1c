/* linear: one layer, 10-10; squared error. The smallest thing that can be trained: what is left is the harness. */
#include "runtime/models/internal.h"

enum { FEATURES = 10, CLASSES = 10 };

static const struct el_model_size sizes[] = {
    {"features", "input features", FEATURES, FEATURES, .initial = {FEATURES}},
    {.name = NULL},
};

static int build(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    (void)config;
    int x = el_graph_input(graph, "features", EL_F32, &(struct el_shape){.n = 1, .d = {FEATURES}});
    *loss_p = EL_LOSS_MSE;
    return el_layer_linear(graph, "linear", x, FEATURES, CLASSES, false);
}

const struct el_model el_model_linear = {.info = {.name = "linear",
                                                  .summary = "one layer, 10-10; squared error",
                                                  .input = EL_INPUT_FEATURES,
                                                  .sizes = sizes,
                                                  .classes = CLASSES},
                                         .build = build};
