/* Mixture of experts. How many rows a group has is known on the device only: launches are as large as r rows need, and
 * what is past the used rows ends at once. Products by expert are two launches:
 *   1. pieces   up to 64 rows of one group each, by expert, then by part
 *   2. product  of tiles of 64 x 64 through shared memory, each thread 4 x 4
 * Counts are sums of integers, so that no order matters. IO is the tensors' type, REAL what is computed in. */
#include "kernels/cuda/common.cuh"

#include "kernels/experts.h"
#include "runtime/base/rng.h"

static constexpr int TILE = 64, DEEP = 16, SIDE = 16, EACH = TILE / SIDE, PAD = 4;
static constexpr int TOKENS = 64, CHOICES = 4096, ROWS = 32; /* of a block */
static constexpr unsigned ALL_LANES = 0xffffffffu;

__device__ static inline int own_lane()
{
    return static_cast<int>(threadIdx.x) % EL_CUDA_WARP;
}

__device__ static inline int own_warp()
{
    return static_cast<int>(threadIdx.x) / EL_CUDA_WARP;
}

template <typename T> static T *operand(const struct el_kernel_args *args, int i)
{
    return static_cast<T *>(args->p[i]);
}

template <typename IO> __device__ static inline IO result(double value)
{
    return rounded<IO>(static_cast<typename wide_of<IO>::type>(value));
}

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
    return {{args->k[0], EL_RNG_ROUTE, static_cast<uint32_t>(args->k[1])},
            args->step,
            d[0] * d[1],
            d[1],
            d[4],
            d[5],
            d[6],
            static_cast<int>(d[2]),
            static_cast<int>(d[3]),
            args->s[0] != 0};
}

/* The smallest k of exponential variables with these rates are a draw; here the largest of their negatives. */
__device__ static inline double draw(const struct router &of, int64_t sample, int64_t token, int j, double weight)
{
    const uint64_t global = of.step << 32 | static_cast<uint64_t>(sample);
    const double uniform = el_rng_uniform(&of.key, global, static_cast<uint64_t>(token * of.e + j));
    return weight > 0 ? log1p(-uniform) / weight : -INFINITY;
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
        double most = picked, sum = 0;
        for (int j = lane; j < of.e && of.k == 1; j += EL_CUDA_WARP) most = fmax(most, static_cast<double>(row[j]));
        most = warp_max(most);
        for (int j = lane; j < of.e && of.k == 1; j += EL_CUDA_WARP) sum += exp(static_cast<double>(row[j]) - most);
        if (of.k > 1 && lane < of.k) sum = exp(picked - most);
        sum = most + log(warp_sum(sum));
        if (lane >= of.k) continue;
        weights[i * of.k + lane] = result<IO>(exp(picked - sum));
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
    double most = -INFINITY, sum = 0, mean = 0, dot = 0;
    for (int j = lane; j < of.e; j += EL_CUDA_WARP) most = fmax(most, static_cast<double>(row[j]));
    most = warp_max(most);
    for (int j = lane; j < of.e; j += EL_CUDA_WARP) {
        const double p = exp(static_cast<double>(row[j]) - most);
        sum += p;
        mean += p * choices[j] * back.per_choice;
    }
    sum = warp_sum(sum);
    mean = warp_sum(mean) / sum;
    sum = most + log(sum);
    if (lane < of.k) dot = static_cast<double>(weights[lane]) * static_cast<double>(dweights[lane]);
    dot = warp_sum(dot);
    for (int j = lane; j < of.e; j += EL_CUDA_WARP) {
        const double p = exp(static_cast<double>(row[j]) - sum);
        double d = p * (choices[j] * back.per_choice - mean) + p * back.z * sum;
        if (of.k == 1) d -= p * dot;
        for (int c = 0; c < of.k; c++)
            if (back.chosen[i * of.k + c] == j)
                d += static_cast<double>(weights[c]) * (static_cast<double>(dweights[c]) - (of.k == 1 ? 0 : dot));
        back.dlogits[i * of.e + j] = result<IO>(d);
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
                                    int32_t *__restrict__ counts, int32_t *log)
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
        counts[(expert / of.own * of.b + sample) * of.own + expert % of.own] = kept;
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
                        operand<int32_t>(args, 3)));
    return launch_blocks(args, "route_place", el_cuda_blocks(of.b * el_cuda_ceil_div(of.t * of.k, CHOICES), 1),
                         route_rows_kernel, of, chosen, static_cast<const int32_t *>(counts), place);
}

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
        y[i * w + c] = result<IO>(sum);
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
    int32_t *begin;
    struct piece *pieces;
};

