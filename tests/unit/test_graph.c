/* The graph's contract: a tensor with several consumers accumulates its gradient, a parameter used twice too, and its
 * hook fires once, after its last use. Checked in f64 by finite differences through whole passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "runtime/graph/pass.h"

enum { BATCH = 3, WIDTH = 4, CLASSES = 2 };

static struct el_device *device;
static int hooks[EL_GRAPH_PARAMS_MAX], n_hooks;

static int open_device(void **state)
{
    (void)state;
    struct el_device_spec spec = {.backend = "cpu", .kernels = el_kernels_reference()};
    return el_device_open(&spec, &device) == EL_OK ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    el_device_close(device);
    return 0;
}

static int linear(struct el_graph *graph, const char *name, int input, int w, int bias, bool relu)
{
    return el_graph_node(graph, &el_node_linear, name, (int[]){input}, 1, (int[]){w, bias}, 2,
                         &(struct el_node_attributes){.relu = relu});
}

static int param(struct el_graph *graph, const char *name, int64_t rows, int64_t columns)
{
    struct el_shape shape = {.n = columns ? 2 : 1, .d = {rows, columns}};
    return el_graph_param(graph, name, &shape, 1);
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

static void note_hook(void *context, int p)
{
    (void)context;
    hooks[n_hooks++] = p;
}

struct setting {
    struct el_graph *graph;
    struct el_view params[EL_GRAPH_PARAMS_MAX], grads[EL_GRAPH_PARAMS_MAX];
    struct el_buffer *x, *labels, *loss, *dlogits;
};

static struct el_buffer *alloc(size_t bytes)
{
    struct el_buffer *buffer;
    assert_int_equal(el_device_alloc(device, EL_TAG_PARAM, bytes, "test", &buffer), EL_OK);
    return buffer;
}

static void prepare(struct setting *s)
{
    memset(s, 0, sizeof *s);
    s->graph = diamond();
    double values[3 * WIDTH * WIDTH];
    for (int p = 0; p < s->graph->n_params; p++) {
        int64_t n = el_param_count(s->graph, p);
        for (int64_t i = 0; i < n; i++) values[i] = sin((double)(7 * p + 3 * i + 1));
        s->params[p] = el_view_of(alloc((size_t)n * 8), 0);
        s->grads[p] = el_view_of(alloc((size_t)n * 8), 0);
        assert_int_equal(el_device_write(s->params[p], values, (size_t)n * 8), EL_OK);
    }
    s->x = alloc(BATCH * WIDTH * 8);
    for (int i = 0; i < BATCH * WIDTH; i++) values[i] = cos((double)(5 * i));
    assert_int_equal(el_device_write(el_view_of(s->x, 0), values, BATCH * WIDTH * 8), EL_OK);
    s->labels = alloc(BATCH * 4);
    assert_int_equal(el_device_write(el_view_of(s->labels, 0), (int32_t[]){0, 1, 1}, BATCH * 4), EL_OK);
    s->loss = alloc(8);
    s->dlogits = alloc(BATCH * CLASSES * 8);
}

/* The pass adds to gradients that it is given. */
static void zero_grads(const struct setting *s)
{
    static const double zeros[3 * WIDTH * WIDTH];
    for (int p = 0; p < s->graph->n_params; p++)
        assert_int_equal(el_device_write(s->grads[p], zeros, (size_t)el_param_count(s->graph, p) * 8), EL_OK);
}

static double loss_of(struct setting *s, bool backward)
{
    struct el_program *program;
    struct el_pass *pass;
    struct el_pass_spec spec = {.graph = s->graph,
                                .device = device,
                                .dtype = EL_F64,
                                .batch = BATCH,
                                .sample_stride = 1,
                                .seed = 11,
                                .training = true,
                                .params = s->params,
                                .grads = s->grads,
                                .grad_ready = note_hook};
    assert_int_equal(el_program_create(&program), EL_OK);
    assert_int_equal(el_pass_open(program, &spec, &pass), EL_OK);
    struct el_kernel_op loss = {.op = EL_OP_CROSS_ENTROPY,
                                .dtype = EL_F64,
                                .views = {el_pass_forward(pass, el_view_of(s->x, 0)), el_view_of(s->labels, 0),
                                          el_view_of(s->loss, 0), el_view_of(s->dlogits, 0)},
                                .args.d = {BATCH, CLASSES}};
    el_program_kernel(program, device, EL_STREAM_COMPUTE, &loss, NULL);
    if (backward) el_pass_backward(pass, el_view_of(s->dlogits, 0));
    el_pass_close(pass);
    if (el_program_end(program) != EL_OK || el_program_run(program, 2, NULL) != EL_OK)
        fail_msg("%s", el_error_message());
    const struct el_ledger *step = el_program_ledger(program, device, NULL);
    assert_int_equal(step->live_bytes, 0); /* everything that was allocated is freed */
    el_program_destroy(program);
    double value;
    assert_int_equal(el_device_read(el_view_of(s->loss, 0), &value, sizeof value), EL_OK);
    return value;
}

static double central_difference(struct setting *s, int p, int64_t i)
{
    const double h = 1e-6;
    struct el_view at = el_view_of(s->params[p].buffer, (size_t)i * 8);
    double value, changed;
    assert_int_equal(el_device_read(at, &value, 8), EL_OK);
    changed = value + h;
    el_device_write(at, &changed, 8);
    double up = loss_of(s, false);
    changed = value - h;
    el_device_write(at, &changed, 8);
    double down = loss_of(s, false);
    el_device_write(at, &value, 8);
    return (up - down) / (2 * h);
}

static void gradients_accumulate_over_consumers_and_uses(void **state)
{
    (void)state;
    struct setting s;
    prepare(&s);
    n_hooks = 0;
    zero_grads(&s);
    loss_of(&s, true);
    for (int p = 0; p < s.graph->n_params; p++) {
        for (int64_t i = 0; i < el_param_count(s.graph, p); i++) {
            double gradient;
            el_device_read(el_view_of(s.grads[p].buffer, (size_t)i * 8), &gradient, 8);
            assert_true(fabs(gradient - central_difference(&s, p, i)) < 1e-7);
        }
    }
    el_graph_destroy(s.graph);
}

static void a_hook_fires_once_after_the_last_use(void **state)
{
    (void)state;
    /* out; shared only when `left`, its first use, is through; h; of a linear node the bias first */
    static const int wanted[] = {5, 4, 3, 2, 1, 0};
    struct setting s;
    prepare(&s);
    n_hooks = 0;
    loss_of(&s, true);
    assert_int_equal(n_hooks, 6);
    for (int i = 0; i < 6; i++) assert_int_equal(hooks[i], wanted[i]);
    el_graph_destroy(s.graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_accumulate_over_consumers_and_uses),
        cmocka_unit_test(a_hook_fires_once_after_the_last_use),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
