/* A rank's steps as a trace of PyTorch's profiler (Kineto), which Perfetto and HTA open (docs/watch.md).
 *
 *     el_trace_write(&rank, cycle, path);         after training
 *
 * A rank is a host thread with its devices. Lanes: the host process, with a thread for steps and one per stream, whose
 * ops look like PyTorch's (cpu_op, with shapes, FLOPs, node); and a process per device, whose streams have kernels,
 * copies and collectives. On devices that compute in the stream's thread (CPUs) an op and its kernel are one span; on
 * others, if launches were watched, ops are where the host queued them. A received message begins when it was sent.
 *
 * Units: microseconds with three digits, on rank 0's clock; virtual for simulated devices. Blocking; writes atomically.
 * Threads: the recorder's, after training. */
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
    const struct el_recorder *recorder;    /* the worker's */
    const struct el_trace_device *devices; /* the worker's, in order */
    const char *comm;                      /* transport of messages: "shm"; NULL: none */
    struct el_clock_anchor begin, end;     /* before and after the measurement */
    struct el_profile_schedule schedule;
    const int64_t *shifts_ns; /* el_trace_shifts'; NULL: not simulated */
};

/* Begin of each recorded simulated step on one time axis, [steps], as virtual steps begin at 0: when the previous one
 * has ended on all devices. To be freed. NULL: not simulated, or no memory. */
int64_t *el_trace_shifts(struct el_recorder *const *recorders, int n_recorders);

/* Cycles of the schedule with a recorded step. */
int64_t el_trace_cycles(const struct el_trace_rank *rank);
/* The steps of one cycle. Errors: EL_ERR_IO, EL_ERR_HOST_MEMORY. */
enum el_status el_trace_write(const struct el_trace_rank *rank, int64_t cycle, const char *path);
