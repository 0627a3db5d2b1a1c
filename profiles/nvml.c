/* One thread samples all devices with open windows into sums. */
#include "profiles/nvml.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"

enum { PROCESSES_MAX = 256, SETTLE_NS = 1000000000 };

struct mean {
    double sum, least, most;
    int n;
};

struct device {
    void *handle; /* NULL: not found */
    bool open;    /* its window */
    int64_t begin_ns;
    double begin_energy_j;
    int64_t begin_nvlink_errors, begin_pcie_replays;
    struct mean utilization, clock_hz, power_w;
    int n_throttle_looks, throttle_looks[EL_NVML_THROTTLE_COUNT];
    struct el_nvml_figures figures;
};

struct el_nvml {
    struct el_nvml_api api;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    pthread_t thread;
    bool threaded, closing;
    struct el_nvml_process processes[PROCESSES_MAX];
    int n;
    struct device devices[];
};

static const struct {
    unsigned long long bit;
    const char *name;
} throttles[] = {
#define EL_NVML_ROW(bit_, text, name_) {.bit = bit_, .name = text},
    EL_NVML_THROTTLE_LIST(EL_NVML_ROW)
#undef EL_NVML_ROW
};

const char *el_nvml_throttle_name(int reason)
{
    return throttles[reason].name;
}

static int64_t now_ns(const struct el_nvml *nvml)
{
    return nvml->api.now_ns ? nvml->api.now_ns() : el_clock_ns();
}

static void count(struct mean *mean, double value)
{
    mean->least = mean->n ? fmin(mean->least, value) : value;
    mean->most = mean->n ? fmax(mean->most, value) : value;
    mean->sum += value;
    mean->n++;
}

static double result_of(const struct mean *mean)
{
    return mean->n ? mean->sum / mean->n : NAN;
}

static void raise_to(int64_t *highest, unsigned long long value)
{
    if (value <= INT64_MAX && (int64_t)value > *highest) *highest = (int64_t)value;
}

static void look_at_utilization(const struct el_nvml *nvml, struct device *device, int64_t now_ns)
{
    struct el_nvml_utilization utilization;
    char *reason = device->figures.utilization_reason;
    if (!nvml->api.utilization) {
        snprintf(reason, EL_NVML_TEXT_BYTES, "this driver's NVML does not tell");
        return;
    }
    int result = nvml->api.utilization(device->handle, &utilization);
    if (result == EL_NVML_NOT_SUPPORTED)
        snprintf(reason, EL_NVML_TEXT_BYTES, "NVML: not supported here (a MIG instance has no utilization of its own)");
    else if (result != 0)
        snprintf(reason, EL_NVML_TEXT_BYTES, "NVML: %s", el_nvml_text(&nvml->api, result));
    else if (now_ns - device->begin_ns >= SETTLE_NS)
        count(&device->utilization, utilization.gpu_pct);
}

static void look_at_memory(struct el_nvml *nvml, struct device *device)
{
    struct el_nvml_memory memory;
    struct el_nvml_figures *figures = &device->figures;
    unsigned n = PROCESSES_MAX;
    if (el_nvml_memory(&nvml->api, device->handle, &memory)) {
        raise_to(&figures->used_bytes, memory.used_bytes);
        raise_to(&figures->total_bytes, memory.total_bytes);
    }
    if (!nvml->api.processes) return;
    int result = nvml->api.processes(device->handle, &n, nvml->processes);
    if (result != 0 && result != EL_NVML_TOO_SMALL) return;
    if ((int)n > figures->n_processes) figures->n_processes = (int)n;
    for (unsigned i = 0; result == 0 && i < n && i < PROCESSES_MAX; i++)
        if (nvml->processes[i].pid == (unsigned)getpid())
            raise_to(&figures->process_bytes, nvml->processes[i].used_bytes);
}

static void look_at_clocks(const struct el_nvml *nvml, struct device *device)
{
    unsigned value;
    unsigned long long bits;
    if (nvml->api.clock && nvml->api.clock(device->handle, EL_NVML_CLOCK_SM, &value) == 0)
        count(&device->clock_hz, 1e6 * value);
    if (!nvml->api.throttle || nvml->api.throttle(device->handle, &bits) != 0) return;
    device->n_throttle_looks++;
    for (int r = 0; r < EL_NVML_THROTTLE_COUNT; r++) device->throttle_looks[r] += (bits & throttles[r].bit) != 0;
}

