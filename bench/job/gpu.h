/* What the driver says of a process's GPUs over their measured steps.
 *
 *     el_job_gpu_open(&devices, &gpus);                 NULL where there is no GPU
 *     el_job_gpu_begin(gpus, i);  el_job_gpu_end(gpus, i);     a member each, from its own thread
 *     el_job_gpu_figures(gpus, i);
 *     el_job_gpu_close(gpus);
 */
#ifndef EL_BENCH_JOB_GPU_H
#define EL_BENCH_JOB_GPU_H

#include "bench/job/worker.h"
#include "profiles/nvml.h"

struct el_job_gpu;

/* A driver without NVML is no error: the figures have its reason. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_job_gpu_open(const struct el_job_devices *devices, struct el_job_gpu **gpus_p);
void el_job_gpu_close(struct el_job_gpu *gpus); /* NULL is legal, here and below */
void el_job_gpu_begin(struct el_job_gpu *gpus, int member);
void el_job_gpu_end(struct el_job_gpu *gpus, int member);
/* NULL: the member's device is no GPU. Valid until close. */
const struct el_nvml_figures *el_job_gpu_figures(const struct el_job_gpu *gpus, int member);

#endif
