/* The registry of backends, queries, and wrappers of the stream hooks. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda_api.h"
#include "runtime/device/internal.h"

static const struct el_device_ops *const el_backends[] = {&el_device_cpu, &el_device_null, &el_device_sim,
                                                          &el_device_cuda};
enum { N_BACKENDS = sizeof el_backends / sizeof el_backends[0] };

static const struct el_device_ops *find(const char *name)
{
    for (int i = 0; i < N_BACKENDS; i++) {
        if (strcmp(el_backends[i]->name, name) == 0) return el_backends[i];
    }
    return NULL;
}

enum el_status el_device_open(const struct el_device_spec *spec, struct el_device **device_p)
{
    const struct el_device_ops *ops = find(spec->backend);
    if (!ops)
        return el_fail(EL_ERR_ABSENT, "%s:%d: no such backend; 'evenload devices' lists them", spec->backend,
                       spec->index);
    return el_device_open_with(ops, spec, device_p);
}

enum el_status el_device_open_with(const struct el_device_ops *ops, const struct el_device_spec *spec,
                                   struct el_device **device_p)
{
    if (ops->usable) {
        int n_devices;
        EL_TRY(ops->usable(&n_devices));
    }
    struct el_device *device = calloc(1, sizeof *device);
    if (!device) return el_fail_errno("%s:%d", spec->backend, spec->index);
    device->ops = ops;
    device->spec = *spec;
    snprintf(device->name, sizeof device->name, "%s:%d", spec->backend, spec->index);
    enum el_status status = ops->open(&device->spec, &device->state);
    if (status == EL_OK && (status = el_inject_open(device)) != EL_OK) ops->close(device->state);
    if (status != EL_OK) {
        free(device);
        return status;
    }
    if (!device->spec.kernels) device->spec.kernels = ops->kernels ? ops->kernels(device->state) : el_kernels_cpu();
    *device_p = device;
    return EL_OK;
}

/* Process-wide: drivers free pinned memory only when all cards are idle. */
static atomic_bool is_left;

bool el_device_is_left(void)
{
    return atomic_load(&is_left);
}

void el_device_leave(void)
{
    atomic_store(&is_left, true);
}

bool el_device_is_kept(const struct el_device *device)
{
    return device->ops->async && el_device_is_left();
}

void el_device_close(struct el_device *device)
{
    if (!device || el_device_is_kept(device)) return;
    for (int i = 0; i < EL_DEVICE_STREAMS_MAX; i++) {
        if (device->marks[i]) device->ops->async->event_close(device->marks[i]);
        if (device->streams[i]) device->ops->stream_close(device->streams[i]);
    }
    while (device->allocations) el_device_free(&device->allocations->buffer);
    device->ops->close(device->state);
    free(device);
}

const char *el_device_name(const struct el_device *device)
{
    return device->name;
}

int el_device_index(const struct el_device *device)
{
    return device->spec.index;
}

bool el_device_is_simulated(const struct el_device *device)
{
    return device->ops->simulated;
}

bool el_device_computes(const struct el_device *device)
{
    return device->ops->computes;
}

const struct el_weights_layout *el_device_weights_layout(const struct el_device *device, enum el_dtype dtype,
                                                         const int64_t shape[4])
{
    const struct el_kernel_table *kernels = device->spec.kernels;
    return kernels->weights ? kernels->weights(dtype, shape) : NULL;
}

size_t el_device_alignment(const struct el_device *device, enum el_dtype dtype)
{
    size_t alignment = device->spec.kernels->alignment[dtype];
    return alignment ? alignment : 1;
}

int el_device_cores(const struct el_device *device, const int **cores_p)
{
    *cores_p = device->spec.cores;
    return device->spec.n_cores;
}

void el_device_limit_memory(struct el_device *device, size_t bytes)
{
    device->spec.memory_limit_bytes = bytes;
}

size_t el_device_memory_limit(const struct el_device *device)
{
    return device->spec.memory_limit_bytes;
}

const struct el_inject *el_device_inject(const struct el_device *device)
{
    return &device->spec.inject;
}

int64_t el_device_inject_hits(const struct el_device *device)
{
    return device->inject_hits;
}

int64_t el_device_reserved(const struct el_device *device)
{
    return device->ops->reserved ? device->ops->reserved(device->state) + device->adopted_bytes
                                 : device->reserved_bytes;
}

void el_device_identify(const struct el_device *device, struct el_device_identity *identity_p)
{
    *identity_p = (struct el_device_identity){.uuid = ""};
    if (device->ops->identify) device->ops->identify(device->state, identity_p);
}

