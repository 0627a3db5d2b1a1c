/* The `sim` backend: no work is done; an op costs what constants say, in virtual time (resolve.c). It exists so that a
 * step must really be a program, and so that golden results need no clock. The constants describe no machine:
 * collectives can have measured costs instead (costs.h). */
#include <stdlib.h>

#include "runtime/device/costs.h"
#include "runtime/device/internal.h"

/* One op = latency + FLOPs / rate + bytes / rate. */
static const double KERNEL_NS = 5000, COPY_NS = 8000, COLLECTIVE_NS = 20000, HOST_NS = 10000;
static const double FLOPS_PER_NS = 1000, MEMORY_BYTES_PER_NS = 500, LINK_BYTES_PER_NS = 20;

static enum el_status usable(int *n_devices_p)
{
    *n_devices_p = 0;
    return EL_OK;
}

static enum el_status open_device(const struct el_device_spec *spec, void **state_p)
{
    *state_p = (void *)(uintptr_t)spec->costs;
    return EL_OK;
}

static void close_device(void *state)
{
    (void)state;
}

static int64_t cost_ns(void *state, const struct el_op_info *op)
{
    const struct el_costs *costs = state;
    if (op->messages.verb && costs) return (int64_t)el_costs_ns(costs, &op->messages);
    switch (op->op_class) {
    case EL_CLASS_COMPUTE:
        return (int64_t)(KERNEL_NS + op->flops / FLOPS_PER_NS + op->bytes / MEMORY_BYTES_PER_NS);
    case EL_CLASS_COPY: /* its bytes are read and written */
        return (int64_t)(COPY_NS + op->bytes / 2 / LINK_BYTES_PER_NS);
    case EL_CLASS_COMM:
        return (int64_t)(COLLECTIVE_NS + (double)(op->sent_bytes + op->received_bytes) / 2 / LINK_BYTES_PER_NS);
    case EL_CLASS_HOST:
        return (int64_t)HOST_NS;
    }
    return 0;
}

const struct el_device_ops el_device_sim = {.name = "sim",
                                            .summary = "simulated with constant costs, in virtual time: for tests",
                                            .simulated = true,
                                            .usable = usable,
                                            .open = open_device,
                                            .close = close_device,
                                            .cost_ns = cost_ns};
