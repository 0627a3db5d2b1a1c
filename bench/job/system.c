/* Readings of the system at both ends of a process's measured steps. Members may be threads: whoever begins first and
 * whoever ends last make the window. */
#include "bench/job/system.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record/system.h"

struct el_job_system {
    pthread_mutex_t lock;
    int cpus[EL_SYSTEM_CPUS_MAX], n_cpus; /* of this process's devices, each once */
    bool simulated, begun, ended;
    struct el_system_reading begin, end;
    struct el_system_figures figures;
};

static void add_cpu(struct el_job_system *window, int cpu)
{
    for (int i = 0; i < window->n_cpus; i++)
        if (window->cpus[i] == cpu) return;
    if (window->n_cpus < EL_SYSTEM_CPUS_MAX) window->cpus[window->n_cpus++] = cpu;
}

enum el_status el_job_system_open(const struct el_job_devices *devices, struct el_job_system **window_p)
{
    struct el_job_system *window = calloc(1, sizeof *window);
    if (!window) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the system's counters");
    pthread_mutex_init(&window->lock, NULL);
    for (int i = 0; i < devices->n; i++) {
        const int *cores;
        int n = el_device_cores(devices->devices[i], &cores);
        for (int c = 0; c < n; c++) add_cpu(window, cores[c]);
        window->simulated |= el_device_is_simulated(devices->devices[i]);
    }
    *window_p = window;
    return EL_OK;
}

void el_job_system_close(struct el_job_system *window)
{
    if (!window) return;
    pthread_mutex_destroy(&window->lock);
    free(window);
}

void el_job_system_begin(struct el_job_system *window)
{
    pthread_mutex_lock(&window->lock);
    if (!window->begun && !window->simulated) el_system_read("", window->cpus, window->n_cpus, &window->begin);
    window->begun = true;
    pthread_mutex_unlock(&window->lock);
}

void el_job_system_end(struct el_job_system *window)
{
    pthread_mutex_lock(&window->lock);
    if (!window->simulated) el_system_read("", window->cpus, window->n_cpus, &window->end);
    window->ended = true;
    pthread_mutex_unlock(&window->lock);
}

const struct el_system_figures *el_job_system_compare(struct el_job_system *window)
{
    if (window->simulated || !window->begun || !window->ended)
        el_system_unknown(window->simulated ? "simulated" : "nothing was measured", &window->figures);
    else
        el_system_compare(&window->begin, &window->end, &window->figures);
    return &window->figures;
}

json_t *el_job_system_account(const struct el_job_system *window)
{
    cpu_set_t set;
    int allowed[CPU_SETSIZE], n = 0;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &set)) allowed[n++] = c;
    return el_record_system(&window->figures, allowed, n, window->cpus, window->n_cpus);
}
