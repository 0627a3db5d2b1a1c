/* GPU readings by the driver during a window: utilization, memory, clock, power, energy, throttling.
 *
 *     el_nvml_load(&api);
 *     el_nvml_open(&api, uuids, n, &nvml);                matches devices by UUID
 *     el_nvml_begin(nvml, i);   ... steps ...   el_nvml_end(nvml, i);
 *     el_nvml_figures(nvml, i);
 *     el_nvml_close(nvml);
 *
 * A thread samples open windows about 20 times per second; a sample costs about a millisecond per device. The driver's
 * utilization and power cover up to the preceding second, so samples in a window's first second do not count for them.
 * Errors: unknown values are NAN (or -1); a reason is set if nothing is known. Threads: begin and end, any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"

/* ---- NVML's functions as a table filled at run time, because the library comes with NVIDIA's driver. Types are
 * declared here with NVML's layout. A missing optional function is NULL, and its values are unknown. Functions return
 * NVML's results; 0: success. ---- */

enum { EL_NVML_MISSING = -1 /* ours: no such function */ };
enum { EL_NVML_BAD_ARGUMENT = 2, EL_NVML_NOT_SUPPORTED = 3, EL_NVML_NOT_FOUND = 6, EL_NVML_TOO_SMALL = 7 };
enum { EL_NVML_CLOCK_SM = 1 };
enum { EL_NVML_PCIE_COUNT = 4 }; /* generation, its maximum with this card and slot; width in lanes, its maximum */
enum { EL_NVML_LINKS_MAX = 64, EL_NVML_LINK_ERRORS = 4 }; /* replays, recoveries, CRC errors of flits and of data */
enum { EL_NVML_PEER_SWITCH = 2, EL_NVML_LINKS_SPEED = 90, EL_NVML_LINK_SPEED = 164 /* MB/s */, EL_NVML_UNSIGNED = 1 };

/* Per cent of the driver's last sampling period, a sixth of a second to a second. */
struct el_nvml_utilization {
    unsigned gpu_pct, memory_pct;
};

struct el_nvml_memory {
    unsigned long long total_bytes, free_bytes, used_bytes;
};

/* From driver 510; `used_bytes` excludes the driver's reserve, in some releases not. */
struct el_nvml_memory_v2 {
    unsigned version;
    unsigned long long total_bytes, reserved_bytes, free_bytes, used_bytes;
};
#define EL_NVML_MEMORY_V2 (unsigned)(sizeof(struct el_nvml_memory_v2) | 2U << 24)

/* `used_bytes`: all ones if unknown. */
struct el_nvml_process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

/* Per cent of the driver's sampling period. */
struct el_nvml_process_sample {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm_pct, memory_pct, encoder_pct, decoder_pct;
};

struct el_nvml_pci {
    char legacy_text[16];
    unsigned domain, bus, device, id, subsystem_id;
    char text[32];
};

struct el_nvml_field {
    unsigned id, scope;
    long long time_us, latency_us;
    int type, result;
    union {
        double real;
        unsigned whole;
        unsigned long long wide;
    } value;
};

