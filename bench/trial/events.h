/* What happened to a job that writes checkpoints, and when: lines `event,step,unix_s,monotonic_s` that are
 * added to DIR/events.csv by whoever sees them; the second time is of a clock that nobody sets, the host's own. They
 * outlive every process of the job.
 *
 *     start    the job's first process began          step     as many steps were done (before the next one)
 *     kill     a rank was told to die (--inject)      end      the launcher saw the job's end
 *     stop     likewise, to stop                      restart  it starts the job again, from that step
 *     come     a device has come (--inject)
 *
 * Threads: any. Errors: what cannot be written is missing.
 */
#pragma once

#include <stdint.h>

/* A descriptor, to be closed; -1: none (also where `dir` is ""). */
int el_events_open(const char *dir);
/* Makes DIR/come, by which the launcher is told that a device has come. */
void el_events_come(const char *dir);
void el_events_add(int file, const char *event, int64_t step);
