/* Fast dropout. Only a draw's first word decides, so that `uniform >= rate` is an exact integer comparison (24
 * bits). */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "runtime/base/rng.h"

/* The counter is (sample, element): y[i] = keep(i) ? x[i] * scale : 0. */
EL_VECTOR static void drop_run(const struct el_rng_key *key, uint64_t sample, int64_t first, const float *x, int64_t n,
                               uint32_t threshold, float scale, float *y)
{
    struct el_rng_key local = *key;
    for (int64_t i = 0; i < n; i++) {
        uint32_t word[4];
        el_rng_draw4(&local, sample, (uint64_t)(first + i), word);
        y[i] = word[0] >> 8 >= threshold ? x[i] * scale : 0;
    }
}

enum el_status el_cpu_dropout(const struct el_kernel_args *args)
{
    const float *x = args->p[0];
    float *y = args->p[1];
    int64_t rows = args->d[0], n = args->d[1], first = args->d[2], stride = args->d[3];
    int64_t run = args->d[4] ? args->d[4] : n, apart = args->d[5], from = args->d[6];
    double rate = args->s[0];
    struct el_rng_key key = {.seed = args->k[0], .use = EL_RNG_DROPOUT, .id = (uint32_t)args->k[1]};
    uint32_t threshold = (uint32_t)ceil(rate * 0x1p24);
    float scale = (float)(1 / (1 - rate));
    for (int64_t r = 0; r < rows; r++) {
        uint64_t sample = args->step << 32 | (uint64_t)(first + r * stride);
        for (int64_t i = 0; i < n; i += run)
            drop_run(&key, sample, from + i / run * apart, x + r * n + i, run, threshold, scale, y + r * n + i);
    }
    return EL_OK;
}
