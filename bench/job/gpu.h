/* What the driver says of a process's GPUs over their measured steps, and what NCCL is here.
 *
 *     el_job_gpu_open(&devices, &gpus);                 NULL where there is no GPU
 *     el_job_gpu_begin(gpus, i);  el_job_gpu_end(gpus, i);     a member each, from its own thread
 *     el_job_gpu_figures(gpus, i);
 *     el_job_gpu_close(gpus);
 */
#ifndef EL_BENCH_JOB_GPU_H
#define EL_BENCH_JOB_GPU_H

#include <jansson.h>

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

/* {"clock_mhz": {"min", "mean", "max"}, "power_w", "energy_mj", "throttled_pct": {a reason: per cent of the looks},
 * "used_bytes", "total_bytes", "process_bytes", "processes", "samples", "window_s", "reason"}; null for NULL. */
json_t *el_record_gpu(const struct el_nvml_figures *figures);
/* Of members that share a card (one UUID) takes back what the driver said of it as if it were each one's own: its bytes
 * and their growth are the whole card's; of ranks of several processes also the libraries', as each may have seen the
 * other's being opened. null then, with the reason. `processes`: as el_record_process makes them. */
void el_record_shared_cards(json_t *members, json_t *processes);
/* {"version", "reason" (why that is null), "variables": {NCCL_...: text}}: opens the library. */
json_t *el_record_nccl(void);

#endif
