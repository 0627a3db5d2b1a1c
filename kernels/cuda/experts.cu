/* Experts: rows to and from them, products, SwiGLU. How many rows a group has is known on the device only: launches are
 * as large as r rows need, and what is past the used rows ends at once. Products are two launches:
 *   1. pieces   up to 64 rows of one group each, by expert, then by part
 *   2. product  of tiles of 64 x 64 through shared memory, each thread 4 x 4
 * IO is the tensors' type, REAL what is computed in. */
#include "kernels/cuda/common.cuh"

#include "kernels/experts.h"

static constexpr int TILE = 64, DEEP = 16, SIDE = 16, EACH = TILE / SIDE, PAD = 4;
static constexpr int BLOCKS = 2; /* a multiprocessor, which bounds registers */
static constexpr int ROWS = 32;  /* of a block of SwiGLU */

/* A warp per choice. */
template <typename IO>
__global__ void rows_take_kernel(const IO *__restrict__ x, const int32_t *__restrict__ place, int64_t choices,
                                 int64_t w, int64_t k, IO *__restrict__ rows)
{
    EL_CUDA_EACH_WARP(i, choices)
    {
        const int64_t row = place[i], from = i / k * w;
        for (int64_t c = own_lane(); c < w && row >= 0; c += EL_CUDA_WARP) rows[row * w + c] = x[from + c];
    }
}

template <typename IO> static enum el_status rows_take(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    return launch_warps(args, "rows_take", d[0] * d[2], rows_take_kernel<IO>, operand<const IO>(args, 0),
                        operand<const int32_t>(args, 1), d[0] * d[2], d[1], d[2], operand<IO>(args, 2));
}

/* A warp per token. */
template <typename IO>
__global__ void rows_give_kernel(const IO *__restrict__ rows, const int32_t *__restrict__ place, int64_t n, int64_t w,
                                 int64_t k, bool acc, IO *__restrict__ y)
{
    EL_CUDA_EACH_WARP(i, n)
    for (int64_t c = own_lane(); c < w; c += EL_CUDA_WARP) {
        double sum = acc ? static_cast<double>(y[i * w + c]) : 0;
        for (int64_t j = i * k; j < (i + 1) * k; j++)
            if (place[j] >= 0) sum += static_cast<double>(rows[place[j] * w + c]);
        y[i * w + c] = rounded_double<IO>(sum);
    }
}

template <typename IO> static enum el_status rows_give(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    return launch_warps(args, "rows_give", d[0], rows_give_kernel<IO>, operand<const IO>(args, 0),
                        operand<const int32_t>(args, 1), d[0], d[1], d[2], args->s[0] != 0, operand<IO>(args, 2));
}

/* Up to TILE rows of one group. */
struct piece {
    int32_t first, n, expert;
};

/* In the workspace: begin[e + 1], of each expert's pieces, the last one their number; then the pieces. */
struct groups {
    struct el_experts all;
    int64_t in, out;
    double scale; /* of dw */
    int32_t *begin;
    struct piece *pieces;
};

static struct groups groups_of(const struct el_kernel_args *args)
{
    int32_t *begin = static_cast<int32_t *>(args->workspace);
    return {el_experts(args->p[2], &args->d[3], args->d[0]),         args->d[1], args->d[2], args->s[2], begin,
            reinterpret_cast<struct piece *>(begin + args->d[3] + 1)};
}

static int64_t pieces_most(const struct el_kernel_args *args)
{
    return args->d[0] / TILE + args->d[3] * args->d[4];
}

template <typename REAL> static size_t groups_bytes(const struct el_kernel_args *args)
{
    return static_cast<size_t>(args->d[3] + 1) * sizeof(int32_t) +
           static_cast<size_t>(pieces_most(args)) * sizeof(struct piece);
}

