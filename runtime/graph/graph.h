/* The graph: a model's structure. Shapes only, immutable once built, shared by all members.
 *
 *     el_graph_create(&g);
 *     x = el_graph_input(g, "ids", EL_I32, &shape);
 *     w = el_graph_param(g, "fc.weight", &shape, initial);  in the order of buckets and replicas
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
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* The axes of a job: the ways in which its devices differ from each other. Where a device stands is a number an axis
 * (layout.h); the devices that differ along one axis alone are a group, and a group talks by a communicator of its own
 * (worlds.h). A new axis is a row.
 *
 * Whether a group talks by collectives of its own is a fact of the axis: stages hand values over by messages among all
 * workers, and need none.
 *
 * Ownership: constant. Threads: any.
 */

enum el_axis { EL_AXIS_DATA, EL_AXIS_STAGE, EL_AXIS_TENSOR, EL_AXIS_SHARD, EL_AXIS_COUNT };

struct el_axis_row {
    const char *name; /* in records: "data" */
    const char *word; /* in a mesh: "dp" of dp=2,pp=2 */
    const char *has;  /* what a device has along it, in words */
    bool groups;      /* its devices have a communicator of their own */
};

const struct el_axis_row *el_axis_row(enum el_axis axis);

/* A slice: which part of an array of the model an array here is, where one is cut across. What begins, is drawn, saved
 * and compared goes by the element's number in the whole array, its origin, so that every way of cutting has the same
 * numbers.
 *
 *     struct el_slice half = {.dim = 0, .first = 4, .of = 8};      rows 4 to 7 of 8: the shape has 4 rows
 *     for (int64_t i = 0; i < count; i += el_slice_run(&shape, &half))
 *         el_slice_at(&shape, &half, i)            where element i stands in the origin; the run's others follow it
 *
 * Units: elements. Threads: any.
 */

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

/* Along dimension `dim` the origin has `of`, and this begins at `first`. of 0: it is all of its origin. */
struct el_slice {
    int dim;
    int64_t first, of;
};

/* How many elements stand beside each other here and in the origin. */
int64_t el_slice_run(const struct el_shape *shape, const struct el_slice *slice);
int64_t el_slice_at(const struct el_shape *shape, const struct el_slice *slice, int64_t i);
struct el_shape el_slice_origin(const struct el_shape *shape, const struct el_slice *slice);
/* Values of the origin to those of the slice; and back, where the others stay as they are. */
void el_slice_take(const struct el_shape *shape, const struct el_slice *slice, const double *origin, double *values);
void el_slice_put(const struct el_shape *shape, const struct el_slice *slice, const double *values, double *origin);

enum { EL_NODE_INPUTS_MAX = 8, EL_NODE_PARAMS_MAX = 2, EL_NODE_BUFFERS_MAX = 2, EL_NODE_OUTPUTS_MAX = 4 };
enum { EL_GRAPH_NAME_BYTES = 48 };

/* In which types a model computes. Full: all in one, the pass's. BF16: parameters, norms, sums along the residual
 * stream and the loss in the pass's, matrix work, and what follows from it, in bf16, as torch.autocast has it; casts
 * are nodes. Pure: parameters and all activations in bf16. Mixed: the same in a pass, but parameters are stored in full
 * and cast before it, as with PyTorch's MixedPrecisionPolicy(param_dtype). */
enum el_precision { EL_PRECISION_FULL, EL_PRECISION_BF16, EL_PRECISION_BF16_PURE, EL_PRECISION_BF16_MIXED };

/* A value that flows between nodes; shape a sample. */
struct el_tensor {
    char name[EL_GRAPH_NAME_BYTES];
    enum el_dtype dtype; /* EL_I32 for ids; EL_BF16; EL_F32: the pass's float type */
    bool is_float;
    struct el_shape shape;
    int producer; /* node, -1 for an input */
    /* Of a node's output: some parameter that it depends on is not frozen. Of an input: it is of floating point. Else
     * it has no gradient, in a part of the model too. */
    bool requires_grad;
};

