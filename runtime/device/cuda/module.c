/* The module el_cuda.so: fills cuda_api.h's table and names the kernels. The only file of the devices with CUDA's
 * headers. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/module.h"
#include "runtime/device/cuda_api.h"

#ifndef EL_CUDA_CAPABILITY_MIN
#define EL_CUDA_CAPABILITY_MIN 75
#endif

_Static_assert((int)EL_CUDA_SUCCESS == (int)cudaSuccess, "CUDA's codes");
_Static_assert((int)EL_CUDA_ERROR_MEMORY == (int)cudaErrorMemoryAllocation, "CUDA's codes");
_Static_assert((int)EL_CUDA_ERROR_STUB_LIBRARY == (int)cudaErrorStubLibrary, "CUDA's codes");
_Static_assert((int)EL_CUDA_ERROR_OLD_DRIVER == (int)cudaErrorInsufficientDriver, "CUDA's codes");
_Static_assert((int)EL_CUDA_ERROR_BUSY == (int)cudaErrorDevicesUnavailable, "CUDA's codes");
_Static_assert((int)EL_CUDA_ERROR_NO_DEVICE == (int)cudaErrorNoDevice, "CUDA's codes");
_Static_assert((int)EL_CUDA_ERROR_NOT_READY == (int)cudaErrorNotReady, "CUDA's codes");
_Static_assert((int)EL_CUDA_ERROR_PEER_ALREADY == (int)cudaErrorPeerAccessAlreadyEnabled, "CUDA's codes");
_Static_assert((int)EL_CUDA_ERROR_SYSTEM_NOT_READY == (int)cudaErrorSystemNotReady, "CUDA's codes");
_Static_assert((int)EL_CUDA_ERROR_DRIVER_MISMATCH == (int)cudaErrorSystemDriverMismatch, "CUDA's codes");
_Static_assert((int)EL_CUDA_ERROR_COMPATIBILITY == (int)cudaErrorCompatNotSupportedOnDevice, "CUDA's codes");
_Static_assert((int)EL_CUDA_ERROR_UNKNOWN == (int)cudaErrorUnknown, "CUDA's codes");

struct nvml_memory {
    unsigned long long total, free, used;
};

/* NVML needs no context. */
struct nvml {
    int (*find)(const char *, void **), (*memory)(void *, struct nvml_memory *);
};

static bool nvml_open(struct nvml *nvml)
{
    void *library;
    if (el_nvml_library(&library) != EL_OK) return false;
    *(void **)&nvml->find = dlsym(library, "nvmlDeviceGetHandleByUUID");
    *(void **)&nvml->memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
    return nvml->find && nvml->memory;
}

static int64_t used_bytes(const char *uuid)
{
    struct nvml nvml;
    struct nvml_memory figures = {0};
    void *device = NULL;
    bool known = nvml_open(&nvml) && nvml.find(uuid, &device) == 0 && nvml.memory(device, &figures) == 0;
    return known ? (int64_t)figures.used : -1;
}

/* As NVML and nvidia-smi write it: "GPU-" and groups of 4, 2, 2, 2 and 6 bytes. */
static void write_uuid(const unsigned char *bytes, char *text, size_t capacity)
{
    size_t used = (size_t)snprintf(text, capacity, "GPU");
    for (int i = 0; i < 16 && used < capacity; i++) {
        bool group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(text + used, capacity - used, "%s%02x", group ? "-" : "", bytes[i]);
    }
}

/* CUDA gives a MIG part's UUID with the prefix GPU; NVML's begins with MIG. */
static void name_part(char *uuid)
{
    struct nvml nvml;
    void *device;
    char part[64];
    snprintf(part, sizeof part, "MIG%.56s", uuid + strlen("GPU"));
    if (!nvml_open(&nvml)) return;
    if (nvml.find(uuid, &device) != 0 && nvml.find(part, &device) == 0) memcpy(uuid, part, strlen(part));
}

static int device_properties(struct el_device_identity *identity_p, int device)
{
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error != cudaSuccess) return (int)error;
    *identity_p = (struct el_device_identity){.uuid = ""};
    snprintf(identity_p->model, sizeof identity_p->model, "%.95s", properties.name);
    write_uuid((const unsigned char *)properties.uuid.bytes, identity_p->uuid, sizeof identity_p->uuid);
    name_part(identity_p->uuid);
    identity_p->capability = 10 * properties.major + properties.minor;
    return 0;
}

