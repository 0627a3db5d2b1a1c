/* What makes a gradient small for the wire: an orthonormal basis of few columns, and the largest values. */
#include "kernels/cuda/common.cuh"

/* x_i . x_j, for every thread of the block. */
template <typename REAL> __device__ static double product(const REAL *x, int64_t n, int64_t r, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
        sum += static_cast<double>(x[k * r + i]) * static_cast<double>(x[k * r + j]);
    return block_sum(sum);
}

/* One block: columns follow on one another, and each thread has the same rows of all of them. */
template <typename REAL> __global__ void orthogonalize_kernel(int64_t n, int64_t r, REAL *x)
{
    for (int64_t i = 0; i < r; i++) {
        for (int64_t j = 0; j < 2 * i; j++) {
            double along = product(x, n, r, i, j % i);
            for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
                x[k * r + i] = static_cast<REAL>(static_cast<double>(x[k * r + i]) -
                                                 along * static_cast<double>(x[k * r + j % i]));
        }
        double norm = sqrt(product(x, n, r, i, i));
        for (int64_t k = threadIdx.x; k < n && norm > 0; k += blockDim.x)
            x[k * r + i] = static_cast<REAL>(static_cast<double>(x[k * r + i]) / norm);
    }
}

template <typename REAL> static enum el_status orthogonalize(const struct el_kernel_args *args)
{
    return launch_blocks(args, "orthogonalize", 1, orthogonalize_kernel<REAL>, args->d[0], args->d[1],
                         static_cast<REAL *>(args->p[0]));
}

/* ---- the k largest: the k-th one's bits, digit by digit; then places, counted stretch by stretch ---- */

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, STRETCH = 1024 };
static_assert(+DIGITS == +EL_CUDA_THREADS, "a thread of a block has a digit");

struct stretch {
    int64_t greater, equal; /* how many; then, how many there are before it */
};

/* The workspace, with a struct stretch for each 1024 values behind it. */
struct search {
    unsigned long long least; /* as many digits of the k-th as are known */
    long long left;           /* how many are to be found among those that begin so */
    unsigned counts[DIGITS];
};

template <typename REAL> __device__ static unsigned long long key_of(REAL value)
{
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits & ~(1ULL << (sizeof value * 8 - 1));
}

static __global__ void begin_kernel(int64_t k, struct search *search)
{
    search->counts[threadIdx.x] = 0;
    if (threadIdx.x == 0) search->least = 0, search->left = k;
}

template <typename REAL> __global__ void count_kernel(const REAL *x, int64_t n, int shift, struct search *search)
{
    __shared__ unsigned counts[DIGITS];
    counts[threadIdx.x] = 0;
    __syncthreads();
    EL_CUDA_EACH(i, n)
    {
        unsigned long long key = key_of(x[i]) >> shift;
        if (key >> DIGIT_BITS == search->least) atomicAdd(&counts[key % DIGITS], 1U);
    }
    __syncthreads();
    if (counts[threadIdx.x]) atomicAdd(&search->counts[threadIdx.x], counts[threadIdx.x]);
}

static __global__ void pick_kernel(struct search *search)
{
    if (threadIdx.x == 0) {
        int digit = DIGITS - 1;
        for (; search->counts[digit] < search->left; digit--) search->left -= search->counts[digit];
        search->least = search->least << DIGIT_BITS | static_cast<unsigned>(digit);
    }
    __syncthreads();
    search->counts[threadIdx.x] = 0;
}

template <typename REAL>
__global__ void stretches_kernel(const REAL *x, int64_t n, const struct search *search, struct stretch *stretches)
{
    EL_CUDA_EACH(s, (n + STRETCH - 1) / STRETCH)
    {
        struct stretch own = {0, 0};
        for (int64_t i = s * STRETCH; i < n && i < (s + 1) * STRETCH; i++) {
            own.greater += key_of(x[i]) > search->least;
            own.equal += key_of(x[i]) == search->least;
        }
        stretches[s] = own;
    }
}

static __global__ void places_kernel(int64_t n_stretches, struct stretch *stretches)
{
    struct stretch before = {0, 0};
    for (int64_t s = 0; s < n_stretches && threadIdx.x == 0; s++) {
        struct stretch own = stretches[s];
        stretches[s] = before;
        before.greater += own.greater;
        before.equal += own.equal;
    }
}

template <typename REAL>
__global__ void take_kernel(int64_t n, const struct search *search, const struct stretch *stretches, REAL *x,
                            REAL *values, int32_t *at)
{
    EL_CUDA_EACH(s, (n + STRETCH - 1) / STRETCH)
    {
        int64_t greater = stretches[s].greater, equal = stretches[s].equal;
        for (int64_t i = s * STRETCH; i < n && i < (s + 1) * STRETCH; i++) {
            unsigned long long key = key_of(x[i]);
            if (key < search->least || (key == search->least && equal >= search->left)) continue;
            int64_t place = greater + (equal < search->left ? equal : search->left);
            greater += key > search->least;
            equal += key == search->least;
            values[place] = x[i];
            at[place] = static_cast<int32_t>(i);
            x[i] = 0;
        }
    }
}

template <typename REAL> static enum el_status top_k(const struct el_kernel_args *args)
{
    const int64_t n = args->d[0], n_stretches = (n + STRETCH - 1) / STRETCH;
    REAL *x = static_cast<REAL *>(args->p[0]);
    struct search *search = static_cast<struct search *>(args->workspace);
    struct stretch *stretches = reinterpret_cast<struct stretch *>(search + 1);
    EL_TRY(launch_blocks(args, "top_k", 1, begin_kernel, args->d[1], search));
    for (int shift = static_cast<int>(sizeof(REAL)) * 8 - DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
        EL_TRY(launch(args, "top_k's digit", n, count_kernel<REAL>, x, n, shift, search));
        EL_TRY(launch_blocks(args, "top_k's digit", 1, pick_kernel, search));
    }
    EL_TRY(launch(args, "top_k's stretches", n_stretches, stretches_kernel<REAL>, x, n, search, stretches));
    EL_TRY(launch_blocks(args, "top_k's places", 1, places_kernel, n_stretches, stretches));
    return launch(args, "top_k's values", n_stretches, take_kernel<REAL>, n, search, stretches, x,
                  static_cast<REAL *>(args->p[1]), static_cast<int32_t *>(args->p[2]));
}

template <typename REAL> static size_t top_k_bytes(const struct el_kernel_args *args)
{
    return sizeof(struct search) + static_cast<size_t>((args->d[0] + STRETCH - 1) / STRETCH) * sizeof(struct stretch);
}

EL_CUDA_RUN(orthogonalize)
EL_CUDA_RUN(top_k)
EL_CUDA_WORKSPACE(top_k, top_k_bytes)
