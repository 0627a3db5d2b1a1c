/* Injected disturbances, known truths for measurements. */
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/device/internal.h"

/* Leaked memory, outside the ledger; written to where the host can, so that it is resident (a GPU's always is).
 * Closing the device frees it. */
static enum el_status take(struct el_device *device, int64_t bytes)
{
    uintptr_t address;
    if (bytes <= 0 || device->ops->simulated) return EL_OK;
    if (device->taken_bytes + bytes > device->spec.inject.most_bytes)
        return el_fail(EL_ERR_OOM,
                       "%s: what is injected would take %.1f GiB of memory, more than is free: inject less, or "
                       "measure for a shorter time",
                       device->name, (double)(device->taken_bytes + bytes) / (1 << 30));
    device->taken_bytes += bytes;
    EL_TRY(device->ops->map(device->state, (size_t)bytes, &address));
    if (el_device_is_host_memory(device)) memset((void *)address, 1, (size_t)bytes);
    return EL_OK;
}

enum el_status el_inject_open(struct el_device *device)
{
    const struct el_inject *inject = &device->spec.inject;
    bool in_ops = inject->stretch > 1 || inject->op_stretch > 1 || inject->pause_ms > 0 || inject->wrong != 0;
    if (device->ops->async && in_ops)
        return el_fail(EL_ERR_INVALID,
                       "%s: kernels can be slowed down or begin later, and numbers made wrong, on CPU devices only: "
                       "inject delay, leak or oversize",
                       device->name);
    return take(device, device->spec.inject.oversize_bytes);
}

enum el_status el_inject_begin_step(struct el_device *device)
{
    const struct el_inject *inject = &device->spec.inject;
    if (inject->delay_ms > 0) el_clock_sleep_until(el_clock_ns() + (int64_t)(inject->delay_ms * 1e6));
    return take(device, inject->leak_bytes);
}

static bool begins_with(const char *label, const char *begin)
{
    return strncmp(label, begin, strlen(begin)) == 0;
}

int64_t el_inject_pause_ns(struct el_device *device, const char *label)
{
    const struct el_inject *inject = &device->spec.inject;
    bool named = inject->pause_ms > 0 && begins_with(label, inject->pause);
    device->inject_hits += named;
    return named ? (int64_t)(inject->pause_ms * 1e6) : 0;
}

double el_inject_stretch(struct el_device *device, const char *label)
{
    const struct el_inject *inject = &device->spec.inject;
    double stretch = inject->stretch > 0 ? inject->stretch : 1;
    bool named = inject->op_stretch > 0 && begins_with(label, inject->op);
    device->inject_hits += named;
    if (named) stretch *= inject->op_stretch;
    return stretch > 1 ? stretch : 0;
}

void el_inject_spin(int64_t begin_ns, double ratio)
{
    int64_t until_ns = begin_ns + (int64_t)((double)(el_clock_ns() - begin_ns) * ratio);
    while (el_clock_ns() < until_ns) continue;
}
