/* What any trace of PyTorch's profiler says of communication: exposed, overlapped, and idle time, by the definitions of
 * docs/metrics.md, as of our own records.
 *
 *     el_kineto_read_file(path, &trace);               of one rank
 *     el_kineto_figures(&trace.lanes[i], &figures);    of one device
 *     el_kineto_free(&trace);
 *
 * Counted are complete events (ph X). Of a device: those of cat kernel, gpu_memcpy and gpu_memset. A kernel whose name
 * begins with nccl and has Kernel behind it is communication, and so is a copy between devices (Memcpy PtoP); other
 * copies are neither communication nor computation; all other kernels are computation. Where a trace has no such event,
 * what CPU threads did is counted as one lane: ops whose names begin with gloo:, mpi:, nccl: or ucc: are communication,
 * ops that only tell of one (c10d::, record_param_comms) are left out, all other cpu_op events are computation. Where
 * there are several ProfilerStep annotations, what has a correlation counts only if an event of the host has it too and
 * begins before the last step's end: what was queued before the trace began is no part of its steps.
 *
 * What is read is anyone's: it may be damaged or made to do harm. Units: nanoseconds inside, seconds in figures.
 * Errors: EL_ERR_INVALID with `name` and where, EL_ERR_HOST_MEMORY. Threads: any.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "profiles/intervals.h"
#include "runtime/base/status.h"

/* A file that unpacks to more was made to fill the memory: profilers' traces come to 10 to 30 times their size. */
enum { EL_KINETO_UNPACKED_RATIO = 50, EL_KINETO_LANES_MAX = 256 };
enum el_kineto_class { EL_KINETO_COMPUTE, EL_KINETO_COMM, EL_KINETO_COPY, EL_KINETO_CLASSES };

struct el_kineto_lane {
    int64_t device; /* as the trace counts them; -1: what CPU threads did */
    struct el_intervals sets[EL_KINETO_CLASSES];
    size_t counts[EL_KINETO_CLASSES]; /* events */
};

struct el_kineto_trace {
    int64_t rank; /* -1: it does not say */
    bool cpu_only;
    struct el_kineto_lane *lanes; /* by number of device */
    size_t n_lanes;
};

struct el_kineto_figures {
    double window_s; /* from the first counted event to the end of the last one */
    double compute_s, comm_s, overlapped_s, exposed_s;
    double other_s; /* copies, beside neither of them */
    double idle_s;
};

/* All of the stream. A value of the trace may have 8 MiB, all of it `most_bytes`. */
enum el_status el_kineto_read(FILE *file, uint64_t most_bytes, const char *name, struct el_kineto_trace *trace_p);
void el_kineto_free(struct el_kineto_trace *trace);
/* Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_kineto_figures(struct el_kineto_lane *lane, struct el_kineto_figures *figures_p);

/* kineto_file.c: of a regular file, with .gz through gzip, of which 64 MiB are taken, or 50 times the file's size, and
 * never more than 4 GiB. Blocking. Errors: EL_ERR_IO, EL_ERR_ABSENT (no gzip) too. */
enum el_status el_kineto_read_file(const char *path, struct el_kineto_trace *trace_p);
