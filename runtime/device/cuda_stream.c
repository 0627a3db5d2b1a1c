/* Streams, events and graphs of the backend `cuda`. */
#include <stdlib.h>

#include "runtime/device/cuda.h"

static enum el_status activate(void *state)
{
    struct el_cuda_device *device = state;
    return EL_CUDART_CALL(device->api, device->name, SetDevice, device->ordinal);
}

static enum el_status named(const struct el_cuda_device *device, enum el_status status)
{
    struct el_error error;
    if (status == EL_OK) return EL_OK;
    el_error_take(status, &error);
    return el_fail(status, "%s: %s", device->name, error.text);
}

/* Opens a library on a stream and books the memory it took; what it loads at first use stays unattributed. */
static enum el_status open_library(struct el_cuda_stream *stream, const char *name,
                                   enum el_status (*open)(struct el_cuda_native *native))
{
    struct el_cuda_device *device = stream->device;
    int64_t before = el_cuda_free_bytes(device);
    EL_TRY(named(device, open(&stream->native)));
    int64_t after = el_cuda_free_bytes(device);
    if (before >= 0 && after >= 0) el_cuda_note_library(device, name, before - after);
    return EL_OK;
}

/* Communication streams need no library, which would take memory. */
static enum el_status open_libraries(struct el_cuda_stream *stream, int index)
{
    const struct el_cuda_module *module = stream->device->module;
    if (index != EL_STREAM_COMPUTE) return EL_OK;
    EL_TRY(open_library(stream, "cuBLAS", module->open_cublas));
    /* If cuDNN does not start, convolutions fall back, and say so. */
    if (!module->cudnn_missing() && open_library(stream, "cuDNN", module->open_cudnn) != EL_OK)
        stream->native.cudnn = NULL;
    return EL_OK;
}

enum el_status el_cuda_stream_open(void *state, int index, void **stream_p)
{
    struct el_cuda_device *device = state;
    struct el_cuda_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return el_fail_errno("%s: stream %d", device->name, index);
    *stream = (struct el_cuda_stream){.device = device, .native = {.device = device->ordinal, .tf32 = device->tf32}};
    enum el_status status = activate(device);
    if (status == EL_OK) status = EL_CUDART_CALL(device->api, device->name, StreamCreate, &stream->native.stream);
    if (status == EL_OK) status = open_libraries(stream, index);
    if (status == EL_OK)
        *stream_p = stream;
    else
        el_cuda_stream_close(stream);
    return status;
}

void el_cuda_stream_close(void *argument)
{
    struct el_cuda_stream *stream = argument;
    const struct el_cuda_device *device = stream->device;
    EL_CUDART_LET(device->api, SetDevice, device->ordinal);
    device->module->close_native(&stream->native);
    if (stream->native.stream) EL_CUDART_LET(device->api, StreamDestroy, stream->native.stream);
    free(stream);
}

static enum el_status event_open(void *state, bool timed, void **event_p)
{
    struct el_cuda_device *device = state;
    struct el_cuda_event *event = device->pool[timed];
    if (event) {
        device->pool[timed] = event->next;
        *event_p = event;
        return EL_OK;
    }
    event = calloc(1, sizeof *event);
    if (!event) return el_fail_errno("%s: an event", device->name);
    *event = (struct el_cuda_event){.device = device, .timed = timed};
    enum el_status status = EL_CUDART_CALL(device->api, device->name, EventCreate, &event->event, timed);
    if (status == EL_OK)
        *event_p = event;
    else
        free(event);
    return status;
}

static void event_close(void *argument)
{
    struct el_cuda_event *event = argument;
    event->next = event->device->pool[event->timed];
    event->device->pool[event->timed] = event;
}

void el_cuda_pool_close(struct el_cuda_device *device)
{
    for (int timed = 0; timed < 2; timed++) {
        while (device->pool[timed]) {
            struct el_cuda_event *gone = device->pool[timed];
            device->pool[timed] = gone->next;
            EL_CUDART_LET(device->api, EventDestroy, gone->event);
            free(gone);
        }
    }
}

static enum el_status event_record(void *argument, void *stream)
{
    struct el_cuda_event *event = argument;
    const struct el_cuda_device *device = event->device;
    return EL_CUDART_CALL(device->api, device->name, EventRecord, event->event,
                          ((struct el_cuda_stream *)stream)->native.stream);
}

/* CUDA gives milliseconds as float, in steps of about 0.5 us. */
static enum el_status event_elapsed(void *from, void *to, int64_t *ns_p)
{
    const struct el_cuda_event *a = from, *b = to;
    float ms = 0;
    EL_CUDART_TRY(a->device->api, a->device->name, EventElapsedTime, &ms, a->event, b->event);
    *ns_p = (int64_t)((double)ms * 1e6);
    return EL_OK;
}

