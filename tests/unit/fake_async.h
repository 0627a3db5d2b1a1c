/* An asynchronous backend on the streams of fake_streams.h. It holds its caller to the contract: hooks are called with
 * the right device active, events are not asked before they are reached, nothing is left open, and the host does not
 * touch device memory. Several threads may each have devices of their own. */
#ifndef EL_TESTS_FAKE_ASYNC_H
#define EL_TESTS_FAKE_ASYNC_H

#include "tests/unit/fake_streams.h"

static enum el_status fake_open(const struct el_device_spec *spec, void **state_p)
{
    FAKE_GUARD;
    struct fake_device *device = calloc(1, sizeof *device);
    if (!device) abort();
    device->index = spec->index;
    fake.n_devices++;
    *state_p = device;
    return EL_OK;
}

static void fake_close(void *state)
{
    FAKE_GUARD;
    struct fake_device *device = state;
    if (device->n_mapped || device->n_streams) fake_breach("memory or a stream is left at close");
    if (--fake.n_devices == 0) fake.taken = 0;
    free(device);
}

static enum el_status fake_map(void *state, size_t bytes, uintptr_t *address_p)
{
    FAKE_GUARD;
    size_t pages = (bytes + FAKE_PAGE_BYTES) / FAKE_PAGE_BYTES * FAKE_PAGE_BYTES;
    if (!fake.memory)
        fake.memory = mmap(NULL, FAKE_MEMORY_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fake.memory == MAP_FAILED || pages > FAKE_MEMORY_BYTES - fake.taken) abort();
    char *made = fake.memory + fake.taken;
    fake.taken += pages;
    fake_open_memory(true);
    memset(made, 0xa5, bytes);
    fake_open_memory(false);
    ((struct fake_device *)state)->n_mapped++;
    *address_p = (uintptr_t)made;
    return EL_OK;
}

static void fake_unmap(void *state, uintptr_t address, size_t bytes)
{
    FAKE_GUARD;
    fake_open_memory(true);
    memset((void *)address, 0x5a, bytes);
    fake_open_memory(false);
    ((struct fake_device *)state)->n_mapped--;
}

static enum el_status fake_move(void *state, void *host, uintptr_t address, size_t bytes, bool host_to_device)
{
    FAKE_GUARD;
    for (int s = 0; s < fake.n_streams; s++)
        for (const struct fake_item *item = fake.streams[s]->first; item; item = item->next)
            if (fake.streams[s]->device == state &&
                (item->kind == FAKE_WORK || (item->kind == FAKE_MEET && !item->is_message)))
                fake_breach("a blocking copy while streams are busy");
    fake_open_memory(true);
    memcpy(host_to_device ? (void *)address : host, host_to_device ? host : (void *)address, bytes);
    fake_open_memory(false);
    return EL_OK;
}

static enum el_status fake_stream_open(void *state, int index, void **stream_p)
{
    FAKE_GUARD;
    (void)index;
    struct fake_stream *stream = calloc(1, sizeof *stream);
    if (!stream || fake.n_streams == FAKE_STREAMS_MAX) abort();
    stream->device = state;
    stream->last = &stream->first;
    stream->device->n_streams++;
    fake.streams[fake.n_streams++] = stream;
    *stream_p = stream;
    return EL_OK;
}

static void fake_stream_close(void *argument)
{
    FAKE_GUARD;
    struct fake_stream *stream = argument;
    int s = 0;
    while (fake.streams[s] != stream) s++;
    fake.streams[s] = fake.streams[--fake.n_streams];
    while (stream->first) {
        struct fake_item *gone = stream->first;
        stream->first = gone->next;
        free(gone->host);
        free(gone->context);
        free(gone);
    }
    stream->device->n_streams--;
    free(stream);
}

static enum el_status fake_activate(void *state)
{
    fake_active = state;
    return EL_OK;
}

