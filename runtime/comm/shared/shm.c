/* Processes of one host: el_comm_alloc's memory is used in place, other memory goes through staging areas (engine.h).
 * One segment holds faces and staging areas. A waiting rank checks every 100 ms whether the other lives. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/process.h"
#include "runtime/comm/shared/shm.h"

struct segment_rank {
    _Alignas(64) int pid;
    _Alignas(4096) char staging[EL_SHARED_STAGING_BYTES];
};

/* [size] faces, then [size] of these */
static size_t faces_bytes(int size)
{
    return ((size_t)size * sizeof(struct el_shared_face) + 4095) / 4096 * 4096;
}

static size_t segment_bytes(int size)
{
    return faces_bytes(size) + (size_t)size * sizeof(struct segment_rank);
}

static struct segment_rank *segment_ranks(const struct el_shm_region *segment, int size)
{
    return (struct segment_rank *)(segment->base + faces_bytes(size));
}

static enum el_status check_alive(void *owner, int rank)
{
    const struct el_shm_group *group = owner;
    if (!el_process_is_gone(group->pids[rank], group->files[rank])) return EL_OK;
    return el_fail(EL_ERR_PEER, "shm communicator: rank %d (process %d) is gone", rank, group->pids[rank]);
}

static const struct el_shared_ways ways = {
    .place = el_shm_place, .address = el_shm_address, .check_alive = check_alive};

static enum el_status open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes)
{
    struct el_shm_group *group = state;
    struct el_lent_memory links = {.address = 0};
    EL_TRY(el_shm_alloc(state, el_shared_links_bytes(group->shared.size), mine, &links));
    group->links = links.owner;
    return el_shared_open_mail(&group->shared, EL_OK, partners, (void *)links.address, boxes, bytes);
}

/* Memory of el_comm_alloc belongs to its buffers and stays. */
static void close_group(void *state)
{
    struct el_shm_group *group = state;
    if (!group) return;
    for (int i = 0; i < EL_SHM_RANKS_MAX; i++)
        if (group->files[i] >= 0) close(group->files[i]);
    for (struct el_shm_region *region = group->regions, *next; region; region = next) {
        next = region->next;
        region->group = NULL;
        if (region->number == 1 || region == group->links) el_shm_release(region);
    }
    free(group->shared.staging);
    el_shared_close(&group->shared);
    free(group);
}

static enum el_status open_group(int rank, int size, struct el_shm_group **group_p)
{
    if (size > EL_SHM_RANKS_MAX) return el_fail(EL_ERR_INVALID, "shm communicator: at most %d ranks", EL_SHM_RANKS_MAX);
    struct el_shm_group *group = calloc(1, sizeof *group);
    if (!group) return el_fail(EL_ERR_HOST_MEMORY, "shm communicator: no memory");
    for (int i = 0; i < EL_SHM_RANKS_MAX; i++) group->files[i] = -1;
    group->shared.rank = rank;
    group->shared.size = size;
    *group_p = group;
    return EL_OK;
}

static enum el_status enter(struct el_shm_group *group, int file)
{
    struct el_shared *shared = &group->shared;
    int rank = shared->rank, size = shared->size;
    size_t bytes = segment_bytes(size), own = faces_bytes(size) + (size_t)rank * sizeof(struct segment_rank);
    EL_TRY(el_shm_map(group, file, bytes, own, sizeof(struct segment_rank)));
    struct segment_rank *ranks = segment_ranks(group->regions, size);
    EL_TRY(el_shared_open(shared, "shm", rank, size, (struct el_shared_face *)group->regions->base));
    EL_TRY(el_shared_ready(shared));
    shared->ways = &ways;
    shared->owner = group;
    shared->staging = calloc((size_t)size, sizeof *shared->staging);
    if (!shared->staging) return el_fail(EL_ERR_HOST_MEMORY, "shm communicator: no memory");
    for (int i = 0; i < size; i++) shared->staging[i] = ranks[i].staging;
    shared->scratch = ranks[rank].staging;
    shared->scratch_bytes = EL_SHARED_STAGING_BYTES;
    ranks[rank].pid = (int)getpid();
    return EL_OK;
}

