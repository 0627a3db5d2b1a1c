/* resnet18 and resnet50 (He et al., "Deep Residual Learning for Image Recognition", 2015) with torchvision's names,
 * order and initial values; resnet50 has the stride in a block's 3 x 3 convolution (version 1.5). A batch norm follows
 * each convolution and rectifies; a block's last one adds the residual first. Images are NHWC. */
#include <math.h>
#include <stdio.h>

#include "runtime/models/internal.h"

enum { STAGES = 4, WIDEST_BLOCK = 3 };

static const struct el_model_size sizes[] = {
    {"image", "height and width of an image", 8, 4096, .initial = {224}, .small = {16}},
    {"width", "channels of the first stage", 1, 4096, .initial = {64}, .small = {4}},
    {.name = NULL},
};

struct architecture {
    int blocks[STAGES];
    int n_convolutions;
    int64_t windows[WIDEST_BLOCK];
    int strided;   /* the one that halves the image at a stage's start */
    int expansion; /* a block's outputs / its stage's width */
};

static const struct architecture basic18 = {
    .blocks = {2, 2, 2, 2}, .n_convolutions = 2, .windows = {3, 3}, .strided = 0, .expansion = 1};
static const struct architecture bottleneck50 = {
    .blocks = {3, 4, 6, 3}, .n_convolutions = 3, .windows = {1, 3, 1}, .strided = 1, .expansion = 4};

struct layer {
    char convolution[EL_GRAPH_NAME_BYTES], norm[EL_GRAPH_NAME_BYTES];
    int64_t window, stride;
    int weights, scale, shift, statistics[2];
};

static int add_vector(struct el_graph *graph, const struct layer *layer, const char *name, int64_t n, double value,
                      bool is_buffer)
{
    char text[2 * EL_GRAPH_NAME_BYTES];
    snprintf(text, sizeof text, "%s.%s", layer->norm, name);
    return (is_buffer ? el_graph_buffer : el_graph_param)(graph, text, &(struct el_shape){.n = 1, .d = {n}},
                                                          el_constant(value));
}

/* Arrays are added before nodes: a block's downsampling arrays are last in torchvision's order but used before the
 * block's end. Convolutions: kaiming_normal, fan_out, for ReLU. */
static struct layer add_arrays(struct el_graph *graph, const char *prefix, const char *convolution, const char *norm,
                               int64_t inputs, int64_t outputs, int64_t window, int64_t stride)
{
    char text[2 * EL_GRAPH_NAME_BYTES];
    struct layer layer = {.window = window, .stride = stride};
    struct el_shape shape = {.n = 4, .d = {outputs, window, window, inputs}};
    snprintf(layer.convolution, sizeof layer.convolution, "%s%s", prefix, convolution);
    snprintf(layer.norm, sizeof layer.norm, "%s%s", prefix, norm);
    snprintf(text, sizeof text, "%s.weight", layer.convolution);
    layer.weights = el_graph_param(graph, text, &shape, el_normal(sqrt(2.0 / (double)(outputs * window * window))));
    layer.scale = add_vector(graph, &layer, "weight", outputs, 1, false);
    layer.shift = add_vector(graph, &layer, "bias", outputs, 0, false);
    layer.statistics[0] = add_vector(graph, &layer, "running_mean", outputs, 0, true);
    layer.statistics[1] = add_vector(graph, &layer, "running_var", outputs, 1, true);
    return layer;
}

static int add_convolution(struct el_graph *graph, const struct layer *layer, int x)
{
    return el_graph_node(graph, &el_node_conv2d, layer->convolution, &x, 1, &layer->weights, 1,
                         &(struct el_node_attributes){.stride = layer->stride, .pad = layer->window / 2});
}

static int add_norm(struct el_graph *graph, const struct layer *layer, int x, int residual, bool relu)
{
    int y = el_graph_node(graph, &el_node_batch_norm, layer->norm, (int[]){x, residual}, residual < 0 ? 1 : 2,
                          (int[]){layer->scale, layer->shift}, 2, &(struct el_node_attributes){.relu = relu});
    el_graph_node_buffers(graph, y, layer->statistics, 2);
    return y;
}

