/* The graph: a model's structure, with shapes only; immutable once built, shared by all members.
 *
 *     el_graph_create(&g);
 *     x = el_graph_input(g, "ids", EL_I32, &shape);
 *     w = el_graph_param(g, "fc.weight", &shape, initial);  in the order of buckets and replicas
 *     y = el_graph_node(g, &el_node_linear, "fc", (int[]){x}, 1, (int[]){w, b}, 2, &attributes);
 *     el_graph_finish(g, y, EL_LOSS_CROSS_ENTROPY);
 *
 * Nodes run in the order of construction. Tensors with several consumers and repeated parameters accumulate gradients.
 * Shapes are per sample, in elements.
 * Errors: building calls return an id, or -1 after a failure, which el_graph_finish returns: EL_ERR_INVALID for shapes
 * that do not fit, EL_ERR_INTERNAL for unknown ids or too many of something. Names, shapes and attributes are copied.
 * Threads: one until finish, then any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* A job's axes, in which its devices differ. A device's place is a number per axis (layout.h); devices that differ
 * along one axis alone are a group, with its own communicator (worlds.h) except along stages, which send messages among
 * all workers. */

enum el_axis { EL_AXIS_DATA, EL_AXIS_STAGE, EL_AXIS_TENSOR, EL_AXIS_SHARD, EL_AXIS_EXPERT, EL_AXIS_COUNT };

struct el_axis_row {
    const char *name; /* in records: "data" */
    const char *word; /* in a mesh: "dp" of dp=2,pp=2 */
    const char *has;
    bool groups;
};

const struct el_axis_row *el_axis_row(enum el_axis axis);

/* A slice: the part of a model's array that an array here holds. Initial values, files and comparisons use an element's
 * number in the whole array, its origin, and do not depend on the cut.
 *
 *     struct el_slice half = {.dim = 0, .first = 4, .of = 8};      rows 4 to 7 of 8: the shape has 4 rows
 *     for (int64_t i = 0; i < count; i += el_slice_run(&shape, &half))
 *         el_slice_at(&shape, &half, i)            element i's number in the origin; the run continues there */

enum { EL_SHAPE_MAX = 4 };

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

/* `first` and on, of `of` in the origin along dimension `dim`. of 0: the whole origin. */
struct el_slice {
    int dim;
    int64_t first, of;
};

/* Elements adjacent both here and in the origin. */
int64_t el_slice_run(const struct el_shape *shape, const struct el_slice *slice);
int64_t el_slice_at(const struct el_shape *shape, const struct el_slice *slice, int64_t i);
struct el_shape el_slice_origin(const struct el_shape *shape, const struct el_slice *slice);
/* Copies values from the origin to the slice, and back, leaving others unchanged. */
void el_slice_take(const struct el_shape *shape, const struct el_slice *slice, const double *origin, double *values);
void el_slice_put(const struct el_shape *shape, const struct el_slice *slice, const double *values, double *origin);

enum { EL_NODE_INPUTS_MAX = 8, EL_NODE_PARAMS_MAX = 2, EL_NODE_BUFFERS_MAX = 2, EL_NODE_OUTPUTS_MAX = 4 };
enum { EL_GRAPH_NAME_BYTES = 48 };

/* Types in which a model computes. Full: the pass's. BF16: parameters, norms, residual sums and loss in the pass's,
 * matrix work and what follows it in bf16, as torch.autocast does; casts are nodes. Pure: parameters and activations in
 * bf16. Mixed: pure within a pass, but parameters are stored in full and cast before it, as with
 * MixedPrecisionPolicy(param_dtype). */
enum el_precision { EL_PRECISION_FULL, EL_PRECISION_BF16, EL_PRECISION_BF16_PURE, EL_PRECISION_BF16_MIXED };

struct el_tensor {
    char name[EL_GRAPH_NAME_BYTES];
    enum el_dtype dtype; /* EL_I32 for ids; EL_BF16; EL_F32: the pass's float type */
    bool is_float;
    struct el_shape shape;
    int producer;
    /* A node's output: it depends on a trained parameter. An input: it is floating point. Else it has no gradient, also
     * in parts of a model. */
    bool requires_grad;
};

