/* A residual block in small: two convolutions whose second batch norm adds what the block began with. Gradients by
 * finite differences, memory by hand, running statistics, and cuts inside the block, which two values cross. */
#include "tests/test.h"

#include "tests/unit/graph_steps.h"

enum { SIDE = 4, CHANNELS = 2, CLASSES = 2, VALUES = STEP_BATCH * SIDE * SIDE * CHANNELS };

static int vector(struct el_graph *graph, const char *name, int64_t n, double value)
{
    return el_graph_param(graph, name, &(struct el_shape){.n = 1, .d = {n}}, el_constant(value));
}

/* conv and its batch norm, which adds tensor `residual` (-1: none). */
static int layer(struct el_graph *graph, const char *name, int x, int residual, bool relu)
{
    char text[8];
    struct el_shape shape = {.n = 4, .d = {CHANNELS, 3, 3, CHANNELS}}, statistics = {.n = 1, .d = {CHANNELS}};
    int w = el_graph_param(graph, name, &shape, el_normal(1));
    int y =
        el_graph_node(graph, &el_node_conv2d, name, &x, 1, &w, 1, &(struct el_node_attributes){.stride = 1, .pad = 1});
    snprintf(text, sizeof text, "%s.n", name);
    y = el_graph_node(graph, &el_node_batch_norm, text, (int[]){y, residual}, residual < 0 ? 1 : 2,
                      (int[]){vector(graph, "scale", CHANNELS, 1), vector(graph, "shift", CHANNELS, 0)}, 2,
                      &(struct el_node_attributes){.relu = relu});
    int mean = el_graph_buffer(graph, "mean", &statistics, el_constant(0));
    el_graph_node_buffers(graph, y, (int[]){mean, el_graph_buffer(graph, "variance", &statistics, el_constant(1))}, 2);
    return y;
}

/* An input and the stem, whose output is *h_p. */
static struct el_graph *begin(int *h_p)
{
    struct el_graph *graph;
    assert_int_equal(el_graph_create(&graph), EL_OK);
    int x = el_graph_input(graph, "x", EL_F32, &(struct el_shape){.n = 3, .d = {SIDE, SIDE, CHANNELS}});
    *h_p = layer(graph, "stem", x, -1, true);
    return graph;
}

/* Mean and classifier behind `y`. */
static struct el_graph *finish(struct el_graph *graph, int y)
{
    int mean = el_graph_node(graph, &el_node_mean_pool, "mean", &y, 1, NULL, 0, NULL);
    int w = el_graph_param(graph, "w", &(struct el_shape){.n = 2, .d = {CLASSES, CHANNELS}}, el_uniform(1));
    int out =
        el_graph_node(graph, &el_node_linear, "out", &mean, 1, (int[]){w, vector(graph, "bias", CLASSES, 0)}, 2, NULL);
    assert_int_equal(el_graph_finish(graph, out, EL_LOSS_CROSS_ENTROPY), EL_OK);
    return graph;
}

/* stem, then the block of a and b, mean, classifier: 8 nodes. */
static struct el_graph *block(bool relu)
{
    int h;
    struct el_graph *graph = begin(&h);
    return finish(graph, layer(graph, "b", layer(graph, "a", h, -1, true), h, relu));
}

/* The residual is first a downsampling's output, then the maximum of windows that overlap and have padding. */
static struct el_graph *pooled(void)
{
    int h;
    struct el_graph *graph = begin(&h);
    h = el_graph_node(graph, &el_node_max_pool, "max", &h, 1, NULL, 0,
                      &(struct el_node_attributes){.window = 3, .stride = 2, .pad = 1});
    int down = layer(graph, "down", h, -1, false);
    int y = layer(graph, "b", layer(graph, "a", h, -1, true), down, true);
    return finish(graph, layer(graph, "c", y, h, true));
}

static void gradients_are_those_of_differences(void **state)
{
    struct el_graph *graphs[] = {block(true), block(false), pooled()};
    for (int g = 0; g < 3; g++) {
        struct setting s;
        prepare(&s, graphs[g]);
        loss_of(&s, true);
        assert_int_equal(n_hooks, graphs[g]->n_params);
        check_gradients(&s, 1e-6);
        el_graph_destroy(graphs[g]);
    }
}

/* In values of an image. Forward leaves six: of each convolution and each batch norm, what their backwards read. The
 * peak is the block's last batch norm in backward: these, the gradient of its output, which becomes the residual's
 * without a copy, and that of its input; and mean and deviation of three norms. */
