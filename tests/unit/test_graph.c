/* The graph's contract: a tensor with several consumers accumulates its gradient, a parameter used twice too, and its
 * hook fires once, after its last use; checked in f64 by finite differences through whole passes. And parts of a graph:
 * wherever it is cut, the same bits. */
#include "tests/test.h"

#include "tests/unit/graph_steps.h"

enum { WIDTH = 4, CLASSES = 2 };

static int linear(struct el_graph *graph, const char *name, int input, int w, int bias, bool relu)
{
    return el_graph_node(graph, &el_node_linear, name, (int[]){input}, 1, (int[]){w, bias}, 2,
                         &(struct el_node_attributes){.relu = relu});
}

static int param(struct el_graph *graph, const char *name, int64_t rows, int64_t columns)
{
    struct el_shape shape = {.n = columns ? 2 : 1, .d = {rows, columns}};
    return el_graph_param(graph, name, &shape, el_uniform(1));
}

/* x -> h; h feeds two linear nodes that share one weight, a dropout, and a concat of all three: a diamond with a shared
 * parameter. */
static struct el_graph *diamond(void)
{
    struct el_graph *graph;
    assert_int_equal(el_graph_create(&graph), EL_OK);
    int x = el_graph_input(graph, "x", EL_F32, &(struct el_shape){.n = 1, .d = {WIDTH}});
    int w0 = param(graph, "w0", WIDTH, WIDTH), b0 = param(graph, "b0", WIDTH, 0);
    int shared = param(graph, "shared", WIDTH, WIDTH), bias = param(graph, "bias", WIDTH, 0);
    int w1 = param(graph, "w1", CLASSES, 3 * WIDTH), b1 = param(graph, "b1", CLASSES, 0);
    int h = linear(graph, "h", x, w0, b0, true);
    int left = linear(graph, "left", h, shared, bias, true), right = linear(graph, "right", left, shared, bias, false);
    int side = el_graph_node(graph, &el_node_dropout, "side", (int[]){h}, 1, NULL, 0,
                             &(struct el_node_attributes){.rate = 0.3});
    int all = el_graph_node(graph, &el_node_concat, "all", (int[]){left, right, side}, 3, NULL, 0, NULL);
    int out = linear(graph, "out", all, w1, b1, false);
    assert_int_equal(el_graph_finish(graph, out, EL_LOSS_CROSS_ENTROPY), EL_OK);
    return graph;
}

static void gradients_accumulate_over_consumers_and_uses(void **state)
{
    /* out; shared only when `left`, its first use, is through; h; of a linear node the bias first */
    static const int wanted[] = {5, 4, 3, 2, 1, 0};
    struct setting s;
    prepare(&s, diamond());
    loss_of(&s, true);
    assert_int_equal(n_hooks, 6);
    assert_memory_equal(hooks, wanted, sizeof wanted);
    check_gradients(&s, 1e-7);
    el_graph_destroy(s.graph);
}

/* What was there counts for nothing, and the second use of a parameter adds to the first one's. */
static void gradients_are_written_over_what_was_there(void **state)
{
    struct setting s;
    double wanted[256], got[256];
    prepare(&s, diamond());
    loss_of(&s, true);
    read_grads(&s, wanted);
    s.overwrite = true;
    for (int again = 0; again < 2; again++) loss_of(&s, true); /* the second time over the first one's */
    read_grads(&s, got);
    for (int64_t i = 0; i < el_graph_param_count(s.graph); i++) assert_true(fabs(got[i] - wanted[i]) < 1e-12);
    el_graph_destroy(s.graph);
}

static void parts_compute_what_the_model_does(void **state)
{
    enum { BETWEEN_USES = 1 << 2, BEFORE_LAST = 1 << 5 };
    struct setting s;
    struct part parts[STEP_PARTS_MAX];
    double wanted[256], got[256];
    int n_cuts = 0;
    prepare(&s, diamond());
    double loss = loss_of(&s, true);
    read_grads(&s, wanted);
    for (unsigned mask = 0; mask <= BEFORE_LAST * 2 - 1; mask += 2) {
        int n = cut(s.graph, mask, parts);
        bool copied = false; /* a part that uses a parameter of an earlier one has a copy, and says so */
        for (int k = 0; k < n; k++)
            for (int p = 0; p < parts[k].graph->n_params; p++) copied |= parts[k].graph->params[p].is_copy;
        assert_true(n > 0 && copied == ((mask & BETWEEN_USES) != 0));
        for (int parted = 0; parted < 2 && n > 0; parted++) {
            zero_grads(&s);
            assert_true(loss_by_parts(&s, parts, n, parted) == loss);
            read_grads(&s, got);
            assert_memory_equal(got, wanted, (size_t)el_graph_param_count(s.graph) * 8);
        }
        for (int k = 0; k < n; k++) el_graph_destroy(parts[k].graph);
        n_cuts += n > 0;
    }
    assert_int_equal(n_cuts, 32);
    el_graph_destroy(s.graph);
}

