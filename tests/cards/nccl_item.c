/* Collectives and messages on the streams' threads. A collective goes through the members' slots a piece at a time: all
 * have put theirs, all take, all have taken. Sums begin with another member in each operation, by the seed, but with
 * the same one on all members: so that they have the same bits, as NCCL's. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/half.h"
#include "tests/cards/cards.h"
#include "tests/cards/nccl.h"

struct item {
    struct ncclComm *comm;
    cudaStream_t stream;
    unsigned number; /* in its communicator */
    int n;
    struct nccl_call calls[];
};

size_t nccl_type_bytes(int type)
{
    if (type == ncclFloat16 || type == ncclBfloat16) return 2;
    return type == ncclFloat64 ? 8 : type == ncclFloat32 || type == ncclInt32 ? 4 : type == ncclUint8 ? 1 : 0;
}

/* ---- sums ---- */

#define COMBINE(name, type)                                                                                            \
    static void name(type *to, const type *with, size_t n, int reduction)                                              \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            if (reduction == ncclProd) to[i] = (type)(to[i] * with[i]);                                                \
            if (reduction == ncclMin && with[i] < to[i]) to[i] = with[i];                                              \
            if (reduction == ncclMax && with[i] > to[i]) to[i] = with[i];                                              \
            if (reduction == ncclSum || reduction == ncclAvg) to[i] = (type)(to[i] + with[i]);                         \
        }                                                                                                              \
    }                                                                                                                  \
    static void name##_divide(type *to, size_t n, int by)                                                              \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) to[i] = (type)(to[i] / (type)by);                                               \
    }
COMBINE(combine_f32, float)
COMBINE(combine_f64, double)
COMBINE(combine_i32, int32_t)
COMBINE(combine_u8, uint8_t)

static float half_at(int type, const uint16_t *at)
{
    return type == ncclFloat16 ? el_f32_of_f16(*at) : el_f32_of_bf16(*at);
}

static void put_half(int type, uint16_t *at, float value)
{
    *at = type == ncclFloat16 ? el_f16_of_f32(value) : el_bf16_of_f32(value);
}

static void combine_halves(int type, uint16_t *to, const uint16_t *with, size_t n, int reduction)
{
    for (size_t i = 0; i < n; i++) {
        float x = half_at(type, to + i), y = half_at(type, with + i);
        combine_f32(&x, &y, 1, reduction);
        put_half(type, to + i, x);
    }
}

static void combine(int type, void *to, const void *with, size_t n, int reduction)
{
    if (type == ncclFloat32) combine_f32(to, with, n, reduction);
    if (type == ncclFloat64) combine_f64(to, with, n, reduction);
    if (type == ncclInt32) combine_i32(to, with, n, reduction);
    if (type == ncclUint8) combine_u8(to, with, n, reduction);
    if (type == ncclFloat16 || type == ncclBfloat16) combine_halves(type, to, with, n, reduction);
}

static void divide(int type, void *to, size_t n, int by)
{
    uint16_t *halves = type == ncclFloat16 || type == ncclBfloat16 ? to : NULL;
    for (size_t i = 0; halves && i < n; i++) put_half(type, halves + i, half_at(type, halves + i) / (float)by);
    if (type == ncclFloat32) combine_f32_divide(to, n, by);
    if (type == ncclFloat64) combine_f64_divide(to, n, by);
    if (type == ncclInt32) combine_i32_divide(to, n, by);
    if (type == ncclUint8) combine_u8_divide(to, n, by);
}

static void sum_slots(const struct item *item, char *to, size_t bytes)
{
    const struct nccl_asked *asked = &item->calls->asked;
    const struct nccl_world *world = item->comm->world;
    int n = item->comm->n, first = (int)((item->number + item->comm->n_again + cards_seed()) % (uint64_t)n);
    size_t count = bytes / nccl_type_bytes(asked->type);
    memcpy(to, world->seats[first].slot, bytes);
    for (int i = 1; i < n; i++) combine(asked->type, to, world->seats[(first + i) % n].slot, count, asked->reduction);
    if (asked->reduction == ncclAvg) divide(asked->type, to, count, n);
}

/* ---- collectives ---- */

static bool all_are_at_my_step(const void *context)
{
    const struct ncclComm *comm = context;
    unsigned mine = atomic_load(&comm->world->seats[comm->rank].steps);
    for (int r = 0; r < comm->n; r++)
        if ((int)(atomic_load(&comm->world->seats[r].steps) - mine) < 0) return false;
    return true;
}

static bool meet(const struct item *item)
{
    struct nccl_world *world = item->comm->world;
    cards_release(world);
    atomic_fetch_add(&world->seats[item->comm->rank].steps, 1);
    nccl_world_changed(world);
    bool met = nccl_world_wait(world, all_are_at_my_step, item->comm, item->comm, item->stream);
    cards_acquire(world);
    return met;
}

