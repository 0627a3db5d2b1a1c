/* What the files of the communicator `shm` share: ranks of one host, and the memory that all of them map. */
#pragma once

#include "runtime/comm/shared/engine.h"

enum { EL_SHM_RANKS_MAX = 128 };

/* Memory that all ranks map, each somewhere else; the same number on all. */
struct el_shm_region {
    struct el_shm_group *group; /* NULL: closed */
    uint32_t number;
    char *base;
    size_t length;
    struct el_shm_region *next;
};

struct el_shm_group {
    struct el_shared shared;
    struct el_shm_region *regions; /* the group's own segment, and all of el_comm_alloc */
    uint32_t n_regions;            /* ever made */
    struct el_shm_region *links;   /* of mailboxes; NULL: none */
    int pids[EL_SHM_RANKS_MAX];
    int files[EL_SHM_RANKS_MAX]; /* pidfds of the others; -1 where the kernel has none */
};

/* A file of memory without a name: nothing is left behind however the ranks end. `huge`: in huge pages where some are
 * set aside. */
enum el_status el_shm_create(size_t bytes, bool huge, int *file_p);
/* The file that a process knows by that number. */
enum el_status el_shm_open(int pid, int number, int *file_p);
/* Maps it, and takes pages for `own_bytes` of it from `own` on: fails here where writing would end in SIGBUS later. */
enum el_status el_shm_map(struct el_shm_group *group, int file, size_t length, size_t own, size_t own_bytes);
/* Unmaps a region; an el_lent_memory's. */
void el_shm_release(void *region);

/* For the engine. */
bool el_shm_place(void *owner, const void *address, size_t bytes, struct el_shared_place *place_p);
void *el_shm_address(void *owner, const struct el_shared_place *place);
/* el_comm_ops.alloc */
enum el_status el_shm_alloc(void *state, size_t bytes, enum el_status mine, struct el_lent_memory *memory_p);
