/* The module el_cuda.so: fills cuda_api.h's table from the CUDA run time, and names the kernels. The only file of the
 * devices that includes CUDA's headers; it decides nothing. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/device/cuda_api.h"

/* The build says for which cards it makes the kernels. */
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

static int driver_version(int *version_p)
{
    return (int)cudaDriverGetVersion(version_p);
}

static int runtime_version(int *version_p)
{
    return (int)cudaRuntimeGetVersion(version_p);
}

static int device_count(int *n_p)
{
    return (int)cudaGetDeviceCount(n_p);
}

/* NVML's own declaration of what it fills in. */
struct nvml_memory {
    unsigned long long total, free, used;
};

/* What we ask NVML, which needs no context. */
struct nvml {
    void *library;
    int (*shut_down)(void), (*find)(const char *, void **), (*memory)(void *, struct nvml_memory *);
};

static void *nvml_symbol(void *library, const char *name)
{
    return library ? dlsym(library, name) : NULL;
}

static void nvml_close(struct nvml *nvml)
{
    if (nvml->shut_down) nvml->shut_down();
    if (nvml->library) dlclose(nvml->library);
}

/* Closed after each question, as it keeps no memory of the card. False: it is not there. */
static bool nvml_open(struct nvml *nvml)
{
    int (*init)(void), (*shut_down)(void);
    *nvml = (struct nvml){.library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL)};
    *(void **)&init = nvml_symbol(nvml->library, "nvmlInit_v2");
    *(void **)&shut_down = nvml_symbol(nvml->library, "nvmlShutdown");
    *(void **)&nvml->find = nvml_symbol(nvml->library, "nvmlDeviceGetHandleByUUID");
    *(void **)&nvml->memory = nvml_symbol(nvml->library, "nvmlDeviceGetMemoryInfo");
    if (init && shut_down && nvml->find && nvml->memory && init() == 0) {
        nvml->shut_down = shut_down;
        return true;
    }
    nvml_close(nvml);
    return false;
}

static int64_t used_bytes(const char *uuid)
{
    struct nvml nvml;
    struct nvml_memory figures = {0};
    void *device = NULL;
    int64_t used = -1;
    if (!nvml_open(&nvml)) return -1;
    if (nvml.find(uuid, &device) == 0 && nvml.memory(device, &figures) == 0) used = (int64_t)figures.used;
    nvml_close(&nvml);
    return used;
}

/* As NVML and nvidia-smi write it: "GPU-" and the bytes in groups of 4, 2, 2, 2 and 6. */
static void write_uuid(const unsigned char *bytes, char *text, size_t capacity)
{
    size_t used = (size_t)snprintf(text, capacity, "GPU");
    for (int i = 0; i < 16 && used < capacity; i++) {
        bool group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        used += (size_t)snprintf(text + used, capacity - used, "%s%02x", group ? "-" : "", bytes[i]);
    }
}

/* CUDA gives the UUID of a part of a card (MIG) as it gives a card's; to everybody else its name begins with MIG. */
static void name_part(char *uuid)
{
    struct nvml nvml;
    void *device;
    char part[64];
    snprintf(part, sizeof part, "MIG%.56s", uuid + strlen("GPU"));
    if (!nvml_open(&nvml)) return;
    if (nvml.find(uuid, &device) != 0 && nvml.find(part, &device) == 0) memcpy(uuid, part, strlen(part));
    nvml_close(&nvml);
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

static int set_device(int device)
{
    return (int)cudaSetDevice(device);
}

static int init_context(void)
{
    return (int)cudaFree(NULL);
}

static int mem_info(size_t *free_p, size_t *total_p)
{
    return (int)cudaMemGetInfo(free_p, total_p);
}

static int device_malloc(void **address_p, size_t bytes)
{
    return (int)cudaMalloc(address_p, bytes);
}

static int device_free(void *address)
{
    return (int)cudaFree(address);
}

/* Usable by every card of the process. */
static int host_alloc(void **address_p, size_t bytes)
{
    return (int)cudaHostAlloc(address_p, bytes, cudaHostAllocPortable);
}

static int host_free(void *address)
{
    return (int)cudaFreeHost(address);
}

static int copy_async(void *destination, const void *source, size_t bytes, void *stream)
{
    return (int)cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, (cudaStream_t)stream);
}

static int copy_peer_async(void *destination, int to, const void *source, int from, size_t bytes, void *stream)
{
    return (int)cudaMemcpyPeerAsync(destination, to, source, from, bytes, (cudaStream_t)stream);
}

