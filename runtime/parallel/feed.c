/* Feeds; see feed.h. */
#include "runtime/parallel/feed.h"

#include <stdlib.h>

size_t el_feed_sample_bytes(const struct el_feed *feed)
{
    const struct el_graph *graph = feed->spec.graph;
    const struct el_tensor *input = &graph->tensors[graph->inputs[0]];
    enum el_dtype dtype = input->is_float ? feed->spec.config->dtype : input->dtype;
    return (size_t)el_shape_count(&input->shape) * el_dtype_bytes(dtype);
}

enum el_status el_feed_open(struct el_feed *feed, const struct el_feed_spec *spec)
{
    const struct el_train_config *config = spec->config;
    *feed = (struct el_feed){.spec = *spec};
    if (spec->n_parts == 0) return EL_OK;
    feed->samples = el_share_size(spec->batch, spec->n_parts, spec->part);
    if (!spec->dataset) return EL_OK;
    struct el_loader_spec loader = {.split = spec->split,
                                    .global_batch = spec->batch,
                                    .ranks = spec->n_parts,
                                    .rank = spec->part,
                                    .shuffle = spec->split == EL_SPLIT_TRAIN,
                                    .seed = config->seed,
                                    .input = el_model_find(config->model.name)->input,
                                    .features = el_model_size(&config->model, "features"),
                                    .image = el_model_size(&config->model, "image"),
                                    .augment = config->augment && spec->split == EL_SPLIT_TRAIN,
                                    .dtype = config->dtype,
                                    .loading = config->loading};
    const struct el_inject *inject = el_device_inject(spec->device);
    loader.loading.disk_ms = inject->disk_ms;
    loader.loading.dies_at = inject->worker_dies_at;
    EL_TRY(el_loader_open(spec->dataset, &loader, &feed->loader));
    feed->host_inputs = malloc((size_t)feed->samples * el_feed_sample_bytes(feed));
    feed->host_labels = malloc((size_t)feed->samples * el_graph_label_bytes(feed->spec.graph));
    if (!feed->host_inputs || !feed->host_labels) return el_fail_errno("a batch of %lld", (long long)feed->samples);
    return EL_OK;
}

void el_feed_close(struct el_feed *feed)
{
    el_loader_close(feed->loader);
    free(feed->host_inputs);
    free(feed->host_labels);
    *feed = (struct el_feed){0};
}

/* Runs on the compute stream's thread. */
static enum el_status load(const struct el_call_args *args)
{
    struct el_feed *feed = args->context;
    return el_loader_fill(feed->loader, args->step, feed->host_inputs, feed->host_labels);
}

void el_feeds_account(const struct el_feed *feeds, int64_t n, struct el_load_account *account_p)
{
    struct el_load_account account = {0};
    for (int64_t k = 0; k < n && feeds[k].loader; k++) {
        struct el_load_account one;
        el_loader_account(feeds[k].loader, &one);
        if (k == 0) account = one;
        if (k > 0) el_load_account_add(&one, &account);
    }
    *account_p = account;
}

/* NULL: it stays on the host. */
static void bring(const struct el_feed *feed, struct el_program *program, const char *label, struct el_buffer *to,
                  void *from, size_t bytes)
{
    if (to)
        el_program_copy(program, feed->spec.device, EL_STREAM_COMPUTE,
                        &(struct el_op_head){.label = label, .phase = EL_PHASE_H2D}, el_view_of(to, 0),
                        el_view_host(from), bytes, NULL);
}

static void make(const struct el_feed *feed, struct el_program *program, const char *label, bool wanted, size_t bytes,
                 struct el_buffer **buffer_p)
{
    if (wanted) el_program_alloc(program, feed->spec.device, EL_TAG_INPUT, bytes, label, buffer_p);
}

void el_feed_issue(struct el_feed *feed, struct el_program *program, struct el_buffer **inputs_p,
                   struct el_buffer **labels_p)
{
    *inputs_p = *labels_p = NULL;
    if (feed->spec.what == EL_FEED_NOTHING) return;
    size_t input_bytes = (size_t)feed->samples * el_feed_sample_bytes(feed);
    size_t label_bytes = (size_t)feed->samples * el_graph_label_bytes(feed->spec.graph);
    make(feed, program, "inputs", feed->spec.what != EL_FEED_LABELS, input_bytes, inputs_p);
    make(feed, program, "labels", feed->spec.what != EL_FEED_INPUTS, label_bytes, labels_p);
    struct el_call_op call = {.head = {.label = "load", .phase = EL_PHASE_DATA},
                              .op_class = EL_CLASS_HOST,
                              .run = load,
                              .context = feed,
                              .bytes = (double)(input_bytes + label_bytes)};
    el_program_call(program, feed->spec.device, EL_STREAM_COMPUTE, &call, NULL);
    bring(feed, program, "inputs", *inputs_p, feed->host_inputs, input_bytes);
    bring(feed, program, "labels", *labels_p, feed->host_labels, label_bytes);
}
