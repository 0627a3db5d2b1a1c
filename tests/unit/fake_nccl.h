/* A table of NCCL's functions that is not NCCL: it notes what it is asked, fails where it is told to, and otherwise
 * does what NCCL would, by the meetings of fake_nccl_meetings.h. Wrong use is a breach: members that ask for different
 * things, messages to oneself outside a group, streams of other devices, addresses that are no device memory. */
#ifndef EL_TESTS_FAKE_NCCL_H
#define EL_TESTS_FAKE_NCCL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/comm/nccl/comm_nccl.h"
#include "tests/unit/fake_nccl_meetings.h"

enum { CALLS_MAX = 64, FAKE_WORLDS_MAX = 256, FAKE_HALVES_MAX = 4 * FAKE_RANKS_MAX * FAKE_RANKS_MAX };

struct fake_comm {
    struct fake_world *world;
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
    int n_calls, n_open, n_aborted, n_destroyed;
    int fail_verb, fail_open_rank, fail_end; /* results of the next such call; -1: of no rank */
    int async_error;
    struct el_nccl_id last_id;
    const char *host_id;
    bool launches_block;
    int split_color, split_key; /* of the last split, and where it is to put this member */
    int split_rank, split_size;
    struct fake_world *worlds[FAKE_WORLDS_MAX];
    int n_worlds;
    struct fake_split *splits;
    int n_taken, n_registered; /* memory of the library's */
    bool no_memory;            /* it gives none */
} nccl;

/* A thread's groups. */
static _Thread_local struct {
    int depth, n_grouped;
    struct fake_place grouped[FAKE_HALVES_MAX];
} nccl_mine;

/* What the members of a communicator said in their n-th split. */
struct fake_split {
    const struct fake_world *of;
    int number, n_here, color[FAKE_RANKS_MAX], key[FAKE_RANKS_MAX];
    struct fake_split *next;
};
static pthread_cond_t nccl_met = PTHREAD_COND_INITIALIZER;

static void note(const char *what, const void *comm)
{
    struct fake_call *call = &nccl.calls[nccl.n_calls++ % CALLS_MAX];
    *call = (struct fake_call){.comm = comm, .depth = nccl_mine.depth};
    snprintf(call->what, sizeof call->what, "%s", what);
}

static int nccl_get_version(int *version_p)
{
    *version_p = 22809;
    return 0;
}

static int nccl_get_unique_id(struct el_nccl_id *id_p)
{
    static int n;
    memset(id_p, 0, sizeof *id_p);
    snprintf(id_p->bytes, sizeof id_p->bytes, "id of process %d, number %d", (int)getpid(), n++);
    return 0;
}

/* ---- communicators ---- */

static struct fake_world *nccl_world(const struct el_nccl_id *id, int n)
{
    for (int w = 0; w < nccl.n_worlds; w++)
        if (memcmp(&nccl.worlds[w]->id, id, sizeof *id) == 0) return nccl.worlds[w];
    struct fake_world *world = calloc(1, sizeof *world);
    if (!world || nccl.n_worlds == FAKE_WORLDS_MAX) abort();
    world->id = *id;
    world->n = n;
    return nccl.worlds[nccl.n_worlds++] = world;
}

static struct fake_comm *nccl_member(struct fake_world *world, int rank, int device)
{
    struct fake_comm *comm = calloc(1, sizeof *comm);
    if (!comm) abort();
    *comm = (struct fake_comm){.world = world, .rank = rank, .n = world->n, .device = device};
    world->n_comms++;
    nccl.n_open++;
    return comm;
}

static int nccl_comm_open(void **comm_p, int n, const struct el_nccl_id *id, int rank, int device)
{
    nccl.last_id = *id;
    if (nccl.fail_open_rank == rank) {
        note("open", NULL);
        return EL_NCCL_BAD_USE;
    }
    *comm_p = nccl_member(nccl_world(id, n), rank, device);
    note("open", *comm_p);
    return 0;
}

