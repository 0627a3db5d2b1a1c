/* A router's choices, their gradient, and the rows that choices get. IO is the tensors' type. What is counted are whole
 * numbers, so that the order of atomics does not matter. */
#include "kernels/cuda/common.cuh"

#include "kernels/experts.h"
#include "runtime/base/rng.h"

static constexpr int TOKENS = 64, CHOICES = 4096; /* of a block */
static constexpr unsigned ALL_LANES = 0xffffffffu;

struct router {
    struct el_rng_key key;
    uint64_t step;
    int64_t n, t, first, stride, rows; /* n: tokens of all samples */
    int e, k;
    bool balanced;
};

static struct router router_of(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    struct router of;
    of.key.seed = args->k[0], of.key.use = EL_RNG_ROUTE, of.key.id = static_cast<uint32_t>(args->k[1]);
    of.step = args->step, of.balanced = args->s[0] != 0;
    of.n = d[0] * d[1], of.t = d[1], of.first = d[4], of.stride = d[5], of.rows = d[6];
    of.e = static_cast<int>(d[2]), of.k = static_cast<int>(d[3]);
    return of;
}

/* The smallest k of exponential variables with these rates are a draw; here the largest of their negatives. */
__device__ static inline double draw(const struct router &of, int64_t sample, int64_t token, int j, double weight)
{
    const uint64_t global = of.step << 32 | static_cast<uint64_t>(sample);
    const double uniform = el_rng_uniform(&of.key, global, static_cast<uint64_t>(token * of.e + j));
    return weight > 0 ? log1p(-(uniform + EL_EXPERTS_HALF_DRAW)) / weight : -INFINITY;
}

/* Where the warp's largest of keys[e] is, the first of equals; -1: none is a number. A lane has every 32nd key. */
__device__ static inline int best_of(const double *keys, int e)
{
    double value = 0;
    int at = -1;
    for (int j = own_lane(); j < e; j += EL_CUDA_WARP)
        if (!isnan(keys[j]) && el_cuda_max_replaces(keys[j], j, value, at)) value = keys[j], at = j;
    for (int offset = EL_CUDA_WARP / 2; offset > 0; offset /= 2) {
        double other = __shfl_xor_sync(ALL_LANES, value, offset);
        int other_at = __shfl_xor_sync(ALL_LANES, at, offset);
        if (el_cuda_max_replaces(other, other_at, value, at)) value = other, at = other_at;
    }
    return at;
}

template <typename IO> __device__ static inline double log_sum(const IO *row, int n)
{
    double most = -INFINITY, sum = 0;
    for (int j = own_lane(); j < n; j += EL_CUDA_WARP) most = fmax(most, static_cast<double>(row[j]));
    most = warp_max(most);
    for (int j = own_lane(); j < n; j += EL_CUDA_WARP) sum += exp(static_cast<double>(row[j]) - most);
    return most + log(warp_sum(sum));
}

/* A warp per token; lane c keeps choice c. `step`: replaces the one in `of`; NULL: none. */
template <typename IO>
__global__ void route_forward_kernel(struct router of, const uint64_t *step, const IO *__restrict__ logits,
                                     const typename wide_of<IO>::type *__restrict__ table, IO *__restrict__ weights,
                                     int32_t *__restrict__ chosen)
{
    __shared__ double all_keys[WARPS_A_BLOCK][EL_EXPERTS_MAX];
    double *keys = all_keys[own_warp()];
    const int lane = own_lane();
    if (step) of.step = *step;
    const int64_t turn = of.rows ? static_cast<int64_t>(of.step % static_cast<uint64_t>(of.rows)) : 0;
    EL_CUDA_EACH_WARP(i, of.n)
    {
        const int64_t sample = of.first + i / of.t * of.stride, token = i % of.t;
        const IO *row = logits + i * of.e;
        int own = static_cast<int>(((sample * of.t + token) * of.k + lane) % of.e);
        for (int j = lane; j < of.e && !of.balanced; j += EL_CUDA_WARP)
            keys[j] = table ? draw(of, sample, token, j, static_cast<double>(table[turn * of.e + j]))
                            : static_cast<double>(row[j]);
        for (int c = 0; c < of.k && !of.balanced; c++) {
            int best = best_of(keys, of.e);
            if (best < 0) best = c;
            if (best % EL_CUDA_WARP == lane) keys[best] = NAN;
            if (lane == c) own = best;
        }
        const double picked = lane < of.k ? static_cast<double>(row[own]) : -INFINITY;
        const double most = warp_max(picked), others = warp_sum(lane < of.k ? exp(picked - most) : 0);
        const double sum = of.k == 1 ? log_sum(row, of.e) : most + log(others);
        if (lane >= of.k) continue;
        weights[i * of.k + lane] = rounded_double<IO>(exp(picked - sum));
        chosen[i * of.k + lane] = own;
    }
}

