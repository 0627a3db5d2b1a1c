/* A communicator from its opening to its end, and memory of NCCL's. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/cards/cards.h"
#include "tests/cards/nccl.h"

enum { COMM_BYTES = 1 << 20 /* of device memory */, ABORT_MS = 3000 /* for graphs to go */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ncclComm *comms;

void nccl_comm_enter(struct ncclComm *comm)
{
    if (atomic_load(&comm->gone)) nccl_breach("a call on a communicator that was ended");
    if (atomic_fetch_add(&comm->inside, 1) != 0) nccl_breach("two threads in calls on one communicator");
}

void nccl_comm_leave(struct ncclComm *comm)
{
    atomic_fetch_sub(&comm->inside, 1);
    nccl_world_changed(comm->world);
}

void nccl_comm_want(const struct nccl_world *world)
{
    pthread_mutex_lock(&lock);
    for (struct ncclComm *comm = comms; comm; comm = comm->next)
        if (comm->world == world && comm->stream && !atomic_load(&comm->gone)) cards_want(comm->stream, comm->number);
    pthread_mutex_unlock(&lock);
}

/* ---- opening ---- */

/* NCCL tells hosts apart by their name, or by NCCL_HOSTID. */
static ncclResult_t write_card(char *card, int device)
{
    struct cudaDeviceProp properties;
    char host[64];
    const char *id = getenv("NCCL_HOSTID");
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess)
        return nccl_fail(ncclUnhandledCudaError, "no card %d", device);
    int used = 0;
    for (int i = 0; i < 16; i++)
        used += snprintf(card + used, NCCL_CARD_BYTES - (size_t)used, "%02x",
                         (unsigned)(unsigned char)properties.uuid.bytes[i]);
    if (gethostname(host, sizeof host) != 0) host[0] = 0;
    snprintf(card + used, NCCL_CARD_BYTES - (size_t)used, " %.100s", id && *id ? id : host);
    return ncclSuccess;
}

static ncclResult_t make(struct nccl_world *world, int n, int rank, int device, struct ncclComm **comm_p)
{
    int nobody = 0;
    if (n < 1 || n > NCCL_RANKS_MAX || rank < 0 || rank >= n)
        return nccl_fail(ncclInvalidArgument, "rank %d of %d", rank, n);
    if (!atomic_compare_exchange_strong(&world->n, &nobody, n) && nobody != n)
        return nccl_fail(ncclInvalidArgument, "%d ranks, and another rank says %d", n, nobody);
    if (cards_library_take(device, COMM_BYTES) != 0)
        return nccl_fail(ncclUnhandledCudaError, "Cuda failure 2 'out of memory'");
    struct ncclComm *comm = calloc(1, sizeof *comm);
    if (!comm) abort();
    comm->world = world;
    comm->rank = rank;
    comm->n = n;
    comm->device = device;
    pthread_mutex_lock(&lock);
    comm->next = comms;
    comms = comm;
    pthread_mutex_unlock(&lock);
    *comm_p = comm;
    return ncclSuccess;
}

ncclResult_t nccl_comm_arrive(struct ncclComm *comm)
{
    struct nccl_seat *seat = &comm->world->seats[comm->rank];
    ncclResult_t result = write_card(seat->card, comm->device);
    if (result != ncclSuccess) return result;
    if (atomic_exchange(&seat->is_here, 1)) nccl_breach("two members say that they are rank %d", comm->rank);
    nccl_world_changed(comm->world);
    return ncclSuccess;
}

static bool all_are_here(const void *context)
{
    const struct ncclComm *comm = context;
    for (int r = 0; r < comm->n; r++)
        if (!atomic_load(&comm->world->seats[r].is_here)) return false;
    return true;
}

ncclResult_t nccl_comm_meet(struct ncclComm *comm, const ncclUniqueId *id)
{
    const struct nccl_seat *seats = comm->world->seats;
    nccl_world_wait(comm->world, all_are_here, comm, NULL, NULL);
    if (comm->rank == 0) nccl_world_forget(id);
    for (int r = 0; r < comm->n; r++)
        for (int other = 0; other < r; other++)
            if (strcmp(seats[other].card, seats[r].card) == 0)
                return nccl_fail(ncclInvalidUsage,
                                 "Duplicate GPU detected : rank %d and rank %d both on CUDA device %s", other, r,
                                 seats[r].card);
    return ncclSuccess;
}

