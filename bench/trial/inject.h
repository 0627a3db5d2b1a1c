/* Injected disturbances from the command line to devices: `--inject wire=2,delay=1:20`.
 *
 *     wire=MS            every collective takes MS longer for each MiB, and uses no core meanwhile
 *     delay=POS:MS       device POS of the trial (0 is the first) begins every step MS later
 *     compute=RATIO      every kernel takes RATIO times its time
 *     straggler=POS:RATIO    the kernels of one device do
 *     op=LABEL:RATIO     kernels whose name begins with LABEL do, on every device
 *     pause=LABEL:MS     such kernels begin MS later, and use no core meanwhile: even where a device has no kernels
 *     leak=POS:BYTES     device POS loses so much memory in every step
 *     oversize=POS:BYTES device POS holds so much memory that nobody asked for
 */
#ifndef EL_BENCH_INJECT_H
#define EL_BENCH_INJECT_H

#include "bench/options/config.h"

/* `injects` is [n_devices], written only on success; "" injects nothing. Errors: EL_ERR_INVALID naming the item. */
enum el_status el_inject_parse(const char *text, int n_devices, struct el_inject *injects);

#endif
