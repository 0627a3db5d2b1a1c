/* Every compute op: its formula, its operands' shapes, and how a backend offers it.
 * `struct el_kernel_args` describes one op by pointers p[], sizes d[], scalars s[] and keys k[]. Tensors are dense and
 * row-major. Activations are channels-last: sequences [batch, time, channels], images [batch, height, width, channels].
 * Floating tensors have the op's type (f32, f64 or bf16); ids, labels and argmax are int32. Operands overlap only where
 * "may be" says so.
 * bf16 rows compute in f32 and round each output once. Their f32 operands: a norm's scale, shift and statistics,
 * attention's `saved`, losses and their parts, sums of squares, an optimizer's m, v, denominator and root, and
 * gradients of parameters (dw, dbias, dtable, dscale, dshift, the row of sum_rows).
 * A table (struct el_kernel_table) has a row for each op and type: kernels/reference in plain C (f32, f64), kernels/cpu
 * with oneDNN and vector loops (f32, bf16), kernels/cuda for GPUs, where run() only enqueues on the stream in `native`.
 * A row's life:
 *
 *     workspace()  at capture: bytes of scratch                   (any thread)
 *     prepare()    once per op, on the computing thread, pointers known
 *     run()        every step, on that thread; allocates nothing
 *     release()    once
 *
 * Formulas are PyTorch's: Conv1d (valid, stride 1), Conv2d without bias, BatchNorm2d (n: all pixels of all samples),
 * MaxPool2d, AdaptiveAvgPool2d(1), cross_entropy, mse_loss, torch.optim's SGD, Adam and AdamW, clip_grad_norm_
 * (sum_squares, clip), renorm (max_norm).
 * Threads: different threads may call a row for different ops at once. Errors: EL_ERR_INTERNAL with the library's
 * message, or for an id or label out of range; on GPUs its row is NaN and its gradient is left out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

/* Kernels have f32, f64 and bf16, with i32 ids; f16 has cast and fill; u8 has only collectives (runtime/comm). */
enum el_dtype { EL_F32, EL_F64, EL_I32, EL_U8, EL_F16, EL_BF16, EL_DTYPE_COUNT };

size_t el_dtype_bytes(enum el_dtype dtype);
const char *el_dtype_name(enum el_dtype dtype); /* "f32" */

/* The ops. p[] in the order written, inputs before the arrow, outputs after it; d[] and s[] in the order written.
 * `acc` (a scalar, 0 or 1): 1 adds to the output, 0 overwrites it. */
