/* What the .cu files share: strided loops, launches, sums in fixed order, and rows for f32 and f64.
 *
 *     template <typename REAL> __global__ void scale_kernel(...) { EL_CUDA_EACH(i, n) y[i] = s * x[i]; }
 *     template <typename REAL> static enum el_status scale(const struct el_kernel_args *args) { return launch(...); }
 *     EL_CUDA_RUN(scale)                                    el_cuda_scale_f32, el_cuda_scale_f64
 *
 * Sums of many terms are in double, in an order that depends on sizes alone: the same bits in every run. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern "C" {
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/native.h"
}
#include "kernels/cuda/check.h"
#include "kernels/cuda/shape.h"

#define EL_CUDA_EACH(i, n)                                                                                             \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (int64_t)gridDim.x * blockDim.x)

/* For kernels with a warp per item: the item's number; the lane is threadIdx.x % 32. */
#define EL_CUDA_EACH_WARP(i, n)                                                                                        \
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / EL_CUDA_WARP; i < (n);                         \
         i += (int64_t)gridDim.x * blockDim.x / EL_CUDA_WARP)

/* So many turns of the next loop at a time: more need more registers. */
#ifdef EL_CUDA_EMULATED
#define EL_CUDA_UNROLL(n)
#else
#define EL_CUDA_TEXT(words) #words
#define EL_CUDA_UNROLL(n)   _Pragma(EL_CUDA_TEXT(unroll n))
#endif

enum { WARPS_A_BLOCK = EL_CUDA_THREADS / EL_CUDA_WARP };

static inline cudaStream_t stream_of(const struct el_kernel_args *args)
{
    return static_cast<cudaStream_t>(static_cast<const struct el_cuda_native *>(args->native)->stream);
}

template <typename T> static T *operand(const struct el_kernel_args *args, int i)
{
    return static_cast<T *>(args->p[i]);
}

/* Launches `blocks` blocks of EL_CUDA_THREADS on the op's stream; none for 0. */
template <typename... FORMAL, typename... ACTUAL>
static enum el_status launch_blocks(const struct el_kernel_args *args, const char *op, unsigned blocks,
                                    void (*kernel)(FORMAL...), ACTUAL... actual)
{
    cudaStream_t stream = stream_of(args);
    if (blocks == 0) return EL_OK;
#ifdef EL_CUDA_EMULATED
    el_emulator_check_restrict(kernel, actual...);
    el_emulator_launch(stream, reinterpret_cast<const void *>(kernel), blocks, EL_CUDA_THREADS,
                       [=] { kernel(actual...); });
#else
    kernel<<<blocks, EL_CUDA_THREADS, 0, stream>>>(actual...);
#endif
    return el_cuda_launched(op);
}

template <typename... FORMAL, typename... ACTUAL>
static enum el_status launch(const struct el_kernel_args *args, const char *op, int64_t items,
                             void (*kernel)(FORMAL...), ACTUAL... actual)
{
    return launch_blocks(args, op, el_cuda_blocks(items, EL_CUDA_THREADS), kernel, actual...);
}

template <typename... FORMAL, typename... ACTUAL>
static enum el_status launch_warps(const struct el_kernel_args *args, const char *op, int64_t items,
                                   void (*kernel)(FORMAL...), ACTUAL... actual)
{
    return launch_blocks(args, op, el_cuda_blocks(items, WARPS_A_BLOCK), kernel, actual...);
}

/* One launch's tensors, as many as fit the 4 KiB of kernel arguments. Each has the blocks that it would have alone, so
 * that sums have the same bits. Kernels take them as __grid_constant__, else each thread copies them to local
 * memory. */
template <int POINTERS, int MOST> struct tensors {
    struct {
        void *p[POINTERS];
        int64_t n;
        unsigned first, blocks;
    } each[MOST];
    int n;
};
enum { ARGUMENT_BYTES = 4096, OTHER_ARGUMENT_BYTES = 96 };
constexpr int most_tensors(int pointers)
{
    return (ARGUMENT_BYTES - OTHER_ARGUMENT_BYTES) / static_cast<int>((pointers + 2) * sizeof(void *));
}

