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
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"

/* ---- NVML's functions as a table that is filled at run time: NVIDIA's driver brings the library, and a program that
 * needs it to start would not start elsewhere. NVML's own types are few and stand here in our words; their layout is
 * NVML's. Each function is required or optional: where an optional one is missing its pointer is NULL, and what it
 * would have told is missing from the figures, nothing else. Functions return NVML's results: 0 is well. ---- */

enum { EL_NVML_MISSING = -1 /* ours: no such function */ };
enum { EL_NVML_BAD_ARGUMENT = 2, EL_NVML_NOT_SUPPORTED = 3, EL_NVML_NOT_FOUND = 6, EL_NVML_TOO_SMALL = 7 };
enum { EL_NVML_CLOCK_SM = 1 };
enum { EL_NVML_PCIE_COUNT = 4 }; /* generation, its maximum with this card in this slot; width in lanes, its maximum */
enum { EL_NVML_LINKS_MAX = 64, EL_NVML_LINK_ERRORS = 4 }; /* replays, recoveries, CRC errors of flits and of data */
enum { EL_NVML_PEER_SWITCH = 2, EL_NVML_LINKS_SPEED = 90, EL_NVML_LINK_SPEED = 164 /* MB/s */, EL_NVML_UNSIGNED = 1 };

/* Per cent of the driver's last sampling period, which is a sixth of a second to a second. */
struct el_nvml_utilization {
    unsigned gpu_pct, memory_pct;
};

struct el_nvml_memory {
    unsigned long long total_bytes, free_bytes, used_bytes;
};

/* From driver 510 on; `used_bytes` is without what the driver reserved, or, as some releases say, with it. */
struct el_nvml_memory_v2 {
    unsigned version;
    unsigned long long total_bytes, reserved_bytes, free_bytes, used_bytes;
};
#define EL_NVML_MEMORY_V2 (unsigned)(sizeof(struct el_nvml_memory_v2) | 2U << 24)

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

/* Layouts as NVML's. */
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
    int (*handle_by_uuid)(const char *uuid, void **device_p);
    /* Optional. */
    const char *(*error_text)(int result);
    int (*utilization)(void *device, struct el_nvml_utilization *utilization_p);
    int (*memory)(void *device, struct el_nvml_memory *memory_p); /* used with what is reserved */
    int (*memory_v2)(void *device, struct el_nvml_memory_v2 *memory_p);
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
    int (*pci)(void *device, struct el_nvml_pci *pci_p);
    int (*pcie[EL_NVML_PCIE_COUNT])(void *device, unsigned *value_p);
    int (*pcie_replays)(void *device, unsigned *count_p); /* since the driver was loaded */
    /* EL_NVML_NOT_SUPPORTED: no NVLinks; EL_NVML_BAD_ARGUMENT: no link of that number. */
    int (*nvlink_state)(void *device, unsigned link, unsigned *active_p);
    int (*nvlink_version)(void *device, unsigned link, unsigned *version_p);
    int (*nvlink_peer)(void *device, unsigned link, unsigned *type_p); /* 0 a GPU, 2 a switch */
    int (*nvlink_peer_pci)(void *device, unsigned link, struct el_nvml_pci *pci_p);
    int (*nvlink_errors)(void *device, unsigned link, int counter, unsigned long long *count_p);
    int (*fields)(void *device, int n, struct el_nvml_field *fields);
    int (*ancestor)(void *a, void *b, int *level_p); /* 0 one board, 10, 20, ... 50 other sockets */
    int64_t (*now_ns)(void); /* none of NVML's: the clock that windows are measured with; NULL: el_clock_ns */
};

/* Fills the table from wherever symbols come. Errors: EL_ERR_ABSENT naming a required function that is missing. */
enum el_status el_nvml_bind(void *(*find)(void *context, const char *symbol), void *context, struct el_nvml_api *api_p);
/* Whether it means that there is no such thing, which is an answer. */
static inline bool el_nvml_is_none(int result)
{
    return result == EL_NVML_BAD_ARGUMENT || result == EL_NVML_NOT_SUPPORTED;
}
/* Of the card, as nvidia-smi shows it: what the driver reserved is not used, where it tells. False: not known. */
bool el_nvml_memory(const struct el_nvml_api *api, void *device, struct el_nvml_memory *memory_p);
/* What a result means, in words. Static text. */
const char *el_nvml_text(const struct el_nvml_api *api, int result);
/* From the driver's library, which is started and stays open. Errors: EL_ERR_ABSENT, also where there is no driver. */
enum el_status el_nvml_load(struct el_nvml_api *api_p);

/* ---- what is made of it ---- */

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
    int64_t nvlink_errors, pcie_replays;              /* more than at the window's begin; -1: unknown, or no NVLinks */
};

/* "power cap". */
const char *el_nvml_throttle_name(int reason);

/* No figures at all, for this reason. */
void el_nvml_unknown(const char *reason, struct el_nvml_figures *figures_p);

/* `uuids` may have "": nothing is known of that device. Errors: EL_ERR_HOST_MEMORY. A device that is not found is none:
 * its figures have the reason. */
enum el_status el_nvml_open(const struct el_nvml_api *api, const char *const *uuids, int n, struct el_nvml **nvml_p);
void el_nvml_close(struct el_nvml *nvml); /* NULL is legal */
void el_nvml_begin(struct el_nvml *nvml, int device);
void el_nvml_end(struct el_nvml *nvml, int device);
/* Of the window that has ended. Valid until the next begin or close. */
const struct el_nvml_figures *el_nvml_figures(const struct el_nvml *nvml, int device);
