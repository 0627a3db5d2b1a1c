/* Causes of allocations, by files and functions of PyTorch in their frames. */
#include "profiles/snapshot_causes.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/utf8.h"

enum { FRAMES_MAX = 128, NAME_BYTES = 256 };

/* A frame fits where its file and its function have these in them. Of a list the first row that one of its frames fits
 * says the cause: what is particular comes first. Functions of C++ are there with stacks="all" only. */
static const struct rule {
    const char *file, *function;
    enum el_snapshot_cause cause;
} rules[] = {
    {"torch/optim/", "", EL_SNAPSHOT_OPTIMIZER},
    {"apex/optimizers/", "", EL_SNAPSHOT_OPTIMIZER},
    {"bitsandbytes/optim/", "", EL_SNAPSHOT_OPTIMIZER},
    {"nn/parallel/scatter_gather.py", "gather", EL_SNAPSHOT_GATHER},
    {"nn/parallel/comm.py", "gather", EL_SNAPSHOT_GATHER},
    {"nn/parallel/scatter_gather.py", "scatter", EL_SNAPSHOT_SCATTER},
    {"nn/parallel/comm.py", "scatter", EL_SNAPSHOT_SCATTER},
    {"nn/parallel/replicate.py", "", EL_SNAPSHOT_REPLICATE},
    {"nn/parallel/comm.py", "broadcast", EL_SNAPSHOT_REPLICATE},
    {"nn/parallel/comm.py", "reduce_add", EL_SNAPSHOT_BACKWARD},
    {"", "c10d::Reducer", EL_SNAPSHOT_BUCKETS},
    {"nn/parallel/distributed.py", "_ddp_init_helper", EL_SNAPSHOT_BUCKETS},
    {"distributed/utils.py", "_to_kwargs", EL_SNAPSHOT_INPUTS},
    {"nn/parallel/distributed.py", "_pre_forward", EL_SNAPSHOT_BUCKETS}, /* buckets are made anew after a step */
    {"distributed/fsdp/", "", EL_SNAPSHOT_SHARDS},
    {"distributed/_composable/fsdp/", "", EL_SNAPSHOT_SHARDS},
    {"distributed/distributed_c10d.py", "", EL_SNAPSHOT_COLLECTIVE},
    {"", "c10d::ProcessGroup", EL_SNAPSHOT_COLLECTIVE},
    {"torch/autograd/", "backward", EL_SNAPSHOT_BACKWARD},
    {"torch/_tensor.py", "backward", EL_SNAPSHOT_BACKWARD},
    {"", "torch::autograd::Engine::", EL_SNAPSHOT_BACKWARD},
    {"nn/modules/module.py", "_apply", EL_SNAPSHOT_MODEL},
    {"torch/nn/modules/", "__init__", EL_SNAPSHOT_MODEL},
    {"torch/utils/data/", "", EL_SNAPSHOT_INPUTS},
    {"torch/nn/modules/loss.py", "", EL_SNAPSHOT_LOSS},
    {"torch/nn/functional.py", "cross_entropy", EL_SNAPSHOT_LOSS},
    {"nn/modules/module.py", "_call_impl", EL_SNAPSHOT_FORWARD},
};
enum { N_RULES = sizeof rules / sizeof rules[0] };

/* Files that are nobody's own: of a library, of Python itself, or of C. */
static bool is_own(const char *file)
{
    static const char *const not_own[] = {"site-packages/", "dist-packages/", "/torch/",
                                          "<frozen",        "/lib/python",    NULL};
    size_t n = strlen(file);
    for (size_t i = 0; not_own[i]; i++)
        if (strstr(file, not_own[i])) return false;
    return n > 3 && !strcmp(file + n - 3, ".py");
}

const char *el_snapshot_cause_name(enum el_snapshot_cause cause)
{
#define NAME(id, name) name,
    static const char *const names[] = {EL_SNAPSHOT_CAUSES(NAME)};
    return names[cause];
}

/* The innermost frame of the user's own files stands; a library's innermost one until then. */
static struct el_snapshot_place read_frames(struct el_pickle *p, uint32_t frames)
{
    struct el_snapshot_place place = {.cause = EL_SNAPSHOT_NO_FRAMES};
    struct el_pickle_walk walk = el_pickle_walk(p, frames);
    bool own = false;
    int best = N_RULES, n = 0;
    for (uint32_t frame; n < FRAMES_MAX && el_pickle_next(p, &walk, &frame); n++) {
        char file[NAME_BYTES], function[NAME_BYTES];
        el_pickle_text(p, frame, "filename", file, sizeof file);
        el_pickle_text(p, frame, "name", function, sizeof function);
        for (int i = 0; i < best; i++)
            if (strstr(file, rules[i].file) && strstr(function, rules[i].function)) best = i;
        if (own || (*place.where && !is_own(file))) continue;
        own = is_own(file);
        const char *slash = strrchr(file, '/');
        snprintf(place.where, sizeof place.where, "%.48s:%lld %.30s", slash ? slash + 1 : file,
                 (long long)el_pickle_whole(p, frame, "line", 0), function);
    }
    el_utf8_printable(place.where);
    if (n > 0) place.cause = best < N_RULES ? rules[best].cause : EL_SNAPSHOT_OTHER;
    return place;
}

void el_snapshot_causes_begin(struct el_snapshot_causes *causes)
{
    if (causes->dirty) memset(causes->of, 0, causes->pickle->n_values * sizeof *causes->of);
    causes->dirty = false;
}

struct el_snapshot_place *el_snapshot_place_of(struct el_snapshot_causes *causes, uint32_t frames,
                                               struct el_snapshot_device *device)
{
    uint32_t *of = &causes->of[frames];
    if (*of) return &device->places[*of - 1];
    struct el_snapshot_place place = read_frames(causes->pickle, frames);
    size_t i = 0, like = 0;
    for (; i < device->n_places; i++) {
        if (device->places[i].cause != place.cause) continue;
        if (!strcmp(device->places[i].where, place.where)) break;
        like = i;
    }
    /* the last places are kept for causes that have none yet */
    if (i == device->n_places && i >= EL_SNAPSHOT_PLACES_MAX - EL_SNAPSHOT_N_CAUSES) {
        bool has = device->n_places && device->places[like].cause == place.cause;
        i = has ? like : i;
    }
    if (i == device->n_places) device->places[device->n_places++] = place;
    causes->dirty = true;
    *of = (uint32_t)i + 1;
    return &device->places[i];
}
