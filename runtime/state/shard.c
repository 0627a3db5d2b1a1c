#include "runtime/state/shard.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/half.h"
#include "runtime/state/buffers.h"

size_t el_shard_param_bytes(const struct el_shard *shard, int param)
{
    return (size_t)el_param_count(shard->graph, param) * el_dtype_bytes(el_config_stored(shard->config));
}

const struct el_view *el_shard_computed(const struct el_shard *shard)
{
    struct el_state_row row;
    return el_state_row(shard->config, EL_STATE_CAST, &row) ? shard->casts : shard->params;
}

void el_shard_range(const struct el_shard *shard, enum el_state what, int number, int64_t *first_p, int64_t *count_p)
{
    const struct el_param *array = &(what == EL_STATE_BUFFER ? shard->graph->buffers : shard->graph->params)[number];
    *first_p = 0;
    *count_p = el_shape_count(&array->shape);
    if (shard->split & 1U << what) el_units_own(shard->units, number, *count_p, shard->piece, first_p, count_p);
}

bool el_shard_next(const struct el_shard *shard, struct el_state_item *item)
{
    const struct el_graph *graph = shard->graph;
    const int n = graph->n_params > graph->n_buffers ? graph->n_params : graph->n_buffers;
    while (shard->params && item->at < EL_STATE_COUNT * n) {
        item->what = (enum el_state)(item->at / n);
        item->number = item->at++ % n;
        if (!el_state_row(shard->config, item->what, &item->row)) continue;
        if (item->number >= (item->row.of_buffers ? graph->n_buffers : graph->n_params)) continue;
        if (item->row.of_trained && !el_graph_trains_param(graph, item->number)) continue;
        item->array = &(item->row.of_buffers ? graph->buffers : graph->params)[item->number];
        item->view = &shard->rows[item->what][item->number];
        el_shard_range(shard, item->what, item->number, &item->first, &item->count);
        return true;
    }
    return false;
}

static double value_at(enum el_dtype dtype, const void *values, int64_t i)
{
    float value;
    uint16_t half;
    double full;
    memcpy(&full, (const char *)values + (size_t)i * el_dtype_bytes(dtype), el_dtype_bytes(dtype));
    memcpy(&value, &full, sizeof value);
    memcpy(&half, &full, sizeof half);
    return dtype == EL_F64 ? full : (double)(dtype == EL_BF16 ? el_f32_of_bf16(half) : value);
}

/* In place, from the back: the narrow values are at the front of the doubles. */
static void widen(enum el_dtype dtype, int64_t n, double *values)
{
    for (int64_t i = n - 1; dtype != EL_F64 && i >= 0; i--) values[i] = value_at(dtype, values, i);
}

static void narrow(enum el_dtype dtype, int64_t n, double *values)
{
    for (int64_t i = 0; i < n && dtype != EL_F64; i++) {
        float value = (float)values[i]; /* in place: after its last read */
        uint16_t half = el_bf16_of_f32(value);
        memcpy((char *)values + (size_t)i * el_dtype_bytes(dtype),
               dtype == EL_BF16 ? (const void *)&half : (const void *)&value, el_dtype_bytes(dtype));
    }
}

/* Reorders values between shape and memory order, in type `dtype`; memory has elements [first, first + count). */
static enum el_status reorder(const struct el_shard *shard, enum el_dtype dtype, const struct el_param *array,
                              int64_t first, int64_t count, void *values, void *memory, bool to_memory)
{
    const struct el_weights_layout *layout = el_param_layout(array, shard->device, el_config_stored(shard->config));
    const size_t width = el_dtype_bytes(dtype), at = (size_t)first * width, bytes = (size_t)count * width;
    const bool part = count < el_shape_count(&array->shape);
    void *whole = !layout ? values : part ? calloc((size_t)el_shape_count(&array->shape), width) : memory;
    if (!whole) return el_fail_errno("values of '%s'", array->name);
    if (layout && to_memory) layout->pack(array->shape.d, values, whole);
    if (whole != memory)
        memcpy(to_memory ? memory : (char *)whole + at, to_memory ? (char *)whole + at : memory, bytes);
    if (layout && !to_memory) layout->unpack(array->shape.d, whole, values);
    if (layout && part) free(whole);
    return EL_OK;
}

enum el_status el_shard_values_of(const struct el_shard *shard, const struct el_state_item *item, const void *memory,
                                  double *values)
{
    const int64_t n = el_shape_count(&item->array->shape);
    memset(values, 0, (size_t)n * sizeof *values);
    EL_TRY(reorder(shard, item->row.dtype, item->array, item->first, item->count, values, (void *)(uintptr_t)memory,
                   false));
    widen(item->row.dtype, n, values);
    return EL_OK;
}

