/* Causal attention in tiles, as FlashAttention (Dao 2022, Dao 2023): no matrix of all scores is ever in memory. A block
 * takes a tile of rows of one sample's head, and of its output some columns; tiles above the diagonal are left out.
 * Products go through shared memory, 16 x 16 threads with some rows and columns each; sums of rows are in double. IO is
 * the tensors' type, REAL what is computed in: f32 for bf16. */
#include "kernels/cuda/common.cuh"

static constexpr int SIDE = 16, CHUNK = 32, BLOCKS = 2; /* threads of a tile's rows and columns; columns of a factor at
                                                         a time; blocks a multiprocessor, which bounds registers */

/* Rows and columns of a tile, and of each thread: row ty + 16 i and column tx + 16 j of it. */
template <typename REAL> static constexpr int TILE = sizeof(REAL) == sizeof(float) ? 64 : 32;

struct sizes {
    int64_t samples, t, heads, s;
    int64_t tiles, slices; /* of t, of s */
};

template <typename REAL> struct shared_tiles {
    enum { T = TILE<REAL> };
    REAL a[T][CHUNK + 1], b[T][CHUNK + 1], p[T][T + 1]; /* chunks of two factors; a product. + 1: other banks */
};

/* From a tile's first row on, `n` rows of s values, `step` apart; a tile's rest reads as 0. */
template <typename IO> struct tile_rows {
    IO *first;
    int64_t step;
    int n;
};

template <typename REAL, int T> struct products {
    enum { M = T / SIDE };
    REAL of[M][M];
    __device__ products()
    {
        for (int i = 0; i < M; i++)
            for (int j = 0; j < M; j++) of[i][j] = 0;
    }
};

__device__ static inline int thread_row()
{
    return static_cast<int>(threadIdx.x) / SIDE;
}

__device__ static inline int thread_column()
{
    return static_cast<int>(threadIdx.x) % SIDE;
}

/* A block's share. */
struct share {
    int64_t sample, head, slice;
    int tile;
};

__device__ static inline struct share share_of(struct sizes of, int64_t item)
{
    struct share share;
    share.slice = item % of.slices;
    share.tile = static_cast<int>(item / of.slices % of.tiles);
    share.head = item / of.slices / of.tiles % of.heads;
    share.sample = item / of.slices / of.tiles / of.heads;
    return share;
}

/* Of x[samples, t, parts, heads, s]: the rows of a tile. */
template <int T, typename IO>
__device__ static inline struct tile_rows<IO> rows_at(IO *x, struct sizes of, struct share share, int tile, int parts,
                                                      int part) {
    int64_t begin = static_cast<int64_t>(tile) * T, step = parts * of.heads * of.s, left = of.t - begin;
    return {x + (share.sample * of.t + begin) * step + (part * of.heads + share.head) * of.s, step,
            static_cast<int>(left < T ? left : T)};
}

template <typename REAL, int T, typename IO>
__device__ static inline void load_columns(REAL (*to)[CHUNK + 1], struct tile_rows<const IO> rows, int64_t column,
                                           int n)
{
    EL_CUDA_UNROLL(2)
    for (int at = static_cast<int>(threadIdx.x); at < T * CHUNK; at += EL_CUDA_THREADS) {
        int r = at / CHUNK, c = at % CHUNK;
        to[r][c] = r < rows.n && c < n ? static_cast<REAL>(rows.first[r * rows.step + column + c]) : 0;
    }
}

