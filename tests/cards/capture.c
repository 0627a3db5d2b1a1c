/* Streams that capture, and graphs. What a capturing stream is given is a node, with those that it comes behind; what
 * is not permitted meanwhile fails with CUDA's own code, and the capture with it. A graph that is launched runs its
 * nodes in any order that keeps each behind what it needs, by the seed another one each time: so a dependency that is
 * missing shows.
 *
 * Harder than a card: one capture a thread, none in global mode; work for a stream that has not joined is refused,
 * where a card would do it at once; and copies of memory that is not pinned. */
#include <stdlib.h>
#include <string.h>

#include "tests/cards/machine.h"

enum { STREAMS_MAX = 64, GRAPH_BYTES = 64 << 10 /* that one takes of its card */ };

struct node {
    int device;
    bool kernel;
    int (*run)(void *argument);
    void (*drop)(void *argument);
    void *argument;
    struct cards_tips needs;
};

/* Held by whoever has its handle, and by its launches. */
struct CUgraph_st {
    atomic_int holders;
    int device, n, capacity;
    struct node *nodes;
};

struct CUgraphExec_st {
    struct CUgraph_st *graph;
};

struct cards_capture {
    uint64_t number;
    bool relaxed, failed;
    struct CUstream_st *origin;
    int n_streams;
    struct CUstream_st *streams[STREAMS_MAX];
    struct CUgraph_st *graph;
};

static __thread struct cards_capture *own; /* of this thread */
static atomic_ullong captures;

static int fail(struct cards_capture *capture, int code)
{
    if (capture) capture->failed = true;
    return cards_error(code);
}

bool cards_is_capturing(cudaStream_t stream)
{
    return stream && stream->capture;
}

int cards_break_capture(cudaStream_t stream, int code)
{
    return fail(stream->capture, code);
}

