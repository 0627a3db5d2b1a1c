/* A shard's state: what it allocates, how weights begin. What a step does with it stands in shard_step.c. */
#include "runtime/state/shard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/rng.h"
#include "runtime/base/vector.h"
#include "runtime/data/vectors.h"
#include "runtime/state/buffers.h"
#include "runtime/state/weights.h"

enum { DRAWN_AT_ONCE = 1024 };

size_t el_shard_param_bytes(const struct el_shard *shard, int param)
{
    return (size_t)el_param_count(shard->graph, param) * el_dtype_bytes(shard->config->dtype);
}

static size_t array_bytes(const struct el_shard *shard, const struct el_param *array)
{
    return (size_t)el_shape_count(&array->shape) * el_dtype_bytes(shard->config->dtype);
}

/* In the order of its shape, in the type of the configuration. */
static enum el_status read_values(const struct el_shard *shard, const struct el_param *array, struct el_view view,
                                  void *values)
{
    const struct el_weights_layout *layout = el_param_layout(array, shard->device, shard->config->dtype);
    size_t bytes = array_bytes(shard, array);
    if (!layout) return el_device_read(view, values, bytes);
    void *stored = malloc(bytes);
    if (!stored) return el_fail_errno("values of '%s'", array->name);
    enum el_status status = el_device_read(view, stored, bytes);
    if (status == EL_OK) layout->unpack(array->shape.d, stored, values);
    free(stored);
    return status;
}

enum el_status el_shard_read_doubles(const struct el_shard *shard, const struct el_param *array, struct el_view view,
                                     double *values)
{
    /* Read in place: a float's bytes stand at the front of the doubles, and are spread from the back. */
    EL_TRY(read_values(shard, array, view, values));
    for (int64_t i = el_shape_count(&array->shape) - 1; shard->config->dtype == EL_F32 && i >= 0; i--) {
        float value;
        memcpy(&value, (char *)values + (size_t)i * sizeof value, sizeof value);
        values[i] = value;
    }
    return EL_OK;
}

static enum el_status write_values(const struct el_shard *shard, const struct el_param *array, struct el_view view,
                                   const void *values)
{
    const struct el_weights_layout *layout = el_param_layout(array, shard->device, shard->config->dtype);
    size_t bytes = array_bytes(shard, array);
    if (!layout) return el_device_write(view, values, bytes);
    void *stored = malloc(bytes);
    if (!stored) return el_fail_errno("values of '%s'", array->name);
    layout->pack(array->shape.d, values, stored);
    enum el_status status = el_device_write(view, stored, bytes);
    free(stored);
    return status;
}

static int slot_count(enum el_optimizer_kind optimizer)
{
    return optimizer == EL_OPT_ADAM ? 2 : optimizer == EL_OPT_MOMENTUM ? 1 : 0;
}

/* One buffer a parameter, filled with zeros; but for weights none where there will be no gradient. */
static enum el_status alloc_like_params(struct el_shard *shard, enum el_tag tag, struct el_view *views)
{
    for (int p = 0; p < shard->graph->n_params; p++) {
        size_t bytes = el_shard_param_bytes(shard, p);
        struct el_buffer *buffer;
        if (tag != EL_TAG_PARAM && !el_graph_trains_param(shard->graph, p)) continue;
        EL_TRY(el_device_alloc(shard->device, tag, bytes, shard->graph->params[p].name, &buffer));
        views[p] = el_view_of(buffer, 0);
        if (el_device_is_simulated(shard->device)) continue;
        void *zeros = calloc(1, bytes);
        if (!zeros) return el_fail_errno("%s: '%s'", el_device_name(shard->device), shard->graph->params[p].name);
        enum el_status status = el_device_write(views[p], zeros, bytes);
        free(zeros);
        EL_TRY(status);
    }
    return EL_OK;
}