template <typename IO> static enum el_status route_forward(const struct el_kernel_args *args)
{
    const struct router of = router_of(args);
    return launch_warps(args, "route_forward", of.n, route_forward_kernel<IO>, of,
                        static_cast<const uint64_t *>(args->step_values), operand<const IO>(args, 0),
                        operand<const typename wide_of<IO>::type>(args, 1), operand<IO>(args, 2),
                        operand<int32_t>(args, 3));
}

template <typename REAL> static uint64_t step_of(const struct el_kernel_args *args)
{
    return args->step;
}

template <typename IO> struct route_back {
    const IO *dweights, *logits, *weights;
    const int32_t *chosen;
    IO *dlogits;
    double per_choice, z; /* what a choice adds to an expert's share; 2 z / t */
};

/* A warp's token; choices[e]: the sample's. */
template <typename IO>
__device__ static inline void route_back_token(const struct router &of, const struct route_back<IO> &back, int64_t i,
                                               const int *choices)
{
    const IO *row = back.logits + i * of.e, *weights = back.weights + i * of.k, *dweights = back.dweights + i * of.k;
    const int lane = own_lane();
    const double sum = log_sum(row, of.e);
    double mean = 0, dot = 0;
    for (int j = lane; j < of.e; j += EL_CUDA_WARP)
        mean += exp(static_cast<double>(row[j]) - sum) * choices[j] * back.per_choice;
    mean = warp_sum(mean);
    if (lane < of.k) dot = static_cast<double>(weights[lane]) * static_cast<double>(dweights[lane]);
    dot = warp_sum(dot);
    for (int j = lane; j < of.e; j += EL_CUDA_WARP) {
        const double p = exp(static_cast<double>(row[j]) - sum);
        double d = p * (choices[j] * back.per_choice - mean) + p * back.z * sum;
        if (of.k == 1) d -= p * dot;
        for (int c = 0; c < of.k; c++)
            if (back.chosen[i * of.k + c] == j)
                d += static_cast<double>(weights[c]) * (static_cast<double>(dweights[c]) - (of.k == 1 ? 0 : dot));
        back.dlogits[i * of.e + j] = rounded_double<IO>(d);
    }
}

/* A block has some tokens of a sample, and counts all the sample's choices. */
template <typename IO> __global__ void route_backward_kernel(struct router of, struct route_back<IO> back)
{
    __shared__ int choices[EL_EXPERTS_MAX];
    const int64_t blocks = el_cuda_ceil_div(of.t, TOKENS), all = of.t * of.k;
    for (int64_t item = blockIdx.x; item < of.n / of.t * blocks; item += gridDim.x) {
        const int64_t sample = item / blocks, first = item % blocks * TOKENS;
        for (int j = static_cast<int>(threadIdx.x); j < of.e; j += EL_CUDA_THREADS) choices[j] = 0;
        __syncthreads();
        for (int64_t i = threadIdx.x; i < all; i += EL_CUDA_THREADS)
            atomicAdd(&choices[back.chosen[sample * all + i]], 1);
        __syncthreads();
        for (int64_t i = first + own_warp(); i < of.t && i < first + TOKENS; i += WARPS_A_BLOCK)
            route_back_token(of, back, sample * of.t + i, choices);
        __syncthreads(); /* before the next sample's choices */
    }
}

template <typename IO> static enum el_status route_backward(const struct el_kernel_args *args)
{
    const struct router of = router_of(args);
    const double t = static_cast<double>(of.t);
    const struct route_back<IO> back = {
        operand<const IO>(args, 0), operand<const IO>(args, 1), operand<const IO>(args, 2),
            operand<const int32_t>(args, 3), operand<IO>(args, 4), args->s[0] * of.e / t / t, args->s[1] * 2 / t
    };
    return launch_blocks(args, "route_backward", el_cuda_blocks(args->d[0] * el_cuda_ceil_div(of.t, TOKENS), 1),
                         route_backward_kernel<IO>, of, back);
}

