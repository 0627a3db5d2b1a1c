/* Devices: the registry of backends, and the wrappers round their hooks: arguments, limits and the ledger stand here
 * once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/internal.h"

static const struct el_device_ops *const el_backends[] = {&el_device_cpu, &el_device_null, &el_device_sim};
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
    if (ops->usable) {
        int n_devices;
        EL_TRY(ops->usable(&n_devices));
    }
    struct el_device *device = calloc(1, sizeof *device);
    if (!device) return el_fail_errno("%s:%d", spec->backend, spec->index);
    device->ops = ops;
    device->spec = *spec;
    if (!device->spec.kernels) device->spec.kernels = el_kernels_cpu();
    snprintf(device->name, sizeof device->name, "%s:%d", spec->backend, spec->index);
    enum el_status status = ops->open(&device->spec, &device->state);
    if (status == EL_OK && (status = el_inject_open(device)) != EL_OK) ops->close(device->state);
    if (status != EL_OK) {
        free(device);
        return status;
    }
    *device_p = device;
    return EL_OK;
}

void el_device_close(struct el_device *device)
{
    if (!device) return;
    for (int i = 0; i < EL_DEVICE_STREAMS_MAX; i++) {
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

int el_device_position(const struct el_device *device)
{
    return device->spec.position;
}

bool el_device_is_simulated(const struct el_device *device)
{
    return device->ops->simulated;
}

bool el_device_computes(const struct el_device *device)
{
    return device->ops->computes;
}

int el_device_cores(const struct el_device *device, const int **cores_p)
{
    *cores_p = device->spec.cores;
    return device->spec.n_cores;
}

size_t el_device_memory_limit(const struct el_device *device)
{
    return device->spec.memory_limit_bytes;
}

const struct el_kernel_table *el_device_kernels(const struct el_device *device)
{
    return device->spec.kernels;
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
    return device->reserved_bytes;
}

enum el_status el_device_resident(struct el_device *device, int64_t *bytes_p)
{
    if (device->ops->resident) return device->ops->resident(device->state, bytes_p);
    return el_fail(EL_ERR_ABSENT, "%s: %s", device->name,
                   device->ops->simulated ? "simulated" : "this backend cannot say what is resident");
}

const struct el_ledger *el_device_ledger(const struct el_device *device)
{
    return &device->ledger;
}

void el_device_ledger_reset_peak(struct el_device *device)
{
    struct el_ledger *ledger = &device->ledger;
    ledger->peak_bytes = ledger->live_bytes;
    memcpy(ledger->at_peak_by_tag, ledger->live_by_tag, sizeof ledger->live_by_tag);
    memcpy(ledger->peak_by_tag, ledger->live_by_tag, sizeof ledger->live_by_tag);
}

void el_device_ledger_restore_peak(struct el_device *device, const struct el_ledger *earlier)
{
    struct el_ledger *ledger = &device->ledger;
    ledger->peak_bytes = earlier->peak_bytes;
    memcpy(ledger->at_peak_by_tag, earlier->at_peak_by_tag, sizeof ledger->at_peak_by_tag);
    memcpy(ledger->peak_by_tag, earlier->peak_by_tag, sizeof ledger->peak_by_tag);
}

enum el_status el_device_check_limit(const struct el_device *device, size_t step_live_bytes, size_t bytes,
                                     enum el_tag tag, const char *name)
{
    size_t limit = device->spec.memory_limit_bytes, live = device->ledger.live_bytes + step_live_bytes;
    if (limit == 0 || (live <= limit && bytes <= limit - live)) return EL_OK;
    const double mib = 1 << 20;
    return el_fail(EL_ERR_OOM,
                   "%s is out of memory: %.2f MiB for '%s' (%s) do not fit, %.2f of %.2f MiB are in use; "
                   "take a smaller batch or model, or a larger --device-mem",
                   device->name, (double)bytes / mib, name, el_tag_name(tag), (double)live / mib, (double)limit / mib);
}

enum el_status el_device_alloc(struct el_device *device, enum el_tag tag, size_t bytes, const char *name,
                               struct el_buffer **buffer_p)
{
    EL_TRY(el_device_check_limit(device, 0, bytes, tag, name));
    struct el_persistent *made = calloc(1, sizeof *made);
    if (!made) return el_fail_errno("%s: '%s'", device->name, name);
    made->buffer = (struct el_buffer){.device = device, .tag = tag, .bytes = bytes, .name = name};
    if (!device->ops->simulated) {
        enum el_status status = device->ops->map(device->state, bytes, &made->buffer.address);
        if (status != EL_OK) {
            free(made);
            return status;
        }
    }
    made->next = device->allocations;
    made->link = &device->allocations;
    if (made->next) made->next->link = &made->next;
    device->allocations = made;
    device->reserved_bytes += (int64_t)bytes;
    el_ledger_add(&device->ledger, tag, bytes);
    *buffer_p = &made->buffer;
    return EL_OK;
}

void el_device_free(struct el_buffer *buffer)
{
    if (!buffer) return;
    struct el_persistent *gone = (struct el_persistent *)buffer;
    struct el_device *device = buffer->device;
    if (!device->ops->simulated) device->ops->unmap(device->state, buffer->address, buffer->bytes);
    device->reserved_bytes -= (int64_t)buffer->bytes;
    el_ledger_remove(&device->ledger, buffer->tag, buffer->bytes);
    *gone->link = gone->next;
    if (gone->next) gone->next->link = gone->link;
    free(gone);
}

enum el_status el_device_write(struct el_view destination, const void *host, size_t bytes)
{
    struct el_device *device = destination.buffer->device;
    if (device->ops->simulated) return EL_OK;
    return device->ops->move(device->state, (void *)(uintptr_t)host, destination.buffer->address + destination.offset,
                             bytes, true);
}

enum el_status el_device_read(struct el_view source, void *host, size_t bytes)
{
    struct el_device *device = source.buffer->device;
    if (device->ops->simulated) {
        memset(host, 0, bytes);
        return EL_OK;
    }
    return device->ops->move(device->state, host, source.buffer->address + source.offset, bytes, false);
}

enum el_status el_device_stream(struct el_device *device, int index, void **stream_p)
{
    if (!device->streams[index]) {
        EL_TRY(device->ops->stream_open(device->state, index, &device->streams[index]));
    }
    *stream_p = device->streams[index];
    return EL_OK;
}

int el_device_backends(struct el_backend_info *infos, int capacity)
{
    int n = 0;
    for (; n < N_BACKENDS && n < capacity; n++) {
        infos[n] = (struct el_backend_info){.name = el_backends[n]->name, .usable = true};
        if (el_backends[n]->usable && el_backends[n]->usable(&infos[n].n_devices) != EL_OK) infos[n].usable = false;
        snprintf(infos[n].detail, sizeof infos[n].detail, "%s",
                 infos[n].usable ? el_backends[n]->summary : el_error_message());
    }
    return n;
}
