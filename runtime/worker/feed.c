#include "runtime/worker/feed.h"

#include <stdlib.h>

size_t el_feed_sample_bytes(const struct el_feed *feed)
{
    const struct el_graph *graph = feed->graph;
    const struct el_tensor *input = &graph->tensors[graph->inputs[0]];
    enum el_dtype dtype = input->is_float ? feed->spec.config->dtype : input->dtype;
    return (size_t)el_shape_count(&input->shape) * el_dtype_bytes(dtype);
}

static size_t input_bytes(const struct el_feed *feed)
{
    return (size_t)feed->samples * el_feed_sample_bytes(feed);
}

static size_t label_bytes(const struct el_feed *feed)
{
    return (size_t)feed->samples * el_graph_label_bytes(feed->spec.graph);
}

/* For training. Evaluation's feed opens while other threads' steps may run, when pinned memory cannot be allocated: the
 * backend stages its copies. */
static void choose_way(struct el_feed *feed)
{
    const struct el_loading *loading = &feed->spec.config->loading;
    if (feed->spec.split != EL_SPLIT_TRAIN) return;
    feed->pinned = !loading->pageable;
    feed->how = feed->pinned ? EL_COPY_PINNED : EL_COPY_PAGEABLE;
    if (loading->transfer == EL_TRANSFER_BLOCKING) feed->how |= EL_COPY_WAITS;
    feed->ahead = loading->transfer == EL_TRANSFER_AHEAD && feed->spec.what != EL_FEED_NOTHING;
    feed->next = UINT64_MAX;
}

static enum el_status open_ahead(struct el_feed *feed)
{
    struct el_device *device = feed->spec.device;
    EL_TRY(el_device_take_stream(device, &feed->stream));
    if (feed->spec.what != EL_FEED_LABELS)
        EL_TRY(el_device_alloc(device, EL_TAG_INPUT, input_bytes(feed), "next inputs", &feed->next_inputs));
    if (feed->spec.what != EL_FEED_INPUTS)
        EL_TRY(el_device_alloc(device, EL_TAG_INPUT, label_bytes(feed), "next labels", &feed->next_labels));
    return EL_OK;
}

/* One byte more: a share may be empty. */
static enum el_status open_host(struct el_feed *feed)
{
    EL_TRY(el_device_host_alloc(feed->spec.device, feed->pinned, input_bytes(feed) + 1, &feed->host_inputs));
    return el_device_host_alloc(feed->spec.device, feed->pinned, label_bytes(feed) + 1, &feed->host_labels);
}

static bool is_by_batch(const struct el_feed *feed)
{
    return feed->spec.config->length_by_batch && feed->spec.split == EL_SPLIT_TRAIN && feed->spec.dataset;
}

static enum el_status open_graphs(struct el_feed *feed)
{
    const int64_t n = el_model_size(&feed->spec.config->model, "seq") + 1;
    feed->graphs = calloc((size_t)n, sizeof(struct el_graph *));
    if (!feed->graphs) return el_fail_errno("graphs of %lld lengths", (long long)n);
    feed->n_graphs = n;
    return EL_OK;
}

enum el_status el_feed_choose(struct el_feed *feed, uint64_t step, int64_t *length_p)
{
    struct el_model_config model = feed->spec.config->model;
    *length_p = el_loader_length(feed->loader, step + feed->skipped);
    struct el_graph **graph = &feed->graphs[*length_p];
    el_model_set(&model, "seq", length_p, 1);
    if (!*graph) EL_TRY(el_model_build(&model, graph));
    feed->graph = *graph;
    return EL_OK;
}

enum el_status el_feed_open(struct el_feed *feed, const struct el_feed_spec *spec)
{
    const struct el_train_config *config = spec->config;
    *feed = (struct el_feed){.spec = *spec, .graph = spec->graph};
    if (spec->n_parts == 0) return EL_OK;
    const struct el_model_info *model = el_model_find(config->model.name);
    const struct el_batch_part own = el_batch_part(&spec->shares, spec->batch, spec->n_parts, spec->part);
    feed->samples = own.samples, feed->first = own.first, feed->stride = own.stride;
    choose_way(feed);
    if (feed->ahead) EL_TRY(open_ahead(feed));
    if (!spec->dataset) return EL_OK;
    if (is_by_batch(feed)) EL_TRY(open_graphs(feed));
    struct el_loader_spec loader = {.split = spec->split,
                                    .global_batch = spec->batch,
                                    .ranks = spec->n_parts,
                                    .rank = spec->part,
                                    .shares = spec->shares,
                                    .shuffle = spec->split == EL_SPLIT_TRAIN,
                                    .pad = spec->pad,
                                    .seed = config->seed,
                                    .input = model->input,
                                    .least = feed->graphs ? el_model_size_row(model, "seq")->min : 0,
                                    .bucket = config->bucket_lengths && spec->split == EL_SPLIT_TRAIN,
                                    .features = el_model_size(&config->model, "features"),
                                    .image = el_model_size(&config->model, "image"),
                                    .dtype = config->dtype,
                                    .loading = config->loading};
    const struct el_inject *inject = el_device_inject(spec->device);
    loader.loading.disk_ms = inject->disk_ms;
    loader.loading.dies_at = inject->worker_dies_at;
    EL_TRY(el_loader_open(spec->dataset, &loader, &feed->loader));
    return open_host(feed);
}

