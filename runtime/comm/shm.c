/* The communicator between processes of one host, through one shared memory segment: each rank has a few slots there,
 * into which it stages a piece of its data at a time, small enough to be still in a cache when the others read it.
 *
 * All ranks walk through the same sequence of pieces, numbered across operations. Of each piece a rank may say that it
 * is `staged` (others may read it), `summed` (its part of the sum is there), `taken` (it reads nothing of it any more):
 * three counters of each rank, which only it raises. A slot is written again when every other rank has taken the piece
 * that was in it; so nobody waits at the end of an operation, and ranks may be a few pieces apart.
 *
 * The segment is a memfd that rank 0 makes and the others open through /proc: it has no name, so nothing is left behind
 * however the ranks end. A rank that died raises no counter: who waits looks every 100 ms whether it still lives.
 *
 * All-reduce, two ranks: each stages all of a piece and sums both itself (one wait a piece, and no byte moves more than
 * it would otherwise). More ranks: reduce-scatter, then all-gather, of each piece. This file is not for several hosts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/process.h"
#include "runtime/comm/comm_ops.h"
#include "runtime/comm/flag.h"
#include "runtime/comm/sum.h"

/* PIECE_BYTES: measured with two ranks on two cores of one socket with 2 MiB of second-level cache. */
enum { SLOTS = 4, PIECE_BYTES = 128 * 1024, RANKS_MAX = 128, PATIENCE_NS = 100000000 };

struct shm_slot {
    struct el_comm_task task; /* pointers are the owner's own: compared are the others */
    _Alignas(64) unsigned char data[PIECE_BYTES];
};

struct shm_rank {
    struct el_flag staged, summed, taken;
    _Alignas(64) int pid;
    struct shm_slot slots[SLOTS];
};

struct shm_group {
    int rank, size;
    struct shm_rank *ranks; /* [size], shared */
    uint32_t next;          /* number of the next piece */
    int files[RANKS_MAX];   /* pidfds of the others; -1 where the kernel has none */
};

/* A piece of an operation. */
struct piece {
    uint32_t number;
    size_t begin, count; /* elements */
    size_t width;
};

static void abort_group(void *state)
{
    struct shm_group *group = state;
    for (int i = 0; i < group->size; i++) {
        el_flag_abort(&group->ranks[i].staged);
        el_flag_abort(&group->ranks[i].summed);
        el_flag_abort(&group->ranks[i].taken);
    }
}

/* `flag` is one of rank `of`'s. */
static enum el_status wait_for(struct shm_group *group, int of, struct el_flag *flag, uint32_t count)
{
    for (;;) {
        enum el_flag_result result = el_flag_wait(flag, count, PATIENCE_NS);
        if (result == EL_FLAG_REACHED) return EL_OK;
        if (result == EL_FLAG_ABORTED) return el_fail(EL_ERR_PEER, "shm communicator: another rank failed");
        if (el_process_is_gone(group->ranks[of].pid, group->files[of])) {
            abort_group(group);
            return el_fail(EL_ERR_PEER, "shm communicator: rank %d (process %d) is gone", of, group->ranks[of].pid);
        }
    }
}

static struct shm_slot *slot_of(const struct shm_group *group, int rank, const struct piece *piece)
{
    return &group->ranks[rank].slots[piece->number % SLOTS];
}

static void *place_of(const struct el_comm_task *task, const struct piece *piece, size_t element)
{
    return (char *)task->data + (piece->begin + element) * piece->width;
}

/* Makes this rank's slot for the piece free: all others have taken what was in it. */
static enum el_status claim(struct shm_group *group, const struct piece *piece, const struct el_comm_task *task)
{
    for (int i = 0; i < group->size; i++)
        if (i != group->rank) EL_TRY(wait_for(group, i, &group->ranks[i].taken, piece->number + 1 - SLOTS));
    slot_of(group, group->rank, piece)->task = *task;
    return EL_OK;
}

static void raise_to(struct el_flag *flag, const struct piece *piece)
{
    el_flag_raise(flag, piece->number + 1);
}

static enum el_status wait_staged(struct shm_group *group, int of, const struct piece *piece,
                                  const struct el_comm_task *mine)
{
    EL_TRY(wait_for(group, of, &group->ranks[of].staged, piece->number + 1));
    if (el_comm_same_task(&slot_of(group, of, piece)->task, mine)) return EL_OK;
    return el_fail(EL_ERR_INTERNAL, "shm communicator: ranks %d and %d issued different operations", group->rank, of);
}

/* Piece `i` of an operation whose first piece has the number `first`. */
static bool get_piece(const struct shm_group *group, const struct el_comm_task *task, size_t i, struct piece *piece_p)
{
    size_t width = el_dtype_bytes(task->dtype), most = PIECE_BYTES / width, begin = i * most;
    if (begin >= task->count) return false;
    *piece_p = (struct piece){.number = group->next + (uint32_t)i,
                              .begin = begin,
                              .count = task->count - begin < most ? task->count - begin : most,
                              .width = width};
    return true;
}

/* ---- all-reduce of two ---- */

