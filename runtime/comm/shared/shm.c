/* Processes of one host: el_comm_alloc's memory is used in place, other memory goes through staging areas (engine.h).
 * One segment holds faces and staging areas. A waiting rank checks every 100 ms whether the other lives. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/process.h"
#include "runtime/comm/shared/engine.h"

enum { EL_SHM_RANKS_MAX = 128 };

/* Mapped by all ranks at different addresses, with the same number. */
struct el_shm_region {
    struct el_shm_group *group;
    uint32_t number;
    char *base;
    size_t length;
    struct el_shm_region *next;
};

struct el_shm_group {
    struct el_shared shared;
    struct el_shm_region *regions;
    uint32_t n_regions;          /* ever made */
    struct el_shm_region *links; /* of mailboxes; NULL: none */
    int pids[EL_SHM_RANKS_MAX];
    int files[EL_SHM_RANKS_MAX]; /* the others' pidfds; -1 where the kernel has none */
};

/* Memory that all ranks of a host map: memfds that one rank creates and the others open through /proc. */

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { PAGE_BYTES = 4096, HUGE_BYTES = 2 << 20 };

/* Without reserved huge pages, creation succeeds and allocation fails. */
static int create_huge(size_t bytes)
{
    int file = memfd_create("evenload", MFD_CLOEXEC | MFD_HUGETLB);
    if (file < 0) return -1;
    if (bytes % HUGE_BYTES == 0 && ftruncate(file, (off_t)bytes) == 0 && fallocate(file, 0, 0, (off_t)bytes) == 0)
        return file;
    close(file);
    return -1;
}

static enum el_status shm_create(size_t bytes, bool huge, int *file_p)
{
    int file = huge ? create_huge(bytes) : -1;
    if (file < 0) {
        file = memfd_create("evenload", MFD_CLOEXEC);
        if (file < 0) return el_fail_errno("shm communicator: memfd_create");
        if (ftruncate(file, (off_t)bytes) != 0) {
            enum el_status status = el_fail_errno("shm communicator: %zu bytes of shared memory", bytes);
            close(file);
            return status;
        }
    }
    *file_p = file;
    return EL_OK;
}

/* An anonymous memory file: nothing is left behind. `huge`: uses reserved huge pages if any. */
static enum el_status make_segment(int pid, int number, int *file_p)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return el_fail_errno("shm communicator: %s of another rank", path);
    *file_p = file;
    return EL_OK;
}

static enum el_status shm_map(struct el_shm_group *group, int file, size_t length, size_t own, size_t own_bytes)
{
    struct el_shm_region *region = calloc(1, sizeof *region);
    if (!region) return el_fail(EL_ERR_HOST_MEMORY, "shm communicator: no memory");
    int number = own_bytes ? posix_fallocate(file, (off_t)own, (off_t)own_bytes) : 0;
    void *memory = number ? MAP_FAILED : mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        if (number) errno = number;
        free(region);
        return el_fail_errno("shm communicator: %zu bytes of shared memory", length);
    }
    madvise(memory, length, MADV_HUGEPAGE);
    memset((char *)memory + own, 0, own_bytes); /* places the pages on this rank's NUMA node */
    *region = (struct el_shm_region){
        .group = group, .number = ++group->n_regions, .base = memory, .length = length, .next = group->regions};
    group->regions = region;
    return EL_OK;
}

static void unlink_region(struct el_shm_region *region)
{
    struct el_shm_region **link = &region->group->regions;
    while (*link != region) link = &(*link)->next;
    *link = region->next;
}

/* Maps the file and allocates `own_bytes` of pages from `own` on, so that a shortage fails here and not as SIGBUS
 * later. */
static void shm_release(void *owner)
{
    struct el_shm_region *region = owner;
    if (region->group) unlink_region(region);
    munmap(region->base, region->length);
    free(region);
}

