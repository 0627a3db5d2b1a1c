/* A small model on a CPU device, in f64 by the reference kernels: a whole step, or one in parts, its loss and
 * gradients, and gradients by finite differences. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/graph/part.h"
#include "runtime/graph/pass.h"

enum { STEP_BATCH = 3, STEP_PARTS_MAX = 12, STEP_ARRAYS_MAX = 640, STEP_EDGE_MAX = 4 };

static struct el_device *device;
static int hooks[STEP_ARRAYS_MAX], n_hooks;

static inline int open_device(void **state)
{
    struct el_device_spec spec = {.backend = "cpu", .kernels = el_kernels_reference()};
    return el_device_open(&spec, &device) == EL_OK ? 0 : -1;
}

static inline int close_device(void **state)
{
    el_device_close(device);
    return 0;
}

static inline void note_hook(void *context, int p)
{
    (void)context;
    hooks[n_hooks++] = p;
}

/* A model, and all that a step of it needs. */
struct setting {
    struct el_graph *graph;
    struct el_view params[STEP_ARRAYS_MAX], grads[STEP_ARRAYS_MAX], buffers[STEP_ARRAYS_MAX];
    struct el_buffer *x, *labels, *loss, *dlogits;
    bool overwrite, evaluates;
    struct el_ledger ledger; /* of the last step */
};

static inline struct el_buffer *alloc(size_t bytes)
{
    struct el_buffer *buffer;
    assert_int_equal(el_device_alloc(device, EL_TAG_PARAM, bytes, "test", &buffer), EL_OK);
    return buffer;
}

static inline struct el_view array_of(const struct el_shape *shape, double (*value)(int64_t i), int64_t seed)
{
    int64_t n = el_shape_count(shape);
    struct el_view view = el_view_of(alloc((size_t)n * 8), 0);
    double *values = calloc((size_t)n, 8);
    assert_non_null(values);
    for (int64_t i = 0; i < n && value; i++) values[i] = value(seed + i);
    assert_int_equal(el_device_write(view, values, (size_t)n * 8), EL_OK);
    free(values);
    return view;
}

static inline double a_sine(int64_t i)
{
    return sin(3.0 * (double)i + 1);
}

static inline double a_cosine(int64_t i)
{
    return cos(5.0 * (double)i);
}

/* Ids or labels below `limit`. */
static inline struct el_buffer *numbers_of(int64_t n, int64_t limit)
{
    struct el_buffer *buffer = alloc((size_t)n * 4);
    for (int64_t i = 0; i < n; i++) {
        int32_t number = (int32_t)((5 * i + i * i / 3) % limit);
        assert_int_equal(el_device_write(el_view_of(buffer, (size_t)i * 4), &number, 4), EL_OK);
    }
    return buffer;
}

/* `graph` becomes the setting's. */
static inline void prepare(struct setting *s, struct el_graph *graph)
{
    memset(s, 0, sizeof *s);
    s->graph = graph;
    assert_true(graph->n_params <= STEP_ARRAYS_MAX && graph->n_buffers <= STEP_ARRAYS_MAX);
    for (int p = 0; p < graph->n_params; p++) {
        s->params[p] = array_of(&graph->params[p].shape, a_sine, 7 * p);
        s->grads[p] = array_of(&graph->params[p].shape, NULL, 0);
    }
    for (int b = 0; b < graph->n_buffers; b++) s->buffers[b] = array_of(&graph->buffers[b].shape, NULL, 0);
    const struct el_tensor *input = &graph->tensors[graph->inputs[0]];
    struct el_shape x = {.n = 2, .d = {STEP_BATCH, el_shape_count(&input->shape)}};
    s->x = input->dtype == EL_I32 ? numbers_of(x.d[0] * x.d[1], graph->classes) : array_of(&x, a_cosine, 0).buffer;
    s->labels = numbers_of(STEP_BATCH * graph->labels, graph->classes);
    if (graph->labels == 1)
        assert_int_equal(el_device_write(el_view_of(s->labels, 0), (int32_t[]){0, 1, 1}, STEP_BATCH * 4), EL_OK);
    s->loss = alloc(8);
    s->dlogits = alloc((size_t)(STEP_BATCH * el_graph_output_count(graph)) * 8);
}

/* The pass adds to gradients that it is given. */
static inline void zero_grads(const struct setting *s)
{
    for (int p = 0; p < s->graph->n_params; p++) {
        size_t bytes = (size_t)el_param_count(s->graph, p) * 8;
        void *zeros = calloc(1, bytes);
        assert_int_equal(el_device_write(s->grads[p], zeros, bytes), EL_OK);
        free(zeros);
    }
}

static inline void read_grads(const struct setting *s, double *values)
{
    for (int p = 0; p < s->graph->n_params; p++) {
        int64_t n = el_param_count(s->graph, p);
        assert_int_equal(el_device_read(s->grads[p], values, (size_t)n * 8), EL_OK);
        values += n;
    }
}

