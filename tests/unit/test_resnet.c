/* The residual networks are torchvision's: numbers of parameters, names and their order, shapes, initial values. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/models/models.h"
#include "runtime/state/shard.h"

static struct el_graph *build(const char *name, int64_t image, int64_t width, int64_t classes)
{
    struct el_model_config config = {.classes = classes, .dropout = -1};
    struct el_graph *graph;
    snprintf(config.name, sizeof config.name, "%s", name);
    el_model_set(&config, "image", &image, 1);
    el_model_set(&config, "width", &width, 1);
    assert_int_equal(el_model_resolve(&config), EL_OK);
    if (el_model_build(&config, &graph) != EL_OK) fail_msg("%s", el_error_message());
    return graph;
}

/* torchvision.models.resnet18() and resnet50() say so: sum(p.numel()), len(list(parameters())), buffers without
 * num_batches_tracked. */
static void they_have_as_many_parameters(void **state)
{
    static const struct {
        const char *name;
        int64_t count;
        int params, buffers;
    } wanted[] = {{"resnet18", 11689512, 62, 40}, {"resnet50", 25557032, 161, 106}};
    for (int m = 0; m < 2; m++) {
        struct el_graph *graph = build(wanted[m].name, 224, 64, 1000);
        assert_int_equal(el_graph_param_count(graph), wanted[m].count);
        assert_int_equal(graph->n_params, wanted[m].params);
        assert_int_equal(graph->n_buffers, wanted[m].buffers);
        assert_int_equal(graph->classes, 1000);
        assert_int_equal(graph->labels, 1);
        el_graph_destroy(graph);
    }
}

static int find(const struct el_param *arrays, int n, const char *name)
{
    for (int a = 0; a < n; a++)
        if (strcmp(arrays[a].name, name) == 0) return a;
    fail_msg("no '%s'", name);
    return -1;
}

static void check_shape(const struct el_graph *graph, const char *param, int64_t f, int64_t k, int64_t c)
{
    const struct el_shape *shape = &graph->params[find(graph->params, graph->n_params, param)].shape;
    assert_int_equal(shape->n, 4);
    assert_int_equal(shape->d[0], f);
    assert_int_equal(shape->d[1], k);
    assert_int_equal(shape->d[2], k);
    assert_int_equal(shape->d[3], c);
}

static const struct el_tensor *output_of(const struct el_graph *graph, const char *node)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (strcmp(graph->nodes[n].name, node) == 0) return &graph->tensors[graph->nodes[n].outputs[0]];
    fail_msg("no node '%s'", node);
    return NULL;
}

/* Names of a block in the order of state_dict(), its downsampling last. Sizes of version 1.5: a block's first
 * convolution keeps the image, its 3 x 3 halves it. */
static void names_order_and_shapes_are_torchvisions(void **state)
{
    static const char *const block[] = {
        "layer1.0.conv1.weight",        "layer1.0.bn1.weight",          "layer1.0.bn1.bias",
        "layer1.0.conv2.weight",        "layer1.0.bn2.weight",          "layer1.0.bn2.bias",
        "layer1.0.conv3.weight",        "layer1.0.bn3.weight",          "layer1.0.bn3.bias",
        "layer1.0.downsample.0.weight", "layer1.0.downsample.1.weight", "layer1.0.downsample.1.bias",
        "layer1.1.conv1.weight"};
    struct el_graph *graph = build("resnet50", 224, 64, 1000);
    assert_string_equal(graph->params[0].name, "conv1.weight");
    assert_string_equal(graph->params[1].name, "bn1.weight");
    assert_string_equal(graph->params[2].name, "bn1.bias");
    for (int i = 0; i < 13; i++) assert_string_equal(graph->params[3 + i].name, block[i]);
    assert_string_equal(graph->params[159].name, "fc.weight");
    assert_string_equal(graph->params[160].name, "fc.bias");
    assert_string_equal(graph->buffers[0].name, "bn1.running_mean");
    assert_string_equal(graph->buffers[105].name, "layer4.2.bn3.running_var");
    find(graph->buffers, graph->n_buffers, "layer1.0.downsample.1.running_mean");
    check_shape(graph, "conv1.weight", 64, 7, 3);
    check_shape(graph, "layer2.0.conv1.weight", 128, 1, 256);
    check_shape(graph, "layer2.0.conv2.weight", 128, 3, 128);
    check_shape(graph, "layer4.0.downsample.0.weight", 2048, 1, 1024);
    assert_int_equal(output_of(graph, "maxpool")->shape.d[0], 56);
    assert_int_equal(output_of(graph, "layer2.0.conv1")->shape.d[0], 56);
    assert_int_equal(output_of(graph, "layer2.0.conv2")->shape.d[0], 28);
    assert_int_equal(output_of(graph, "layer4.2.bn3")->shape.d[0], 7);
    el_graph_destroy(graph);
    graph = build("resnet18", 8, 8, 10); /* the smallest images still have a place left */
    assert_int_equal(output_of(graph, "layer4.1.bn2")->shape.d[0], 1);
    assert_int_equal(output_of(graph, "layer4.1.bn2")->shape.d[2], 64);
    el_graph_destroy(graph);
}

