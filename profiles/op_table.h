/* Which steps a profile holds (torch.profiler.schedule), and these as a table by op, as its key_averages() gives it.
 *
 *     el_profile_schedule_read("wait=1,warmup=1,active=2,repeat=3", &schedule);
 *     el_profile_cycle(&schedule, step) >= 0                       whether a step is in it
 *     el_op_table_make(recorder, position, &schedule, &table);     offline, after training
 *     el_op_table_free(&table);
 *
 * After `skip_first` steps come cycles of `wait` steps that are ignored, `warmup` steps whose figures are thrown
 * away, and `active` steps; `repeat` cycles, or with 0 as many as there are. Step 0 is the first measured step: what
 * warms the launch up lies before it. Pure arithmetic. Threads: any.
 *
 * Rows: ProfilerStep*, the whole steps; each phase, as the runs of its ops on the compute stream
 * and its single ops on others; each op by its kernel's or its
 * collective's name. All are sums over the active steps of all cycles, of one device. `total_ns` is the row's spans;
 * `self_ns` is what of them no row below has: of a step what no phase covers on any stream, of a phase the gaps between
 * its ops. `memory_bytes`: what the step allocates for an op, less what is freed when it has ended, before the next op
 * of the device; of a step and a phase that of their ops. Units: nanoseconds, bytes. Ownership: free the table before
 * the recorder.
 */
#pragma once

#include "profiles/recorder.h"

struct el_profile_schedule {
    int64_t wait, warmup, active, repeat, skip_first;
};

/* Errors: EL_ERR_INVALID: a word that is none of the five, a number below 0, no `active`. */
enum el_status el_profile_schedule_read(const char *text, struct el_profile_schedule *schedule_p);
/* The cycle whose active part a step (from 0) is in, from 0; -1: it is in none. */
int64_t el_profile_cycle(const struct el_profile_schedule *schedule, int64_t step);
/* How many steps there must be for all cycles; of endless ones for the first. */
int64_t el_profile_schedule_steps(const struct el_profile_schedule *schedule);

enum el_op_row_kind { EL_ROW_STEP, EL_ROW_PHASE, EL_ROW_OP };

struct el_op_row {
    const char *name; /* the recorder's, or for good */
    enum el_op_row_kind kind;
    int64_t calls, memory_bytes;
    int64_t self_ns, total_ns;
    double flops, bytes;
};

struct el_op_table {
    struct el_op_row *rows; /* the step, the phases in their order, the ops in the order of issue */
    size_t n;
    int64_t n_steps;
};

/* Errors: EL_ERR_INVALID (not this recorder's position), EL_ERR_HOST_MEMORY. */
enum el_status el_op_table_make(const struct el_recorder *recorder, int position,
                                const struct el_profile_schedule *schedule, struct el_op_table *table_p);
void el_op_table_free(struct el_op_table *table);
