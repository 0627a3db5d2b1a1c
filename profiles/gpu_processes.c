/* Samples of all GPUs of the host. */
#include "profiles/gpu_processes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Skips GPUs that cannot be opened, maybe another user's. */
static void find_gpus(struct el_gpu_processes *gpus, unsigned n)
{
    const struct el_nvml_api *api = &gpus->api;
    for (unsigned i = 0; i < n && gpus->n < EL_GPUS_MAX; i++) {
        struct el_gpu_state *gpu = &gpus->gpus[gpus->n];
        *gpu = (struct el_gpu_state){.used_bytes = -1, .total_bytes = -1, .busy_pct = NAN};
        if (api->handle_by_index(i, &gpu->handle) != 0) continue;
        if (!api->uuid || api->uuid(gpu->handle, gpu->uuid, EL_GPU_TEXT_BYTES) != 0) gpu->uuid[0] = '\0';
        if (!api->name || api->name(gpu->handle, gpu->name, EL_GPU_TEXT_BYTES) != 0) gpu->name[0] = '\0';
        gpus->n++;
    }
}

enum el_status el_gpu_processes_open(const struct el_nvml_api *api, struct el_gpu_processes **gpus_p)
{
    unsigned n = 0;
    if (!api->count || !api->handle_by_index || !api->processes)
        return el_fail(EL_ERR_ABSENT, "NVML: this driver's cannot count GPUs and their processes");
    struct el_gpu_processes *gpus = calloc(1, sizeof *gpus);
    if (gpus && api->count(&n) == 0) {
        gpus->api = *api;
        find_gpus(gpus, n);
    }
    enum el_status status = !gpus          ? el_fail(EL_ERR_HOST_MEMORY, "no memory for GPUs")
                            : gpus->n == 0 ? el_fail(EL_ERR_ABSENT, "NVML counts no GPU")
                                           : EL_OK;
    if (status == EL_OK)
        *gpus_p = gpus;
    else
        free(gpus);
    return status;
}

void el_gpu_processes_close(struct el_gpu_processes *gpus)
{
    free(gpus);
}

static void look_at_state(const struct el_nvml_api *api, struct el_gpu_state *gpu)
{
    struct el_nvml_memory memory;
    struct el_nvml_utilization utilization;
    gpu->used_bytes = gpu->total_bytes = -1;
    gpu->busy_pct = NAN;
    if (el_nvml_memory(api, gpu->handle, &memory)) {
        gpu->used_bytes = (int64_t)memory.used_bytes;
        gpu->total_bytes = (int64_t)memory.total_bytes;
    }
    if (api->utilization && api->utilization(gpu->handle, &utilization) == 0) gpu->busy_pct = utilization.gpu_pct;
}

static double mean_busy(const struct el_gpu_processes *gpus, unsigned n, unsigned pid)
{
    double sum = 0;
    int count = 0;
    for (unsigned i = 0; i < n; i++) {
        if (gpus->samples[i].pid != pid) continue;
        sum += gpus->samples[i].sm_pct;
        count++;
    }
    return count ? sum / count : NAN;
}

static unsigned take_samples(struct el_gpu_processes *gpus, struct el_gpu_state *gpu)
{
    unsigned n = EL_GPU_SAMPLES_MAX;
    unsigned long long since_us = gpu->since_us;
    gpu->tells_processes = false;
    if (!gpus->api.process_utilization) return 0;
    int result = gpus->api.process_utilization(gpu->handle, gpus->samples, &n, since_us);
    gpu->tells_processes = result == EL_NVML_NOT_FOUND || (result == 0 && n <= EL_GPU_SAMPLES_MAX);
    if (result != 0 || n > EL_GPU_SAMPLES_MAX) return 0;
    for (unsigned i = 0; i < n; i++)
        if (gpus->samples[i].time_us > gpu->since_us) gpu->since_us = gpus->samples[i].time_us;
    return n;
}

static void look_at_processes(struct el_gpu_processes *gpus, int i)
{
    unsigned n = EL_GPU_USES_MAX;
    struct el_gpu_state *gpu = &gpus->gpus[i];
    if (gpus->api.processes(gpu->handle, &n, gpus->processes) != 0 || n > EL_GPU_USES_MAX) return;
    unsigned n_samples = n > 0 ? take_samples(gpus, gpu) : 0;
    for (unsigned k = 0; k < n && gpus->n_uses < EL_GPU_USES_MAX; k++) {
        const struct el_nvml_process *process = &gpus->processes[k];
        gpus->uses[gpus->n_uses++] = (struct el_gpu_use){
            .gpu = i,
            .pid = (int)process->pid,
            .used_bytes = process->used_bytes <= INT64_MAX ? (int64_t)process->used_bytes : -1,
            .busy_pct = mean_busy(gpus, n_samples, process->pid),
        };
    }
}

void el_gpu_processes_look(struct el_gpu_processes *gpus)
{
    gpus->n_uses = 0;
    for (int i = 0; i < gpus->n; i++) {
        look_at_state(&gpus->api, &gpus->gpus[i]);
        look_at_processes(gpus, i);
    }
}
