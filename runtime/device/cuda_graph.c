/* Graphs of the backend `cuda`: a stream is captured, what was noted becomes a graph that can be launched. */
#include <stdlib.h>

#include "runtime/device/cuda.h"

/* What cuBLAS takes by itself, so that it chooses as it would without a graph. */
enum { CUBLAS_BYTES = 4 << 20, CUBLAS_BYTES_90 = 32 << 20 };

struct cuda_graph {
    struct el_cuda_device *device;
    void *exec;
};

enum el_status el_cuda_graph_prepare(void *argument)
{
    struct el_cuda_stream *stream = argument;
    struct el_cuda_device *device = stream->device;
    size_t bytes = device->identity.capability >= 90 ? CUBLAS_BYTES_90 : CUBLAS_BYTES;
    if (!stream->native.cublas || stream->native.cublas_workspace) return EL_OK;
    EL_TRY(device->module->give_cublas(&stream->native, bytes));
    el_cuda_note_library(device, "cuBLAS", (int64_t)bytes);
    return EL_OK;
}

enum el_status el_cuda_capture_begin(void *argument)
{
    const struct el_cuda_stream *stream = argument;
    const struct el_cuda_device *device = stream->device;
    return EL_CUDART_CALL(device->api, device->name, StreamBeginCapture, stream->native.stream);
}

/* Notes what it takes of the card's memory. */
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

enum el_status el_cuda_capture_end(void *argument, void **graph_p)
{
    const struct el_cuda_stream *stream = argument;
    struct el_cuda_device *device = stream->device;
    void *noted = NULL;
    EL_CUDART_TRY(device->api, device->name, StreamEndCapture, stream->native.stream, &noted);
    enum el_status status = graph_p ? instantiate(device, noted, graph_p) : EL_OK;
    device->api->GraphDestroy(noted);
    return status;
}

enum el_status el_cuda_graph_launch(void *argument, void *stream)
{
    const struct cuda_graph *graph = argument;
    const struct el_cuda_device *device = graph->device;
    return EL_CUDART_CALL(device->api, device->name, GraphLaunch, graph->exec,
                          ((struct el_cuda_stream *)stream)->native.stream);
}

void el_cuda_graph_close(void *argument)
{
    struct cuda_graph *graph = argument;
    graph->device->api->GraphExecDestroy(graph->exec);
    free(graph);
}
