/* NCCL's functions under the table's names, without any decision, so that all decisions are testable without a GPU. */
#include <nccl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/nccl/api.h"

_Static_assert(sizeof(struct el_nccl_id) == sizeof(ncclUniqueId), "the id has NCCL's size");
_Static_assert((int)EL_NCCL_OK == (int)ncclSuccess && (int)EL_NCCL_SYSTEM == (int)ncclSystemError, "NCCL's results");
_Static_assert((int)EL_NCCL_BAD_ARGUMENT == (int)ncclInvalidArgument && (int)EL_NCCL_BAD_USE == (int)ncclInvalidUsage,
               "NCCL's results");
_Static_assert((int)EL_NCCL_REMOTE == (int)ncclRemoteError, "NCCL's results");
/* Non-blocking communicators and their configuration. */
#define HAS_CONFIG (NCCL_VERSION_CODE >= NCCL_VERSION(2, 14, 0))
#if HAS_CONFIG
_Static_assert((int)EL_NCCL_IN_PROGRESS == (int)ncclInProgress, "NCCL's results");
#endif

static const ncclDataType_t types[EL_DTYPE_COUNT] = {
    [EL_F32] = ncclFloat32, [EL_F64] = ncclFloat64,       [EL_I32] = ncclInt32, [EL_U8] = ncclUint8,
    [EL_F16] = ncclFloat16, [EL_BF16] = (ncclDataType_t)9 /* ncclBfloat16: hidden without cuda_bf16.h */};

/* The others are refused in comm_nccl.c. */
static const ncclRedOp_t reductions[EL_COMM_REDUCTION_COUNT] = {[EL_COMM_SUM] = ncclSum,
                                                                [EL_COMM_PRODUCT] = ncclProd,
                                                                [EL_COMM_MIN] = ncclMin,
                                                                [EL_COMM_MAX] = ncclMax,
                                                                [EL_COMM_AVERAGE] = ncclAvg};

/* Communicators must block until an operation is queued. The variable, or NCCL's settings file, would override
 * comm_open; NCCL reads both at its first call. */
__attribute__((constructor)) static void make_blocking(void)
{
    setenv("NCCL_COMM_BLOCKING", "1", 1);
}

static int get_version(int *version_p)
{
    return ncclGetVersion(version_p);
}

static int get_unique_id(struct el_nccl_id *id_p)
{
    ncclUniqueId id;
    ncclResult_t result = ncclGetUniqueId(&id);
    if (result == ncclSuccess) memcpy(id_p->bytes, id.internal, sizeof id_p->bytes);
    return result;
}

/* CUDA's error for a refused card; NULL: none since the last query. */
static _Atomic(const char *) refused;

static ncclResult_t turn_to(int device)
{
    cudaError_t error = cudaSetDevice(device);
    if (error == cudaSuccess) return ncclSuccess;
    cudaGetLastError(); /* or the next kernel would report it */
    atomic_store(&refused, cudaGetErrorString(error));
    return ncclUnhandledCudaError;
}

/* Blocking, because a non-blocking communicator starts a thread per call. */
static int comm_open(void **comm_p, int n, const struct el_nccl_id *id, int rank, int device)
{
    ncclUniqueId own;
    memcpy(own.internal, id->bytes, sizeof own.internal);
    bool here = turn_to(device) == ncclSuccess;
    if (!here) rank = -1; /* a failing call tells NCCL's group, which would wait for this member */
#if HAS_CONFIG
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    ncclResult_t result = ncclCommInitRankConfig((ncclComm_t *)comm_p, n, own, rank, &config);
#else
    ncclResult_t result = ncclCommInitRank((ncclComm_t *)comm_p, n, own, rank);
#endif
    return here ? result : ncclUnhandledCudaError;
}

static int comm_abort(void *comm)
{
    return ncclCommAbort(comm);
}

static int comm_destroy(void *comm)
{
    return ncclCommDestroy(comm);
}

static int async_error(void *comm, int *error_p)
{
    ncclResult_t error = ncclSuccess, result = ncclCommGetAsyncError(comm, &error);
    *error_p = error;
    return result;
}

static int group_start(void)
{
    return ncclGroupStart();
}

static int group_end(void)
{
    return ncclGroupEnd();
}

#define HAS_SPLIT  (NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0))
#define HAS_MEMORY (NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0))
#if HAS_SPLIT
static int comm_split(void *comm, int color, int key, void **comm_p)
{
    return ncclCommSplit(comm, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, (ncclComm_t *)comm_p, NULL);
}
#endif