/* A warp per expert. */
__global__ void experts_pieces_kernel(struct groups of)
{
    const int lane = own_lane();
    EL_CUDA_EACH_WARP(expert, of.all.e)
    {
        double before = 0;
        for (int64_t part = 0; part < of.all.m; part++)
            for (int64_t j = lane; j < expert; j += EL_CUDA_WARP)
                before += static_cast<double>(el_cuda_ceil_div(el_experts_rows(&of.all, part, j), TILE));
        int64_t at = static_cast<int64_t>(warp_sum(before));
        if (lane == 0) of.begin[expert] = static_cast<int32_t>(at);
        for (int64_t part = 0; part < of.all.m; part++) {
            const int64_t n = el_experts_rows(&of.all, part, expert), pieces = el_cuda_ceil_div(n, TILE);
            double rows = 0;
            for (int64_t j = lane; j < expert; j += EL_CUDA_WARP)
                rows += static_cast<double>(el_experts_rows(&of.all, part, j));
            const int64_t first = part * of.all.room + static_cast<int64_t>(warp_sum(rows));
            for (int64_t i = lane; i < pieces; i += EL_CUDA_WARP)
                of.pieces[at + i] = {static_cast<int32_t>(first + i * TILE),
                                     static_cast<int32_t>(n - i * TILE < TILE ? n - i * TILE : TILE),
                                     static_cast<int32_t>(expert)};
            at += pieces;
        }
        if (lane == 0 && expert + 1 == of.all.e) of.begin[expert + 1] = static_cast<int32_t>(at);
    }
}

/* A factor's piece: `n` rows by what products add over, which lies ALONG a row, or rows are columns there. */
template <typename IO> struct factor {
    const IO *at;
    int64_t step, n;
};

template <typename REAL> struct tile_factors {
    alignas(4 * sizeof(REAL)) REAL a[DEEP][TILE + PAD], b[DEEP][TILE + PAD];
};

template <bool ALONG, typename REAL, typename IO>
__device__ static inline void load_factor(REAL (*to)[TILE + PAD], const struct factor<IO> &from, int64_t done,
                                          int64_t depth)
{
    for (int q = 0; q < TILE * DEEP / EL_CUDA_THREADS; q++) {
        const int at = static_cast<int>(threadIdx.x) + q * EL_CUDA_THREADS;
        const int k = ALONG ? at % DEEP : at / TILE, i = ALONG ? at / DEEP : at % TILE;
        const int64_t place = ALONG ? i * from.step + done + k : (done + k) * from.step + i;
        to[k][i] = i < from.n && done + k < depth ? static_cast<REAL>(from.at[place]) : 0;
    }
}

/* sum += a b'. Begins and ends with all threads together. */
template <bool A_ALONG, bool B_ALONG, typename REAL, typename IO>
__device__ static inline void multiply(struct tile_factors<REAL> *tiles, const struct factor<IO> &a,
                                       const struct factor<IO> &b, int64_t depth, REAL (&sum)[EACH][EACH])
{
    const int row = static_cast<int>(threadIdx.x) / SIDE * EACH, column = static_cast<int>(threadIdx.x) % SIDE * EACH;
    for (int64_t done = 0; done < depth; done += DEEP) {
        load_factor<A_ALONG>(tiles->a, a, done, depth);
        load_factor<B_ALONG>(tiles->b, b, done, depth);
        __syncthreads();
        if (row < a.n && column < b.n) {
            EL_CUDA_UNROLL(4)
            for (int k = 0; k < DEEP; k++)
                for (int i = 0; i < EACH; i++)
                    for (int j = 0; j < EACH; j++) sum[i][j] += tiles->a[k][row + i] * tiles->b[k][column + j];
        }
        __syncthreads();
    }
}

template <typename OUT, typename REAL>
__device__ static inline void put(OUT *to, int64_t step, int64_t rows, int64_t columns, bool acc,
                                  const REAL (&sum)[EACH][EACH])
{
    const int row = static_cast<int>(threadIdx.x) / SIDE * EACH, column = static_cast<int>(threadIdx.x) % SIDE * EACH;
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            OUT *y = &to[(row + i) * step + column + j];
            if (row + i < rows && column + j < columns)
                *y = rounded<OUT>(acc ? static_cast<REAL>(*y) + sum[i][j] : sum[i][j]);
        }
}