static void meet_processes(struct el_shm_group *group)
{
    const struct segment_rank *ranks = segment_ranks(group->regions, group->shared.size);
    for (int i = 0; i < group->shared.size; i++) {
        group->pids[i] = ranks[i].pid;
        if (i != group->shared.rank) group->files[i] = el_process_file(group->pids[i]);
    }
}

static enum el_status create_segment(int size, int *file_p)
{
    EL_TRY(el_shm_create(segment_bytes(size), false, file_p));
    if (posix_fallocate(*file_p, 0, (off_t)faces_bytes(size)) == 0) return EL_OK;
    close(*file_p);
    *file_p = -1;
    return el_fail(EL_ERR_HOST_MEMORY, "shm communicator: %zu bytes of shared memory", segment_bytes(size));
}

/* Every rank makes all collective calls, whatever failed before. */
static enum el_status join(struct el_shm_group *group, struct el_bootstrap *bootstrap)
{
    int file = -1, first[2] = {(int)getpid(), -1};
    enum el_status status = EL_OK;
    if (group->shared.rank == 0) status = create_segment(group->shared.size, &file);
    first[1] = file;
    status = el_bootstrap_agree(bootstrap, status);
    if (status == EL_OK) status = el_bootstrap_broadcast(bootstrap, first, sizeof first);
    if (status == EL_OK) {
        if (group->shared.rank != 0) status = el_shm_open(first[0], first[1], &file);
        if (status == EL_OK) status = enter(group, file);
        status = el_bootstrap_agree(bootstrap, status);
    }
    if (status == EL_OK) meet_processes(group);
    if (file >= 0) close(file);
    return status;
}

static enum el_status open_ranks(struct el_bootstrap *bootstrap, void **state_p)
{
    struct el_shm_group *group = NULL;
    enum el_status mine = open_group(el_bootstrap_rank(bootstrap), el_bootstrap_size(bootstrap), &group);
    enum el_status status = el_bootstrap_agree(bootstrap, mine);
    if (status == EL_OK) status = join(group, bootstrap);
    if (status != EL_OK) {
        close_group(group);
        return status;
    }
    *state_p = group;
    return EL_OK;
}

/* ---- splitting: the parent group replaces the bootstrap ---- */

static enum el_status join_part(struct el_shm_group *parent, struct el_shm_group *group, int leader)
{
    uint64_t numbers[EL_SHM_RANKS_MAX];
    int file = -1;
    enum el_status mine = EL_OK;
    if (group && group->shared.rank == 0) mine = create_segment(group->shared.size, &file);
    enum el_status status = el_shared_agree(&parent->shared, mine, (uint64_t)file, numbers);
    if (status == EL_OK) {
        if (group && group->shared.rank != 0) mine = el_shm_open(parent->pids[leader], (int)numbers[leader], &file);
        if (group && mine == EL_OK) mine = enter(group, file);
        status = el_shared_agree(&parent->shared, mine, 0, NULL);
    }
    if (status == EL_OK && group) meet_processes(group);
    if (file >= 0) close(file);
    return status;
}

static enum el_status split(void *state, enum el_status mine, struct el_comm_split *split)
{
    struct el_shm_group *parent = state, *group = NULL;
    int members[EL_SHM_RANKS_MAX] = {0};
    uint64_t words[EL_SHM_RANKS_MAX];
    EL_TRY(el_shared_agree(&parent->shared, mine, el_comm_split_word(split), words));
    el_comm_split_plan(words, parent->shared.size, parent->shared.rank, split, members);
    if (split->size > 1) mine = open_group(split->rank, split->size, &group);
    enum el_status status = el_shared_agree(&parent->shared, mine, 0, NULL);
    if (status == EL_OK) status = join_part(parent, group, members[0]);
    if (status != EL_OK) {
        close_group(group);
        return status;
    }
    split->state = group;
    return EL_OK;
}

static const struct el_comm_ops shm_ops = {
    .verbs = EL_SHARED_VERBS,
    .run = el_shared_run,
    .choose = el_shared_choose,
    .alloc = el_shm_alloc,
    .open_mailboxes = open_mailboxes,
    .set_timeout = el_shared_set_timeout,
    .split = split,
    .abort = el_shared_abort,
    .close = close_group,
};

const struct el_comm_backend el_comm_shm_backend = {.name = "shm", .ops = &shm_ops, .open_ranks = open_ranks};