/* What keeps clocks down under load: bit, text, name. Idling is not listed. */
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
    int (*handle_by_uuid)(const char *uuid, void **device_p);
    /* Optional. */
    const char *(*error_text)(int result);
    int (*utilization)(void *device, struct el_nvml_utilization *utilization_p);
    int (*memory)(void *device, struct el_nvml_memory *memory_p); /* used includes the reserve */
    int (*memory_v2)(void *device, struct el_nvml_memory_v2 *memory_p);
    int (*clock)(void *device, int type, unsigned *mhz_p);
    int (*power)(void *device, unsigned *milliwatt_p);
    int (*energy)(void *device, unsigned long long *millijoule_p); /* since the driver was loaded */
    int (*throttle)(void *device, unsigned long long *bits_p);
    /* `*n_p`: room in `list`, then the number; EL_NVML_TOO_SMALL if they do not fit. */
    int (*processes)(void *device, unsigned *n_p, struct el_nvml_process *list);
    /* Samples after `since_us` of processes that worked; EL_NVML_NOT_FOUND: none. `*n_p` as above. */
    int (*process_utilization)(void *device, struct el_nvml_process_sample *list, unsigned *n_p,
                               unsigned long long since_us);
    int (*count)(unsigned *n_p);
    int (*handle_by_index)(unsigned index, void **device_p);
    int (*uuid)(void *device, char *text, unsigned bytes);
    int (*name)(void *device, char *text, unsigned bytes);
    int (*pci)(void *device, struct el_nvml_pci *pci_p);
    int (*pcie[EL_NVML_PCIE_COUNT])(void *device, unsigned *value_p);
    int (*pcie_replays)(void *device, unsigned *count_p); /* since the driver was loaded */
    /* EL_NVML_NOT_SUPPORTED: no NVLinks; EL_NVML_BAD_ARGUMENT: no such link. */
    int (*nvlink_state)(void *device, unsigned link, unsigned *active_p);
    int (*nvlink_version)(void *device, unsigned link, unsigned *version_p);
    int (*nvlink_peer)(void *device, unsigned link, unsigned *type_p); /* 0 a GPU, 2 a switch */
    int (*nvlink_peer_pci)(void *device, unsigned link, struct el_nvml_pci *pci_p);
    int (*nvlink_errors)(void *device, unsigned link, int counter, unsigned long long *count_p);
    int (*fields)(void *device, int n, struct el_nvml_field *fields);
    int (*ancestor)(void *a, void *b, int *level_p); /* 0 one board, 10, 20, ... 50 other sockets */
    int64_t (*now_ns)(void);                         /* ours: clock of windows; NULL: el_clock_ns */
};

/* Errors: EL_ERR_ABSENT naming a missing required function. */
enum el_status el_nvml_bind(void *(*find)(void *context, const char *symbol), void *context, struct el_nvml_api *api_p);
/* Whether the result means that there is none. */
static inline bool el_nvml_is_none(int result)
{
    return result == EL_NVML_BAD_ARGUMENT || result == EL_NVML_NOT_SUPPORTED;
}
/* Memory as in nvidia-smi: without the driver's reserve if known. False: unknown. */
bool el_nvml_memory(const struct el_nvml_api *api, void *device, struct el_nvml_memory *memory_p);
/* A result in words. Static text. */
const char *el_nvml_text(const struct el_nvml_api *api, int result);
/* Opens and starts the driver's library for good. Errors: EL_ERR_ABSENT, also without a driver. */
enum el_status el_nvml_load(struct el_nvml_api *api_p);

/* ---- figures ---- */

/* Shorter windows have too few of the driver's samples. */
#define EL_NVML_UTILIZATION_MIN_S 2.0
#define EL_NVML_ENERGY_MIN_S      1.0

enum { EL_NVML_TEXT_BYTES = 160, EL_NVML_LOOK_EVERY_MS = 50 };

struct el_nvml;

struct el_nvml_figures {
    char reason[EL_NVML_TEXT_BYTES]; /* why nothing is known, or "" */
    double window_s;
    int n_looks;
    double utilization_pct; /* mean of counted samples */
    char utilization_reason[EL_NVML_TEXT_BYTES];
    double clock_min_hz, clock_max_hz, clock_mean_hz; /* of the multiprocessors */
    double power_w;                                   /* mean; NAN below a second */
    double energy_j;                                  /* of the whole window */
    int64_t used_bytes, total_bytes;                  /* used: by any process, maximum */
    int64_t process_bytes;                            /* of this process, maximum; -1: unknown */
    int n_processes;                                  /* computing on the device, maximum */
    double throttled_pct[EL_NVML_THROTTLE_COUNT];     /* share of samples, in the order of the list */
    int64_t nvlink_errors, pcie_replays;              /* growth in the window; -1: unknown, or no NVLinks */
};

/* "power cap" */
const char *el_nvml_throttle_name(int reason);

/* All unknown, with this reason. */
void el_nvml_unknown(const char *reason, struct el_nvml_figures *figures_p);

/* A `uuids` of "": that device is unknown. A device that is not found is no error: its figures have the reason. Errors:
 * EL_ERR_HOST_MEMORY. */
enum el_status el_nvml_open(const struct el_nvml_api *api, const char *const *uuids, int n, struct el_nvml **nvml_p);
void el_nvml_close(struct el_nvml *nvml); /* NULL is legal */
void el_nvml_begin(struct el_nvml *nvml, int device);
void el_nvml_end(struct el_nvml *nvml, int device);
/* Of the last ended window. Valid until the next begin or close. */
const struct el_nvml_figures *el_nvml_figures(const struct el_nvml *nvml, int device);
