/* Values of parameters from their owners; see gather.h. */
#include "runtime/worker/gather.h"

#include <stdlib.h>
#include <string.h>

/* Its elements of the origin: of a slice some, and of a range some of these. */
static enum el_status add_item(const struct el_shard *shard, const struct el_state_item *item, double *origin)
{
    const struct el_shape *shape = &item->array->shape;
    const struct el_slice *slice = &item->array->slice;
    const int64_t n = el_shape_count(shape);
    double *values = malloc((size_t)n * sizeof *values);
    if (!values) return el_fail_errno("'%s' of %lld elements", item->array->name, (long long)n);
    enum el_status status = el_shard_read_item(shard, item, values);
    if (status == EL_OK) el_slice_put(shape, slice, values, origin);
    free(values);
    return status;
}

bool el_gather_counts(const struct el_worker *worker, int m, const struct el_state_item *item)
{
    const struct el_spot spot = el_layout_spot(worker->layout, worker->first + m);
    const bool split = worker->members[m].shard.split & 1U << item->what;
    return (item->array->slice.of || spot.at[EL_AXIS_TENSOR] == 0) && (split || spot.at[EL_AXIS_SHARD] == 0);
}

static enum el_status read_own(const struct el_worker *worker, enum el_state what, int origin, double *values)
{
    for (int m = 0; m < worker->n_members; m++) {
        const struct el_shard *shard = &worker->members[m].shard;
        if (el_layout_source(worker->layout, worker->first + m) != worker->first + m) continue;
        for (struct el_state_item item = {0}; el_shard_next(shard, &item);)
            if (item.what == what && item.array->origin == origin && !item.array->is_copy &&
                item.view->buffer && /* else nobody uses it */
                el_gather_counts(worker, m, &item))
                EL_TRY(add_item(shard, &item, values));
    }
    return EL_OK;
}

/* Whether a part of a cut model has it: a parameter that no node uses is in none. */
static bool is_held(const struct el_parts *parts, bool buffer, int origin)
{
    for (int s = 0; s < parts->n_stages; s++) {
        const struct el_graph *part = parts->stage[s];
        const struct el_param *arrays = buffer ? part->buffers : part->params;
        for (int i = 0; i < (buffer ? part->n_buffers : part->n_params); i++)
            if (arrays[i].origin == origin) return true;
    }
    return false;
}

enum el_status el_gather(struct el_worker *worker, enum el_state what, int origin, double *values)
{
    const struct el_graph *model = worker->graph;
    const bool buffer = what == EL_STATE_BUFFER, cut = el_layout_is_cut(worker->layout);
    const struct el_param *of = &(buffer ? model->buffers : model->params)[origin];
    const int64_t n = el_shape_count(&of->shape);
    if (!cut && !el_worker_is_first(worker)) return EL_OK;
    if ((what == EL_STATE_PARAM || buffer) && !is_held(worker->parts, buffer, origin)) /* no step has changed it */
        return values ? el_state_initial_values(worker->config, model, of, values) : EL_OK;
    double *own = values ? values : malloc((size_t)n * sizeof *own);
    if (!own) return el_fail_errno("'%s' of %lld elements", of->name, (long long)n);
    memset(own, 0, (size_t)n * sizeof *own);
    enum el_status status = read_own(worker, what, origin, own);
    if (status == EL_OK && cut) status = el_worker_sum(worker, own, n);
    if (!values) free(own);
    return status;
}
