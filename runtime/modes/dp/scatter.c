/* How a batch reaches dp's devices. The master loads it and sends each device its chunk (its own is a view); labels go
 * with the chunks, or to the loss's device. With the fix `inputs` each device loads its own share, as in ddp, and the
 * loss's device gets all labels. */
#include "runtime/modes/dp/dp.h"

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
