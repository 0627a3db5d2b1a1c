/* A caching allocator of device memory: cudaMalloc costs a synchronisation of the whole device, and freed memory is
 * mostly asked for again.
 *
 *     el_cuda_cache_open(&cache, api, "cuda:0");
 *     el_cuda_cache_take(&cache, bytes, &address);  ...  el_cuda_cache_give(&cache, address);
 *     el_cuda_cache_close(&cache);                  gives all back to the driver
 *
 * Segments come from the driver in whole granules; blocks are parts of segments. A request takes the smallest free
 * block that holds it and leaves the rest as a free block; neighbours that are free are one block. When the driver has
 * no more, whole free segments go back to it and it is asked once more. Only the ledger knows what memory is for.
 *
 * Threads: one at a time; the device is current. Units: bytes. */
#pragma once

#include "runtime/device/cuda_api.h"

enum { EL_CUDA_BLOCK_BYTES = 512, EL_CUDA_GRANULE_BYTES = 2 << 20 };

struct el_cuda_block;

struct el_cuda_cache {
    const struct el_cuda_api *api;
    const char *who;
    struct el_cuda_block *blocks; /* list, segment after segment, by address within one */
    int64_t live_bytes;           /* of blocks taken, rounded up */
    int64_t reserved_bytes;       /* of segments */
    int n_segments, n_live;
};

void el_cuda_cache_open(struct el_cuda_cache *cache, const struct el_cuda_api *api, const char *who);
/* Errors: EL_ERR_OOM saying what is held and what is free; EL_ERR_HOST_MEMORY. */
enum el_status el_cuda_cache_take(struct el_cuda_cache *cache, size_t bytes, uintptr_t *address_p);
void el_cuda_cache_give(struct el_cuda_cache *cache, uintptr_t address);
/* Gives whole free segments back to the driver. */
void el_cuda_cache_trim(struct el_cuda_cache *cache);
void el_cuda_cache_close(struct el_cuda_cache *cache);
