/* Rounds of all trials, each round shuffled (Fisher and Yates) by (seed, round). */
#include "bench/campaign/plan.h"

#include "runtime/base/rng.h"

static void shuffle(struct el_plan_entry *entries, int n, uint64_t seed, int round)
{
    const struct el_rng_key key = {.seed = seed, .use = EL_RNG_ORDER, .id = (uint32_t)round};
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(el_rng_u64(&key, (uint64_t)i, 0) % (uint64_t)(i + 1));
        struct el_plan_entry other = entries[j];
        entries[j] = entries[i];
        entries[i] = other;
    }
}

void el_plan_make(int n_trials, int repeats, uint64_t seed, struct el_plan_entry *entries)
{
    for (int r = 0; r < repeats; r++) {
        struct el_plan_entry *round = entries + r * n_trials;
        for (int t = 0; t < n_trials; t++) round[t] = (struct el_plan_entry){.trial = t, .repeat = r};
        shuffle(round, n_trials, seed, r);
    }
}
