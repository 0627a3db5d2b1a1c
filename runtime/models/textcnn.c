/* textcnn: Kim's sentence classifier ("Convolutional Neural Networks for Sentence Classification", 2014). Most
 * parameters are in the embedding, so that DataParallel's imbalance is large. Initial embeddings are uniform in +-0.25,
 * as in Kim's code. */
#include <math.h>
#include <stdio.h>

#include "runtime/models/internal.h"

enum { WIDEST = 5 };
static const int64_t windows[] = {3, 4, WIDEST};
enum { N_WINDOWS = sizeof windows / sizeof windows[0] };

static const struct el_model_size sizes[] = {
    {"vocab", "vocabulary size", 3, 1 << 30, .initial = {20000}, .small = {60}},
    {"embed", "embedding dimension", 1, 65536, .initial = {128}, .small = {6}},
    {"seq", "sentence length in words", WIDEST, 65536, .initial = {64}, .small = {9}},
    {"filters", "filters per window size", 1, 65536, .initial = {100}, .small = {4}},
    {.name = NULL},
};

static int branch(const struct el_model_config *config, struct el_graph *graph, int x, int64_t window)
{
    char name[EL_GRAPH_NAME_BYTES];
    const int64_t embed = el_model_size(config, "embed"), filters = el_model_size(config, "filters");
    double bound = 1 / sqrt((double)(window * embed));
    snprintf(name, sizeof name, "conv%d.weight", (int)window);
    int w = el_graph_param(graph, name, &(struct el_shape){.n = 3, .d = {filters, window, embed}}, el_uniform(bound));
    snprintf(name, sizeof name, "conv%d.bias", (int)window);
    int bias = el_graph_param(graph, name, &(struct el_shape){.n = 1, .d = {filters}}, el_uniform(bound));
    snprintf(name, sizeof name, "conv%d", (int)window);
    int y = el_graph_node(graph, &el_node_conv1d, name, (int[]){x}, 1, (int[]){w, bias}, 2,
                          &(struct el_node_attributes){.relu = true});
    snprintf(name, sizeof name, "max%d", (int)window);
    return el_graph_node(graph, &el_node_max_time, name, (int[]){y}, 1, NULL, 0, NULL);
}

static int build(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    const int64_t filters = el_model_size(config, "filters"), embed = el_model_size(config, "embed");
    int ids = el_graph_input(graph, "ids", EL_I32, &(struct el_shape){.n = 1, .d = {el_model_size(config, "seq")}});
    int table =
        el_graph_param(graph, "embedding.weight",
                       &(struct el_shape){.n = 2, .d = {el_model_size(config, "vocab"), embed}}, el_uniform(0.25));
    int x = el_graph_node(graph, &el_node_embedding, "embedding", (int[]){ids}, 1, (int[]){table}, 1, NULL);
    int maxima[N_WINDOWS];
    for (int i = 0; i < N_WINDOWS; i++) maxima[i] = branch(config, graph, x, windows[i]);
    int y = el_graph_node(graph, &el_node_concat, "concat", maxima, N_WINDOWS, NULL, 0, NULL);
    if (config->dropout > 0) {
        y = el_graph_node(graph, &el_node_dropout, "dropout", (int[]){y}, 1, NULL, 0,
                          &(struct el_node_attributes){.rate = config->dropout});
    }
    y = el_layer_linear(graph, "fc", y, N_WINDOWS * filters, config->classes, false);
    *loss_p = EL_LOSS_CROSS_ENTROPY;
    return y;
}

const struct el_model el_model_textcnn = {
    .info = {.name = "textcnn",
             .summary = "Kim's sentence classifier: embedding, windows 3/4/5, maximum over time",
             .input = EL_INPUT_IDS,
             .sizes = sizes,
             .whole = "its layers are convolutions over all of a sentence",
             .any_length = true,
             .drops = true,
             .dropout = 0.5,
             .check = {.freeze = "embedding"}},
    .build = build};
