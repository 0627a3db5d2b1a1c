/* CUDA's run-time calls as a table, the program's only access to CUDA: el_cuda.so provides the real one and the
 * kernels, tests a fake. Members are CUDA's names without `cuda`, so that errors can name the call. */
#pragma once

#include "kernels/cuda/native.h"
#include "runtime/device/device.h"

enum {
    EL_CUDA_SUCCESS = 0,
    EL_CUDA_ERROR_MEMORY = 2,
    EL_CUDA_ERROR_STUB_LIBRARY = 34,
    EL_CUDA_ERROR_OLD_DRIVER = 35,
    EL_CUDA_ERROR_BUSY = 46,
    EL_CUDA_ERROR_NO_DEVICE = 100,
    EL_CUDA_ERROR_NOT_READY = 600,
    EL_CUDA_ERROR_PEER_ALREADY = 704,
    EL_CUDA_ERROR_SYSTEM_NOT_READY = 802,
    EL_CUDA_ERROR_DRIVER_MISMATCH = 803,
    EL_CUDA_ERROR_COMPATIBILITY = 804,
    EL_CUDA_ERROR_UNKNOWN = 999
};

/* Functions return CUDA's code; handles are CUDA's. Those without a device act on the calling thread's current one. */
struct el_cuda_api {
    int (*DriverGetVersion)(int *version_p); /* 13000; 0 without a driver */
    int (*RuntimeGetVersion)(int *version_p);
    int (*GetDeviceCount)(int *n_p);
    /* UUID (of a MIG part: the part's), model, compute capability. */
    int (*GetDeviceProperties)(struct el_device_identity *identity_p, int device);
    int (*SetDevice)(int device);
    int (*InitContext)(void); /* cudaFree(NULL): creates the context */
    int (*MemGetInfo)(size_t *free_p, size_t *total_p);
    int (*Malloc)(void **address_p, size_t bytes);
    int (*Free)(void *address);
    int (*HostAlloc)(void **address_p, size_t bytes); /* pinned */
    int (*FreeHost)(void *address);
    int (*MemcpyAsync)(void *destination, const void *source, size_t bytes, void *stream); /* kind: by address */
    int (*MemcpyPeerAsync)(void *destination, int to, const void *source, int from, size_t bytes, void *stream);
    int (*DeviceCanAccessPeer)(int *can_p, int device, int peer);
    int (*DeviceEnablePeerAccess)(int peer);
    int (*StreamCreate)(void **stream_p); /* does not synchronize with the default stream */
    int (*StreamDestroy)(void *stream);
    int (*StreamSynchronize)(void *stream);
    int (*StreamQuery)(void *stream);
    int (*StreamWaitEvent)(void *stream, void *event);
    int (*EventCreate)(void **event_p, bool timed);
    int (*EventDestroy)(void *event);
    int (*EventRecord)(void *event, void *stream);
    int (*EventQuery)(void *event);
    int (*EventSynchronize)(void *event);
    int (*EventElapsedTime)(float *ms_p, void *from, void *to);
    /* Thread-local mode: other threads are unaffected. */
    int (*StreamBeginCapture)(void *stream);
    int (*StreamEndCapture)(void *stream, void **graph_p);
    int (*GraphInstantiate)(void **exec_p, void *graph);
    int (*GraphLaunch)(void *exec, void *stream);
    int (*GraphDestroy)(void *graph);
    int (*GraphExecDestroy)(void *exec);
    int (*GetLastError)(void); /* and clears it */
    const char *(*GetErrorName)(int code);
    const char *(*GetErrorString)(int code);
};

struct el_cuda_module {
    const struct el_cuda_api *api;
    const struct el_kernel_table *(*kernels)(void);
    /* See kernels/cuda/native.h. */
    enum el_status (*open_cublas)(struct el_cuda_native *native);
    enum el_status (*open_cudnn)(struct el_cuda_native *native);
    enum el_status (*give_cublas)(struct el_cuda_native *native, size_t bytes);
    void (*close_native)(struct el_cuda_native *native);
    int capability_min; /* the lowest with kernels: 75 is 7.5 */
    const char *(*libraries)(void);
    const char *(*cudnn_missing)(void); /* the reason; NULL: it is there */
    /* A card's memory in use by all processes, from the driver without a context; negative: unknown. */
    int64_t (*used_bytes)(const char *uuid);
};

const struct el_cuda_module *el_cuda_module(void);

/* Loads the module and its libraries at first use; needs no driver. Errors: EL_ERR_ABSENT: not built. */
enum el_status el_cuda_module_load(const struct el_cuda_module **module_p);
/* For error messages: CUDA_VISIBLE_DEVICES and the entry at which CUDA stops; "": not set. */
enum { EL_CUDA_VISIBLE_BYTES = 256 };
const char *el_cuda_visible(char text[EL_CUDA_VISIBLE_BYTES]);
/* Also checks driver and cards. Errors: EL_ERR_ABSENT with the reason. */
enum el_status el_cuda_module_open(const struct el_cuda_module **module_p, int *n_devices_p);
enum el_status el_cuda_find(const struct el_cuda_module *module, int *n_devices_p);
/* Number of cards; 0 without a driver or card. Errors: EL_ERR_ABSENT: a driver that fails, with its text. */
enum el_status el_cuda_count(const struct el_cuda_module *module, int *n_devices_p);
/* The same, including loading; 0 if not built. */
enum el_status el_cuda_cards(int *n_devices_p);
/* EL_OK, or the failure of cuda`call`: EL_ERR_OOM, EL_ERR_ABSENT, EL_ERR_INTERNAL. `who`: "cuda:0". Clears CUDA's last
 * error if it is not sticky, or the next kernel launch would report it. */
enum el_status el_cuda_status(const struct el_cuda_api *api, const char *who, const char *call, int code);
#define EL_CUDART_CALL(api, who, call, ...) el_cuda_status((api), (who), #call, (api)->call(__VA_ARGS__))
#define EL_CUDART_TRY(api, who, call, ...)  EL_TRY(EL_CUDART_CALL(api, who, call, __VA_ARGS__))
/* Ignores and clears a failure; returns success. */
#define EL_CUDART_LET(api, call, ...)       el_cuda_let((api), (api)->call(__VA_ARGS__))
static inline bool el_cuda_let(const struct el_cuda_api *api, int code)
{
    if (code != EL_CUDA_SUCCESS) api->GetLastError();
    return code == EL_CUDA_SUCCESS;
}
