/* dp's loss and the way to and from it. Usually outputs are gathered on one device (the master or --loss-in device),
 * which computes the loss over the whole batch and returns its gradient. With --loss-in replica each replica has its
 * chunk's loss, and the user averages the n gathered losses, so that chunks of different size count equally. With the
 * fix `update` losses are not gathered; each replica uses its own, and gradients are averaged.
 * Memory (tag output; O: the batch's outputs, o_m: replica m's): gathered, 2 O at the loss and at most o_m elsewhere;
 * in replicas, 2 o_m and two losses each, and with gathering n losses and n gradients more. Labels are where the loss
 * is. */
#include "runtime/modes/dp/dp.h"

static size_t output_bytes(const struct el_dp *dp, int64_t batch)
{
    const struct el_graph *graph = dp->worker->graph;
    return (size_t)(batch * el_graph_output_count(graph)) *
           el_dtype_bytes(el_graph_output_dtype(graph, dp->worker->config->dtype));
}

static struct el_buffer *make(struct el_dp *dp, int m, enum el_tag tag, size_t bytes, const char *name)
{
    struct el_buffer *buffer;
    el_program_alloc(dp->program, el_dp_device(dp, m), tag, bytes, name, &buffer);
    return buffer;
}

static size_t loss_bytes(const struct el_dp *dp, int n)
{
    return (size_t)n * el_dtype_bytes(dp->worker->config->dtype);
}

static int n_micro(const struct el_dp *dp)
{
    return (int)dp->worker->config->n_accumulate;
}

static struct el_view loss_view(const struct el_dp *dp)
{
    int first = dp->in_replica ? dp->micro * dp->n : dp->micro;
    return el_view_of(dp->losses ? dp->losses : el_dp_master(dp)->loss, loss_bytes(dp, first));
}

static double weight_of(const struct el_dp *dp, int64_t samples, int n)
{
    const struct el_train_config *config = dp->worker->config;
    return config->by_samples ? (double)samples / (double)config->global_batch : 1.0 / n;
}

static void weigh(const struct el_dp *dp, int m, int64_t samples, double weight)
{
    const struct el_graph *graph = dp->worker->graph;
    const enum el_dtype dtype = el_graph_output_dtype(graph, dp->worker->config->dtype);
    const struct el_view doutputs = dp->replica[m].doutputs;
    if (weight == 1) return;
    el_shard_issue_move(&dp->worker->members[m].shard, dp->program, EL_PHASE_LOSS, "divide", dtype, doutputs, dtype,
                        doutputs, samples * el_graph_output_count(graph), weight);
}

double el_dp_sample_weight(const struct el_dp *dp, int m)
{
    const int64_t samples = dp->replica[m].samples;
    if (!dp->in_replica || dp->n == 1) return weight_of(dp, dp->batch, n_micro(dp)) / (double)dp->batch;
    if (el_dp_fixed(dp, EL_DP_FIX_UPDATE)) return dp->n * weight_of(dp, samples, dp->n) / (double)samples;
    return weight_of(dp, samples, dp->n * n_micro(dp)) / (double)samples;
}

bool el_dp_brings_labels(const struct el_dp *dp)
{
    return (dp->output > 0 || el_dp_fixed(dp, EL_DP_FIX_INPUTS)) && !dp->in_replica;
}

enum el_status el_dp_open_loss(struct el_dp *dp, int output, bool in_replica)
{
    dp->output = output;
    dp->in_replica = in_replica;
    for (int m = 0; m < dp->n && el_dp_brings_labels(dp); m++)
        for (int k = 0; k < n_micro(dp); k++) dp->worker->members[m].feeds[k].spec.what = EL_FEED_INPUTS;
    if ((output == 0 && !in_replica) || el_dp_fixed(dp, EL_DP_FIX_UPDATE)) return EL_OK;
    return el_device_alloc(el_dp_device(dp, output), EL_TAG_OUTPUT,
                           loss_bytes(dp, n_micro(dp) * (in_replica ? dp->n : 1)), "losses", &dp->losses);
}

