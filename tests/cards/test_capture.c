/* That the fakes' captures are as hard as they say: what is given to a capturing stream is done by a launch and not
 * before, in an order that keeps what was asked for and no other; and what CUDA does not permit meanwhile fails with
 * CUDA's code, and the capture with it. */
#include "tests/test.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/cards/cards.h"

enum { BYTES = 64, LAUNCHES = 40 };

static cudaStream_t streams[2];
static cudaEvent_t events[2], outside; /* the last was recorded in no capture */
static char *memory;                   /* of the card: [BYTES] */
static char *pinned;

static int open_card(void **state)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), cudaSuccess);
        assert_int_equal(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming), cudaSuccess);
    }
    assert_int_equal(cudaEventCreateWithFlags(&outside, cudaEventDisableTiming), cudaSuccess);
    assert_int_equal(cudaEventRecord(outside, streams[0]), cudaSuccess);
    assert_int_equal(cudaMalloc((void **)&memory, BYTES), cudaSuccess);
    return cudaHostAlloc((void **)&pinned, BYTES, cudaHostAllocPortable);
}

static int close_card(void **state)
{
    for (int i = 0; i < 2; i++) {
        cudaStreamDestroy(streams[i]);
        cudaEventDestroy(events[i]);
    }
    cudaEventDestroy(outside);
    cudaFree(memory);
    return cudaFreeHost(pinned);
}

static void begin(enum cudaStreamCaptureMode mode)
{
    assert_int_equal(cudaStreamBeginCapture(streams[0], mode), cudaSuccess);
}

static void fill(int stream, int value)
{
    assert_int_equal(cudaMemsetAsync(memory, value, BYTES, streams[stream]), cudaSuccess);
}

/* Stream `to` comes behind what `from` has. */
static void order(int from, int to)
{
    assert_int_equal(cudaEventRecord(events[from], streams[from]), cudaSuccess);
    assert_int_equal(cudaStreamWaitEvent(streams[to], events[from], 0), cudaSuccess);
}

static cudaGraphExec_t end(void)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    assert_int_equal(cudaStreamEndCapture(streams[0], &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiateWithFlags(&exec, graph, 0), cudaSuccess);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
    return exec;
}

static int first_byte(void)
{
    assert_int_equal(cudaMemcpyAsync(pinned, memory, BYTES, cudaMemcpyDefault, streams[0]), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(streams[0]), cudaSuccess);
    return pinned[0];
}

static void a_graph_is_done_when_it_is_launched(void **state)
{
    struct cards_counts before, counts;
    cards_count(0, &before);
    fill(0, 1);
    begin(cudaStreamCaptureModeThreadLocal);
    fill(0, 2);
    cudaGraphExec_t exec = end();
    assert_int_equal(first_byte(), 1);
    for (int i = 0; i < 2; i++) {
        fill(0, 3);
        assert_int_equal(cudaGraphLaunch(exec, streams[0]), cudaSuccess);
        assert_int_equal(first_byte(), 2);
    }
    cards_count(0, &counts);
    assert_true(counts.library_bytes > before.library_bytes);
    assert_int_equal(cudaGraphExecDestroy(exec), cudaSuccess);
    cards_count(0, &counts);
    assert_int_equal(counts.library_bytes, before.library_bytes);
    assert_int_equal(counts.graphs - before.graphs, 2);
    assert_int_equal(counts.copies - before.copies, 1 + 1 + 2 + 2);
}

/* How many of the launches left what stream 1 wrote. */
static int launch_often(bool ordered)
{
    int n = 0;
    begin(cudaStreamCaptureModeThreadLocal);
    order(0, 1);
    fill(1, 1);
    if (ordered) order(1, 0);
    fill(0, 2);
    if (!ordered) order(1, 0);
    cudaGraphExec_t exec = end();
    for (int i = 0; i < LAUNCHES; i++) {
        assert_int_equal(cudaGraphLaunch(exec, streams[0]), cudaSuccess);
        n += first_byte() == 1;
    }
    assert_int_equal(cudaGraphExecDestroy(exec), cudaSuccess);
    return n;
}