/* y[r,out] of x[r,in] and w[e,out,in]; BACK: dx[r,in] of dy[r,out]. */
template <typename IO, bool BACK>
__global__ void __launch_bounds__(EL_CUDA_THREADS, BLOCKS)
    grouped_rows_kernel(struct groups of, bool acc, const IO *__restrict__ x, const IO *__restrict__ w,
                        IO *__restrict__ y)
{
    typedef typename wide_of<IO>::type REAL;
    __shared__ struct tile_factors<REAL> tiles;
    const int64_t deep = BACK ? of.out : of.in, wide = BACK ? of.in : of.out, columns = el_cuda_ceil_div(wide, TILE);
    for (int64_t item = blockIdx.x; item < of.begin[of.all.e] * columns; item += gridDim.x) {
        const struct piece piece = of.pieces[item / columns];
        const int64_t column = item % columns * TILE;
        const IO *own = w + piece.expert * of.in * of.out;
        REAL sum[EACH][EACH] = {};
        multiply<true, !BACK>(&tiles, factor<IO>{x + piece.first * deep, deep, piece.n},
                              factor<IO>{BACK ? own + column : own + column * deep, BACK ? wide : deep, wide - column},
                              deep, sum);
        put(y + piece.first * wide + column, wide, piece.n, wide - column, BACK && acc, sum);
    }
}

template <typename IO, typename OUT, typename... FORMAL>
static enum el_status grouped(const struct el_kernel_args *args, const char *op, int64_t tiles,
                              void (*kernel)(FORMAL...))
{
    const struct groups of = groups_of(args);
    EL_TRY(launch_warps(args, "an expert's pieces", of.all.e, experts_pieces_kernel, of));
    return launch_blocks(args, op, el_cuda_blocks(tiles, 1), kernel, of, args->s[0] != 0, operand<const IO>(args, 0),
                         operand<const IO>(args, 1), operand<OUT>(args, 3));
}

template <typename IO> static enum el_status grouped_forward(const struct el_kernel_args *args)
{
    return grouped<IO, IO>(args, "grouped_forward", pieces_most(args) * el_cuda_ceil_div(args->d[2], TILE),
                           grouped_rows_kernel<IO, false>);
}

template <typename IO> static enum el_status grouped_backward_data(const struct el_kernel_args *args)
{
    return grouped<IO, IO>(args, "grouped_backward_data", pieces_most(args) * el_cuda_ceil_div(args->d[1], TILE),
                           grouped_rows_kernel<IO, true>);
}

/* A block per tile of an expert's dw adds over all its pieces, if there are any. */
template <typename IO>
__global__ void __launch_bounds__(EL_CUDA_THREADS, BLOCKS)
    grouped_weights_kernel(struct groups of, bool acc, const IO *__restrict__ x, const IO *__restrict__ dy,
                           typename wide_of<IO>::type *__restrict__ dw)
{
    typedef typename wide_of<IO>::type REAL;
    __shared__ struct tile_factors<REAL> tiles;
    const int64_t columns = el_cuda_ceil_div(of.in, TILE), each = el_cuda_ceil_div(of.out, TILE) * columns;
    for (int64_t item = blockIdx.x; item < of.all.e * each; item += gridDim.x) {
        const int64_t expert = item / each, row = item % each / columns * TILE, column = item % columns * TILE;
        REAL sum[EACH][EACH] = {};
        for (int32_t at = of.begin[expert]; at < of.begin[expert + 1]; at++) {
            const struct piece piece = of.pieces[at];
            multiply<false, false>(&tiles, factor<IO>{dy + piece.first * of.out + row, of.out, of.out - row},
                                   factor<IO>{x + piece.first * of.in + column, of.in, of.in - column}, piece.n, sum);
        }
        for (int i = 0; i < EACH; i++)
            for (int j = 0; j < EACH; j++) sum[i][j] *= static_cast<REAL>(of.scale);
        put(dw + (expert * of.out + row) * of.in + column, of.in, of.out - row, of.in - column, acc, sum);
    }
}

template <typename IO> static enum el_status grouped_backward_weights(const struct el_kernel_args *args)
{
    const int64_t tiles = el_cuda_ceil_div(args->d[2], TILE) * el_cuda_ceil_div(args->d[1], TILE);
    return grouped<IO, typename wide_of<IO>::type>(args, "grouped_backward_weights", args->d[3] * tiles,
                                                   grouped_weights_kernel<IO>);
}

/* A part's used rows. All threads must take part. */
__device__ static inline int64_t rows_used(const struct el_experts &all, int64_t part)
{
    const int32_t *counts = all.counts + part * all.g * all.e;
    double n = 0;
    for (int64_t i = threadIdx.x; i < all.g * all.e; i += EL_CUDA_THREADS) n += counts[i];
    return static_cast<int64_t>(block_sum(n));
}

/* A block has some rows of a part, a warp a row. silu(x) = x s, s = 1 / (1 + exp(-x)); its slope is s (1 + x (1 - s)).
 * In the type itself: many devices are slow in double. */
