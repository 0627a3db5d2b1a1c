/* Models of linear layers over features. mlp: ReLU between them; all parameters are matrices, so that communication is
 * heavy. branch: mlp with a layer outside of the loss, whose parameters get no gradients (ddp: --find-unused). toy:
 * 10-10-5 with ReLU, of many tutorials; mse. linear: 10-10, mse; the harness's overhead. */
#include <stdio.h>

#include "runtime/models/internal.h"

/* Tensor parallelism: odd layers are cut by outputs; even ones by inputs, and sum. */
static enum el_across across(const struct el_graph *graph, int layer)
{
    if (!graph->n_pieces) return EL_ACROSS_NOT;
    return layer % 2 ? EL_ACROSS_INPUTS : EL_ACROSS_OUTPUTS;
}

/* The input "features" and the hidden layers with ReLU. Returns the last output; *width_p is its size. */
static int add_hidden(struct el_graph *graph, const struct el_model_config *config, int64_t *width_p)
{
    const struct el_model_values *hidden = el_model_values(config, "hidden");
    *width_p = el_model_size(config, "features");
    int y = el_graph_input(graph, "features", EL_F32, &(struct el_shape){.n = 1, .d = {*width_p}});
    for (int i = 0; i < hidden->n; i++) {
        char name[EL_GRAPH_NAME_BYTES];
        snprintf(name, sizeof name, "hidden%d", i + 1);
        y = el_layer_linear_across(graph, name, y, *width_p, hidden->v[i], true, across(graph, i));
        *width_p = hidden->v[i];
    }
    return y;
}

static const struct el_model_size sizes_of_mlp[] = {
    {"features", "input features", 1, 1 << 20, .initial = {1024}, .small = {12}},
    {"hidden", "sizes of the hidden layers, comma-separated, or none", 1, 1 << 20, .list = true,
     .initial = {1024, 1024}, .small = {12, 9, 24}},
    {.name = NULL},
};

static int build_mlp(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    int64_t width;
    int y = add_hidden(graph, config, &width), n = el_model_values(config, "hidden")->n;
    *loss_p = EL_LOSS_CROSS_ENTROPY;
    /* Classes are whole on each device: after an even number of layers the input is whole. */
    return el_layer_linear_across(graph, "out", y, width, config->classes, false,
                                  n % 2 ? across(graph, n) : EL_ACROSS_NOT);
}

const struct el_model el_model_mlp = {.info = {.name = "mlp",
                                               .summary = "linear layers with ReLU over features",
                                               .input = EL_INPUT_FEATURES,
                                               .sizes = sizes_of_mlp,
                                               .across = {"hidden"}},
                                      .build = build_mlp};

static const struct el_model_size sizes_of_branch[] = {
    {"features", "input features", 1, 1 << 20, .initial = {1024}, .small = {12}},
    {"hidden", "sizes of the hidden layers, comma-separated, or none", 1, 1 << 20, .list = true, .initial = {1024},
     .small = {11, 7}},
    {.name = NULL},
};

static const double SIDE_BOUND = 0.1;

static int build_branch(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    int64_t width, classes = config->classes;
    int y = add_hidden(graph, config, &width);
    el_graph_param(graph, "side.weight", &(struct el_shape){.n = 2, .d = {classes, width}}, el_uniform(SIDE_BOUND));
    el_graph_param(graph, "side.bias", &(struct el_shape){.n = 1, .d = {classes}}, el_uniform(SIDE_BOUND));
    *loss_p = EL_LOSS_CROSS_ENTROPY;
    return el_layer_linear(graph, "out", y, width, classes, false);
}

const struct el_model el_model_branch = {.info = {.name = "branch",
                                                  .summary = "mlp with a layer that no step uses: it gets no gradients",
                                                  .input = EL_INPUT_FEATURES,
                                                  .sizes = sizes_of_branch,
                                                  .whole = "a layer of it is never gone through"},
                                         .build = build_branch};

enum { FEATURES = 10, HIDDEN = 10, TOY_CLASSES = 5, LINEAR_CLASSES = 10 };

static const struct el_model_size sizes_of_toy[] = {
    {"features", "input features", FEATURES, FEATURES, .initial = {FEATURES}},
    {"hidden", "sizes of the hidden layers", HIDDEN, HIDDEN, .list = true, .initial = {HIDDEN}},
    {.name = NULL},
};

static int build_toy(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    (void)config;
    int x = el_graph_input(graph, "features", EL_F32, &(struct el_shape){.n = 1, .d = {FEATURES}});
    int h = el_layer_linear(graph, "net1", x, FEATURES, HIDDEN, true);
    *loss_p = EL_LOSS_MSE;
    return el_layer_linear(graph, "net2", h, HIDDEN, TOY_CLASSES, false);
}

const struct el_model el_model_toy = {.info = {.name = "toy",
                                               .summary = "10-10-5 with its ReLU, as in tutorials; squared error",
                                               .input = EL_INPUT_FEATURES,
                                               .sizes = sizes_of_toy,
                                               .whole = "it is too small",
                                               .classes = TOY_CLASSES},
                                      .build = build_toy};

static const struct el_model_size sizes_of_linear[] = {
    {"features", "input features", FEATURES, FEATURES, .initial = {FEATURES}},
    {.name = NULL},
};

static int build_linear(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    (void)config;
    int x = el_graph_input(graph, "features", EL_F32, &(struct el_shape){.n = 1, .d = {FEATURES}});
    *loss_p = EL_LOSS_MSE;
    return el_layer_linear(graph, "linear", x, FEATURES, LINEAR_CLASSES, false);
}

const struct el_model el_model_linear = {.info = {.name = "linear",
                                                  .summary = "one layer, 10-10; squared error",
                                                  .input = EL_INPUT_FEATURES,
                                                  .sizes = sizes_of_linear,
                                                  .whole = "it has one layer",
                                                  .classes = LINEAR_CLASSES},
                                         .build = build_linear};