static void only_what_was_asked_for_is_in_order(void **state)
{
    cards_set_seed(3);
    assert_int_equal(launch_often(true), 0);
    int n = launch_often(false);
    assert_true(n > 0 && n < LAUNCHES);
    cards_set_seed(0);
}

/* ---- what is not permitted ---- */

static int wait_for_stream(void)
{
    return cudaStreamSynchronize(streams[0]);
}

static int ask_stream(void)
{
    return cudaStreamQuery(streams[0]);
}

static int take_memory(void)
{
    void *address;
    return cudaMalloc(&address, BYTES);
}

static int give_pinned(void)
{
    return cudaFreeHost(pinned);
}

static int ask_any_event(void)
{
    return cudaEventQuery(outside);
}

static int wait_for_earlier_work(void)
{
    return cudaStreamWaitEvent(streams[0], outside, 0);
}

static int ask_captured_event(void)
{
    assert_int_equal(cudaEventRecord(events[0], streams[0]), cudaSuccess);
    return cudaEventQuery(events[0]);
}

static int wait_for_captured_event(void)
{
    assert_int_equal(cudaEventRecord(events[0], streams[0]), cudaSuccess);
    return cudaEventSynchronize(events[0]);
}

static int copy_pageable(void)
{
    static char pageable[BYTES];
    return cudaMemcpyAsync(memory, pageable, BYTES, cudaMemcpyDefault, streams[0]);
}

static int use_legacy_stream(void)
{
    return cudaMemsetAsync(memory, 0, BYTES, NULL);
}

static int use_other_stream(void)
{
    return cudaMemsetAsync(memory, 0, BYTES, streams[1]);
}

static int do_nothing(void *argument)
{
    (void)argument;
    return 0;
}

static void drop_nothing(void *argument)
{
    (void)argument;
}

static int launch_first_time(void)
{
    static const char code;
    return cards_launch(streams[0], &code, 0, do_nothing, drop_nothing, NULL);
}

static int enqueue_once(void)
{
    return cards_enqueue(streams[0], do_nothing, NULL, NULL);
}

static const struct {
    int (*call)(void);
    int code;
    bool in_relaxed_mode; /* it is not permitted there either */
} refused[] = {{wait_for_stream, cudaErrorStreamCaptureUnsupported, true},
               {ask_stream, cudaErrorStreamCaptureUnsupported, true},
               {take_memory, cudaErrorStreamCaptureUnsupported, false},
               {give_pinned, cudaErrorStreamCaptureUnsupported, false},
               {ask_any_event, cudaErrorStreamCaptureUnsupported, false},
               {wait_for_earlier_work, cudaErrorStreamCaptureIsolation, true},
               {ask_captured_event, cudaErrorCapturedEvent, true},
               {wait_for_captured_event, cudaErrorCapturedEvent, true},
               {copy_pageable, cudaErrorStreamCaptureUnsupported, true},
               {use_legacy_stream, cudaErrorStreamCaptureImplicit, true},
               {use_other_stream, cudaErrorStreamCaptureIsolation, true},
               {launch_first_time, cudaErrorStreamCaptureUnsupported, false},
               {enqueue_once, cudaErrorStreamCaptureUnsupported, true}};

static void what_is_not_permitted_fails_and_ends_the_capture(void **state)
{
    cudaGraph_t graph;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        for (int relaxed = 0; relaxed <= refused[i].in_relaxed_mode; relaxed++) {
            begin(relaxed ? cudaStreamCaptureModeRelaxed : cudaStreamCaptureModeThreadLocal);
            int code = refused[i].call();
            if (code != refused[i].code) fail_msg("call %zu: %d, not %d", i, code, refused[i].code);
            assert_int_equal(cudaGetLastError(), code);
            assert_int_equal(cudaMemsetAsync(memory, 0, BYTES, streams[0]), cudaErrorStreamCaptureInvalidated);
            assert_int_equal(cudaStreamEndCapture(streams[0], &graph), cudaErrorStreamCaptureInvalidated);
            assert_null(graph);
        }
    }
    fill(0, 5); /* the stream works again */
    assert_int_equal(first_byte(), 5);
}