static int64_t samples_of_loss(const struct el_dp *dp, int i)
{
    const struct el_layout *layout = dp->worker->layout;
    if (!dp->losses) return dp->replica[i].samples;
    int64_t batch = dp->worker->members[0].feeds[dp->in_replica ? i / dp->n : i].samples;
    if (layout->each_loads) batch = dp->batch;
    return dp->in_replica ? el_layout_piece(&layout->shares, batch, layout->n_devices, i % dp->n) : batch;
}

enum el_status el_dp_read_loss(const struct el_dp *dp, double *loss_p)
{
    double sum = 0, one;
    int n = dp->losses ? n_micro(dp) * (dp->in_replica ? dp->n : 1) : el_dp_owners(dp);
    for (int m = 0; m < n; m++) {
        if (dp->losses)
            EL_TRY(el_shard_read_value(el_dp_master(dp), dp->losses, m, &one));
        else
            EL_TRY(el_share_read_loss(&dp->worker->members[m], &one));
        if (dp->worker->config->by_samples && n > 1) one *= n * weight_of(dp, samples_of_loss(dp, m), n);
        sum += one;
    }
    *loss_p = sum / n;
    return EL_OK;
}

/* Frees the replicas' outputs, which backward does not need. */
static struct el_view gather(struct el_dp *dp)
{
    int out = dp->output;
    size_t at = 0;
    if (dp->n == 1) return dp->replica[0].outputs;
    dp->gathered = make(dp, out, EL_TAG_OUTPUT, output_bytes(dp, dp->batch), "gathered outputs");
    for (int m = 0; m < dp->n; m++) {
        size_t bytes = output_bytes(dp, dp->replica[m].samples);
        el_dp_copy(dp, EL_PHASE_GATHER, "gather outputs", out, el_view_of(dp->gathered, at), m, dp->replica[m].outputs,
                   bytes);
        at += bytes;
    }
    for (int m = 0; m < dp->n; m++) {
        el_program_wait(dp->program, el_dp_device(dp, m), EL_STREAM_COMPUTE,
                        el_program_last(dp->program, el_dp_device(dp, out), EL_STREAM_COMPUTE));
        el_pass_release_outputs(dp->replica[m].pass);
    }
    return el_view_of(dp->gathered, 0);
}

static void gathered_loss(struct el_dp *dp)
{
    int out = dp->output;
    struct el_view logits = gather(dp);
    struct el_buffer *gradient = make(dp, out, EL_TAG_OUTPUT, output_bytes(dp, dp->batch), "gradient of the outputs");
    el_share_issue_loss(&dp->worker->members[out].shard, dp->program, NULL, logits, dp->replica[0].labels,
                        el_view_of(gradient, 0), dp->batch, loss_view(dp));
    size_t at = 0;
    dp->replica[out].doutputs = el_view_of(gradient, 0);
    weigh(dp, out, dp->batch, weight_of(dp, dp->batch, n_micro(dp)));
    for (int m = 0; m < dp->n; m++) {
        size_t bytes = output_bytes(dp, dp->replica[m].samples);
        dp->replica[m].doutputs = el_view_of(gradient, at);
        at += bytes;
        if (m == out) continue;
        struct el_view chunk = el_view_of(make(dp, m, EL_TAG_OUTPUT, bytes, "gradient of the outputs"), 0);
        el_dp_copy(dp, EL_PHASE_SCATTER, "scatter gradient", m, chunk, out, dp->replica[m].doutputs, bytes);
        dp->replica[m].doutputs = chunk;
    }
}

