/* What a rank did in the steps of a profile, as PyTorch's profiler (Kineto) writes it: a JSON file that Perfetto
 * and HTA open. docs/watch.md says what stands in it.
 *
 *     el_trace_write(&rank, cycle, path);         offline, after training
 *
 * A rank is a worker: a host thread with its devices. Lanes: the host process with a thread for the steps and one for
 * each stream, in which the ops stand as PyTorch's do (cpu_op, with shapes, FLOPs, node), and a process per device, in
 * whose streams stand its kernels, copies and collectives. On devices that compute in the stream's own thread (CPUs) an
 * op and its kernel are the same span; on others, where launches were watched, ops stand where the host queued them. A
 * message that is received begins when it was sent: waiting is no work.
 *
 * Units: microseconds with three digits, of rank 0's clock; virtual ones where devices are simulated. Timing: blocking;
 * the file is there whole or not at all. Threads: that of the recorder, when training has ended.
 */
#pragma once

#include "profiles/op_table.h"
#include "profiles/recorder.h"
#include "runtime/comm/clock_relation.h"
#include "runtime/layout/layout.h"

struct el_trace_device {
    const char *name;       /* "cpu:0" */
    const size_t *resident; /* [EL_TAG_COUNT] bytes that live across steps */
};

struct el_trace_rank {
    int rank;                              /* of layout->n_workers */
    const struct el_layout *layout;        /* of the whole job */
    const struct el_recorder *recorder;    /* of the worker */
    const struct el_trace_device *devices; /* of the worker, in order */
    const char *comm;                      /* what moves messages between members: "shm"; NULL: nothing */
    struct el_clock_anchor begin, end;     /* clocks before and after what was measured */
    struct el_profile_schedule schedule;
    const int64_t *shifts_ns; /* el_trace_shifts'; NULL: devices are not simulated */
};

/* Where each recorded step of simulated devices begins on one time axis, [steps]: their own times begin at 0 in each. A
 * step begins when the one before has ended on all devices. To be freed. NULL: not simulated, or no memory. */
int64_t *el_trace_shifts(struct el_recorder *const *recorders, int n_recorders);

/* How many cycles of the schedule have a recorded step. */
int64_t el_trace_cycles(const struct el_trace_rank *rank);
/* The steps of one cycle. Errors: EL_ERR_IO, EL_ERR_HOST_MEMORY. */
enum el_status el_trace_write(const struct el_trace_rank *rank, int64_t cycle, const char *path);
