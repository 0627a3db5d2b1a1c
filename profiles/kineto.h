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
 * Each operation that a trace has of a communicator is kept beside the lanes, for profiles/relate.h: kernels named
 * nccl...Kernel, with their arguments (Collective name, Process Group Name and Ranks, Seq, nelems, dtype) or those of
 * the record_param_comms of their External id; without a device the events named gloo:all_reduce and so on.
 *
 * What is read is anyone's: it may be damaged or made to do harm. Units: nanoseconds inside, seconds in figures.
 * Errors: EL_ERR_INVALID with `name` and where, EL_ERR_HOST_MEMORY. Threads: any.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "profiles/intervals.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

/* A file that unpacks to more was made to fill the memory: profilers' traces come to 10 to 30 times their size. */
enum { EL_KINETO_UNPACKED_RATIO = 50, EL_KINETO_LANES_MAX = 256 };
#define EL_KINETO_COMMON_CLOCK "the job's" /* a trace's member "clock" */
enum el_kineto_class { EL_KINETO_COMPUTE, EL_KINETO_COMM, EL_KINETO_COPY, EL_KINETO_CLASSES };

struct el_kineto_lane {
    int64_t device; /* as the trace counts them; -1: what CPU threads did */
    char name[32];  /* "cpu:0", of a trace that is ours; else "" */
    struct el_intervals sets[EL_KINETO_CLASSES];
    size_t counts[EL_KINETO_CLASSES]; /* events */
};

/* One device's part in a collective or a message. -1: the trace does not say. */
struct el_kineto_call {
    int64_t device, external_id, correlation; /* of its event */
    struct el_span span;
    enum el_comm_verb verb;       /* EL_COMM_VERB_COUNT: none that is known */
    uint64_t group;               /* a hash of the group's name and ranks; 0: the trace names none */
    int64_t sequence;             /* as the communicator counts */
    int64_t step;                 /* N of the ProfilerStep#N that it begins in; -1: in none */
    int64_t size, rank, src, dst; /* the group's, the caller's in it, a message's ends */
    double bytes;      /* nccl-tests' size, of the larger one of data and result; 0: the trace does not say */
    double sent_bytes; /* where the trace is ours; else 0 */
    bool local;        /* among devices of this trace */
    double elements, element_bytes; /* what bytes are made of, */
    bool is_part, peer_given;       /* and how */
};

struct el_kineto_step {
    int64_t number;
    struct el_span span;
};

struct el_kineto_trace {
    int64_t rank, world, groups; /* -1: it does not say */
    int64_t base_ns;             /* of its times: since 1970 */
    bool cpu_only;
    bool common_clock; /* it says that its times are on the clock of the job's other traces */
    struct el_kineto_call *calls;
    struct el_kineto_step *steps; /* in order */
    size_t n_calls, calls_room, n_steps, steps_room;
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

/* Of a regular file, with .gz through gzip, of which 64 MiB are taken, or 50 times the file's size, and
 * never more than 4 GiB. Blocking. Errors: EL_ERR_IO, EL_ERR_ABSENT (no gzip) too. */
enum el_status el_kineto_read_file(const char *path, struct el_kineto_trace *trace_p);