#define EL_OP_LIST(X)                                                                                                  \
    /* ids[n] i32, table[v,e] -> y[n,e]                     d: n v e first of */                                       \
    /* of a piece of a table, where `of` is not 0: ids below `of`, its rows are first ...; others' y is 0        */    \
    X(EL_OP_EMBEDDING_FORWARD, embedding_forward)                                                                      \
    /* ids[n] i32, dy[n,e] -> dtable[v,e]                   d: n v e first of   s: acc   (rows not named become 0) */  \
    X(EL_OP_EMBEDDING_BACKWARD, embedding_backward)                                                                    \
    /* x[b,l,c], w[f,k,c], bias[f] -> y[b,l-k+1,f]          d: b l c f k   s: relu (1: y = max(y,0))                */ \
    X(EL_OP_CONV1D_FORWARD, conv1d_forward)                                                                            \
    /* dy[b,l-k+1,f], w[f,k,c] -> dx[b,l,c]                 d: b l c f k   s: acc                                   */ \
    X(EL_OP_CONV1D_BACKWARD_DATA, conv1d_backward_data)                                                                \
    /* x[b,l,c], dy[b,l-k+1,f] -> dw[f,k,c], dbias[f]       d: b l c f k   s: acc                                   */ \
    X(EL_OP_CONV1D_BACKWARD_WEIGHTS, conv1d_backward_weights)                                                          \
    /* x[b,h,w,c], w[f,k,k,c] -> y[b,oh,ow,f]               d: b h w c f k stride pad   (oh, ow: kernels/window.h)  */ \
    /* k of all three: 1 where w, or dw, is in the table's stored layout (el_weights_layout), 0: plain              */ \
    X(EL_OP_CONV2D_FORWARD, conv2d_forward)                                                                            \
    /* dy[b,oh,ow,f], w[f,k,k,c] -> dx[b,h,w,c]             d: b h w c f k stride pad   s: acc                      */ \
    X(EL_OP_CONV2D_BACKWARD_DATA, conv2d_backward_data)                                                                \
    /* x[b,h,w,c], dy[b,oh,ow,f] -> dw[f,k,k,c]             d: b h w c f k stride pad   s: acc                      */ \
    X(EL_OP_CONV2D_BACKWARD_WEIGHTS, conv2d_backward_weights)                                                          \
    /* x[b,i], w[o,i], bias[o] or NULL -> y[b,o]            d: b i o   s: relu                                      */ \
    X(EL_OP_LINEAR_FORWARD, linear_forward)                                                                            \
    /* dy[b,o], w[o,i] -> dx[b,i]                           d: b i o   s: acc                                       */ \
    X(EL_OP_LINEAR_BACKWARD_DATA, linear_backward_data)                                                                \
    /* x[b,i], dy[b,o] -> dw[o,i], dbias[o] or NULL         d: b i o   s: acc                                       */ \
    X(EL_OP_LINEAR_BACKWARD_WEIGHTS, linear_backward_weights)                                                          \
    /* x[n,c], scale[c], shift[c], residual[n,c] or NULL                                                            */ \
    /* -> running_mean[c], running_var[c], y[n,c], saved[2,c]    d: n c   s: eps momentum relu   (n > 1)            */ \
    /* y = relu?(scale*(x - mean)*rstd + shift + residual); saved: mean, rstd = 1/sqrt(biased variance + eps);      */ \
    /* running = (1-momentum)*running + momentum*(mean; unbiased variance)                                          */ \
    X(EL_OP_BATCH_NORM_FORWARD, batch_norm_forward)                                                                    \
    /* x, scale, shift, residual or NULL, running_mean, running_var -> y   d: n c   s: eps relu                     */ \
    X(EL_OP_BATCH_NORM_INFERENCE, batch_norm_inference)                                                                \
    /* dy[n,c], x[n,c], y[n,c] or NULL (no relu), scale[c], saved[2,c]                                              */ \
    /* -> dx[n,c], dscale[c], dshift[c], dresidual[n,c] or NULL   d: n c   s: acc of dscale and dshift, of dresidual*/ \
    /* dy counts where y > 0. (dx is overwritten; dresidual may be dy)                                              */ \
    X(EL_OP_BATCH_NORM_BACKWARD, batch_norm_backward)                                                                  \
    /* x[n,c], scale[c], shift[c] -> y[n,c], saved[n,2]     d: n c   s: eps                                         */ \
    /* y = scale*(x - mean)*rstd + shift of each row; saved: mean, rstd = 1/sqrt(biased variance + eps)             */ \
    X(EL_OP_LAYER_NORM_FORWARD, layer_norm_forward)                                                                    \
    /* dy[n,c], x[n,c], scale[c], saved[n,2]                                                                        */ \
    /* -> dx[n,c], dscale[c], dshift[c]                     d: n c   s: acc of dx, acc of the other two             */ \
    X(EL_OP_LAYER_NORM_BACKWARD, layer_norm_backward)                                                                  \
    /* x[n] -> y[n] = x/2 * (1 + tanh(u)), u = sqrt(2/pi) * (x + 0.044715 x^3)   d: n   (torch's approximate="tanh")   \
     */                                                                                                                \
    X(EL_OP_GELU_FORWARD, gelu_forward)                                                                                \
    /* dy[n], x[n] -> dx[n]                                 d: n   (dx may be dy)                                   */ \
    X(EL_OP_GELU_BACKWARD, gelu_backward)                                                                              \
    /* qkv[b,t,3*h,s] -> y[b,t,h,s], saved[b,h,t]           d: b t h s                                              */ \
    /* of each sample and head: y = softmax(q k' / sqrt(s)) v, where a row sees no later one (causal); a row of qkv */ \
    /* has h heads of q, then of k, then of v. saved: the log of the sum of exp, of which backward makes softmax    */ \
    X(EL_OP_ATTENTION_FORWARD, attention_forward)                                                                      \
    /* dy[b,t,h,s], qkv[b,t,3*h,s], saved[b,h,t] -> dqkv[b,t,3*h,s]   d: b t h s                                    */ \
    X(EL_OP_ATTENTION_BACKWARD, attention_backward)                                                                    \
    /* Experts. A sample has t tokens, each goes to k of e experts. Rows are a matrix of r rows: one part each of m    \
     * ranks, */                                                                                                       \
    /* each part r / m rows: by expert, then by sample, then first choices first; only the first ones are used. */     \
    /* counts: a part's rows of each sample and expert */                                                              \
    /* logits[b,t,e], table[rows,e] or NULL -> weights[b,t,k], chosen[b,t,k] i32   d: b t e k first stride rows */     \
    /* s: balanced   k: seed node. The k largest logits, the first of equals; or drawn without replacement by the      \
     * table's */                                                                                                      \
    /* row of the step, rows in turn; or (balanced) in turn. weights: softmax of the chosen logits; of all where k is  \
     * 1 */                                                                                                            \
    X(EL_OP_ROUTE_FORWARD, route_forward)                                                                              \
    /* dweights[b,t,k], logits[b,t,e], weights[b,t,k], chosen[b,t,k] i32 -> dlogits[b,t,e]   d: b t e k   s: aux z */  \
    /* adds the gradients, for each sample, of aux * e * sum over experts of (choices / t) * (mean softmax), and of */ \
    /* z * mean (log sum exp)^2 */                                                                                     \
    X(EL_OP_ROUTE_BACKWARD, route_backward)                                                                            \
    /* chosen[b,t,k] i32 -> place[b,t,k] i32, counts[m,b,e/m] i32, log[2,e] i32 or NULL, again[m,b,e/m] i32 or NULL    \
     * d: b t e k m r capacity */                                                                                      \
    /* place: the row; -1: dropped, as a sample's first `capacity` choices of an expert stay (0: all). log: choices    \
     * and rows are added. again: the counts once more, in the place of those that other ranks may send */             \
    X(EL_OP_ROUTE_PLACE, route_place)                                                                                  \
    /* x[n,w], place[n,k] i32 -> rows[r,w]                  d: n w k r   (rows that have no place stay as they are) */ \
    X(EL_OP_ROWS_TAKE, rows_take)                                                                                      \
    /* rows[r,w], place[n,k] i32 -> y[n,w], the sum of its rows   d: n w k r   s: acc */                               \
    X(EL_OP_ROWS_GIVE, rows_give)                                                                                      \
    /* x[r,i], w[e,o,i], counts[m,g,e] i32 -> y[r,o]        d: r i o e m g   s: acc rows (used ones, for the costs) */ \
    X(EL_OP_GROUPED_FORWARD, grouped_forward)                                                                          \
    /* dy[r,o], w[e,o,i], counts[m,g,e] i32 -> dx[r,i]      d: r i o e m g   s: acc rows */                            \
    X(EL_OP_GROUPED_BACKWARD_DATA, grouped_backward_data)                                                              \
    /* x[r,i], dy[r,o], counts[m,g,e] i32 -> dw[e,o,i]      d: r i o e m g   s: acc rows scale (of dw) */              \
    X(EL_OP_GROUPED_BACKWARD_WEIGHTS, grouped_backward_weights)                                                        \
    /* h[r,c+c], scale[r], counts[m,g,e] i32 -> y[r,c] = scale * silu(h's first c) * (its last c)   d: r c e m g   s:  \
     * - rows */                                                                                                       \
    X(EL_OP_SWIGLU_FORWARD, swiglu_forward)                                                                            \
    /* dy[r,c], h[r,c+c], scale[r], counts[m,g,e] i32 -> dh[r,c+c], dscale[r]   d: r c e m g   s: - rows */            \
    X(EL_OP_SWIGLU_BACKWARD, swiglu_backward)                                                                          \
    /* x[r,n], row[n] -> y[r,n] = x + row                   d: r n   (y may be x)                                   */ \
    X(EL_OP_ADD_ROW, add_row)                                                                                          \
    /* x[r,n] -> row[n], the sum of the rows                d: r n   s: acc                                         */ \
    X(EL_OP_SUM_ROWS, sum_rows)                                                                                        \
    /* dy[n], y[n] -> dx[n] = y > 0 ? dy : 0                d: n   (dx may be dy)                                   */ \
    X(EL_OP_RELU_BACKWARD, relu_backward)                                                                              \
    /* x[b,t,f] -> y[b,f], at[b,f] i32                      d: b t f   (the first maximum wins)                     */ \
    X(EL_OP_MAX_TIME_FORWARD, max_time_forward)                                                                        \
    /* dy[b,f], at[b,f] i32 -> dx[b,t,f]                    d: b t f   (0 where not the maximum)                    */ \
    X(EL_OP_MAX_TIME_BACKWARD, max_time_backward)                                                                      \
    /* x[b,h,w,c] -> y[b,oh,ow,c], at[b,oh,ow,c] i32        d: b h w c k stride pad   (pad < k; the first maximum   */ \
    /* wins, padding never; at: its place in the window, row * k + column)                                          */ \
    X(EL_OP_MAX_POOL_FORWARD, max_pool_forward)                                                                        \
    /* dy[b,oh,ow,c], at[b,oh,ow,c] i32 -> dx[b,h,w,c]       d: b h w c k stride pad                                */ \
    X(EL_OP_MAX_POOL_BACKWARD, max_pool_backward)                                                                      \
    /* x[b,hw,c] -> y[b,c]                                  d: b hw c                                               */ \
    X(EL_OP_MEAN_POOL_FORWARD, mean_pool_forward)                                                                      \
    /* dy[b,c] -> dx[b,hw,c] = dy / hw                      d: b hw c   s: acc                                      */ \
    X(EL_OP_MEAN_POOL_BACKWARD, mean_pool_backward)                                                                    \
    /* x[r,n] -> y[r,n]   d: r n first stride run apart from   s: rate     k: seed node                            */  \
    /* y = keep ? x/(1-rate) : 0; keep iff uniform(key(seed, DROPOUT, node), step << 32 | (first + r*stride), e)    */ \
    /* e = n; of a slice, where run is not 0: from + n / run * apart + n % run                                      */ \
    /* >= rate: by global sample, so that all ways of splitting a batch drop the same elements. The same op on dy   */ \
    /* is its own backward. (y may be x)                                                                            */ \
    X(EL_OP_DROPOUT, dropout)                                                                                          \
    /* x[r,ldx] -> y[r,ldy]: the first c columns of each row    d: r c ldx ldy   s: acc  (p are at the first column)   \
     */                                                                                                                \
    X(EL_OP_COPY_COLUMNS, copy_columns)                                                                                \
    /* logits[b,c], labels[b] i32 -> loss[1], dlogits[b,c]  d: b c   loss = mean of -log softmax; dlogits its       */ \
    /* gradient                                                                                                     */ \
    X(EL_OP_CROSS_ENTROPY, cross_entropy)                                                                              \
    /* the same where each of several devices has c of all `of` classes, from `first` on: logits[b,c], labels[b] */    \
    /* -> part[b,3]: the row's maximum, its sum of exp(x - maximum), the label's logit (0: another piece has it) */    \
    /* d: b c first of                                                                                           */    \
    X(EL_OP_CROSS_ENTROPY_PIECE, cross_entropy_piece)                                                                  \
    /* logits[b,c], labels[b], parts[m,b,3] of all m pieces -> loss[1], dlogits[b,c]   d: b c first of m         */    \
    X(EL_OP_CROSS_ENTROPY_JOIN, cross_entropy_join)                                                                    \
    /* y[b,c], labels[b] i32 -> loss[1], dy[b,c]            d: b c   loss = mean over b*c of (y - onehot)^2         */ \
    /* (c = 1: onehot is 1 for label 0 and 0 for label 1)                                                           */ \
    X(EL_OP_MSE, mse)                                                                                                  \
    /* x[n] -> y[n] = s * x                                 d: n   s: s   (y may be x)                              */ \
    X(EL_OP_SCALE, scale)                                                                                              \
    /* x[n] -> y[n] += x                                    d: n                                                    */ \
    X(EL_OP_ADD, add)                                                                                                  \
    /* x[n] of type k -> y[n] (+)= s * x                    d: n   s: s acc   k: enum el_dtype of x                 */ \
    /* (to f16: s * x rounded to f16, which is rounded again, as PyTorch's hook casts and then divides)             */ \
    X(EL_OP_CAST, cast)                                                                                                \
    /* -> y[n] = s                                          d: n   s: s                                             */ \
    X(EL_OP_FILL, fill)                                                                                                \
    /* x[n] -> sum[1] += the sum of x*x                     d: n                                                    */ \
    X(EL_OP_SUM_SQUARES, sum_squares)                                                                                  \
    /* sum[1] -> x[n] *= min(1, s / (sqrt(sum) + 1e-6))     d: n   s: s   (as torch's: of a sum that is NaN, NaN)   */ \
    X(EL_OP_CLIP, clip)                                                                                                \
    /* g[n] -> w[n] -= lr*g                                 d: n   s: lr */                                            \
    X(EL_OP_SGD, sgd)                                                                                                  \
    /* g[n] -> w[n], m[n]:  m = mu*m + g; w -= lr*m         d: n   s: lr mu */                                         \
    X(EL_OP_MOMENTUM, momentum)                                                                                        \
    /* g[n] -> w[n], m[n], v[n]                             d: n   s: lr beta1 beta2 eps decay */                      \
    /* torch.optim.AdamW, and Adam where decay is 0: w *= 1 - lr*decay, then                                        */ \
    /* m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g*g; t = step + 1;                                                    */ \
    /* w -= lr/(1-b1^t) * m / (sqrt(v)/sqrt(1-b2^t) + eps)                                                          */ \
    /* -> denominator[n], root[n], optional: sqrt(v)/sqrt(1-b2^t) + eps and sqrt(v), which PyTorch keeps as tensors */ \
    X(EL_OP_ADAM, adam)                                                                                                \
    /* -> w[r,n]: a row whose L2 norm exceeds s is scaled to s   d: r n   s: s                                      */ \
    X(EL_OP_MAX_NORM, max_norm)

