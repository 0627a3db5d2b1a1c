/* The table of the module el_nccl.so: all that the program knows of NCCL. module/link.c fills it with the library's
 * functions, tests with their own; runtime/comm/nccl_*.c use it, and are built without NCCL. Functions return NCCL's
 * results: 0 is well. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/comm/comm.h"

/* What all members of a communicator must know about it: one makes it and sends it to the others. */
struct el_nccl_id {
    char bytes[128];
};

/* Results that mean something to us; module/link.c holds them against the library's own. */
enum el_nccl_result {
    EL_NCCL_OK = 0,
    EL_NCCL_SYSTEM = 2,
    EL_NCCL_BAD_ARGUMENT = 4,
    EL_NCCL_BAD_USE = 5,
    EL_NCCL_REMOTE = 6,
    EL_NCCL_IN_PROGRESS = 7
};

struct el_nccl_api {
    int (*get_version)(int *version_p); /* 22809 is 2.28.9 */
    int (*get_unique_id)(struct el_nccl_id *id_p);
    /* Member `rank` of `n`, on CUDA's device `device`. Within a group the communicator is there when the group ends. */
    int (*comm_open)(void **comm_p, int n, const struct el_nccl_id *id, int rank, int device);
    int (*comm_abort)(void *comm);
    int (*comm_destroy)(void *comm);
    int (*async_error)(void *comm, int *error_p);
    int (*group_start)(void);
    int (*group_end)(void);
    /* Members of one color get a communicator of their own, ranked by key. NULL: the library has none (before 2.18).
     * Blocking. Collective. */
    int (*comm_split)(void *comm, int color, int key, void **comm_p);
    int (*comm_place)(void *comm, int *rank_p, int *size_p);
    /* Results may be the data, or the member's own part of the larger side; a reduce's is looked at on the root alone.
     */
    int (*all_reduce)(const void *data, void *result, size_t count, enum el_dtype dtype,
                      enum el_comm_reduction reduction, void *comm, void *stream);
    int (*broadcast)(const void *data, void *result, size_t count, enum el_dtype dtype, int root, void *comm,
                     void *stream);
    int (*reduce)(const void *data, void *result, size_t count, enum el_dtype dtype, enum el_comm_reduction reduction,
                  int root, void *comm, void *stream);
    int (*reduce_scatter)(const void *data, void *result, size_t count, enum el_dtype dtype,
                          enum el_comm_reduction reduction, void *comm, void *stream);
    int (*all_gather)(const void *data, void *result, size_t count, enum el_dtype dtype, void *comm, void *stream);
    /* Messages between two members; those of one group go at the same time. */
    int (*send)(const void *data, size_t count, enum el_dtype dtype, int peer, void *comm, void *stream);
    int (*receive)(void *result, size_t count, enum el_dtype dtype, int peer, void *comm, void *stream);
    /* Device memory that NCCL can work in without a copy of its own, on CUDA's device `device`. NULL, all four: the
     * library has none (before 2.19). */
    int (*memory_take)(void **memory_p, size_t bytes, int device);
    int (*memory_free)(void *memory, int device);
    int (*memory_register)(void *comm, void *memory, size_t bytes, void **handle_p);
    int (*memory_deregister)(void *comm, void *handle);
    const char *(*result_text)(int result);
    const char *(*last_error)(void); /* the library's words for this process's last failure; "" */
    const char *(*host_id)(void);    /* NCCL_HOSTID as the library takes it; "" */
    bool (*shares_cards)(void);      /* two ranks may be on one card: NCCL_MULTI_RANK_GPU_ENABLE, from 2.30 on */
    bool (*launches_block)(void);    /* CUDA_LAUNCH_BLOCKING is set: the host waits for each kernel's end */
};

/* Opens the module at first use. Errors: EL_ERR_ABSENT with what is missing. */
enum el_status el_nccl_api_open(const struct el_nccl_api **api_p);
/* "2.28.9": of the library that would be used. Errors: as above. */
enum el_status el_nccl_version(char *text, size_t bytes);

/* The module's one symbol. */
const struct el_nccl_api *el_nccl_module(void);
