/* Weights in a file, and from one; see weights.h. The optimizer's state is not in it. */
#include "runtime/parallel/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/parallel/gather.h"

enum { SHAPE_BYTES = 96 };

/* What a parameter, or a buffer, is in a file. */
static struct el_stored_array stored(const struct el_param *param, enum el_dtype dtype)
{
    const struct el_shape *shape = &param->shape;
    struct el_stored_array array = {.name = param->name, .n_dims = shape->n, .count = el_shape_count(shape)};
    array.type = dtype == EL_F64 ? EL_STORED_F64 : EL_STORED_F32;
    for (int i = 0; i < shape->n; i++) array.dims[i] = shape->d[i];
    for (int i = 1; i < shape->n && shape->n > 2; i++) array.dims[i] = shape->d[i == 1 ? shape->n - 1 : i - 1];
    return array;
}

/* [filters][places][channels] here, [filters][channels][places] in a file; all else is the same on both sides. */
static void reorder(const struct el_shape *shape, const double *from, double *to, bool to_file)
{
    const bool convolution = shape->n > 2;
    const int64_t all = el_shape_count(shape), channels = convolution ? shape->d[shape->n - 1] : 1,
                  places = convolution ? all / shape->d[0] / channels : all, filter = places * channels;
    for (int64_t first = 0; first < all; first += filter)
        for (int64_t place = 0; place < places; place++)
            for (int64_t channel = 0; channel < channels; channel++) {
                int64_t here = first + place * channels + channel, there = first + channel * places + place;
                to[to_file ? there : here] = from[to_file ? here : there];
            }
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

static enum el_status fail_missing(const struct el_safetensors *file, const char *name)
{
    char wrapped[2 * EL_GRAPH_NAME_BYTES];
    snprintf(wrapped, sizeof wrapped, "module.%s", name);
    return el_fail(EL_ERR_INVALID, "%.200s has no '%s', which the model has%s", el_safetensors_path(file), name,
                   el_safetensors_find(file, wrapped) ? ", but 'module.' before it, as DistributedDataParallel has: in "
                                                        "Python save model.module.state_dict()"
                                                      : "");
}

static enum el_status check_array(const struct el_safetensors *file, const struct el_param *param)
{
    const struct el_stored_array wanted = stored(param, EL_F32), *found = el_safetensors_find(file, param->name);
    const char *path = el_safetensors_path(file);
    char has[SHAPE_BYTES], needs[SHAPE_BYTES];
    if (!found) return fail_missing(file, param->name);
    if (found->type == EL_STORED_I64)
        return el_fail(EL_ERR_INVALID, "%.200s: '%s' has whole numbers (I64)", path, param->name);
    if (same_shape(found, &wanted)) return EL_OK;
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

/* ---- how many batches running statistics have seen ---- */

static const char MEAN[] = ".running_mean", TRACKED[] = ".num_batches_tracked";

/* "bn1.num_batches_tracked", into `name`, of "bn1.running_mean"; false: it is another buffer. */
static bool count_of(const struct el_param *buffer, char name[2 * EL_GRAPH_NAME_BYTES])
{
    size_t n = strlen(buffer->name), end = strlen(MEAN);
    if (n < end || strcmp(buffer->name + n - end, MEAN) != 0) return false;
    snprintf(name, 2 * EL_GRAPH_NAME_BYTES, "%.*s%s", (int)(n - end), buffer->name, TRACKED);
    return true;
}

static bool is_count(const struct el_graph *model, const struct el_stored_array *array)
{
    char name[2 * EL_GRAPH_NAME_BYTES];
    for (int b = 0; b < model->n_buffers; b++)
        if (count_of(&model->buffers[b], name) && strcmp(name, array->name) == 0)
            return array->type == EL_STORED_I64 && array->count == 1;
    return false;
}

/* Those that it was loaded with, and those of the steps. */
static enum el_status count_batches(const struct el_worker *worker, const char *name, int64_t steps, double *count_p)
{
    const struct el_train_config *config = worker->config;
    const struct el_stored_array *before = config->weights ? el_safetensors_find(config->weights, name) : NULL;
    double loaded = 0;
    if (before) EL_TRY(el_safetensors_read(config->weights, before, &loaded));
    *count_p = loaded + (double)(steps * config->n_accumulate * (worker->layout->n_stages > 1 ? config->n_micro : 1));
    return EL_OK;
}

/* ---- from a file ---- */

enum el_status el_weights_check(const struct el_safetensors *file, const struct el_graph *model)
{
    for (int p = 0; p < model->n_params; p++) EL_TRY(check_array(file, &model->params[p]));
    for (int b = 0; b < model->n_buffers; b++) EL_TRY(check_array(file, &model->buffers[b]));
    for (int i = 0; i < el_safetensors_count(file); i++) {
        const struct el_stored_array *array = el_safetensors_array(file, i);
        if (!has(model->params, model->n_params, array->name) && !has(model->buffers, model->n_buffers, array->name) &&
            !is_count(model, array))
            return el_fail(EL_ERR_INVALID, "%.200s: '%.60s' is no parameter of the model", el_safetensors_path(file),
                           array->name);
    }
    return EL_OK;
}

enum el_status el_weights_read(const struct el_safetensors *file, const struct el_param *param, double *values)
{
    double *read = malloc((size_t)el_shape_count(&param->shape) * sizeof *read);
    if (!read) return el_fail_errno("'%s'", param->name);
    enum el_status status = el_safetensors_read(file, el_safetensors_find(file, param->name), read);
    if (status == EL_OK) reorder(&param->shape, read, values, false);
    free(read);
    return status;
}

/* ---- into a file: counts first, so that all is aligned; parameters; buffers ---- */

struct saving {
    struct el_worker *worker;
    struct el_stored_array *arrays;
    char (*counts)[2 * EL_GRAPH_NAME_BYTES];
    int n, n_counts;
    struct el_safetensors_writer *writer; /* the first worker's, else NULL */
};

static enum el_status list_arrays(struct saving *saving)
{
    const struct el_graph *model = saving->worker->graph;
    const enum el_dtype dtype = saving->worker->config->dtype;
    saving->arrays = calloc((size_t)(model->n_params + 2 * model->n_buffers), sizeof *saving->arrays);
    saving->counts = calloc((size_t)model->n_buffers + 1, sizeof *saving->counts);
    if (!saving->arrays || !saving->counts) return el_fail_errno("names of weights");
    for (int b = 0; b < model->n_buffers; b++) {
        char *name = saving->counts[saving->n_counts];
        if (!count_of(&model->buffers[b], name)) continue;
        saving->arrays[saving->n_counts++] = (struct el_stored_array){.name = name, .type = EL_STORED_I64};
    }
    saving->n = saving->n_counts;
    for (int p = 0; p < model->n_params; p++) saving->arrays[saving->n++] = stored(&model->params[p], dtype);
    for (int b = 0; b < model->n_buffers; b++) saving->arrays[saving->n++] = stored(&model->buffers[b], dtype);
    return EL_OK;
}

static enum el_status save_one(const struct saving *saving, enum el_gathered what, int origin)
{
    const struct el_graph *model = saving->worker->graph;
    const struct el_param *of = &(what == EL_GATHER_BUFFERS ? model->buffers : model->params)[origin];
    const size_t n = (size_t)el_shape_count(&of->shape);
    double *values = saving->writer ? malloc(2 * n * sizeof *values) : NULL;
    if (saving->writer && !values) return el_fail_errno("'%s'", of->name);
    enum el_status status = el_gather(saving->worker, what, origin, values);
    if (status == EL_OK && saving->writer) {
        reorder(&of->shape, values, values + n, true);
        el_safetensors_write(saving->writer, values + n);
    }
    free(values);
    return status;
}

static enum el_status save_all(const struct saving *saving, int64_t steps)
{
    const struct el_graph *model = saving->worker->graph;
    for (int i = 0; i < saving->n_counts && saving->writer; i++) {
        double count = 0;
        EL_TRY(count_batches(saving->worker, saving->counts[i], steps, &count));
        el_safetensors_write(saving->writer, &count);
    }
    for (int p = 0; p < model->n_params; p++) EL_TRY(save_one(saving, EL_GATHER_PARAMS, p));
    for (int b = 0; b < model->n_buffers; b++) EL_TRY(save_one(saving, EL_GATHER_BUFFERS, b));
    return EL_OK;
}

enum el_status el_weights_save(struct el_worker *worker, int64_t steps, const char *path)
{
    struct saving saving = {.worker = worker};
    enum el_status status = list_arrays(&saving);
    if (status == EL_OK && el_worker_is_first(worker))
        status = el_safetensors_begin(path, saving.arrays, saving.n, &saving.writer);
    if (status == EL_OK) status = save_all(&saving, steps);
    if (status == EL_OK && saving.writer)
        status = el_safetensors_end(saving.writer);
    else
        el_safetensors_drop(saving.writer);
    free(saving.arrays);
    free(saving.counts);
    return status;
}
