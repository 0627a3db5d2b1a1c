/* A table of NCCL's functions that is not NCCL: it notes what it is asked, and fails where it is told to. Its
 * collectives move nothing: what their streams wait for is the business of fake_async.h. One thread. */
#ifndef EL_TESTS_FAKE_NCCL_H
#define EL_TESTS_FAKE_NCCL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/comm/nccl_group.h"
#include "tests/unit/fake_async.h"

enum { CALLS_MAX = 64 };

struct fake_comm {
    int rank, n, device;
};

struct fake_call {
    char what[16];
    const struct fake_comm *comm;
    int depth; /* of groups */
    enum el_comm_verb verb;
    const void *data;
    void *result, *stream;
    size_t count;
    int root;
};

static struct {
    struct fake_call calls[CALLS_MAX];
    int n_calls, depth, n_open, n_aborted, n_destroyed;
    int fail_verb, fail_open_rank, fail_end; /* results of the next such call; -1: of no rank */
    int async_error;
    struct el_nccl_id last_id;
    const char *host_id;
    bool launches_block;
} nccl;

static void note(const char *what, const void *comm)
{
    struct fake_call *call = &nccl.calls[nccl.n_calls++ % CALLS_MAX];
    *call = (struct fake_call){.comm = comm, .depth = nccl.depth};
    snprintf(call->what, sizeof call->what, "%s", what);
}

static int nccl_get_version(int *version_p)
{
    *version_p = 22809;
    return 0;
}

static int nccl_get_unique_id(struct el_nccl_id *id_p)
{
    memset(id_p, 0, sizeof *id_p);
    snprintf(id_p->bytes, sizeof id_p->bytes, "id of process %d", (int)getpid());
    return 0;
}

static int nccl_comm_open(void **comm_p, int n, const struct el_nccl_id *id, int rank, int device)
{
    struct fake_comm *comm = calloc(1, sizeof *comm);
    note("open", comm);
    nccl.last_id = *id;
    if (nccl.fail_open_rank == rank) {
        free(comm);
        return EL_NCCL_BAD_USE;
    }
    *comm = (struct fake_comm){.rank = rank, .n = n, .device = device};
    nccl.n_open++;
    *comm_p = comm;
    return 0;
}

static int nccl_end(const char *what, void *comm, int *count)
{
    note(what, comm);
    ++*count;
    nccl.n_open--;
    free(comm);
    return 0;
}

static int nccl_comm_abort(void *comm)
{
    fake.stuck = false;
    return nccl_end("abort", comm, &nccl.n_aborted);
}

static int nccl_comm_destroy(void *comm)
{
    return nccl_end("destroy", comm, &nccl.n_destroyed);
}

static int nccl_async_error(void *comm, int *error_p)
{
    (void)comm;
    *error_p = nccl.async_error;
    return 0;
}

static int nccl_group_start(void)
{
    note("start", NULL);
    nccl.depth++;
    return 0;
}

static int nccl_group_end(void)
{
    nccl.depth--;
    note("end", NULL);
    return nccl.fail_end;
}

static int nccl_collective(enum el_comm_verb verb, const void *data, void *result, size_t count, int root, void *comm,
                           void *stream)
{
    note("collective", comm);
    struct fake_call *call = &nccl.calls[(nccl.n_calls - 1) % CALLS_MAX];
    call->verb = verb;
    call->data = data;
    call->result = result;
    call->count = count;
    call->root = root;
    call->stream = stream;
    return nccl.fail_verb;
}

static int nccl_all_reduce(void *data, size_t count, enum el_dtype dtype, void *comm, void *stream)
{
    (void)dtype;
    return nccl_collective(EL_COMM_ALL_REDUCE, data, data, count, 0, comm, stream);
}

static int nccl_broadcast(void *data, size_t count, enum el_dtype dtype, int root, void *comm, void *stream)
{
    (void)dtype;
    return nccl_collective(EL_COMM_BROADCAST, data, data, count, root, comm, stream);
}

static int nccl_reduce(const void *data, void *result, size_t count, enum el_dtype dtype, int root, void *comm,
                       void *stream)
{
    (void)dtype;
    return nccl_collective(EL_COMM_REDUCE, data, result, count, root, comm, stream);
}

static const char *nccl_result_text(int result)
{
    return result == EL_NCCL_REMOTE ? "remote process exited" : "bad";
}

static const char *nccl_last_error(void)
{
    return "words of the library";
}

static const char *nccl_host_id(void)
{
    return nccl.host_id ? nccl.host_id : "";
}

static bool nccl_launches_block(void)
{
    return nccl.launches_block;
}

static const struct el_nccl_api api = {.get_version = nccl_get_version,
                                       .get_unique_id = nccl_get_unique_id,
                                       .comm_open = nccl_comm_open,
                                       .comm_abort = nccl_comm_abort,
                                       .comm_destroy = nccl_comm_destroy,
                                       .async_error = nccl_async_error,
                                       .group_start = nccl_group_start,
                                       .group_end = nccl_group_end,
                                       .all_reduce = nccl_all_reduce,
                                       .broadcast = nccl_broadcast,
                                       .reduce = nccl_reduce,
                                       .result_text = nccl_result_text,
                                       .last_error = nccl_last_error,
                                       .host_id = nccl_host_id,
                                       .launches_block = nccl_launches_block};

static void reset(void)
{
    fake_reset(FAKE_LAZY);
    memset(&nccl, 0, sizeof nccl);
    nccl.fail_open_rank = -1;
}

#endif
