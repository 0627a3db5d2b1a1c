/* A caching allocator of device memory, because cudaMalloc synchronizes the whole device.
 *
 *     el_cuda_cache_open(&cache, api, "cuda:0");
 *     el_cuda_cache_take(&cache, bytes, &address);  ...  el_cuda_cache_give(&cache, address);
 *     el_cuda_cache_close(&cache);
 *
 * Segments of whole granules are split into blocks. A request takes the smallest block that fits; free neighbours
 * merge. When the driver runs out, free segments return to it. Threads: one at a time; the device is current. Units:
 * bytes. */
#pragma once

#include "runtime/device/cuda_api.h"

enum { EL_CUDA_BLOCK_BYTES = 512, EL_CUDA_GRANULE_BYTES = 2 << 20 };

struct el_cuda_block;

struct el_cuda_cache {
    const struct el_cuda_api *api;
    const char *who;
    struct el_cuda_block *blocks; /* list, by segment, then by address */
    int64_t live_bytes;           /* of blocks in use, rounded up */
    int64_t reserved_bytes;
    int n_segments, n_live;
};

void el_cuda_cache_open(struct el_cuda_cache *cache, const struct el_cuda_api *api, const char *who);
/* Errors: EL_ERR_OOM with what is held and free; EL_ERR_HOST_MEMORY. */
enum el_status el_cuda_cache_take(struct el_cuda_cache *cache, size_t bytes, uintptr_t *address_p);
void el_cuda_cache_give(struct el_cuda_cache *cache, uintptr_t address);
/* Returns free segments to the driver. */
void el_cuda_cache_trim(struct el_cuda_cache *cache);
void el_cuda_cache_close(struct el_cuda_cache *cache);
