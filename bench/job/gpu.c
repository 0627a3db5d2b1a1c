/* NVML's window round the measured steps of each GPU of a process. */
#include "bench/job/gpu.h"

#include <stdlib.h>

struct el_job_gpu {
    struct el_nvml *nvml;          /* NULL: not to be had */
    struct el_nvml_figures absent; /* then: why */
    bool is_gpu[EL_MEMBERS_MAX];
};

static void start(struct el_job_gpu *gpus, const char *const *uuids, int n)
{
    struct el_nvml_api api;
    enum el_status status = el_nvml_load(&api);
    if (status == EL_OK) status = el_nvml_open(&api, uuids, n, &gpus->nvml);
    if (status != EL_OK) el_nvml_unknown(el_error_message(), &gpus->absent);
}

enum el_status el_job_gpu_open(const struct el_job_devices *devices, struct el_job_gpu **gpus_p)
{
    struct el_device_identity identities[EL_MEMBERS_MAX];
    const char *uuids[EL_MEMBERS_MAX];
    bool any = false;
    struct el_job_gpu *gpus = calloc(1, sizeof *gpus);
    if (!gpus) return el_fail(EL_ERR_HOST_MEMORY, "no memory for what the driver says");
    for (int i = 0; i < devices->n; i++) {
        el_device_identify(devices->devices[i], &identities[i]);
        uuids[i] = identities[i].uuid;
        gpus->is_gpu[i] = *uuids[i] != '\0';
        any |= gpus->is_gpu[i];
    }
    if (any) start(gpus, uuids, devices->n);
    *gpus_p = any ? gpus : NULL;
    if (!any) free(gpus);
    return EL_OK;
}

void el_job_gpu_close(struct el_job_gpu *gpus)
{
    if (gpus) el_nvml_close(gpus->nvml);
    free(gpus);
}

void el_job_gpu_begin(struct el_job_gpu *gpus, int member)
{
    if (gpus && gpus->nvml) el_nvml_begin(gpus->nvml, member);
}

void el_job_gpu_end(struct el_job_gpu *gpus, int member)
{
    if (gpus && gpus->nvml) el_nvml_end(gpus->nvml, member);
}

const struct el_nvml_figures *el_job_gpu_figures(const struct el_job_gpu *gpus, int member)
{
    if (!gpus || !gpus->is_gpu[member]) return NULL;
    return gpus->nvml ? el_nvml_figures(gpus->nvml, member) : &gpus->absent;
}