/* sum += x y', of s columns. Begins and ends with all threads together. */
template <typename REAL, int T, typename IO>
__device__ static inline void multiply(struct shared_tiles<REAL> *tiles, struct tile_rows<const IO> x,
                                       struct tile_rows<const IO> y, int64_t s, struct products<REAL, T> *sum)
{
    const int M = T / SIDE, ty = thread_row(), tx = thread_column();
    for (int64_t column = 0; column < s; column += CHUNK) {
        int n = static_cast<int>(s - column < CHUNK ? s - column : CHUNK);
        load_columns<REAL, T>(tiles->a, x, column, n);
        load_columns<REAL, T>(tiles->b, y, column, n);
        __syncthreads();
        for (int k = 0; k < n && ty < x.n && tx < y.n; k++)
            for (int i = 0; i < M; i++)
                for (int j = 0; j < M; j++) sum->of[i][j] += tiles->a[ty + SIDE * i][k] * tiles->b[tx + SIDE * j][k];
        __syncthreads();
    }
}

/* sum += p y, or with TRANSPOSED p' y, of T columns of y from `column` on. As above. */
template <typename REAL, int T, bool TRANSPOSED, typename IO>
__device__ static inline void multiply_p(struct shared_tiles<REAL> *tiles, struct tile_rows<const IO> y, int64_t column,
                                         int64_t s, struct products<REAL, T> *sum)
{
    const int M = T / SIDE, ty = thread_row(), tx = thread_column();
    static_assert(CHUNK * (T + 1) <= T * (CHUNK + 1), "rows of y fit where a chunk of a factor was");
    REAL(*rows)[T + 1] = reinterpret_cast<REAL(*)[T + 1]>(tiles->b);
    int width = static_cast<int>(s - column < T ? s - column : T);
    for (int first = 0; first < y.n; first += CHUNK) {
        int n = y.n - first < CHUNK ? y.n - first : CHUNK;
        EL_CUDA_UNROLL(2)
        for (int at = static_cast<int>(threadIdx.x); at < CHUNK * T; at += EL_CUDA_THREADS) {
            int k = at / T, c = at % T;
            rows[k][c] = k < n && c < width ? static_cast<REAL>(y.first[(first + k) * y.step + column + c]) : 0;
        }
        __syncthreads();
        for (int k = 0; k < n && tx < width; k++)
            for (int i = 0; i < M; i++) {
                REAL p = TRANSPOSED ? tiles->p[first + k][ty + SIDE * i] : tiles->p[ty + SIDE * i][first + k];
                for (int j = 0; j < M; j++) sum->of[i][j] += p * rows[k][tx + SIDE * j];
            }
        __syncthreads();
    }
}

template <typename REAL, int T>
__device__ static inline void put(struct shared_tiles<REAL> *tiles, const struct products<REAL, T> *values)
{
    const int M = T / SIDE;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) tiles->p[thread_row() + SIDE * i][thread_column() + SIDE * j] = values->of[i][j];
}

template <typename REAL, int T, typename IO>
__device__ static inline void write(struct tile_rows<IO> to, int64_t column, int64_t s,
                                    const struct products<REAL, T> *values)
{
    const int M = T / SIDE;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) {
            int r = thread_row() + SIDE * i, c = thread_column() + SIDE * j;
            if (r < to.n && column + c < s) to.first[r * to.step + column + c] = rounded<IO>(values->of[i][j]);
        }
}

/* Of a tile's rows so far: the largest score, and the sum of exp((score - largest) / sqrt(s)). */
template <typename REAL> struct row_state {
    REAL most, shrunk; /* ..., by what the last tile shrank all before it */
    double sum;
};

/* A warp's row of scores: exp of the first `seen`, 0 behind them. */
template <typename REAL, int T>
__device__ static inline void take_row(REAL *row, int seen, REAL per_root, struct row_state<REAL> *state)
{
    int lane = static_cast<int>(threadIdx.x) % EL_CUDA_WARP;
    REAL before = lane > 0 ? static_cast<REAL>(-INFINITY) : state->most; /* which that lane alone reads and writes */
    double largest = static_cast<double>(before), sum = 0;
    for (int j = lane; j < seen; j += EL_CUDA_WARP) largest = fmax(largest, static_cast<double>(row[j]));
    REAL most = static_cast<REAL>(warp_max(largest));
    for (int j = lane; j < T; j += EL_CUDA_WARP) {
        row[j] = j < seen ? exp((row[j] - most) * per_root) : static_cast<REAL>(0);
        sum += static_cast<double>(row[j]);
    }
    sum = warp_sum(sum);
    if (lane > 0) return;
    state->shrunk = exp((before - most) * per_root);
    state->sum = state->sum * static_cast<double>(state->shrunk) + sum;
    state->most = most;
}