/* -1: none, or one is unreadable now. */
static int64_t nvlink_errors(const struct el_nvml_api *api, void *handle)
{
    unsigned active;
    unsigned long long errors;
    int64_t all = -1;
    int told = 0;
    for (unsigned l = 0; told == 0 && api->nvlink_state && api->nvlink_errors && l < EL_NVML_LINKS_MAX; l++) {
        told = api->nvlink_state(handle, l, &active);
        for (int c = 0; told == 0 && active && c < EL_NVML_LINK_ERRORS; c++) {
            int result = api->nvlink_errors(handle, l, c, &errors);
            if (result == 0) all = (all < 0 ? 0 : all) + (int64_t)errors;
            if (result != 0 && !el_nvml_is_none(result)) return -1;
        }
    }
    return told == 0 || el_nvml_is_none(told) ? all : -1;
}

static void read_links(const struct el_nvml_api *api, void *handle, int64_t *errors_p, int64_t *pcie_replays)
{
    unsigned replays;
    *errors_p = nvlink_errors(api, handle);
    *pcie_replays = api->pcie_replays && api->pcie_replays(handle, &replays) == 0 ? (int64_t)replays : -1;
}

static void look(struct el_nvml *nvml, struct device *device)
{
    unsigned milliwatt;
    device->figures.n_looks++;
    look_at_clocks(nvml, device);
    look_at_memory(nvml, device);
    /* Newer cards report the mean power of the last second, older ones the moment, so the window's first second is
     * skipped. */
    bool settled = now_ns(nvml) - device->begin_ns >= SETTLE_NS;
    if (settled && nvml->api.power && nvml->api.power(device->handle, &milliwatt) == 0)
        count(&device->power_w, 1e-3 * milliwatt);
    look_at_utilization(nvml, device, now_ns(nvml));
}

static double read_energy_j(const struct el_nvml *nvml, const struct device *device)
{
    unsigned long long millijoule;
    if (!nvml->api.energy || nvml->api.energy(device->handle, &millijoule) != 0) return NAN;
    return 1e-3 * (double)millijoule;
}

static void *watch(void *argument)
{
    struct el_nvml *nvml = argument;
    pthread_mutex_lock(&nvml->lock);
    while (!nvml->closing) {
        struct timespec next;
        clock_gettime(CLOCK_MONOTONIC, &next);
        next.tv_nsec += EL_NVML_LOOK_EVERY_MS * 1000000L;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        bool any = false; /* window is open */
        for (int i = 0; i < nvml->n; i++) {
            if (!nvml->devices[i].open) continue;
            look(nvml, &nvml->devices[i]);
            any = true;
        }
        if (any)
            pthread_cond_timedwait(&nvml->changed, &nvml->lock, &next);
        else
            pthread_cond_wait(&nvml->changed, &nvml->lock);
    }
    pthread_mutex_unlock(&nvml->lock);
    return NULL;
}

void el_nvml_unknown(const char *reason, struct el_nvml_figures *figures_p)
{
    *figures_p = (struct el_nvml_figures){.window_s = NAN,
                                          .utilization_pct = NAN,
                                          .clock_min_hz = NAN,
                                          .clock_max_hz = NAN,
                                          .clock_mean_hz = NAN,
                                          .power_w = NAN,
                                          .energy_j = NAN,
                                          .used_bytes = -1,
                                          .total_bytes = -1,
                                          .process_bytes = -1,
                                          .n_processes = -1,
                                          .nvlink_errors = -1,
                                          .pcie_replays = -1};
    for (int r = 0; r < EL_NVML_THROTTLE_COUNT; r++) figures_p->throttled_pct[r] = NAN;
    snprintf(figures_p->reason, sizeof figures_p->reason, "%s", reason);
}

static void forget(struct device *device)
{
    char reason[EL_NVML_TEXT_BYTES];
    memcpy(reason, device->figures.reason, sizeof reason);
    *device = (struct device){.handle = device->handle, .begin_energy_j = NAN};
    el_nvml_unknown(reason, &device->figures);
}

static void find(struct el_nvml *nvml, const char *uuid, struct device *device)
{
    int result = *uuid ? nvml->api.handle_by_uuid(uuid, &device->handle) : 0;
    if (result != 0) device->handle = NULL;
    forget(device);
    if (*uuid == '\0')
        snprintf(device->figures.reason, sizeof device->figures.reason, "the device has no UUID to find it by");
    else if (result != 0)
        snprintf(device->figures.reason, sizeof device->figures.reason, "NVML does not find %.60s: %.60s", uuid,
                 el_nvml_text(&nvml->api, result));
}

