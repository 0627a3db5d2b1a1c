/* What surrounds a pass, and what nodes can be: one that communicates along an axis, one with several outputs, and
 * linear and embedding over more dimensions than one. Against values worked out here.
 *
 * docs/adding.md compiles this file with the node of the page: -DSUM_OVER=el_node_sum_over. */
#include "tests/test.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "runtime/graph/pass.h"

enum { BATCH = 2, IN = 3, OUT = 4, RANKS_MAX = 4, WIDTH = sizeof(double), ROOM = 64 };

static const double RATE = 0.5;

/* ---- nodes of these tests ---- */

#ifdef SUM_OVER
extern const struct el_node_type SUM_OVER;
#else
#define SUM_OVER sum_over
static enum el_status shape_of_sum(const struct el_graph *graph, const struct el_node *node, struct el_shape *shapes)
{
    shapes[0] = graph->tensors[node->inputs[0]].shape;
    return EL_OK;
}

static void sum(struct el_pass *pass, const struct el_node *node, struct el_view x, struct el_view y)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    int64_t n = spec->batch * el_shape_count(&spec->graph->tensors[node->outputs[0]].shape);
    struct el_kernel_op scale = {.op = EL_OP_SCALE, .views = {x, y}, .args = {.d = {n}, .s = {node->attributes.rate}}};
    struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE, .count = (size_t)n, .data = y};
    el_pass_emit(pass, node, &scale);
    el_pass_communicate(pass, node, EL_AXIS_DATA, &op);
}

static void forward_sum(struct el_pass *pass, const struct el_node *node)
{
    sum(pass, node, el_pass_input(pass, node, 0), el_pass_output(pass, node, 0));
}

static void backward_sum(struct el_pass *pass, const struct el_node *node)
{
    struct el_view dx;
    if (!el_pass_input_grad_open(pass, node, 0, &dx)) return;
    sum(pass, node, el_pass_output_grad(pass, node, 0), dx);
    el_pass_input_grad_done(pass, node, 0, dx);
}

static const struct el_node_type sum_over = {
    .name = "sum_over", .shape = shape_of_sum, .forward = forward_sum, .backward_inputs = backward_sum};
#endif

/* Two halves of the columns, each an output of its own. */
static enum el_status shapes_of_halves(const struct el_graph *graph, const struct el_node *node,
                                       struct el_shape *shapes)
{
    shapes[0] = shapes[1] = (struct el_shape){1, {graph->tensors[node->inputs[0]].shape.d[0] / 2}};
    return EL_OK;
}

static void copy_half(struct el_pass *pass, const struct el_node *node, struct el_view x, struct el_view y, bool back)
{
    struct el_kernel_op op = {.op = EL_OP_COPY_COLUMNS,
                              .views = {x, y},
                              .args.d = {BATCH, OUT / 2, back ? OUT / 2 : OUT, back ? OUT : OUT / 2}};
    el_pass_emit(pass, node, &op);
}

static void forward_halves(struct el_pass *pass, const struct el_node *node)
{
    struct el_view x = el_pass_input(pass, node, 0);
    for (int i = 0; i < 2; i++, x.offset += OUT / 2 * WIDTH)
        copy_half(pass, node, x, el_pass_output(pass, node, i), false);
}

static void backward_halves(struct el_pass *pass, const struct el_node *node)
{
    struct el_view dx, at;
    if (!el_pass_input_grad_open(pass, node, 0, &dx)) return;
    at = dx;
    for (int i = 0; i < 2; i++, at.offset += OUT / 2 * WIDTH)
        copy_half(pass, node, el_pass_output_grad(pass, node, i), at, true);
    el_pass_input_grad_done(pass, node, 0, dx);
}

static const struct el_node_type halves = {.name = "halves",
                                           .shape = shapes_of_halves,
                                           .n_outputs = 2,
                                           .forward = forward_halves,
                                           .backward_inputs = backward_halves};

/* ---- a pass on a device ---- */

