/* Causal attention, sample by sample: its heads are a batch of cuBLAS products on qkv in place (rows 3 h s apart, heads
 * s apart), with our softmax between them. The workspace holds one sample's t x t scores, in backward their gradients
 * too. Invisible elements are computed, then set to 0. */
#include "kernels/cuda/common.cuh"

extern "C" {
#include "kernels/cuda/layer.h"
}

/* One sample's heads [h][t, s], part number `part` of rows of `parts` times h heads. */
template <typename REAL>
static struct el_cuda_matrix heads_of(const struct el_kernel_args *args, const void *rows, int64_t sample, int parts,
                                      int part)
{
    int64_t t = args->d[1], h = args->d[2], s = args->d[3];
    return {static_cast<const REAL *>(rows) + (sample * t * parts + part) * h * s, parts * h * s, s, false};
}

template <typename REAL> static struct el_cuda_matrix square(const struct el_kernel_args *args, int index)
{
    int64_t t = args->d[1], h = args->d[2];
    return {static_cast<const REAL *>(args->workspace) + index * h * t * t, t, t * t, false};
}

static struct el_cuda_matrix transposed(struct el_cuda_matrix matrix)
{
    matrix.transposed = true;
    return matrix;
}

template <typename REAL>
static enum el_status multiply(const struct el_kernel_args *args, int64_t m, int64_t n, int64_t k,
                               struct el_cuda_matrix a, struct el_cuda_matrix b, struct el_cuda_matrix c)
{
    const struct el_cuda_product product = {m, n, k, args->d[2], a, b, c, false, EL_F32};
    return el_cuda_multiply(args, sizeof(REAL) == sizeof(double) ? EL_F64 : EL_F32, &product);
}

/* A warp per row: q k' becomes softmax(q k' / sqrt(s)) up to the row's own column, then 0. */
template <typename REAL>
__global__ void softmax_kernel(int64_t rows, int64_t t, REAL per_root, REAL *__restrict__ scores,
                               REAL *__restrict__ saved)
{
    int lane = threadIdx.x % EL_CUDA_WARP;
    EL_CUDA_EACH_WARP(i, rows)
    {
        REAL *row = scores + i * t;
        int64_t seen = i % t + 1;
        double largest = -INFINITY, sum = 0;
        for (int64_t j = lane; j < seen; j += EL_CUDA_WARP) largest = fmax(largest, static_cast<double>(row[j]));
        REAL most = static_cast<REAL>(warp_max(largest));
        for (int64_t j = lane; j < seen; j += EL_CUDA_WARP) {
            row[j] = exp((row[j] - most) * per_root);
            sum += static_cast<double>(row[j]);
        }
        sum = warp_sum(sum);
        for (int64_t j = lane; j < t; j += EL_CUDA_WARP)
            row[j] = j < seen ? static_cast<REAL>(static_cast<double>(row[j]) / sum) : static_cast<REAL>(0);
        if (lane == 0)
            saved[i] = static_cast<REAL>(static_cast<double>(most) * static_cast<double>(per_root) + log(sum));
    }
}

template <typename REAL> static enum el_status attention_forward(const struct el_kernel_args *args)
{
    int64_t t = args->d[1], h = args->d[2], s = args->d[3];
    REAL *saved = static_cast<REAL *>(args->p[2]), per_root = static_cast<REAL>(1 / sqrt(static_cast<double>(s)));
    const struct el_cuda_matrix shares = square<REAL>(args, 0);
    for (int64_t i = 0; i < args->d[0]; i++) {
        struct el_cuda_matrix q = heads_of<REAL>(args, args->p[0], i, 3, 0),
                              k = heads_of<REAL>(args, args->p[0], i, 3, 1);
        struct el_cuda_matrix v = heads_of<REAL>(args, args->p[0], i, 3, 2),
                              y = heads_of<REAL>(args, args->p[1], i, 1, 0);
        EL_TRY(multiply<REAL>(args, t, t, s, q, transposed(k), shares));
        EL_TRY(launch_warps(args, "attention_forward's softmax", h * t, softmax_kernel<REAL>, h * t, t, per_root,
                            static_cast<REAL *>(args->workspace), saved + i * h * t));
        EL_TRY(multiply<REAL>(args, t, s, t, shares, v, y));
    }
    return EL_OK;
}