static struct fake_split *nccl_split(const struct fake_world *of, int number)
{
    struct fake_split *split = nccl.splits;
    while (split && (split->of != of || split->number != number)) split = split->next;
    if (split) return split;
    split = calloc(1, sizeof *split);
    if (!split) abort();
    *split = (struct fake_split){.of = of, .number = number, .next = nccl.splits};
    return nccl.splits = split;
}

/* Waits for all others, each in its thread. Returns how many there are of this one's color, and which of them it is;
 * -1: all was aborted, and the communicator may be gone. */
static int nccl_agree(const struct fake_comm *comm, int color, int key, int number, int *place_p)
{
    const struct fake_world *world = comm->world;
    struct fake_split *split = nccl_split(world, number);
    int size = 0, place = 0, rank = comm->rank;
    split->color[rank] = color;
    split->key[rank] = key;
    split->n_here++;
    pthread_cond_broadcast(&nccl_met);
    while (split->n_here < world->n && !world->aborted) pthread_cond_wait(&nccl_met, &fake_lock);
    for (int r = 0; r < world->n; r++) {
        if (split->color[r] != color) continue;
        size++;
        place += split->key[r] < key || (split->key[r] == key && r < rank);
    }
    *place_p = place;
    return world->aborted ? -1 : size;
}

/* Members of other processes: the test says what they made of it (`split_size`). */
static int nccl_comm_split(void *argument, int color, int key, void **comm_p)
{
    FAKE_GUARD;
    struct fake_comm *comm = argument;
    int number = comm->world->n_splits[comm->rank]++, place = nccl.split_rank, size = nccl.split_size;
    struct el_nccl_id id = {{0}};
    note("split", comm);
    nccl.split_color = color;
    nccl.split_key = key;
    if (size == 0) size = nccl_agree(comm, color, key, number, &place);
    if (size < 0) return EL_NCCL_REMOTE;
    if (color < 0) return 0;
    snprintf(id.bytes, sizeof id.bytes, "%.90s, split %d, color %d", comm->world->id.bytes, number, color);
    *comm_p = nccl_member(nccl_world(&id, size), place, comm->device);
    return 0;
}

static int nccl_comm_place(void *argument, int *rank_p, int *size_p)
{
    *rank_p = ((struct fake_comm *)argument)->rank;
    *size_p = ((struct fake_comm *)argument)->n;
    return 0;
}

static int nccl_end(const char *what, struct fake_comm *comm, int *count)
{
    note(what, comm);
    ++*count;
    nccl.n_open--;
    comm->world->n_comms--;
    free(comm);
    return 0;
}

static int nccl_comm_abort(void *comm)
{
    FAKE_GUARD;
    fake.stuck = false;
    ((struct fake_comm *)comm)->world->aborted = true;
    pthread_cond_broadcast(&nccl_met);
    return nccl_end("abort", comm, &nccl.n_aborted);
}

static int nccl_comm_destroy(void *comm)
{
    FAKE_GUARD;
    return nccl_end("destroy", comm, &nccl.n_destroyed);
}

static int nccl_async_error(void *comm, int *error_p)
{
    (void)comm;
    *error_p = nccl.async_error;
    return 0;
}

/* ---- groups ---- */

static int nccl_group_start(void)
{
    FAKE_GUARD;
    note("start", NULL);
    nccl_mine.depth++;
    return 0;
}

static void nccl_flush(void)
{
    while (nccl_mine.n_grouped > 0) {
        struct fake_place mine[FAKE_HALVES_MAX];
        int n = 0, left = 0;
        struct fake_place first = nccl_mine.grouped[0];
        for (int i = 0; i < nccl_mine.n_grouped; i++) {
            if (nccl_mine.grouped[i].stream == first.stream && nccl_mine.grouped[i].world == first.world)
                mine[n++] = nccl_mine.grouped[i];
            else
                nccl_mine.grouped[left++] = nccl_mine.grouped[i];
        }
        nccl_mine.n_grouped = left;
        nccl_push(mine, n);
    }
}