int el_device_library_memory(const struct el_device *device, struct el_library_memory *list)
{
    return device->ops->library_memory ? device->ops->library_memory(device->state, list, EL_LIBRARIES_MAX) : 0;
}

struct el_backend_facts el_backend_facts(const char *backend)
{
    const struct el_device_ops *ops = find(backend);
    if (!ops) return (struct el_backend_facts){0};
    return (struct el_backend_facts){.computes = ops->computes,
                                     .simulated = ops->simulated,
                                     .gpu = ops->async != NULL,
                                     .on_host = !ops->simulated && !ops->async};
}

bool el_device_is_host_memory(const struct el_device *device)
{
    return !device->ops->simulated && !device->ops->async;
}

bool el_device_is_asynchronous(const struct el_device *device)
{
    return device->ops->async != NULL;
}

enum el_status el_device_native_stream(struct el_device *device, int stream, void **native_p)
{
    void *opened;
    if (!device->ops->async)
        return el_fail(EL_ERR_ABSENT, "%s: its streams are threads; no library knows them", device->name);
    EL_TRY(el_device_stream(device, stream, &opened));
    *native_p = device->ops->async->stream_handle(opened);
    return EL_OK;
}

enum el_status el_device_take_stream(struct el_device *device, int *stream_p)
{
    for (int s = EL_STREAM_COMM; s < EL_DEVICE_STREAMS_MAX; s++) {
        if (device->taken[s]) continue;
        device->taken[s] = true;
        *stream_p = s;
        return EL_OK;
    }
    return el_fail(EL_ERR_INVALID, "%s: all %d streams for communication are taken", device->name,
                   EL_DEVICE_STREAMS_MAX - EL_STREAM_COMM);
}

void el_device_give_back_stream(struct el_device *device, int stream)
{
    device->taken[stream] = false;
}

int64_t el_device_issuing(const struct el_device *device, const char **label_p, bool *first_p)
{
    *label_p = device->issuing;
    *first_p = device->issues_first;
    return device->issuing_since_ns;
}

enum el_status el_device_stream_synchronize(struct el_device *device, int stream)
{
    const struct el_async_ops *async = device->ops->async;
    if (!async || !device->streams[stream] || el_device_is_kept(device)) return EL_OK;
    EL_TRY(async->activate(device->state));
    return async->stream_synchronize(device->streams[stream]);
}

enum el_status el_device_stream_check(struct el_device *device, int stream)
{
    const struct el_async_ops *async = device->ops->async;
    bool idle;
    if (!async || !device->streams[stream]) return EL_OK;
    EL_TRY(async->activate(device->state));
    return async->stream_query(device->streams[stream], &idle);
}

static enum el_status turn_to(struct el_device *device, int stream, void **opened_p)
{
    if (!device->ops->async) return el_fail(EL_ERR_INTERNAL, "%s: nothing can be queued on a thread", device->name);
    EL_TRY(el_device_stream(device, stream, opened_p));
    return device->ops->async->activate(device->state);
}

/* One event per stream suffices: a wait uses the latest record when it is queued. */
enum el_status el_device_enqueue_wait(struct el_device *device, int stream, struct el_device *other, int other_stream)
{
    void **mark = &other->marks[other_stream];
    if (device->ops->async && !*mark) EL_TRY(el_device_event_open(other, mark));
    EL_TRY(el_device_enqueue_record(other, other_stream, *mark));
    return el_device_enqueue_wait_event(device, stream, *mark);
}

enum el_status el_device_event_open(struct el_device *device, void **event_p)
{
    const struct el_async_ops *async = device->ops->async;
    if (!async) return el_fail(EL_ERR_INTERNAL, "%s: its streams are threads, and have no events", device->name);
    EL_TRY(async->activate(device->state));
    return async->event_open(device->state, false, event_p);
}

void el_device_event_close(struct el_device *device, void *event)
{
    if (event) device->ops->async->event_close(event);
}

enum el_status el_device_enqueue_record(struct el_device *device, int stream, void *event)
{
    void *opened;
    EL_TRY(turn_to(device, stream, &opened));
    return device->ops->async->event_record(event, opened);
}

enum el_status el_device_enqueue_wait_event(struct el_device *device, int stream, void *event)
{
    void *opened;
    EL_TRY(turn_to(device, stream, &opened));
    return device->ops->async->stream_wait(opened, event);
}