static const struct el_graph *watched;
static const char *ready[64];
static int n_ready;

static void note_ready(void *context, int param)
{
    (void)context;
    ready[n_ready++] = watched->params[param].name;
}

/* Issues a pass on a simulated device; *ledger_p is the step's. */
static void issue_pass(const struct el_graph *graph, int64_t batch, bool backward, struct el_ledger *ledger_p)
{
    struct el_device_spec spec = {.backend = "sim"};
    struct el_device *device;
    struct el_program *program;
    struct el_pass *pass;
    size_t n = (size_t)(graph->n_params + graph->n_buffers);
    struct el_view *views = calloc(2 * n, sizeof *views), input = {0}, output;
    assert_non_null(views);
    assert_int_equal(el_device_open(&spec, &device), EL_OK);
    struct el_pass_spec how = {.graph = graph,
                               .device = device,
                               .batch = batch,
                               .training = true,
                               .params = views,
                               .buffers = views,
                               .grads = views + n,
                               .grad_ready = note_ready};
    watched = graph;
    n_ready = 0;
    assert_int_equal(el_program_create(&program), EL_OK);
    assert_int_equal(el_pass_open(program, &how, &pass), EL_OK);
    el_pass_forward(pass, &input, &output);
    if (backward) el_pass_backward(pass, &output, NULL);
    el_pass_close(pass);
    assert_int_equal(el_program_end(program), EL_OK);
    *ledger_p = *el_program_ledger(program, device, NULL);
    el_program_destroy(program);
    el_device_close(device);
    free(views);
}

/* What register_post_accumulate_grad_hook tells of torchvision's resnet18 (torch 2.15), which ddp's buckets go by. One
 * thing differs: in a block with a downsampling torchvision's gradients of the last batch norm come behind those of the
 * downsampling, which here need that norm's kernel. */
static void gradients_become_ready_in_pytorchs_order(void **state)
{
    static const char *const wanted[] = {"fc.bias",
                                         "fc.weight",
                                         "layer4.1.bn2.weight",
                                         "layer4.1.bn2.bias",
                                         "layer4.1.conv2.weight",
                                         "layer4.1.bn1.weight",
                                         "layer4.1.bn1.bias",
                                         "layer4.1.conv1.weight",
                                         "layer4.0.bn2.weight", /* torchvision's: behind the next three */
                                         "layer4.0.bn2.bias",
                                         "layer4.0.downsample.1.weight",
                                         "layer4.0.downsample.1.bias",
                                         "layer4.0.downsample.0.weight",
                                         "layer4.0.conv2.weight",
                                         "layer4.0.bn1.weight",
                                         "layer4.0.bn1.bias",
                                         "layer4.0.conv1.weight",
                                         "layer3.1.bn2.weight"};
    struct el_graph *graph = build("resnet18", 16, 8, 10);
    struct el_ledger ledger;
    issue_pass(graph, 4, true, &ledger);
    assert_int_equal(n_ready, graph->n_params);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) assert_string_equal(ready[i], wanted[i]);
    el_graph_destroy(graph);
}

/* What torchvision's models save for backward at 64 x 64, batch 4, ten classes (torch 2.15, saved_tensors_hooks: each
 * storage once, without parameters, buffers and images), and the places of maxima, which are int64 there. */