template <int POINTERS, int MOST> __device__ static inline int own_tensor(const tensors<POINTERS, MOST> &all)
{
    int low = 0;
    for (int high = all.n; high - low > 1;) {
        const int middle = (low + high) / 2;
        (all.each[middle].first <= blockIdx.x ? low : high) = middle;
    }
    return low;
}

#define EL_CUDA_EACH_OF(i, own)                                                                                        \
    for (int64_t i = (int64_t)(blockIdx.x - (own).first) * blockDim.x + threadIdx.x; i < (own).n;                      \
         i += (int64_t)(own).blocks * blockDim.x)

/* Takes tensor `*at_p` and as many after it as fit. Returns their number of blocks. */
template <int POINTERS, int MOST>
static unsigned take_tensors(const struct el_kernel_args *args, int64_t items_per_block, int *at_p,
                             tensors<POINTERS, MOST> *list)
{
    unsigned blocks = 0;
    list->n = 0;
    do {
        const struct el_kernel_tensor *from = args->n_tensors ? &args->tensors[*at_p] : nullptr;
        auto &to = list->each[list->n];
        memcpy(to.p, from ? from->p : args->p, sizeof to.p);
        to.n = from ? from->n : args->d[0];
        to.first = blocks;
        to.blocks = el_cuda_blocks(to.n, items_per_block);
        if (to.blocks > 0) list->n++;
        blocks += to.blocks;
    } while (++*at_p < args->n_tensors && list->n < MOST);
    return blocks;
}

template <int POINTERS, int MOST, typename... FORMAL, typename... ACTUAL>
static enum el_status launch_list(const struct el_kernel_args *args, const char *op,
                                  void (*kernel)(tensors<POINTERS, MOST>, FORMAL...), ACTUAL... actual)
{
    tensors<POINTERS, MOST> list;
    int at = 0;
    do {
        const unsigned blocks = take_tensors(args, EL_CUDA_THREADS, &at, &list);
        EL_TRY(launch_blocks(args, op, blocks, kernel, list, actual...));
    } while (at < args->n_tensors);
    return EL_OK;
}

/* A thread per item of each tensor, by a kernel of `one` or of `many` tensors per launch. */
template <int POINTERS, typename... FORMAL, typename... ACTUAL>
static enum el_status
launch_tensors(const struct el_kernel_args *args, const char *op, void (*one)(tensors<POINTERS, 1>, FORMAL...),
               void (*many)(tensors<POINTERS, most_tensors(POINTERS)>, FORMAL...), ACTUAL... actual)
{
    return args->n_tensors ? launch_list(args, op, many, actual...) : launch_list(args, op, one, actual...);
}
#define EL_CUDA_BOTH(kernel, pointers, ...) kernel<__VA_ARGS__, 1>, kernel<__VA_ARGS__, most_tensors(pointers)>

/* bf16: computed in f32, rounded to nearest, ties to even. */
struct bf16 {
    uint16_t bits;
    __device__ operator float() const
    {
        union {
            uint32_t bits;
            float value;
        } wide;
        wide.bits = static_cast<uint32_t>(bits) << 16;
        return wide.value;
    }
};

template <typename REAL> struct wide_of {
    typedef REAL type;
};
template <> struct wide_of<bf16> {
    typedef float type;
};

template <typename REAL> __device__ static inline REAL rounded(typename wide_of<REAL>::type value)
{
    return value;
}

template <> __device__ inline bf16 rounded<bf16>(float value)
{
    union {
        float value;
        uint32_t bits;
    } wide;
    wide.value = value;
    const bool is_nan = (wide.bits & 0x7fffffff) > 0x7f800000;
    bf16 half;
    half.bits =
        static_cast<uint16_t>(is_nan ? wide.bits >> 16 | 0x40 : (wide.bits + 0x7fff + (wide.bits >> 16 & 1)) >> 16);
    return half;
}

