/* The backend `cuda`: NVIDIA GPUs. Several devices may share one card and its speed. The CUDA run time numbers the
 * cards in the order of CUDA_VISIBLE_DEVICES. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/files.h"
#include "runtime/device/cuda.h"

static enum el_status usable(int *n_devices_p)
{
    const struct el_cuda_module *module;
    return el_cuda_module_open(&module, n_devices_p);
}

/* "2 x NVIDIA H200; CUDA 13.0, ..."; named after the first card. */
static void describe(char *text, size_t bytes)
{
    const struct el_cuda_module *module = NULL;
    struct el_device_identity first;
    int n = 0;
    if (el_cuda_module_open(&module, &n) != EL_OK) return;
    if (EL_CUDART_CALL(module->api, "cuda:0", GetDeviceProperties, &first, 0) != EL_OK)
        snprintf(first.model, sizeof first.model, "%.90s", el_error_message());
    const char *missing = module->cudnn_missing();
    snprintf(text, bytes, "%d GPU%s (%s): %s%s%s", n, n == 1 ? "" : "s", first.model, module->libraries(),
             missing ? "; " : "", missing ? missing : "");
}

int64_t el_cuda_free_bytes(const struct el_cuda_device *device)
{
    size_t left = 0, total = 0;
    return EL_CUDART_LET(device->api, MemGetInfo, &left, &total) ? (int64_t)left : -1;
}

void el_cuda_note_library(struct el_cuda_device *device, const char *name, int64_t bytes)
{
    int i = 0;
    while (i < device->n_libraries && strcmp(device->libraries[i].name, name) != 0) i++;
    if (i == EL_LIBRARIES_MAX) return;
    if (i == device->n_libraries) device->libraries[device->n_libraries++] = (struct el_library_memory){.name = name};
    device->libraries[i].bytes += bytes > 0 ? bytes : 0; /* another process may have freed memory meanwhile */
}

static enum el_status check_index(const struct el_cuda_module *module, const struct el_device_spec *spec)
{
    char visible[EL_CUDA_VISIBLE_BYTES];
    int n = 0;
    EL_TRY(el_cuda_find(module, &n));
    if (spec->index >= 0 && spec->index < n) return EL_OK;
    return el_fail(EL_ERR_ABSENT,
                   "cuda:%d: this process sees %d GPU%s (cuda:0 to cuda:%d): check CUDA_VISIBLE_DEVICES%s; if every "
                   "rank sees one card of its own, leave --devices out, or name cuda:0 for each",
                   spec->index, n, n == 1 ? "" : "s", n - 1, el_cuda_visible(visible));
}

/* Older cards would refuse the first kernel. */
static enum el_status check_capability(const struct el_cuda_device *device)
{
    int has = device->identity.capability, wants = device->module->capability_min;
    if (has >= wants) return EL_OK;
    return el_fail(EL_ERR_ABSENT,
                   "%s: %s has compute capability %d.%d, and the kernels were built for %d.%d and later: take another "
                   "card, or build for this one (make CUDA_ARCHS='%d ...')",
                   device->name, device->identity.model, has / 10, has % 10, wants / 10, wants % 10, has);
}

/* The driver's version: in /proc, the first word after "Kernel Module" that begins with a digit (the open module
 * inserts "for x86_64"). CUDA reports the highest CUDA version it supports. */
static void read_versions(struct el_cuda_device *device)
{
    struct el_device_identity *identity = &device->identity;
    char line[256], version[24] = "";
    int cuda = 0;
    el_file_line("/proc/driver/nvidia/version", "", line, sizeof line);
    const char *at = strstr(line, "Kernel Module");
    for (at = at ? at + strlen("Kernel Module") : ""; *at && !(*at >= '0' && *at <= '9' && at[-1] == ' ');) at++;
    snprintf(version, sizeof version, "%.*s", (int)strcspn(at, " \n"), at);
    bool known = EL_CUDART_LET(device->api, DriverGetVersion, &cuda);
    int used = snprintf(identity->driver, sizeof identity->driver, "%s%s", version, *version ? ", " : "");
    snprintf(identity->driver + used, sizeof identity->driver - (size_t)used, known ? "CUDA %d.%d" : "CUDA unknown",
             cuda / 1000, cuda % 1000 / 10);
    snprintf(identity->libraries, sizeof identity->libraries, "%s", device->module->libraries());
}

