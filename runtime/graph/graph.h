/* The graph: a model's structure. Shapes only, immutable once built, shared by all members.
 *
 *     el_graph_create(&g);
 *     x = el_graph_input(g, "ids", EL_I32, &shape);
 *     w = el_graph_param(g, "fc.weight", ...);              in the order of buckets and replicas
 *     y = el_graph_node(g, &el_node_linear, "fc", (int[]){x}, 1, (int[]){w, b}, 2, &attributes);
 *     el_graph_finish(g, y, EL_LOSS_CROSS_ENTROPY);
 *
 * Execution is in order of construction, which is a topological order. A tensor with several consumers accumulates its
 * gradient, a parameter used several times too. Shapes are a sample's: the batch comes with a pass (pass.h).
 *
 * Errors: building calls return an id, or -1 after a failure that el_graph_finish returns: EL_ERR_INVALID where shapes
 * do not fit, EL_ERR_INTERNAL for an id that does not exist, or too many of something. Ownership: names, shapes and
 * attributes are copied. Units: elements. Threads: one while it is built; any after finish, as it is immutable then.
 */
#ifndef EL_GRAPH_H
#define EL_GRAPH_H

#include <stdbool.h>

#include "kernels/kernels.h"

enum { EL_SHAPE_MAX = 3, EL_NODE_INPUTS_MAX = 8, EL_NODE_PARAMS_MAX = 2, EL_GRAPH_NAME_BYTES = 32 };

struct el_shape {
    int n;
    int64_t d[EL_SHAPE_MAX];
};

static inline int64_t el_shape_count(const struct el_shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->n; i++) count *= shape->d[i];
    return count;
}

/* A value that flows between nodes; shape a sample. */
struct el_tensor {
    char name[EL_GRAPH_NAME_BYTES];
    enum el_dtype dtype; /* EL_I32 for ids; else the pass's float type */
    bool is_float;
    struct el_shape shape;
    int producer; /* node, -1 for an input */
};

/* Initial weights are uniform in [-bound, bound), drawn by (seed, parameter, element). PyTorch's default for linear
 * layers and convolutions (kaiming_uniform with a = sqrt(5)) is a bound of 1 / sqrt(inputs of an output). */
struct el_param {
    char name[EL_GRAPH_NAME_BYTES];
    int origin; /* its number in the model's graph: what its initial values are drawn by */
    struct el_shape shape;
    double init_bound;
    double max_norm; /* L2 limit of each row after a step; 0: none */
};

/* What the types need; each reads its own. */
struct el_node_attributes {
    bool relu;   /* linear, conv1d: the output is rectified */
    double rate; /* dropout */
};

struct el_pass;
struct el_node;
struct el_graph;

/* What a node's backward needs of its forward: its inputs for the gradients of its weights; its output for those of its
 * inputs, backward_begin among them. */
enum { EL_KEEPS_INPUT_FOR_WEIGHTS = 1, EL_KEEPS_OUTPUT = 2 };

/* How a kind of node works. Its hooks issue ops through pass.h's accessors. Backward goes begin, weights, inputs; or,
 * where a schedule parts it, begin and inputs, and weights at a later time. */
struct el_node_type {
    const char *name;
    /* Required. The output's shape; EL_ERR_INVALID where inputs or parameters do not fit. */
    enum el_status (*shape)(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p);
    /* Required. */
    void (*forward)(struct el_pass *pass, const struct el_node *node);
    /* Optional: default is nothing. Once, before the two others: changes the output's gradient, which both read. */
    void (*backward_begin)(struct el_pass *pass, const struct el_node *node);
    /* Optional: default is that its inputs have no gradient. */
    void (*backward_inputs)(struct el_pass *pass, const struct el_node *node);
    /* Optional: default is that it has no parameters. */
    void (*backward_weights)(struct el_pass *pass, const struct el_node *node);
    /* Optional: default 0. EL_KEEPS_... for backward. */
    unsigned (*keeps)(const struct el_node *node);
    /* Optional: default 0. int32 values a sample that forward leaves for backward (argmax). */
    int64_t (*kept_indices)(const struct el_graph *graph, const struct el_node *node);
    /* Optional: default false. Gradients become ready in the reverse order of parameters. PyTorch's Linear: the bias's,
     * then the weight's, which goes through a transposition first; Conv1d: the weight's, then the bias's. */
    bool last_param_first;
};

struct el_node {
    char name[EL_GRAPH_NAME_BYTES];
    const struct el_node_type *type;
    int index;
    int origin; /* its index in the model's graph: what dropout draws by */
    int n_inputs, inputs[EL_NODE_INPUTS_MAX];
    int n_params, params[EL_NODE_PARAMS_MAX];
    int output;
    struct el_node_attributes attributes;
};

enum el_loss_kind { EL_LOSS_CROSS_ENTROPY, EL_LOSS_MSE };

enum { EL_GRAPH_TENSORS_MAX = 256, EL_GRAPH_NODES_MAX = 192, EL_GRAPH_PARAMS_MAX = 256, EL_GRAPH_EDGE_MAX = 16 };

struct el_graph {
    int n_tensors, n_nodes, n_params;
    struct el_tensor tensors[EL_GRAPH_TENSORS_MAX];
    struct el_node nodes[EL_GRAPH_NODES_MAX];
    struct el_param params[EL_GRAPH_PARAMS_MAX];
    /* Tensors that come from outside, and that leave. A model has one of each; a part of it (part.h) what crosses its
     * cuts, where a tensor may be both: it passes through to a later part. */
    int n_inputs, inputs[EL_GRAPH_EDGE_MAX];
    int n_outputs, outputs[EL_GRAPH_EDGE_MAX];
    enum el_loss_kind loss;
    enum el_status failure; /* first failure of building */
    struct el_error error;
};

extern const struct el_node_type el_node_embedding, el_node_conv1d, el_node_linear, el_node_max_time, el_node_concat,
    el_node_dropout;

enum el_status el_graph_create(struct el_graph **graph_p);
void el_graph_destroy(struct el_graph *graph); /* NULL is legal */

/* The model's input, and a parameter: shapes as the kernels take them ([outputs, inputs], [filters, window, channels]);
 * an input's is a sample's. A name beyond EL_GRAPH_NAME_BYTES - 1 is cut. */
int el_graph_input(struct el_graph *graph, const char *name, enum el_dtype dtype, const struct el_shape *shape);
int el_graph_param(struct el_graph *graph, const char *name, const struct el_shape *shape, double init_bound);
/* Adds a node behind all others; inputs are ids of tensors, params of parameters, in the order that its type wants.
 * `attributes` NULL: all 0. Returns the id of its output, whose shape the type gives. */
int el_graph_node(struct el_graph *graph, const struct el_node_type *type, const char *name, const int *inputs,
                  int n_inputs, const int *params, int n_params, const struct el_node_attributes *attributes);
/* Names the output and its loss. Errors: the first failure of building. */
enum el_status el_graph_finish(struct el_graph *graph, int output, enum el_loss_kind loss);

static inline int64_t el_param_count(const struct el_graph *graph, int param)
{
    return el_shape_count(&graph->params[param].shape);
}
/* Whether a node reads it: else it gets no gradient. */
bool el_graph_uses_param(const struct el_graph *graph, int param);
/* Elements of all parameters together: P / size(dtype). */
int64_t el_graph_param_count(const struct el_graph *graph);

#endif