struct run {
    const struct el_graph *graph;
    struct el_device *device;
    struct el_pass_env env;
    const void *x; /* of the graph's input, BATCH times its shape */
    size_t x_bytes;
    double dy[ROOM];                /* of its output */
    double y[ROOM], grads[2][ROOM]; /* what comes out */
    enum el_status status;
};

static double weight(int p, int64_t i)
{
    return sin(3.0 * (double)i + p + 1);
}

static struct el_view room_for(struct run *run, const void *values, size_t bytes)
{
    struct el_buffer *buffer;
    if (run->status == EL_OK) run->status = el_device_alloc(run->device, EL_TAG_PARAM, bytes, "test", &buffer);
    if (run->status != EL_OK) return (struct el_view){0};
    if (values) run->status = el_device_write(el_view_of(buffer, 0), values, bytes);
    return el_view_of(buffer, 0);
}

static enum el_status issue(struct run *run, struct el_program *program, struct el_view x, struct el_view dy,
                            struct el_view y, const struct el_view *params, struct el_view *grads)
{
    const struct el_graph *graph = run->graph;
    struct el_pass_spec spec = {.graph = graph,
                                .device = run->device,
                                .stream = EL_STREAM_COMPUTE,
                                .dtype = EL_F64,
                                .batch = BATCH,
                                .sample_stride = 1,
                                .training = true,
                                .params = params,
                                .grads = grads,
                                .overwrite = true,
                                .env = run->env};
    struct el_pass *pass;
    struct el_view output;
    const struct el_op_head head = {.label = "y", .phase = EL_PHASE_FORWARD};
    size_t bytes = BATCH * (size_t)el_shape_count(&graph->tensors[graph->outputs[0]].shape) * WIDTH;
    EL_TRY(el_pass_open(program, &spec, &pass));
    el_pass_forward(pass, &x, &output);
    el_program_copy(program, run->device, EL_STREAM_COMPUTE, &head, y, output, bytes, NULL);
    el_pass_backward(pass, &dy, NULL);
    el_pass_close(pass);
    return el_program_end(program);
}

static void *run_pass(void *context)
{
    struct run *run = context;
    struct el_view params[2] = {{0}}, grads[2] = {{0}};
    struct el_program *program = NULL;
    for (int p = 0; p < run->graph->n_params; p++) {
        double values[ROOM];
        for (int i = 0; i < ROOM; i++) values[i] = weight(p, i);
        params[p] = room_for(run, values, sizeof values);
        grads[p] = room_for(run, NULL, sizeof values);
    }
    struct el_view x = room_for(run, run->x, run->x_bytes), dy = room_for(run, run->dy, sizeof run->dy);
    struct el_view y = room_for(run, run->y, sizeof run->y);
    if (run->status == EL_OK) run->status = el_program_create(&program);
    if (run->status == EL_OK) run->status = issue(run, program, x, dy, y, params, grads);
    if (run->status == EL_OK) run->status = el_program_run(program, 0, NULL);
    if (run->status == EL_OK) run->status = el_device_read(y, run->y, sizeof run->y);
    for (int p = 0; p < run->graph->n_params && run->status == EL_OK; p++)
        run->status = el_device_read(grads[p], run->grads[p], sizeof run->grads[p]);
    el_program_destroy(program);
    for (int p = 0; p < run->graph->n_params; p++) {
        el_device_free(params[p].buffer);
        el_device_free(grads[p].buffer);
    }
    el_device_free(x.buffer);
    el_device_free(dy.buffer);
    el_device_free(y.buffer);
    return NULL;
}

static struct el_device *open_device(void)
{
    struct el_device_spec spec = {.backend = "cpu", .kernels = el_kernels_reference()};
    struct el_device *device;
    assert_int_equal(el_device_open(&spec, &device), EL_OK);
    return device;
}

