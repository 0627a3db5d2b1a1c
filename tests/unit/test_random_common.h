/* What tests that simulate whole trials share: seeded numbers, uniform and normal, fast enough for tens of millions a
 * second. (runtime/base/rng.h is for numbers with a meaning; it costs ten rounds each.) */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state;
    double spare; /* normal numbers come in pairs */
    bool has_spare;
};

static inline struct random random_seeded(uint64_t seed)
{
    return (struct random){.state = seed * 0x9E3779B97F4A7C15u};
}

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA'14). */
static inline uint64_t random_u64(struct random *random)
{
    uint64_t z = random->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* In (0, 1). */
static inline double random_uniform(struct random *random)
{
    return ((double)(random_u64(random) >> 12) + 0.5) * 0x1p-52;
}

/* Marsaglia's polar method. */
static inline double random_normal(struct random *random)
{
    if (random->has_spare) {
        random->has_spare = false;
        return random->spare;
    }
    double u, v, s;
    do {
        u = 2 * random_uniform(random) - 1;
        v = 2 * random_uniform(random) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    double scale = sqrt(-2 * log(s) / s);
    random->spare = v * scale;
    random->has_spare = true;
    return u * scale;
}