/* How an array begins. What is drawn is drawn by (seed, parameter, element). */
enum el_initial_kind { EL_INITIAL_CONSTANT, EL_INITIAL_UNIFORM, EL_INITIAL_NORMAL };
struct el_initial {
    enum el_initial_kind kind;
    double value; /* the constant; the bound, of [-bound, bound); the deviation, of a normal distribution around 0 */
};

static inline struct el_initial el_constant(double value)
{
    return (struct el_initial){EL_INITIAL_CONSTANT, value};
}
/* PyTorch's default for linear layers and convolutions (kaiming_uniform with a = sqrt(5)) has a bound of
 * 1 / sqrt(inputs of an output). */
static inline struct el_initial el_uniform(double bound)
{
    return (struct el_initial){EL_INITIAL_UNIFORM, bound};
}
static inline struct el_initial el_normal(double deviation)
{
    return (struct el_initial){EL_INITIAL_NORMAL, deviation};
}

/* An array that lives from step to step: a parameter, or a buffer, which forward changes and no gradient belongs to
 * (running statistics). */
struct el_param {
    char name[EL_GRAPH_NAME_BYTES];
    int origin; /* its number among the model's parameters, or buffers: what its initial values are drawn by */
    struct el_shape shape;
    struct el_slice slice; /* which part of its origin; all of it, unless el_graph_slice says otherwise */
    struct el_initial initial;
    double max_norm; /* of parameters: L2 limit of each row after a step; 0: none */
    bool transposed; /* in files, as [inputs, outputs] */
    bool flat;       /* in files, as one row */
    bool is_shared;  /* of a part: another part has it too */
    bool is_copy;    /* of a part: an earlier part has it too, as one that is used at both ends of a model */
    bool is_partial; /* of a piece: its gradient is that of the piece's tokens, and summed over the pieces */
    bool used;       /* by a node */
    bool frozen;     /* of parameters: stays as it is and has no gradient, as with torch's requires_grad=False */
};

/* How the weights of a linear layer are cut across (el_axis tensor): a piece has some of its outputs, or some of its
 * inputs. */
enum el_across { EL_ACROSS_NOT, EL_ACROSS_OUTPUTS, EL_ACROSS_INPUTS };

/* What the types need; each reads its own. */
struct el_node_attributes {
    bool relu;             /* linear, conv1d, batch_norm: the output is rectified */
    double rate;           /* dropout */
    int64_t window;        /* max_pool: its height and width */
    int64_t stride, pad;   /* conv2d, max_pool: both of height and width */
    int64_t heads;         /* attention: that this node has */
    enum el_across across; /* linear */
};

struct el_pass;
struct el_node;
struct el_graph;

/* What a node's backward needs of its forward: its inputs for the gradients of its weights; its output, or its first
 * input, for those of its inputs, backward_begin among them. */
enum { EL_KEEPS_INPUT_FOR_WEIGHTS = 1, EL_KEEPS_OUTPUT = 2, EL_KEEPS_INPUT = 4 };

/* What else forward leaves for backward, of one type: so many values a sample, and so many whatever the batch. */
struct el_kept {
    enum el_dtype dtype; /* EL_I32; else the pass's float type */
    int64_t per_sample, fixed;
};

/* What a node computes in where a model is mixed. Its inputs are cast to that. */
enum el_node_takes {
    EL_TAKES_WIDEST, /* the widest type of its inputs; where they are no numbers, the pass's */
    EL_TAKES_BF16,   /* matrix work */
    EL_TAKES_FULL,   /* the pass's type */
    EL_TAKES_ANY     /* inputs as they are; its output has the widest type of them */
};

/* How a kind of node works. Its hooks issue ops through pass.h's accessors. Backward goes begin, weights, inputs; or,
 * where a schedule parts it, begin and inputs, and weights at a later time. */