template <typename IO>
__global__ void __launch_bounds__(EL_CUDA_THREADS, BLOCKS)
    attention_forward_kernel(struct sizes of, typename wide_of<IO>::type per_root, const IO *__restrict__ qkv,
                             IO *__restrict__ y, typename wide_of<IO>::type *__restrict__ saved)
{
    typedef typename wide_of<IO>::type REAL;
    const int T = TILE<REAL>, M = T / SIDE;
    __shared__ struct shared_tiles<REAL> tiles;
    __shared__ struct row_state<REAL> states[T];
    int thread = static_cast<int>(threadIdx.x), warp = thread / EL_CUDA_WARP;
    for (int64_t item = blockIdx.x; item < of.samples * of.heads * of.tiles * of.slices; item += gridDim.x) {
        const struct share share = share_of(of, item);
        const struct tile_rows<const IO> q = rows_at<T>(qkv, of, share, share.tile, 3, 0);
        struct products<REAL, T> out;
        if (thread < T) states[thread] = {static_cast<REAL>(-INFINITY), 0, 0};
        for (int k = 0; k <= share.tile; k++) {
            struct products<REAL, T> scores;
            multiply<REAL, T>(&tiles, q, rows_at<T>(qkv, of, share, k, 3, 1), of.s, &scores);
            put<REAL, T>(&tiles, &scores);
            __syncthreads();
            for (int r = warp; r < q.n; r += WARPS_A_BLOCK)
                take_row<REAL, T>(tiles.p[r], k == share.tile ? r + 1 : T, per_root, &states[r]);
            __syncthreads();
            for (int i = 0; i < M; i++)
                for (int j = 0; j < M; j++) out.of[i][j] *= states[thread_row() + SIDE * i].shrunk;
            multiply_p<REAL, T, false>(&tiles, rows_at<T>(qkv, of, share, k, 3, 2), share.slice * T, of.s, &out);
        }
        for (int i = 0; i < M; i++)
            for (int j = 0; j < M; j++)
                out.of[i][j] =
                    static_cast<REAL>(static_cast<double>(out.of[i][j]) / states[thread_row() + SIDE * i].sum);
        write<REAL, T>(rows_at<T>(y, of, share, share.tile, 1, 0), share.slice * T, of.s, &out);
        if (share.slice == 0 && thread < q.n)
            saved[(share.sample * of.heads + share.head) * of.t + static_cast<int64_t>(share.tile) * T + thread] =
                static_cast<REAL>(static_cast<double>(states[thread].most) * static_cast<double>(per_root) +
                                  log(states[thread].sum));
        __syncthreads(); /* before the next item's states */
    }
}

/* What the backward kernels read. */
template <typename IO> struct backward_of {
    typedef typename wide_of<IO>::type REAL;
    const IO *dy, *qkv;
    const REAL *saved;
    IO *dqkv;
    REAL *means; /* means[samples, heads, t]: a row's sum of p dp */
    REAL per_root;
};

