/* The `sim` backend: no work is done; an op costs what constants say, in virtual time (resolve.c). It exists so that a
 * step must really be a program, and so that golden results need no clock. The constants describe no machine:
 * measured costs can stand in their place (costs.h). */
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

static int64_t constant_ns(const struct el_op_info *op)
{
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

static enum el_status cost_ns(void *state, const struct el_op_info *op, bool beside, int64_t *ns_p)
{
    const struct el_costs *costs = state;
    double ns = -1;
    if (costs && op->messages.verb && costs->n == 0)
        return el_fail(EL_ERR_INVALID, "--costs: no record has times of '%s': give one of 'evenload comm' too",
                       op->label);
    if (costs && op->messages.verb) ns = el_costs_ns(costs, &op->messages);
    if (costs && !op->messages.verb) EL_TRY(el_costs_op_ns(costs, op, beside, &ns));
    *ns_p = ns < 0 ? constant_ns(op) : (int64_t)ns;
    return EL_OK;
}

const struct el_device_ops el_device_sim = {.name = "sim",
                                            .summary = "simulated with constant costs, in virtual time: for tests",
                                            .simulated = true,
                                            .usable = usable,
                                            .open = open_device,
                                            .close = close_device,
                                            .cost_ns = cost_ns};
