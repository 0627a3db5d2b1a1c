/* The ops' names, types and costs by definition.
 *
 * Costs are the definition's for every implementation. An operand that is read and written (`acc`, a parameter's
 * update) counts for each. A comparison, root, exponential or logarithm counts as one FLOP. */
#include "kernels/kernels.h"

#include <string.h>

#include "kernels/window.h"

size_t el_dtype_bytes(enum el_dtype dtype)
{
    static const size_t bytes[EL_DTYPE_COUNT] = {
        [EL_F32] = 4, [EL_F64] = 8, [EL_I32] = 4, [EL_U8] = 1, [EL_F16] = 2, [EL_BF16] = 2};
    return (unsigned)dtype < EL_DTYPE_COUNT ? bytes[dtype] : 0;
}

const char *el_dtype_name(enum el_dtype dtype)
{
    static const char *const names[EL_DTYPE_COUNT] = {
        [EL_F32] = "f32", [EL_F64] = "f64", [EL_I32] = "i32", [EL_U8] = "u8", [EL_F16] = "f16", [EL_BF16] = "bf16"};
    return (unsigned)dtype < EL_DTYPE_COUNT ? names[dtype] : "unknown";
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

bool el_op_multiplies(const char *name)
{
    return begins(name, "linear_") || begins(name, "conv") || begins(name, "grouped_");
}

bool el_op_is_bound_by_flops(const char *name)
{
    return el_op_multiplies(name) || begins(name, "attention_");
}

const char *el_op_name(enum el_op_kind op)
{
    static const char *const names[EL_OP_COUNT] = {
#define EL_OP_NAME(op, name) [op] = #name,
        EL_OP_LIST(EL_OP_NAME)
#undef EL_OP_NAME
    };
    return (unsigned)op < EL_OP_COUNT ? names[op] : "unknown";
}

enum el_status el_kernel_run(const struct el_kernel *kernel, const struct el_kernel_args *args)
{
    struct el_kernel_args one = *args;
    if (args->n_tensors == 0 || kernel->takes_many) return kernel->run(args);
    one.n_tensors = 0;
    for (int t = 0; t < args->n_tensors; t++) {
        memcpy(one.p, args->tensors[t].p, sizeof args->tensors[t].p);
        one.d[0] = args->tensors[t].n;
        EL_TRY(kernel->run(&one));
    }
    return EL_OK;
}

enum el_status el_batch_norm_check(int64_t n)
{
    if (n > 1) return EL_OK;
    return el_fail(EL_ERR_INTERNAL,
                   "batch norm: %lld value per channel has no variance to train on: give each device "
                   "(and micro-batch) at least 2 samples, or larger images",
                   (long long)n);
}

struct work {
    double flops, reals, ints;
};

/* Forward reads only the rows that ids name; backward writes all rows. */
static struct work embedding_work(enum el_op_kind op, const int64_t *d, double acc)
{
    double n = (double)d[0], v = (double)d[1], e = (double)d[2];
    if (op == EL_OP_EMBEDDING_FORWARD) return (struct work){0, 2 * n * e, n};
    return (struct work){n * e, n * e + (1 + acc) * v * e, n};
}

/* `rows` outputs of `o` values, each from `i` inputs; `x`: input elements (fewer than rows * i for overlapping
 * windows). */
static struct work matrix_work(double rows, double i, double o, double x, int backward_data, double acc)
{
    double products = 2 * rows * i * o, w = i * o, y = rows * o;
    if (backward_data) return (struct work){products + acc * x, y + w + (1 + acc) * x, 0};
    return (struct work){products + y, x + y + (1 + acc) * (w + o), 0};
}

/* Taps outside the image count as products, by convention. */
static struct work conv2d_work(enum el_op_kind op, const int64_t *d, double acc)
{
    const struct el_window s = el_window_of_conv2d(d);
    double x = (double)(s.b * s.h * s.w * s.c), taps = (double)(s.k * s.k * s.c), f = (double)s.f;
    double y = (double)(s.b * s.oh * s.ow) * f, products = 2 * y * taps;
    if (op == EL_OP_CONV2D_FORWARD) return (struct work){products, x + f * taps + y, 0};
    if (op == EL_OP_CONV2D_BACKWARD_DATA) return (struct work){products + acc * x, y + f * taps + (1 + acc) * x, 0};
    return (struct work){products + acc * f * taps, x + y + (1 + acc) * f * taps, 0};
}

/* Per element: mean 1, variance 3, output 4 operations. Backward: sums 1 and 4, result 4. */
static struct work batch_norm_work(enum el_op_kind op, const struct el_kernel_args *args)
{
    double c = (double)args->d[1], nc = (double)args->d[0] * c;
    if (op == EL_OP_BATCH_NORM_FORWARD) return (struct work){(8 + (args->s[2] != 0)) * nc, 2 * nc + 8 * c, 0};
    if (op == EL_OP_BATCH_NORM_INFERENCE) return (struct work){(4 + (args->s[1] != 0)) * nc, 2 * nc + 4 * c, 0};
    double acc = args->s[0] != 0;
    return (struct work){9 * nc + 2 * acc * c, 3 * nc + (3 + 2 * (1 + acc)) * c, 0};
}

static struct work pool_work(enum el_op_kind op, const int64_t *d, double acc)
{
    if (op == EL_OP_MEAN_POOL_FORWARD || op == EL_OP_MEAN_POOL_BACKWARD) {
        double y = (double)(d[0] * d[2]), x = y * (double)d[1];
        if (op == EL_OP_MEAN_POOL_FORWARD) return (struct work){x, x + y, 0};
        return (struct work){(1 + acc) * x, (1 + acc) * x + y, 0};
    }
    const struct el_window s = el_window_of_pool(d);
    double x = (double)(s.b * s.h * s.w * s.c), y = (double)(s.b * s.oh * s.ow * s.c);
    if (op == EL_OP_MAX_POOL_FORWARD) return (struct work){y * (double)(s.k * s.k), x + y, y};
    return (struct work){y, x + y, y};
}

static struct work image_work(enum el_op_kind op, const struct el_kernel_args *args)
{
    switch (op) {
    case EL_OP_CONV2D_FORWARD:
    case EL_OP_CONV2D_BACKWARD_DATA:
    case EL_OP_CONV2D_BACKWARD_WEIGHTS:
        return conv2d_work(op, args->d, args->s[0] != 0);
    case EL_OP_BATCH_NORM_FORWARD:
    case EL_OP_BATCH_NORM_INFERENCE:
    case EL_OP_BATCH_NORM_BACKWARD:
        return batch_norm_work(op, args);
    case EL_OP_MAX_POOL_FORWARD:
    case EL_OP_MAX_POOL_BACKWARD:
    case EL_OP_MEAN_POOL_FORWARD:
    case EL_OP_MEAN_POOL_BACKWARD:
        return pool_work(op, args->d, args->s[0] != 0);
    default:
        return (struct work){0, 0, 0};
    }
}

static struct work layer_work(enum el_op_kind op, const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    double d0 = (double)d[0], d1 = (double)d[1], d2 = (double)d[2], f = (double)d[3], k = (double)d[4];
    double acc = args->s[0] != 0, windows = d0 * (d1 - k + 1), x = d0 * d1 * d2;
    switch (op) {
    case EL_OP_EMBEDDING_FORWARD:
    case EL_OP_EMBEDDING_BACKWARD:
        return embedding_work(op, d, acc);
    case EL_OP_CONV1D_FORWARD:
        return matrix_work(windows, k * d2, f, x, 0, 0);
    case EL_OP_CONV1D_BACKWARD_DATA:
        return matrix_work(windows, k * d2, f, x, 1, acc);
    case EL_OP_CONV1D_BACKWARD_WEIGHTS:
        return matrix_work(windows, k * d2, f, x, 0, acc);
    case EL_OP_LINEAR_FORWARD:
        return matrix_work(d0, d1, d2, d0 * d1, 0, 0);
    case EL_OP_LINEAR_BACKWARD_DATA:
        return matrix_work(d0, d1, d2, d0 * d1, 1, acc);
    case EL_OP_LINEAR_BACKWARD_WEIGHTS:
        return matrix_work(d0, d1, d2, d0 * d1, 0, acc);
    case EL_OP_MAX_TIME_FORWARD:
        return (struct work){x, x + d0 * d2, d0 * d2};
    case EL_OP_MAX_TIME_BACKWARD:
        return (struct work){0, x + d0 * d2, d0 * d2};
    default:
        return image_work(op, args);
    }
}

/* Layer norm counts as batch norm. GELU: 8 operations and a tanh, 9 more for its slope. Attention: products of visible
 * pairs, t (t + 1) / 2 per head: two forward, five backward (scores again). */
static struct work sequence_work(enum el_op_kind op, const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    double n = (double)d[0], nc = n * (double)d[1], acc = args->s[0] != 0, acc_params = args->s[1] != 0;
    double values = nc * (double)(d[2] * d[3]), pairs = nc * (double)d[2] * (double)(d[1] + 1) / 2;
    switch (op) {
    case EL_OP_LAYER_NORM_FORWARD:
        return (struct work){8 * nc, 2 * nc + 2 * (double)d[1] + 2 * n, 0};
    case EL_OP_LAYER_NORM_BACKWARD:
        return (struct work){(12 + acc) * nc, (3 + acc) * nc + (3 + 2 * acc_params) * (double)d[1] + 2 * n, 0};
    case EL_OP_GELU_FORWARD:
        return (struct work){9 * n, 2 * n, 0};
    case EL_OP_GELU_BACKWARD:
        return (struct work){18 * n, 3 * n, 0};
    case EL_OP_ATTENTION_FORWARD:
        return (struct work){pairs * (4 * (double)d[3] + 4), 4 * values + nc * (double)d[2], 0};
    case EL_OP_ATTENTION_BACKWARD:
        return (struct work){pairs * (10 * (double)d[3] + 6), 7 * values + nc * (double)d[2], 0};
    default:
        return layer_work(op, args);
    }
}

/* Router: softmax and choice, 5 operations per logit. Experts: only used rows count. SwiGLU: 8 forward, 14 more back.
 */
static struct work expert_work(enum el_op_kind op, const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    const double rows = args->s[1], acc = args->s[0] != 0, logits = (double)(d[0] * d[1] * d[2]);
    const double choices = (double)(d[0] * d[1] * d[3]), io = (double)(d[1] * d[2]), weights = io * (double)d[3];
    const double values = (double)(d[0] * d[1]), taken = values * (double)d[2], wide = rows * (double)d[1];
    switch (op) {
    case EL_OP_ROUTE_FORWARD:
        return (struct work){5 * logits, logits + choices, choices};
    case EL_OP_ROUTE_BACKWARD:
        return (struct work){9 * logits, 2 * logits + 2 * choices, choices};
    case EL_OP_ROUTE_PLACE:
        return (struct work){0, 0, 2 * choices + (double)(d[0] * d[2])};
    case EL_OP_ROWS_TAKE:
        return (struct work){0, values + taken, (double)(d[0] * d[2])};
    case EL_OP_ROWS_GIVE:
        return (struct work){taken, (1 + acc) * values + taken, (double)(d[0] * d[2])};
    case EL_OP_GROUPED_FORWARD:
    case EL_OP_GROUPED_BACKWARD_DATA:
        return (struct work){2 * rows * io, rows * (double)(d[1] + d[2]) + weights, (double)(d[3] * d[4] * d[5])};
    case EL_OP_GROUPED_BACKWARD_WEIGHTS:
        return (struct work){2 * rows * io + acc * weights, rows * (double)(d[1] + d[2]) + (1 + acc) * weights,
                             (double)(d[3] * d[4] * d[5])};
    case EL_OP_SWIGLU_FORWARD:
        return (struct work){8 * wide, 3 * wide + rows, (double)(d[2] * d[3] * d[4])};
    case EL_OP_SWIGLU_BACKWARD:
        return (struct work){22 * wide, 5 * wide + 2 * rows, (double)(d[2] * d[3] * d[4])};
    default:
        return (struct work){0, 0, 0};
    }
}

static struct work element_work(enum el_op_kind op, const struct el_kernel_args *args)
{
    double n = (double)args->d[0], rn = n * (double)args->d[1], acc = args->s[0] != 0;
    switch (op) {
    case EL_OP_RELU_BACKWARD:
        return (struct work){n, 3 * n, 0};
    case EL_OP_DROPOUT:
        return (struct work){rn, 2 * rn, 0};
    case EL_OP_ADD_ROW:
        return (struct work){rn, 2 * rn + (double)args->d[1], 0};
    case EL_OP_SUM_ROWS:
        return (struct work){rn, rn + (1 + acc) * (double)args->d[1], 0};
    case EL_OP_COPY_COLUMNS:
        return (struct work){acc * rn, (2 + acc) * rn, 0};
    case EL_OP_CROSS_ENTROPY:
        return (struct work){5 * rn + 3 * n, 2 * rn + 1, n};
    case EL_OP_CROSS_ENTROPY_PIECE:
        return (struct work){3 * rn, rn + 3 * n, n};
    case EL_OP_CROSS_ENTROPY_JOIN:
        return (struct work){3 * rn + 3 * n * (double)args->d[4], 2 * rn + 3 * n * (double)args->d[4] + 1, n};
    case EL_OP_MSE:
        return (struct work){4 * rn, 2 * rn + 1, n};
    case EL_OP_SCALE:
        return (struct work){n, 2 * n, 0};
    case EL_OP_ADD:
        return (struct work){n, 3 * n, 0};
    case EL_OP_CAST: /* x is counted below */
        return (struct work){(1 + (args->s[1] != 0)) * n, (1 + (args->s[1] != 0)) * n, 0};
    case EL_OP_FILL:
        return (struct work){0, n, 0};
    case EL_OP_SUM_SQUARES:
        return (struct work){2 * n, n + 2, 0};
    case EL_OP_CLIP:
        return (struct work){n, 2 * n + 1, 0};
    case EL_OP_SGD:
        return (struct work){2 * n, 3 * n, 0};
    case EL_OP_MOMENTUM:
        return (struct work){4 * n, 5 * n, 0};
    case EL_OP_ADAM:
        return (struct work){(13 + (args->s[5] != 0)) * n, 7 * n, 0};
    case EL_OP_MAX_NORM:
        return (struct work){3 * rn, 2 * rn, 0};
    default:
        return sequence_work(op, args);
    }
}

struct el_op_cost el_op_cost(enum el_op_kind op, enum el_dtype dtype, const struct el_kernel_args *args)
{
    struct work work = el_op_is_of_experts(op) ? expert_work(op, args) : element_work(op, args);
    double bytes = work.reals * (double)el_dtype_bytes(dtype) + work.ints * (double)el_dtype_bytes(EL_I32);
    if (op == EL_OP_CAST) bytes += (double)args->d[0] * (double)el_dtype_bytes((enum el_dtype)args->k[0]);
    return (struct el_op_cost){.flops = work.flops, .bytes = bytes};
}