int cards_unsafe(void)
{
    return own && !own->relaxed ? fail(own, cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

int cards_not_captured(cudaStream_t stream, cudaEvent_t event)
{
    if (stream && stream->capture) return fail(stream->capture, cudaErrorStreamCaptureUnsupported);
    if (event && event->captured) return fail(own, cudaErrorCapturedEvent);
    return event ? cards_unsafe() : cudaSuccess;
}

int cards_not_joined(cudaStream_t stream)
{
    if (!stream) return fail(own, own ? cudaErrorStreamCaptureImplicit : cudaErrorInvalidResourceHandle);
    return own && !stream->capture ? fail(own, cudaErrorStreamCaptureIsolation) : cudaSuccess;
}

/* ---- what is noted ---- */

static void add_tip(struct cards_tips *tips, int id)
{
    for (int i = 0; i < tips->n; i++)
        if (tips->ids[i] == id) return;
    if (tips->n == CARDS_TIPS_MAX) abort();
    tips->ids[tips->n++] = id;
}

int cards_note(cudaStream_t stream, bool kernel, int (*run)(void *argument), void (*drop)(void *argument),
               void *argument)
{
    struct cards_capture *capture = stream->capture;
    struct CUgraph_st *graph = capture->graph;
    if (capture->failed) return cards_error(cudaErrorStreamCaptureInvalidated);
    if (!drop) return fail(capture, cudaErrorStreamCaptureUnsupported);
    if (graph->n == graph->capacity) {
        graph->capacity = graph->capacity ? 2 * graph->capacity : 64;
        graph->nodes = realloc(graph->nodes, (size_t)graph->capacity * sizeof *graph->nodes);
        if (!graph->nodes) abort();
    }
    graph->nodes[graph->n] = (struct node){.device = stream->device,
                                           .kernel = kernel,
                                           .run = run,
                                           .drop = drop,
                                           .argument = argument,
                                           .needs = stream->tips};
    stream->tips = (struct cards_tips){.n = 1, .ids = {graph->n++}};
    return cudaSuccess;
}

int cards_note_record(cudaEvent_t event, cudaStream_t stream)
{
    if (stream->capture->failed) return cards_error(cudaErrorStreamCaptureInvalidated);
    event->captured = stream->capture->number;
    event->tips = stream->tips;
    return cudaSuccess;
}

static void enter(struct cards_capture *capture, struct CUstream_st *stream)
{
    if (capture->n_streams == STREAMS_MAX) abort();
    stream->capture = capture;
    stream->tips.n = 0;
    capture->streams[capture->n_streams++] = stream;
}

int cards_note_wait(cudaStream_t stream, cudaEvent_t event)
{
    struct cards_capture *capture = own && own->number == event->captured ? own : NULL;
    int dropped = 0;
    if (!event->captured) return fail(stream->capture, cudaErrorStreamCaptureIsolation);
    if (!capture) return fail(stream->capture, cudaErrorCapturedEvent);
    if (stream->capture && stream->capture != capture) {
        capture->failed = true;
        return fail(stream->capture, cudaErrorStreamCaptureMerge);
    }
    if (capture->failed) return cards_error(cudaErrorStreamCaptureInvalidated);
    if (!stream->capture) enter(capture, stream);
    if (cards_fails("wait", stream->device, &dropped)) return cudaSuccess;
    for (int i = 0; i < event->tips.n; i++) add_tip(&stream->tips, event->tips.ids[i]);
    return cudaSuccess;
}

/* ---- captures ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    if (!stream) return cards_error(cudaErrorStreamCaptureImplicit);
    int code = cards_begin(stream->device);
    if (code == cudaSuccess && (own || stream->capture || mode == cudaStreamCaptureModeGlobal))
        code = cudaErrorInvalidValue;
    if (code != cudaSuccess) return cards_error(code);
    struct cards_capture *capture = calloc(1, sizeof *capture);
    struct CUgraph_st *graph = calloc(1, sizeof *graph);
    if (!capture || !graph) abort();
    atomic_init(&graph->holders, 1);
    graph->device = stream->device;
    capture->number = atomic_fetch_add(&captures, 1) + 1;
    capture->relaxed = mode == cudaStreamCaptureModeRelaxed;
    capture->graph = graph;
    capture->origin = stream;
    enter(capture, stream);
    own = capture;
    return cudaSuccess;
}

static void let_go(struct CUgraph_st *graph)
{
    if (atomic_fetch_sub(&graph->holders, 1) > 1) return;
    for (int i = 0; i < graph->n; i++) graph->nodes[i].drop(graph->nodes[i].argument);
    free(graph->nodes);
    free(graph);
}

/* Whether the stream that began is behind all that was noted: nodes only need those before them. */
static bool is_joined(const struct cards_capture *capture)
{
    const struct CUgraph_st *graph = capture->graph;
    bool *reached = calloc((size_t)graph->n + 1, sizeof *reached), all = true;
    if (!reached) abort();
    for (int i = 0; i < capture->origin->tips.n; i++) reached[capture->origin->tips.ids[i]] = true;
    for (int id = graph->n - 1; id >= 0; id--) {
        all = all && reached[id];
        for (int i = 0; reached[id] && i < graph->nodes[id].needs.n; i++) reached[graph->nodes[id].needs.ids[i]] = true;
    }
    free(reached);
    return all;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph_p)
{
    struct cards_capture *capture = stream ? stream->capture : NULL;
    *graph_p = NULL;
    if (!capture) return cards_error(cudaErrorStreamCaptureUnmatched);
    if (capture->origin != stream) return (cudaError_t)fail(capture, cudaErrorStreamCaptureUnmatched);
    if (capture != own) return (cudaError_t)fail(capture, cudaErrorStreamCaptureWrongThread);
    int code = capture->failed      ? cudaErrorStreamCaptureInvalidated
               : is_joined(capture) ? cudaSuccess
                                    : cudaErrorStreamCaptureUnjoined;
    for (int i = 0; i < capture->n_streams; i++) capture->streams[i]->capture = NULL;
    if (code == cudaSuccess)
        *graph_p = capture->graph;
    else
        let_go(capture->graph);
    own = NULL;
    free(capture);
    return cards_error(code);
}

/* ---- graphs ---- */

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    if (!graph) return cards_error(cudaErrorInvalidValue);
    let_go(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec_p, cudaGraph_t graph, unsigned long long flags)
{
    if (!graph || flags) return cards_error(cudaErrorInvalidValue);
    int code = cards_begin(graph->device);
    if (code == cudaSuccess) code = cards_library_take(graph->device, GRAPH_BYTES);
    if (code != cudaSuccess) return cards_error(code);
    struct CUgraphExec_st *exec = calloc(1, sizeof *exec);
    if (!exec) abort();
    atomic_fetch_add(&graph->holders, 1);
    exec->graph = graph;
    *exec_p = exec;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    if (!exec) return cards_error(cudaErrorInvalidValue);
    cards_library_give(exec->graph->device, GRAPH_BYTES);
    let_go(exec->graph);
    free(exec);
    return cudaSuccess;
}

struct launch {
    cudaStream_t stream;
    struct CUgraph_st *graph;
    uint64_t random;
};

static int run_node(const struct launch *launch, const struct node *node)
{
    struct cards_card *card = &cards_machine()->cards[node->device];
    int code = cudaErrorIllegalAddress;
    if (cards_is_ending(launch->stream)) return cudaSuccess;
    if (node->kernel && cards_fails("kernel", node->device, &code)) return code;
    cards_open_memory(node->kernel ? 1u << node->device | atomic_load(&card->peers) : ~0u);
    return node->run(node->argument);
}

static bool is_ready(const struct node *node, const bool *done)
{
    for (int i = 0; i < node->needs.n; i++)
        if (!done[node->needs.ids[i]]) return false;
    return true;
}

/* One of those that need nothing more, by chance; without a seed the first. */
static int choose(struct launch *launch, const bool *done)
{
    int chosen = -1, n = 0;
    for (int id = 0; id < launch->graph->n; id++) {
        if (done[id] || !is_ready(&launch->graph->nodes[id], done)) continue;
        n++;
        if (chosen < 0 || (cards_seed() && cards_random(&launch->random) % (uint64_t)n == 0)) chosen = id;
    }
    return chosen;
}

static int run_graph(void *argument)
{
    struct launch *launch = argument;
    int n = launch->graph->n, code = cudaSuccess;
    bool *done = calloc((size_t)n + 1, sizeof *done);
    if (!done) abort();
    for (int i = 0; i < n && code == cudaSuccess; i++) {
        int id = choose(launch, done);
        code = run_node(launch, &launch->graph->nodes[id]);
        done[id] = true;
    }
    free(done);
    return code;
}

static void drop_launch(void *argument)
{
    struct launch *launch = argument;
    let_go(launch->graph);
    free(launch);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    if (!exec || !stream) return cards_error(cudaErrorInvalidValue);
    int code = cards_begin(stream->device);
    if (code == cudaSuccess) code = cards_not_captured(stream, NULL);
    if (code == cudaSuccess) code = cards_not_joined(stream);
    if (code != cudaSuccess) return cards_error(code);
    int turn = atomic_fetch_add(&cards_machine()->cards[stream->device].n_graphs, 1);
    struct launch *launch = malloc(sizeof *launch);
    if (!launch) abort();
    atomic_fetch_add(&exec->graph->holders, 1);
    *launch =
        (struct launch){.stream = stream, .graph = exec->graph, .random = cards_seed() + (uint64_t)turn * 0x9e3779b9u};
    return cards_error(cards_enqueue_item(stream, false, run_graph, drop_launch, launch));
}