/* Uniform in [-bound, bound), from element `first` on: el_rng_uniform's numbers, of which only the first word of each
 * draw counts, so that neighbouring elements share vector lanes. */
EL_VECTOR static void draw_uniform(const struct el_rng_key *key, int64_t first, int64_t n, double bound, float *values)
{
    struct el_rng_key local = *key;
    for (int64_t i = 0; i < n; i++) {
        uint32_t word[4];
        el_rng_draw4(&local, 0, (uint64_t)(first + i), word);
        values[i] = (float)((2 * ((int32_t)(word[0] >> 8) * 0x1p-24) - 1) * bound);
    }
}

/* Box and Muller's: a draw gives four elements, two of each pair of its words. `first` is a multiple of four. */
static void draw_normal(const struct el_rng_key *key, int64_t first, int64_t n, double deviation, float *values)
{
    static const double turn = 6.283185307179586;
    for (int64_t i = 0; i < n; i += 4) {
        uint32_t word[4];
        double drawn[4];
        el_rng_draw4(key, 0, (uint64_t)(first + i), word);
        for (int pair = 0; pair < 4; pair += 2) {
            double radius = deviation * sqrt(-2 * log((word[pair] + 0.5) * 0x1p-32));
            double angle = turn * (word[pair + 1] * 0x1p-32);
            drawn[pair] = radius * cos(angle);
            drawn[pair + 1] = radius * sin(angle);
        }
        for (int64_t k = 0; k < 4 && i + k < n; k++) values[i + k] = (float)drawn[k];
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

/* By (seed, its number, element): the same numbers in f32 and f64, and for every mode. */
static void draw_all(uint64_t seed, const struct el_param *param, double *values)
{
    const int64_t n = el_shape_count(&param->shape);
    struct el_rng_key key = {.seed = seed, .use = EL_RNG_INIT, .id = (uint32_t)param->origin};
    for (int64_t first = 0; first < n; first += DRAWN_AT_ONCE) {
        float drawn[DRAWN_AT_ONCE];
        int64_t some = n - first < DRAWN_AT_ONCE ? n - first : DRAWN_AT_ONCE;
        draw(param->initial, &key, first, some, drawn);
        for (int64_t i = 0; i < some; i++) values[first + i] = drawn[i];
    }
}

/* Whether its rows are words. */
static bool is_embedding(const struct el_graph *graph, const struct el_param *param)
{
    for (int n = 0; n < graph->n_nodes; n++)
        if (graph->nodes[n].type == &el_node_embedding && &graph->params[graph->nodes[n].params[0]] == param)
            return true;
    return false;
}

enum el_status el_shard_initial_values(const struct el_train_config *config, const struct el_graph *graph,
                                       const struct el_param *array, double *values)
{
    if (config->weights) EL_TRY(el_weights_read(config->weights, array, values));
    if (!config->weights) draw_all(config->seed, array, values);
    if (config->vectors && is_embedding(graph, array)) el_vectors_put(config->vectors, values);
    return EL_OK;
}

/* A parameter or a buffer. */
static enum el_status initialize(const struct el_shard *shard, const struct el_param *param, struct el_view view)
{
    const int64_t n = el_shape_count(&param->shape);
    double *values = malloc((size_t)n * sizeof *values);
    if (!values) return el_fail_errno("initial values of '%s'", param->name);
    enum el_status status = el_shard_initial_values(shard->config, shard->graph, param, values);
    for (int64_t i = 0; i < n && shard->config->dtype == EL_F32; i++) {
        float value = (float)values[i]; /* in place: behind what was read */
        memcpy((char *)values + (size_t)i * sizeof value, &value, sizeof value);
    }
    if (status == EL_OK) status = write_values(shard, param, view, values);
    free(values);
    return status;
}

static enum el_status alloc_buffers(struct el_shard *shard)
{
    enum el_dtype dtype = shard->config->dtype;
    struct el_buffer *storage;
    if (shard->graph->n_buffers == 0) return EL_OK;
    EL_TRY(el_device_alloc(shard->device, EL_TAG_BUFFER, el_buffers_bytes(shard->graph, dtype), "buffers", &storage));
    el_buffers_view(shard->graph, dtype, el_view_of(storage, 0), shard->buffers);
    return EL_OK;
}

/* Views without buffers, in one piece of memory. */
static enum el_status make_views(struct el_shard *shard)
{
    size_t n = (size_t)shard->graph->n_params, n_buffers = (size_t)shard->graph->n_buffers;
    struct el_view *views = calloc(5 * n + n_buffers + 1, sizeof *views);
    if (!views) return el_fail_errno("%s: views of %zu parameters", el_device_name(shard->device), n);
    shard->params = views;
    shard->grads = views + n;
    for (size_t s = 0; s < 2; s++) shard->slots[s] = views + (2 + s) * n;
    shard->issued = views + 4 * n;
    shard->buffers = views + 5 * n;
    return EL_OK;
}

enum el_status el_shard_open(struct el_shard *shard, const struct el_train_config *config, const struct el_graph *graph,
                             struct el_device *device, bool owns)
{
    *shard = (struct el_shard){.config = config, .graph = graph, .device = device};
    if (!owns) return EL_OK;
    EL_TRY(make_views(shard));
    EL_TRY(alloc_like_params(shard, EL_TAG_PARAM, shard->params));
    if (config->keep_grads && !config->bucket_view) EL_TRY(alloc_like_params(shard, EL_TAG_GRAD, shard->grads));
    for (int s = 0; s < slot_count(config->optimizer); s++)
        EL_TRY(alloc_like_params(shard, EL_TAG_OPTIMIZER, shard->slots[s]));
    EL_TRY(alloc_buffers(shard));
    size_t width = el_dtype_bytes(config->dtype), steps = (size_t)config->n_accumulate;
    EL_TRY(el_device_alloc(device, EL_TAG_OUTPUT, steps * width, "loss", &shard->loss));
    if (el_device_is_simulated(device)) return EL_OK;
    for (int p = 0; p < graph->n_params; p++) EL_TRY(initialize(shard, &graph->params[p], shard->params[p]));
    for (int b = 0; b < graph->n_buffers; b++) EL_TRY(initialize(shard, &graph->buffers[b], shard->buffers[b]));
    for (size_t k = 0; k < steps; k++) EL_TRY(el_device_write(el_view_of(shard->loss, k * width), &(double){0}, width));
    return EL_OK;
}

void el_shard_close(struct el_shard *shard)
{
    for (int p = 0; shard->params && p < shard->graph->n_params; p++) {
        el_device_free(shard->params[p].buffer);
        if (!shard->config->bucket_view) el_device_free(shard->grads[p].buffer);
        for (int s = 0; s < 2; s++) el_device_free(shard->slots[s][p].buffer);
    }
    if (shard->params && shard->graph->n_buffers > 0) el_device_free(shard->buffers[0].buffer);
    el_device_free(shard->loss);
    free(shard->params);
    *shard = (struct el_shard){0};
}

enum el_status el_shard_read_value(const struct el_shard *shard, struct el_buffer *values, int i, double *value_p)
{
    union {
        float f;
        double d;
    } value = {0};
    size_t width = el_dtype_bytes(shard->config->dtype);
    EL_TRY(el_device_read(el_view_of(values, (size_t)i * width), &value, width));
    *value_p = shard->config->dtype == EL_F64 ? value.d : (double)value.f;
    return EL_OK;
}

enum el_status el_shard_read_loss(const struct el_shard *shard, double *loss_p)
{
    double sum = 0, one;
    for (int k = 0; k < shard->config->n_accumulate; k++) {
        EL_TRY(el_shard_read_value(shard, shard->loss, k, &one));
        sum += one;
    }
    *loss_p = sum / (double)shard->config->n_accumulate;
    return EL_OK;
}