static int nccl_group_end(void)
{
    FAKE_GUARD;
    nccl_mine.depth--;
    note("end", NULL);
    if (nccl_mine.depth == 0) nccl_flush();
    return nccl.fail_end;
}

/* ---- calls ---- */

static void nccl_check_memory(const void *address)
{
    const char *at = address;
    if (at < fake.memory || at >= fake.memory + FAKE_MEMORY_BYTES) fake_breach("NCCL gets what is no device memory");
}

static void nccl_join(const struct fake_comm *comm, const struct fake_meeting *wanted, int half, const void *data,
                      void *result, void *stream)
{
    struct fake_meeting *meeting = nccl_meeting(comm->world, wanted);
    if (((struct fake_stream *)stream)->device->index != comm->device) fake_breach("a stream of another device");
    meeting->halves[half] = (struct fake_half){.data = data, .result = result, .stream = stream};
    struct fake_place place = {.world = comm->world, .meeting = meeting, .half = half, .stream = stream};
    if (nccl_mine.depth == 0)
        nccl_push(&place, 1);
    else
        nccl_mine.grouped[nccl_mine.n_grouped++] = place;
}

static int nccl_collective(enum el_comm_verb verb, const void *data, void *result, size_t count, enum el_dtype dtype,
                           enum el_comm_reduction reduction, int root, void *argument, void *stream)
{
    FAKE_GUARD;
    struct fake_comm *comm = argument;
    note("collective", comm);
    struct fake_call *call = &nccl.calls[(nccl.n_calls - 1) % CALLS_MAX];
    *call = (struct fake_call){.comm = comm,
                               .depth = nccl_mine.depth,
                               .verb = verb,
                               .data = data,
                               .result = result,
                               .stream = stream,
                               .count = count,
                               .root = root};
    snprintf(call->what, sizeof call->what, "collective");
    if (nccl.fail_verb) return nccl.fail_verb;
    if (verb != EL_COMM_BROADCAST || comm->rank == root) nccl_check_memory(data);
    if (verb != EL_COMM_REDUCE || comm->rank == root) nccl_check_memory(result);
    struct fake_meeting wanted = {.verb = verb,
                                  .reduction = reduction,
                                  .dtype = dtype,
                                  .count = count,
                                  .root = root,
                                  .n = comm->n,
                                  .from = -1,
                                  .to = -1,
                                  .number = comm->world->issued[comm->rank]++};
    nccl_join(comm, &wanted, comm->rank, data, result, stream);
    return 0;
}

static int nccl_all_reduce(const void *data, void *result, size_t count, enum el_dtype dtype,
                           enum el_comm_reduction reduction, void *comm, void *stream)
{
    return nccl_collective(EL_COMM_ALL_REDUCE, data, result, count, dtype, reduction, 0, comm, stream);
}

static int nccl_broadcast(const void *data, void *result, size_t count, enum el_dtype dtype, int root, void *comm,
                          void *stream)
{
    return nccl_collective(EL_COMM_BROADCAST, data, result, count, dtype, EL_COMM_SUM, root, comm, stream);
}

static int nccl_reduce(const void *data, void *result, size_t count, enum el_dtype dtype,
                       enum el_comm_reduction reduction, int root, void *comm, void *stream)
{
    return nccl_collective(EL_COMM_REDUCE, data, result, count, dtype, reduction, root, comm, stream);
}

static int nccl_reduce_scatter(const void *data, void *result, size_t count, enum el_dtype dtype,
                               enum el_comm_reduction reduction, void *comm, void *stream)
{
    return nccl_collective(EL_COMM_REDUCE_SCATTER, data, result, count, dtype, reduction, 0, comm, stream);
}

static int nccl_all_gather(const void *data, void *result, size_t count, enum el_dtype dtype, void *comm, void *stream)
{
    return nccl_collective(EL_COMM_ALL_GATHER, data, result, count, dtype, EL_COMM_SUM, 0, comm, stream);
}