static int add_nodes(struct el_graph *graph, const struct layer *layer, int x)
{
    return add_norm(graph, layer, add_convolution(graph, layer, x), -1, true);
}

/* A residual block in torchvision's order of nodes; *channels_p: of x, then of the returned output. */
static int add_block(struct el_graph *graph, const struct architecture *architecture, const char *prefix, int x,
                     int64_t width, int64_t stride, int64_t *channels_p)
{
    struct layer layers[WIDEST_BLOCK], downsample;
    int64_t inputs = *channels_p, outputs = width * architecture->expansion;
    int n = architecture->n_convolutions, residual = x;
    bool changes = stride > 1 || inputs != outputs;
    for (int i = 0; i < n; i++) {
        char convolution[16], norm[16];
        snprintf(convolution, sizeof convolution, "conv%d", i + 1);
        snprintf(norm, sizeof norm, "bn%d", i + 1);
        layers[i] = add_arrays(graph, prefix, convolution, norm, i ? width : inputs, i < n - 1 ? width : outputs,
                               architecture->windows[i], i == architecture->strided ? stride : 1);
    }
    if (changes) downsample = add_arrays(graph, prefix, "downsample.0", "downsample.1", inputs, outputs, 1, stride);
    int y = x;
    for (int i = 0; i < n - 1; i++) y = add_nodes(graph, &layers[i], y);
    y = add_convolution(graph, &layers[n - 1], y);
    if (changes) residual = add_norm(graph, &downsample, add_convolution(graph, &downsample, x), -1, false);
    *channels_p = outputs;
    return add_norm(graph, &layers[n - 1], y, residual, true);
}

static int build(const struct el_model_config *config, struct el_graph *graph, const struct architecture *architecture,
                 enum el_loss_kind *loss_p)
{
    int64_t image = el_model_size(config, "image"), width = el_model_size(config, "width"), channels = width;
    int x = el_graph_input(graph, "image", EL_F32, &(struct el_shape){.n = 3, .d = {image, image, 3}});
    struct layer stem = add_arrays(graph, "", "conv1", "bn1", 3, width, 7, 2);
    x = add_nodes(graph, &stem, x);
    x = el_graph_node(graph, &el_node_max_pool, "maxpool", &x, 1, NULL, 0,
                      &(struct el_node_attributes){.window = 3, .stride = 2, .pad = 1});
    for (int s = 0; s < STAGES; s++)
        for (int b = 0; b < architecture->blocks[s]; b++) {
            char prefix[EL_GRAPH_NAME_BYTES];
            snprintf(prefix, sizeof prefix, "layer%d.%d.", s + 1, b);
            x = add_block(graph, architecture, prefix, x, width << s, s > 0 && b == 0 ? 2 : 1, &channels);
        }
    x = el_graph_node(graph, &el_node_mean_pool, "avgpool", &x, 1, NULL, 0, NULL);
    *loss_p = EL_LOSS_CROSS_ENTROPY;
    return el_layer_linear(graph, "fc", x, channels, config->classes, false);
}

static int build18(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    return build(config, graph, &basic18, loss_p);
}

static int build50(const struct el_model_config *config, struct el_graph *graph, enum el_loss_kind *loss_p)
{
    return build(config, graph, &bottleneck50, loss_p);
}

const struct el_model el_model_resnet18 = {
    .info = {.name = "resnet18",
             .summary = "residual network of 18 layers over images, as torchvision's",
             .input = EL_INPUT_IMAGES,
             .sizes = sizes,
             .whole = "its layers are convolutions with batch norm",
             .check = {.steps = 3, .loss = 1e-4, .gradient = 1e-2, .f64_gradients = true}},
    .build = build18};

const struct el_model el_model_resnet50 = {
    .info = {.name = "resnet50",
             .summary = "residual network of 50 layers over images, as torchvision's (v1.5)",
             .input = EL_INPUT_IMAGES,
             .sizes = sizes,
             .whole = "its layers are convolutions with batch norm",
             .check = {.steps = 2, .slow = true, .loss = 1e-2, .f64_gradients = true}},
    .build = build50};
