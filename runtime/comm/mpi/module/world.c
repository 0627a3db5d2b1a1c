/* The bootstrap `mpi`: the ranks of MPI_COMM_WORLD. Collectives are non-blocking, so that el_mpi_wait waits and not
 * the library. None begins after a rank was lost: it would match another one of a rank that has not noticed yet. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/comm/mpi/module.h"
#include "runtime/comm/mpi/module/comm_mpi.h"

enum { COUNT_MAX = 1 << 30, RANK_0_WRITES_S = 2 };

struct world {
    struct el_bootstrap base;
    struct el_presence *presence;
    char stopped[64]; /* ranks given up, "1, 3"; "": none */
};

static enum el_status may_begin(const struct world *world)
{
    if (!*world->stopped) return el_mpi_watch_check();
    return el_fail(EL_ERR_PEER, "mpi: rank %s is stopped, and was waited for %g s", world->stopped,
                   world->base.timeout_s);
}

/* MPI does not notice a stopped process; the system does. */
static void silent(struct el_bootstrap *bootstrap, char *text, size_t bytes)
{
    const struct world *world = (const struct world *)bootstrap;
    for (int r = 0; r < bootstrap->size; r++) {
        size_t used = strlen(text);
        if (el_presence_is_stopped(world->presence, r))
            snprintf(text + used, bytes - used, "%s%d", used ? ", " : "", r);
    }
}

/* Waits for slow ranks, but for stopped ones only as long as el_bootstrap_set_timeout says. */
static enum el_status wait_one(struct world *world, MPI_Request request)
{
    const double timeout_s = world->base.timeout_s;
    struct el_mpi_alarm alarm = {.message = MPI_REQUEST_NULL, .timeout_ns = (int64_t)(timeout_s * 1e9)};
    do {
        alarm.began_ns = el_clock_ns();
        enum el_status status = el_mpi_wait(&request, NULL, &alarm);
        if (status != EL_ERR_PEER || timeout_s <= 0 || el_mpi_watch_check() != EL_OK) return status;
        silent(&world->base, world->stopped, sizeof world->stopped);
    } while (!*world->stopped);
    return may_begin(world);
}

static enum el_status gather_into(struct world *world, const char *text, int length, char **texts, int *numbers)
{
    MPI_Request request;
    const int size = world->base.size;
    int total = 0, *lengths = numbers, *begins = numbers + size;
    EL_TRY(may_begin(world));
    EL_MPI_TRY(MPI_Igather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD, &request));
    EL_TRY(wait_one(world, request));
    for (int i = 0; texts && i < size; i++) {
        begins[i] = total;
        total += lengths[i];
    }
    char *all = malloc((size_t)total + 1);
    if (!all) return el_fail(EL_ERR_HOST_MEMORY, "gather of %d bytes: no memory", total);
    enum el_status status =
        el_mpi_check(MPI_Igatherv(text, length, MPI_CHAR, all, lengths, begins, MPI_CHAR, 0, MPI_COMM_WORLD, &request),
                     "MPI_Igatherv");
    if (status == EL_OK) status = wait_one(world, request);
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
    int *numbers = calloc(2 * (size_t)bootstrap->size, sizeof *numbers);
    if (!numbers) return el_fail(EL_ERR_HOST_MEMORY, "gather: no memory");
    el_mpi_enter();
    enum el_status status = gather_into((struct world *)bootstrap, text, (int)length, texts, numbers);
    el_mpi_leave();
    free(numbers);
    return status;
}

static enum el_status broadcast_pieces(struct world *world, char *data, size_t bytes)
{
    MPI_Request request;
    for (size_t at = 0; at < bytes; at += COUNT_MAX) {
        EL_TRY(may_begin(world));
        int count = (int)(bytes - at < COUNT_MAX ? bytes - at : COUNT_MAX);
        EL_MPI_TRY(MPI_Ibcast(data + at, count, MPI_BYTE, 0, MPI_COMM_WORLD, &request));
        EL_TRY(wait_one(world, request));
    }
    return EL_OK;
}

static enum el_status broadcast(struct el_bootstrap *bootstrap, void *data, size_t bytes)
{
    el_mpi_enter();
    enum el_status status = broadcast_pieces((struct world *)bootstrap, data, bytes);
    el_mpi_leave();
    return status;
}

static enum el_status barrier(struct el_bootstrap *bootstrap)
{
    struct world *world = (struct world *)bootstrap;
    MPI_Request request;
    el_mpi_enter();
    enum el_status status = may_begin(world);
    if (status == EL_OK) status = el_mpi_check(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
    if (status == EL_OK) status = wait_one(world, request);
    el_mpi_leave();
    return status;
}

static void abort_world(struct el_bootstrap *bootstrap, int exit_status)
{
    (void)bootstrap;
    el_mpi_abort(exit_status);
}

static void free_world(struct world *world)
{
    el_presence_close(world->presence);
    free(world);
}

/* MPI_Finalize needs all ranks. If one is stopped, rank 0 ends the job, after writing what it has (any rank, if rank 0
 * is the stopped one). If one is gone, this process ends without MPI_Finalize. The barrier keeps ranks that left in
 * order from counting as gone. */
static void close_world(struct el_bootstrap *bootstrap)
{
    char stopped[16] = "";
    silent(bootstrap, stopped, sizeof stopped);
    if (*stopped && (bootstrap->rank == 0 || atoi(stopped) == 0)) {
        fprintf(stderr, "evenload: rank %d ends the job: rank %s is stopped\n", bootstrap->rank, stopped);
        el_mpi_abort(1);
    }
    if (*stopped) el_clock_sleep_until(el_clock_ns() + RANK_0_WRITES_S * 1000000000LL);
    enum el_status status = barrier(bootstrap);
    if (!el_mpi_watch_end() && status == EL_OK) el_mpi_stop();
    free_world((struct world *)bootstrap);
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
    status = el_presence_open(bootstrap, &world->presence);
    if (status == EL_OK) status = el_bootstrap_agree(bootstrap, el_mpi_watch_begin(world->presence));
    if (status != EL_OK) {
        el_mpi_watch_end();
        el_mpi_stop();
        free_world(world);
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