struct el_node_type {
    const char *name;
    /* Required. The shapes of its outputs; EL_ERR_INVALID where inputs or parameters do not fit. */
    enum el_status (*shape)(const struct el_graph *graph, const struct el_node *node, struct el_shape *shapes);
    int n_outputs; /* 0: one */
    /* Required. */
    void (*forward)(struct el_pass *pass, const struct el_node *node);
    /* Optional: default is nothing. Once, before the two others: changes the output's gradient, which both read. A kept
     * output is freed after it, as PyTorch's ReLU does: a node that has this hook reads its output nowhere else. */
    void (*backward_begin)(struct el_pass *pass, const struct el_node *node);
    /* Optional: default is that its inputs have no gradient. Where one kernel gives the gradients of inputs and of
     * parameters, it is issued here, and there is no backward_weights. */
    void (*backward_inputs)(struct el_pass *pass, const struct el_node *node);
    /* Optional: default is that it has no parameters, or that backward_inputs gives their gradients. */
    void (*backward_weights)(struct el_pass *pass, const struct el_node *node);
    unsigned keeps; /* EL_KEEPS_... for backward; of a node that rectifies its output too */
    /* Optional: default is nothing. Values that forward leaves for backward beside tensors (where a maximum was). */
    struct el_kept (*kept)(const struct el_graph *graph, const struct el_node *node);
    /* Optional: default false. Gradients become ready in the reverse order of parameters. PyTorch's Linear: the bias's,
     * then the weight's, which goes through a transposition first; Conv1d: the weight's, then the bias's. */
    bool last_param_first;
    enum el_node_takes takes;
    /* Optional: default 0. Parameters, as bits, that its kernels take in the pass's type where its tensors are of bf16.
     */
    unsigned params_full;
};

struct el_node {
    char name[EL_GRAPH_NAME_BYTES];
    const struct el_node_type *type;
    int index;
    int origin;            /* its index in the model's graph, casts not counted: what dropout draws by */
    int segment;           /* of nodes that stand together, and are computed again in backward (pass.h); 0: of none */
    struct el_slice slice; /* which part of its origin's output: of a model's last node, the classes */
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
    /* Tensors that come from outside, and that leave. A model has one of each; a part of it (part.h) what crosses its
     * cuts, where a tensor may be both: it passes through to a later part. */
    int n_inputs, n_outputs;
    int *inputs, *outputs;
    /* Of the model, in its parts too: its output is [batch, labels, classes], where a classifier has one label. */
    enum el_loss_kind loss;
    int64_t labels, classes;
    struct el_slice class_slice; /* which of the model's classes its output has; of 0: all */
    /* Of a model that is cut across its layers: this is piece `piece` of n_pieces; 0: of one that is not. */
    int piece, n_pieces;
    enum el_precision precision; /* set before anything is built */
    /* Sequence parallelism (Korthikanti et al., "Reducing Activation Recomputation", 2022): between the layers that are
     * cut a piece has 1/n of the tokens: of a batch [b, t, ...] those rows [piece b t / n, ...) of its b t, so that the
     * pieces, one behind another, are the batch (pass.h). */
    bool by_tokens;
    int segment;            /* of the nodes that are added next */
    enum el_status failure; /* first failure of building */
    struct el_error error;
};

extern const struct el_node_type el_node_embedding, el_node_conv1d, el_node_linear, el_node_max_time, el_node_concat,
    el_node_dropout, el_node_conv2d, el_node_batch_norm, el_node_max_pool, el_node_mean_pool, el_node_layer_norm,
    el_node_gelu, el_node_attention, el_node_residual, el_node_shift, el_node_cast;

enum el_status el_graph_create(struct el_graph **graph_p);
void el_graph_destroy(struct el_graph *graph); /* NULL is legal */

/* The model's input, a parameter, and a buffer: shapes as the kernels take them ([outputs, inputs], [filters, window,
 * channels], [filters, window, window, channels]); an input's is a sample's. A name beyond EL_GRAPH_NAME_BYTES - 1 is
 * cut. */
