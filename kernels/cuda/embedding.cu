/* The embedding table: rows picked by id, and their dense gradient.
 * Float atomics differ from run to run, a sort costs passes over the ids, and a warp per id waits for the padding's,
 * half of all positions. So backward sums integers (exact_sum.h), in any order:
 *   1. heads  each id's first position, whose place in the workspace holds the id's sum
 *   2. peaks  the largest magnitude among an id's gradients, which gives its unit
 *   3. add    every element, by integer atomics
 *   4. give   the sums, to the rows that ids name; other rows are already cleared */
#include "kernels/cuda/common.cuh"

#include "kernels/cuda/embedding.h"
#include "kernels/cuda/exact_sum.h"

static_assert(sizeof(unsigned long long) == sizeof(int64_t), "atomics work on 64 bits");

template <typename REAL>
__global__ void embedding_forward_kernel(const int32_t *__restrict__ ids, const REAL *__restrict__ table, int64_t n,
                                         int64_t v, int64_t e, int64_t first, int64_t of, REAL *__restrict__ y)
{
    EL_CUDA_EACH(i, n * e)
    {
        int64_t id = ids[i / e], row = id - first;
        REAL missing = static_cast<REAL>(id >= 0 && id < (of ? of : v) ? 0 : NAN);
        y[i] = row >= 0 && row < v ? table[row * e + i % e] : missing;
    }
}

template <typename REAL> static enum el_status embedding_forward(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    return launch(args, "embedding_forward", d[0] * d[2], embedding_forward_kernel<REAL>,
                  static_cast<const int32_t *>(args->p[0]), static_cast<const REAL *>(args->p[1]), d[0], d[1], d[2],
                  d[3], d[4], static_cast<REAL *>(args->p[2]));
}

struct sums {
    const int32_t *ids;
    int64_t n, v, e, first;
    int digits;
    unsigned long long *words, *peaks;
    int32_t *heads;
};

template <typename REAL> static __host__ __device__ constexpr int words_of()
{
    return sizeof(REAL) == sizeof(double) ? 2 : 1;
}

/* The place of position i's sum; -1 for an id outside the table. */
__device__ static int64_t place_of(const struct sums &s, int64_t i)
{
    int64_t row = s.ids[i] - s.first;
    return row >= 0 && row < s.v ? s.heads[row] : -1;
}

__global__ void embedding_heads_kernel(struct sums s)
{
    EL_CUDA_EACH(i, s.n)
    {
        int64_t row = s.ids[i] - s.first;
        if (row >= 0 && row < s.v) atomicMin(&s.heads[row], static_cast<int32_t>(i));
    }
}

/* A warp per position. Magnitudes are compared as bits; non-finite ones are the largest. */
template <typename REAL> __global__ void embedding_peaks_kernel(struct sums s, const REAL *__restrict__ dy)
{
    int lane = threadIdx.x % EL_CUDA_WARP;
    EL_CUDA_EACH_WARP(i, s.n)
    {
        int64_t place = place_of(s, i);
        if (place < 0) continue; /* the same for the whole warp */
        unsigned long long peak = 0;
        for (int64_t j = lane; j < s.e; j += EL_CUDA_WARP) {
            double magnitude = fabs(static_cast<double>(dy[i * s.e + j]));
            unsigned long long bits = static_cast<unsigned long long>(__double_as_longlong(magnitude));
            peak = bits > peak ? bits : peak;
        }
        for (int offset = EL_CUDA_WARP / 2; offset > 0; offset /= 2) {
            unsigned long long other = __shfl_xor_sync(0xffffffffu, peak, offset);
            peak = other > peak ? other : peak;
        }
        if (lane == 0) atomicMax(&s.peaks[place], peak);
    }
}

template <typename REAL> __global__ void embedding_add_kernel(struct sums s, const REAL *__restrict__ dy)
{
    constexpr int words = words_of<REAL>();
    EL_CUDA_EACH(k, s.n * s.e)
    {
        int64_t place = place_of(s, k / s.e);
        if (place < 0) continue;
        double peak = __longlong_as_double(static_cast<long long>(s.peaks[place]));
        if (!isfinite(peak)) continue;
        int64_t whole[EL_EXACT_WORDS_MAX];
        el_exact_split(static_cast<double>(dy[k]), el_exact_shift(peak, s.digits), s.digits, whole);
        unsigned long long *to = s.words + (place * s.e + k % s.e) * words;
        for (int word = 0; word < words; word++) atomicAdd(&to[word], static_cast<unsigned long long>(whole[word]));
    }
}

