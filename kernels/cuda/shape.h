/* Launch sizes and workspace layouts: arithmetic that can be tested without a GPU. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/host_device.h"

enum { EL_CUDA_THREADS = 256, EL_CUDA_WARP = 32, EL_CUDA_ALIGN_BYTES = 256 };

/* Kernels stride over their work, so that any number of blocks >= 1 is right. 65,536 blocks fill the largest GPU. Few
 * when emulated, to test the strides. */
#ifdef EL_CUDA_EMULATED
enum { EL_CUDA_BLOCKS_MAX = 3 };
#else
enum { EL_CUDA_BLOCKS_MAX = 65536 };
#endif

EL_HOST_DEVICE static inline int64_t el_cuda_ceil_div(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

/* Blocks for n items; 0 for none: CUDA refuses an empty grid. */
EL_HOST_DEVICE static inline unsigned el_cuda_blocks(int64_t n, int64_t items_per_block)
{
    if (n <= 0) return 0;
    int64_t blocks = el_cuda_ceil_div(n, items_per_block);
    const int64_t most = EL_CUDA_BLOCKS_MAX;
    return (unsigned)(blocks < most ? blocks : most);
}

/* Whether a candidate replaces the best so far, so that the first maximum wins in any order. Position -1: none yet. */
EL_HOST_DEVICE static inline bool el_cuda_max_replaces(double value, int64_t at, double best, int64_t best_at)
{
    if (at < 0) return false;
    return best_at < 0 || value > best || (value == best && at < best_at);
}

EL_HOST_DEVICE static inline size_t el_cuda_align(size_t bytes)
{
    return (bytes + EL_CUDA_ALIGN_BYTES - 1) / EL_CUDA_ALIGN_BYTES * EL_CUDA_ALIGN_BYTES;
}