/* Of a tile of queries and one of keys: p = softmax(q k' / sqrt(s)) and dp = dy v', both 0 where a key is not seen. */
template <typename REAL, int T, typename IO>
__device__ static inline void recompute(struct shared_tiles<REAL> *tiles, struct sizes of, struct share share,
                                        const struct backward_of<IO> &from, const REAL *saved, int queries, int keys,
                                        struct products<REAL, T> *p, struct products<REAL, T> *dp)
{
    const int M = T / SIDE;
    const struct tile_rows<const IO> q = rows_at<T>(from.qkv, of, share, queries, 3, 0);
    multiply<REAL, T>(tiles, q, rows_at<T>(from.qkv, of, share, keys, 3, 1), of.s, p);
    multiply<REAL, T>(tiles, rows_at<T>(from.dy, of, share, queries, 1, 0), rows_at<T>(from.qkv, of, share, keys, 3, 2),
                      of.s, dp);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) {
            int r = thread_row() + SIDE * i, c = thread_column() + SIDE * j;
            bool seen = r < q.n && (keys < queries || c <= r);
            p->of[i][j] = seen ? exp(p->of[i][j] * from.per_root - saved[r]) : static_cast<REAL>(0);
            if (!seen) dp->of[i][j] = 0;
        }
}

/* Adds over the 16 threads that have a row's columns; all of them get the sum. */
__device__ static inline double row_sum(double value)
{
    for (int offset = SIDE / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

/* dq = ds k, with ds = p (dp - mean) / sqrt(s): the rows' means first, then the product. */
template <typename IO>
__global__ void __launch_bounds__(EL_CUDA_THREADS, BLOCKS)
    attention_queries_kernel(struct sizes of, struct backward_of<IO> from)
{
    typedef typename wide_of<IO>::type REAL;
    const int T = TILE<REAL>, M = T / SIDE;
    __shared__ struct shared_tiles<REAL> tiles;
    __shared__ REAL saved[T];
    int thread = static_cast<int>(threadIdx.x);
    for (int64_t item = blockIdx.x; item < of.samples * of.heads * of.tiles * of.slices; item += gridDim.x) {
        const struct share share = share_of(of, item);
        const int64_t row = (share.sample * of.heads + share.head) * of.t + static_cast<int64_t>(share.tile) * T;
        struct tile_rows<IO> dq = rows_at<T>(from.dqkv, of, share, share.tile, 3, 0);
        struct products<REAL, T> out;
        double sums[M] = {};
        REAL means[M] = {};
        if (thread < T) saved[thread] = thread < dq.n ? from.saved[row + thread] : 0;
        for (int pass = 0; pass < 2; pass++) {
            for (int k = 0; k <= share.tile; k++) {
                struct products<REAL, T> p, dp;
                recompute<REAL, T>(&tiles, of, share, from, saved, share.tile, k, &p, &dp);
                for (int i = 0; i < M; i++)
                    for (int j = 0; j < M; j++) {
                        if (pass == 0) sums[i] += static_cast<double>(p.of[i][j]) * static_cast<double>(dp.of[i][j]);
                        p.of[i][j] *= (dp.of[i][j] - means[i]) * from.per_root;
                    }
                if (pass == 0) continue;
                put<REAL, T>(&tiles, &p);
                multiply_p<REAL, T, false>(&tiles, rows_at<T>(from.qkv, of, share, k, 3, 1), share.slice * T, of.s,
                                           &out);
            }
            for (int i = 0; i < M && pass == 0; i++) means[i] = static_cast<REAL>(row_sum(sums[i]));
        }
        write<REAL, T>(dq, share.slice * T, of.s, &out);
        for (int i = 0; i < M; i++)
            if (share.slice == 0 && thread_column() == 0 && thread_row() + SIDE * i < dq.n)
                from.means[row + thread_row() + SIDE * i] = means[i];
    }
}

/* dv = p' dy and dk = ds' q, over all queries that see the keys. */
template <typename IO>
__global__ void __launch_bounds__(EL_CUDA_THREADS, BLOCKS)
    attention_keys_kernel(struct sizes of, struct backward_of<IO> from)
{
    typedef typename wide_of<IO>::type REAL;
    const int T = TILE<REAL>, M = T / SIDE;
    __shared__ struct shared_tiles<REAL> tiles;
    __shared__ REAL saved[T], means[T];
    int thread = static_cast<int>(threadIdx.x);
    for (int64_t item = blockIdx.x; item < of.samples * of.heads * of.tiles * of.slices; item += gridDim.x) {
        const struct share share = share_of(of, item);
        const int64_t column = share.slice * T;
        struct products<REAL, T> dk, dv;
        for (int q = share.tile; q < of.tiles; q++) {
            const int64_t row = (share.sample * of.heads + share.head) * of.t + static_cast<int64_t>(q) * T;
            struct products<REAL, T> p, dp;
            if (thread < T) {
                bool there = static_cast<int64_t>(q) * T + thread < of.t;
                saved[thread] = there ? from.saved[row + thread] : 0;
                means[thread] = there ? from.means[row + thread] : 0;
            }
            recompute<REAL, T>(&tiles, of, share, from, saved, q, share.tile, &p, &dp);
            put<REAL, T>(&tiles, &p);
            multiply_p<REAL, T, true>(&tiles, rows_at<T>(from.dy, of, share, q, 1, 0), column, of.s, &dv);
            for (int i = 0; i < M; i++)
                for (int j = 0; j < M; j++)
                    p.of[i][j] *= (dp.of[i][j] - means[thread_row() + SIDE * i]) * from.per_root;
            put<REAL, T>(&tiles, &p);
            multiply_p<REAL, T, true>(&tiles, rows_at<T>(from.qkv, of, share, q, 3, 0), column, of.s, &dk);
        }
        write<REAL, T>(rows_at<T>(from.dqkv, of, share, share.tile, 3, 1), column, of.s, &dk);
        write<REAL, T>(rows_at<T>(from.dqkv, of, share, share.tile, 3, 2), column, of.s, &dv);
    }
}

template <typename IO> static struct sizes sizes_of(const struct el_kernel_args *args)
{
    const int64_t *d = args->d, T = TILE<typename wide_of<IO>::type>;
    return {d[0], d[1], d[2], d[3], el_cuda_ceil_div(d[1], T), el_cuda_ceil_div(d[3], T)};
}

static unsigned blocks_of(const struct sizes &of)
{
    return el_cuda_blocks(of.samples * of.heads * of.tiles * of.slices, 1);
}

template <typename IO> static typename wide_of<IO>::type per_root(const struct sizes &of)
{
    return static_cast<typename wide_of<IO>::type>(1 / sqrt(static_cast<double>(of.s)));
}

template <typename IO> static enum el_status attention_forward(const struct el_kernel_args *args)
{
    const struct sizes of = sizes_of<IO>(args);
    return launch_blocks(args, "attention_forward", blocks_of(of), attention_forward_kernel<IO>, of, per_root<IO>(of),
                         static_cast<const IO *>(args->p[0]), static_cast<IO *>(args->p[1]),
                         static_cast<typename wide_of<IO>::type *>(args->p[2]));
}

template <typename IO> static enum el_status attention_backward(const struct el_kernel_args *args)
{
    typedef typename wide_of<IO>::type REAL;
    const struct sizes of = sizes_of<IO>(args);
    const struct backward_of<IO> from = {
        static_cast<const IO *>(args->p[0]), static_cast<const IO *>(args->p[1]), static_cast<const REAL *>(args->p[2]),
            static_cast<IO *>(args->p[3]), static_cast<REAL *>(args->workspace), per_root<IO>(of)
    };
    EL_TRY(launch_blocks(args, "attention_backward's queries", blocks_of(of), attention_queries_kernel<IO>, of, from));
    return launch_blocks(args, "attention_backward's keys", blocks_of(of), attention_keys_kernel<IO>, of, from);
}

template <typename REAL> static size_t backward_bytes(const struct el_kernel_args *args)
{
    return static_cast<size_t>(args->d[0] * args->d[1] * args->d[2]) * sizeof(REAL);
}

EL_CUDA_RUN(attention_forward)
EL_CUDA_RUN(attention_backward)
EL_CUDA_RUN_BF16(attention_forward)
EL_CUDA_RUN_BF16(attention_backward)
EL_CUDA_WORKSPACE(attention_backward, backward_bytes)
