/* Private to the communicator `shm`. */
#pragma once

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

/* An anonymous memory file: nothing is left behind. `huge`: uses reserved huge pages if any. */
enum el_status el_shm_create(size_t bytes, bool huge, int *file_p);
enum el_status el_shm_open(int pid, int number, int *file_p);
/* Maps the file and allocates `own_bytes` of pages from `own` on, so that a shortage fails here and not as SIGBUS
 * later. */
enum el_status el_shm_map(struct el_shm_group *group, int file, size_t length, size_t own, size_t own_bytes);
void el_shm_release(void *region);

bool el_shm_place(void *owner, const void *address, size_t bytes, struct el_shared_place *place_p);
void *el_shm_address(void *owner, const struct el_shared_place *place);
enum el_status el_shm_alloc(void *state, size_t bytes, enum el_status mine, struct el_lent_memory *memory_p);
