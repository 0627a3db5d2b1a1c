/* Private to the backend `cuda`. */
#pragma once

#include "runtime/device/cuda_cache.h"
#include "runtime/device/device_ops.h"

enum { EL_CUDA_CARDS_MAX = 64, EL_CUDA_STAGES_MAX = 64 };

struct el_cuda_event {
    struct el_cuda_device *device;
    void *event;
    bool timed;
    struct el_cuda_event *next;
};

/* Pinned memory for host data on its way to the device; reusable once `sent` is reached. */
struct el_cuda_stage {
    void *pinned, *sent;
    size_t bytes;
    bool in_flight;
};

/* One card, or a share of one where several devices are opened on it. */
struct el_cuda_device {
    const struct el_cuda_module *module;
    const struct el_cuda_api *api;
    int ordinal; /* of the card in this process */
    bool tf32;
    char name[EL_DEVICE_NAME_BYTES];
    struct el_device_identity identity;
    struct el_cuda_cache cache;
    void *mover;                   /* stream of blocking copies */
    struct el_cuda_event *pool[2]; /* by `timed` */
    int n_stages;
    struct el_cuda_stage stages[EL_CUDA_STAGES_MAX];
    /* By card: 1 direct access, -1 through the host, 0 unchecked; two threads may check at once. */
    _Atomic signed char reaches[EL_CUDA_CARDS_MAX];
    int64_t used_before_bytes; /* of the card, before this device; negative: unknown */
    int n_libraries;
    struct el_library_memory libraries[EL_LIBRARIES_MAX];
};

struct el_cuda_stream {
    struct el_cuda_device *device;
    struct el_cuda_native native;
};

/* cuda_stream.c */
extern const struct el_async_ops el_cuda_async;
enum el_status el_cuda_stream_open(void *state, int index, void **stream_p);
void el_cuda_stream_close(void *stream);
void el_cuda_pool_close(struct el_cuda_device *device);

/* cuda_copy.c */
enum el_status el_cuda_copy(void *stream, const struct el_copy *copy);
enum el_status el_cuda_prepare_copies(void *state, const size_t *bytes, int n);
enum el_status el_cuda_host_map(void *state, size_t bytes, void **memory_p);
void el_cuda_host_unmap(void *state, void *memory);
/* Blocking, on the device's own stream: after cudaMemcpy returns, other streams may not yet see the data. */
enum el_status el_cuda_move(void *state, void *host, uintptr_t address, size_t bytes, bool host_to_device);
void el_cuda_stages_close(struct el_cuda_device *device);

void el_cuda_note_library(struct el_cuda_device *device, const char *name, int64_t bytes);
/* Free memory of the card, or -1. */
int64_t el_cuda_free_bytes(const struct el_cuda_device *device);

enum el_status el_cuda_open_on(const struct el_cuda_module *module, const struct el_device_spec *spec, void **state_p);
