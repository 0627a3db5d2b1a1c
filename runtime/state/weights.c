/* Weights in files (weights.h), without the optimizer's state. */
#include "runtime/state/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPE_BYTES = 96 };

/* [filters, ..., channels] here; channels first in files. */
static bool is_of_filters(const struct el_param *param)
{
    return param->shape.n > 2 && !param->matrices;
}

struct el_stored_array el_weights_stored(const struct el_param *param, enum el_dtype dtype)
{
    const struct el_shape *shape = &param->shape;
    struct el_stored_array array = {.name = param->name, .n_dims = shape->n, .count = el_shape_count(shape)};
    array.type = dtype == EL_F64 ? EL_STORED_F64 : EL_STORED_F32;
    if (param->transposed) {
        const int64_t inputs = shape->d[shape->n - 1];
        array.n_dims = 2, array.dims[0] = inputs, array.dims[1] = array.count / inputs;
        return array;
    }
    if (param->flat) {
        array.n_dims = 1, array.dims[0] = array.count;
        return array;
    }
    for (int i = 0; i < shape->n; i++) array.dims[i] = shape->d[i];
    for (int i = 1; i < shape->n && is_of_filters(param); i++) array.dims[i] = shape->d[i == 1 ? shape->n - 1 : i - 1];
    return array;
}

/* A transposed matrix is reordered as one filter with an output per place. */
static void reorder(const struct el_param *array, size_t width, const void *from, void *to, bool to_file)
{
    const struct el_shape *shape = &array->shape;
    const bool turned = array->transposed || is_of_filters(array);
    const int64_t all = el_shape_count(shape), channels = turned ? shape->d[shape->n - 1] : 1,
                  places = turned ? all / (array->transposed ? 1 : shape->d[0]) / channels : all,
                  filter = places * channels, rows = to_file ? places : channels, columns = to_file ? channels : places;
    for (int64_t first = 0; first < all; first += filter)
        for (int64_t row = 0; row < rows; row++) {
            const int64_t was = first + row * columns, at = first + row;
            if (width == sizeof(float))
                for (int64_t i = 0; i < columns; i++) ((float *)to)[at + i * rows] = ((const float *)from)[was + i];
            else
                for (int64_t i = 0; i < columns; i++) ((double *)to)[at + i * rows] = ((const double *)from)[was + i];
        }
}

void el_weights_reorder(const struct el_param *array, const double *from, double *to, bool to_file)
{
    reorder(array, sizeof *to, from, to, to_file);
}

void el_weights_to_file(const struct el_param *array, enum el_dtype dtype, const void *from, void *to)
{
    reorder(array, el_dtype_bytes(dtype), from, to, true);
}

static const char *show_shape(const struct el_stored_array *array, char text[SHAPE_BYTES])
{
    int n = snprintf(text, SHAPE_BYTES, "[");
    for (int i = 0; i < array->n_dims && n < SHAPE_BYTES; i++)
        n += snprintf(text + n, SHAPE_BYTES - (size_t)n, "%s%lld", i ? ", " : "", (long long)array->dims[i]);
    if (n < SHAPE_BYTES) snprintf(text + n, SHAPE_BYTES - (size_t)n, "]");
    return text;
}

static bool same_shape(const struct el_stored_array *a, const struct el_stored_array *b)
{
    bool same = a->n_dims == b->n_dims;
    for (int i = 0; i < a->n_dims && same; i++) same = a->dims[i] == b->dims[i];
    return same;
}

/* Missing names are drawn (el_weights_lacks), but not if the file has another name for them. */
static enum el_status check_missing(const struct el_safetensors *file, const char *name)
{
    static const struct {
        const char *before, *who;
    } wraps[] = {{"module.", "DistributedDataParallel"}, {"_orig_mod.", "torch.compile"}};
    const size_t body = strlen("transformer.");
    if (!strncmp(name, "transformer.", body) && el_safetensors_find(file, name + body))
        return el_fail(EL_ERR_INVALID, "%.200s has '%s' for '%s', as GPT2Model has: in Python save a GPT2LMHeadModel",
                       el_safetensors_path(file), name + body, name);
    for (size_t i = 0; i < sizeof wraps / sizeof *wraps; i++) {
        char wrapped[2 * EL_GRAPH_NAME_BYTES];
        snprintf(wrapped, sizeof wrapped, "%s%s", wraps[i].before, name);
        if (el_safetensors_find(file, wrapped))
            return el_fail(EL_ERR_INVALID,
                           "%.200s has no '%s', which the model has, but '%s' before it, as %s has: in Python save "
                           "model.%sstate_dict()",
                           el_safetensors_path(file), name, wraps[i].before, wraps[i].who, wraps[i].before);
    }
    return EL_OK;
}

static enum el_status check_values(const struct el_safetensors *file, const struct el_stored_array *array)
{
    double *read = malloc((size_t)array->count * sizeof *read);
    if (!read) return el_fail_errno("'%s'", array->name);
    enum el_status status = el_safetensors_read(file, array, read);
    for (int64_t i = 0; i < array->count && status == EL_OK; i++)
        if (!isfinite(read[i]))
            status = el_fail(EL_ERR_INVALID, "%.200s: '%s' has a value that is %s: nothing can be trained from it",
                             el_safetensors_path(file), array->name, isnan(read[i]) ? "NaN" : "infinite");
    free(read);
    return status;
}