static void memory_is_as_counted_by_hand(void **state)
{
    struct setting s;
    prepare(&s, block(true));
    loss_of(&s, true);
    assert_int_equal(s.ledger.peak_by_tag[EL_TAG_ACTIVATION], (8 * VALUES + 3 * 2 * CHANNELS) * 8);
    assert_int_equal(s.ledger.peak_by_tag[EL_TAG_OUTPUT], STEP_BATCH * CLASSES * 8);
    el_graph_destroy(s.graph);
}

/* One step in training: a tenth of the batch's statistics and nine tenths of what was there, 0 and 0. In evaluation
 * they stay. */
static void training_moves_the_running_statistics(void **state)
{
    struct setting s;
    double mean[CHANNELS], variance[CHANNELS], again[CHANNELS];
    prepare(&s, block(true));
    loss_of(&s, false);
    el_device_read(s.buffers[0], mean, sizeof mean);
    el_device_read(s.buffers[1], variance, sizeof variance);
    for (int c = 0; c < CHANNELS; c++) assert_true(mean[c] != 0 && variance[c] > 0);
    loss_of(&s, false);
    el_device_read(s.buffers[0], again, sizeof again);
    for (int c = 0; c < CHANNELS; c++) assert_true(fabs(again[c] - 1.9 * mean[c]) < 1e-12);
    s.evaluates = true;
    loss_of(&s, false);
    el_device_read(s.buffers[0], mean, sizeof mean);
    assert_memory_equal(mean, again, sizeof mean);
    el_graph_destroy(s.graph);
}

/* Before any node but the first, and before two of them: the same bits, and each buffer has its place. Where both lie
 * inside the block two values cross each cut, of which one passes through. */
static void parts_cut_inside_the_block_compute_the_same(void **state)
{
    enum { CONV_A = 2, NORM_B = 5 };
    static const double zeros[CHANNELS];
    struct setting s;
    struct part parts[STEP_PARTS_MAX];
    double wanted[256], got[256], mean[CHANNELS], got_mean[CHANNELS];
    prepare(&s, block(true));
    double loss = loss_of(&s, true);
    read_grads(&s, wanted);
    el_device_read(s.buffers[4], mean, sizeof mean);
    for (int first = 1; first < s.graph->n_nodes; first++)
        for (int second = first; second < s.graph->n_nodes; second++)
            for (int parted = 0; parted < 2; parted++) {
                int n = cut(s.graph, 1u << first | 1u << second, parts);
                bool inside = second > CONV_A && second <= NORM_B;
                assert_int_equal(n, first == second ? 2 : 3);
                assert_int_equal(parts[n - 1].graph->n_inputs, inside ? 2 : 1);
                zero_grads(&s);
                for (int b = 0; b < s.graph->n_buffers; b++) el_device_write(s.buffers[b], zeros, sizeof zeros);
                assert_true(loss_by_parts(&s, parts, n, parted) == loss);
                read_grads(&s, got);
                el_device_read(s.buffers[4], got_mean, sizeof got_mean);
                assert_memory_equal(got, wanted, (size_t)el_graph_param_count(s.graph) * 8);
                assert_memory_equal(got_mean, mean, sizeof mean);
                for (int k = 0; k < n; k++) el_graph_destroy(parts[k].graph);
            }
    el_graph_destroy(s.graph);
}

static void parts_on_one_device_have_their_buffers_together(void **state)
{
    struct el_graph *model = block(true), *both;
    struct part parts[STEP_PARTS_MAX];
    assert_int_equal(cut(model, 1u << 2 | 1u << 4, parts), 3); /* stem; a; b and the rest */
    assert_int_equal(parts[1].graph->n_buffers, 2);
    assert_int_equal(parts[1].graph->buffers[0].origin, 2);
    assert_int_equal(el_graph_of_parts((const struct el_graph *[]){parts[0].graph, parts[2].graph}, 2, &both), EL_OK);
    assert_int_equal(both->n_buffers, 4);
    for (int b = 0; b < 4; b++) assert_int_equal(both->buffers[b].origin, b < 2 ? b : b + 2);
    assert_int_equal(both->nodes[3].n_buffers, 2);
    assert_int_equal(both->nodes[3].buffers[0], 2);
    el_graph_destroy(both);
    for (int k = 0; k < 3; k++) el_graph_destroy(parts[k].graph);
    el_graph_destroy(model);
}

RUN_TESTS(open_device, close_device, gradients_are_those_of_differences, memory_is_as_counted_by_hand,
          training_moves_the_running_statistics, parts_cut_inside_the_block_compute_the_same,
          parts_on_one_device_have_their_buffers_together)