static inline void issue_loss(const struct setting *s, struct el_program *program, struct el_view logits)
{
    struct el_kernel_op loss = {
        .op = EL_OP_CROSS_ENTROPY,
        .dtype = EL_F64,
        .views = {logits, el_view_of(s->labels, 0), el_view_of(s->loss, 0), el_view_of(s->dlogits, 0)},
        .args.d = {STEP_BATCH * s->graph->labels, s->graph->classes}};
    el_program_kernel(program, device, EL_STREAM_COMPUTE, &loss, NULL);
}

static inline struct el_pass_spec spec_of(const struct el_graph *graph, const struct el_view *params,
                                          const struct el_view *buffers, struct el_view *grads)
{
    return (struct el_pass_spec){.graph = graph,
                                 .device = device,
                                 .dtype = EL_F64,
                                 .batch = STEP_BATCH,
                                 .sample_stride = 1,
                                 .seed = 11,
                                 .training = true,
                                 .params = params,
                                 .buffers = buffers,
                                 .grads = grads};
}

static inline double run_step(struct setting *s, struct el_program *program)
{
    if (el_program_end(program) != EL_OK || el_program_run(program, 2, NULL) != EL_OK)
        fail_msg("%s", el_error_message());
    const struct el_ledger *step = el_program_ledger(program, device, NULL);
    s->ledger = *step;
    assert_int_equal(step->live_bytes, 0); /* everything that was allocated is freed */
    el_program_destroy(program);
    double value;
    assert_int_equal(el_device_read(el_view_of(s->loss, 0), &value, sizeof value), EL_OK);
    return value;
}

static inline double loss_of(struct setting *s, bool backward)
{
    struct el_program *program;
    struct el_pass *pass;
    struct el_pass_spec spec = spec_of(s->graph, s->params, s->buffers, s->grads);
    struct el_view input = el_view_of(s->x, 0), dlogits = el_view_of(s->dlogits, 0), logits;
    n_hooks = 0;
    spec.grad_ready = note_hook;
    spec.overwrite = s->overwrite;
    spec.training = !s->evaluates;
    assert_int_equal(el_program_create(&program), EL_OK);
    assert_int_equal(el_pass_open(program, &spec, &pass), EL_OK);
    el_pass_forward(pass, &input, &logits);
    issue_loss(s, program, logits);
    if (backward) el_pass_backward(pass, &dlogits, NULL);
    el_pass_close(pass);
    return run_step(s, program);
}

/* ---- parts ---- */

/* One part of the model under way. */
struct part {
    struct el_graph *graph;
    struct el_pass *pass;
    struct el_view params[STEP_ARRAYS_MAX], grads[STEP_ARRAYS_MAX], buffers[STEP_ARRAYS_MAX];
    struct el_view inputs[STEP_EDGE_MAX], outputs[STEP_EDGE_MAX];
    struct el_view doutputs[STEP_EDGE_MAX], dinputs[STEP_EDGE_MAX];
};

/* What `to` takes of the edge that `from` gives: each value by its tensor's number. */
static inline void carry(const int *numbers, const struct el_view *from, int n_from, const int *wanted,
                         struct el_view *to, int n_to)
{
    assert_int_equal(n_from, n_to);
    for (int i = 0; i < n_to; i++) {
        assert_int_equal(numbers[i], wanted[i]);
        to[i] = from[i];
    }
}

static inline void open_part(const struct setting *s, struct el_program *program, struct part *part, bool first)
{
    for (int p = 0; p < part->graph->n_params; p++) {
        part->params[p] = s->params[part->graph->params[p].origin];
        part->grads[p] = s->grads[part->graph->params[p].origin];
    }
    for (int b = 0; b < part->graph->n_buffers; b++) part->buffers[b] = s->buffers[part->graph->buffers[b].origin];
    struct el_pass_spec spec = spec_of(part->graph, part->params, part->buffers, part->grads);
    spec.input_grads = !first;
    assert_int_equal(el_pass_open(program, &spec, &part->pass), EL_OK);
}

/* A step of the model in `n` parts; where backward is parted too, gradients of weights come last, the first part's
 * before the others'. */
static inline double loss_by_parts(struct setting *s, struct part *parts, int n, bool parted)
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
static inline int cut(const struct el_graph *model, unsigned mask, struct part *parts)
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

static inline double central_difference(struct setting *s, int p, int64_t i)
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

/* Those of the last step, each by finite differences. */
static inline void check_gradients(struct setting *s, double tolerance)
{
    for (int p = 0; p < s->graph->n_params; p++)
        for (int64_t i = 0; i < el_param_count(s->graph, p); i++) {
            double gradient, wanted = central_difference(s, p, i);
            el_device_read(el_view_of(s->grads[p].buffer, (size_t)i * 8), &gradient, 8);
            if (!(fabs(gradient - wanted) < tolerance))
                fail_msg("%s[%d]: %.9g, by differences %.9g", s->graph->params[p].name, (int)i, gradient, wanted);
        }
}
