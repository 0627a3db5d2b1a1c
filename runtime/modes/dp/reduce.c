/* dp's reduce: after the whole backward the replicas' gradients are summed (not averaged) on the master, in the chunks
 * of replicate. All replicas' gradients live until the last chunk, as inputs of one autograd node. The sums are new
 * tensors.
 * With the fix `update` each device gets the mean; with `overlap` gradients go in ddp's buckets during backward. */
#include <string.h>

#include "runtime/modes/dp/dp.h"

/* Unused and frozen parameters are summed as zeros, as autograd passes them to the broadcast's backward. */
static void add_missing_grads(struct el_dp *dp)
{
    for (int m = 0; m < dp->n; m++) {
        const struct el_shard *shard = &dp->worker->members[m].shard;
        for (int p = 0; p < dp->worker->graph->n_params; p++) {
            if (el_graph_trains_param(dp->worker->graph, p)) continue;
            struct el_buffer *zeros;
            el_program_alloc(dp->program, shard->device, EL_TAG_GRAD, el_shard_param_bytes(el_dp_master(dp), p),
                             dp->worker->graph->params[p].name, &zeros);
            dp->replica[m].grads[p] = el_view_of(zeros, 0);
            el_shard_issue_fill_as(shard, dp->program, EL_PHASE_REDUCE, "no gradient", el_config_stored(shard->config),
                                   dp->replica[m].grads[p], el_param_count(dp->worker->graph, p), 0);
        }
    }
}

static void reduce_chunk(struct el_dp *dp, int c)
{
    struct el_member *members = dp->worker->members;
    const struct el_dp_chunk chunk = el_dp_chunk(dp, c);
    bool to_all = el_dp_fixed(dp, EL_DP_FIX_UPDATE);
    int only = 0;
    while (dp->chunk_of[only] != c) only++;
    for (int m = 0; m < el_dp_owners(dp); m++)
        el_program_alloc_padded(dp->program, members[m].shard.device, EL_TAG_BUCKET, chunk.bytes, chunk.padding_bytes,
                                "reduce result", &dp->replica[m].results[c]);
    for (int m = 0; m < dp->n; m++) {
        struct el_dp_replica *replica = &dp->replica[m];
        struct el_view data = replica->grads[only];
        replica->flat = NULL;
        if (chunk.n_tensors > 1) {
            el_program_alloc_padded(dp->program, members[m].shard.device, EL_TAG_WORKSPACE, chunk.bytes,
                                    chunk.padding_bytes, "flat gradients", &replica->flat);
            el_dp_flatten(dp, m, c, EL_PHASE_REDUCE, replica->grads, replica->flat);
            data = el_view_of(replica->flat, 0);
        }
        struct el_comm_op op = {.verb = to_all ? EL_COMM_ALL_REDUCE : EL_COMM_REDUCE,
                                .reduction = to_all ? EL_COMM_AVERAGE : EL_COMM_SUM,
                                .dtype = el_config_stored(dp->worker->config),
                                .count = (size_t)chunk.count,
                                .data = data,
                                .result = el_view_of(dp->replica[to_all ? m : 0].results[c], 0),
                                .label = "reduce gradients",
                                .phase = EL_PHASE_REDUCE,
                                .join = true};
        el_comm_issue(replica->comm, dp->program, &op, NULL);
    }
    for (int m = 0; m < dp->n; m++) el_program_free(dp->program, dp->replica[m].flat);
}

static void free_replica_grads(struct el_dp *dp, int m)
{
    for (int p = 0; p < dp->worker->graph->n_params; p++) el_program_free(dp->program, dp->replica[m].grads[p].buffer);
}

static void take_views(const struct el_dp *dp, struct el_buffer *const *chunks, struct el_view *views)
{
    for (int p = 0; p < dp->worker->graph->n_params; p++) {
        views[p] = (struct el_view){0};
        if (el_graph_trains_param(dp->worker->graph, p)) views[p] = el_view_of(chunks[dp->chunk_of[p]], dp->place[p]);
    }
}

