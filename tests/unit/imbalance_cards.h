/* Cards whose figures are made up so that the difference between them is known, and runs of them. */
#pragma once

#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/imbalance/imbalance.h"
#include "bench/record/record.h"

#define MIB 1048576LL

static inline void assert_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * fmax(1, fabs(wanted)))) fail_msg("%.12g is not %.12g", value, wanted);
}

/* A card: MiB of its copy of the model under `tag`, of optimizer, outputs, activations and scratch. */
static inline json_t *card_of(const char *device, const char *tag, int model, int optimizer, int output, int activation,
                              int scratch)
{
    json_t *tags = json_pack("{s:I, s:I, s:I, s:I, s:I}", tag, model * MIB, "optimizer", optimizer * MIB, "output",
                             output * MIB, "activation", activation * MIB, "workspace", scratch * MIB);
    for (int t = 0; t < EL_TAG_COUNT; t++)
        if (!json_object_get(tags, el_tag_name((enum el_tag)t)))
            json_object_set_new(tags, el_tag_name((enum el_tag)t), json_integer(0));
    return json_pack("{s:s, s:{s:I, s:O, s:o, s:n}, s:{s:f}, s:I, s:I, s:f}", "device", device, "memory", "peak_bytes",
                     (model + optimizer + output + activation + scratch) * MIB, "at_peak_by_tag", tags, "peak_by_tag",
                     tags, "unattributed_bytes", "utilization", "busy_pct", 80.0, "sent_bytes", 3 * MIB,
                     "received_bytes", 4 * MIB, "step_ms", 10.0);
}

/* Steals `cards`. */
static inline json_t *trial_of(const char *mode, int batch, json_t *cards)
{
    json_t *launches = json_pack("[{s:O}]", "members", cards), *imbalance = el_trial_imbalance(launches);
    json_decref(launches);
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:[i, i], s:s, s:n, s:s, s:[], s:[], s:b, s:o, s:o}", "mode", mode,
                     "model", "mlp", "dtype", "f32", "optimizer", "adam", "devices", (int)json_array_size(cards),
                     "global_batch", batch, "batch_per_device", batch / 2, batch / 2, "status", "ok", "reason",
                     "verdict", "valid", "warnings", "warning_rules", "simulated", 0, "imbalance", imbalance,
                     "per_device", cards);
}

/* On two cards: dp's master has the optimizer's state and all outputs, MiB; ddp's cards hold the same. */
static inline json_t *dp_on_two(int batch, int output)
{
    return trial_of("dp", batch,
                    json_pack("[o, o]", card_of("cpu:0", "param", 10, 20, output, 0, 1),
                              card_of("cpu:1", "replica", 10, 0, output / 2, 3, 1)));
}

static inline json_t *ddp_on_two(int batch, int output)
{
    return trial_of("ddp", batch,
                    json_pack("[o, o]", card_of("cpu:0", "param", 10, 20, output, 3, 1),
                              card_of("cpu:1", "param", 10, 20, output, 3, 1)));
}

/* dp whose outputs grow, at two batches, and ddp, even, at both. */
static inline json_t *made_run(void)
{
    return json_pack("{s:[o, o, o, o]}", "trials", dp_on_two(8, 4), ddp_on_two(8, 2), dp_on_two(16, 40),
                     ddp_on_two(16, 20));
}
