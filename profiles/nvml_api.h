/* NVML's functions as a table that is filled at run time: NVIDIA's driver brings the library, and a program that needs
 * it to start would not start elsewhere. NVML's own types are few and stand here in our words; their layout is NVML's.
 *
 * Each function is required or optional: where an optional one is missing its pointer is NULL, and what it would have
 * told is missing from the figures, nothing else. Functions return NVML's results: 0 is well.
 */
#ifndef EL_PROFILES_NVML_API_H
#define EL_PROFILES_NVML_API_H

#include <stdint.h>

#include "runtime/base/status.h"

enum { EL_NVML_NOT_SUPPORTED = 3, EL_NVML_NOT_FOUND = 6, EL_NVML_TOO_SMALL = 7 };
enum { EL_NVML_CLOCK_SM = 1 };

/* Per cent of the driver's last sampling period, which is a sixth of a second to a second. */
struct el_nvml_utilization {
    unsigned gpu_pct, memory_pct;
};

struct el_nvml_memory {
    unsigned long long total_bytes, free_bytes, used_bytes;
};

/* `used_bytes` is all ones where the driver does not say. */
struct el_nvml_process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

/* What a process did of late; layout as NVML's, percentages of the driver's sampling period. */
struct el_nvml_process_sample {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm_pct, memory_pct, encoder_pct, decoder_pct;
};

/* What keeps the clocks down, as bits of a word; in words, and as part of a name. Those that the load itself causes;
 * idling is none. */
#define EL_NVML_THROTTLE_LIST(X)                                                                                       \
    X(0x04, "power cap", "power_cap")                                                                                  \
    X(0x08, "hardware slowdown", "hardware_slowdown")                                                                  \
    X(0x20, "heat (driver)", "heat_driver")                                                                            \
    X(0x40, "heat (hardware)", "heat_hardware")                                                                        \
    X(0x80, "power brake", "power_brake")
enum {
    EL_NVML_THROTTLE_COUNT = 0
#define EL_NVML_ONE(bit, text, name) +1
    EL_NVML_THROTTLE_LIST(EL_NVML_ONE)
#undef EL_NVML_ONE
};

struct el_nvml_api {
    /* Required. */
    int (*init)(void);
    int (*shutdown)(void);
    int (*handle_by_uuid)(const char *uuid, void **device_p);
    /* Optional. */
    const char *(*error_text)(int result);
    int (*utilization)(void *device, struct el_nvml_utilization *utilization_p);
    int (*memory)(void *device, struct el_nvml_memory *memory_p);
    int (*clock)(void *device, int type, unsigned *mhz_p);
    int (*power)(void *device, unsigned *milliwatt_p);
    int (*energy)(void *device, unsigned long long *millijoule_p); /* since the driver was loaded */
    int (*throttle)(void *device, unsigned long long *bits_p);
    /* `*n_p` is the room in `list`, then how many there are; EL_NVML_TOO_SMALL where they do not fit. */
    int (*processes)(void *device, unsigned *n_p, struct el_nvml_process *list);
    /* Samples taken after `since_us`, of processes that worked; EL_NVML_NOT_FOUND: none. `*n_p` as above. */
    int (*process_utilization)(void *device, struct el_nvml_process_sample *list, unsigned *n_p,
                               unsigned long long since_us);
    int (*count)(unsigned *n_p);
    int (*handle_by_index)(unsigned index, void **device_p);
    int (*uuid)(void *device, char *text, unsigned bytes);
    int (*name)(void *device, char *text, unsigned bytes);
    int64_t (*now_ns)(void); /* none of NVML's: the clock that windows are measured with; NULL: el_clock_ns */
};

/* Fills the table from wherever symbols come. Errors: EL_ERR_ABSENT naming a required function that is missing. */
enum el_status el_nvml_bind(void *(*find)(void *context, const char *symbol), void *context, struct el_nvml_api *api_p);
/* What a result means, in words. Static text. */
const char *el_nvml_text(const struct el_nvml_api *api, int result);
/* From the driver's library, which stays open. Errors: EL_ERR_ABSENT, also where there is no driver. */
enum el_status el_nvml_load(struct el_nvml_api *api_p);

#endif
