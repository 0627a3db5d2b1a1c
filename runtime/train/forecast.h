/* Peak memory per device by tag, without running or allocating (docs/semantics.md gives the closed forms that it
 * equals).
 *
 * Units: bytes. Threads: any; nothing is kept. Errors: those of opening parts and simulated devices.
 */
#pragma once

#include "runtime/device/device.h"
#include "runtime/layout/config.h"

/* `moment`: the phase of the step that has the peak. */
struct el_memory_forecast {
    struct el_ledger ledger;
    const char *moment;  /* "forward", "backward", "reduce", "optimizer" */
    int activation_sets; /* the most that it holds, of a model in stages; 0: there are none */
};
enum el_status el_train_forecast(const struct el_train_config *config, const struct el_kernel_table *kernels,
                                 struct el_memory_forecast *forecasts /* [n_devices] */);
