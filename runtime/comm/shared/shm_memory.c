/* Memory that all ranks of a host map: memfds that one rank creates and the others open through /proc. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/comm/shared/shm.h"

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

enum el_status el_shm_create(size_t bytes, bool huge, int *file_p)
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

enum el_status el_shm_open(int pid, int number, int *file_p)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return el_fail_errno("shm communicator: %s of another rank", path);
    *file_p = file;
    return EL_OK;
}

enum el_status el_shm_map(struct el_shm_group *group, int file, size_t length, size_t own, size_t own_bytes)
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

void el_shm_release(void *owner)
{
    struct el_shm_region *region = owner;
    if (region->group) unlink_region(region);
    munmap(region->base, region->length);
    free(region);
}

bool el_shm_place(void *owner, const void *address, size_t bytes, struct el_shared_place *place_p)
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

void *el_shm_address(void *owner, const struct el_shared_place *place)
{
    const struct el_shm_group *group = owner;
    for (const struct el_shm_region *region = group->regions; region; region = region->next)
        if (region->number == place->region) return region->base + place->offset;
    return NULL;
}

static enum el_status map_all(struct el_shm_group *group, const uint64_t *files, size_t stride, size_t bytes, int *file)
{
    const struct el_shared *shared = &group->shared;
    if (shared->rank != 0) EL_TRY(el_shm_open(group->pids[0], (int)files[0], file));
    return el_shm_map(group, *file, stride * (size_t)shared->size, stride * (size_t)shared->rank, bytes);
}

/* Each rank's part is page-aligned and as large as the largest. */
enum el_status el_shm_alloc(void *state, size_t bytes, enum el_status mine, struct el_lent_memory *memory_p)
{
    struct el_shm_group *group = state;
    struct el_shared *shared = &group->shared;
    uint64_t files[EL_SHM_RANKS_MAX], sizes[EL_SHM_RANKS_MAX];
    size_t most = bytes;
    int file = -1;
    EL_TRY(el_shared_agree(shared, mine, bytes, sizes));
    for (int i = 0; i < shared->size; i++) most = sizes[i] > most ? sizes[i] : most;
    size_t page = most < HUGE_BYTES ? PAGE_BYTES : HUGE_BYTES, stride = (most / page + 1) * page;
    if (shared->rank == 0) mine = el_shm_create(stride * (size_t)shared->size, page == HUGE_BYTES, &file);
    enum el_status status = el_shared_agree(shared, mine, (uint64_t)file, files);
    if (status == EL_OK) {
        mine = map_all(group, files, stride, bytes, &file);
        status = el_shared_agree(shared, mine, 0, NULL);
        if (status != EL_OK && mine == EL_OK) el_shm_release(group->regions);
    }
    if (file >= 0) close(file);
    if (status != EL_OK) return status;
    struct el_shm_region *region = group->regions;
    madvise(region->base, region->length, MADV_POPULATE_WRITE); /* avoids page faults in the first steps */
    *memory_p = (struct el_lent_memory){
        .address = (uintptr_t)region->base + stride * (size_t)shared->rank, .release = el_shm_release, .owner = region};
    return EL_OK;
}
