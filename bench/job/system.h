/* The window on the system over a process's measured steps: from its first member's first to its last member's last.
 *
 *     el_job_system_open(&devices, &window);
 *     el_job_system_begin(window);  el_job_system_end(window);     a member each, from its own thread
 *     el_job_system_compare(window);                               when all have ended
 *     el_job_system_account(window);
 *     el_job_system_close(window);
 */
#ifndef EL_BENCH_JOB_SYSTEM_H
#define EL_BENCH_JOB_SYSTEM_H

#include <jansson.h>

#include "bench/job/worker.h"
#include "profiles/system.h"

struct el_job_system;

/* `devices` must stay. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_job_system_open(const struct el_job_devices *devices, struct el_job_system **window_p);
void el_job_system_close(struct el_job_system *window); /* NULL is legal */
void el_job_system_begin(struct el_job_system *window);
void el_job_system_end(struct el_job_system *window);

/* Valid until the window is closed. */
const struct el_system_figures *el_job_system_compare(struct el_job_system *window);
/* This process's part of the repeat's `system` (bench/record/system.h). New reference. */
json_t *el_job_system_account(const struct el_job_system *window);

#endif
