/* Dropout with the reference's generator. Only a draw's first word decides, so that `uniform >= rate` is an exact
 * integer comparison (24 bits). */
#include "kernels/cuda/common.cuh"

#include "runtime/base/rng.h"

struct drop {
    struct el_rng_key key;
    uint64_t step, first, stride;
    int64_t run, apart, from;
    uint32_t threshold;
};

__device__ static bool keeps(const struct drop &drop, int64_t row, int64_t element)
{
    uint32_t word[4];
    uint64_t sample = drop.step << 32 | (drop.first + static_cast<uint64_t>(row) * drop.stride);
    int64_t place = drop.from + element / drop.run * drop.apart + element % drop.run;
    el_rng_draw4(&drop.key, sample, static_cast<uint64_t>(place), word);
    return word[0] >> 8 >= drop.threshold;
}

/* y may be x. `step`: replaces the one in `drop`; NULL: none. */
template <typename REAL>
__global__ void dropout_kernel(const REAL *x, int64_t rows, int64_t n, struct drop drop, const uint64_t *step,
                               REAL scale, REAL *y)
{
    if (step) drop.step = *step;
    EL_CUDA_EACH(i, rows * n) y[i] = keeps(drop, i / n, i % n) ? x[i] * scale : 0;
}

template <typename REAL> static enum el_status dropout(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    double rate = args->s[0];
    struct drop drop;
    drop.key.seed = args->k[0];
    drop.key.use = EL_RNG_DROPOUT;
    drop.key.id = static_cast<uint32_t>(args->k[1]);
    drop.step = args->step;
    drop.first = static_cast<uint64_t>(d[2]);
    drop.stride = static_cast<uint64_t>(d[3]);
    drop.run = d[4] ? d[4] : d[1];
    drop.apart = d[5];
    drop.from = d[6];
    drop.threshold = static_cast<uint32_t>(ceil(rate * 16777216.0));
    return launch(args, "dropout", d[0] * d[1], dropout_kernel<REAL>, static_cast<const REAL *>(args->p[0]), d[0], d[1],
                  drop, static_cast<const uint64_t *>(args->step_values), static_cast<REAL>(1 / (1 - rate)),
                  static_cast<REAL *>(args->p[1]));
}

template <typename REAL> static uint64_t step_of(const struct el_kernel_args *args)
{
    return args->step;
}

EL_CUDA_RUN(dropout)
EL_CUDA_STEP_VALUES(dropout, step_of)
