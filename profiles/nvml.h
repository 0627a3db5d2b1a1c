/* What the driver says of GPUs while they are measured: utilization, memory, clock, power, energy, throttling.
 *
 *     el_nvml_load(&api);
 *     el_nvml_open(&api, uuids, n, &nvml);                joins the devices by UUID, never by index
 *     el_nvml_begin(nvml, i);   ... steps ...   el_nvml_end(nvml, i);
 *     el_nvml_figures(nvml, i);
 *     el_nvml_close(nvml);
 *
 * A thread samples the devices between their begin and end, about 20 times a second; a sample costs the driver about
 * a millisecond a device. The driver's utilization and power cover up to a second before it is asked, so looks in a
 * window's first second do not count for them. Errors: what one function cannot tell is NAN (or -1); only where nothing
 * can be told is there a reason for all. Threads: begin and end, any.
 */
#ifndef EL_PROFILES_NVML_H
#define EL_PROFILES_NVML_H

#include <stdbool.h>
#include <stdint.h>

#include "profiles/nvml_api.h"

/* Shorter windows have too few of the driver's own samples. */
#define EL_NVML_UTILIZATION_MIN_S 2.0
#define EL_NVML_ENERGY_MIN_S      1.0

enum { EL_NVML_TEXT_BYTES = 160, EL_NVML_LOOK_EVERY_MS = 50 };

struct el_nvml;

struct el_nvml_figures {
    char reason[EL_NVML_TEXT_BYTES]; /* why nothing is known at all; "": something is */
    double window_s;
    int n_looks;
    double utilization_pct; /* mean of the looks that count */
    char utilization_reason[EL_NVML_TEXT_BYTES];
    double clock_min_hz, clock_max_hz, clock_mean_hz; /* of the multiprocessors */
    double power_w;                                   /* mean; NAN under a second */
    double energy_j;                                  /* of the whole window */
    int64_t used_bytes, total_bytes;                  /* of the device, by any process: the highest */
    int64_t process_bytes;                            /* of this process: the highest; -1: unknown */
    int n_processes;                                  /* that compute on the device: the most */
    double throttled_pct[EL_NVML_THROTTLE_COUNT];     /* share of looks, in the order of the list */
};

/* "power cap". */
const char *el_nvml_throttle_name(int reason);

/* No figures at all, for this reason. */
void el_nvml_unknown(const char *reason, struct el_nvml_figures *figures_p);

/* `uuids` may have "": nothing is known of that device. Errors: EL_ERR_ABSENT (NVML does not start),
 * EL_ERR_HOST_MEMORY. A device that is not found is none: its figures have the reason. */
enum el_status el_nvml_open(const struct el_nvml_api *api, const char *const *uuids, int n, struct el_nvml **nvml_p);
void el_nvml_close(struct el_nvml *nvml); /* NULL is legal */
void el_nvml_begin(struct el_nvml *nvml, int device);
void el_nvml_end(struct el_nvml *nvml, int device);
/* Of the window that has ended. Valid until the next begin or close. */
const struct el_nvml_figures *el_nvml_figures(const struct el_nvml *nvml, int device);

#endif
