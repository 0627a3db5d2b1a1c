/* dp's replicate: parameters are sent in chunks of at most 10 MiB. The master flattens several tensors first (a copy)
 * and sends a single one directly; a replica's parameters are views of the flat storage. Buffers likewise, in one
 * piece. */
#include "runtime/modes/dp/dp.h"
#include "runtime/state/buffers.h"
#include "runtime/state/together.h"

struct el_dp_chunk el_dp_chunk(const struct el_dp *dp, int c)
{
    struct el_dp_chunk chunk = {0};
    size_t own = 0;
    for (int p = 0; p < dp->worker->graph->n_params; p++) {
        if (dp->chunk_of[p] != c) continue;
        size_t bytes = el_shard_param_bytes(el_dp_master(dp), p);
        chunk.n_tensors++;
        own += bytes;
        chunk.bytes = dp->place[p] + bytes;
    }
    chunk.padding_bytes = chunk.bytes - own;
    chunk.count = (int64_t)(chunk.bytes / el_dtype_bytes(el_config_stored(dp->worker->config)));
    return chunk;
}

void el_dp_flatten(struct el_dp *dp, int m, int c, enum el_phase phase, const struct el_view *tensors,
                   struct el_buffer *flat)
{
    struct el_together copies = {
        .shard = &dp->worker->members[m].shard, .program = dp->program, .phase = phase, .label = "flatten"};
    for (int p = 0; p < dp->worker->graph->n_params; p++)
        if (dp->chunk_of[p] == c)
            el_together_copy(&copies, tensors[p], el_view_of(flat, dp->place[p]), el_param_count(dp->worker->graph, p));
    el_together_end(&copies);
}

static void take_views(struct el_dp *dp, int m, int c)
{
    for (int p = 0; p < dp->worker->graph->n_params; p++)
        if (dp->chunk_of[p] == c) dp->replica[m].params[p] = el_view_of(dp->replica[m].chunks[c], dp->place[p]);
}

static struct el_view only_tensor(const struct el_dp *dp, int c)
{
    int p = 0;
    while (dp->chunk_of[p] != c) p++;
    return el_dp_master(dp)->params[p];
}

static void broadcast_chunk(struct el_dp *dp, int c)
{
    struct el_member *members = dp->worker->members;
    const struct el_dp_chunk chunk = el_dp_chunk(dp, c);
    struct el_buffer *flat = NULL;
    struct el_view source = only_tensor(dp, c);
    if (chunk.n_tensors > 1) {
        el_program_alloc_padded(dp->program, members[0].shard.device, EL_TAG_WORKSPACE, chunk.bytes,
                                chunk.padding_bytes, "flat parameters", &flat);
        el_dp_flatten(dp, 0, c, EL_PHASE_REPLICATE, members[0].shard.params, flat);
        source = el_view_of(flat, 0);
    }
    for (int m = 0; m < dp->n; m++) {
        if (m > 0) {
            el_program_alloc_padded(dp->program, members[m].shard.device, EL_TAG_REPLICA, chunk.bytes,
                                    chunk.padding_bytes, "replica", &dp->replica[m].chunks[c]);
            take_views(dp, m, c);
        }
        struct el_comm_op op = {.verb = EL_COMM_BROADCAST,
                                .dtype = el_config_stored(dp->worker->config),
                                .count = (size_t)chunk.count,
                                .data = m ? el_view_of(dp->replica[m].chunks[c], 0) : source,
                                .label = "broadcast parameters",
                                .phase = EL_PHASE_REPLICATE,
                                .join = true};
        el_comm_issue(dp->replica[m].comm, dp->program, &op, NULL);
    }
    el_program_free(dp->program, flat);
}

/* A member's own arrays: parameters unless they are sent, gradients unless a replica's new ones are summed first. */
static void take_own(struct el_dp *dp, int m)
{
    const struct el_shard *shard = &dp->worker->members[m].shard;
    bool own_grads = m < el_dp_owners(dp) && (dp->n == 1 || el_dp_fixed(dp, EL_DP_FIX_OVERLAP));
    for (int p = 0; p < dp->worker->graph->n_params; p++) {
        if (m < el_dp_owners(dp)) dp->replica[m].params[p] = shard->params[p];
        if (dp->n == 1 && dp->micro > 0) continue;
        dp->replica[m].grads[p] = own_grads ? shard->grads[p] : (struct el_view){0};
    }
}

void el_dp_replicate(struct el_dp *dp)
{
    for (int m = 0; m < dp->n; m++) take_own(dp, m);
    /* On one device PyTorch calls the module directly. */
    if (dp->n == 1 || el_dp_fixed(dp, EL_DP_FIX_REPLICAS)) return;
    for (int c = 0; c < dp->n_chunks; c++) broadcast_chunk(dp, c);
}

void el_dp_send_buffers(struct el_dp *dp)
{
    const struct el_graph *graph = dp->worker->graph;
    for (int m = 0; m < dp->n && dp->n > 1 && graph->n_buffers > 0; m++) {
        struct el_comm_op op = {.verb = EL_COMM_BROADCAST,
                                .dtype = dp->worker->config->dtype,
                                .count = (size_t)el_buffers_count(graph),
                                .data = dp->replica[m].buffers[0],
                                .label = "broadcast buffers",
                                .phase = EL_PHASE_REPLICATE,
                                .join = true};
        el_comm_issue(dp->replica[m].comm, dp->program, &op, NULL);
    }
}