enum el_op_kind {
#define EL_OP_ENUM(op, name) op,
    EL_OP_LIST(EL_OP_ENUM)
#undef EL_OP_ENUM
        EL_OP_COUNT
};

/* Experts of a layer; those that a token goes to. */
enum { EL_EXPERTS_MAX = 512, EL_EXPERTS_CHOSEN_MAX = 16 };

static inline bool el_op_is_of_experts(enum el_op_kind op)
{
    return op >= EL_OP_ROUTE_FORWARD && op <= EL_OP_SWIGLU_BACKWARD;
}

enum { EL_ARGS_POINTERS = 10, EL_ARGS_SIZES = 8, EL_ARGS_SCALARS = 6, EL_ARGS_KEYS = 2, EL_STEP_VALUES_BYTES = 64 };

/* p[] and d[0] of one tensor, for ops over many tensors. */
enum { EL_TENSOR_POINTERS = 6 };
struct el_kernel_tensor {
    void *p[EL_TENSOR_POINTERS];
    int64_t n;
};

/* The arguments of one op. They are fixed at capture, except `step`, which counts from 0 and is set before each run. */
struct el_kernel_args {
    void *p[EL_ARGS_POINTERS];
    int64_t d[EL_ARGS_SIZES];
    double s[EL_ARGS_SCALARS];
    uint64_t k[EL_ARGS_KEYS];
    /* Tensors of an optimizer, clip, sum_squares, scale, cast or fill: p[] is then the first one's, d[0] the sum of all
     * n. 0: only p[]. Ownership: the caller's. */
    const struct el_kernel_tensor *tensors;
    int n_tensors;
    uint64_t step;
    const void *step_values; /* output of step_values() in device memory, read when the kernel runs; NULL: `step` */
    void *workspace;         /* of the size from workspace(), 64-byte aligned; contents undefined at each run */
    size_t workspace_bytes;
    void *plan;         /* from prepare() */
    const void *native; /* the op's stream: kernels/cuda/native.h; NULL on CPU devices */
};