void nccl_comm_end(struct ncclComm *comm)
{
    atomic_store(&comm->gone, true);
    cards_library_give(comm->device, COMM_BYTES);
}

ncclResult_t ncclGetVersion(int *version_p)
{
    const char *text = getenv("FAKE_CARDS_NCCL");
    *version_p = text ? (int)strtol(text, NULL, 10) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id_p)
{
    return nccl_world_make(id_p);
}

/* As NCCL has it: the variable overrides what the caller asks for. */
static bool blocks(const ncclConfig_t *config)
{
    const char *setting = getenv("NCCL_COMM_BLOCKING");
    return setting && *setting ? atoi(setting) != 0 : !config || config->blocking != 0;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm_p, int n, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    struct nccl_world *world;
    struct ncclComm *comm;
    int device = 0;
    *comm_p = NULL;
    if (n < 1 || rank < 0 || rank >= n)
        return nccl_group_fail(nccl_fail(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, n));
    if (!blocks(config)) nccl_breach("communicators that do not block are not of this fake");
    if (cudaGetDevice(&device) != cudaSuccess) return nccl_fail(ncclUnhandledCudaError, "no current card");
    ncclResult_t result = nccl_world_open(&id, &world);
    if (result == ncclSuccess) result = make(world, n, rank, device, &comm);
    return result == ncclSuccess ? nccl_group_open(comm, comm_p, &id) : nccl_group_fail(result);
}

/* ---- splitting ---- */

struct splitting {
    const struct ncclComm *comm;
    unsigned to;
};

static bool all_have_split(const void *context)
{
    const struct splitting *splitting = context;
    for (int r = 0; r < splitting->comm->n; r++)
        if ((int)(atomic_load(&splitting->comm->world->seats[r].splits) - splitting->to) < 0) return false;
    return true;
}

/* All have told; all of a color know the id that the lowest of them has made. */
static bool step(struct ncclComm *comm)
{
    struct splitting splitting = {comm, atomic_fetch_add(&comm->world->seats[comm->rank].splits, 1) + 1};
    nccl_world_changed(comm->world);
    return nccl_world_wait(comm->world, all_have_split, &splitting, comm, NULL);
}

/* Of my color: how many there are, how many stand before me, and who makes the id. */
static int place(const struct ncclComm *comm, int *rank_p, int *lowest_p)
{
    const struct nccl_seat *seats = comm->world->seats;
    int n = 0, before = 0, mine = comm->rank;
    *lowest_p = mine;
    for (int r = comm->n - 1; r >= 0; r--) {
        if (seats[r].color != seats[mine].color) continue;
        n++;
        before += seats[r].key < seats[mine].key || (seats[r].key == seats[mine].key && r < mine);
        *lowest_p = r;
    }
    *rank_p = before;
    return n;
}

static ncclResult_t split(struct ncclComm *comm, int color, int key, ncclComm_t *comm_p)
{
    struct nccl_seat *mine = &comm->world->seats[comm->rank];
    struct nccl_world *world;
    struct ncclComm *part = NULL;
    ncclResult_t result = ncclSuccess;
    int rank = 0, lowest = 0, n;
    mine->color = color;
    mine->key = key;
    if (!step(comm)) return nccl_fail(ncclInternalError, "aborted while members split");
    n = place(comm, &rank, &lowest);
    if (color != NCCL_SPLIT_NOCOLOR && lowest == comm->rank) result = nccl_world_make(&mine->split_id);
    if (!step(comm)) return nccl_fail(ncclInternalError, "aborted while members split");
    if (result != ncclSuccess || color == NCCL_SPLIT_NOCOLOR) return result;
    ncclUniqueId id = comm->world->seats[lowest].split_id;
    result = nccl_world_open(&id, &world);
    if (result == ncclSuccess) result = make(world, n, rank, comm->device, &part);
    if (result == ncclSuccess) result = nccl_comm_arrive(part);
    if (result == ncclSuccess && !nccl_world_wait(world, all_are_here, part, comm, NULL))
        result = nccl_fail(ncclInternalError, "aborted while members split");
    if (lowest == comm->rank) nccl_world_forget(&id);
    if (result == ncclSuccess)
        *comm_p = part;
    else if (part)
        nccl_comm_end(part);
    return result;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *comm_p, ncclConfig_t *config)
{
    (void)config;
    *comm_p = NULL;
    if (!comm) return nccl_fail(ncclInvalidArgument, "comm argument is NULL");
    if (nccl_group_depth() > 0) nccl_breach("a split within a group is not of this fake");
    nccl_comm_enter(comm);
    ncclResult_t result = split(comm, color, key, comm_p);
    nccl_comm_leave(comm);
    return result;
}

