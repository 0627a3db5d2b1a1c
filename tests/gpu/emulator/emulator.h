/* CUDA's words for a plain C++ compiler, so that kernels/cuda runs where there is no GPU: included before every .cu
 * file that the emulator's build compiles. A block's threads are fibers of one host thread and its barriers are real,
 * so that a missing __syncthreads() or a warp that parts before a shuffle is found; memory is the host's, so that the
 * address sanitizer watches every access. What it cannot show: speed, races between blocks, and what the libraries do.
 */
#pragma once

#include <functional>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define EL_CUDA_EMULATED
#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static __thread /* several streams run kernels at once */

struct el_emulator_index {
    unsigned x;
};
extern __thread struct el_emulator_index threadIdx, blockIdx, blockDim,
    gridDim __attribute__((tls_model("initial-exec")));

/* Puts a kernel on a stream (tests/cards/cards.h), whose thread runs every thread of every block to the end; at once
 * where the stream is NULL. `code` names it. What a launch fails with is cudaGetLastError()'s. */
void el_emulator_launch(void *stream, const void *code, unsigned blocks, unsigned threads,
                        const std::function<void()> &kernel);

/* Waits for all threads of the block that still run. */
void __syncthreads(void);

/* The words of lane `lane ^ mask`; waits for all 32 lanes of the warp. */
uint64_t el_emulator_shuffle(uint64_t word, int mask);

template <typename T> static inline T __shfl_xor_sync(unsigned lanes, T value, int mask)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle moves up to 64 bits");
    uint64_t word = 0;
    (void)lanes;
    memcpy(&word, &value, sizeof value);
    word = el_emulator_shuffle(word, mask);
    memcpy(&value, &word, sizeof value);
    return value;
}

template <typename T> static inline T atomicAdd(T *at, T value)
{
    T before = *at;
    *at = static_cast<T>(before + value);
    return before;
}

template <typename T> static inline T atomicMin(T *at, T value)
{
    T before = *at;
    *at = value < before ? value : before;
    return before;
}

template <typename T> static inline T atomicMax(T *at, T value)
{
    T before = *at;
    *at = value > before ? value : before;
    return before;
}

/* What other blocks wrote is there at once. */
static inline void __threadfence(void)
{
}

template <typename T> static inline T __ldcg(const T *at)
{
    return *at;
}

static inline long long __double_as_longlong(double value)
{
    long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double __longlong_as_double(long long bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