/* A linear layer of these inputs, and node types behind it. */
static struct el_graph *linear_and(const struct el_shape *input, const struct el_node_type *type)
{
    const struct el_node_attributes rate = {.rate = RATE};
    struct el_graph *graph;
    assert_int_equal(el_graph_create(&graph), EL_OK);
    int x = el_graph_input(graph, "x", EL_F64, input);
    int params[] = {el_graph_param(graph, "w", &(struct el_shape){2, {OUT, IN}}, el_constant(0)),
                    el_graph_param(graph, "b", &(struct el_shape){1, {OUT}}, el_constant(0))};
    int y = el_graph_node(graph, &el_node_linear, "linear", &x, 1, params, 2, NULL);
    if (type) y = el_graph_node(graph, type, "next", &y, 1, NULL, 0, &rate);
    if (type == &halves) y = el_graph_node(graph, &el_node_concat, "swapped", (int[]){y + 1, y}, 2, NULL, 0, NULL);
    if (el_graph_finish(graph, y, EL_LOSS_CROSS_ENTROPY) != EL_OK) fail_msg("%s", el_error_message());
    return graph;
}

static void near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-13 * (1 + fabs(wanted)))) fail_msg("%.17g, not %.17g", value, wanted);
}

/* Row r of x through the layer, as numbers. */
static double linear_of(const double *x, int64_t row, int64_t o)
{
    double y = weight(1, o);
    for (int64_t i = 0; i < IN; i++) y += x[row * IN + i] * weight(0, o * IN + i);
    return y;
}

/* ---- tests ---- */

static void sum_on(int n)
{
    struct el_graph *graph = linear_and(&(struct el_shape){1, {IN}}, &SUM_OVER);
    struct run runs[RANKS_MAX] = {{0}};
    double x[RANKS_MAX][BATCH * IN];
    struct el_device *devices[RANKS_MAX];
    struct el_comm *comms[RANKS_MAX], *groups[RANKS_MAX][EL_AXIS_COUNT] = {{NULL}};
    pthread_t threads[RANKS_MAX];
    for (int r = 0; r < n; r++) devices[r] = open_device();
    assert_int_equal(el_comm_open_local(devices, n, comms), EL_OK);
    for (int r = 0; r < n; r++) {
        for (int i = 0; i < BATCH * IN; i++) x[r][i] = cos(2.0 * i + r);
        groups[r][EL_AXIS_DATA] = comms[r];
        runs[r] = (struct run){
            .graph = graph, .device = devices[r], .env = {.group = groups[r]}, .x = x[r], .x_bytes = sizeof x[r]};
        for (int i = 0; i < BATCH * OUT; i++) runs[r].dy[i] = sin(i + 5.0 * r);
    }
    for (int r = 0; r < n; r++) assert_int_equal(pthread_create(&threads[r], NULL, run_pass, &runs[r]), 0);
    for (int r = 0; r < n; r++) pthread_join(threads[r], NULL);
    for (int r = 0; r < n; r++) {
        assert_int_equal(runs[r].status, EL_OK);
        for (int64_t i = 0; i < BATCH * OUT; i++) {
            double wanted = 0;
            for (int s = 0; s < n; s++) wanted += RATE * linear_of(x[s], i / OUT, i % OUT);
            near(runs[r].y[i], wanted);
        }
        for (int64_t o = 0; o < OUT; o++)
            for (int64_t c = 0; c <= IN; c++) { /* weights, then the bias */
                double wanted = 0;
                for (int64_t b = 0; b < BATCH; b++)
                    for (int s = 0; s < n; s++)
                        wanted += RATE * sin((double)(b * OUT + o) + 5.0 * s) * (c < IN ? x[r][b * IN + c] : 1);
                near(c < IN ? runs[r].grads[0][o * IN + c] : runs[r].grads[1][o], wanted);
            }
    }
    for (int r = 0; r < n; r++) {
        el_comm_close(comms[r]);
        el_device_close(devices[r]);
    }
    el_graph_destroy(graph);
}

static void a_node_sums_over_its_group(void **state)
{
    for (int n = 1; n <= RANKS_MAX; n *= 2) sum_on(n);
}