/* Plain wrappers. Pinned memory is portable between the process's cards. */
#define EL_CUDART_LIST(X)                                                                                              \
    X(DriverGetVersion, (int *version_p), cudaDriverGetVersion(version_p))                                             \
    X(GetDeviceCount, (int *n_p), cudaGetDeviceCount(n_p))                                                             \
    X(SetDevice, (int device), cudaSetDevice(device))                                                                  \
    X(InitContext, (void), cudaFree(NULL))                                                                             \
    X(MemGetInfo, (size_t * free_p, size_t * total_p), cudaMemGetInfo(free_p, total_p))                                \
    X(Malloc, (void **address_p, size_t bytes), cudaMalloc(address_p, bytes))                                          \
    X(Free, (void *address), cudaFree(address))                                                                        \
    X(HostAlloc, (void **address_p, size_t bytes), cudaHostAlloc(address_p, bytes, cudaHostAllocPortable))             \
    X(FreeHost, (void *address), cudaFreeHost(address))                                                                \
    X(MemcpyAsync, (void *destination, const void *source, size_t bytes, void *stream),                                \
      cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, stream))                                          \
    X(MemcpyPeerAsync, (void *destination, int to, const void *source, int from, size_t bytes, void *stream),          \
      cudaMemcpyPeerAsync(destination, to, source, from, bytes, stream))                                               \
    X(DeviceCanAccessPeer, (int *can_p, int device, int peer), cudaDeviceCanAccessPeer(can_p, device, peer))           \
    X(DeviceEnablePeerAccess, (int peer), cudaDeviceEnablePeerAccess(peer, 0))                                         \
    X(StreamCreate, (void **stream_p), cudaStreamCreateWithFlags((cudaStream_t *)stream_p, cudaStreamNonBlocking))     \
    X(StreamDestroy, (void *stream), cudaStreamDestroy(stream))                                                        \
    X(StreamSynchronize, (void *stream), cudaStreamSynchronize(stream))                                                \
    X(StreamQuery, (void *stream), cudaStreamQuery(stream))                                                            \
    X(StreamWaitEvent, (void *stream, void *event), cudaStreamWaitEvent(stream, event, 0))                             \
    X(EventCreate, (void **event_p, bool timed),                                                                       \
      cudaEventCreateWithFlags((cudaEvent_t *)event_p, timed ? cudaEventDefault : cudaEventDisableTiming))             \
    X(EventDestroy, (void *event), cudaEventDestroy(event))                                                            \
    X(EventRecord, (void *event, void *stream), cudaEventRecord(event, stream))                                        \
    X(EventQuery, (void *event), cudaEventQuery(event))                                                                \
    X(EventSynchronize, (void *event), cudaEventSynchronize(event))                                                    \
    X(EventElapsedTime, (float *ms_p, void *from, void *to), cudaEventElapsedTime(ms_p, from, to))                     \
    X(StreamBeginCapture, (void *stream), cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal))            \
    X(StreamEndCapture, (void *stream, void **graph_p), cudaStreamEndCapture(stream, (cudaGraph_t *)graph_p))          \
    X(GraphInstantiate, (void **exec_p, void *graph),                                                                  \
      cudaGraphInstantiateWithFlags((cudaGraphExec_t *)exec_p, graph, 0))                                              \
    X(GraphLaunch, (void *exec, void *stream), cudaGraphLaunch(exec, stream))                                          \
    X(GraphDestroy, (void *graph), cudaGraphDestroy(graph))                                                            \
    X(GraphExecDestroy, (void *exec), cudaGraphExecDestroy(exec))                                                      \
    X(GetLastError, (void), cudaGetLastError())

#define EL_CUDART_DEFINE(name, parameters, call)                                                                       \
    static int call_##name parameters                                                                                  \
    {                                                                                                                  \
        return (int)call;                                                                                              \
    }
EL_CUDART_LIST(EL_CUDART_DEFINE)
#undef EL_CUDART_DEFINE

/* CUDA 11's fails with an old driver, which is just when it is needed. */
static int runtime_version(int *version_p)
{
    if (cudaRuntimeGetVersion(version_p) != cudaSuccess) {
        cudaGetLastError();
        *version_p = CUDART_VERSION;
    }
    return 0;
}

static const char *error_name(int code)
{
    return cudaGetErrorName((cudaError_t)code);
}

static const char *error_string(int code)
{
    return cudaGetErrorString((cudaError_t)code);
}

static const struct el_cuda_api api = {.RuntimeGetVersion = runtime_version,
                                       .GetDeviceProperties = device_properties,
                                       .GetErrorName = error_name,
                                       .GetErrorString = error_string,
#define EL_CUDART_ROW(name, parameters, call) .name = call_##name,
                                       EL_CUDART_LIST(EL_CUDART_ROW)
#undef EL_CUDART_ROW
};

const struct el_cuda_module *el_cuda_module(void)
{
    static const struct el_cuda_module module = {.api = &api,
                                                 .kernels = el_kernels_cuda,
                                                 .capability_min = EL_CUDA_CAPABILITY_MIN,
                                                 .open_cublas = el_cuda_native_open_cublas,
                                                 .open_cudnn = el_cuda_native_open_cudnn,
                                                 .give_cublas = el_cuda_native_give_cublas,
                                                 .close_native = el_cuda_native_close,
                                                 .libraries = el_cuda_libraries,
                                                 .cudnn_missing = el_cuda_cudnn_missing,
                                                 .used_bytes = used_bytes};
    return &module;
}