static void check_same(const struct item *item)
{
    const struct nccl_asked *mine = &item->calls->asked;
    for (int r = 0; r < item->comm->n; r++) {
        const struct nccl_asked *other = &item->comm->world->seats[r].asked;
        if (memcmp(mine, other, sizeof *mine) == 0) continue;
        nccl_breach("operation %u: rank %d asks for verb %d of %zu, type %d, reduction %d, root %d, and rank %d for "
                    "verb %d of %zu, type %d, reduction %d, root %d (captured: %d and %d, registered: %d and %d)",
                    item->number, item->comm->rank, mine->verb, mine->count, mine->type, mine->reduction, mine->root, r,
                    other->verb, other->count, other->type, other->reduction, other->root, mine->captured,
                    other->captured, mine->registered, other->registered);
    }
}

/* A piece that this member has put where all can see it, and what it takes of theirs: of part `part` of the larger
 * side, from byte `at` on. */
static bool pass(const struct item *item, size_t part, size_t at, size_t bytes)
{
    const struct nccl_call *call = item->calls;
    const struct nccl_asked *asked = &call->asked;
    struct nccl_seat *seats = item->comm->world->seats;
    int rank = item->comm->rank;
    size_t whole = asked->count * nccl_type_bytes(asked->type);
    bool is_root = rank == asked->root;
    if (asked->verb != NCCL_BROADCAST || is_root) memcpy(seats[rank].slot, call->data + part * whole + at, bytes);
    if (!meet(item)) return false;
    if (asked->verb == NCCL_ALL_REDUCE || (asked->verb == NCCL_REDUCE && is_root) ||
        (asked->verb == NCCL_REDUCE_SCATTER && part == (size_t)rank))
        sum_slots(item, call->result + at, bytes);
    if (asked->verb == NCCL_BROADCAST) memcpy(call->result + at, seats[asked->root].slot, bytes);
    for (int r = 0; asked->verb == NCCL_ALL_GATHER && r < item->comm->n; r++)
        memcpy(call->result + (size_t)r * whole + at, seats[r].slot, bytes);
    return meet(item);
}

static void run_collective(const struct item *item)
{
    const struct nccl_asked *asked = &item->calls->asked;
    size_t whole = asked->count * nccl_type_bytes(asked->type);
    size_t parts = asked->verb == NCCL_REDUCE_SCATTER ? (size_t)item->comm->n : 1;
    item->comm->world->seats[item->comm->rank].asked = *asked;
    if (!meet(item)) return;
    check_same(item);
    for (size_t part = 0; part < parts; part++)
        for (size_t at = 0; at < whole; at += NCCL_SLOT_BYTES) {
            size_t bytes = whole - at < NCCL_SLOT_BYTES ? whole - at : NCCL_SLOT_BYTES;
            if (!pass(item, part, at, bytes)) return;
        }
}

/* ---- messages ---- */

/* Those of one item, and how far each is. */
struct moving {
    const struct item *item;
    size_t *moved; /* [n] bytes put or taken; one more when a message is over */
    bool any;      /* of them moved in the last look */
};

static struct nccl_way *way_of(const struct nccl_call *call)
{
    int rank = call->comm->rank;
    return call->asked.verb == NCCL_SEND ? &call->comm->world->ways[rank][call->peer]
                                         : &call->comm->world->ways[call->peer][rank];
}

static size_t length_of(const struct nccl_call *call)
{
    return call->asked.count * nccl_type_bytes(call->asked.type);
}

/* Messages of one way go one after the other. */
static bool is_behind(const struct moving *moving, int i)
{
    const struct nccl_call *calls = moving->item->calls;
    for (int before = 0; before < i; before++)
        if (calls[before].asked.verb == calls[i].asked.verb && calls[before].peer == calls[i].peer &&
            moving->moved[before] <= length_of(&calls[before]))
            return true;
    return false;
}

static void check_message(const struct nccl_call *call, const struct nccl_way *way)
{
    if (way->asked.count == call->asked.count && way->asked.type == call->asked.type) return;
    nccl_breach("rank %d sends %zu of type %d to rank %d, which receives %zu of type %d", call->peer, way->asked.count,
                way->asked.type, call->comm->rank, call->asked.count, call->asked.type);
}