static void free_frozen(struct el_dp *dp, int m)
{
    for (int c = 0; c < dp->n_chunks; c++) {
        bool all = true;
        for (int p = 0; p < dp->worker->graph->n_params; p++)
            if (dp->chunk_of[p] == c) all &= dp->worker->graph->params[p].frozen;
        if (!all) continue;
        el_program_free(dp->program, dp->replica[m].results[c]);
        dp->replica[m].results[c] = NULL;
    }
}

static void add(const struct el_dp *dp, int m, struct el_view x, struct el_view y, int64_t n)
{
    struct el_kernel_op op = {.head = {.label = "accumulate gradient", .phase = EL_PHASE_REDUCE},
                              .op = EL_OP_ADD,
                              .dtype = el_config_stored(dp->worker->config),
                              .views = {x, y},
                              .args.d = {n}};
    el_program_kernel(dp->program, el_dp_device(dp, m), EL_STREAM_COMPUTE, &op, NULL);
}

static void free_chunks(const struct el_dp *dp, struct el_buffer **chunks)
{
    for (int c = 0; c < dp->n_chunks; c++) {
        el_program_free(dp->program, chunks[c]);
        chunks[c] = NULL;
    }
}

static void add_to_kept(struct el_dp *dp, int m)
{
    const struct el_shard *owner = &dp->worker->members[m].shard;
    take_views(dp, dp->replica[m].results, owner->issued);
    for (int p = 0; p < dp->worker->graph->n_params; p++) {
        if (owner->issued[p].buffer)
            add(dp, m, owner->issued[p], owner->grads[p], el_param_count(dp->worker->graph, p));
        owner->issued[p] = owner->grads[p];
    }
    free_chunks(dp, dp->replica[m].results);
}

/* The first micro-step's become the gradients. */
static void add_to_sums(struct el_dp *dp, int m)
{
    struct el_buffer **results = dp->replica[m].results, **sums = dp->replica[m].sums;
    for (int c = 0; c < dp->n_chunks; c++) {
        if (!results[c]) continue;
        if (dp->micro > 0) {
            add(dp, m, el_view_of(results[c], 0), el_view_of(sums[c], 0), el_dp_chunk(dp, c).count);
            el_program_free(dp->program, results[c]);
        } else {
            sums[c] = results[c];
        }
        results[c] = NULL;
    }
    take_views(dp, sums, dp->worker->members[m].shard.issued);
}

static void reduce_chunks(struct el_dp *dp)
{
    add_missing_grads(dp);
    for (int c = 0; c < dp->n_chunks; c++) reduce_chunk(dp, c);
    for (int m = 0; m < dp->n; m++) free_replica_grads(dp, m);
    for (int m = 0; m < el_dp_owners(dp); m++) {
        free_frozen(dp, m);
        if (dp->worker->config->keep_grads)
            add_to_kept(dp, m);
        else
            add_to_sums(dp, m);
    }
}

static void finish_buckets(struct el_dp *dp)
{
    for (int m = 0; m < dp->n; m++) el_reducer_finish(dp->replica[m].reducer);
    for (int m = el_dp_owners(dp); m < dp->n; m++) free_replica_grads(dp, m);
}

void el_dp_reduce(struct el_dp *dp)
{
    size_t bytes = (size_t)dp->worker->graph->n_params * sizeof(struct el_view);
    if (dp->n > 1 && el_dp_fixed(dp, EL_DP_FIX_OVERLAP)) finish_buckets(dp);
    if (dp->n > 1 && !el_dp_fixed(dp, EL_DP_FIX_OVERLAP)) {
        reduce_chunks(dp);
        return;
    }
    for (int m = 0; m < el_dp_owners(dp); m++) memcpy(dp->worker->members[m].shard.issued, dp->replica[m].grads, bytes);
}

void el_dp_free_grads(struct el_dp *dp)
{
    for (int m = 0; m < el_dp_owners(dp); m++) {
        const struct el_shard *owner = &dp->worker->members[m].shard;
        if (dp->n == 1 || el_dp_fixed(dp, EL_DP_FIX_OVERLAP))
            el_shard_free_grads(owner, dp->program, owner->issued);
        else
            free_chunks(dp, dp->replica[m].sums);
    }
}
