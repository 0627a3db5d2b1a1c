/* Injected disturbances from the command line to devices: `--inject wire=2,delay=1:20`.
 *
 * docs/selfcheck.md says what each does.
 */
#ifndef EL_BENCH_INJECT_H
#define EL_BENCH_INJECT_H

#include "bench/options/config.h"

/* `injects` is [n_devices]; "" injects nothing. Errors: EL_ERR_INVALID naming the item. */
enum el_status el_inject_parse(const char *text, int n_devices, struct el_inject *injects);

#endif
