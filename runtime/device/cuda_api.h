/* All that the program knows of CUDA: the calls of its run time as a table of functions, and the module that fills it.
 *
 * The backend `cuda` (cuda_backend.c, cuda_stream.c and what they use) is built everywhere, against this table alone;
 * el_cuda.so holds the real one beside the kernels, and tests hold a fake. The members are named as the run time names
 * them, without their `cuda`, so that a message can name the call. */
#pragma once

#include "kernels/cuda/native.h"
#include "runtime/device/device.h"

/* The codes that mean something to us; the module's source holds them against CUDA's own. */
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

/* Each returns CUDA's code. Streams and events are CUDA's own handles. Those without a device act on the calling
 * thread's current one. */
struct el_cuda_api {
    int (*DriverGetVersion)(int *version_p); /* 13000; 0 without a driver */
    int (*RuntimeGetVersion)(int *version_p);
    int (*GetDeviceCount)(int *n_p);
    /* Its uuid (of a part of a card, as MIG makes them: the part's), model and compute capability. */
    int (*GetDeviceProperties)(struct el_device_identity *identity_p, int device);
    int (*SetDevice)(int device);
    int (*InitContext)(void); /* cudaFree(NULL): makes the context where there is none */
    int (*MemGetInfo)(size_t *free_p, size_t *total_p);
    int (*Malloc)(void **address_p, size_t bytes);
    int (*Free)(void *address);
    int (*HostAlloc)(void **address_p, size_t bytes); /* pinned */
    int (*FreeHost)(void *address);
    int (*MemcpyAsync)(void *destination, const void *source, size_t bytes, void *stream); /* kind: by address */
    int (*MemcpyPeerAsync)(void *destination, int to, const void *source, int from, size_t bytes, void *stream);
    int (*DeviceCanAccessPeer)(int *can_p, int device, int peer);
    int (*DeviceEnablePeerAccess)(int peer);
    int (*StreamCreate)(void **stream_p); /* does not wait for the default stream, nor that for it */
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
    /* In thread-local mode: what other threads do meanwhile does not matter. */
    int (*StreamBeginCapture)(void *stream);
    int (*StreamEndCapture)(void *stream, void **graph_p);
    int (*GraphInstantiate)(void **exec_p, void *graph);
    int (*GraphLaunch)(void *exec, void *stream);
    int (*GraphDestroy)(void *graph);
    int (*GraphExecDestroy)(void *exec);
    int (*GetLastError)(void); /* and forgets it */
    const char *(*GetErrorName)(int code);
    const char *(*GetErrorString)(int code);
};

/* The module's table. */
struct el_cuda_module {
    const struct el_cuda_api *api;
    const struct el_kernel_table *(*kernels)(void);
    /* As in kernels/cuda/native.h. */
    enum el_status (*open_cublas)(struct el_cuda_native *native);
    enum el_status (*open_cudnn)(struct el_cuda_native *native);
    enum el_status (*give_cublas)(struct el_cuda_native *native, size_t bytes);
    void (*close_native)(struct el_cuda_native *native);
    int capability_min;                 /* of cards that the kernels were built for: 75 is 7.5 */
    const char *(*libraries)(void);     /* "CUDA 13.0, cuBLAS 13.1.0, cuDNN 9.19.0" */
    const char *(*cudnn_missing)(void); /* why; NULL: it is there */
    /* What the driver says that all processes together use of a card's memory, without making a context; negative: it
     * does not say. */
    int64_t (*used_bytes)(const char *uuid);
};

/* The module's one symbol. */
const struct el_cuda_module *el_cuda_module(void);

/* Opens the module at first use, with all libraries behind it; needs no driver. Errors: EL_ERR_ABSENT: not built. */
enum el_status el_cuda_module_load(const struct el_cuda_module **module_p);
/* For a failure's words, after CUDA_VISIBLE_DEVICES: what it is, and the entry at which CUDA stops; "": not set. */
enum { EL_CUDA_VISIBLE_BYTES = 256 };
const char *el_cuda_visible(char text[EL_CUDA_VISIBLE_BYTES]);
/* The same, and looks for a driver and for cards. Errors: EL_ERR_ABSENT with what is missing or does not work: not
 * built, no driver, no card, a driver that is older than the toolkit or fails. */
enum el_status el_cuda_module_open(const struct el_cuda_module **module_p, int *n_devices_p);
/* The part of it behind the module: what `module` says of driver and cards. */
enum el_status el_cuda_find(const struct el_cuda_module *module, int *n_devices_p);
/* How many cards there are: 0 where there is no driver or no card, which is no failure. Errors: EL_ERR_ABSENT: there is
 * a driver, and it does not work, with its words. */
enum el_status el_cuda_count(const struct el_cuda_module *module, int *n_devices_p);
/* The same from the file system on: 0 too where the module was not built. */
enum el_status el_cuda_cards(int *n_devices_p);
/* EL_OK, or the failure of cuda`call`: EL_ERR_OOM, EL_ERR_ABSENT, EL_ERR_INTERNAL. `who`: "cuda:0". An error that does
 * not stick to the context is forgotten by CUDA too, so that the next kernel's launch is not blamed for it. */
enum el_status el_cuda_status(const struct el_cuda_api *api, const char *who, const char *call, int code);
#define EL_CUDART_CALL(api, who, call, ...) el_cuda_status((api), (who), #call, (api)->call(__VA_ARGS__))
#define EL_CUDART_TRY(api, who, call, ...)  EL_TRY(EL_CUDART_CALL(api, who, call, __VA_ARGS__))
/* A call whose failure is passed over, and so forgotten too: whether it did not fail. */
#define EL_CUDART_LET(api, call, ...)       el_cuda_let((api), (api)->call(__VA_ARGS__))
static inline bool el_cuda_let(const struct el_cuda_api *api, int code)
{
    if (code != EL_CUDA_SUCCESS) api->GetLastError();
    return code == EL_CUDA_SUCCESS;
}