static enum el_status stream_wait(void *argument, void *event)
{
    const struct el_cuda_stream *stream = argument;
    const struct el_cuda_device *device = stream->device;
    return EL_CUDART_CALL(device->api, device->name, StreamWaitEvent, stream->native.stream,
                          ((struct el_cuda_event *)event)->event);
}

static enum el_status stream_synchronize(void *argument)
{
    const struct el_cuda_stream *stream = argument;
    const struct el_cuda_device *device = stream->device;
    return EL_CUDART_CALL(device->api, device->name, StreamSynchronize, stream->native.stream);
}

static enum el_status stream_query(void *argument, bool *idle_p)
{
    const struct el_cuda_stream *stream = argument;
    const struct el_cuda_device *device = stream->device;
    int code = device->api->StreamQuery(stream->native.stream);
    *idle_p = code != EL_CUDA_ERROR_NOT_READY;
    if (!*idle_p) device->api->GetLastError(); /* clears "not ready", or the next launch would report it */
    return *idle_p ? el_cuda_status(device->api, device->name, "StreamQuery", code) : EL_OK;
}

static const void *stream_native(void *stream)
{
    return &((struct el_cuda_stream *)stream)->native;
}

static void *stream_handle(void *stream)
{
    return ((struct el_cuda_stream *)stream)->native.stream;
}

/* cuBLAS's own default sizes, so that it chooses as without a graph. */
enum { CUBLAS_BYTES = 4 << 20, CUBLAS_BYTES_90 = 32 << 20 };

struct cuda_graph {
    struct el_cuda_device *device;
    void *exec;
};

static enum el_status graph_prepare(void *argument)
{
    struct el_cuda_stream *stream = argument;
    struct el_cuda_device *device = stream->device;
    size_t bytes = device->identity.capability >= 90 ? CUBLAS_BYTES_90 : CUBLAS_BYTES;
    if (!stream->native.cublas || stream->native.cublas_workspace) return EL_OK;
    EL_TRY(named(device, device->module->give_cublas(&stream->native, bytes)));
    el_cuda_note_library(device, "cuBLAS", (int64_t)bytes);
    return EL_OK;
}

static enum el_status capture_begin(void *argument)
{
    const struct el_cuda_stream *stream = argument;
    const struct el_cuda_device *device = stream->device;
    return EL_CUDART_CALL(device->api, device->name, StreamBeginCapture, stream->native.stream);
}

static enum el_status instantiate(struct el_cuda_device *device, void *noted, void **graph_p)
{
    struct cuda_graph *graph = calloc(1, sizeof *graph);
    if (!graph) return el_fail_errno("%s: a graph", device->name);
    int64_t before = el_cuda_free_bytes(device);
    graph->device = device;
    enum el_status status = EL_CUDART_CALL(device->api, device->name, GraphInstantiate, &graph->exec, noted);
    int64_t after = el_cuda_free_bytes(device);
    if (status == EL_OK && before >= 0 && after >= 0) el_cuda_note_library(device, "graph", before - after);
    if (status == EL_OK)
        *graph_p = graph;
    else
        free(graph);
    return status;
}

static enum el_status capture_end(void *argument, void **graph_p)
{
    const struct el_cuda_stream *stream = argument;
    struct el_cuda_device *device = stream->device;
    void *noted = NULL;
    EL_CUDART_TRY(device->api, device->name, StreamEndCapture, stream->native.stream, &noted);
    enum el_status status = graph_p ? instantiate(device, noted, graph_p) : EL_OK;
    EL_CUDART_LET(device->api, GraphDestroy, noted);
    return status;
}

static enum el_status graph_launch(void *argument, void *stream)
{
    const struct cuda_graph *graph = argument;
    const struct el_cuda_device *device = graph->device;
    return EL_CUDART_CALL(device->api, device->name, GraphLaunch, graph->exec,
                          ((struct el_cuda_stream *)stream)->native.stream);
}

static void graph_close(void *argument)
{
    struct cuda_graph *graph = argument;
    EL_CUDART_LET(graph->device->api, GraphExecDestroy, graph->exec);
    free(graph);
}

const struct el_async_ops el_cuda_async = {.activate = activate,
                                           .copy = el_cuda_copy,
                                           .host_map = el_cuda_host_map,
                                           .host_unmap = el_cuda_host_unmap,
                                           .prepare_copies = el_cuda_prepare_copies,
                                           .event_open = event_open,
                                           .event_close = event_close,
                                           .event_record = event_record,
                                           .event_elapsed = event_elapsed,
                                           .stream_wait = stream_wait,
                                           .stream_synchronize = stream_synchronize,
                                           .stream_query = stream_query,
                                           .stream_native = stream_native,
                                           .stream_handle = stream_handle,
                                           .graph_prepare = graph_prepare,
                                           .capture_begin = capture_begin,
                                           .capture_end = capture_end,
                                           .graph_launch = graph_launch,
                                           .graph_close = graph_close};
