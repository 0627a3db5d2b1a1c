/* Members may be threads: the first to begin and the last to end define the system's window; GPU and memory readings
 * are each member's own. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/job/measurement.h"
#include "bench/machine/host.h"
#include "bench/record/record.h"
#include "runtime/base/files.h"

static void open_driver(struct el_job_window *window)
{
    struct el_device_identity identities[EL_MEMBERS_MAX];
    const char *uuids[EL_MEMBERS_MAX];
    struct el_nvml_api api;
    bool any = false;
    for (int i = 0; i < window->devices->n && !window->simulated; i++) {
        el_device_identify(window->devices->devices[i], &identities[i]);
        uuids[i] = identities[i].uuid;
        window->memory[i].is_gpu = *uuids[i] != '\0';
        any |= window->memory[i].is_gpu;
    }
    if (!any) return;
    enum el_status status = el_nvml_load(&api);
    if (status == EL_OK) status = el_nvml_open(&api, uuids, window->devices->n, &window->nvml);
    if (status != EL_OK) el_nvml_unknown(el_error_message(), &window->no_nvml);
}

enum el_status el_job_window_open(const struct el_job_devices *devices, struct el_job_window *window)
{
    window->memory = calloc((size_t)devices->n, sizeof *window->memory);
    if (!window->memory) return el_fail_errno("memory of %d devices", devices->n);
    window->devices = devices;
    pthread_mutex_init(&window->lock, NULL);
    for (int i = 0; i < devices->n; i++) {
        const int *cores;
        int n = el_device_cores(devices->devices[i], &cores);
        for (int c = 0; c < n; c++) {
            bool known = window->n_cpus == EL_SYSTEM_CPUS_MAX;
            for (int k = 0; k < window->n_cpus && !known; k++) known = window->cpus[k] == cores[c];
            if (!known) window->cpus[window->n_cpus++] = cores[c];
        }
        window->simulated |= el_device_is_simulated(devices->devices[i]);
    }
    open_driver(window);
    return EL_OK;
}

void el_job_window_close(struct el_job_window *window)
{
    if (!window->devices) return;
    el_nvml_close(window->nvml);
    free(window->memory);
    json_decref(window->begin_links);
    json_decref(window->end_links);
    pthread_mutex_destroy(&window->lock);
}

static int64_t read_memory(struct el_job_window *window, int member)
{
    int64_t bytes = -1;
    struct el_job_reading *reading = &window->memory[member];
    if (el_device_resident(window->devices->devices[member], &bytes) != EL_OK)
        snprintf(reading->reason, sizeof reading->reason, "%s", el_error_message());
    return bytes;
}

void el_job_window_begin(struct el_job_window *window, int member)
{
    if (window->nvml) el_nvml_begin(window->nvml, member);
    pthread_mutex_lock(&window->lock);
    if (!window->begun && !window->simulated) {
        window->begin_links = el_links_counters("");
        el_system_read("", window->cpus, window->n_cpus, &window->begin);
    }
    window->begun = true;
    pthread_mutex_unlock(&window->lock);
}

void el_job_window_read_memory(struct el_job_window *window, int member)
{
    window->memory[member].begin_bytes = read_memory(window, member);
}

void el_job_window_end(struct el_job_window *window, int member)
{
    struct el_job_reading *reading = &window->memory[member];
    char line[128];
    long long pages;
    if (window->nvml) el_nvml_end(window->nvml, member);
    pthread_mutex_lock(&window->lock);
    if (!window->simulated) {
        el_system_read("", window->cpus, window->n_cpus, &window->end);
        json_decref(window->end_links);
        window->end_links = el_links_counters("");
    }
    window->ended = true;
    pthread_mutex_unlock(&window->lock);
    reading->end_bytes = read_memory(window, member);
    const struct el_device *device = window->devices->devices[member];
    reading->reserved_bytes = el_device_is_simulated(device) ? -1 : el_device_reserved(device);
    el_file_line("/proc/self/statm", "", line, sizeof line);
    bool known = sscanf(line, "%*d %lld", &pages) == 1;
    window->resident_bytes = known ? (int64_t)pages * sysconf(_SC_PAGESIZE) : -1;
}

void el_job_window_compare(const struct el_job_window *window, struct el_system_figures *figures_p)
{
    if (window->simulated || !window->begun || !window->ended)
        el_system_unknown(window->simulated ? "simulated" : "nothing was measured", figures_p);
    else
        el_system_compare(&window->begin, &window->end, figures_p);
}

const struct el_nvml_figures *el_job_window_gpu(const struct el_job_window *window, int member)
{
    if (!window->memory[member].is_gpu) return NULL;
    return window->nvml ? el_nvml_figures(window->nvml, member) : &window->no_nvml;
}

json_t *el_job_window_account(const struct el_job_window *window, const struct el_system_figures *figures)
{
    int allowed[EL_ALLOWED_MAX], n = el_cores_allowed(allowed);
    json_t *account = el_record_system(figures, allowed, n, window->cpus, window->n_cpus);
    el_json_put(account, "interfaces", el_links_grown(window->begin_links, window->end_links));
    return account;
}