/* Scratch of one op. `padding_bytes`: the part due to a blocked layout's rounding. `allowance_bytes`: reserved beyond
 * the library's request, for another algorithm. At most one of the two is not 0. */
struct el_workspace {
    size_t bytes;
    size_t padding_bytes, allowance_bytes;
};

struct el_kernel {
    /* Required. Computes; on GPUs enqueues. Call it through el_kernel_run(). Errors: EL_ERR_INTERNAL. */
    enum el_status (*run)(const struct el_kernel_args *args);
    /* run() handles args.tensors; default: it is called for each of them. */
    bool takes_many;
    /* Optional; default: no scratch. Reads only d[], s[], k[], the tensors' n, and `native`, which is NULL in
     * predictions without a device. */
    enum el_status (*workspace)(const struct el_kernel_args *args, struct el_workspace *workspace_p);
    /* Optional, with release; default: no plan, as with NULL in plan_p. Ownership: the plan is the caller's until
     * release. Errors: EL_ERR_INTERNAL, EL_ERR_HOST_MEMORY. */
    enum el_status (*prepare)(const struct el_kernel_args *args, void **plan_p);
    void (*release)(void *plan);
    /* Optional; default: nothing to choose. The library's algorithms that prepare() chose; the plan is not NULL and
     * owns the text. */
    const char *(*describe)(const void *plan);
    /* Optional; default: nothing depends on the step. For CUDA graphs, which repeat the first arguments: writes
     * everything that run() derives from `step` (at most EL_STEP_VALUES_BYTES) into host memory aligned to as many
     * bytes. false: nothing depends on it, nothing is written. */
    bool (*step_values)(const struct el_kernel_args *args, void *values);
};

