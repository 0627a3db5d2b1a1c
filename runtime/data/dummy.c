/* The dummy set: random ids and labels made in memory, so that neither a disk nor a parser can be the bottleneck. There
 * is nothing to learn in it. 16,384 samples: a global batch of 256 on each of 64 devices still is one step. */
#include "runtime/base/rng.h"
#include "runtime/data/samples.h"

enum { SAMPLES = 16384, WORDS_A_DRAW = 4 };

/* A number below `bound` out of 32 random bits, without division. */
static int32_t below(uint32_t bits, int64_t bound)
{
    return (int32_t)((uint64_t)bits * (uint64_t)bound >> 32);
}

enum el_status el_dummy_make(int64_t vocab, int64_t seq, int64_t classes, uint64_t seed, struct el_samples *samples_p)
{
    const struct el_rng_key ids = {.seed = seed, .use = EL_RNG_DATA, .id = 0};
    const struct el_rng_key labels = {.seed = seed, .use = EL_RNG_DATA, .id = 1};
    struct el_samples samples = {0};
    EL_TRY(el_samples_alloc(SAMPLES, SAMPLES * seq, &samples));
    samples.longest = seq;
    uint32_t bits[WORDS_A_DRAW];
    for (int64_t i = 0; i < SAMPLES; i++) {
        el_rng_draw4(&labels, (uint64_t)i, 0, bits);
        samples.labels[i] = below(bits[0], classes);
        samples.starts[i + 1] = (i + 1) * seq;
    }
    for (int64_t t = 0; t < SAMPLES * seq; t++) {
        if (t % WORDS_A_DRAW == 0) el_rng_draw4(&ids, (uint64_t)t, 0, bits);
        samples.tokens[t] = EL_ID_FIRST_WORD + below(bits[t % WORDS_A_DRAW], vocab - EL_ID_FIRST_WORD);
    }
    *samples_p = samples;
    return EL_OK;
}
