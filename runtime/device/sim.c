/* The `sim` backend: ops cost what machine rates or measurements (costs.h) say, in virtual time (resolve.c). It needs
 * no clock, so its results are reproducible. */
#include <stdlib.h>

#include "runtime/device/costs.h"
#include "runtime/device/internal.h"
#include "runtime/device/machine.h"

struct state {
    const struct el_costs *costs;
    struct el_cost_use *use;
    const struct el_machine *machine;
    int position, stride;
};

static enum el_status usable(int *n_devices_p)
{
    *n_devices_p = 0;
    return EL_OK;
}

static enum el_status open_device(const struct el_device_spec *spec, void **state_p)
{
    struct state *state = calloc(1, sizeof *state);
    if (!state) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a simulated device");
    *state = (struct state){.costs = spec->costs,
                            .use = spec->cost_use,
                            .machine = spec->machine ? spec->machine : &el_machine_default,
                            .position = spec->position,
                            .stride = spec->data_stride > 0 ? spec->data_stride : 1};
    *state_p = state;
    return EL_OK;
}

static void close_device(void *state)
{
    free(state);
}

/* Per op; a step's sum still fits an int64_t. */
static const double LONGEST_NS = 86400e9;

static enum el_status cost_ns(void *state, const struct el_op_info *op, bool beside, int64_t *ns_p)
{
    const struct state *sim = state;
    struct el_cost_basis basis = {.how = 0};
    double ns = -1;
    if (sim->costs && op->messages.verb && sim->costs->n == 0)
        return el_fail(EL_ERR_INVALID, "--costs: no record has times of '%s': give one of 'evenload comm' too",
                       op->label);
    if (sim->costs && op->messages.verb) ns = el_costs_ns(sim->costs, &op->messages, &basis);
    if (sim->costs && !op->messages.verb) EL_TRY(el_costs_op_ns(sim->costs, op, beside, &ns, &basis));
    if (ns < 0) {
        ns = el_machine_op_ns(sim->machine, op, sim->position, sim->stride);
        basis.how = EL_COST_BY_RATES;
    }
    if (!(ns < LONGEST_NS))
        return el_fail(EL_ERR_INVALID, "'%s' would take %.3g s: a rate of the machine is too low", op->label,
                       ns * 1e-9);
    if (sim->use && !beside) el_cost_use_add(sim->use, op, ns, &basis);
    *ns_p = (int64_t)ns;
    return EL_OK;
}

const struct el_device_ops el_device_sim = {
    .name = "sim",
    .summary = "simulated, in virtual time, by a machine's rates (--machine) or measured times (--costs)",
    .simulated = true,
    .usable = usable,
    .open = open_device,
    .close = close_device,
    .cost_ns = cost_ns};
