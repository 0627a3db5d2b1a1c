/* The steps of a profile as a table by op, as torch.profiler's key_averages() gives it.
 *
 *     el_op_table_make(recorder, position, &schedule, &table);     offline, after training
 *     el_op_table_free(&table);
 *
 * Rows: ProfilerStep*, the whole steps; each phase, as the runs of its ops on the compute stream
 * and its single ops on others; each op by its kernel's or its
 * collective's name. All are sums over the active steps of all cycles, of one device. `total_ns` is the row's spans;
 * `self_ns` is what of them no row below has: of a step what no phase covers on any stream, of a phase the gaps between
 * its ops. `memory_bytes`: what the step allocates for an op, less what is freed when it has ended, before the next op
 * of the device; of a step and a phase that of their ops. Units: nanoseconds, bytes. Ownership: free the table before
 * the recorder.
 */
#ifndef EL_OP_TABLE_H
#define EL_OP_TABLE_H

#include "profiles/profile_schedule.h"
#include "profiles/recorder.h"

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

#endif
