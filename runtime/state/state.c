#include "runtime/state/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/rng.h"
#include "runtime/base/vector.h"
#include "runtime/state/weights.h"

enum { DRAWN_AT_ONCE = 1024 };

static const char *slot_name(enum el_optimizer_kind optimizer, int slot)
{
    static const char *const names[][EL_SLOTS_MAX] = {[EL_OPT_SGD] = {NULL},
                                                      [EL_OPT_MOMENTUM] = {"momentum_buffer"},
                                                      [EL_OPT_ADAM] = {"exp_avg", "exp_avg_sq"},
                                                      [EL_OPT_ADAMW] = {"exp_avg", "exp_avg_sq"}};
    return names[optimizer][slot];
}

bool el_state_row(const struct el_train_config *config, enum el_state what, struct el_state_row *row_p)
{
    const bool slot = what >= EL_STATE_SLOT && what < EL_STATE_SLOT + EL_SLOTS_MAX;
    *row_p = what == EL_STATE_PARAM  ? (struct el_state_row){.name = "param", .tag = EL_TAG_PARAM, .drawn = true}
             : what == EL_STATE_GRAD ? (struct el_state_row){.name = "grad", .tag = EL_TAG_GRAD, .of_trained = true}
             : slot                  ? (struct el_state_row){.tag = EL_TAG_OPTIMIZER, .of_trained = true}
             : what == EL_STATE_CAST
                 ? (struct el_state_row){.tag = EL_TAG_CAST, .drawn = true, .derived = true}
                 : (struct el_state_row){.name = "buffer", .tag = EL_TAG_BUFFER, .of_buffers = true, .drawn = true};
    row_p->dtype = what == EL_STATE_PARAM || what == EL_STATE_GRAD ? el_config_stored(config) : config->dtype;
    const bool lent = config->bucket_view || config->zero == 1;
    const bool casts =
        what == EL_STATE_CAST && el_config_computed(config) != el_config_stored(config) && config->zero < 3;
    if (what == EL_STATE_CAST) row_p->dtype = el_config_computed(config);
    if (casts) row_p->name = "cast";
    row_p->lent = what == EL_STATE_GRAD && lent;
    if (slot) row_p->name = slot_name(config->optimizer, what - EL_STATE_SLOT);
    return row_p->name && (what != EL_STATE_GRAD || config->keep_grads || lent);
}

/* Uniform in [-bound, bound) from element `first` on: el_rng_uniform, which uses only a draw's first word, so that
 * adjacent elements share vector lanes. */
EL_VECTOR static void draw_uniform(const struct el_rng_key *key, int64_t first, int64_t n, double bound, float *values)
{
    struct el_rng_key local = *key;
    for (int64_t i = 0; i < n; i++) {
        uint32_t word[4];
        el_rng_draw4(&local, 0, (uint64_t)(first + i), word);
        values[i] = (float)((2 * ((int32_t)(word[0] >> 8) * 0x1p-24) - 1) * bound);
    }
}

/* Box and Muller: each fourth element's draw gives four values. */
static void draw_normal(const struct el_rng_key *key, int64_t first, int64_t n, double deviation, float *values)
{
    static const double turn = 6.283185307179586;
    for (int64_t i = -(first % 4); i < n; i += 4) {
        uint32_t word[4];
        double drawn[4];
        el_rng_draw4(key, 0, (uint64_t)(first + i), word);
        for (int pair = 0; pair < 4; pair += 2) {
            double radius = deviation * sqrt(-2 * log((word[pair] + 0.5) * 0x1p-32));
            double angle = turn * (word[pair + 1] * 0x1p-32);
            drawn[pair] = radius * cos(angle);
            drawn[pair + 1] = radius * sin(angle);
        }
        for (int64_t k = i < 0 ? -i : 0; k < 4 && i + k < n; k++) values[i + k] = (float)drawn[k];
    }
}

static void draw(struct el_initial initial, const struct el_rng_key *key, int64_t first, int64_t n, float *values)
{
    switch (initial.kind) {
    case EL_INITIAL_CONSTANT:
        for (int64_t i = 0; i < n; i++) values[i] = (float)initial.value;
        break;
    case EL_INITIAL_UNIFORM:
        draw_uniform(key, first, n, initial.value, values);
        break;
    case EL_INITIAL_NORMAL:
        draw_normal(key, first, n, initial.value, values);
        break;
    }
}

/* By (seed, origin, element): independent of type, mode and cut. */
static void draw_all(uint64_t seed, const struct el_param *param, double *values)
{
    const int64_t n = el_shape_count(&param->shape), run = el_slice_run(&param->shape, &param->slice);
    struct el_rng_key key = {.seed = seed, .use = EL_RNG_INIT, .id = (uint32_t)param->origin};
    for (int64_t at = 0, some; at < n; at += some) {
        float drawn[DRAWN_AT_ONCE];
        int64_t left = run - at % run;
        some = left < DRAWN_AT_ONCE ? left : DRAWN_AT_ONCE;
        draw(param->initial, &key, el_slice_at(&param->shape, &param->slice, at), some, drawn);
        for (int64_t i = 0; i < some; i++) values[at + i] = drawn[i];
    }
}

/* The file has the origin's. */
static enum el_status take_slice(const struct el_train_config *config, const struct el_graph *graph,
                                 const struct el_param *array, double *values)
{
    struct el_param origin = *array;
    origin.shape = el_slice_origin(&array->shape, &array->slice);
    origin.slice = (struct el_slice){0};
    double *all = malloc((size_t)el_shape_count(&origin.shape) * sizeof *all);
    if (!all) return el_fail_errno("initial values of '%s'", array->name);
    enum el_status status = el_state_initial_values(config, graph, &origin, all);
    if (status == EL_OK) el_slice_take(&array->shape, &array->slice, all, values);
    free(all);
    return status;
}

enum el_status el_state_initial_values(const struct el_train_config *config, const struct el_graph *graph,
                                       const struct el_param *array, double *values)
{
    const bool stored = config->weights && el_safetensors_find(config->weights, array->name);
    if (array->slice.of && stored) return take_slice(config, graph, array, values);
    if (stored) return el_weights_read(config->weights, array, values);
    draw_all(config->seed, array, values);
    return EL_OK;
}
