/* Sums per channel over the rows of [rows, c], in one launch. A block takes 32 channels of a stretch of rows, each of
 * its eight warps every eighth row; whoever ends last of a group of channels adds its stretches, in their order. So the
 * bits depend on sizes alone.
 *
 *     struct terms { enum { N = 2 }; __device__ void operator()(int64_t row, int64_t channel, int64_t at, double *) };
 *     struct finish { __device__ void operator()(int64_t channel, const double *sums) };
 *     EL_TRY(channel_sums(args, "op", rows, c, terms, finish));       part: el_cuda_sum_rows_bytes(rows, c, N)
 */
#pragma once

#include "kernels/cuda/common.cuh"

extern "C" {
#include "kernels/cuda/layer.h"
}

/* How many blocks of a group have ended; 0 between launches. A stream has a row of its own. */
enum { COUNTERS = 256 };
static __device__ unsigned channel_counters[EL_CUDA_SLOTS][COUNTERS];

struct channel_sums_plan {
    int64_t rows, c, tiles, stretches, tiles_a_group;
    double *part; /* [stretches][N][c] */
    int slot;
};

/* Of the eight warps' values; the first warp gets it. Begins and ends with all threads together. */
template <int N> __device__ static inline void sum_warps(double *own)
{
    __shared__ double sums[N][WARPS_A_BLOCK][EL_CUDA_WARP];
    int lane = threadIdx.x % EL_CUDA_WARP, warp = threadIdx.x / EL_CUDA_WARP;
    for (int v = 0; v < N; v++) sums[v][warp][lane] = own[v];
    __syncthreads();
    for (int other = 1; other < WARPS_A_BLOCK && warp == 0; other++)
        for (int v = 0; v < N; v++) own[v] += sums[v][other][lane];
    __syncthreads(); /* before the next sum reuses them */
}

/* Whether this block is the last of so many that call it with the counter; what they wrote before is there then. */
__device__ static inline bool is_last(unsigned *counter, int64_t of)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned most = static_cast<unsigned>(of) - 1;
        last = atomicInc(counter, most) == most; /* and it is 0 again */
        __threadfence();
    }
    __syncthreads();
    return last;
}

template <typename FINISH, int N>
__device__ static inline void add_stretches(const FINISH &finish, const struct channel_sums_plan &plan, int64_t group)
{
    int lane = threadIdx.x % EL_CUDA_WARP, warp = threadIdx.x / EL_CUDA_WARP;
    for (int64_t tile = group * plan.tiles_a_group; tile < plan.tiles && tile < (group + 1) * plan.tiles_a_group;
         tile++) {
        int64_t channel = tile * EL_CUDA_WARP + lane;
        double sums[N] = {};
        for (int64_t stretch = warp; stretch < plan.stretches && channel < plan.c; stretch += WARPS_A_BLOCK)
            for (int v = 0; v < N; v++) sums[v] += __ldcg(&plan.part[(stretch * N + v) * plan.c + channel]);
        sum_warps<N>(sums);
        if (warp == 0 && channel < plan.c) finish(channel, sums);
    }
}

/* The share of block `block` of `blocks`. */
template <typename TERMS, typename FINISH>
__device__ static inline void sum_channels(const TERMS &terms, const FINISH &finish,
                                           const struct channel_sums_plan &plan, int64_t block, int64_t blocks)
{
    const int N = TERMS::N;
    int lane = threadIdx.x % EL_CUDA_WARP, warp = threadIdx.x / EL_CUDA_WARP;
    int64_t stretch_rows = el_cuda_ceil_div(plan.rows, plan.stretches);
    for (int64_t item = block; item < plan.tiles * plan.stretches; item += blocks) {
        int64_t tile = item % plan.tiles, stretch = item / plan.tiles, channel = tile * EL_CUDA_WARP + lane;
        int64_t end = stretch_rows * (stretch + 1) < plan.rows ? stretch_rows * (stretch + 1) : plan.rows;
        double sums[N] = {}, values[N];
        EL_CUDA_UNROLL(4) /* loads ahead of the sums, which stay in their order */
        for (int64_t row = stretch_rows * stretch + warp; row < end && channel < plan.c; row += WARPS_A_BLOCK) {
            terms(row, channel, row * plan.c + channel, values);
            for (int v = 0; v < N; v++) sums[v] += values[v];
        }
        sum_warps<N>(sums);
        if (plan.stretches == 1) {
            if (warp == 0 && channel < plan.c) finish(channel, sums);
            continue;
        }
        for (int v = 0; v < N && warp == 0 && channel < plan.c; v++)
            plan.part[(stretch * N + v) * plan.c + channel] = sums[v];
        int64_t group = tile / plan.tiles_a_group, left = plan.tiles - group * plan.tiles_a_group;
        int64_t members = plan.stretches * (left < plan.tiles_a_group ? left : plan.tiles_a_group);
        if (is_last(&channel_counters[plan.slot][group], members)) add_stretches<FINISH, N>(finish, plan, group);
    }
}

template <typename TERMS, typename FINISH>
__global__ void channel_sums_kernel(TERMS terms, FINISH finish, struct channel_sums_plan plan)
{
    sum_channels(terms, finish, plan, blockIdx.x, gridDim.x);
}

static inline struct channel_sums_plan channel_sums_plan_of(const struct el_kernel_args *args, int64_t rows, int64_t c)
{
    int64_t tiles = el_cuda_ceil_div(c, EL_CUDA_WARP), most = COUNTERS;
    return {rows,
            c,
            tiles,
            el_cuda_stretches(rows, c),
            el_cuda_ceil_div(tiles, most),
            static_cast<double *>(args->workspace),
            static_cast<const struct el_cuda_native *>(args->native)->slot};
}

static inline unsigned channel_sums_blocks(const struct channel_sums_plan &plan)
{
    return el_cuda_blocks(plan.tiles * plan.stretches, 1);
}

template <typename TERMS, typename FINISH>
static enum el_status channel_sums(const struct el_kernel_args *args, const char *op, int64_t rows, int64_t c,
                                   TERMS terms, FINISH finish)
{
    const struct channel_sums_plan plan = channel_sums_plan_of(args, rows, c);
    return launch_blocks(args, op, channel_sums_blocks(plan), channel_sums_kernel<TERMS, FINISH>, terms, finish, plan);
}
