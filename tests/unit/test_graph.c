/* The graph's contract: a tensor with several consumers accumulates its gradient, a parameter used twice too, and its
 * hook fires once, after its last use; checked in f64 by finite differences through whole passes. And parts of a graph:
 * wherever it is cut, the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "runtime/graph/part.h"
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
    bool overwrite;
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

static void issue_loss(const struct setting *s, struct el_program *program, struct el_view logits)
{
    struct el_kernel_op loss = {
        .op = EL_OP_CROSS_ENTROPY,
        .dtype = EL_F64,
        .views = {logits, el_view_of(s->labels, 0), el_view_of(s->loss, 0), el_view_of(s->dlogits, 0)},
        .args.d = {BATCH, CLASSES}};
    el_program_kernel(program, device, EL_STREAM_COMPUTE, &loss, NULL);
}

static struct el_pass_spec spec_of(const struct el_graph *graph, const struct el_view *params, struct el_view *grads)
{
    return (struct el_pass_spec){.graph = graph,
                                 .device = device,
                                 .dtype = EL_F64,
                                 .batch = BATCH,
                                 .sample_stride = 1,
                                 .seed = 11,
                                 .training = true,
                                 .params = params,
                                 .grads = grads};
}

static double run_step(const struct setting *s, struct el_program *program)
{
    if (el_program_end(program) != EL_OK || el_program_run(program, 2, NULL) != EL_OK)
        fail_msg("%s", el_error_message());
    const struct el_ledger *step = el_program_ledger(program, device, NULL);
    assert_int_equal(step->live_bytes, 0); /* everything that was allocated is freed */
    el_program_destroy(program);
    double value;
    assert_int_equal(el_device_read(el_view_of(s->loss, 0), &value, sizeof value), EL_OK);
    return value;
}

static double loss_of(struct setting *s, bool backward)
{
    struct el_program *program;
    struct el_pass *pass;
    struct el_pass_spec spec = spec_of(s->graph, s->params, s->grads);
    struct el_view input = el_view_of(s->x, 0), dlogits = el_view_of(s->dlogits, 0), logits;
    spec.grad_ready = note_hook;
    spec.overwrite = s->overwrite;
    assert_int_equal(el_program_create(&program), EL_OK);
    assert_int_equal(el_pass_open(program, &spec, &pass), EL_OK);
    el_pass_forward(pass, &input, &logits);
    issue_loss(s, program, logits);
    if (backward) el_pass_backward(pass, &dlogits, NULL);
    el_pass_close(pass);
    return run_step(s, program);
}

/* ---- parts ---- */

enum { PARTS_MAX = 6 };

/* One part of the model under way. */
struct part {
    struct el_graph *graph;
    struct el_pass *pass;
    struct el_view params[EL_GRAPH_PARAMS_MAX], grads[EL_GRAPH_PARAMS_MAX];
    struct el_view inputs[EL_GRAPH_EDGE_MAX], outputs[EL_GRAPH_EDGE_MAX];
    struct el_view doutputs[EL_GRAPH_EDGE_MAX], dinputs[EL_GRAPH_EDGE_MAX];
};

/* What `to` takes of the edge that `from` gives: each value by its tensor's number. */
static void carry(const int *numbers, const struct el_view *from, int n_from, const int *wanted, struct el_view *to,
                  int n_to)
{
    assert_int_equal(n_from, n_to);
    for (int i = 0; i < n_to; i++) {
        assert_int_equal(numbers[i], wanted[i]);
        to[i] = from[i];
    }
}

static void open_part(const struct setting *s, struct el_program *program, struct part *part, bool first)
{
    for (int p = 0; p < part->graph->n_params; p++) {
        part->params[p] = s->params[part->graph->params[p].origin];
        part->grads[p] = s->grads[part->graph->params[p].origin];
    }
    struct el_pass_spec spec = spec_of(part->graph, part->params, part->grads);
    spec.input_grads = !first;
    assert_int_equal(el_pass_open(program, &spec, &part->pass), EL_OK);
}

/* A step of the model in `n` parts; where backward is parted too, gradients of weights come last, the first part's
 * before the others'. */
static double loss_by_parts(const struct setting *s, struct part *parts, int n, bool parted)
{
    struct el_program *program;
    assert_int_equal(el_program_create(&program), EL_OK);
    parts[0].inputs[0] = el_view_of(s->x, 0);
    for (int k = 0; k < n; k++) {
        const struct el_graph *graph = parts[k].graph;
        open_part(s, program, &parts[k], k == 0);
        if (k > 0)
            carry(parts[k - 1].graph->outputs, parts[k - 1].outputs, parts[k - 1].graph->n_outputs, graph->inputs,
                  parts[k].inputs, graph->n_inputs);
        el_pass_forward(parts[k].pass, parts[k].inputs, parts[k].outputs);
    }
    issue_loss(s, program, parts[n - 1].outputs[0]);
    parts[n - 1].doutputs[0] = el_view_of(s->dlogits, 0);
    for (int k = n - 1; k >= 0; k--) {
        const struct el_graph *graph = parts[k].graph;
        if (k < n - 1)
            carry(parts[k + 1].graph->inputs, parts[k + 1].dinputs, parts[k + 1].graph->n_inputs, graph->outputs,
                  parts[k].doutputs, graph->n_outputs);
        (parted ? el_pass_backward_inputs : el_pass_backward)(parts[k].pass, parts[k].doutputs, parts[k].dinputs);
    }
    for (int k = 0; k < n && parted; k++) el_pass_backward_weights(parts[k].pass);
    for (int k = 0; k < n; k++) el_pass_close(parts[k].pass);
    return run_step(s, program);
}