static enum el_status fake_copy(void *argument, const struct el_copy *copy)
{
    FAKE_GUARD;
    struct fake_stream *stream = argument;
    struct fake_item item = {
        .kind = FAKE_WORK, .destination = copy->destination, .source = copy->source, .bytes = copy->bytes};
    fake_check_active(stream->device);
    if (fake.fail_copy > 0 && --fake.fail_copy == 0) return el_fail(EL_ERR_INTERNAL, "planted: a copy was refused");
    if (!copy->from && !(copy->how & EL_COPY_PINNED)) {
        item.host = malloc(copy->bytes);
        if (!item.host) abort();
        memcpy(item.host, copy->source, copy->bytes);
    }
    fake_push(stream, &item);
    if (!copy->to || (copy->how & EL_COPY_WAITS)) fake_drain(stream);
    return EL_OK;
}

static enum el_status fake_event_open(void *state, bool timed, void **event_p)
{
    FAKE_GUARD;
    struct fake_event *event = calloc(1, sizeof *event);
    if (!event) abort();
    fake_check_active(state);
    event->timed = timed;
    event->device = state;
    fake.n_events++;
    *event_p = event;
    return EL_OK;
}

static void fake_event_close(void *event)
{
    FAKE_GUARD;
    fake.n_events--;
    free(event);
}

static enum el_status fake_event_record(void *argument, void *stream)
{
    FAKE_GUARD;
    struct fake_event *event = argument;
    fake_check_active(((struct fake_stream *)stream)->device);
    if (event->device != ((struct fake_stream *)stream)->device) fake_breach("an event of another device is recorded");
    fake_push(stream, &(struct fake_item){.kind = FAKE_RECORD, .event = event, .count = ++event->recorded});
    return EL_OK;
}

static enum el_status fake_event_elapsed(void *from, void *to, int64_t *ns_p)
{
    FAKE_GUARD;
    struct fake_event *a = from, *b = to;
    if (!a->timed || !b->timed || a->device != b->device) fake_breach("these two events have no distance");
    if (a->reached < a->recorded || b->reached < b->recorded) fake_breach("an event was not reached yet");
    *ns_p = b->at_ns - a->at_ns;
    return EL_OK;
}

static enum el_status fake_stream_wait(void *stream, void *argument)
{
    FAKE_GUARD;
    struct fake_event *event = argument;
    fake_check_active(((struct fake_stream *)stream)->device);
    if (event->recorded == 0) fake_breach("a wait for what was never recorded");
    fake_push(stream, &(struct fake_item){.kind = FAKE_WAIT, .event = event, .count = event->recorded});
    return EL_OK;
}

static enum el_status fake_stream_synchronize(void *stream)
{
    FAKE_GUARD;
    fake_check_active(((struct fake_stream *)stream)->device);
    if (!fake_drain(stream)) fake_breach("a stream never ends");
    return fake.broken ? el_fail(EL_ERR_INTERNAL, "planted: the device failed") : EL_OK;
}

static enum el_status fake_stream_query(void *argument, bool *idle_p)
{
    FAKE_GUARD;
    struct fake_stream *stream = argument;
    fake_check_active(stream->device);
    for (int i = 0; i < FAKE_ITEMS_A_QUERY && fake_pull(stream); i++) continue;
    *idle_p = !stream->first;
    return fake.broken ? el_fail(EL_ERR_INTERNAL, "planted: the device failed") : EL_OK;
}

static const void *fake_stream_native(void *stream)
{
    return stream;
}

static void *fake_stream_handle(void *stream)
{
    return stream;
}

/* The kernels: the reference's, queued. */
static enum el_status fake_queue(const struct el_kernel_args *args, enum el_op_kind op, enum el_dtype dtype)
{
    FAKE_GUARD;
    struct fake_stream *stream = (struct fake_stream *)(uintptr_t)args->native;
    fake_check_active(stream->device);
    if (fake.refuse == (int)op + 1) return el_fail(EL_ERR_INTERNAL, "planted: a kernel was refused");
    fake_push(stream, &(struct fake_item){.kind = FAKE_WORK, .op = op, .dtype = dtype, .args = *args});
    return EL_OK;
}