static enum el_status stage_all(struct shm_group *group, const struct el_comm_task *task, const struct piece *piece)
{
    EL_TRY(claim(group, piece, task));
    memcpy(slot_of(group, group->rank, piece)->data, place_of(task, piece, 0), piece->count * piece->width);
    raise_to(&group->ranks[group->rank].staged, piece);
    return EL_OK;
}

static enum el_status sum_two(struct shm_group *group, const struct el_comm_task *task, const struct piece *piece)
{
    int other = 1 - group->rank;
    EL_TRY(wait_staged(group, other, piece, task));
    void *mine = place_of(task, piece, 0);
    const void *ins[2];
    ins[group->rank] = mine;
    ins[other] = slot_of(group, other, piece)->data;
    el_sum(task->dtype, &mine, 1, ins, 2, piece->count);
    raise_to(&group->ranks[group->rank].taken, piece);
    return EL_OK;
}

/* ---- all-reduce of more ---- */

static enum el_status stage_for_others(struct shm_group *group, const struct el_comm_task *task,
                                       const struct piece *piece)
{
    EL_TRY(claim(group, piece, task));
    unsigned char *data = slot_of(group, group->rank, piece)->data;
    size_t begin = el_comm_chunk(piece->count, group->size, group->rank);
    size_t end = el_comm_chunk(piece->count, group->size, group->rank + 1);
    memcpy(data, place_of(task, piece, 0), begin * piece->width);
    memcpy(data + end * piece->width, place_of(task, piece, end), (piece->count - end) * piece->width);
    raise_to(&group->ranks[group->rank].staged, piece);
    return EL_OK;
}

/* The sum goes into this rank's data, and into the place in its slot that nobody needed: its own chunk. */
static enum el_status sum_own(struct shm_group *group, const struct el_comm_task *task, const struct piece *piece)
{
    size_t begin = el_comm_chunk(piece->count, group->size, group->rank);
    size_t count = el_comm_chunk(piece->count, group->size, group->rank + 1) - begin;
    const void *ins[RANKS_MAX];
    void *outs[2] = {place_of(task, piece, begin), slot_of(group, group->rank, piece)->data + begin * piece->width};
    for (int i = 0; i < group->size; i++) {
        if (i != group->rank) EL_TRY(wait_staged(group, i, piece, task));
        ins[i] = i == group->rank ? outs[0] : slot_of(group, i, piece)->data + begin * piece->width;
    }
    el_sum(task->dtype, outs, 2, ins, group->size, count);
    raise_to(&group->ranks[group->rank].summed, piece);
    return EL_OK;
}

static enum el_status take_sums(struct shm_group *group, const struct el_comm_task *task, const struct piece *piece)
{
    for (int i = 0; i < group->size; i++) {
        if (i == group->rank) continue;
        EL_TRY(wait_for(group, i, &group->ranks[i].summed, piece->number + 1));
        size_t begin = el_comm_chunk(piece->count, group->size, i);
        size_t count = el_comm_chunk(piece->count, group->size, i + 1) - begin;
        memcpy(place_of(task, piece, begin), slot_of(group, i, piece)->data + begin * piece->width,
               count * piece->width);
    }
    raise_to(&group->ranks[group->rank].taken, piece);
    return EL_OK;
}

/* Stage `s` works on piece i - s, so that others have had time for what it waits for. */
static enum el_status all_reduce(struct shm_group *group, const struct el_comm_task *task, size_t n_pieces)
{
    typedef enum el_status (*stage)(struct shm_group *, const struct el_comm_task *, const struct piece *);
    static const stage of_two[] = {stage_all, sum_two}, of_more[] = {stage_for_others, sum_own, take_sums};
    const stage *stages = group->size == 2 ? of_two : of_more;
    size_t n_stages = group->size == 2 ? 2 : 3;
    struct piece piece;
    for (size_t i = 0; i < n_pieces + n_stages - 1; i++)
        for (size_t s = 0; s < n_stages; s++)
            if (i >= s && get_piece(group, task, i - s, &piece)) EL_TRY(stages[s](group, task, &piece));
    return EL_OK;
}

/* ---- broadcast, reduce ---- */

static enum el_status broadcast(struct shm_group *group, const struct el_comm_task *task, size_t n_pieces)
{
    struct piece piece;
    for (size_t i = 0; i < n_pieces && get_piece(group, task, i, &piece); i++) {
        if (group->rank == task->root) {
            EL_TRY(stage_all(group, task, &piece));
        } else {
            EL_TRY(wait_staged(group, task->root, &piece, task));
            memcpy(place_of(task, &piece, 0), slot_of(group, task->root, &piece)->data, piece.count * piece.width);
        }
        raise_to(&group->ranks[group->rank].taken, &piece);
    }
    return EL_OK;
}

static enum el_status sum_at_root(struct shm_group *group, const struct el_comm_task *task, const struct piece *piece)
{
    const void *ins[RANKS_MAX] = {place_of(task, piece, 0)};
    void *out = (char *)task->result + piece->begin * piece->width;
    for (int i = 0, k = 1; i < group->size; i++) {
        if (i == group->rank) continue;
        EL_TRY(wait_staged(group, i, piece, task));
        ins[k++] = slot_of(group, i, piece)->data;
    }
    el_sum(task->dtype, &out, 1, ins, group->size, piece->count);
    return EL_OK;
}

