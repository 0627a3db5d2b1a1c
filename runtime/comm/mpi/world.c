/* The bootstrap `mpi`: the ranks of MPI_COMM_WORLD. Collectives are the non-blocking ones, so that waiting is ours
 * (el_mpi_wait) and not the library's. */
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/mpi/group.h"
#include "runtime/comm/mpi/module.h"
#include "runtime/comm/mpi/progress.h"

enum { COUNT_MAX = 1 << 30 };

static enum el_status wait_one(MPI_Request request)
{
    return el_mpi_wait(&request, NULL, NULL);
}

struct gather_job {
    struct el_bootstrap *bootstrap;
    const char *text;
    char **texts;
};

/* Lengths first, then the texts behind one another. */
static enum el_status gather_into(struct gather_job *job, int length, int *lengths, int *begins)
{
    MPI_Request request;
    int size = job->bootstrap->size, total = 0;
    EL_MPI_TRY(MPI_Igather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD, &request));
    EL_TRY(wait_one(request));
    for (int i = 0; job->texts && i < size; i++) {
        begins[i] = total;
        total += lengths[i];
    }
    char *all = malloc((size_t)total + 1);
    if (!all) return el_fail(EL_ERR_HOST_MEMORY, "gather of %d bytes: no memory", total);
    enum el_status status = el_mpi_check(
        MPI_Igatherv(job->text, length, MPI_CHAR, all, lengths, begins, MPI_CHAR, 0, MPI_COMM_WORLD, &request),
        "MPI_Igatherv");
    if (status == EL_OK) status = wait_one(request);
    for (int i = 0; job->texts && status == EL_OK && i < size; i++) {
        job->texts[i] = strndup(all + begins[i], (size_t)lengths[i]);
        if (!job->texts[i]) status = el_fail(EL_ERR_HOST_MEMORY, "gather: no memory");
    }
    free(all);
    return status;
}

static enum el_status run_gather(void *context)
{
    struct gather_job *job = context;
    size_t length = strlen(job->text);
    if (length > COUNT_MAX) return el_fail(EL_ERR_INVALID, "gather: a text of %zu bytes", length);
    int *numbers = calloc(2 * (size_t)job->bootstrap->size, sizeof *numbers);
    if (!numbers) return el_fail(EL_ERR_HOST_MEMORY, "gather: no memory");
    enum el_status status = gather_into(job, (int)length, numbers, numbers + job->bootstrap->size);
    free(numbers);
    return status;
}

static enum el_status gather(struct el_bootstrap *bootstrap, const char *text, char **texts)
{
    struct gather_job job = {.bootstrap = bootstrap, .text = text, .texts = texts};
    return el_mpi_do(run_gather, &job);
}

struct broadcast_job {
    char *data;
    size_t bytes;
};

static enum el_status run_broadcast(void *context)
{
    struct broadcast_job *job = context;
    MPI_Request request;
    for (size_t at = 0; at < job->bytes; at += COUNT_MAX) {
        int count = (int)(job->bytes - at < COUNT_MAX ? job->bytes - at : COUNT_MAX);
        EL_MPI_TRY(MPI_Ibcast(job->data + at, count, MPI_BYTE, 0, MPI_COMM_WORLD, &request));
        EL_TRY(wait_one(request));
    }
    return EL_OK;
}

static enum el_status broadcast(struct el_bootstrap *bootstrap, void *data, size_t bytes)
{
    (void)bootstrap;
    struct broadcast_job job = {.data = data, .bytes = bytes};
    return el_mpi_do(run_broadcast, &job);
}

static enum el_status run_barrier(void *context)
{
    (void)context;
    MPI_Request request;
    EL_MPI_TRY(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    return wait_one(request);
}

static enum el_status barrier(struct el_bootstrap *bootstrap)
{
    (void)bootstrap;
    return el_mpi_do(run_barrier, NULL);
}

static void abort_world(struct el_bootstrap *bootstrap, int exit_status)
{
    (void)bootstrap;
    el_mpi_abort(exit_status);
}

static void close_world(struct el_bootstrap *bootstrap)
{
    el_mpi_stop();
    free(bootstrap);
}

static const struct el_bootstrap_ops world_ops = {
    .kind = "mpi",
    .gather = gather,
    .broadcast = broadcast,
    .barrier = barrier,
    .abort = abort_world,
    .close = close_world,
};

static enum el_status open_world(struct el_bootstrap **bootstrap_p)
{
    struct el_bootstrap *bootstrap = calloc(1, sizeof *bootstrap);
    if (!bootstrap) return el_fail(EL_ERR_HOST_MEMORY, "bootstrap mpi: no memory");
    bootstrap->ops = &world_ops;
    enum el_status status =
        el_mpi_start(&bootstrap->rank, &bootstrap->size, bootstrap->library, sizeof bootstrap->library);
    if (status != EL_OK) {
        free(bootstrap);
        return status;
    }
    *bootstrap_p = bootstrap;
    return EL_OK;
}

const struct el_mpi_module *el_mpi_module(void)
{
    static const struct el_mpi_module module = {.bootstrap_open = open_world, .comm = &el_mpi_comm_backend};
    return &module;
}