enum el_status el_device_enqueue_kernel(struct el_device *device, int stream, enum el_op_kind op, enum el_dtype dtype,
                                        struct el_kernel_args *args)
{
    const struct el_kernel *kernel = device->spec.kernels->find(op, dtype);
    void *opened;
    if (!kernel || kernel->prepare || kernel->workspace)
        return el_fail(EL_ERR_ABSENT, "%s: the %s kernels have no plain %s for %s", device->name,
                       device->spec.kernels->name, el_op_name(op), el_dtype_name(dtype));
    EL_TRY(turn_to(device, stream, &opened));
    args->native = device->ops->async->stream_native(opened);
    return device->ops->computes ? kernel->run(args) : EL_OK;
}

enum el_status el_device_host_alloc(struct el_device *device, bool pinned, size_t bytes, void **memory_p)
{
    const struct el_async_ops *async = device->ops->async;
    if (pinned && async && async->host_map) {
        EL_TRY(async->activate(device->state));
        return async->host_map(device->state, bytes, memory_p);
    }
    *memory_p = malloc(bytes);
    return *memory_p ? EL_OK : el_fail_errno("%s: %zu bytes of the host's", device->name, bytes);
}

void el_device_host_free(struct el_device *device, bool pinned, void *memory)
{
    const struct el_async_ops *async = device->ops->async;
    if (!memory || el_device_is_kept(device)) return;
    if (!pinned || !async || !async->host_map)
        free(memory);
    else
        async->host_unmap(device->state, memory);
}

enum el_status el_device_enqueue_copy(struct el_device *device, int stream, void *destination,
                                      struct el_device *destination_device, const void *source,
                                      struct el_device *source_device, size_t bytes)
{
    struct el_copy copy = {.destination = destination,
                           .to = destination_device ? destination_device->state : NULL,
                           .source = source,
                           .from = source_device ? source_device->state : NULL,
                           .how = source_device ? 0 : EL_COPY_PAGEABLE | EL_COPY_WAITS,
                           .bytes = bytes};
    void *opened;
    EL_TRY(turn_to(device, stream, &opened));
    return device->ops->async->copy(opened, &copy);
}

enum el_status el_device_stream(struct el_device *device, int index, void **stream_p)
{
    if (!device->streams[index]) {
        EL_TRY(device->ops->stream_open(device->state, index, &device->streams[index]));
    }
    *stream_p = device->streams[index];
    return EL_OK;
}

enum el_status el_device_count(const char *backend, int *n_p)
{
    const struct el_device_ops *ops = find(backend);
    if (!ops) return el_fail(EL_ERR_ABSENT, "%s: no such backend; 'evenload devices' lists them", backend);
    *n_p = 0;
    return ops->usable ? ops->usable(n_p) : EL_OK;
}

enum el_status el_device_gpus(int *n_p)
{
    return el_cuda_cards(n_p);
}

enum el_status el_device_gpu_identity(int index, struct el_device_identity *identity_p)
{
    const struct el_cuda_module *module = NULL;
    int n;
    EL_TRY(el_cuda_module_open(&module, &n));
    return EL_CUDART_CALL(module->api, el_device_cuda.name, GetDeviceProperties, identity_p, index);
}

enum el_status el_device_gpu_kernels(const struct el_kernel_table **kernels_p)
{
    const struct el_cuda_module *module = NULL;
    EL_TRY(el_cuda_module_load(&module));
    *kernels_p = module->kernels();
    return EL_OK;
}

enum el_status el_device_gpu_libraries(const char **libraries_p, const char **cudnn_missing_p)
{
    const struct el_cuda_module *module = NULL;
    EL_TRY(el_cuda_module_load(&module));
    *libraries_p = module->libraries();
    *cudnn_missing_p = module->cudnn_missing();
    return EL_OK;
}

/* Strips the backend's name from the reason, since the line begins with it. */
static const char *reason_of(const char *name)
{
    const char *text = el_error_message();
    size_t length = strlen(name);
    return !strncmp(text, name, length) && !strncmp(text + length, ": ", 2) ? text + length + 2 : text;
}

int el_device_backends(struct el_backend_info *infos, int capacity)
{
    int n = 0;
    for (; n < N_BACKENDS && n < capacity; n++) {
        infos[n] = (struct el_backend_info){.name = el_backends[n]->name, .usable = true};
        if (el_backends[n]->usable && el_backends[n]->usable(&infos[n].n_devices) != EL_OK) infos[n].usable = false;
        snprintf(infos[n].detail, sizeof infos[n].detail, "%s",
                 infos[n].usable ? el_backends[n]->summary : reason_of(infos[n].name));
        if (infos[n].usable && el_backends[n]->describe)
            el_backends[n]->describe(infos[n].detail, sizeof infos[n].detail);
    }
    return n;
}