int el_graph_input(struct el_graph *graph, const char *name, enum el_dtype dtype, const struct el_shape *shape);
int el_graph_param(struct el_graph *graph, const char *name, const struct el_shape *shape, struct el_initial initial);
int el_graph_buffer(struct el_graph *graph, const char *name, const struct el_shape *shape, struct el_initial initial);
/* A parameter, or a node's output, is a part of what the whole model has: `first` and on of `of` along dimension `dim`.
 */
void el_graph_slice_param(struct el_graph *graph, int param, struct el_slice slice);
void el_graph_slice_node(struct el_graph *graph, int output, struct el_slice slice);
/* A parameter that nodes between the layers that are cut take: is_partial, where the graph is cut by tokens. */
void el_graph_between(struct el_graph *graph, int param);
/* Adds a node behind all others; inputs are ids of tensors, params of parameters, in the order that its type wants.
 * `attributes` NULL: all 0. Returns the id of its output, whose shape the type gives. */
int el_graph_node(struct el_graph *graph, const struct el_node_type *type, const char *name, const int *inputs,
                  int n_inputs, const int *params, int n_params, const struct el_node_attributes *attributes);
/* Files have the weight as a matrix [inputs, outputs], where the inputs are its last side here, and the bias as
 * [outputs]. */
void el_graph_store_transposed(struct el_graph *graph, int weight, int bias);
/* The node that makes tensor `output` has these buffers, in the order that its type wants. */
void el_graph_node_buffers(struct el_graph *graph, int output, const int *buffers, int n);
/* Freezes the parameter of this name, or those of the layer or group of layers of this name ("layer1" of
 * "layer1.0.conv1.weight"): PyTorch's names of parameters and modules. Returns how many: 0, there is none of it. Before
 * finish. */
int el_graph_freeze(struct el_graph *graph, const char *name);
/* Names the output and its loss. Errors: the first failure of building; EL_ERR_INVALID where nothing is trained. */
enum el_status el_graph_finish(struct el_graph *graph, int output, enum el_loss_kind loss);

/* In a pass of floating type `full`: what a tensor is of, and what parameters that it takes are. */
static inline enum el_dtype el_tensor_dtype(const struct el_tensor *tensor, enum el_dtype full)
{
    return tensor->dtype == EL_F32 ? full : tensor->dtype;
}
static inline enum el_dtype el_param_dtype(enum el_precision precision, enum el_dtype full)
{
    return precision >= EL_PRECISION_BF16_PURE ? EL_BF16 : full;
}
/* Of the model's output. */
static inline enum el_dtype el_graph_output_dtype(const struct el_graph *graph, enum el_dtype full)
{
    return graph->precision == EL_PRECISION_FULL ? full : EL_BF16;
}

static inline int64_t el_param_count(const struct el_graph *graph, int param)
{
    return el_shape_count(&graph->params[param].shape);
}
/* A sample's: elements of the model's output, and bytes of its labels, which are int32. */
static inline int64_t el_graph_output_count(const struct el_graph *graph)
{
    return graph->labels * graph->classes;
}
static inline size_t el_graph_label_bytes(const struct el_graph *graph)
{
    return (size_t)graph->labels * sizeof(int32_t);
}
/* Whether a node reads it: else it gets no gradient. */
bool el_graph_uses_param(const struct el_graph *graph, int param);
/* Whether it gets a gradient: it is used, and not frozen. */
bool el_graph_trains_param(const struct el_graph *graph, int param);
/* Whether it has a parameter that is not frozen. */
bool el_node_trains(const struct el_graph *graph, const struct el_node *node);
/* EL_KEEPS_...: what its backward reads, as far as it has one. */
unsigned el_graph_keeps(const struct el_graph *graph, const struct el_node *node);
/* The first node of its segment, and the one before whose backward the segment is computed again: the last one that
 * reads what forward left; -1: none does. */
int el_graph_again_from(const struct el_graph *graph, const struct el_node *node);
int el_graph_again_at(const struct el_graph *graph, const struct el_node *node);
/* Elements of all parameters together: P / size(dtype); and of those that are not frozen. */
int64_t el_graph_param_count(const struct el_graph *graph);
int64_t el_graph_trained_count(const struct el_graph *graph);