enum el_status el_shard_read_item(const struct el_shard *shard, const struct el_state_item *item, double *values)
{
    const size_t bytes = (size_t)item->count * el_dtype_bytes(item->row.dtype);
    void *memory = malloc(bytes + 1);
    if (!memory) return el_fail_errno("values of '%s'", item->array->name);
    enum el_status status = bytes ? el_device_read(*item->view, memory, bytes) : EL_OK;
    if (status == EL_OK) status = el_shard_values_of(shard, item, memory, values);
    free(memory);
    return status;
}

enum el_status el_shard_write_item(const struct el_shard *shard, const struct el_state_item *item, double *values)
{
    const size_t bytes = (size_t)item->count * el_dtype_bytes(item->row.dtype);
    void *memory = malloc(bytes + 1);
    if (!memory) return el_fail_errno("values of '%s'", item->array->name);
    narrow(item->row.dtype, el_shape_count(&item->array->shape), values);
    enum el_status status =
        reorder(shard, item->row.dtype, item->array, item->first, item->count, values, memory, true);
    if (status == EL_OK && bytes) status = el_device_write(*item->view, memory, bytes);
    free(memory);
    return status;
}

enum el_status el_shard_read_doubles(const struct el_shard *shard, const struct el_param *array, struct el_view view,
                                     double *values)
{
    const struct el_state_item item = {
        .row = {.dtype = shard->config->dtype}, .array = array, .view = &view, .count = el_shape_count(&array->shape)};
    return el_shard_read_item(shard, &item, values);
}

static enum el_status initialize(const struct el_shard *shard, const struct el_state_item *item)
{
    const int64_t n = el_shape_count(&item->array->shape);
    double *values = malloc((size_t)n * sizeof *values);
    if (!values) return el_fail_errno("initial values of '%s'", item->array->name);
    enum el_status status = el_state_initial_values(shard->config, shard->graph, item->array, values);
    if (status == EL_OK) status = el_shard_write_item(shard, item, values);
    free(values);
    return status;
}

static enum el_status write_zeros(const struct el_shard *shard, const struct el_state_item *item)
{
    size_t width = el_dtype_bytes(item->row.dtype);
    void *zeros = calloc((size_t)item->count, width);
    if (!zeros) return el_fail_errno("%s: '%s'", el_device_name(shard->device), item->array->name);
    enum el_status status = el_device_write(*item->view, zeros, (size_t)item->count * width);
    free(zeros);
    return status;
}

static bool is_in_unit(const struct el_shard *shard, const struct el_state_item *item)
{
    const bool params = item->what == EL_STATE_PARAM || item->what == EL_STATE_CAST;
    return shard->units && (params || shard->split & 1U << item->what);
}

static bool is_first(const struct el_shard *shard, const struct el_state_item *item)
{
    if (item->row.of_buffers) return item->number == 0;
    return !is_in_unit(shard, item) || shard->units->units[shard->units->of[item->number]].first_param == item->number;
}

static int64_t place_in_unit(const struct el_shard *shard, const struct el_state_item *item)
{
    const struct el_unit *unit = &shard->units->units[shard->units->of[item->number]];
    const int64_t offset = shard->units->offset[item->number], part = unit->count / shard->units->n_pieces;
    if (!(shard->split & 1U << item->what)) return offset;
    return item->count > 0 ? offset + item->first - shard->piece * part : 0;
}

static enum el_status alloc_unit(const struct el_shard *shard, const struct el_state_item *item)
{
    const struct el_unit *unit = &shard->units->units[shard->units->of[item->number]];
    const size_t width = el_dtype_bytes(item->row.dtype);
    const int64_t n = shard->split & 1U << item->what ? unit->count / shard->units->n_pieces : unit->count;
    struct el_view *views = shard->rows[item->what];
    struct el_buffer *buffer = views[unit->first_param].buffer;
    if (is_first(shard, item))
        EL_TRY(el_device_alloc(shard->device, item->row.tag, (size_t)n * width, item->array->name, &buffer));
    *item->view = el_view_of(buffer, (size_t)place_in_unit(shard, item) * width);
    return EL_OK;
}

