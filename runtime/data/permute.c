/* The order of an epoch. */
#include "runtime/data/samples.h"

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
