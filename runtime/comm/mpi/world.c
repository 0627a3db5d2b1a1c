/* The bootstrap `mpi`: the ranks of MPI_COMM_WORLD. Collectives are the non-blocking ones, so that waiting is ours
 * (el_mpi_wait) and not the library's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/files.h"
#include "runtime/comm/mpi/calls.h"
#include "runtime/comm/mpi/group.h"
#include "runtime/comm/mpi/module.h"
#include "runtime/comm/share.h"

enum { COUNT_MAX = 1 << 30, TEXT_BYTES = EL_HOST_IDENTITY_BYTES + 16 };

struct world {
    struct el_bootstrap base;
    int *pids; /* [size]; 0: of another host */
};

static enum el_status wait_one(MPI_Request request)
{
    return el_mpi_wait(&request, NULL, NULL);
}

/* Lengths first, then the texts behind one another. */
static enum el_status gather_into(const char *text, int length, char **texts, int size, int *lengths, int *begins)
{
    MPI_Request request;
    int total = 0;
    EL_MPI_TRY(MPI_Igather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD, &request));
    EL_TRY(wait_one(request));
    for (int i = 0; texts && i < size; i++) {
        begins[i] = total;
        total += lengths[i];
    }
    char *all = malloc((size_t)total + 1);
    if (!all) return el_fail(EL_ERR_HOST_MEMORY, "gather of %d bytes: no memory", total);
    enum el_status status =
        el_mpi_check(MPI_Igatherv(text, length, MPI_CHAR, all, lengths, begins, MPI_CHAR, 0, MPI_COMM_WORLD, &request),
                     "MPI_Igatherv");
    if (status == EL_OK) status = wait_one(request);
    for (int i = 0; texts && status == EL_OK && i < size; i++) {
        texts[i] = strndup(all + begins[i], (size_t)lengths[i]);
        if (!texts[i]) status = el_fail(EL_ERR_HOST_MEMORY, "gather: no memory");
    }
    free(all);
    return status;
}

static enum el_status gather(struct el_bootstrap *bootstrap, const char *text, char **texts)
{
    size_t length = strlen(text);
    if (length > COUNT_MAX) return el_fail(EL_ERR_INVALID, "gather: a text of %zu bytes", length);
    int size = bootstrap->size, *numbers = calloc(2 * (size_t)size, sizeof *numbers);
    if (!numbers) return el_fail(EL_ERR_HOST_MEMORY, "gather: no memory");
    el_mpi_enter();
    enum el_status status = gather_into(text, (int)length, texts, size, numbers, numbers + size);
    el_mpi_leave();
    free(numbers);
    return status;
}

static enum el_status broadcast_pieces(char *data, size_t bytes)
{
    MPI_Request request;
    for (size_t at = 0; at < bytes; at += COUNT_MAX) {
        int count = (int)(bytes - at < COUNT_MAX ? bytes - at : COUNT_MAX);
        EL_MPI_TRY(MPI_Ibcast(data + at, count, MPI_BYTE, 0, MPI_COMM_WORLD, &request));
        EL_TRY(wait_one(request));
    }
    return EL_OK;
}

static enum el_status broadcast(struct el_bootstrap *bootstrap, void *data, size_t bytes)
{
    (void)bootstrap;
    el_mpi_enter();
    enum el_status status = broadcast_pieces(data, bytes);
    el_mpi_leave();
    return status;
}

static enum el_status barrier(struct el_bootstrap *bootstrap)
{
    (void)bootstrap;
    MPI_Request request;
    el_mpi_enter();
    enum el_status status = el_mpi_check(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
    if (status == EL_OK) status = wait_one(request);
    el_mpi_leave();
    return status;
}

static void abort_world(struct el_bootstrap *bootstrap, int exit_status)
{
    (void)bootstrap;
    el_mpi_abort(exit_status);
}

/* A stopped process says nothing, and MPI does not notice: the system knows. */
static bool is_stopped(int pid)
{
    char path[48], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    el_file_line(path, "", line, sizeof line);
    const char *name_end = strrchr(line, ')');
    return name_end && (strncmp(name_end, ") T", 3) == 0 || strncmp(name_end, ") t", 3) == 0);
}

static void silent(struct el_bootstrap *bootstrap, char *text, size_t bytes)
{
    const struct world *world = (const struct world *)bootstrap;
    for (int r = 0; r < bootstrap->size; r++) {
        size_t used = strlen(text);
        if (world->pids[r] && is_stopped(world->pids[r]))
            snprintf(text + used, bytes - used, "%s%d", used ? ", " : "", r);
    }
}

/* Who is on this host, and by which number. */
static enum el_status learn_pids(struct world *world)
{
    int size = world->base.size;
    char host[EL_HOST_IDENTITY_BYTES], mine[TEXT_BYTES], *texts = calloc((size_t)size, TEXT_BYTES);
    if (texts) world->pids = calloc((size_t)size, sizeof *world->pids);
    enum el_status status = el_bootstrap_agree(
        &world->base, world->pids ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for %d ranks", size));
    el_share_host(host);
    snprintf(mine, sizeof mine, "%d %s", (int)getpid(), host);
    if (status == EL_OK) status = el_share_texts(&world->base, mine, TEXT_BYTES, texts);
    for (int r = 0; status == EL_OK && r < size; r++) {
        const char *text = texts + (size_t)r * TEXT_BYTES, *blank = strchr(text, ' ');
        if (blank && strcmp(blank + 1, host) == 0) world->pids[r] = atoi(text);
    }
    free(texts);
    return status;
}

/* Nobody can leave MPI together with a stopped rank. Rank 0 ends the job, since it may have something to write before
 * that; if it is the one, anybody. */
static void close_world(struct el_bootstrap *bootstrap)
{
    char stopped[16] = "";
    silent(bootstrap, stopped, sizeof stopped);
    if (*stopped && (bootstrap->rank == 0 || atoi(stopped) == 0)) el_mpi_abort(1);
    el_mpi_stop();
    free(((struct world *)bootstrap)->pids);
    free(bootstrap);
}

static const struct el_bootstrap_ops world_ops = {
    .kind = "mpi",
    .gather = gather,
    .broadcast = broadcast,
    .barrier = barrier,
    .silent = silent,
    .abort = abort_world,
    .close = close_world,
};

static enum el_status open_world(struct el_bootstrap **bootstrap_p)
{
    struct world *world = calloc(1, sizeof *world);
    if (!world) return el_fail(EL_ERR_HOST_MEMORY, "bootstrap mpi: no memory");
    struct el_bootstrap *bootstrap = &world->base;
    bootstrap->ops = &world_ops;
    enum el_status status =
        el_mpi_start(&bootstrap->rank, &bootstrap->size, bootstrap->library, sizeof bootstrap->library);
    if (status != EL_OK) {
        free(world);
        return status;
    }
    status = learn_pids(world);
    if (status != EL_OK) {
        el_mpi_stop();
        free(world->pids);
        free(world);
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