static void forward_leaves_what_torchvisions_leaves(void **state)
{
    static const struct {
        const char *name;
        size_t saved, places;
    } wanted[] = {{"resnet18", 6567424, 524288}, {"resnet50", 27573760, 524288}};
    for (int m = 0; m < 2; m++) {
        struct el_graph *graph = build(wanted[m].name, 64, 64, 10);
        struct el_ledger ledger;
        issue_pass(graph, 4, false, &ledger);
        assert_int_equal(ledger.peak_by_tag[EL_TAG_ACTIVATION], wanted[m].saved + wanted[m].places / 2);
        el_graph_destroy(graph);
    }
}

/* The shard's values of one array, as doubles; to be freed. */
static double *read_values(const struct el_shard *shard, struct el_view view, int64_t n)
{
    size_t width = el_dtype_bytes(shard->config->dtype);
    double *values = malloc((size_t)n * sizeof *values);
    void *raw = malloc((size_t)n * width);
    assert_true(values && raw);
    assert_int_equal(el_device_read(view, raw, (size_t)n * width), EL_OK);
    for (int64_t i = 0; i < n; i++)
        values[i] = shard->config->dtype == EL_F64 ? ((const double *)raw)[i] : (double)((const float *)raw)[i];
    free(raw);
    return values;
}

/* Mean and deviation within four of their standard errors, and kaiming's deviation: sqrt(2 / (f k k)). */
static void check_normal(const double *values, int64_t n, double deviation)
{
    double sum = 0, squares = 0, error = deviation / sqrt((double)n);
    for (int64_t i = 0; i < n; i++) {
        sum += values[i];
        squares += values[i] * values[i];
    }
    assert_true(fabs(sum / (double)n) < 4 * error);
    assert_true(fabs(sqrt(squares / (double)n) - deviation) < 4 * error / sqrt(2));
}

static void check_constant(const double *values, int64_t n, double wanted)
{
    for (int64_t i = 0; i < n; i++) assert_true(values[i] == wanted);
}

static void check_initial(const struct el_shard *shard, double **params)
{
    const struct el_graph *graph = shard->graph;
    for (int p = 0; p < graph->n_params; p++) {
        const struct el_shape *shape = &graph->params[p].shape;
        int64_t n = el_shape_count(shape);
        params[p] = read_values(shard, shard->params[p], n);
        if (shape->n == 4) check_normal(params[p], n, sqrt(2.0 / (double)(shape->d[0] * shape->d[1] * shape->d[2])));
        if (shape->n == 1 && p < graph->n_params - 2)
            check_constant(params[p], n, strstr(graph->params[p].name, "weight") ? 1 : 0);
    }
    for (int b = 0; b < graph->n_buffers; b++) {
        double *values = read_values(shard, shard->buffers[b], graph->buffers[b].shape.d[0]);
        check_constant(values, graph->buffers[b].shape.d[0], b % 2);
        free(values);
    }
}

static void initial_values_are_torchvisions_and_the_same_in_both_types(void **state)
{
    struct el_graph *graph = build("resnet18", 16, 8, 10);
    double **params[2];
    for (int t = 0; t < 2; t++) {
        struct el_train_config config = {.dtype = t ? EL_F64 : EL_F32, .seed = 3, .n_accumulate = 1};
        struct el_device_spec spec = {.backend = "cpu", .kernels = el_kernels_reference()};
        struct el_device *device;
        struct el_shard shard;
        params[t] = calloc((size_t)graph->n_params, sizeof *params[t]);
        assert_non_null(params[t]);
        assert_int_equal(el_device_open(&spec, &device), EL_OK);
        const struct el_shard_spec owner = {.config = &config, .graph = graph, .device = device, .owns = true};
        assert_int_equal(el_shard_open(&shard, &owner), EL_OK);
        check_initial(&shard, params[t]);
        el_shard_close(&shard);
        el_device_close(device);
    }
    for (int p = 0; p < graph->n_params; p++) {
        assert_memory_equal(params[0][p], params[1][p], (size_t)el_param_count(graph, p) * sizeof(double));
        free(params[0][p]);
        free(params[1][p]);
    }
    free(params[0]);
    free(params[1]);
    el_graph_destroy(graph);
}

RUN_TESTS(NULL, NULL, they_have_as_many_parameters, names_order_and_shapes_are_torchvisions,
          gradients_become_ready_in_pytorchs_order, forward_leaves_what_torchvisions_leaves,
          initial_values_are_torchvisions_and_the_same_in_both_types)