template <typename REAL> __global__ void embedding_give_kernel(struct sums s, bool acc, REAL *__restrict__ dtable)
{
    constexpr int words = words_of<REAL>();
    EL_CUDA_EACH(k, s.n * s.e)
    {
        int64_t i = k / s.e;
        if (place_of(s, i) != i) continue;
        double peak = __longlong_as_double(static_cast<long long>(s.peaks[i])), sum = NAN;
        if (isfinite(peak)) {
            int64_t first = static_cast<int64_t>(s.words[k * words]);
            int64_t second = words == 2 ? static_cast<int64_t>(s.words[k * words + words - 1]) : 0;
            sum = el_exact_value(first, second, el_exact_shift(peak, s.digits), s.digits);
        }
        REAL *to = &dtable[(s.ids[i] - s.first) * s.e + k % s.e];
        *to = static_cast<REAL>(acc ? static_cast<double>(*to) + sum : sum);
    }
}

template <typename REAL> static size_t backward_bytes(const struct el_kernel_args *args)
{
    return el_embedding_layout(args->d[0], args->d[1], args->d[2], words_of<REAL>()).bytes;
}

template <typename REAL>
static enum el_status clear(const struct el_kernel_args *args, const struct el_embedding_layout &layout)
{
    char *workspace = static_cast<char *>(args->workspace);
    size_t rows_bytes = static_cast<size_t>(args->d[1] * args->d[2]) * sizeof(REAL);
    cudaStream_t stream = stream_of(args);
    EL_CUDA_TRY(cudaMemsetAsync(workspace + layout.sums, 0, layout.heads - layout.sums, stream));
    EL_CUDA_TRY(cudaMemsetAsync(workspace + layout.heads, EL_EMBEDDING_NONE_BYTE, layout.bytes - layout.heads, stream));
    if (args->s[0] == 0) EL_CUDA_TRY(cudaMemsetAsync(args->p[2], 0, rows_bytes, stream));
    return EL_OK;
}

template <typename REAL> static enum el_status embedding_backward(const struct el_kernel_args *args)
{
    const REAL *dy = static_cast<const REAL *>(args->p[1]);
    int64_t n = args->d[0], v = args->d[1], e = args->d[2];
    if (n >= EL_EMBEDDING_POSITIONS_MAX)
        return el_fail(EL_ERR_INVALID, "cuda embedding_backward: %lld positions; make the batch smaller", (long long)n);
    struct el_embedding_layout layout = el_embedding_layout(n, v, e, words_of<REAL>());
    char *workspace = static_cast<char *>(args->workspace);
    struct sums s;
    s.ids = static_cast<const int32_t *>(args->p[0]);
    s.n = n, s.v = v, s.e = e, s.first = args->d[3];
    s.digits = el_exact_digits(n);
    s.words = reinterpret_cast<unsigned long long *>(workspace + layout.sums);
    s.peaks = reinterpret_cast<unsigned long long *>(workspace + layout.peaks);
    s.heads = reinterpret_cast<int32_t *>(workspace + layout.heads);
    EL_TRY(clear<REAL>(args, layout));
    EL_TRY(launch(args, "embedding_backward's heads", n, embedding_heads_kernel, s));
    EL_TRY(launch_warps(args, "embedding_backward's peaks", n, embedding_peaks_kernel<REAL>, s, dy));
    EL_TRY(launch(args, "embedding_backward's sums", n * e, embedding_add_kernel<REAL>, s, dy));
    return launch(args, "embedding_backward", n * e, embedding_give_kernel<REAL>, s, args->s[0] != 0,
                  static_cast<REAL *>(args->p[2]));
}

EL_CUDA_RUN(embedding_forward)
EL_CUDA_RUN(embedding_backward)
EL_CUDA_WORKSPACE(embedding_backward, backward_bytes)
