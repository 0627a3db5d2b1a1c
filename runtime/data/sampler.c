/* The sampler: who gets which index of an epoch, by DistributedSampler's algorithm. Its padding repeats samples, so the
 * loader does not use it for batches; it is here for what is to be compared with torch index by index. */
#include "runtime/data/samples.h"

#include <stdlib.h>

#include "runtime/base/rng.h"

/* Fisher-Yates. The bias of % is below length / 2^64. */
void el_permute(int64_t length, uint64_t seed, int64_t epoch, int64_t *order)
{
    const struct el_rng_key key = {.seed = seed, .use = EL_RNG_SHUFFLE, .id = (uint32_t)epoch};
    const uint64_t high = (uint64_t)epoch >> 32;
    for (int64_t i = 0; i < length; i++) order[i] = i;
    for (int64_t i = length - 1; i > 0; i--) {
        int64_t other = (int64_t)(el_rng_u64(&key, (uint64_t)i, high) % (uint64_t)(i + 1));
        int64_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static bool is_valid(const struct el_sampler_spec *spec)
{
    return spec->length >= 0 && spec->ranks >= 1 && spec->rank >= 0 && spec->rank < spec->ranks;
}

/* torch: drop_last and len % R != 0 ? ceil((len - R) / R) : ceil(len / R). The former is floor(len / R), and 0 for
 * len < R. */
int64_t el_sampler_count(const struct el_sampler_spec *spec)
{
    if (!is_valid(spec)) return 0;
    return spec->drop_last ? spec->length / spec->ranks : (spec->length + spec->ranks - 1) / spec->ranks;
}

/* Padding appends the list's own start, again and again if need be: entry p of the padded list is entry p % length.
 * Dropping only shortens the list, and then p < length always. */
enum el_status el_sampler_indices(const struct el_sampler_spec *spec, int64_t epoch, int64_t *indices)
{
    if (!is_valid(spec))
        return el_fail(EL_ERR_INVALID, "sampler: rank %d of %d over %lld samples", spec->rank, spec->ranks,
                       (long long)spec->length);
    int64_t count = el_sampler_count(spec), *order = NULL;
    if (spec->shuffle && count > 0) {
        order = malloc((size_t)spec->length * sizeof *order);
        if (!order) return el_fail(EL_ERR_HOST_MEMORY, "no memory to shuffle %lld samples", (long long)spec->length);
        el_permute(spec->length, spec->seed, epoch, order);
    }
    for (int64_t k = 0; k < count; k++) {
        int64_t position = (spec->rank + k * spec->ranks) % spec->length;
        indices[k] = order ? order[position] : position;
    }
    free(order);
    return EL_OK;
}