/* Outside a group a send to oneself would wait for ever, and so may two that send to each other. */
static int nccl_message(bool sends, const void *data, void *result, size_t count, enum el_dtype dtype, int peer,
                        void *argument, void *stream)
{
    FAKE_GUARD;
    struct fake_comm *comm = argument;
    note(sends ? "send" : "receive", comm);
    nccl_check_memory(sends ? data : result);
    if (nccl_mine.depth == 0 && peer == comm->rank) fake_breach("a message to oneself, and no group");
    if (nccl.fail_verb) return nccl.fail_verb;
    int from = sends ? comm->rank : peer, to = sends ? peer : comm->rank;
    int *number = sends ? &comm->world->sent[from][to] : &comm->world->received[from][to];
    struct fake_meeting wanted = {
        .verb = EL_COMM_SEND, .dtype = dtype, .count = count, .n = 2, .from = from, .to = to, .number = (*number)++};
    nccl_join(comm, &wanted, sends ? 0 : 1, data, result, stream);
    return 0;
}

static int nccl_send(const void *data, size_t count, enum el_dtype dtype, int peer, void *comm, void *stream)
{
    return nccl_message(true, data, NULL, count, dtype, peer, comm, stream);
}

static int nccl_receive(void *result, size_t count, enum el_dtype dtype, int peer, void *comm, void *stream)
{
    return nccl_message(false, NULL, result, count, dtype, peer, comm, stream);
}

/* ---- memory ---- */

static struct fake_device nccl_card; /* whose memory the library takes */

static void nccl_count_taken(int by)
{
    FAKE_GUARD;
    nccl.n_taken += by;
}

static int nccl_memory_take(void **memory_p, size_t bytes, int device)
{
    uintptr_t address;
    (void)device;
    if (nccl.no_memory) return EL_NCCL_BAD_USE;
    fake_map(&nccl_card, bytes, &address);
    *memory_p = (void *)address;
    nccl_count_taken(1);
    return 0;
}

static int nccl_memory_free(void *memory, int device)
{
    (void)memory;
    (void)device;
    nccl_count_taken(-1);
    return 0;
}

static int nccl_memory_register(void *comm, void *memory, size_t bytes, void **handle_p)
{
    FAKE_GUARD;
    (void)comm;
    (void)bytes;
    nccl.n_registered++;
    *handle_p = memory;
    return 0;
}

static int nccl_memory_deregister(void *comm, void *handle)
{
    FAKE_GUARD;
    if (!comm || !handle) fake_breach("memory is taken back from nobody");
    nccl.n_registered--;
    return 0;
}

/* ---- words ---- */

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
                                       .comm_split = nccl_comm_split,
                                       .comm_place = nccl_comm_place,
                                       .all_reduce = nccl_all_reduce,
                                       .broadcast = nccl_broadcast,
                                       .reduce = nccl_reduce,
                                       .reduce_scatter = nccl_reduce_scatter,
                                       .all_gather = nccl_all_gather,
                                       .send = nccl_send,
                                       .receive = nccl_receive,
                                       .memory_take = nccl_memory_take,
                                       .memory_free = nccl_memory_free,
                                       .memory_register = nccl_memory_register,
                                       .memory_deregister = nccl_memory_deregister,
                                       .result_text = nccl_result_text,
                                       .last_error = nccl_last_error,
                                       .host_id = nccl_host_id,
                                       .launches_block = nccl_launches_block};

static void reset(enum fake_policy policy)
{
    fake_reset(policy);
    for (int w = 0; w < nccl.n_worlds; w++) {
        for (struct fake_meeting *next, *m = nccl.worlds[w]->meetings; m; m = next) {
            next = m->next;
            free(m);
        }
        free(nccl.worlds[w]);
    }
    for (struct fake_split *next, *split = nccl.splits; split; split = next) {
        next = split->next;
        free(split);
    }
    memset(&nccl, 0, sizeof nccl);
    nccl.fail_open_rank = -1;
}

#endif
