/* The table of the module el_nccl.so, the program's only access to NCCL. module/link.c fills it, tests with a fake.
 * Functions return NCCL's results: 0 is success. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/comm/comm.h"

/* Made by one member and sent to the others. */
struct el_nccl_id {
    char bytes[128];
};

enum el_nccl_result {
    EL_NCCL_OK = 0,
    EL_NCCL_SYSTEM = 2,
    EL_NCCL_BAD_ARGUMENT = 4,
    EL_NCCL_BAD_USE = 5,
    EL_NCCL_REMOTE = 6,
    EL_NCCL_IN_PROGRESS = 7
};

struct el_nccl_api {
    int (*get_version)(int *version_p); /* 22809 means 2.28.9 */
    int (*get_unique_id)(struct el_nccl_id *id_p);
    /* Member `rank` of `n`, on CUDA device `device`. Within a group, the communicator exists from the group's end
     * on. */
    int (*comm_open)(void **comm_p, int n, const struct el_nccl_id *id, int rank, int device);
    int (*comm_abort)(void *comm);
    int (*comm_destroy)(void *comm);
    int (*async_error)(void *comm, int *error_p);
    int (*group_start)(void);
    int (*group_end)(void);
    /* Ranked by key. NULL: the library has none (before 2.18). Blocking. Collective. */
    int (*comm_split)(void *comm, int color, int key, void **comm_p);
    int (*comm_place)(void *comm, int *rank_p, int *size_p);
    /* In place, result is the data or the member's own part of the larger side. Only the root's result of a reduce is
     * used. */
    int (*all_reduce)(const void *data, void *result, size_t count, enum el_dtype dtype,
                      enum el_comm_reduction reduction, void *comm, void *stream);
    int (*broadcast)(const void *data, void *result, size_t count, enum el_dtype dtype, int root, void *comm,
                     void *stream);
    int (*reduce)(const void *data, void *result, size_t count, enum el_dtype dtype, enum el_comm_reduction reduction,
                  int root, void *comm, void *stream);
    int (*reduce_scatter)(const void *data, void *result, size_t count, enum el_dtype dtype,
                          enum el_comm_reduction reduction, void *comm, void *stream);
    int (*all_gather)(const void *data, void *result, size_t count, enum el_dtype dtype, void *comm, void *stream);
    int (*send)(const void *data, size_t count, enum el_dtype dtype, int peer, void *comm, void *stream);
    int (*receive)(void *result, size_t count, enum el_dtype dtype, int peer, void *comm, void *stream);
    /* Device memory that NCCL uses without a copy. All four NULL: the library has none (before 2.19). */
    int (*memory_take)(void **memory_p, size_t bytes, int device);
    int (*memory_free)(void *memory, int device);
    int (*memory_register)(void *comm, void *memory, size_t bytes, void **handle_p);
    int (*memory_deregister)(void *comm, void *handle);
    const char *(*result_text)(int result);
    const char *(*last_error)(void); /* of this process; "" */
    const char *(*host_id)(void);    /* NCCL_HOSTID; "" */
    bool (*shares_cards)(void);      /* two ranks may share a card: NCCL_MULTI_RANK_GPU_ENABLE, from 2.30 on */
    bool (*launches_block)(void);    /* CUDA_LAUNCH_BLOCKING is set: the host waits for each kernel */
    int (*queues)(void);             /* hardware queues of a card: CUDA_DEVICE_MAX_CONNECTIONS; 0: not set */
};

/* Errors: EL_ERR_ABSENT with what is missing. */
enum el_status el_nccl_api_open(const struct el_nccl_api **api_p);
/* "2.28.9", of the library in use. Errors: as above. */
enum el_status el_nccl_version(char *text, size_t bytes);

const struct el_nccl_api *el_nccl_module(void);