/* Initial values. Random ones depend on (seed, parameter, element). */
enum el_initial_kind { EL_INITIAL_CONSTANT, EL_INITIAL_UNIFORM, EL_INITIAL_NORMAL };
struct el_initial {
    enum el_initial_kind kind;
    double value; /* the constant; bound of [-bound, bound); standard deviation around 0 */
};

static inline struct el_initial el_constant(double value)
{
    return (struct el_initial){EL_INITIAL_CONSTANT, value};
}
/* PyTorch's default for linear layers and convolutions (kaiming_uniform with a = sqrt(5)): bound 1 / sqrt(inputs per
 * output). */
static inline struct el_initial el_uniform(double bound)
{
    return (struct el_initial){EL_INITIAL_UNIFORM, bound};
}
static inline struct el_initial el_normal(double deviation)
{
    return (struct el_initial){EL_INITIAL_NORMAL, deviation};
}

/* An array across steps: a parameter, or a buffer (running statistics), which forward changes and which has no
 * gradient. */
struct el_param {
    char name[EL_GRAPH_NAME_BYTES];
    int origin; /* its number among the model's parameters or buffers, for its initial values */
    struct el_shape shape;
    struct el_slice slice; /* of its origin; all of it unless el_graph_slice_param says otherwise */
    struct el_initial initial;
    double max_norm; /* L2 limit of a parameter's rows after a step; 0: none */
    bool transposed; /* in files: [inputs, outputs] */
    bool flat;       /* in files: one row */
    bool matrices;   /* in files: as here, not a convolution's filters */
    bool is_shared;  /* of a part: in another part too */
    bool is_copy;    /* of a part: in an earlier part too (used at both ends of a model) */
    bool is_partial; /* of a piece: its gradient covers the piece's tokens and is summed over pieces */
    bool used;
    bool frozen; /* no updates and no gradient, like torch's requires_grad=False */
};

enum el_across { EL_ACROSS_NOT, EL_ACROSS_OUTPUTS, EL_ACROSS_INPUTS };

struct el_node_attributes {
    bool relu; /* linear, conv1d, batch_norm: rectify the output */
    double rate;
    int64_t window;      /* max_pool: height and width */
    int64_t stride, pad; /* conv2d, max_pool: for height and width */
    int64_t heads;       /* attention: in this node */
    int64_t layer;       /* route: its number among the model's routers */
    /* Of experts: tokens of a sample; experts in all; choices of a token; a sample's choices that an expert takes (0:
     * all). */
    int64_t tokens, experts, choices, capacity;
    double aux, z; /* route: the auxiliary loss's coefficient, and the router z loss's */
    enum el_across across;
};

struct el_pass;
struct el_node;
struct el_graph;

/* What backward needs from forward: inputs for gradients of weights; its output or first input for those of inputs and
 * for backward_begin. */
enum { EL_KEEPS_INPUT_FOR_WEIGHTS = 1, EL_KEEPS_OUTPUT = 2, EL_KEEPS_INPUT = 4 };

/* Other values that forward leaves for backward: per sample, and in total. */
struct el_kept {
    enum el_dtype dtype; /* EL_I32; else the pass's float type */
    int64_t per_sample, fixed;
};

/* The type in which a node computes in mixed models; inputs are cast to it. */
enum el_node_takes {
    EL_TAKES_WIDEST, /* the inputs' widest type; for ids the pass's */
    EL_TAKES_BF16,
    EL_TAKES_FULL,
    EL_TAKES_ANY /* no casts; the output has the inputs' widest type */
};

/* Routing on purpose (models/routing.c): a table's row per step, rows in turn; or each token's choices in turn. */
struct el_routing {
    bool balanced;
    int64_t rows, experts;
    double *table;    /* [rows, experts]: weights of a draw; NULL if balanced */
    float *single;    /* the same */
    double *expected; /* [experts]: choices of a token, on average over rows; they sum up to the choices of a token */
};

void el_routing_close(struct el_routing *routing); /* NULL is legal */

/* A kind of node. Hooks issue ops through pass.h. Backward: begin, weights, inputs; split by a schedule: begin and
 * inputs, weights later. */
