#include "runtime/train/save.h"

#include <stdlib.h>

#include "runtime/state/weights.h"
#include "runtime/worker/copies.h"

static enum el_status count_batches(const struct el_worker *worker, const char *name, int64_t steps, double *count_p)
{
    const struct el_train_config *config = worker->config;
    const struct el_stored_array *before = config->weights ? el_safetensors_find(config->weights, name) : NULL;
    double loaded = 0;
    if (before) EL_TRY(el_safetensors_read(config->weights, before, &loaded));
    *count_p =
        loaded + (double)(steps * config->n_accumulate * (worker->layout->n[EL_AXIS_STAGE] > 1 ? config->n_micro : 1));
    return EL_OK;
}

struct saving {
    struct el_worker *worker;
    struct el_stored_array *arrays;
    char (*counts)[EL_WEIGHTS_NAME_BYTES];
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
        if (!el_weights_count_name(&model->buffers[b], name)) continue;
        saving->arrays[saving->n_counts++] = (struct el_stored_array){.name = name, .type = EL_STORED_I64};
    }
    saving->n = saving->n_counts;
    for (int p = 0; p < model->n_params; p++) saving->arrays[saving->n++] = el_weights_stored(&model->params[p], dtype);
    for (int b = 0; b < model->n_buffers; b++)
        saving->arrays[saving->n++] = el_weights_stored(&model->buffers[b], dtype);
    return EL_OK;
}

static enum el_status save_one(const struct saving *saving, enum el_state what, int origin)
{
    const struct el_graph *model = saving->worker->graph;
    const struct el_param *of = &(what == EL_STATE_BUFFER ? model->buffers : model->params)[origin];
    const size_t n = (size_t)el_shape_count(&of->shape);
    double *values = saving->writer ? malloc(2 * n * sizeof *values) : NULL;
    if (saving->writer && !values) return el_fail_errno("'%s'", of->name);
    enum el_status status = el_gather(saving->worker, what, origin, values);
    if (status == EL_OK && saving->writer) {
        el_weights_reorder(of, values, values + n, true);
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
    for (int p = 0; p < model->n_params; p++) EL_TRY(save_one(saving, EL_STATE_PARAM, p));
    for (int b = 0; b < model->n_buffers; b++) EL_TRY(save_one(saving, EL_STATE_BUFFER, b));
    return EL_OK;
}

enum el_status el_train_save(struct el_worker *worker, int64_t steps, const char *path)
{
    struct saving saving = {.worker = worker};
    enum el_status status = list_arrays(&saving);
    if (status == EL_OK && el_worker_is_first(worker))
        status = el_safetensors_begin(path, saving.arrays, saving.n, &saving.writer);
    if (status == EL_OK) status = save_all(&saving, steps);
    if (status == EL_OK && saving.writer)
        status = el_safetensors_end(saving.writer, NULL);
    else
        el_safetensors_drop(saving.writer);
    free(saving.arrays);
    free(saving.counts);
    return status;
}