/* A warp per row: q k' becomes softmax p, and dp = dy v' becomes p (dp - sum of p dp) / sqrt(s), both up to the row's
 * own column, then 0. */
template <typename REAL>
__global__ void softmax_backward_kernel(int64_t rows, int64_t t, REAL per_root, const REAL *__restrict__ saved,
                                        REAL *__restrict__ scores, REAL *__restrict__ gradients)
{
    int lane = threadIdx.x % EL_CUDA_WARP;
    EL_CUDA_EACH_WARP(i, rows)
    {
        REAL *p = scores + i * t, *dp = gradients + i * t;
        int64_t seen = i % t + 1;
        double sum = 0;
        for (int64_t j = lane; j < t; j += EL_CUDA_WARP) {
            p[j] = j < seen ? exp(p[j] * per_root - saved[i]) : static_cast<REAL>(0);
            if (j < seen) sum += static_cast<double>(p[j]) * static_cast<double>(dp[j]);
        }
        REAL mean = static_cast<REAL>(warp_sum(sum));
        for (int64_t j = lane; j < t; j += EL_CUDA_WARP)
            dp[j] = j < seen ? p[j] * (dp[j] - mean) * per_root : static_cast<REAL>(0);
    }
}

template <typename REAL> static enum el_status attention_backward(const struct el_kernel_args *args)
{
    int64_t t = args->d[1], h = args->d[2], s = args->d[3];
    const REAL *saved = static_cast<const REAL *>(args->p[2]);
    REAL *scores = static_cast<REAL *>(args->workspace), per_root = static_cast<REAL>(1 / sqrt(static_cast<double>(s)));
    const struct el_cuda_matrix p = square<REAL>(args, 0), ds = square<REAL>(args, 1);
    for (int64_t i = 0; i < args->d[0]; i++) {
        struct el_cuda_matrix dy = heads_of<REAL>(args, args->p[0], i, 1, 0), of[3], to[3];
        for (int part = 0; part < 3; part++) {
            of[part] = heads_of<REAL>(args, args->p[1], i, 3, part);
            to[part] = heads_of<REAL>(args, args->p[3], i, 3, part);
        }
        EL_TRY(multiply<REAL>(args, t, t, s, of[0], transposed(of[1]), p));
        EL_TRY(multiply<REAL>(args, t, t, s, dy, transposed(of[2]), ds));
        EL_TRY(launch_warps(args, "attention_backward's softmax", h * t, softmax_backward_kernel<REAL>, h * t, t,
                            per_root, saved + i * h * t, scores, scores + h * t * t));
        EL_TRY(multiply<REAL>(args, t, s, t, ds, of[1], to[0]));
        EL_TRY(multiply<REAL>(args, t, s, t, transposed(ds), of[0], to[1]));
        EL_TRY(multiply<REAL>(args, t, s, t, transposed(p), dy, to[2]));
    }
    return EL_OK;
}

template <typename REAL> static size_t forward_bytes(const struct el_kernel_args *args)
{
    return static_cast<size_t>(args->d[2] * args->d[1] * args->d[1]) * sizeof(REAL);
}

template <typename REAL> static size_t backward_bytes(const struct el_kernel_args *args)
{
    return 2 * forward_bytes<REAL>(args);
}

EL_CUDA_RUN(attention_forward)
EL_CUDA_RUN(attention_backward)
EL_CUDA_WORKSPACE(attention_forward, forward_bytes)
EL_CUDA_WORKSPACE(attention_backward, backward_bytes)
