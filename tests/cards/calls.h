/* Every call of the libraries that may fail goes through one of calls.c's, which counts it, lets it fail where
 * FAKE_CARDS_FAIL says so, and else hands it to the stand-in. The stand-ins' own files see this before everything else
 * (Makefile), so that what they define as cudaMalloc is fake_cudaMalloc to the linker; so are their calls of each
 * other, which are neither counted nor fail.
 *
 * 1: a call that ends something does so and fails then, as CUDA's do: an end that reports an error of before. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

/* Counts a call for its card, and says whether it fails, and with what (failures.c). */
bool cards_call_fails(const char *name, long first, long second, atomic_int *counts, long *code_p);

/* clang-format off */
#define CARDS_EACH_CALL(X)                                                                                             \
    X(cublasCreate, 0) X(cublasDestroy, 1) X(cublasDgemmStridedBatched_64, 0) X(cublasGemmStridedBatchedEx_64, 0)      \
    X(cublasGetProperty, 0) X(cublasSetAtomicsMode, 0) X(cublasSetMathMode, 0) X(cublasSetStream, 0)                   \
    X(cublasSetWorkspace, 0) X(cublasSgemmStridedBatched_64, 0) X(cudaDeviceCanAccessPeer, 0)                          \
    X(cudaDeviceEnablePeerAccess, 0) X(cudaDriverGetVersion, 0) X(cudaEventCreateWithFlags, 0)                         \
    X(cudaEventDestroy, 1) X(cudaEventElapsedTime, 0) X(cudaEventQuery, 0) X(cudaEventRecord, 0)                       \
    X(cudaEventSynchronize, 0) X(cudaFree, 1) X(cudaFreeHost, 1) X(cudaGetDeviceCount, 0)                              \
    X(cudaGetDeviceProperties, 0) X(cudaGetLastError, 0) X(cudaGraphDestroy, 1) X(cudaGraphExecDestroy, 1)             \
    X(cudaGraphInstantiateWithFlags, 0) X(cudaGraphLaunch, 0) X(cudaHostAlloc, 0) X(cudaLaunchKernel, 0) X(cudaMalloc, 0)                     \
    X(cudaMemGetInfo, 0) X(cudaMemcpyAsync, 0) X(cudaMemcpyPeerAsync, 0) X(cudaMemsetAsync, 0)                         \
    X(cudaRuntimeGetVersion, 0) X(cudaSetDevice, 0) X(cudaStreamBeginCapture, 0) X(cudaStreamCreateWithFlags, 0)       \
    X(cudaStreamDestroy, 1) X(cudaStreamEndCapture, 1) X(cudaStreamQuery, 0) X(cudaStreamSynchronize, 0)               \
    X(cudaStreamWaitEvent, 0) X(cudnnConvolutionBackwardData, 0) X(cudnnConvolutionBackwardFilter, 0)                  \
    X(cudnnConvolutionForward, 0) X(cudnnCreate, 0) X(cudnnCreateConvolutionDescriptor, 0)                             \
    X(cudnnCreateFilterDescriptor, 0) X(cudnnCreateTensorDescriptor, 0) X(cudnnDestroy, 1)                             \
    X(cudnnDestroyConvolutionDescriptor, 1) X(cudnnDestroyFilterDescriptor, 1) X(cudnnDestroyTensorDescriptor, 1)      \
    X(cudnnGetConvolutionBackwardDataAlgorithm_v7, 0) X(cudnnGetConvolutionBackwardDataWorkspaceSize, 0)               \
    X(cudnnGetConvolutionBackwardFilterAlgorithm_v7, 0) X(cudnnGetConvolutionBackwardFilterWorkspaceSize, 0)           \
    X(cudnnGetConvolutionForwardAlgorithm_v7, 0) X(cudnnGetConvolutionForwardWorkspaceSize, 0)                         \
    X(cudnnSetConvolution2dDescriptor, 0) X(cudnnSetConvolutionMathType, 0) X(cudnnSetFilter4dDescriptor, 0)           \
    X(cudnnSetStream, 0) X(cudnnSetTensor4dDescriptor, 0) X(ncclAllGather, 0) X(ncclAllReduce, 0)                      \
    X(ncclBroadcast, 0) X(ncclCommAbort, 1) X(ncclCommCount, 0) X(ncclCommDeregister, 1) X(ncclCommDestroy, 1)         \
    X(ncclCommGetAsyncError, 0) X(ncclCommInitRankConfig, 0) X(ncclCommRegister, 0) X(ncclCommSplit, 0)                \
    X(ncclCommUserRank, 0) X(ncclGetUniqueId, 0) X(ncclGetVersion, 0) X(ncclGroupEnd, 1) X(ncclGroupStart, 0)          \
    X(ncclMemAlloc, 0) X(ncclMemFree, 1) X(ncclRecv, 0) X(ncclReduce, 0) X(ncclReduceScatter, 0) X(ncclSend, 0)        \
    X(nvmlDeviceGetClockInfo, 0) X(nvmlDeviceGetComputeRunningProcesses_v3, 0) X(nvmlDeviceGetCount_v2, 0)             \
    X(nvmlDeviceGetCurrPcieLinkGeneration, 0) X(nvmlDeviceGetCurrPcieLinkWidth, 0)                                     \
    X(nvmlDeviceGetCurrentClocksEventReasons, 0) X(nvmlDeviceGetHandleByIndex_v2, 0) X(nvmlDeviceGetHandleByUUID, 0)   \
    X(nvmlDeviceGetMaxPcieLinkGeneration, 0) X(nvmlDeviceGetMemoryInfo, 0) X(nvmlDeviceGetMemoryInfo_v2, 0)            \
    X(nvmlDeviceGetName, 0)                                                                                            \
    X(nvmlDeviceGetNvLinkErrorCounter, 0) X(nvmlDeviceGetNvLinkRemoteDeviceType, 0) X(nvmlDeviceGetNvLinkState, 0)     \
    X(nvmlDeviceGetNvLinkVersion, 0) X(nvmlDeviceGetPciInfo_v3, 0) X(nvmlDeviceGetPcieReplayCounter, 0)                \
    X(nvmlDeviceGetPowerUsage, 0) X(nvmlDeviceGetTopologyCommonAncestor, 0)                                            \
    X(nvmlDeviceGetTotalEnergyConsumption, 0) X(nvmlDeviceGetUUID, 0) X(nvmlDeviceGetUtilizationRates, 0)              \
    X(nvmlInit_v2, 0)
/* clang-format on */

#ifndef CARDS_CALLS
#define CARDS_PRAGMA(text)      _Pragma(#text)
#define CARDS_RENAME(name, ...) CARDS_PRAGMA(redefine_extname name fake_##name)
CARDS_EACH_CALL(CARDS_RENAME)
#endif
