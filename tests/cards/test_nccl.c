/* That the fake NCCL is as hard as it says: what a card would do to a wrong program without a word is a deadlock here
 * too, or ends the process with a line. Two members in one process, in a child each time: a breach ends it. */
#include "tests/test.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MEMBERS = 2, COUNT = 1000 };

struct bench {
    ncclComm_t comms[2][MEMBERS]; /* two communicators */
    cudaStream_t streams[MEMBERS];
    float *data[MEMBERS];
};

static void must(int result)
{
    if (result == 0) return;
    fprintf(stderr, "result %d: %s\n", result, ncclGetLastError(NULL));
    _exit(1);
}

static void open_bench(struct bench *bench)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    for (int c = 0; c < 2; c++) {
        ncclUniqueId id;
        must(ncclGetUniqueId(&id));
        must(ncclGroupStart());
        for (int m = 0; m < MEMBERS; m++) {
            must(cudaSetDevice(m));
            must(ncclCommInitRankConfig(&bench->comms[c][m], MEMBERS, id, m, &config));
        }
        must(ncclGroupEnd());
    }
    for (int m = 0; m < MEMBERS; m++) {
        float ones[COUNT];
        for (int i = 0; i < COUNT; i++) ones[i] = (float)(m + 1);
        must(cudaSetDevice(m));
        must(cudaStreamCreateWithFlags(&bench->streams[m], cudaStreamNonBlocking));
        must(cudaMalloc((void **)&bench->data[m], sizeof ones));
        must(cudaMemcpyAsync(bench->data[m], ones, sizeof ones, cudaMemcpyDefault, bench->streams[m]));
        must(cudaStreamSynchronize(bench->streams[m]));
    }
}

static void sum(struct bench *bench, int comm, int member, size_t count)
{
    must(ncclAllReduce(bench->data[member], bench->data[member], count, ncclFloat32, ncclSum,
                       bench->comms[comm][member], bench->streams[member]));
}

static void sum_of_all(struct bench *bench, int comm, size_t first, size_t second)
{
    must(ncclGroupStart());
    sum(bench, comm, 0, first);
    sum(bench, comm, 1, second);
    must(ncclGroupEnd());
}

static void ask_for_different_things(struct bench *bench)
{
    sum_of_all(bench, 0, COUNT, COUNT / 2);
    must(cudaStreamSynchronize(bench->streams[0]));
}

static void use_what_is_gone(struct bench *bench)
{
    must(ncclCommDestroy(bench->comms[0][0]));
    sum(bench, 0, 0, COUNT);
}

static void use_another_cards_memory(struct bench *bench)
{
    bench->data[0] = bench->data[1];
    sum(bench, 0, 0, COUNT);
}

/* Both communicators have been used, so that no call waits; then the members take them in different orders. */
static void take_different_orders(struct bench *bench)
{
    for (int c = 0; c < 2; c++) sum_of_all(bench, c, COUNT, COUNT);
    for (int m = 0; m < MEMBERS; m++)
        for (int c = 0; c < 2; c++) sum(bench, c == m, m, COUNT);
    usleep(300000);
    for (int m = 0; m < MEMBERS; m++)
        if (cudaStreamQuery(bench->streams[m]) != cudaErrorNotReady) _exit(1);
    for (int m = 0; m < MEMBERS; m++)
        for (int c = 0; c < 2; c++) must(ncclCommAbort(bench->comms[c][m]));
    for (int m = 0; m < MEMBERS; m++) must(cudaStreamSynchronize(bench->streams[m]));
}

/* A sum of the first communicator, which has been used, as the member's graph. */
static cudaGraphExec_t capture_sum(struct bench *bench, int member)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    must(cudaSetDevice(member));
    must(cudaStreamBeginCapture(bench->streams[member], cudaStreamCaptureModeThreadLocal));
    sum(bench, 0, member, COUNT);
    must(cudaStreamEndCapture(bench->streams[member], &graph));
    must(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    must(cudaGraphDestroy(graph));
    return exec;
}

/* 1 and 2, three times the sum of both: by launches of each member's graph. */
static void sum_in_graphs(struct bench *bench)
{
    cudaGraphExec_t execs[MEMBERS];
    float got;
    sum_of_all(bench, 0, COUNT, COUNT);
    for (int m = 0; m < MEMBERS; m++) execs[m] = capture_sum(bench, m);
    for (int launch = 0; launch < 2; launch++)
        for (int m = 0; m < MEMBERS; m++) must(cudaSetDevice(m)), must(cudaGraphLaunch(execs[m], bench->streams[m]));
    for (int m = 0; m < MEMBERS; m++) {
        must(cudaMemcpyAsync(&got, bench->data[m], sizeof got, cudaMemcpyDefault, bench->streams[m]));
        must(cudaStreamSynchronize(bench->streams[m]));
        if (got != 3 * 2 * 2) _exit(1);
        must(cudaGraphExecDestroy(execs[m]));
        must(ncclCommDestroy(bench->comms[0][m]));
    }
}

static void capture_on_one_member(struct bench *bench)
{
    sum_of_all(bench, 0, COUNT, COUNT);
    must(cudaGraphLaunch(capture_sum(bench, 0), bench->streams[0]));
    must(cudaSetDevice(1));
    sum(bench, 0, 1, COUNT);
    must(cudaStreamSynchronize(bench->streams[1]));
}

static void end_before_the_graph(struct bench *bench)
{
    sum_of_all(bench, 0, COUNT, COUNT);
    capture_sum(bench, 0);
    must(ncclCommDestroy(bench->comms[0][0]));
}

static void abort_before_the_graph(struct bench *bench)
{
    sum_of_all(bench, 0, COUNT, COUNT);
    capture_sum(bench, 0);
    must(ncclCommAbort(bench->comms[0][0]));
}

/* Plays in a child that has `signal` for its end, or status 0; returns what it said. */
static const char *play(void (*part)(struct bench *bench), int signal)
{
    static char said[512];
    int ends[2], status;
    memset(said, 0, sizeof said);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        struct bench bench;
        dup2(ends[1], STDERR_FILENO);
        open_bench(&bench);
        part(&bench);
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t used = 0, n; (n = read(ends[0], said + used, sizeof said - 1 - (size_t)used)) > 0;) used += n;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (signal ? !WIFSIGNALED(status) || WTERMSIG(status) != signal : status != 0)
        fail_msg("status %x: %s", (unsigned)status, said);
    return said;
}

static void what_is_wrong_is_said(void **state)
{
    assert_non_null(strstr(play(ask_for_different_things, SIGABRT), "fake NCCL: operation 0: rank "));
    assert_non_null(strstr(play(use_what_is_gone, SIGABRT), "a call on a communicator that was ended"));
    assert_non_null(strstr(play(use_another_cards_memory, SIGABRT), "4000 bytes to be read are not memory of card 0"));
}

static void graphs_sum_in_all_members_or_in_none(void **state)
{
    play(sum_in_graphs, 0);
    assert_non_null(strstr(play(capture_on_one_member, SIGABRT), "(captured: "));
    assert_non_null(strstr(play(end_before_the_graph, SIGABRT), "the end of a communicator waits for a graph"));
    assert_non_null(strstr(play(abort_before_the_graph, SIGABRT), "an abort waits for a graph"));
}

static void different_orders_are_a_deadlock_until_an_abort(void **state)
{
    play(take_different_orders, 0);
}

int main(void)
{
    setenv("FAKE_CARDS", "2", 1);
    return RUN(NULL, NULL, what_is_wrong_is_said, graphs_sum_in_all_members_or_in_none,
               different_orders_are_a_deadlock_until_an_abort);
}