static struct groups groups_of(const struct el_kernel_args *args)
{
    int32_t *begin = static_cast<int32_t *>(args->workspace);
    return {el_experts(args->p[2], &args->d[3], args->d[0]), args->d[1], args->d[2], begin,
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

template <typename REAL> struct tile_sums {
    REAL of[EACH][EACH];
};

template <bool ALONG, typename REAL, typename IO>
__device__ static inline void load_factor(REAL (*to)[TILE + PAD], const struct factor<IO> &from, int64_t done,
                                          int64_t depth)
{
    for (int at = static_cast<int>(threadIdx.x); at < TILE * DEEP; at += EL_CUDA_THREADS) {
        const int k = ALONG ? at % DEEP : at / TILE, i = ALONG ? at / DEEP : at % TILE;
        const int64_t place = ALONG ? i * from.step + done + k : (done + k) * from.step + i;
        to[k][i] = i < from.n && done + k < depth ? static_cast<REAL>(from.at[place]) : 0;
    }
}

/* sum += a b'. Begins and ends with all threads together. */
template <bool A_ALONG, bool B_ALONG, typename REAL, typename IO>
__device__ static inline void multiply(struct tile_factors<REAL> *tiles, const struct factor<IO> &a,
                                       const struct factor<IO> &b, int64_t depth, struct tile_sums<REAL> *sum)
{
    const int row = static_cast<int>(threadIdx.x) / SIDE * EACH, column = static_cast<int>(threadIdx.x) % SIDE * EACH;
    for (int64_t done = 0; done < depth; done += DEEP) {
        load_factor<A_ALONG>(tiles->a, a, done, depth);
        load_factor<B_ALONG>(tiles->b, b, done, depth);
        __syncthreads();
        for (int k = 0; k < DEEP && row < a.n && column < b.n; k++)
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++) sum->of[i][j] += tiles->a[k][row + i] * tiles->b[k][column + j];
        __syncthreads();
    }
}

template <typename OUT, typename REAL>
__device__ static inline void put(OUT *to, int64_t step, int64_t rows, int64_t columns, bool acc,
                                  const struct tile_sums<REAL> &sum)
{
    const int row = static_cast<int>(threadIdx.x) / SIDE * EACH, column = static_cast<int>(threadIdx.x) % SIDE * EACH;
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            OUT *y = &to[(row + i) * step + column + j];
            if (row + i < rows && column + j < columns)
                *y = rounded<OUT>(acc ? static_cast<REAL>(*y) + sum.of[i][j] : sum.of[i][j]);
        }
}

/* y[r,out] of x[r,in] and w[e,out,in]; BACK: dx[r,in] of dy[r,out]. */
template <typename IO, bool BACK>
__global__ void grouped_rows_kernel(struct groups of, bool acc, const IO *__restrict__ x, const IO *__restrict__ w,
                                    IO *__restrict__ y)
{
    typedef typename wide_of<IO>::type REAL;
    __shared__ struct tile_factors<REAL> tiles;
    const int64_t deep = BACK ? of.out : of.in, wide = BACK ? of.in : of.out, columns = el_cuda_ceil_div(wide, TILE);
    for (int64_t item = blockIdx.x; item < of.begin[of.all.e] * columns; item += gridDim.x) {
        const struct piece piece = of.pieces[item / columns];
        const int64_t column = item % columns * TILE;
        const IO *own = w + piece.expert * of.in * of.out;
        struct tile_sums<REAL> sum = {
        };
        multiply<true, !BACK>(&tiles, factor<IO>{x + piece.first * deep, deep, piece.n},
                              factor<IO>{BACK ? own + column : own + column * deep, BACK ? wide : deep, wide - column},
                              deep, &sum);
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
__global__ void grouped_weights_kernel(struct groups of, bool acc, const IO *__restrict__ x, const IO *__restrict__ dy,
                                       typename wide_of<IO>::type *__restrict__ dw)
{
    typedef typename wide_of<IO>::type REAL;
    __shared__ struct tile_factors<REAL> tiles;
    const int64_t columns = el_cuda_ceil_div(of.in, TILE), each = el_cuda_ceil_div(of.out, TILE) * columns;
    for (int64_t item = blockIdx.x; item < of.all.e * each; item += gridDim.x) {
        const int64_t expert = item / each, row = item % each / columns * TILE, column = item % columns * TILE;
        struct tile_sums<REAL> sum = {
        };
        for (int32_t at = of.begin[expert]; at < of.begin[expert + 1]; at++) {
            const struct piece piece = of.pieces[at];
            multiply<false, false>(&tiles, factor<IO>{dy + piece.first * of.out + row, of.out, of.out - row},
                                   factor<IO>{x + piece.first * of.in + column, of.in, of.in - column}, piece.n, &sum);
        }
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

#define ALL_TYPES(name)                                                                                                \
    EL_CUDA_RUN(name)                                                                                                  \
    EL_CUDA_RUN_BF16(name)
ALL_TYPES(route_forward)
ALL_TYPES(route_backward)
ALL_TYPES(route_place)
ALL_TYPES(rows_take)
ALL_TYPES(rows_give)
ALL_TYPES(grouped_forward)
ALL_TYPES(grouped_backward_data)
ALL_TYPES(grouped_backward_weights)
ALL_TYPES(swiglu_forward)
ALL_TYPES(swiglu_backward)
EL_CUDA_STEP_VALUES(route_forward, step_of)
EL_CUDA_WORKSPACE(grouped_forward, groups_bytes)
EL_CUDA_WORKSPACE(grouped_backward_data, groups_bytes)
EL_CUDA_WORKSPACE(grouped_backward_weights, groups_bytes)
