/* What the driver says of every GPU of the host, and of every process on each: for processes that are not ours.
 *
 *     el_nvml_load(&api);
 *     el_gpu_processes_open(&api, &gpus);
 *     el_gpu_processes_look(gpus);                 a sample: takes the driver about a millisecond a GPU
 *     gpus->gpus[i];                               0 <= i < gpus->n: its state at the last sample
 *     gpus->uses[k];                               0 <= k < gpus->n_uses: a process on a GPU each
 *     el_gpu_processes_close(gpus);
 *
 * GPUs are counted as NVML does, by their place on the bus; CUDA may count otherwise: the UUID joins them. In a
 * container the driver may tell the host's numbers of processes, which nobody in it can join. Errors: what one function
 * cannot tell is -1 or NAN. Threads: one. (profiles/nvml.h measures devices that this process trains on.)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profiles/nvml.h"

enum { EL_GPUS_MAX = 64, EL_GPU_USES_MAX = 1024, EL_GPU_SAMPLES_MAX = 1024, EL_GPU_TEXT_BYTES = 96 };

struct el_gpu_state {
    char uuid[EL_GPU_TEXT_BYTES], name[EL_GPU_TEXT_BYTES];
    int64_t used_bytes, total_bytes; /* by any process; -1: unknown */
    double busy_pct;                 /* of the driver's last sampling period; NAN */
    bool tells_processes; /* whether it tells what processes do: who has no sample did nothing, or is not due */
    void *handle;
    unsigned long long since_us; /* the last sample that was counted */
};

struct el_gpu_use {
    int gpu;
    int pid;
    int64_t used_bytes; /* -1: unknown */
    double busy_pct;    /* of this process: mean of the driver's samples since our last sample; NAN: none */
};

struct el_gpu_processes {
    int n, n_uses;
    struct el_gpu_state gpus[EL_GPUS_MAX];
    struct el_gpu_use uses[EL_GPU_USES_MAX];
    /* gpu_processes.c's own */
    struct el_nvml_api api;
    struct el_nvml_process processes[EL_GPU_USES_MAX];
    struct el_nvml_process_sample samples[EL_GPU_SAMPLES_MAX];
};

/* Errors: EL_ERR_ABSENT (NVML counts no GPU, or cannot tell of processes), EL_ERR_HOST_MEMORY. */
enum el_status el_gpu_processes_open(const struct el_nvml_api *api, struct el_gpu_processes **gpus_p);
void el_gpu_processes_close(struct el_gpu_processes *gpus); /* NULL is legal */
void el_gpu_processes_look(struct el_gpu_processes *gpus);