static enum el_status alloc_item(const struct el_shard *shard, const struct el_state_item *item)
{
    const struct el_state_row *row = &item->row;
    struct el_buffer *buffer;
    size_t bytes =
        row->of_buffers ? el_buffers_bytes(shard->graph, row->dtype) : (size_t)item->count * el_dtype_bytes(row->dtype);
    if (row->lent || (row->of_buffers && item->number > 0)) return EL_OK;
    if (is_in_unit(shard, item)) {
        EL_TRY(alloc_unit(shard, item));
    } else {
        EL_TRY(
            el_device_alloc(shard->device, row->tag, bytes, row->of_buffers ? "buffers" : item->array->name, &buffer));
        *item->view = el_view_of(buffer, 0);
    }
    if (row->of_buffers) el_buffers_view(shard->graph, row->dtype, *item->view, shard->buffers);
    return row->drawn || el_device_is_simulated(shard->device) ? EL_OK : write_zeros(shard, item);
}

static enum el_status make_views(struct el_shard *shard)
{
    size_t n = (size_t)shard->graph->n_params, n_buffers = (size_t)shard->graph->n_buffers;
    struct el_view *views = calloc((EL_STATE_COUNT + 1) * (n + n_buffers) + 1, sizeof *views);
    if (!views) return el_fail_errno("%s: views of %zu parameters", el_device_name(shard->device), n);
    for (int what = 0; what < EL_STATE_COUNT; what++) shard->rows[what] = views + (size_t)what * (n + n_buffers);
    shard->issued = views + EL_STATE_COUNT * (n + n_buffers);
    return EL_OK;
}

int64_t el_shard_routed(const struct el_graph *graph, int64_t *layers_p)
{
    int64_t experts = *layers_p = 0;
    for (int n = 0; n < graph->n_nodes; n++) {
        const struct el_node *node = &graph->nodes[n];
        if (node->type != &el_node_route) continue;
        experts = node->attributes.experts;
        if (node->attributes.layer >= *layers_p) *layers_p = node->attributes.layer + 1;
    }
    return experts;
}

static enum el_status open_routed(struct el_shard *shard)
{
    int64_t layers;
    const size_t bytes = (size_t)(2 * el_shard_routed(shard->graph, &layers)) * sizeof(int32_t);
    if (bytes == 0) return EL_OK;
    EL_TRY(el_device_alloc(shard->device, EL_TAG_OUTPUT, (size_t)layers * bytes, "routed tokens", &shard->routed));
    if (el_device_is_simulated(shard->device)) return EL_OK;
    void *zeros = calloc((size_t)layers, bytes);
    enum el_status status = zeros ? el_device_write(el_view_of(shard->routed, 0), zeros, (size_t)layers * bytes)
                                  : el_fail_errno("routed tokens");
    free(zeros);
    return status;
}

enum el_status el_shard_open(struct el_shard *shard, const struct el_shard_spec *spec)
{
    *shard = (struct el_shard){.config = spec->config,
                               .graph = spec->graph,
                               .device = spec->device,
                               .split = spec->split,
                               .piece = spec->piece};
    if (!spec->owns) return EL_OK;
    if (spec->n_pieces > 0)
        EL_TRY(el_units_open(spec->graph, (enum el_unit_kind)spec->config->unit, spec->n_pieces, &shard->units));
    EL_TRY(make_views(shard));
    for (struct el_state_item item = {0}; el_shard_next(shard, &item);) EL_TRY(alloc_item(shard, &item));
    size_t width = el_dtype_bytes(spec->config->dtype), steps = (size_t)spec->config->n_accumulate;
    EL_TRY(el_device_alloc(shard->device, EL_TAG_OUTPUT, steps * width, "loss", &shard->loss));
    EL_TRY(open_routed(shard));
    if (el_device_is_simulated(shard->device)) return EL_OK;
    for (struct el_state_item item = {0}; el_shard_next(shard, &item);)
        if (item.row.drawn && item.count > 0) EL_TRY(initialize(shard, &item));
    for (size_t k = 0; k < steps; k++) EL_TRY(el_device_write(el_view_of(shard->loss, k * width), &(double){0}, width));
    return EL_OK;
}

void el_shard_close(struct el_shard *shard)
{
    for (struct el_state_item item = {0}; shard->params && el_shard_next(shard, &item);)
        if (!item.row.lent && is_first(shard, &item)) el_device_free(item.view->buffer);
    el_device_free(shard->loss);
    el_device_free(shard->routed);
    el_units_close(shard->units);
    free(shard->params);
    *shard = (struct el_shard){0};
}

enum el_status el_shard_read_value(const struct el_shard *shard, struct el_buffer *values, int i, double *value_p)
{
    double value = 0;
    size_t width = el_dtype_bytes(shard->config->dtype);
    EL_TRY(el_device_read(el_view_of(values, (size_t)i * width), &value, width));
    widen(shard->config->dtype, 1, &value);
    *value_p = value;
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
