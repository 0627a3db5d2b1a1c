/* The few names of NCCL that runtime/comm/nccl uses, for the build on fake cards. Values and signatures are those of
 * NCCL 2.28. */
#pragma once

#include <cuda_runtime_api.h>
#include <limits.h>
#include <stddef.h>

#define NCCL_VERSION_CODE     22809
#define NCCL_VERSION(x, y, z) ((x)*10000 + (y)*100 + (z))
#define NCCL_UNIQUE_ID_BYTES  128
#define NCCL_SPLIT_NOCOLOR    (-1)
#define NCCL_CONFIG_UNDEF_INT INT_MIN

typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
} ncclResult_t;

/* What of it is asked for. */
typedef struct {
    size_t size;
    int blocking, splitShare;
} ncclConfig_t;
#define NCCL_CONFIG_INITIALIZER                                                                                        \
    {                                                                                                                  \
        sizeof(ncclConfig_t), NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT                                             \
    }

typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 } ncclRedOp_t;
typedef enum {
    ncclInt8 = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclFloat16 = 6,
    ncclFloat32 = 7,
    ncclFloat64 = 8,
    ncclBfloat16 = 9
} ncclDataType_t;

ncclResult_t ncclGetVersion(int *version_p);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id_p);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm_p, int n, ncclUniqueId id, int rank, ncclConfig_t *config);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *comm_p, ncclConfig_t *config);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error_p);
ncclResult_t ncclCommCount(const ncclComm_t comm, int *n_p);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank_p);
ncclResult_t ncclMemAlloc(void **address_p, size_t bytes);
ncclResult_t ncclMemFree(void *address);
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *address, size_t bytes, void **handle_p);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclAllReduce(const void *data, void *result, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *data, void *result, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclReduce(const void *data, void *result, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                        int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *data, void *result, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                               ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void *data, void *result, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void *result, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