/* Creates the context if the process has none on the card; the change of used memory is the context's. */
static enum el_status open_context(struct el_cuda_device *device)
{
    const struct el_cuda_module *module = device->module;
    const char *uuid = device->identity.uuid;
    device->used_before_bytes = module->used_bytes(uuid);
    EL_CUDART_TRY(device->api, device->name, SetDevice, device->ordinal);
    EL_TRY(el_cuda_status(device->api, device->name, "Free", device->api->InitContext()));
    int64_t after = module->used_bytes(uuid);
    if (device->used_before_bytes >= 0 && after >= 0)
        el_cuda_note_library(device, "context", after - device->used_before_bytes);
    return EL_CUDART_CALL(device->api, device->name, StreamCreate, &device->mover);
}

static void close_device(void *state)
{
    struct el_cuda_device *device = state;
    EL_CUDART_LET(device->api, SetDevice, device->ordinal);
    el_cuda_stages_close(device);
    el_cuda_pool_close(device);
    el_cuda_cache_close(&device->cache);
    if (device->mover) EL_CUDART_LET(device->api, StreamDestroy, device->mover);
    free(device);
}

enum el_status el_cuda_open_on(const struct el_cuda_module *module, const struct el_device_spec *spec, void **state_p)
{
    EL_TRY(check_index(module, spec));
    struct el_cuda_device *device = calloc(1, sizeof *device);
    if (!device) return el_fail_errno("cuda:%d", spec->index);
    device->module = module;
    device->api = module->api;
    device->ordinal = spec->index;
    device->tf32 = spec->tf32;
    snprintf(device->name, sizeof device->name, "cuda:%d", spec->index);
    el_cuda_cache_open(&device->cache, device->api, device->name);
    enum el_status status =
        EL_CUDART_CALL(device->api, device->name, GetDeviceProperties, &device->identity, device->ordinal);
    if (status == EL_OK) status = check_capability(device);
    if (status == EL_OK) read_versions(device);
    if (status == EL_OK) status = open_context(device);
    if (status == EL_OK)
        *state_p = device;
    else
        close_device(device);
    return status;
}

static enum el_status open_device(const struct el_device_spec *spec, void **state_p)
{
    const struct el_cuda_module *module;
    int n;
    EL_TRY(el_cuda_module_open(&module, &n));
    return el_cuda_open_on(module, spec, state_p);
}

static enum el_status map(void *state, size_t bytes, uintptr_t *address_p)
{
    struct el_cuda_device *device = state;
    EL_CUDART_TRY(device->api, device->name, SetDevice, device->ordinal);
    return el_cuda_cache_take(&device->cache, bytes, address_p);
}

static void unmap(void *state, uintptr_t address, size_t bytes)
{
    (void)bytes;
    struct el_cuda_device *device = state;
    el_cuda_cache_give(&device->cache, address);
}

static int64_t reserved(void *state)
{
    return ((struct el_cuda_device *)state)->cache.reserved_bytes;
}

/* The card's used memory minus that before this device was opened, by NVML, whose figure includes the driver's
 * reserve, unlike CUDA's. Without NVML: all in use. */
static enum el_status resident(void *state, int64_t *bytes_p)
{
    struct el_cuda_device *device = state;
    size_t left = 0, total = 0;
    int64_t before = device->used_before_bytes, now = device->module->used_bytes(device->identity.uuid);
    if (before >= 0 && now >= 0) {
        *bytes_p = now > before ? now - before : 0;
        return EL_OK;
    }
    EL_CUDART_TRY(device->api, device->name, SetDevice, device->ordinal);
    EL_CUDART_TRY(device->api, device->name, MemGetInfo, &left, &total);
    *bytes_p = (int64_t)(total - left);
    return EL_OK;
}

static void identify(void *state, struct el_device_identity *identity_p)
{
    *identity_p = ((struct el_cuda_device *)state)->identity;
}

static int library_memory(void *state, struct el_library_memory *list, int capacity)
{
    const struct el_cuda_device *device = state;
    int n = device->n_libraries < capacity ? device->n_libraries : capacity;
    memcpy(list, device->libraries, (size_t)n * sizeof *list);
    return n;
}

static const struct el_kernel_table *kernels(void *state)
{
    return ((struct el_cuda_device *)state)->module->kernels();
}

const struct el_device_ops el_device_cuda = {.name = "cuda",
                                             .summary = "NVIDIA GPUs",
                                             .computes = true,
                                             .usable = usable,
                                             .describe = describe,
                                             .open = open_device,
                                             .close = close_device,
                                             .map = map,
                                             .unmap = unmap,
                                             .resident = resident,
                                             .reserved = reserved,
                                             .identify = identify,
                                             .library_memory = library_memory,
                                             .kernels = kernels,
                                             .move = el_cuda_move,
                                             .stream_open = el_cuda_stream_open,
                                             .stream_close = el_cuda_stream_close,
                                             .async = &el_cuda_async};