struct el_node_type {
    const char *name;
    /* Required. Output shapes; EL_ERR_INVALID if inputs or parameters do not fit. */
    enum el_status (*shape)(const struct el_graph *graph, const struct el_node *node, struct el_shape *shapes);
    int n_outputs; /* 0: one */
    /* Required. */
    void (*forward)(struct el_pass *pass, const struct el_node *node);
    /* Optional; default: nothing. Once, before the other two: changes the output's gradient, which both read. A kept
     * output is freed after it (like PyTorch's ReLU), so that the other hooks must not read it. */
    void (*backward_begin)(struct el_pass *pass, const struct el_node *node);
    /* Optional; default: inputs have no gradient. A kernel that gives gradients of inputs and parameters is issued
     * here, without backward_weights. */
    void (*backward_inputs)(struct el_pass *pass, const struct el_node *node);
    /* Optional; default: no parameters, or backward_inputs gives their gradients. */
    void (*backward_weights)(struct el_pass *pass, const struct el_node *node);
    unsigned keeps; /* EL_KEEPS_... for backward, also of a node that rectifies */
    unsigned reads; /* bits of inputs that EL_KEEPS_INPUT means; 0: the first one */
    unsigned ids;   /* bits of outputs that are int32, not the first one */
    /* Optional; default: nothing. Values for backward besides tensors (positions of maxima). */
    struct el_kept (*kept)(const struct el_graph *graph, const struct el_node *node);
    /* Optional; default: false. Gradients become ready in reverse order of parameters. PyTorch's Linear: bias, then
     * weight (transposed first); Conv1d: weight, then bias. */
    bool last_param_first;
    bool reads_grad; /* without `relu`: its backward leaves its output's gradient as it is */
    enum el_node_takes takes;
    /* Optional; default: 0. Bits of the parameters that kernels take in the pass's type while tensors are bf16. */
    unsigned params_full;
};

struct el_node {
    char name[EL_GRAPH_NAME_BYTES];
    const struct el_node_type *type;
    int index;
    int origin;            /* index in the model's graph without casts, for dropout's draws */
    int segment;           /* nodes recomputed together in backward (pass.h); 0: none */
    struct el_slice slice; /* of its origin's output: for the last node, classes */
    int n_inputs, inputs[EL_NODE_INPUTS_MAX];
    int n_params, params[EL_NODE_PARAMS_MAX];
    int n_buffers, buffers[EL_NODE_BUFFERS_MAX];
    int n_outputs, outputs[EL_NODE_OUTPUTS_MAX];
    struct el_node_attributes attributes;
};

enum el_loss_kind { EL_LOSS_CROSS_ENTROPY, EL_LOSS_MSE };

struct el_graph {
    int n_tensors, n_nodes, n_params, n_buffers;
    struct el_tensor *tensors;
    struct el_node *nodes;
    struct el_param *params, *buffers;
    /* Tensors that enter and leave: one each for a model; for a part (part.h) those that cross its cuts, some of which
     * pass through to a later part. */
    int n_inputs, n_outputs;
    int *inputs, *outputs;
    /* The model's, also in parts: the output is [batch, labels, classes]; a classifier has one label. */
    enum el_loss_kind loss;
    int64_t labels, classes;
    struct el_slice class_slice; /* the classes in its output; of 0: all */
    /* Tensor parallelism: piece `piece` of n_pieces; 0: not cut. */
    int piece, n_pieces;
    /* Expert parallelism: this rank's experts are the range number `expert_rank` of n_expert_ranks; 0: it has all. */
    int expert_rank, n_expert_ranks;
    struct el_routing *routing; /* how tokens are sent on purpose; NULL: by the router. A part borrows its model's */
    const struct el_routing *lent_routing;
    enum el_precision precision; /* set before building */
    /* Sequence parallelism (Korthikanti et al., "Reducing Activation Recomputation", 2022): between cut layers a piece
     * has 1/n of the tokens: of [b, t, ...] the rows [piece b t / n, ...) of b t, so that the pieces in order are the
     * batch (pass.h). */
    bool by_tokens;
    int segment;
    enum el_status failure;
    struct el_error error;
};

extern const struct el_node_type el_node_embedding, el_node_conv1d, el_node_linear, el_node_max_time, el_node_concat,
    el_node_dropout, el_node_conv2d, el_node_batch_norm, el_node_max_pool, el_node_mean_pool, el_node_layer_norm,
    el_node_gelu, el_node_attention, el_node_residual, el_node_shift, el_node_cast, el_node_route, el_node_dispatch,
    el_node_grouped, el_node_swiglu, el_node_combine;