/* Cuts before the nodes of which `mask` has a bit; returns how many parts there are, 0 where that is refused. */
static int cut(const struct el_graph *model, unsigned mask, struct part *parts)
{
    int n = 0, first = 0;
    for (int node = 1; node <= model->n_nodes; node++) {
        if (node < model->n_nodes && !(mask >> node & 1)) continue;
        parts[n] = (struct part){0};
        if (el_graph_part(model, first, node - first, &parts[n].graph) != EL_OK) {
            while (n > 0) el_graph_destroy(parts[--n].graph);
            return 0;
        }
        first = node;
        n++;
    }
    return n;
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

static void read_grads(const struct setting *s, double *values)
{
    for (int p = 0; p < s->graph->n_params; p++) {
        int64_t n = el_param_count(s->graph, p);
        assert_int_equal(el_device_read(s->grads[p], values, (size_t)n * 8), EL_OK);
        values += n;
    }
}

/* What was there counts for nothing, and the second use of a parameter adds to the first one's. */
static void gradients_are_written_over_what_was_there(void **state)
{
    (void)state;
    struct setting s;
    double wanted[256], got[256];
    prepare(&s);
    zero_grads(&s);
    n_hooks = 0;
    loss_of(&s, true);
    read_grads(&s, wanted);
    s.overwrite = true;
    n_hooks = 0;
    for (int again = 0; again < 2; again++) loss_of(&s, true); /* the second time over the first one's */
    read_grads(&s, got);
    for (int64_t i = 0; i < el_graph_param_count(s.graph); i++) assert_true(fabs(got[i] - wanted[i]) < 1e-12);
    el_graph_destroy(s.graph);
}

static void parts_compute_what_the_model_does(void **state)
{
    (void)state;
    enum { BETWEEN_USES = 1 << 2, BEFORE_LAST = 1 << 5 };
    struct setting s;
    struct part parts[PARTS_MAX];
    double wanted[256], got[256];
    int n_cuts = 0;
    prepare(&s);
    zero_grads(&s);
    double loss = loss_of(&s, true);
    read_grads(&s, wanted);
    for (unsigned mask = 0; mask <= BEFORE_LAST * 2 - 1; mask += 2) {
        int n = cut(s.graph, mask, parts);
        assert_int_equal(n == 0, (mask & BETWEEN_USES) != 0);
        for (int parted = 0; parted < 2 && n > 0; parted++) {
            zero_grads(&s);
            assert_true(loss_by_parts(&s, parts, n, parted) == loss);
            read_grads(&s, got);
            assert_memory_equal(got, wanted, (size_t)el_graph_param_count(s.graph) * 8);
        }
        for (int k = 0; k < n; k++) el_graph_destroy(parts[k].graph);
        n_cuts += n > 0;
    }
    assert_int_equal(n_cuts, 16);
    el_graph_destroy(s.graph);
}

/* Of h, both uses of the shared weight with their dropout and concat, and out: the first and the last. */
static void parts_on_one_device_have_their_parameters_together(void **state)
{
    (void)state;
    static const char *const params[] = {"w0", "b0", "w1", "b1"}, *const nodes[] = {"h", "out"};
    struct el_graph *model = diamond(), *both;
    struct part parts[PARTS_MAX];
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

static void a_cut_that_cannot_be_is_named(void **state)
{
    (void)state;
    struct el_graph *model = diamond(), *part;
    assert_int_equal(el_graph_part(model, 0, 2, &part), EL_ERR_INVALID);
    assert_string_equal(el_error_message(), "a cut separates two uses of 'shared'");
    assert_int_equal(el_graph_part(model, 4, 3, &part), EL_ERR_INVALID);
    assert_string_equal(el_error_message(), "no nodes 4 to 6 in a model of 6");
    el_graph_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_accumulate_over_consumers_and_uses),
        cmocka_unit_test(a_hook_fires_once_after_the_last_use),
        cmocka_unit_test(gradients_are_written_over_what_was_there),
        cmocka_unit_test(parts_compute_what_the_model_does),
        cmocka_unit_test(parts_on_one_device_have_their_parameters_together),
        cmocka_unit_test(a_cut_that_cannot_be_is_named),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
