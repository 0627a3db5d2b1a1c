/* Weak scaling by default: each added card gets the batch that one could hold, as launchers of DistributedDataParallel
 * do. A batch option implies weak or strong; a contradiction is an error, so that no efficiency is misread. */
#include <stdlib.h>
#include <string.h>

#include "bench/scale/scale.h"

enum { BATCH = 64 };

static enum el_status choose_scaling(const struct el_options *asked, struct el_options *o)
{
    if (asked->weak && asked->strong)
        return el_fail(EL_ERR_INVALID, "--weak fixes the batch of each device, --strong that of all: give one");
    if (asked->n_batches > 1)
        return el_fail(EL_ERR_INVALID, "scale: one batch at a time; 'evenload compare' takes a list");
    if (asked->n_batches && asked->batch_is_per_device && asked->strong)
        return el_fail(EL_ERR_INVALID, "--strong keeps the global batch: give it by --batch, not --batch-per-device");
    if (asked->n_batches && !asked->batch_is_per_device && !asked->strong)
        return el_fail(EL_ERR_INVALID, "--batch is a global batch, which --strong keeps: add --strong, or give "
                                       "--batch-per-device");
    o->strong = asked->strong;
    o->weak = !o->strong;
    if (asked->n_batches == 0) {
        o->batches[0] = BATCH;
        o->n_batches = 1;
    }
    o->batch_is_per_device = o->weak;
    return EL_OK;
}

/* The same mode on one device is the baseline. */
static enum el_status add_one(struct el_options *o)
{
    if (o->counts[0] == 1) return EL_OK;
    if (o->n_counts == EL_LIST_MAX)
        return el_fail(EL_ERR_INVALID,
                       "--devices: one device is measured too, as the baseline, and there is room "
                       "for %d counts: leave out one",
                       EL_LIST_MAX);
    memmove(&o->counts[1], &o->counts[0], sizeof o->counts[0] * (size_t)o->n_counts);
    o->counts[0] = 1;
    o->n_counts++;
    return EL_OK;
}

enum el_status el_scale_options(const struct el_options *asked, int cores, int gpus, struct el_options *options_p)
{
    struct el_options *o = options_p;
    *o = *asked;
    EL_TRY(choose_scaling(asked, o));
    if (asked->n_counts == 0) {
        snprintf(o->counts_backend, sizeof o->counts_backend, "%s", gpus ? "cuda" : "cpu");
        int most = gpus ? gpus : cores;
        if (most > EL_MEMBERS_MAX) most = EL_MEMBERS_MAX;
        for (int n = 1; n <= most; n *= 2) o->counts[o->n_counts++] = n; /* 1, 2, 4 ... and all */
        if (o->counts[o->n_counts - 1] != most) o->counts[o->n_counts++] = most;
    }
    EL_TRY(add_one(o));
    const char *plain = el_mode_plain()->name;
    o->n_modes = 1;
    memset(o->modes, 0, sizeof o->modes);
    snprintf(o->modes[0], sizeof o->modes[0], "%s", plain);
    for (int m = 0; m < asked->n_modes && o->n_modes < EL_LIST_MAX; m++)
        if (strcmp(asked->modes[m], plain)) memcpy(o->modes[o->n_modes++], asked->modes[m], sizeof o->modes[0]);
    if (o->n_modes == 1)
        return el_fail(EL_ERR_INVALID, "--modes: %s runs on one device only: add one that runs on several",
                       o->modes[0]);
    return EL_OK;
}
