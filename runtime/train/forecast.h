/* A step without running or allocating: peak memory per device by tag (docs/semantics.md gives the closed forms that it
 * equals), what it sends, and how long it takes on a machine that is known by its rates.
 *
 * Units: bytes, nanoseconds. Threads: any; nothing is kept. Errors: those of opening parts and simulated devices.
 */
#pragma once

#include "runtime/device/device.h"
#include "runtime/device/machine.h"
#include "runtime/layout/config.h"

/* `moment`: the phase of the step that has the peak. */
struct el_memory_forecast {
    struct el_ledger ledger;
    const char *moment;  /* "forward", "backward", "reduce", "optimizer" */
    int activation_sets; /* the most that it holds, of a model in stages; 0: there are none */
    uint64_t sent_bytes; /* to other devices in a step, by it or by one that is alike */
    size_t kept_bytes;   /* what its worker, or one that is alike, writes of a checkpoint */
};
enum el_status el_train_forecast(const struct el_train_config *config, const struct el_kernel_table *kernels,
                                 struct el_memory_forecast *forecasts /* [n_devices] */);
/* What a prediction is of. */
struct el_predict_spec {
    const struct el_machine *machines; /* [n_machines]: they differ in rates alone */
    int n_machines;
    int64_t limit_bytes;             /* of a device; 0: there is no limit */
    const struct el_inject *injects; /* [n_devices]; NULL: nothing is injected */
    const struct el_probe *probe; /* told of a step on the first machine, of each worker that is issued; NULL: no one */
};
/* The same, and the time of a step on each machine; NAN where a device needs more than the limit. Errors: EL_ERR_OOM,
 * where the first micro-batches of a stage already show what they need; EL_ERR_INVALID, where what is injected tells
 * more devices apart than can be issued one by one. */
enum el_status el_train_predict(const struct el_train_config *config, const struct el_kernel_table *kernels,
                                const struct el_predict_spec *spec, struct el_memory_forecast *forecasts,
                                double *step_ns /* [n_machines] */);