/* ---- ending ---- */

static bool nothing_is_left(const void *context)
{
    return atomic_load(&((const struct ncclComm *)context)->n_left) == 0;
}

static bool nobody_is_inside(const void *context)
{
    return atomic_load(&((const struct ncclComm *)context)->inside) == 0;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (!comm) return ncclSuccess;
    nccl_comm_enter(comm);
    if (atomic_load(&comm->n_captured) > 0) nccl_breach("the end of a communicator waits for a graph that has it");
    nccl_world_wait(comm->world, nothing_is_left, comm, comm, NULL);
    nccl_comm_end(comm);
    nccl_comm_leave(comm);
    return ncclSuccess;
}

/* From any thread: who is in a call leaves it with a failure. Operations end where they are. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (!comm) return ncclSuccess;
    if (atomic_exchange(&comm->aborted, true) || atomic_load(&comm->gone))
        nccl_breach("an abort of a communicator that was ended");
    nccl_world_changed(comm->world);
    nccl_world_wait(comm->world, nobody_is_inside, comm, NULL, NULL);
    for (int ms = 0; atomic_load(&comm->n_captured) > 0; ms++) {
        if (ms == ABORT_MS) nccl_breach("an abort waits for a graph that has the communicator");
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    nccl_comm_end(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error_p)
{
    if (!comm) return nccl_fail(ncclInvalidArgument, "comm argument is NULL");
    if (atomic_load(&comm->gone)) nccl_breach("a call on a communicator that was ended");
    *error_p = (ncclResult_t)atomic_load(&comm->error);
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *n_p)
{
    *n_p = comm->n;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank_p)
{
    *rank_p = comm->rank;
    return ncclSuccess;
}

/* ---- memory ---- */

ncclResult_t ncclMemAlloc(void **address_p, size_t bytes)
{
    if (cudaMalloc(address_p, bytes) == cudaSuccess) return ncclSuccess;
    cudaGetLastError();
    return nccl_fail(ncclUnhandledCudaError, "Cuda failure 2 'out of memory'");
}

ncclResult_t ncclMemFree(void *address)
{
    return cudaFree(address) == cudaSuccess ? ncclSuccess : nccl_fail(ncclUnhandledCudaError, "cudaFree failed");
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *address, size_t bytes, void **handle_p)
{
    nccl_comm_enter(comm);
    if (comm->n_registered == NCCL_REGISTERED_MAX) nccl_breach("more memory is registered than this fake keeps");
    comm->registered[comm->n_registered] = address;
    comm->registered_bytes[comm->n_registered++] = bytes;
    *handle_p = bytes > 0 ? address : NULL;
    nccl_comm_leave(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    if (!handle) return nccl_fail(ncclInvalidArgument, "no handle");
    nccl_comm_enter(comm);
    int at = 0;
    while (at < comm->n_registered && comm->registered[at] != handle) at++;
    if (at == comm->n_registered) nccl_breach("memory is taken back from a communicator that does not have it");
    comm->registered[at] = comm->registered[--comm->n_registered];
    comm->registered_bytes[at] = comm->registered_bytes[comm->n_registered];
    nccl_comm_leave(comm);
    return ncclSuccess;
}