static enum el_status reduce(struct shm_group *group, const struct el_comm_task *task, size_t n_pieces)
{
    struct piece piece;
    for (size_t i = 0; i < n_pieces && get_piece(group, task, i, &piece); i++) {
        if (group->rank == task->root)
            EL_TRY(sum_at_root(group, task, &piece));
        else
            EL_TRY(stage_all(group, task, &piece));
        raise_to(&group->ranks[group->rank].taken, &piece);
    }
    return EL_OK;
}

static enum el_status run(void *state, const struct el_comm_task *task)
{
    static enum el_status (*const verbs[EL_COMM_VERB_COUNT])(struct shm_group *, const struct el_comm_task *,
                                                             size_t) = {
        [EL_COMM_ALL_REDUCE] = all_reduce, [EL_COMM_BROADCAST] = broadcast, [EL_COMM_REDUCE] = reduce};
    struct shm_group *group = state;
    size_t most = PIECE_BYTES / el_dtype_bytes(task->dtype), n_pieces = (task->count + most - 1) / most;
    EL_TRY(verbs[task->verb](group, task, n_pieces));
    group->next += (uint32_t)n_pieces;
    return EL_OK;
}

/* ---- life ---- */

static size_t segment_bytes(int size)
{
    return (size_t)size * sizeof(struct shm_rank);
}

static void close_group(void *state)
{
    struct shm_group *group = state;
    for (int i = 0; i < group->size; i++)
        if (group->files[i] >= 0) close(group->files[i]);
    if (group->ranks) munmap(group->ranks, segment_bytes(group->size));
    free(group);
}

/* Rank 0. ftruncate alone promises nothing: fallocate fails here where writing would end in SIGBUS later. */
static enum el_status make_segment(size_t bytes, int *file_p)
{
    int file = memfd_create("evenload", MFD_CLOEXEC);
    if (file < 0) return el_fail_errno("shm communicator: memfd_create");
    int number = ftruncate(file, (off_t)bytes) == 0 ? posix_fallocate(file, 0, (off_t)bytes) : errno;
    if (number != 0) {
        close(file);
        errno = number;
        return el_fail_errno("shm communicator: %zu bytes of shared memory", bytes);
    }
    *file_p = file;
    return EL_OK;
}

static enum el_status map_segment(struct shm_group *group, int file)
{
    void *memory = mmap(NULL, segment_bytes(group->size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (memory == MAP_FAILED) return el_fail_errno("shm communicator: mmap");
    group->ranks = memory;
    group->ranks[group->rank].pid = (int)getpid();
    return EL_OK;
}

/* Every rank calls every collective of this, whatever failed before: nobody is left waiting. */
static enum el_status join(struct shm_group *group, struct el_bootstrap *bootstrap)
{
    char path[64] = "";
    int file = -1;
    enum el_status status = EL_OK;
    if (group->rank == 0) {
        status = make_segment(segment_bytes(group->size), &file);
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), file);
    }
    status = el_bootstrap_agree(bootstrap, status);
    if (status == EL_OK) status = el_bootstrap_broadcast(bootstrap, path, sizeof path);
    if (status == EL_OK) {
        if (group->rank != 0 && (file = open(path, O_RDWR | O_CLOEXEC)) < 0)
            status = el_fail_errno("shm communicator: %s of rank 0", path);
        if (status == EL_OK) status = map_segment(group, file);
        status = el_bootstrap_agree(bootstrap, status); /* also: all pids are there */
    }
    for (int i = 0; status == EL_OK && group->ranks && i < group->size; i++)
        if (i != group->rank) group->files[i] = el_process_file(group->ranks[i].pid);
    if (file >= 0) close(file);
    return status;
}

static enum el_status open_ranks(struct el_bootstrap *bootstrap, void **state_p)
{
    int size = el_bootstrap_size(bootstrap);
    if (size > RANKS_MAX) return el_fail(EL_ERR_INVALID, "shm communicator: at most %d ranks", RANKS_MAX);
    struct shm_group *group = calloc(1, sizeof *group);
    enum el_status status =
        el_bootstrap_agree(bootstrap, group ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "shm communicator: no memory"));
    if (!group) return status == EL_OK ? EL_ERR_HOST_MEMORY : status;
    *group = (struct shm_group){.rank = el_bootstrap_rank(bootstrap), .size = size};
    for (int i = 0; i < size; i++) group->files[i] = -1;
    if (status == EL_OK) status = join(group, bootstrap);
    if (status != EL_OK) {
        close_group(group);
        return status;
    }
    *state_p = group;
    return EL_OK;
}

static const struct el_comm_ops shm_ops = {
    .verbs = EL_COMM_FIRST_VERBS,
    .run = run,
    .abort = abort_group,
    .close = close_group,
};

const struct el_comm_backend el_comm_shm_backend = {.name = "shm", .ops = &shm_ops, .open_ranks = open_ranks};