void el_dp_replicate_buffers(struct el_dp *dp)
{
    const struct el_graph *graph = dp->worker->graph;
    enum el_dtype dtype = dp->worker->config->dtype;
    if (el_dp_fixed(dp, EL_DP_FIX_REPLICAS)) return; /* sent at the step's start, as in ddp */
    for (int m = el_dp_owners(dp); m < dp->n && graph->n_buffers > 0; m++) {
        struct el_buffer **storage = &dp->replica[m].own_buffers;
        el_program_alloc(dp->program, el_dp_device(dp, m), EL_TAG_REPLICA, el_buffers_bytes(graph, dtype),
                         "replica's buffers", storage);
        el_buffers_view(graph, dtype, el_view_of(*storage, 0), dp->replica[m].buffers);
    }
    el_dp_send_buffers(dp);
}

void el_dp_free_params(struct el_dp *dp)
{
    for (int m = 1; m < dp->n; m++) {
        el_program_free(dp->program, dp->replica[m].own_buffers);
        for (int c = 0; c < dp->n_chunks; c++) el_program_free(dp->program, dp->replica[m].chunks[c]);
    }
}

/* How a batch reaches dp's devices. The master loads it and sends each device its chunk (its own is a view); labels go
 * with the chunks, or to the loss's device. With the fix `inputs` each device loads its own share, as in ddp, and the
 * loss's device gets all labels. */

struct el_feed *el_dp_feed_of(const struct el_dp *dp, int m)
{
    int from = el_dp_fixed(dp, EL_DP_FIX_INPUTS) ? m : 0;
    return &dp->worker->members[from].feeds[dp->micro];
}

static struct el_view make_input(const struct el_dp *dp, int m, size_t bytes, const char *name)
{
    struct el_buffer *buffer;
    el_program_alloc(dp->program, el_dp_device(dp, m), EL_TAG_INPUT, bytes, name, &buffer);
    return el_view_of(buffer, 0);
}

static size_t label_bytes(const struct el_dp *dp, int64_t samples)
{
    return (size_t)samples * el_graph_label_bytes(dp->worker->graph);
}

/* From the host, where the samples were just loaded for some device. */
static void bring_labels(struct el_dp *dp)
{
    struct el_device *device = el_dp_device(dp, dp->output);
    int n_loaded = el_dp_fixed(dp, EL_DP_FIX_INPUTS) ? dp->n : 1;
    dp->replica[0].labels = make_input(dp, dp->output, label_bytes(dp, dp->batch), "labels");
    struct el_view to = dp->replica[0].labels;
    for (int m = 0; m < n_loaded; m++) {
        const struct el_feed *feed = el_dp_feed_of(dp, m);
        size_t bytes = label_bytes(dp, feed->samples);
        el_program_wait(dp->program, device, EL_STREAM_COMPUTE,
                        el_program_last(dp->program, el_dp_device(dp, m), EL_STREAM_COMPUTE));
        el_program_copy(dp->program, device, EL_STREAM_COMPUTE,
                        &(struct el_op_head){.label = "labels", .phase = EL_PHASE_H2D}, to,
                        el_view_host(feed->host_labels), bytes, NULL);
        to.offset += bytes;
    }
}

static void scatter_labels(struct el_dp *dp)
{
    size_t at = 0;
    for (int m = 0; m < dp->n; m++) {
        size_t bytes = label_bytes(dp, dp->replica[m].samples);
        struct el_view chunk = el_view_of(dp->loaded_labels, at);
        at += bytes;
        if (m == 0) continue;
        dp->replica[m].labels = make_input(dp, m, bytes, "labels");
        el_dp_copy(dp, EL_PHASE_SCATTER, "scatter labels", m, dp->replica[m].labels, 0, chunk, bytes);
    }
}

static void scatter_inputs(struct el_dp *dp)
{
    size_t sample = el_feed_sample_bytes(dp->feed), at = 0;
    for (int m = 0; m < dp->n; m++) {
        size_t bytes = (size_t)dp->replica[m].samples * sample;
        dp->replica[m].inputs = el_view_of(dp->loaded_inputs, at);
        at += bytes;
        if (m == 0) continue;
        struct el_view chunk = make_input(dp, m, bytes, "inputs");
        el_dp_copy(dp, EL_PHASE_SCATTER, "scatter inputs", m, chunk, 0, dp->replica[m].inputs, bytes);
        dp->replica[m].inputs = chunk;
    }
}

void el_dp_feed(struct el_dp *dp)
{
    el_feed_issue(el_dp_feed_of(dp, 0), dp->program, &dp->loaded_inputs, &dp->loaded_labels);
    dp->replica[0].inputs = el_view_of(dp->loaded_inputs, 0);
    dp->replica[0].labels = el_view_of(dp->loaded_labels, 0);
    for (int m = 1; m < dp->n && el_dp_fixed(dp, EL_DP_FIX_INPUTS); m++) {
        struct el_buffer *inputs, *labels;
        el_feed_issue(el_dp_feed_of(dp, m), dp->program, &inputs, &labels);
        dp->replica[m].inputs = el_view_of(inputs, 0);
        dp->replica[m].labels = el_view_of(labels, 0);
    }
    if (el_dp_brings_labels(dp)) bring_labels(dp);
    if (el_dp_fixed(dp, EL_DP_FIX_INPUTS)) return;
    if (dp->in_replica) scatter_labels(dp);
    scatter_inputs(dp);
}

void el_dp_free_batch(struct el_dp *dp)
{
    el_program_free(dp->program, dp->gathered);
    el_program_free(dp->program, dp->loaded_inputs);
    el_program_free(dp->program, dp->loaded_labels);
}