static int can_access_peer(int *can_p, int device, int peer)
{
    return (int)cudaDeviceCanAccessPeer(can_p, device, peer);
}

static int enable_peer_access(int peer)
{
    return (int)cudaDeviceEnablePeerAccess(peer, 0);
}

static int stream_create(void **stream_p)
{
    return (int)cudaStreamCreateWithFlags((cudaStream_t *)stream_p, cudaStreamNonBlocking);
}

static int stream_destroy(void *stream)
{
    return (int)cudaStreamDestroy((cudaStream_t)stream);
}

static int stream_synchronize(void *stream)
{
    return (int)cudaStreamSynchronize((cudaStream_t)stream);
}

static int stream_query(void *stream)
{
    return (int)cudaStreamQuery((cudaStream_t)stream);
}

static int stream_wait_event(void *stream, void *event)
{
    return (int)cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0);
}

static int event_create(void **event_p, bool timed)
{
    return (int)cudaEventCreateWithFlags((cudaEvent_t *)event_p, timed ? cudaEventDefault : cudaEventDisableTiming);
}

static int event_destroy(void *event)
{
    return (int)cudaEventDestroy((cudaEvent_t)event);
}

static int event_record(void *event, void *stream)
{
    return (int)cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream);
}

static int event_query(void *event)
{
    return (int)cudaEventQuery((cudaEvent_t)event);
}

static int event_synchronize(void *event)
{
    return (int)cudaEventSynchronize((cudaEvent_t)event);
}

static int event_elapsed(float *ms_p, void *from, void *to)
{
    return (int)cudaEventElapsedTime(ms_p, (cudaEvent_t)from, (cudaEvent_t)to);
}

static int begin_capture(void *stream)
{
    return (int)cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeThreadLocal);
}

static int end_capture(void *stream, void **graph_p)
{
    return (int)cudaStreamEndCapture((cudaStream_t)stream, (cudaGraph_t *)graph_p);
}

static int graph_instantiate(void **exec_p, void *graph)
{
    return (int)cudaGraphInstantiateWithFlags((cudaGraphExec_t *)exec_p, (cudaGraph_t)graph, 0);
}

static int graph_launch(void *exec, void *stream)
{
    return (int)cudaGraphLaunch((cudaGraphExec_t)exec, (cudaStream_t)stream);
}

static int graph_destroy(void *graph)
{
    return (int)cudaGraphDestroy((cudaGraph_t)graph);
}

static int graph_exec_destroy(void *exec)
{
    return (int)cudaGraphExecDestroy((cudaGraphExec_t)exec);
}

static int last_error(void)
{
    return (int)cudaGetLastError();
}

static const char *error_name(int code)
{
    return cudaGetErrorName((cudaError_t)code);
}

static const char *error_string(int code)
{
    return cudaGetErrorString((cudaError_t)code);
}

static const struct el_cuda_api api = {.DriverGetVersion = driver_version,
                                       .RuntimeGetVersion = runtime_version,
                                       .GetDeviceCount = device_count,
                                       .GetDeviceProperties = device_properties,
                                       .SetDevice = set_device,
                                       .InitContext = init_context,
                                       .MemGetInfo = mem_info,
                                       .Malloc = device_malloc,
                                       .Free = device_free,
                                       .HostAlloc = host_alloc,
                                       .FreeHost = host_free,
                                       .MemcpyAsync = copy_async,
                                       .MemcpyPeerAsync = copy_peer_async,
                                       .DeviceCanAccessPeer = can_access_peer,
                                       .DeviceEnablePeerAccess = enable_peer_access,
                                       .StreamCreate = stream_create,
                                       .StreamDestroy = stream_destroy,
                                       .StreamSynchronize = stream_synchronize,
                                       .StreamQuery = stream_query,
                                       .StreamWaitEvent = stream_wait_event,
                                       .EventCreate = event_create,
                                       .EventDestroy = event_destroy,
                                       .EventRecord = event_record,
                                       .EventQuery = event_query,
                                       .EventSynchronize = event_synchronize,
                                       .EventElapsedTime = event_elapsed,
                                       .StreamBeginCapture = begin_capture,
                                       .StreamEndCapture = end_capture,
                                       .GraphInstantiate = graph_instantiate,
                                       .GraphLaunch = graph_launch,
                                       .GraphDestroy = graph_destroy,
                                       .GraphExecDestroy = graph_exec_destroy,
                                       .GetLastError = last_error,
                                       .GetErrorName = error_name,
                                       .GetErrorString = error_string};

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
