/* Communication in any trace of PyTorch's profiler: exposed, overlapped and idle time (docs/metrics.md).
 *
 *     el_kineto_read_file(path, NULL, &trace);         one rank
 *     el_kineto_figures(&trace.lanes[i], &figures);    one device
 *     el_kineto_free(&trace);
 *
 * Counts complete events (ph X) of a device: cat kernel, gpu_memcpy, gpu_memset. Communication: kernels whose arguments
 * have a Collective name, kernels of a communication library (nccl...Kernel, RCCL, MSCCL, DeepEP, NVSHMEM, symmetric
 * memory, ...), and copies between devices (Memcpy PtoP); other copies are neither; other kernels are computation.
 * Without such events CPU threads are one lane: ops named gloo:, mpi:, nccl: or ucc: are communication, and the own
 * time of other cpu_op events is computation, without the events within them. Of containers (c10d::, FSDP::,
 * evaluate_function,
 * ...), whose own time may be a wait, nothing counts. With several ProfilerStep annotations, an event
 * with a correlation counts only if a host event has it too and begins before the last step's end.
 *
 * Operations on a communicator are kept for profiles/relate.h: kernels nccl...Kernel with their arguments (Collective
 * name, Process Group Name and Ranks, Seq, nelems, dtype) or those of the record_param_comms with their External id;
 * without a device the events gloo:all_reduce and so on.
 *
 * Input is untrusted. Units: nanoseconds; figures in seconds. Errors: EL_ERR_INVALID with `name` and position,
 * EL_ERR_HOST_MEMORY. Threads: any. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "profiles/intervals.h"
#include "profiles/json_scan.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

/* Real traces unpack to 10 to 30 times their size; more is an attack on memory. */
enum { EL_KINETO_UNPACKED_RATIO = 50, EL_KINETO_LANES_MAX = 256 };
#define EL_KINETO_MERGED       "evenloadMerged" /* a member of what profiles/merge.h writes: foreign */
#define EL_KINETO_COMMON_CLOCK "the job's"      /* a trace's member "clock" */
enum el_kineto_class { EL_KINETO_COMPUTE, EL_KINETO_COMM, EL_KINETO_COPY, EL_KINETO_CLASSES };
enum el_kineto_phase {
    EL_KINETO_PAUSE, /* Python's garbage collection; profiles/hook alone has it */
    EL_KINETO_LOADS, /* waits for PyTorch's DataLoader */
    EL_KINETO_BACKWARD,
    EL_KINETO_OPTIMIZER,
    EL_KINETO_PHASES
};

struct el_kineto_lane {
    int64_t device; /* as in the trace; -1: CPU threads */
    char name[32];  /* "cpu:0" in our traces; else "" */
    struct el_intervals sets[EL_KINETO_CLASSES];
    struct el_intervals named, others; /* events called as the reader was asked; computation of no such one */
    size_t counts[EL_KINETO_CLASSES];  /* events */
};

/* One device's part in a collective or message. -1: unknown. */
struct el_kineto_call {
    int64_t device, external_id, correlation; /* its event's */
    struct el_span span;
    enum el_comm_verb verb;         /* EL_COMM_VERB_COUNT: unknown */
    uint64_t group;                 /* hash of the group's name and ranks; 0: unnamed */
    int64_t sequence;               /* the communicator's */
    int64_t step;                   /* N of the ProfilerStep#N in which it begins; -1: none */
    int64_t size, rank, src, dst;   /* the group's size, the caller's rank in it, a message's ends */
    double bytes;                   /* nccl-tests' size, the larger of data and result; 0: unknown */
    double sent_bytes;              /* in our traces; else 0 */
    bool local;                     /* among devices of this trace */
    double elements, element_bytes; /* basis of `bytes` */
    bool is_part, peer_given;       /* basis of `bytes` */
};

struct el_kineto_step {
    int64_t number;
    struct el_span span;
};

struct el_kineto_trace {
    int64_t rank, world, groups; /* -1: unknown */
    int64_t smallest_group;      /* ranks in the smallest group of several; -1: not told */
    int64_t base_ns;             /* of its times, since 1970 */
    bool cpu_only;
    bool foreign;      /* a whole JSON document without traceEvents, or a merged one: no lanes */
    size_t n_doubtful; /* kernels called like collectives, of no library that is known: counted as computation */
    char doubtful[81]; /* the first one's name */
    bool common_clock; /* it declares the clock of the job's other traces */
    bool no_ends;      /* a call's end is its last arrival: its transfer is not known */
    struct el_kineto_call *calls;
    struct el_kineto_step *steps; /* in order */
    size_t n_calls, calls_room, n_steps, steps_room;
    struct el_intervals phases[EL_KINETO_PHASES]; /* of the host's training loop */
    struct el_kineto_lane *lanes;                 /* by device number */
    size_t n_lanes;
};

struct el_kineto_figures {
    double window_s; /* first counted begin to last counted end */
    double compute_s, comm_s, overlapped_s, exposed_s;
    double other_s; /* copies beside neither */
    double idle_s;
};

/* Reads the whole stream (`foreign`: the caller frees it too): at most 8 MiB per value, `most_bytes` in all. `named`:
 * NULL, or a piece of the names that a lane's set `named` is of: kernels and annotations of a device, or a host's. */
enum el_status el_kineto_read(FILE *file, uint64_t most_bytes, const char *name, const char *named,
                              struct el_kineto_trace *trace_p);
void el_kineto_free(struct el_kineto_trace *trace);
/* Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_kineto_figures(struct el_kineto_lane *lane, struct el_kineto_figures *figures_p);

/* A regular file, .gz through gzip: at most 64 MiB or 50 times the file's size, never above 4 GiB. Blocking. Errors:
 * also EL_ERR_IO, EL_ERR_ABSENT (no gzip). */
enum el_status el_kineto_read_file(const char *path, const char *named, struct el_kineto_trace *trace_p);
/* Each event's text, an object, in the file's order, until `each` fails. Errors: as above, and its. */
enum el_status el_kineto_each(const char *path, enum el_status (*each)(void *of, struct el_scan_text event), void *of);
