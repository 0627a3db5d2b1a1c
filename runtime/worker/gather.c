/* Values of parameters from their owners; see gather.h. */
#include "runtime/worker/gather.h"

#include <stdlib.h>
#include <string.h>

static enum el_status read_own(const struct el_worker *worker, enum el_gathered what, int origin, double *values)
{
    for (int m = 0; m < worker->n_members; m++) {
        const struct el_shard *shard = &worker->members[m].shard;
        const struct el_graph *graph = shard->graph;
        const bool buffers = what == EL_GATHER_BUFFERS;
        const struct el_param *all = buffers ? graph->buffers : graph->params;
        const struct el_view *views = buffers ? shard->buffers : what == EL_GATHER_GRADS ? shard->grads : shard->params;
        if (el_layout_source(worker->layout, worker->first + m) != worker->first + m) continue;
        for (int i = 0; i < (buffers ? graph->n_buffers : graph->n_params); i++)
            if (all[i].origin == origin && views[i].buffer) /* else the graph does not use it */
                EL_TRY(el_shard_read_doubles(shard, &all[i], views[i], values));
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

enum el_status el_gather(struct el_worker *worker, enum el_gathered what, int origin, double *values)
{
    const struct el_graph *model = worker->graph;
    const bool buffer = what == EL_GATHER_BUFFERS, cut = worker->layout->n[EL_AXIS_STAGE] > 1;
    const struct el_param *of = &(buffer ? model->buffers : model->params)[origin];
    const int64_t n = el_shape_count(&of->shape);
    if (!cut && !el_worker_is_first(worker)) return EL_OK;
    if (what != EL_GATHER_GRADS && !is_held(worker->parts, buffer, origin)) /* no step has changed it */
        return values ? el_shard_initial_values(worker->config, model, of, values) : EL_OK;
    double *own = values ? values : malloc((size_t)n * sizeof *own);
    if (!own) return el_fail_errno("'%s' of %lld elements", of->name, (long long)n);
    memset(own, 0, (size_t)n * sizeof *own);
    enum el_status status = read_own(worker, what, origin, own);
    if (status == EL_OK && cut) status = el_worker_sum(worker, own, n);
    if (!values) free(own);
    return status;
}