enum el_status el_graph_create(struct el_graph **graph_p);
void el_graph_destroy(struct el_graph *graph); /* NULL is legal */

/* The model's input (shape per sample), a parameter, a buffer (shapes as in kernels: [outputs, inputs], [filters,
 * window, channels], [filters, window, window, channels]). Names are truncated to EL_GRAPH_NAME_BYTES - 1. */
int el_graph_input(struct el_graph *graph, const char *name, enum el_dtype dtype, const struct el_shape *shape);
int el_graph_param(struct el_graph *graph, const char *name, const struct el_shape *shape, struct el_initial initial);
int el_graph_buffer(struct el_graph *graph, const char *name, const struct el_shape *shape, struct el_initial initial);
/* Declares a parameter, or a node's output, as a slice of the model's. */
void el_graph_slice_param(struct el_graph *graph, int param, struct el_slice slice);
void el_graph_slice_node(struct el_graph *graph, int output, struct el_slice slice);
/* A parameter of nodes between cut layers: is_partial if the graph is cut by tokens. */
void el_graph_between(struct el_graph *graph, int param);
/* Appends a node with tensor ids and parameter ids in its type's order. `attributes` NULL: all 0. Returns its output's
 * id; the type gives the shape. */
int el_graph_node(struct el_graph *graph, const struct el_node_type *type, const char *name, const int *inputs,
                  int n_inputs, const int *params, int n_params, const struct el_node_attributes *attributes);
/* In files the weight is [inputs, outputs] (inputs: the last side here) and the bias [outputs]. */
void el_graph_store_transposed(struct el_graph *graph, int weight, int bias);
/* The weight is several matrices, in files too. */
void el_graph_store_matrices(struct el_graph *graph, int weight);
/* Sets the buffers, in its type's order, of the node that makes tensor `output`. */
void el_graph_node_buffers(struct el_graph *graph, int output, const int *buffers, int n);
/* Freezes a parameter by name, or those of a layer or group ("layer1" of "layer1.0.conv1.weight"), with PyTorch's
 * names. Returns their number; 0: no such name. Before finish. */
int el_graph_freeze(struct el_graph *graph, const char *name);
/* Sets output and loss. Errors: building's first failure; EL_ERR_INVALID if nothing is trained. */
enum el_status el_graph_finish(struct el_graph *graph, int output, enum el_loss_kind loss);

/* In a pass of floating type `full`: the type of a tensor, and of the parameters used with it. */
static inline enum el_dtype el_tensor_dtype(const struct el_tensor *tensor, enum el_dtype full)
{
    return tensor->dtype == EL_F32 ? full : tensor->dtype;
}
static inline enum el_dtype el_param_dtype(enum el_precision precision, enum el_dtype full)
{
    return precision >= EL_PRECISION_BF16_PURE ? EL_BF16 : full;
}
static inline enum el_dtype el_graph_output_dtype(const struct el_graph *graph, enum el_dtype full)
{
    return graph->precision == EL_PRECISION_FULL ? full : EL_BF16;
}

static inline int64_t el_param_count(const struct el_graph *graph, int param)
{
    return el_shape_count(&graph->params[param].shape);
}
/* Per sample: elements of the output, and bytes of the int32 labels. */
static inline int64_t el_graph_output_count(const struct el_graph *graph)
{
    return graph->labels * graph->classes;
}
static inline size_t el_graph_label_bytes(const struct el_graph *graph)
{
    return (size_t)graph->labels * sizeof(int32_t);
}
bool el_graph_uses_param(const struct el_graph *graph, int param);
bool el_graph_trains_param(const struct el_graph *graph, int param);
bool el_node_trains(const struct el_graph *graph, const struct el_node *node);
/* EL_KEEPS_...: what its backward reads, if it has one. */
unsigned el_graph_keeps(const struct el_graph *graph, const struct el_node *node);
/* A segment's first node, and the one before whose backward it is recomputed: the last one that reads forward's values;
 * -1: none. */
int el_graph_again_from(const struct el_graph *graph, const struct el_node *node);
int el_graph_again_at(const struct el_graph *graph, const struct el_node *node);
int64_t el_graph_param_count(const struct el_graph *graph);
int64_t el_graph_trained_count(const struct el_graph *graph);
