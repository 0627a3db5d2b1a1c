/* The learning rate of a step, on every backend: up to `lr` along a line, then down to `least` along half a cosine.
 *
 * These are torch.optim.lr_scheduler's LinearLR(1 / warmup, 1, warmup - 1), then CosineAnnealingLR(cosine, least), by
 * SequentialLR with its milestone at `warmup`; behind the cosine's end it stays at `least`. Either may be 0: left out.
 */
#pragma once

#include <math.h>

#include "kernels/kernels.h"

/* Whether it differs from step to step; from the k[] of an optimizer: warmup cosine. */
static inline bool el_rate_changes(const struct el_kernel_args *args)
{
    return args->k[0] > 0 || args->k[1] > 0;
}

static inline double el_rate(const struct el_kernel_args *args, double lr, double least)
{
    static const double half_turn = 3.141592653589793;
    const uint64_t step = args->step, warmup = args->k[0], cosine = args->k[1];
    if (step < warmup) return lr * (double)(step + 1) / (double)warmup;
    if (cosine == 0) return lr;
    if (step - warmup >= cosine) return least;
    return least + (lr - least) * (1 + cos(half_turn * (double)(step - warmup) / (double)cosine)) / 2;
}