static bool shm_place(void *owner, const void *address, size_t bytes, struct el_shared_place *place_p)
{
    const struct el_shm_group *group = owner;
    uintptr_t at = (uintptr_t)address;
    for (const struct el_shm_region *region = group->regions; region; region = region->next) {
        uintptr_t base = (uintptr_t)region->base;
        if (at < base || at - base > region->length || bytes > region->length - (at - base)) continue;
        *place_p = (struct el_shared_place){.region = region->number, .offset = at - base};
        return true;
    }
    return false;
}

static void *shm_address(void *owner, const struct el_shared_place *place)
{
    const struct el_shm_group *group = owner;
    for (const struct el_shm_region *region = group->regions; region; region = region->next)
        if (region->number == place->region) return region->base + place->offset;
    return NULL;
}

static enum el_status map_all(struct el_shm_group *group, const uint64_t *files, size_t stride, size_t bytes, int *file)
{
    const struct el_shared *shared = &group->shared;
    if (shared->rank != 0) EL_TRY(make_segment(group->pids[0], (int)files[0], file));
    return shm_map(group, *file, stride * (size_t)shared->size, stride * (size_t)shared->rank, bytes);
}

/* Each rank's part is page-aligned and as large as the largest. */
static enum el_status shm_alloc(void *state, size_t bytes, enum el_status mine, struct el_lent_memory *memory_p)
{
    struct el_shm_group *group = state;
    struct el_shared *shared = &group->shared;
    uint64_t files[EL_SHM_RANKS_MAX], sizes[EL_SHM_RANKS_MAX];
    size_t most = bytes;
    int file = -1;
    EL_TRY(el_shared_agree(shared, mine, bytes, sizes));
    for (int i = 0; i < shared->size; i++) most = sizes[i] > most ? sizes[i] : most;
    size_t page = most < HUGE_BYTES ? PAGE_BYTES : HUGE_BYTES, stride = (most / page + 1) * page;
    if (shared->rank == 0) mine = shm_create(stride * (size_t)shared->size, page == HUGE_BYTES, &file);
    enum el_status status = el_shared_agree(shared, mine, (uint64_t)file, files);
    if (status == EL_OK) {
        mine = map_all(group, files, stride, bytes, &file);
        status = el_shared_agree(shared, mine, 0, NULL);
        if (status != EL_OK && mine == EL_OK) shm_release(group->regions);
    }
    if (file >= 0) close(file);
    if (status != EL_OK) return status;
    struct el_shm_region *region = group->regions;
    madvise(region->base, region->length, MADV_POPULATE_WRITE); /* avoids page faults in the first steps */
    *memory_p = (struct el_lent_memory){
        .address = (uintptr_t)region->base + stride * (size_t)shared->rank, .release = shm_release, .owner = region};
    return EL_OK;
}

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

static const struct el_shared_ways ways = {.place = shm_place, .address = shm_address, .check_alive = check_alive};

static enum el_status open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes)
{
    struct el_shm_group *group = state;
    struct el_lent_memory links = {.address = 0};
    EL_TRY(shm_alloc(state, el_shared_links_bytes(group->shared.size), mine, &links));
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
        if (region->number == 1 || region == group->links) shm_release(region);
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
    EL_TRY(shm_map(group, file, bytes, own, sizeof(struct segment_rank)));
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
    EL_TRY(shm_create(segment_bytes(size), false, file_p));
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
        if (group->shared.rank != 0) status = make_segment(first[0], first[1], &file);
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
        if (group && group->shared.rank != 0) mine = make_segment(parent->pids[leader], (int)numbers[leader], &file);
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
    .alloc = shm_alloc,
    .open_mailboxes = open_mailboxes,
    .set_timeout = el_shared_set_timeout,
    .split = split,
    .abort = el_shared_abort,
    .close = close_group,
};

const struct el_comm_backend el_comm_shm_backend = {.name = "shm", .ops = &shm_ops, .open_ranks = open_ranks};
