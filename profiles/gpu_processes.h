/* All GPUs of the host and all processes on them, by the driver.
 *
 *     el_nvml_load(&api);
 *     el_gpu_processes_open(&api, &gpus);
 *     el_gpu_processes_look(gpus);                 a sample: about a millisecond per GPU
 *     gpus->gpus[i];                               0 <= i < gpus->n: state at the last sample
 *     gpus->uses[k];                               0 <= k < gpus->n_uses: a process on a GPU
 *     el_gpu_processes_close(gpus);
 *
 * GPUs are in NVML's order, by bus address; CUDA's may differ: join by UUID. In a container the driver may report the
 * host's process numbers, which cannot be matched. Unknown values are -1 or NAN. Threads: one. (profiles/nvml.h:
 * devices that this process trains on.) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profiles/nvml.h"

enum { EL_GPUS_MAX = 64, EL_GPU_USES_MAX = 1024, EL_GPU_SAMPLES_MAX = 1024, EL_GPU_TEXT_BYTES = 96 };

struct el_gpu_state {
    char uuid[EL_GPU_TEXT_BYTES], name[EL_GPU_TEXT_BYTES];
    int64_t used_bytes, total_bytes; /* used: by any process; -1: unknown */
    double busy_pct;                 /* of the driver's last sampling period; NAN */
    bool tells_processes;            /* reports processes: one without a sample was idle, or is not due */
    void *handle;
    unsigned long long since_us; /* last counted sample */
};

struct el_gpu_use {
    int gpu;
    int pid;
    int64_t used_bytes; /* -1: unknown */
    double busy_pct;    /* this process's: mean of the driver's samples since our last one; NAN: none */
};

struct el_gpu_processes {
    int n, n_uses;
    struct el_gpu_state gpus[EL_GPUS_MAX];
    struct el_gpu_use uses[EL_GPU_USES_MAX];
    /* private */
    struct el_nvml_api api;
    struct el_nvml_process processes[EL_GPU_USES_MAX];
    struct el_nvml_process_sample samples[EL_GPU_SAMPLES_MAX];
};

/* Errors: EL_ERR_ABSENT (no GPU, or no function for processes), EL_ERR_HOST_MEMORY. */
enum el_status el_gpu_processes_open(const struct el_nvml_api *api, struct el_gpu_processes **gpus_p);
void el_gpu_processes_close(struct el_gpu_processes *gpus); /* NULL is legal */
void el_gpu_processes_look(struct el_gpu_processes *gpus);