static void relaxed_mode_permits_memory(void **state)
{
    void *address;
    begin(cudaStreamCaptureModeRelaxed);
    assert_int_equal(cudaMalloc(&address, BYTES), cudaSuccess);
    fill(0, 1);
    assert_int_equal(cudaGraphExecDestroy(end()), cudaSuccess);
    assert_int_equal(cudaFree(address), cudaSuccess);
}

static void *end_elsewhere(void *argument)
{
    cudaGraph_t graph;
    *(int *)argument = cudaStreamEndCapture(streams[0], &graph);
    return NULL;
}

static void a_capture_is_ended_where_it_was_begun(void **state)
{
    cudaGraph_t graph;
    pthread_t thread;
    int code = 0;
    assert_int_equal(cudaStreamEndCapture(streams[0], &graph), cudaErrorStreamCaptureUnmatched);
    begin(cudaStreamCaptureModeThreadLocal);
    order(0, 1);
    assert_int_equal(cudaStreamEndCapture(streams[1], &graph), cudaErrorStreamCaptureUnmatched);
    assert_int_equal(pthread_create(&thread, NULL, end_elsewhere, &code), 0);
    pthread_join(thread, NULL);
    assert_int_equal(code, cudaErrorStreamCaptureWrongThread);
    assert_int_equal(cudaStreamEndCapture(streams[0], &graph), cudaErrorStreamCaptureInvalidated);
}

static void streams_are_joined_at_the_end(void **state)
{
    cudaGraph_t graph;
    begin(cudaStreamCaptureModeThreadLocal);
    order(0, 1);
    fill(1, 1);
    assert_int_equal(cudaStreamEndCapture(streams[0], &graph), cudaErrorStreamCaptureUnjoined);
    assert_null(graph);
    fill(1, 2);
    assert_int_equal(cudaStreamSynchronize(streams[1]), cudaSuccess);
}

/* Its own memory it would have to allocate. */
static void cublas_wants_memory_of_the_users(void **state)
{
    cublasHandle_t handle;
    cudaGraph_t graph;
    void *workspace;
    const float one = 1, zero = 0;
    float *x = (float *)(void *)memory;
    assert_int_equal(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cublasSetStream(handle, streams[0]), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cudaMalloc(&workspace, BYTES), cudaSuccess);
    for (int turn = 0; turn < 3; turn++) { /* not captured, captured without, captured with it */
        if (turn > 0) begin(cudaStreamCaptureModeThreadLocal);
        if (turn == 2) assert_int_equal(cublasSetWorkspace(handle, workspace, BYTES), CUBLAS_STATUS_SUCCESS);
        int wanted = turn == 1 ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
        assert_int_equal(cublasSgemmStridedBatched_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, x, 1, 1, x + 1,
                                                      1, 1, &zero, x + 2, 1, 1, 1),
                         wanted);
        if (turn == 1) assert_int_equal(cudaStreamEndCapture(streams[0], &graph), cudaErrorStreamCaptureInvalidated);
        if (turn == 2) assert_int_equal(cudaGraphExecDestroy(end()), cudaSuccess);
    }
    cublasDestroy(handle);
    cudaFree(workspace);
}

int main(void)
{
    setenv("FAKE_CARDS", "1", 1);
    unsetenv("FAKE_CARDS_FAIL");
    unsetenv("FAKE_CARDS_SEED");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_MODULE_LOADING");
    return RUN(open_card, close_card, a_graph_is_done_when_it_is_launched, only_what_was_asked_for_is_in_order,
               what_is_not_permitted_fails_and_ends_the_capture, relaxed_mode_permits_memory,
               a_capture_is_ended_where_it_was_begun, streams_are_joined_at_the_end, cublas_wants_memory_of_the_users);
}
