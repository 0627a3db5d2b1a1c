/* Which steps a profile holds: torch.profiler.schedule.
 *
 *     el_profile_schedule_read("wait=1,warmup=1,active=2,repeat=3", &schedule);
 *     el_profile_cycle(&schedule, step) >= 0            whether a step is in it
 *
 * After `skip_first` steps come cycles of `wait` steps that are ignored, `warmup` steps whose figures are thrown
 * away, and `active` steps; `repeat` cycles, or with 0 as many as there are. Step 0 is the first measured step: what
 * warms the launch up lies before it. Pure arithmetic. Threads: any.
 */
#ifndef EL_PROFILE_SCHEDULE_H
#define EL_PROFILE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/status.h"

struct el_profile_schedule {
    int64_t wait, warmup, active, repeat, skip_first;
};

/* Errors: EL_ERR_INVALID: a word that is none of the five, a number below 0, no `active`. */
enum el_status el_profile_schedule_read(const char *text, struct el_profile_schedule *schedule_p);
/* The cycle whose active part a step (from 0) is in, from 0; -1: it is in none. */
int64_t el_profile_cycle(const struct el_profile_schedule *schedule, int64_t step);
/* How many steps there must be for all cycles; of endless ones for the first. */
int64_t el_profile_schedule_steps(const struct el_profile_schedule *schedule);

#endif