static void a_node_has_two_outputs(void **state)
{
    struct el_graph *graph = linear_and(&(struct el_shape){1, {IN}}, &halves);
    double x[BATCH * IN];
    for (int i = 0; i < BATCH * IN; i++) x[i] = cos(2.0 * i);
    struct run run = {.graph = graph, .device = open_device(), .x = x, .x_bytes = sizeof x};
    for (int i = 0; i < BATCH * OUT; i++) run.dy[i] = sin(i);
    run_pass(&run);
    assert_int_equal(run.status, EL_OK);
    for (int64_t o = 0; o < OUT; o++) {
        int64_t place = (o + OUT / 2) % OUT; /* where column o of the layer lies in the output */
        double bias = 0;
        for (int64_t b = 0; b < BATCH; b++) {
            near(run.y[b * OUT + place], linear_of(x, b, o));
            bias += sin((double)(b * OUT + place));
        }
        near(run.grads[1][o], bias);
    }
    el_device_close(run.device);
    el_graph_destroy(graph);
}

/* [batch, labels, features]: each label's features go through the layer, and gradients are summed over labels too. */
static void linear_keeps_leading_dimensions(void **state)
{
    enum { LABELS = 5 };
    struct el_graph *graph = linear_and(&(struct el_shape){2, {LABELS, IN}}, NULL);
    const struct el_shape *shape = &graph->tensors[graph->outputs[0]].shape;
    double x[BATCH * LABELS * IN];
    for (int i = 0; i < BATCH * LABELS * IN; i++) x[i] = cos(2.0 * i);
    struct run run = {.graph = graph, .device = open_device(), .x = x, .x_bytes = sizeof x};
    for (int i = 0; i < BATCH * LABELS * OUT; i++) run.dy[i] = sin(i);
    assert_true(shape->n == 2 && shape->d[0] == LABELS && shape->d[1] == OUT);
    assert_true(graph->labels == LABELS && graph->classes == OUT);
    run_pass(&run);
    assert_int_equal(run.status, EL_OK);
    for (int64_t o = 0; o < OUT; o++) {
        double bias = 0;
        for (int64_t row = 0; row < BATCH * LABELS; row++) {
            near(run.y[row * OUT + o], linear_of(x, row, o));
            bias += sin((double)(row * OUT + o));
        }
        near(run.grads[1][o], bias);
    }
    el_device_close(run.device);
    el_graph_destroy(graph);
}

static void embedding_keeps_leading_dimensions(void **state)
{
    enum { A = 2, B = 3, WORDS = 5, EMBED = 4 };
    static const int32_t ids[BATCH * A * B] = {0, 4, 2, 2, 1, 3, 4, 4, 0, 1, 2, 3};
    struct el_graph *graph;
    assert_int_equal(el_graph_create(&graph), EL_OK);
    int x = el_graph_input(graph, "ids", EL_I32, &(struct el_shape){2, {A, B}});
    int table = el_graph_param(graph, "table", &(struct el_shape){2, {WORDS, EMBED}}, el_constant(0));
    int y = el_graph_node(graph, &el_node_embedding, "embedding", &x, 1, &table, 1, NULL);
    assert_int_equal(el_graph_finish(graph, y, EL_LOSS_CROSS_ENTROPY), EL_OK);
    const struct el_shape *shape = &graph->tensors[y].shape;
    assert_true(shape->n == 3 && shape->d[0] == A && shape->d[1] == B && shape->d[2] == EMBED);
    struct run run = {.graph = graph, .device = open_device(), .x = ids, .x_bytes = sizeof ids};
    double wanted[WORDS * EMBED] = {0};
    for (int i = 0; i < BATCH * A * B * EMBED; i++) {
        run.dy[i] = sin(i);
        wanted[ids[i / EMBED] * EMBED + i % EMBED] += sin(i);
    }
    run_pass(&run);
    assert_int_equal(run.status, EL_OK);
    for (int i = 0; i < BATCH * A * B * EMBED; i++) near(run.y[i], weight(0, ids[i / EMBED] * EMBED + i % EMBED));
    for (int i = 0; i < WORDS * EMBED; i++) near(run.grads[0][i], wanted[i]);
    el_device_close(run.device);
    el_graph_destroy(graph);
}

RUN_TESTS(NULL, NULL, a_node_sums_over_its_group, a_node_has_two_outputs, linear_keeps_leading_dimensions,
          embedding_keeps_leading_dimensions)
