/* Profile schedules (torch.profiler.schedule), and the table by op, like key_averages().
 *
 *     el_profile_schedule_read("wait=1,warmup=1,active=2,repeat=3", &schedule);
 *     el_profile_cycle(&schedule, step) >= 0                       whether a step is active
 *     el_op_table_make(recorder, position, &schedule, &machine, &table);     after training
 *     el_op_table_free(&table);
 *
 * After `skip_first` steps come cycles of `wait` ignored, `warmup` discarded and `active` steps; `repeat` cycles, 0:
 * endless. Step 0 is the first measured step. Threads: any.
 *
 * Rows: ProfilerStep* (whole steps); each phase, as runs of its ops on the compute stream and its single ops on others;
 * each op by kernel or collective. Sums over all active steps of one device. `total_ns`: the row's spans; `self_ns`:
 * the part outside lower rows: of a step what no phase covers on any stream, of a phase the gaps between its ops.
 * `memory_bytes`: allocated for an op, minus freed after it, before the device's next op; for steps and phases the sum
 * of their ops.
 *
 * Parts: what a step's ops are for; `self_ns` of EL_OP_PART_NONE: what no op covers. `limit_ns`: of each kernel the
 * longer one of its FLOPs at the machine's rate of products and its bytes at that of memory (Williams, Waterman,
 * Patterson, "Roofline", 2009); operands in a cache can be faster. Units: nanoseconds, bytes. Free the table before the
 * recorder. */
#pragma once

#include "profiles/recorder.h"
#include "runtime/device/machine.h"

struct el_profile_schedule {
    int64_t wait, warmup, active, repeat, skip_first;
};

/* Errors: EL_ERR_INVALID: an unknown word, a negative number, no `active`. */
enum el_status el_profile_schedule_read(const char *text, struct el_profile_schedule *schedule_p);
/* The cycle with this active step, both from 0; -1: none. */
int64_t el_profile_cycle(const struct el_profile_schedule *schedule, int64_t step);
/* Steps needed for all cycles; for the first if endless. */
int64_t el_profile_schedule_steps(const struct el_profile_schedule *schedule);

enum el_op_row_kind { EL_ROW_STEP, EL_ROW_PHASE, EL_ROW_OP };

struct el_op_row {
    const char *name; /* the recorder's, or static */
    enum el_op_row_kind kind;
    int64_t calls, memory_bytes;
    int64_t self_ns, total_ns;
    double flops, bytes;
};

/* Copies: also into buckets and out of them. */
#define EL_OP_PART_LIST(X)                                                                                             \
    X(EL_OP_PART_PRODUCTS, "products")                                                                                 \
    X(EL_OP_PART_ATTENTION, "attention")                                                                               \
    X(EL_OP_PART_ELEMENT_WISE, "element-wise")                                                                         \
    X(EL_OP_PART_EMBEDDING, "embedding")                                                                               \
    X(EL_OP_PART_LOSS, "loss")                                                                                         \
    X(EL_OP_PART_OPTIMIZER, "optimizer")                                                                               \
    X(EL_OP_PART_COPIES, "copies")                                                                                     \
    X(EL_OP_PART_COMM, "communication")                                                                                \
    X(EL_OP_PART_HOST, "host")                                                                                         \
    X(EL_OP_PART_NONE, "no op")

enum el_op_part_kind {
#define EL_OP_PART_ENUM(name, text) name,
    EL_OP_PART_LIST(EL_OP_PART_ENUM)
#undef EL_OP_PART_ENUM
        EL_OP_PART_COUNT
};
const char *el_op_part_name(enum el_op_part_kind part);

struct el_op_part {
    int64_t self_ns;
    double limit_ns;
};

struct el_op_table {
    struct el_op_part parts[EL_OP_PART_COUNT];
    struct el_op_row *rows; /* the step, the phases in order, the ops in order of issue */
    size_t n;
    int64_t n_steps;
};

/* `machine` NULL: no limits. Errors: EL_ERR_INVALID (another recorder's position), EL_ERR_HOST_MEMORY. */
enum el_status el_op_table_make(const struct el_recorder *recorder, int position,
                                const struct el_profile_schedule *schedule, const struct el_machine *machine,
                                struct el_op_table *table_p);
void el_op_table_free(struct el_op_table *table);