template <typename REAL> __device__ static inline REAL rounded_double(double value)
{
    return rounded<REAL>(static_cast<typename wide_of<REAL>::type>(value));
}

__device__ static inline int own_lane()
{
    return static_cast<int>(threadIdx.x) % EL_CUDA_WARP;
}

__device__ static inline int own_warp()
{
    return static_cast<int>(threadIdx.x) / EL_CUDA_WARP;
}

/* The same tree in every run; all 32 lanes must take part and get the sum. */
__device__ static inline double warp_sum(double value)
{
    for (int offset = EL_CUDA_WARP / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

__device__ static inline double warp_max(double value)
{
    for (int offset = EL_CUDA_WARP / 2; offset > 0; offset /= 2)
        value = fmax(value, __shfl_xor_sync(0xffffffffu, value, offset));
    return value;
}

/* The sum over a block of EL_CUDA_THREADS; all threads must take part and get it. */
__device__ static inline double block_sum(double value)
{
    __shared__ double part[WARPS_A_BLOCK];
    value = warp_sum(value);
    if (threadIdx.x % EL_CUDA_WARP == 0) part[threadIdx.x / EL_CUDA_WARP] = value;
    __syncthreads();
    value = 0;
    for (int warp = 0; warp < WARPS_A_BLOCK; warp++) value += part[warp];
    __syncthreads(); /* before the next sum reuses `part` */
    return value;
}

#define EL_CUDA_RUN(name)                                                                                              \
    extern "C" enum el_status el_cuda_##name##_f32(const struct el_kernel_args *args)                                  \
    {                                                                                                                  \
        return name<float>(args);                                                                                      \
    }                                                                                                                  \
    extern "C" enum el_status el_cuda_##name##_f64(const struct el_kernel_args *args)                                  \
    {                                                                                                                  \
        return name<double>(args);                                                                                     \
    }

#define EL_CUDA_RUN_BF16(name)                                                                                         \
    extern "C" enum el_status el_cuda_##name##_bf16(const struct el_kernel_args *args)                                 \
    {                                                                                                                  \
        return name<bf16>(args);                                                                                       \
    }

#define EL_CUDA_RUN_OF_ALL(name)                                                                                       \
    EL_CUDA_RUN(name)                                                                                                  \
    EL_CUDA_RUN_BF16(name)

/* For step-dependent rows: `values` is a template that makes their struct from the op's arguments. */
#define EL_CUDA_STEP_VALUES(name, values)                                                                              \
    static_assert(sizeof(values<double>(nullptr)) <= EL_STEP_VALUES_BYTES, "a graph keeps so many bytes for an op");   \
    extern "C" bool el_cuda_##name##_step_values_f32(const struct el_kernel_args *args, void *to)                      \
    {                                                                                                                  \
        *static_cast<decltype(values<float>(nullptr)) *>(to) = values<float>(args);                                    \
        return true;                                                                                                   \
    }                                                                                                                  \
    extern "C" bool el_cuda_##name##_step_values_f64(const struct el_kernel_args *args, void *to)                      \
    {                                                                                                                  \
        *static_cast<decltype(values<double>(nullptr)) *>(to) = values<double>(args);                                  \
        return true;                                                                                                   \
    }

/* For rows with a workspace: `size` is a template of the op's arguments. */
#define EL_CUDA_WORKSPACE(name, size)                                                                                  \
    extern "C" enum el_status el_cuda_##name##_workspace_f32(const struct el_kernel_args *args,                        \
                                                             struct el_workspace *workspace_p)                         \
    {                                                                                                                  \
        workspace_p->bytes = size<float>(args);                                                                        \
        workspace_p->padding_bytes = 0;                                                                                \
        return EL_OK;                                                                                                  \
    }                                                                                                                  \
    extern "C" enum el_status el_cuda_##name##_workspace_f64(const struct el_kernel_args *args,                        \
                                                             struct el_workspace *workspace_p)                         \
    {                                                                                                                  \
        workspace_p->bytes = size<double>(args);                                                                       \
        workspace_p->padding_bytes = 0;                                                                                \
        return EL_OK;                                                                                                  \
    }