/* A table's stored order of conv2d's weights [f,k,k,c], in as many bytes. It depends on type and shape alone, so that
 * ranks and hosts can copy and add weights and gradients directly. */
struct el_weights_layout {
    const char *name; /* "OIhw16i16o" */
    /* Required. Filters per group. Each group is a matrix with a row per tap and channel (in any order) and a column
     * per filter. */
    int64_t filters;
    /* Required. `shape`: f k k c; values of the layout's type. */
    void (*pack)(const int64_t shape[4], const void *plain, void *stored);
    void (*unpack)(const int64_t shape[4], const void *stored, void *plain);
    /* Required. To f c k k, the order in weight files. */
    void (*unpack_channels_first)(const int64_t shape[4], const void *stored, void *values);
};

struct el_kernel_table {
    const char *name; /* "reference", "cpu" */
    /* Required. NULL if the table lacks the row. */
    const struct el_kernel *(*find)(enum el_op_kind op, enum el_dtype dtype);
    /* Optional; default: all weights are plain. NULL if these are. */
    const struct el_weights_layout *(*weights)(enum el_dtype dtype, const int64_t shape[4]);
    /* Operands at multiples of this many bytes are computed the same way at every address. 0: at any address. */
    size_t alignment[EL_DTYPE_COUNT];
};

