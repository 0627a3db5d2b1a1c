/* Linear lists: a training process holds some hundred blocks and takes them outside of steps. */
#include "runtime/device/cuda_cache.h"

#include <stdlib.h>

struct el_cuda_block {
    uintptr_t address;
    size_t bytes;
    bool is_free;
    bool first; /* of its segment */
    struct el_cuda_block *next;
};

void el_cuda_cache_open(struct el_cuda_cache *cache, const struct el_cuda_api *api, const char *who)
{
    *cache = (struct el_cuda_cache){.api = api, .who = who};
}

static size_t round_up(size_t bytes, size_t unit)
{
    return bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
}

static bool ends_segment(const struct el_cuda_block *block)
{
    return !block->next || block->next->first;
}

static struct el_cuda_block *best_fit(const struct el_cuda_cache *cache, size_t bytes)
{
    struct el_cuda_block *best = NULL;
    for (struct el_cuda_block *block = cache->blocks; block; block = block->next) {
        if (block->is_free && block->bytes >= bytes && (!best || block->bytes < best->bytes)) best = block;
    }
    return best;
}

void el_cuda_cache_trim(struct el_cuda_cache *cache)
{
    for (struct el_cuda_block **link = &cache->blocks; *link;) {
        struct el_cuda_block *block = *link;
        if (!block->is_free || !block->first || !ends_segment(block)) {
            link = &block->next;
            continue;
        }
        EL_CUDART_LET(cache->api, Free, (void *)block->address);
        cache->reserved_bytes -= (int64_t)block->bytes;
        cache->n_segments--;
        *link = block->next;
        free(block);
    }
}

static enum el_status out_of_memory(const struct el_cuda_cache *cache, size_t bytes)
{
    char wanted[EL_BYTES_TEXT], held[EL_BYTES_TEXT], rest[EL_BYTES_TEXT], all[EL_BYTES_TEXT];
    size_t left = 0, total = 0;
    cache->api->GetLastError();
    EL_CUDART_LET(cache->api, MemGetInfo, &left, &total);
    return el_fail(EL_ERR_OOM,
                   "%s is out of memory: %s do not fit; this device holds %s, %s of %s are free on the card; take a "
                   "smaller batch or model, or end other processes on it",
                   cache->who, el_bytes_text(bytes, wanted), el_bytes_text((size_t)cache->reserved_bytes, held),
                   el_bytes_text(left, rest), el_bytes_text(total, all));
}

static enum el_status extend(struct el_cuda_cache *cache, size_t bytes, struct el_cuda_block **block_p)
{
    size_t whole = round_up(bytes, EL_CUDA_GRANULE_BYTES);
    struct el_cuda_block *made = malloc(sizeof *made);
    void *address = NULL;
    if (!made) return el_fail_errno("%s: %zu bytes", cache->who, bytes);
    int code = cache->api->Malloc(&address, whole);
    if (code == EL_CUDA_ERROR_MEMORY) {
        cache->api->GetLastError();
        el_cuda_cache_trim(cache);
        code = cache->api->Malloc(&address, whole);
    }
    if (code != EL_CUDA_SUCCESS) {
        free(made);
        return code == EL_CUDA_ERROR_MEMORY ? out_of_memory(cache, bytes)
                                            : el_cuda_status(cache->api, cache->who, "Malloc", code);
    }
    *made = (struct el_cuda_block){
        .address = (uintptr_t)address, .bytes = whole, .is_free = true, .first = true, .next = cache->blocks};
    cache->blocks = made;
    cache->n_segments++;
    cache->reserved_bytes += (int64_t)whole;
    *block_p = made;
    return EL_OK;
}

static enum el_status split(struct el_cuda_cache *cache, struct el_cuda_block *block, size_t bytes)
{
    if (block->bytes == bytes) return EL_OK;
    struct el_cuda_block *rest = malloc(sizeof *rest);
    if (!rest) return el_fail_errno("%s: %zu bytes", cache->who, bytes);
    *rest = (struct el_cuda_block){
        .address = block->address + bytes, .bytes = block->bytes - bytes, .is_free = true, .next = block->next};
    block->bytes = bytes;
    block->next = rest;
    return EL_OK;
}

enum el_status el_cuda_cache_take(struct el_cuda_cache *cache, size_t bytes, uintptr_t *address_p)
{
    if (bytes > SIZE_MAX / 2) return out_of_memory(cache, bytes);
    size_t wanted = round_up(bytes, EL_CUDA_BLOCK_BYTES);
    struct el_cuda_block *block = best_fit(cache, wanted);
    enum el_status status = EL_OK;
    if (!block) status = extend(cache, wanted, &block);
    if (!block) return status;
    EL_TRY(split(cache, block, wanted));
    block->is_free = false;
    cache->n_live++;
    cache->live_bytes += (int64_t)block->bytes;
    *address_p = block->address;
    return EL_OK;
}

static void join_next(struct el_cuda_block *block)
{
    struct el_cuda_block *next = block->next;
    if (!block->is_free || ends_segment(block) || !next->is_free) return;
    block->bytes += next->bytes;
    block->next = next->next;
    free(next);
}

void el_cuda_cache_give(struct el_cuda_cache *cache, uintptr_t address)
{
    struct el_cuda_block *block = cache->blocks, *previous = NULL;
    for (; block && (block->address != address || block->is_free); block = block->next) previous = block;
    if (!block) return;
    block->is_free = true;
    cache->n_live--;
    cache->live_bytes -= (int64_t)block->bytes;
    join_next(block);
    if (previous && !block->first) join_next(previous);
}

void el_cuda_cache_close(struct el_cuda_cache *cache)
{
    for (struct el_cuda_block *block = cache->blocks, *next; block; block = next) {
        next = block->next;
        if (block->first) EL_CUDART_LET(cache->api, Free, (void *)block->address);
        free(block);
    }
    *cache = (struct el_cuda_cache){.api = cache->api, .who = cache->who};
}
