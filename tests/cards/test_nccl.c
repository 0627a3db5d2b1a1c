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

static void different_orders_are_a_deadlock_until_an_abort(void **state)
{
    play(take_different_orders, 0);
}

int main(void)
{
    setenv("FAKE_CARDS", "2", 1);
    return RUN(NULL, NULL, what_is_wrong_is_said, different_orders_are_a_deadlock_until_an_abort);
}
