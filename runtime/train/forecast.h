/* A step without running or allocating: peak memory per device and tag (closed forms: docs/semantics.md), bytes sent,
 * and time on a machine given by its rates.
 * Units: bytes, nanoseconds. Threads: any. Errors: those of opening parts and simulated devices. */
#pragma once

#include "runtime/device/device.h"
#include "runtime/device/machine.h"
#include "runtime/layout/config.h"

/* `moment`: the phase with the peak. */
struct el_memory_forecast {
    struct el_ledger ledger;
    const char *moment;  /* "forward", "backward", "reduce", "optimizer" */
    int activation_sets; /* maximum held at once, with stages; 0: no stages */
    uint64_t sent_bytes; /* per step to other devices, by it or an equivalent device */
    size_t kept_bytes;   /* its worker's checkpoint, or an equivalent one's */
};
enum el_status el_train_forecast(const struct el_train_config *config, const struct el_kernel_table *kernels,
                                 struct el_memory_forecast *forecasts);
struct el_predict_spec {
    const struct el_machine *machines; /* [n_machines]: may differ in rates only */
    int n_machines;
    int64_t limit_bytes;             /* per device; 0: no limit */
    const struct el_inject *injects; /* [n_devices]; NULL: no injection */
    const struct el_probe *probe;    /* receives a step of each issued worker on the first machine; NULL: none */
};
/* The same, and a step's time on each machine; NAN if a device exceeds the limit. Errors: EL_ERR_OOM if a stage's first
 * micro-batches already do; EL_ERR_INVALID if injections need more separately issued devices than possible. */
enum el_status el_train_predict(const struct el_train_config *config, const struct el_kernel_table *kernels,
                                const struct el_predict_spec *spec, struct el_memory_forecast *forecasts,
                                double *step_ns);