#define EL_CUDA_EACH_USED_ROW(row, all)                                                                                \
    for (int64_t item = blockIdx.x, blocks = el_cuda_ceil_div((all).room, ROWS); item < (all).m * blocks;              \
         item += gridDim.x)                                                                                            \
        for (int64_t part = item / blocks, begin = part * (all).room, from = begin + item % blocks * ROWS,             \
                     n = rows_used(all, part), row = from + own_warp();                                                \
             row < begin + n && row < from + ROWS; row += WARPS_A_BLOCK)

template <typename IO>
__global__ void swiglu_forward_kernel(struct el_experts all, int64_t c, const IO *__restrict__ h,
                                      const IO *__restrict__ scale, IO *__restrict__ y)
{
    typedef typename wide_of<IO>::type REAL;
    EL_CUDA_EACH_USED_ROW(row, all)
    for (int64_t i = own_lane(); i < c; i += EL_CUDA_WARP) {
        const REAL gate = static_cast<REAL>(h[row * 2 * c + i]), up = static_cast<REAL>(h[row * 2 * c + c + i]);
        y[row * c + i] = rounded<IO>(static_cast<REAL>(scale[row]) * gate / (1 + exp(-gate)) * up);
    }
}

static unsigned swiglu_blocks(const struct el_experts &all)
{
    return el_cuda_blocks(all.m * el_cuda_ceil_div(all.room, ROWS), 1);
}

template <typename IO> static enum el_status swiglu_forward(const struct el_kernel_args *args)
{
    const struct el_experts all = el_experts(args->p[2], &args->d[2], args->d[0]);
    return launch_blocks(args, "swiglu_forward", swiglu_blocks(all), swiglu_forward_kernel<IO>, all, args->d[1],
                         operand<const IO>(args, 0), operand<const IO>(args, 1), operand<IO>(args, 3));
}

template <typename IO>
__global__ void swiglu_backward_kernel(struct el_experts all, int64_t c, const IO *__restrict__ dy,
                                       const IO *__restrict__ h, const IO *__restrict__ scale, IO *__restrict__ dh,
                                       IO *__restrict__ dscale)
{
    typedef typename wide_of<IO>::type REAL;
    EL_CUDA_EACH_USED_ROW(row, all)
    {
        double sum = 0;
        for (int64_t i = own_lane(); i < c; i += EL_CUDA_WARP) {
            const REAL gate = static_cast<REAL>(h[row * 2 * c + i]), up = static_cast<REAL>(h[row * 2 * c + c + i]);
            const REAL s = 1 / (1 + exp(-gate)), d = static_cast<REAL>(dy[row * c + i]);
            const REAL scaled = d * static_cast<REAL>(scale[row]);
            sum += static_cast<double>(d * gate * s * up);
            dh[row * 2 * c + i] = rounded<IO>(scaled * up * s * (1 + gate * (1 - s)));
            dh[row * 2 * c + c + i] = rounded<IO>(scaled * gate * s);
        }
        sum = warp_sum(sum);
        if (own_lane() == 0) dscale[row] = rounded<IO>(static_cast<REAL>(sum));
    }
}

template <typename IO> static enum el_status swiglu_backward(const struct el_kernel_args *args)
{
    const struct el_experts all = el_experts(args->p[3], &args->d[2], args->d[0]);
    return launch_blocks(args, "swiglu_backward", swiglu_blocks(all), swiglu_backward_kernel<IO>, all, args->d[1],
                         operand<const IO>(args, 0), operand<const IO>(args, 1), operand<const IO>(args, 2),
                         operand<IO>(args, 4), operand<IO>(args, 5));
}

EL_CUDA_RUN_OF_ALL(rows_take)
EL_CUDA_RUN_OF_ALL(rows_give)
EL_CUDA_RUN_OF_ALL(grouped_forward)
EL_CUDA_RUN_OF_ALL(grouped_backward_data)
EL_CUDA_RUN_OF_ALL(grouped_backward_weights)
EL_CUDA_RUN_OF_ALL(swiglu_forward)
EL_CUDA_RUN_OF_ALL(swiglu_backward)
EL_CUDA_WORKSPACE(grouped_forward, groups_bytes)
EL_CUDA_WORKSPACE(grouped_backward_data, groups_bytes)
EL_CUDA_WORKSPACE(grouped_backward_weights, groups_bytes)