static void own_loss(struct el_dp *dp, int m, struct el_view loss)
{
    size_t bytes = output_bytes(dp, dp->replica[m].samples);
    dp->replica[m].doutputs = el_view_of(make(dp, m, EL_TAG_OUTPUT, bytes, "gradient of the outputs"), 0);
    el_share_issue_loss(&dp->worker->members[m].shard, dp->program, NULL, dp->replica[m].outputs, dp->replica[m].labels,
                        dp->replica[m].doutputs, dp->replica[m].samples, loss);
    if (!el_dp_fixed(dp, EL_DP_FIX_UPDATE)) el_pass_release_outputs(dp->replica[m].pass);
}

/* Each loss's gradient is 1/n. Backward waits for it, but multiplies by the known constant. */
static void return_gradients(struct el_dp *dp)
{
    dp->gathered = make(dp, dp->output, EL_TAG_OUTPUT, loss_bytes(dp, dp->n), "gradient of the losses");
    el_shard_issue_fill(&dp->worker->members[dp->output].shard, dp->program, EL_PHASE_LOSS, "gradient of the mean",
                        el_view_of(dp->gathered, 0), dp->n, 1.0 / (dp->n * n_micro(dp)));
    for (int m = 0; m < dp->n; m++) {
        struct el_buffer *own = make(dp, m, EL_TAG_OUTPUT, loss_bytes(dp, 1), "gradient of the loss");
        const char *label = m == dp->output ? "own gradient" : "scatter gradient";
        el_dp_copy(dp, EL_PHASE_SCATTER, label, m, el_view_of(own, 0), dp->output,
                   el_view_of(dp->gathered, loss_bytes(dp, m)), loss_bytes(dp, 1));
        weigh(dp, m, dp->replica[m].samples, weight_of(dp, dp->replica[m].samples, dp->n * n_micro(dp)));
        el_program_free(dp->program, own);
    }
}

static void losses_in_replicas(struct el_dp *dp)
{
    int out = dp->output;
    for (int m = 0; m < dp->n && el_dp_fixed(dp, EL_DP_FIX_UPDATE); m++) {
        own_loss(dp, m, el_view_of(dp->worker->members[m].shard.loss, 0));
        weigh(dp, m, dp->replica[m].samples, dp->n * weight_of(dp, dp->replica[m].samples, dp->n));
    }
    if (el_dp_fixed(dp, EL_DP_FIX_UPDATE)) return;
    if (dp->n == 1) { /* called without scatter */
        own_loss(dp, 0, loss_view(dp));
        weigh(dp, 0, dp->batch, weight_of(dp, dp->batch, n_micro(dp)));
        return;
    }
    for (int m = 0; m < dp->n; m++) {
        dp->replica[m].loss = make(dp, m, EL_TAG_OUTPUT, loss_bytes(dp, 1), "loss");
        own_loss(dp, m, el_view_of(dp->replica[m].loss, 0));
    }
    for (int m = 0; m < dp->n; m++)
        el_dp_copy(dp, EL_PHASE_GATHER, "gather losses", out,
                   el_view_of(dp->losses, loss_bytes(dp, dp->micro * dp->n + m)), m, el_view_of(dp->replica[m].loss, 0),
                   loss_bytes(dp, 1));
    for (int m = 0; m < dp->n; m++) {
        el_program_wait(dp->program, el_dp_device(dp, m), EL_STREAM_COMPUTE,
                        el_program_last(dp->program, el_dp_device(dp, out), EL_STREAM_COMPUTE));
        el_program_free(dp->program, dp->replica[m].loss);
    }
    return_gradients(dp);
}

void el_dp_loss(struct el_dp *dp)
{
    dp->gathered = NULL;
    if (dp->in_replica)
        losses_in_replicas(dp);
    else
        gathered_loss(dp);
}

void el_dp_free_loss(struct el_dp *dp)
{
    for (int m = 0; m < dp->n; m++) {
        bool own = m > 0 || el_dp_brings_labels(dp);
        if (own) el_program_free(dp->program, dp->replica[m].labels.buffer);
        el_program_free(dp->program, dp->replica[m].doutputs.buffer);
        dp->replica[m].labels = (struct el_view){0};
    }
}
