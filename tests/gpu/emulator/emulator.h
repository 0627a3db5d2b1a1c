/* CUDA's words for a plain C++ compiler, so that kernels/cuda runs where there is no GPU: included before every .cu
 * file that the emulator's build compiles. A block's threads are fibers of one host thread and its barriers are real,
 * so that a missing __syncthreads() or a warp that parts before a shuffle is found; memory is the host's, so that the
 * address sanitizer watches every access. Without it the kernels' loads and stores are watched for races (races.cc).
 * What it cannot show: speed, and what the libraries do.
 */
#pragma once

#include <functional>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>

#define EL_CUDA_EMULATED
#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static __thread /* several streams run kernels at once */
#define __restrict__ const &       /* of a kernel's parameter, so that a launch sees by its type what it promises */

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

/* What a kernel is given: an address, or none. */
struct el_emulator_operand {
    const void *at;
    bool is_restrict, is_written;
};
template <typename FORMAL, typename ACTUAL> static inline struct el_emulator_operand el_emulator_operand_of(ACTUAL at)
{
    if constexpr (std::is_pointer_v<ACTUAL>)
        return {at, std::is_reference_v<FORMAL>, !std::is_const_v<std::remove_pointer_t<ACTUAL>>};
    else
        return {nullptr, false, false};
}

/* Ends the program where two of them are one address, one is __restrict__, and either may be written. */
void el_emulator_check_operands(const void *code, const struct el_emulator_operand *operands, int n);

template <typename... FORMAL, typename... ACTUAL>
static inline void el_emulator_check_restrict(void (*kernel)(FORMAL...), ACTUAL... actual)
{
    const struct el_emulator_operand operands[] = {el_emulator_operand_of<FORMAL>(actual)..., {nullptr, false, false}};
    el_emulator_check_operands(reinterpret_cast<const void *>(kernel), operands, sizeof...(actual));
}

/* The words of lane `lane ^ mask`; waits for the lanes that `lanes` names, of which both must be. */
uint64_t el_emulator_shuffle(unsigned lanes, uint64_t word, int mask);

template <typename T> static inline T __shfl_xor_sync(unsigned lanes, T value, int mask)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle moves up to 64 bits");
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    word = el_emulator_shuffle(lanes, word, mask);
    memcpy(&value, &word, sizeof value);
    return value;
}

static inline unsigned __ballot_sync(unsigned lanes, bool is_set)
{
    unsigned bits = is_set ? 1u << threadIdx.x % 32 : 0;
    for (int mask = 16; mask > 0; mask /= 2) bits |= __shfl_xor_sync(lanes, bits, mask);
    return bits;
}

static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

/* That an atomic is about to change a word: its own loads and stores are not watched. */
void el_emulator_atomic(const void *at, int bytes);
#define EL_EMULATOR_ATOMIC template <typename T> __attribute__((no_sanitize("thread"))) static inline T

EL_EMULATOR_ATOMIC atomicAdd(T *at, T value)
{
    el_emulator_atomic(at, sizeof *at);
    T before = *at;
    *at = static_cast<T>(before + value);
    return before;
}

static inline __attribute__((no_sanitize("thread"))) unsigned atomicInc(unsigned *at, unsigned most)
{
    el_emulator_atomic(at, sizeof *at);
    unsigned before = *at;
    *at = before >= most ? 0 : before + 1;
    return before;
}

EL_EMULATOR_ATOMIC atomicMin(T *at, T value)
{
    el_emulator_atomic(at, sizeof *at);
    T before = *at;
    *at = value < before ? value : before;
    return before;
}

EL_EMULATOR_ATOMIC atomicMax(T *at, T value)
{
    el_emulator_atomic(at, sizeof *at);
    T before = *at;
    *at = value > before ? value : before;
    return before;
}

/* What other blocks wrote is there at once. */
static inline void __threadfence(void)
{
}

/* Reads what other blocks wrote before a fence and an atomic, which the watch for races does not follow. */
EL_EMULATOR_ATOMIC __ldcg(const T *at)
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
