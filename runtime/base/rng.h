/* Counter-based random numbers: a pure function of what they are for.
 *
 * Weights depend on (seed, parameter, element), dropout on (seed, step, node, global sample, element), shuffling on
 * (seed, epoch, position). So every split of the work draws the same numbers, and modes can be compared bit for bit.
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11). */
#pragma once

#include <stdint.h>

#include "runtime/base/host_device.h"

/* Part of the key, so that no two uses share a sequence. */
enum el_rng_use {
    EL_RNG_INIT = 1,
    EL_RNG_DROPOUT,
    EL_RNG_SHUFFLE,
    EL_RNG_DATA,
    EL_RNG_ORDER,
    EL_RNG_TEST,
    EL_RNG_ROUTE
};

struct el_rng_key {
    uint64_t seed;
    uint32_t use;
    uint32_t id; /* parameter, node, epoch, ... */
};

/* Four 32-bit words for counter (a, b). */
EL_HOST_DEVICE static inline void el_rng_draw4(const struct el_rng_key *key, uint64_t a, uint64_t b, uint32_t out[4])
{
    uint32_t c0 = (uint32_t)a, c1 = (uint32_t)(a >> 32), c2 = (uint32_t)b, c3 = (uint32_t)(b >> 32);
    uint64_t mixed = key->seed * 0x9E3779B97F4A7C15u ^ ((uint64_t)key->use << 32 | key->id) * 0xD6E8FEB86659FD93u;
    uint32_t k0 = (uint32_t)mixed, k1 = (uint32_t)(mixed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t m0 = (uint64_t)0xD2511F53u * c0, m1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(m1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(m0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)m1;
        c3 = (uint32_t)m0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

EL_HOST_DEVICE static inline uint64_t el_rng_u64(const struct el_rng_key *key, uint64_t a, uint64_t b)
{
    uint32_t w[4];
    el_rng_draw4(key, a, b, w);
    return (uint64_t)w[0] << 32 | w[1];
}

/* In [0, 1), 24 bits: the same in f32 and f64. */
EL_HOST_DEVICE static inline double el_rng_uniform(const struct el_rng_key *key, uint64_t a, uint64_t b)
{
    return (double)(el_rng_u64(key, a, b) >> 40) * 0x1p-24;
}