const struct el_kernel_table *el_kernels_reference(void);

/* f32 and bf16; missing rows (f64, or without oneDNN) are the reference's. */
const struct el_kernel_table *el_kernels_cpu(void);

/* Whose f32 products linear layers take on the CPU. AUTO, where it is not resolved: oneDNN's. */
enum el_products { EL_PRODUCTS_AUTO, EL_PRODUCTS_ONEDNN, EL_PRODUCTS_MKL, EL_PRODUCTS_OPENBLAS, EL_PRODUCTS_BLIS };
/* For rows found from now on, in the whole process. Opens a library at its first use, which takes up to 0.1 s, with one
 * computing thread. Errors: EL_ERR_ABSENT: it is not found. */
enum el_status el_kernels_cpu_products(enum el_products products);
/* The fastest one that is there, by products of 512 x 512 x 512 (50 ms a library, tried once); oneDNN unless another
 * one is faster by 5 %. Not while rows are found. */
enum el_products el_kernels_cpu_fastest(void);
/* "MKL 2026.2, OpenBLAS 0.3.21 ...": those that are there besides oneDNN. Returns `text`. */
const char *el_kernels_cpu_blas(char *text, size_t bytes);

/* Why oneDNN is missing; NULL if it is there. */
const char *el_kernels_cpu_missing(void);
/* Why bf16 products are computed from f32, no faster than it; NULL if the processor multiplies bf16. */
const char *el_kernels_cpu_no_bf16(void);
/* "oneDNN 2.6.3", or "" if missing. */
const char *el_kernels_cpu_library(void);

/* Runs a row, with the same bits however many tensors it handles at once. */
enum el_status el_kernel_run(const struct el_kernel *kernel, const struct el_kernel_args *args);

const char *el_op_name(enum el_op_kind op);

/* A kernel by its name, which may be longer ("linear_forward h.0.attn"): a product of matrices, a convolution too. */
bool el_op_multiplies(const char *name);
/* It is, or is made of, products. */
bool el_op_is_bound_by_flops(const char *name);

enum { EL_OPERAND_SIDES = 4 };
struct el_op_operand {
    char name[12];
    bool written;
    const char *dtype;
    int n; /* sides */
    int64_t d[EL_OPERAND_SIDES];
};
/* The shapes of an op's operands, in the order of p[], including those that may be NULL. Returns their number; 0:
 * unknown op. */
int el_op_operands(const char *op, const char *dtype, const int64_t *d,
                   struct el_op_operand operands_p[EL_ARGS_POINTERS]);
int64_t el_operand_count(const struct el_op_operand *operand);

/* Refuses to train batch norm on n = 1 values per channel, which have no variance. Errors: EL_ERR_INTERNAL. */
enum el_status el_batch_norm_check(int64_t n);

/* An op's work by definition: a multiply and an add are two FLOPs; bytes: each operand read or written once, in
 * `dtype`. Uses only d[] and s[]; operands that may be NULL do not count. */
struct el_op_cost {
    double flops;
    double bytes;
};
struct el_op_cost el_op_cost(enum el_op_kind op, enum el_dtype dtype, const struct el_kernel_args *args);