void el_feed_close(struct el_feed *feed)
{
    el_loader_close(feed->loader);
    if (feed->spec.device) {
        el_device_host_free(feed->spec.device, feed->pinned, feed->host_inputs);
        el_device_host_free(feed->spec.device, feed->pinned, feed->host_labels);
    }
    el_device_free(feed->next_inputs);
    el_device_free(feed->next_labels);
    for (int64_t i = 0; i < feed->n_graphs; i++) el_graph_destroy(feed->graphs[i]);
    free(feed->graphs);
    if (feed->stream) el_device_give_back_stream(feed->spec.device, feed->stream);
    *feed = (struct el_feed){0};
}

static enum el_status load(const struct el_call_args *args)
{
    struct el_feed *feed = args->context;
    return el_loader_fill(feed->loader, args->step + feed->skipped, feed->host_inputs, feed->host_labels);
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

/* A step ahead. The previous batch has left host memory, because a step ends when all its streams are done. */
static enum el_status load_next(const struct el_call_args *args)
{
    struct el_feed *feed = args->context;
    feed->next = args->step + 1 + feed->skipped;
    return el_loader_fill(feed->loader, feed->next, feed->host_inputs, feed->host_labels);
}

enum el_status el_feed_begin(struct el_feed *feed, uint64_t step)
{
    const uint64_t batch = step + feed->skipped;
    if (!feed->ahead || !feed->loader || feed->next == batch) return EL_OK;
    EL_TRY(el_loader_fill(feed->loader, batch, feed->host_inputs, feed->host_labels));
    if (feed->next_inputs)
        EL_TRY(el_device_write(el_view_of(feed->next_inputs, 0), feed->host_inputs, input_bytes(feed)));
    if (feed->next_labels)
        EL_TRY(el_device_write(el_view_of(feed->next_labels, 0), feed->host_labels, label_bytes(feed)));
    feed->next = batch;
    return EL_OK;
}

static void bring(const struct el_feed *feed, struct el_program *program, int stream, const char *label,
                  struct el_buffer *to, void *from, size_t bytes)
{
    int id = -1;
    if (!to) return;
    el_program_copy(program, feed->spec.device, stream, &(struct el_op_head){.label = label, .phase = EL_PHASE_H2D},
                    el_view_of(to, 0), el_view_host(from), bytes, &id);
    el_program_copy_how(program, id, feed->how);
}

static void issue_load(const struct el_feed *feed, struct el_program *program, int stream,
                       enum el_status (*run)(const struct el_call_args *args))
{
    struct el_call_op call = {.head = {.label = "load", .phase = EL_PHASE_DATA},
                              .op_class = EL_CLASS_HOST,
                              .run = run,
                              .context = (void *)(uintptr_t)feed,
                              .bytes = (double)(input_bytes(feed) + label_bytes(feed))};
    el_program_call(program, feed->spec.device, stream, &call, NULL);
}

static void take(struct el_feed *feed, struct el_program *program, const char *label, struct el_buffer *to,
                 struct el_buffer *from, size_t bytes)
{
    if (to)
        el_program_copy(program, feed->spec.device, EL_STREAM_COMPUTE,
                        &(struct el_op_head){.label = label, .phase = EL_PHASE_H2D}, el_view_of(to, 0),
                        el_view_of(from, 0), bytes, &feed->read);
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
    make(feed, program, "inputs", feed->spec.what != EL_FEED_LABELS, input_bytes(feed), inputs_p);
    make(feed, program, "labels", feed->spec.what != EL_FEED_INPUTS, label_bytes(feed), labels_p);
    if (feed->ahead) {
        take(feed, program, "inputs", *inputs_p, feed->next_inputs, input_bytes(feed));
        take(feed, program, "labels", *labels_p, feed->next_labels, label_bytes(feed));
        return;
    }
    issue_load(feed, program, EL_STREAM_COMPUTE, load);
    bring(feed, program, EL_STREAM_COMPUTE, "inputs", *inputs_p, feed->host_inputs, input_bytes(feed));
    bring(feed, program, EL_STREAM_COMPUTE, "labels", *labels_p, feed->host_labels, label_bytes(feed));
}

void el_feed_issue_next(struct el_feed *feed, struct el_program *program)
{
    if (!feed->ahead) return;
    el_program_wait(program, feed->spec.device, feed->stream, feed->read);
    issue_load(feed, program, feed->stream, load_next);
    bring(feed, program, feed->stream, "next inputs", feed->next_inputs, feed->host_inputs, input_bytes(feed));
    bring(feed, program, feed->stream, "next labels", feed->next_labels, feed->host_labels, label_bytes(feed));
}