static enum el_status check_array(const struct el_safetensors *file, const struct el_param *param)
{
    const struct el_stored_array wanted = el_weights_stored(param, EL_F32),
                                 *found = el_safetensors_find(file, param->name);
    const char *path = el_safetensors_path(file);
    char has[SHAPE_BYTES], needs[SHAPE_BYTES];
    if (!found) return check_missing(file, param->name);
    if (found->type == EL_STORED_I64)
        return el_fail(EL_ERR_INVALID, "%.200s: '%s' has whole numbers (I64)", path, param->name);
    if (same_shape(found, &wanted)) return check_values(file, found);
    return el_fail(EL_ERR_INVALID,
                   "%.200s: '%s' is %s, the model's %s: give the model the sizes that it was saved with", path,
                   param->name, show_shape(found, has), show_shape(&wanted, needs));
}

static bool has(const struct el_param *of, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(of[i].name, name) == 0) return true;
    return false;
}

static const char MEAN[] = ".running_mean", TRACKED[] = ".num_batches_tracked";

bool el_weights_count_name(const struct el_param *buffer, char name[EL_WEIGHTS_NAME_BYTES])
{
    size_t n = strlen(buffer->name), end = strlen(MEAN);
    if (n < end || strcmp(buffer->name + n - end, MEAN) != 0) return false;
    snprintf(name, EL_WEIGHTS_NAME_BYTES, "%.*s%s", (int)(n - end), buffer->name, TRACKED);
    return true;
}

static bool is_count(const struct el_graph *model, const struct el_stored_array *array)
{
    char name[EL_WEIGHTS_NAME_BYTES];
    for (int b = 0; b < model->n_buffers; b++)
        if (el_weights_count_name(&model->buffers[b], name) && strcmp(name, array->name) == 0)
            return array->type == EL_STORED_I64 && array->count == 1;
    return false;
}

/* The parameter that a file may repeat as another layer's weight, like `lm_head.weight` for GPT-2's embedding; NULL:
 * none. */
static const struct el_param *find_tied(const struct el_graph *model, const char *name)
{
    const size_t layer = strlen(name) - strlen(strrchr(name, '.') ? strrchr(name, '.') : "");
    for (int i = 0; i < model->n_nodes; i++) {
        const struct el_node *node = &model->nodes[i];
        if (strlen(node->name) == layer && !strncmp(node->name, name, layer) && !strcmp(name + layer, ".weight") &&
            node->n_params)
            return &model->params[node->params[0]];
    }
    return NULL;
}

static enum el_status check_tied(const struct el_safetensors *file, const struct el_stored_array *array,
                                 const struct el_param *param)
{
    const struct el_stored_array *first = el_safetensors_find(file, param->name);
    const size_t n = first && same_shape(array, first) ? (size_t)array->count : 0;
    double *values = calloc(2 * n + 1, sizeof *values);
    if (!values) return el_fail_errno("'%s'", param->name);
    enum el_status status = n ? el_safetensors_read(file, array, values) : EL_OK;
    if (status == EL_OK && n) status = el_safetensors_read(file, first, values + n);
    const bool same = n && memcmp(values, values + n, n * sizeof *values) == 0;
    free(values);
    if (status != EL_OK || same) return status;
    return el_fail(EL_ERR_INVALID, "%.200s: '%.60s' is not '%s': this model has one weight for both",
                   el_safetensors_path(file), array->name, param->name);
}

enum el_status el_weights_check(const struct el_safetensors *file, const struct el_graph *model)
{
    for (int p = 0; p < model->n_params; p++) EL_TRY(check_array(file, &model->params[p]));
    for (int b = 0; b < model->n_buffers; b++) EL_TRY(check_array(file, &model->buffers[b]));
    for (int i = 0; i < el_safetensors_count(file); i++) {
        const struct el_stored_array *array = el_safetensors_array(file, i);
        if (has(model->params, model->n_params, array->name) || has(model->buffers, model->n_buffers, array->name) ||
            is_count(model, array))
            continue;
        const struct el_param *tied = find_tied(model, array->name);
        if (tied)
            EL_TRY(check_tied(file, array, tied));
        else
            return el_fail(EL_ERR_INVALID, "%.200s: '%.60s' is no parameter of the model", el_safetensors_path(file),
                           array->name);
    }
    return EL_OK;
}

static void list_missing(const struct el_safetensors *file, const struct el_param *of, int n, int *n_p, char *text,
                         size_t bytes)
{
    for (int i = 0; i < n; i++) {
        if (el_safetensors_find(file, of[i].name)) continue;
        const size_t used = strlen(text);
        snprintf(text + used, bytes - used, "%s%s", *n_p ? ", " : "", of[i].name);
        ++*n_p;
    }
}

int el_weights_lacks(const struct el_safetensors *file, const struct el_graph *model, char *names, size_t bytes)
{
    int n = 0;
    *names = '\0';
    list_missing(file, model->params, model->n_params, &n, names, bytes);
    list_missing(file, model->buffers, model->n_buffers, &n, names, bytes);
    return n;
}

enum el_status el_weights_read(const struct el_safetensors *file, const struct el_param *param, double *values)
{
    double *read = malloc((size_t)el_shape_count(&param->shape) * sizeof *read);
    if (!read) return el_fail_errno("'%s'", param->name);
    enum el_status status = el_safetensors_read(file, el_safetensors_find(file, param->name), read);
    if (status == EL_OK) el_weights_reorder(param, read, values, false);
    free(read);
    return status;
}