#if HAS_MEMORY
static int memory_take(void **memory_p, size_t bytes, int device)
{
    return turn_to(device) == ncclSuccess ? ncclMemAlloc(memory_p, bytes) : ncclUnhandledCudaError;
}

/* Frees even if the thread cannot switch cards. */
static int memory_free(void *memory, int device)
{
    if (cudaSetDevice(device) != cudaSuccess) cudaGetLastError();
    return ncclMemFree(memory);
}

static int memory_register(void *comm, void *memory, size_t bytes, void **handle_p)
{
    return ncclCommRegister(comm, memory, bytes, handle_p);
}

static int memory_deregister(void *comm, void *handle)
{
    return ncclCommDeregister(comm, handle);
}
#endif

static int comm_place(void *comm, int *rank_p, int *size_p)
{
    ncclResult_t result = ncclCommUserRank(comm, rank_p);
    return result == ncclSuccess ? ncclCommCount(comm, size_p) : result;
}

static int all_reduce(const void *data, void *result, size_t count, enum el_dtype dtype,
                      enum el_comm_reduction reduction, void *comm, void *stream)
{
    return ncclAllReduce(data, result, count, types[dtype], reductions[reduction], comm, stream);
}

static int broadcast(const void *data, void *result, size_t count, enum el_dtype dtype, int root, void *comm,
                     void *stream)
{
    return ncclBroadcast(data, result, count, types[dtype], root, comm, stream);
}

static int reduce(const void *data, void *result, size_t count, enum el_dtype dtype, enum el_comm_reduction reduction,
                  int root, void *comm, void *stream)
{
    return ncclReduce(data, result, count, types[dtype], reductions[reduction], root, comm, stream);
}

static int reduce_scatter(const void *data, void *result, size_t count, enum el_dtype dtype,
                          enum el_comm_reduction reduction, void *comm, void *stream)
{
    return ncclReduceScatter(data, result, count, types[dtype], reductions[reduction], comm, stream);
}

static int all_gather(const void *data, void *result, size_t count, enum el_dtype dtype, void *comm, void *stream)
{
    return ncclAllGather(data, result, count, types[dtype], comm, stream);
}

static int send_to(const void *data, size_t count, enum el_dtype dtype, int peer, void *comm, void *stream)
{
    return ncclSend(data, count, types[dtype], peer, comm, stream);
}

static int receive(void *result, size_t count, enum el_dtype dtype, int peer, void *comm, void *stream)
{
    return ncclRecv(result, count, types[dtype], peer, comm, stream);
}

static const char *result_text(int result)
{
    return ncclGetErrorString((ncclResult_t)result);
}

static const char *last_error(void)
{
    static _Thread_local char own[160];
    const char *cause = atomic_exchange(&refused, NULL), *text = cause ? own : ncclGetLastError(NULL);
    if (cause) snprintf(own, sizeof own, "cudaSetDevice: %.120s", cause);
    return text ? text : "";
}

/* NCCL reads this variable too; no call reports it. */
static const char *host_id(void)
{
    const char *text = getenv("NCCL_HOSTID");
    return text ? text : "";
}

/* Older libraries refuse such ranks. */
static bool shares_cards(void)
{
    const char *text = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    int version;
    return text && strtol(text, NULL, 0) > 0 && ncclGetVersion(&version) == ncclSuccess && version >= 23000;
}

/* CUDA has no call that reports either. */
static int queues(void)
{
    const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    return text ? (int)strtol(text, NULL, 10) : 0;
}

static bool launches_block(void)
{
    const char *text = getenv("CUDA_LAUNCH_BLOCKING");
    return text && *text && strcmp(text, "0") != 0;
}

const struct el_nccl_api *el_nccl_module(void)
{
    static const struct el_nccl_api api = {
        .get_version = get_version,
        .get_unique_id = get_unique_id,
        .comm_open = comm_open,
        .comm_abort = comm_abort,
        .comm_destroy = comm_destroy,
        .async_error = async_error,
        .group_start = group_start,
        .group_end = group_end,
#if HAS_SPLIT
        .comm_split = comm_split,
#endif
        .comm_place = comm_place,
        .all_reduce = all_reduce,
        .broadcast = broadcast,
        .reduce = reduce,
        .reduce_scatter = reduce_scatter,
        .all_gather = all_gather,
        .send = send_to,
        .receive = receive,
#if HAS_MEMORY
        .memory_take = memory_take,
        .memory_free = memory_free,
        .memory_register = memory_register,
        .memory_deregister = memory_deregister,
#endif
        .result_text = result_text,
        .last_error = last_error,
        .host_id = host_id,
        .shares_cards = shares_cards,
        .launches_block = launches_block,
        .queues = queues,
    };
    return &api;
}