#define FAKE_KERNEL(name, text)                                                                                        \
    static enum el_status fake_f32_##name(const struct el_kernel_args *args)                                           \
    {                                                                                                                  \
        return fake_queue(args, name, EL_F32);                                                                         \
    }                                                                                                                  \
    static enum el_status fake_f64_##name(const struct el_kernel_args *args)                                           \
    {                                                                                                                  \
        return fake_queue(args, name, EL_F64);                                                                         \
    }
EL_OP_LIST(FAKE_KERNEL)

/* A row with a choice: which one was made is told by its plan, and nothing computes by it. */
static enum el_status fake_prepare_fill(const struct el_kernel_args *args, void **plan_p)
{
    char *text = malloc(32);
    if (!text) return EL_ERR_HOST_MEMORY;
    snprintf(text, 32, "fake: %d at once", (int)args->d[0]);
    *plan_p = text;
    return EL_OK;
}

static const char *fake_describe(const void *plan)
{
    return plan;
}

/* What the reference computes in has room in a workspace, never in a plan. */
static const struct el_kernel *fake_find(enum el_op_kind op, enum el_dtype dtype)
{
#define FAKE_ROW(name, text) [name] = {{.run = fake_f32_##name}, {.run = fake_f64_##name}},
    static const struct el_kernel rows[EL_OP_COUNT][2] = {EL_OP_LIST(FAKE_ROW)};
    const struct el_kernel *reference = el_kernels_reference()->find(op, dtype);
    if (!reference || reference->workspace || reference->prepare) abort();
    static const struct el_kernel fill = {
        .run = fake_f32_EL_OP_FILL, .prepare = fake_prepare_fill, .release = free, .describe = fake_describe};
    if (op == EL_OP_FILL && dtype == EL_F32) return &fill;
    return &rows[op][dtype == EL_F64];
}

static const struct el_kernel_table *fake_kernels(void *state)
{
    static const struct el_kernel_table table = {.name = "fake", .find = fake_find};
    return &table;
}

/* All of them share a card, so that nobody thinks of NCCL, but where the test wants cards. */
static void fake_identify(void *state, struct el_device_identity *identity_p)
{
    const struct fake_device *device = state;
    snprintf(identity_p->uuid, sizeof identity_p->uuid, "GPU-fake-%d", fake.own_cards ? device->index : 0);
}

static const struct el_async_ops fake_async = {.activate = fake_activate,
                                               .copy = fake_copy,
                                               .event_open = fake_event_open,
                                               .event_close = fake_event_close,
                                               .event_record = fake_event_record,
                                               .event_elapsed = fake_event_elapsed,
                                               .stream_wait = fake_stream_wait,
                                               .stream_synchronize = fake_stream_synchronize,
                                               .stream_query = fake_stream_query,
                                               .stream_native = fake_stream_native,
                                               .stream_handle = fake_stream_handle};

static const struct el_device_ops fake_ops = {.name = "fake",
                                              .summary = "streams as far out of step as events allow",
                                              .computes = true,
                                              .open = fake_open,
                                              .close = fake_close,
                                              .map = fake_map,
                                              .unmap = fake_unmap,
                                              .move = fake_move,
                                              .identify = fake_identify,
                                              .kernels = fake_kernels,
                                              .stream_open = fake_stream_open,
                                              .stream_close = fake_stream_close,
                                              .async = &fake_async};

static inline struct el_device *fake_device(int index)
{
    struct el_device_spec spec = {.backend = "fake", .index = index, .position = index};
    struct el_device *device = NULL;
    if (el_device_open_with(&fake_ops, &spec, &device) != EL_OK) abort();
    return device;
}

#endif