struct places {
    int64_t b, t, k, most, room; /* room: rows of a part */
    int e, own;                  /* own: experts of a part */
};

/* A warp per sample and expert goes through the sample's choices, the first ones first: place is a number within both.
 */
__global__ void route_number_kernel(struct places of, const int32_t *__restrict__ chosen, int32_t *__restrict__ place,
                                    int32_t *__restrict__ counts, int32_t *log, int32_t *again)
{
    const int lane = own_lane();
    EL_CUDA_EACH_WARP(item, of.b * of.e)
    {
        const int64_t sample = item / of.e, expert = item % of.e;
        int n = 0;
        for (int64_t c = 0; c < of.k; c++)
            for (int64_t first = 0; first < of.t; first += EL_CUDA_WARP) {
                const int64_t token = first + lane, at = (sample * of.t + token) * of.k + c;
                const bool is_own = token < of.t && chosen[at] == expert;
                const unsigned lanes = __ballot_sync(ALL_LANES, is_own);
                const int number = n + __popc(lanes & ((1u << lane) - 1));
                if (is_own) place[at] = number < of.most ? number : -1;
                n += __popc(lanes);
            }
        if (lane > 0) continue;
        const int kept = n < of.most ? n : static_cast<int>(of.most);
        const int64_t of_both = (expert / of.own * of.b + sample) * of.own + expert % of.own;
        counts[of_both] = kept;
        if (again) again[of_both] = kept;
        if (log) atomicAdd(&log[expert], n), atomicAdd(&log[of.e + expert], kept);
    }
}

/* A block has some choices of a sample, and finds the first row of each expert there. */
__global__ void route_rows_kernel(struct places of, const int32_t *__restrict__ chosen,
                                  const int32_t *__restrict__ counts, int32_t *__restrict__ place)
{
    __shared__ int rows[EL_EXPERTS_MAX], at[EL_EXPERTS_MAX]; /* of all samples; of those before, then the first row */
    const int64_t all = of.t * of.k, blocks = el_cuda_ceil_div(all, CHOICES);
    for (int64_t item = blockIdx.x; item < of.b * blocks; item += gridDim.x) {
        const int64_t sample = item / blocks, first = item % blocks * CHOICES;
        for (int j = static_cast<int>(threadIdx.x); j < of.e; j += EL_CUDA_THREADS) rows[j] = at[j] = 0;
        __syncthreads();
        for (int64_t i = threadIdx.x; i < of.b * of.e; i += EL_CUDA_THREADS) {
            const int64_t j = i / (of.b * of.own) * of.own + i % of.own;
            atomicAdd(&rows[j], counts[i]);
            if (i / of.own % of.b < sample) atomicAdd(&at[j], counts[i]);
        }
        __syncthreads();
        for (int j = static_cast<int>(threadIdx.x); j < of.e; j += EL_CUDA_THREADS) {
            at[j] += static_cast<int>(j / of.own * of.room);
            for (int other = j / of.own * of.own; other < j; other++) at[j] += rows[other];
        }
        __syncthreads();
        for (int64_t i = first + threadIdx.x; i < all && i < first + CHOICES; i += EL_CUDA_THREADS)
            if (place[sample * all + i] >= 0) place[sample * all + i] += at[chosen[sample * all + i]];
        __syncthreads(); /* before the next sample's rows */
    }
}

template <typename> static enum el_status route_place(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    const struct places of = {d[0],
                              d[1],
                              d[3],
                              d[6] ? d[6] : d[1] * d[3],
                              d[5] / d[4],
                              static_cast<int>(d[2]),
                              static_cast<int>(d[2] / d[4])};
    const int32_t *chosen = operand<const int32_t>(args, 0);
    int32_t *place = operand<int32_t>(args, 1), *counts = operand<int32_t>(args, 2);
    EL_TRY(launch_warps(args, "route_place's numbers", d[0] * d[2], route_number_kernel, of, chosen, place, counts,
                        operand<int32_t>(args, 3), operand<int32_t>(args, 4)));
    return launch_blocks(args, "route_place", el_cuda_blocks(of.b * el_cuda_ceil_div(of.t * of.k, CHOICES), 1),
                         route_rows_kernel, of, chosen, static_cast<const int32_t *>(counts), place);
}

EL_CUDA_RUN_OF_ALL(route_forward)
EL_CUDA_RUN_OF_ALL(route_backward)
EL_CUDA_RUN_OF_ALL(route_place)
EL_CUDA_STEP_VALUES(route_forward, step_of)