enum el_status el_nvml_open(const struct el_nvml_api *api, const char *const *uuids, int n, struct el_nvml **nvml_p)
{
    pthread_condattr_t attributes;
    struct el_nvml *nvml = calloc(1, sizeof *nvml + (size_t)n * sizeof *nvml->devices);
    if (!nvml) return el_fail(EL_ERR_HOST_MEMORY, "NVML: no memory for %d devices", n);
    nvml->api = *api;
    nvml->n = n;
    pthread_mutex_init(&nvml->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&nvml->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    for (int i = 0; i < nvml->n; i++) find(nvml, uuids[i], &nvml->devices[i]);
    nvml->threaded = pthread_create(&nvml->thread, NULL, watch, nvml) == 0;
    if (!nvml->threaded) {
        el_nvml_close(nvml);
        return el_fail(EL_ERR_HOST_MEMORY, "NVML: no thread to sample the devices");
    }
    *nvml_p = nvml;
    return EL_OK;
}

void el_nvml_close(struct el_nvml *nvml)
{
    if (!nvml) return;
    pthread_mutex_lock(&nvml->lock);
    nvml->closing = true;
    pthread_cond_signal(&nvml->changed);
    pthread_mutex_unlock(&nvml->lock);
    if (nvml->threaded) pthread_join(nvml->thread, NULL);
    pthread_cond_destroy(&nvml->changed);
    pthread_mutex_destroy(&nvml->lock);
    free(nvml);
}

void el_nvml_begin(struct el_nvml *nvml, int i)
{
    struct device *device = &nvml->devices[i];
    pthread_mutex_lock(&nvml->lock);
    forget(device);
    if (device->handle) {
        read_links(&nvml->api, device->handle, &device->begin_nvlink_errors, &device->begin_pcie_replays);
        device->begin_energy_j = read_energy_j(nvml, device);
        device->begin_ns = now_ns(nvml);
        device->open = true;
        pthread_cond_signal(&nvml->changed);
    }
    pthread_mutex_unlock(&nvml->lock);
}

static void conclude(struct device *device, double energy_j)
{
    struct el_nvml_figures *f = &device->figures;
    f->clock_min_hz = device->clock_hz.n ? device->clock_hz.least : NAN;
    f->clock_max_hz = device->clock_hz.n ? device->clock_hz.most : NAN;
    f->clock_mean_hz = result_of(&device->clock_hz);
    f->power_w = result_of(&device->power_w);
    if (f->window_s >= EL_NVML_ENERGY_MIN_S) f->energy_j = energy_j - device->begin_energy_j;
    for (int r = 0; r < EL_NVML_THROTTLE_COUNT && device->n_throttle_looks; r++)
        f->throttled_pct[r] = 100.0 * device->throttle_looks[r] / device->n_throttle_looks;
    if (*f->utilization_reason) return;
    if (f->window_s >= EL_NVML_UTILIZATION_MIN_S) f->utilization_pct = result_of(&device->utilization);
    if (isnan(f->utilization_pct))
        snprintf(f->utilization_reason, sizeof f->utilization_reason,
                 "window of %.2g s: under %.0f s the driver's own samples say too little", f->window_s,
                 EL_NVML_UTILIZATION_MIN_S);
}

static void take_off(int64_t *count, int64_t before)
{
    *count = before >= 0 && *count >= before ? *count - before : -1;
}

void el_nvml_end(struct el_nvml *nvml, int i)
{
    struct device *device = &nvml->devices[i];
    pthread_mutex_lock(&nvml->lock);
    if (device->open) {
        device->figures.window_s = 1e-9 * (double)(now_ns(nvml) - device->begin_ns);
        double energy_j = read_energy_j(nvml, device);
        look(nvml, device);
        device->open = false;
        conclude(device, energy_j);
        read_links(&nvml->api, device->handle, &device->figures.nvlink_errors, &device->figures.pcie_replays);
        take_off(&device->figures.nvlink_errors, device->begin_nvlink_errors);
        take_off(&device->figures.pcie_replays, device->begin_pcie_replays);
    }
    pthread_mutex_unlock(&nvml->lock);
}

const struct el_nvml_figures *el_nvml_figures(const struct el_nvml *nvml, int device)
{
    return &nvml->devices[device].figures;
}