static bool move_some(const struct nccl_call *call, size_t *moved)
{
    struct nccl_way *way = way_of(call);
    bool sends = call->asked.verb == NCCL_SEND, full = atomic_load(&way->full) != 0;
    size_t left = length_of(call) - *moved, bytes = left < NCCL_SLOT_BYTES ? left : NCCL_SLOT_BYTES;
    if (full == sends) return false;
    cards_acquire(way);
    if (sends && left > 0) {
        way->asked = call->asked;
        memcpy(way->slot, call->data + *moved, bytes);
    } else if (!sends) {
        check_message(call, way);
        memcpy(call->result + *moved, way->slot, bytes);
    }
    *moved += bytes;
    cards_release(way);
    if (!sends || left > 0) atomic_store(&way->full, sends);
    if (left == bytes && (!sends || left == 0)) ++*moved; /* taken: of a send, when its last piece is */
    nccl_world_changed(call->comm->world);
    return true;
}

static bool all_moved(const void *context)
{
    struct moving *moving = *(struct moving *const *)context;
    bool all = true;
    for (int i = 0; i < moving->item->n; i++) {
        const struct nccl_call *call = &moving->item->calls[i];
        while (moving->moved[i] <= length_of(call) && !is_behind(moving, i) && move_some(call, &moving->moved[i]))
            ;
        all &= moving->moved[i] > length_of(call);
    }
    return all;
}

static void run_messages(const struct item *item)
{
    struct moving moving = {.item = item, .moved = calloc((size_t)item->n, sizeof *moving.moved)};
    struct moving *at = &moving;
    if (!moving.moved) abort();
    nccl_world_wait(item->comm->world, all_moved, &at, item->comm, item->stream);
    free(moving.moved);
}

/* ---- items ---- */

static bool is_my_turn(const void *context)
{
    const struct item *item = context;
    return atomic_load(&item->comm->turn) == item->number;
}

static bool never(const void *context)
{
    (void)context;
    return false;
}

static void work(const struct item *item)
{
    struct ncclComm *comm = item->comm;
    ncclResult_t planned = nccl_planned("ncclAsync", comm->device);
    if (planned != ncclSuccess) {
        atomic_store(&comm->error, planned);
        nccl_world_wait(comm->world, never, NULL, comm, item->stream);
    } else if (item->calls->asked.verb >= NCCL_SEND)
        run_messages(item);
    else
        run_collective(item);
}

/* Operations of a communicator go in their order, on whatever streams they are. */
static int run(void *context)
{
    struct item *item = context;
    struct ncclComm *comm = item->comm;
    if (!cards_is_ending(item->stream) && nccl_world_wait(comm->world, is_my_turn, item, comm, item->stream))
        work(item);
    atomic_store(&comm->turn, item->number + 1);
    atomic_fetch_sub(&comm->n_left, 1);
    nccl_world_changed(comm->world);
    free(item);
    return 0;
}

/* Once a launch of the graph, whose edges are its order. */
static int run_captured(void *context)
{
    struct item *item = context;
    struct ncclComm *comm = item->comm;
    if (atomic_load(&comm->gone) && !atomic_load(&comm->aborted)) nccl_breach("a graph of a communicator that is gone");
    item->number = atomic_load(&comm->turn);
    item->stream = cards_running_stream();
    if (!atomic_load(&comm->aborted)) work(item);
    atomic_fetch_add(&comm->n_again, 1);
    nccl_world_changed(comm->world);
    return 0;
}

static void drop_captured(void *context)
{
    struct item *item = context;
    atomic_fetch_sub(&item->comm->n_captured, 1);
    free(item);
}

ncclResult_t nccl_item_issue(const struct nccl_call *calls, int n)
{
    struct ncclComm *comm = calls->comm;
    const bool captured = cards_is_capturing(calls->stream);
    struct item *item = malloc(sizeof *item + (size_t)n * sizeof *calls);
    if (!item) abort();
    item->comm = comm;
    item->stream = calls->stream;
    item->n = n;
    memcpy(item->calls, calls, (size_t)n * sizeof *calls);
    for (int i = 0; i < n; i++) item->calls[i].asked.captured = captured;
    if (!captured) item->number = comm->n_items++;
    if (captured)
        atomic_fetch_add(&comm->n_captured, 1);
    else
        atomic_fetch_add(&comm->n_left, 1);
    int device = cards_thread_device(); /* NCCL takes its communicator's, and gives the caller's back */
    cudaSetDevice(comm->device);
    int failed = captured ? cards_enqueue(calls->stream, run_captured, drop_captured, item)
                          : cards_enqueue(calls->stream, run, NULL, item);
    cudaSetDevice(device);
    if (failed) {
        if (captured)
            atomic_fetch_sub(&comm->n_captured, 1);
        else
            atomic_fetch_sub(&comm->n_left, 1);
        free(item);
        return nccl_fail(ncclUnhandledCudaError, "a kernel's launch failed");
    }
    if (captured) return ncclSuccess;
    comm->stream = calls->stream;
    comm->number = cards_stream_items(calls->stream);
    nccl_world_changed(comm->world);
    return ncclSuccess;
}