/* Of h, both uses of the shared weight with their dropout and concat, and out: the first and the last. */
static void parts_on_one_device_have_their_parameters_together(void **state)
{
    static const char *const params[] = {"w0", "b0", "w1", "b1"}, *const nodes[] = {"h", "out"};
    struct el_graph *model = diamond(), *both;
    struct part parts[STEP_PARTS_MAX];
    assert_int_equal(cut(model, 1 << 1 | 1 << 5, parts), 3);
    assert_int_equal(el_graph_of_parts((const struct el_graph *[]){parts[0].graph, parts[2].graph}, 2, &both), EL_OK);
    assert_int_equal(both->n_params, 4);
    assert_int_equal(both->n_nodes, 2);
    assert_int_equal(both->loss, model->loss);
    for (int p = 0; p < 4; p++) {
        assert_string_equal(both->params[p].name, params[p]);
        assert_true(el_graph_uses_param(both, p));
    }
    for (int n = 0; n < 2; n++) {
        assert_string_equal(both->nodes[n].name, nodes[n]);
        assert_string_equal(both->params[both->nodes[n].params[0]].name, params[2 * n]);
    }
    el_graph_destroy(both);
    for (int k = 0; k < 3; k++) el_graph_destroy(parts[k].graph);
    el_graph_destroy(model);
}

/* 300 layers, 600 parameters: by a whole pass, and by three parts. */
static void a_graph_has_as_many_layers_as_are_put_in(void **state)
{
    enum { LAYERS = 300, VALUES = LAYERS * (WIDTH + 1) * WIDTH };
    static struct setting s;
    static struct part parts[STEP_PARTS_MAX];
    static double wanted[VALUES], got[VALUES];
    struct el_graph *graph;
    assert_int_equal(el_graph_create(&graph), EL_OK);
    int x = el_graph_input(graph, "x", EL_F32, &(struct el_shape){.n = 1, .d = {WIDTH}});
    for (int i = 0; i < LAYERS; i++)
        x = linear(graph, "layer", x, param(graph, "w", WIDTH, WIDTH), param(graph, "b", WIDTH, 0), i % 2);
    assert_int_equal(el_graph_finish(graph, x, EL_LOSS_MSE), EL_OK);
    prepare(&s, graph);
    double loss = loss_of(&s, true);
    assert_int_equal(n_hooks, 2 * LAYERS);
    read_grads(&s, wanted);
    for (int k = 0; k < 3; k++)
        assert_int_equal(el_graph_part(graph, k * LAYERS / 3, LAYERS / 3, &parts[k].graph), EL_OK);
    zero_grads(&s);
    assert_true(loss_by_parts(&s, parts, 3, false) == loss);
    read_grads(&s, got);
    assert_memory_equal(got, wanted, sizeof wanted);
    for (int k = 0; k < 3; k++) el_graph_destroy(parts[k].graph);
    el_graph_destroy(graph);
}

static void a_cut_that_cannot_be_is_named(void **state)
{
    struct el_graph *model = diamond(), *part;
    assert_int_equal(el_graph_part(model, 4, 3, &part), EL_ERR_INVALID);
    assert_string_equal(el_error_message(), "no nodes 4 to 6 in a model of 6");
    el_graph_destroy(model);
}

RUN_TESTS(open_device, close_device, gradients_accumulate_over_consumers_and_uses,
          gradients_are_written_over_what_was_there, parts_compute_what_the_model_does,
          parts_on_one_device_have_their_parameters_together, a_graph_has_as_many_layers_as_are_put_in,
          a_cut_that_cannot_be_is_named)
