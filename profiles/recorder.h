/* The recorder: listens to the runtime's probe and turns spans into what a device did.
 *
 *     el_recorder_create(position, &recorder);         one per device of this process
 *     probe = el_recorder_probe(recorder);             handed to the runtime
 *     el_recorder_begin(recorder);                     warm-up is over: forget what came before
 *     el_recorder_segment(recorder, segment);          what follows is something else: control blocks
 *     el_recorder_summarize(recorder, 0, 0, &summary); offline arithmetic over the kept spans of a segment
 *
 * Run, statistics and writing are apart: while steps run it only copies spans into arrays made beforehand (they grow
 * between steps). It keeps at most EL_RECORDER_SPANS_MAX spans; steps beyond are counted in `n_dropped`. Steps whose
 * spans are off are not kept. A simulated step's times are virtual and are treated alike.
 *
 * A collective's span includes waiting for its peers. When all members' arrivals are known (el_recorder_set_arrivals),
 * the wait for the last one and the transfer after it are separate. Threads: the probe is called by the thread that
 * runs the program; summarize after it has ended.
 */
#pragma once

#include "profiles/collectives.h"
#include "runtime/base/probe.h"

struct el_recorder;

/* 128 MiB; measured steps leave an eighth of them for what comes after. */
enum { EL_RECORDER_SPANS_MAX = 1 << 23 };
enum { EL_RECORDER_MEASURED = 0, EL_RECORDER_SEGMENTS = 4 };

/* What a device did in one communicator: collectives and messages. Copies between devices are in none. */
enum { EL_COMM_GROUPS_MAX = 4 };
struct el_comm_figures {
    const char *name;
    double total_s, wait_s; /* from arrival to end; before the last member had arrived */
    double exposed_s;       /* of the former while the device does not compute */
    double sent_bytes, received_bytes;
};

/* What one device did, a step on average over the steps of a segment. Units: milliseconds only in JSON; here seconds
 * and bytes. Phases are unions of their intervals on all streams of the device, of collectives without the wait for
 * late members where that is known; definitions: docs/metrics.md. */
struct el_device_summary {
    struct el_comm_figures groups[EL_COMM_GROUPS_MAX]; /* by communicator, those that have operations */
    int n_groups;
    int64_t n_steps;
    bool simulated;
    double step_s;                     /* mean whole step */
    double phase_s[EL_PHASE_COUNT];    /* union a phase */
    double busy_s;                     /* union of compute and copy ops on the compute stream */
    double other_s;                    /* union of everything, minus |C or K|: loading, copies from the host */
    double loading_exposed_s;          /* phases data and h2d, minus C */
    double idle_s;                     /* step minus union of everything */
    double compute_s;                  /* |C| */
    double comm_total_s;               /* |K|: collectives and dp's copies between devices */
    double comm_overlapped_s;          /* |K and C| */
    double comm_exposed_s;             /* |K| - |K and C| */
    bool arrivals_known;               /* else the two waits are 0 and mean nothing */
    bool bubble_known;                 /* it is a stage of several, and what the job did is known */
    double bubble_s, window_s;         /* of the window from the job's first forward to its last backward: idle */
    double wait_s;                     /* |W|, W within K: before the last member had arrived */
    double wait_exposed_s;             /* |W| - |W and C| */
    double queue_s;                    /* the host's work for a step on asynchronous devices; 0: on others */
    double comm_cpu_s;                 /* CPU time of the threads in collectives and copies between devices */
    double sent_bytes, received_bytes; /* a step */
    double comm_bytes;                 /* sent by comm, replicate, scatter, gather, reduce ops */
    double flops;
};

/* A worker may issue for several devices: one recorder then serves them all (`n_positions`), each position
 * summarized apart. */
enum el_status el_recorder_create(int first_position, int n_positions, struct el_recorder **recorder_p);
void el_recorder_destroy(struct el_recorder *recorder); /* NULL is legal */
struct el_probe el_recorder_probe(struct el_recorder *recorder);
/* Forgets all steps so far; keeps the memory. */
void el_recorder_begin(struct el_recorder *recorder);
/* Measured steps since then that were not kept, because there were too many spans. */
int64_t el_recorder_dropped(const struct el_recorder *recorder);
/* Steps from now on belong to `segment` (below EL_RECORDER_SEGMENTS), or are not kept (negative). A new recorder, and
 * one that has begun, is in EL_RECORDER_MEASURED. */
void el_recorder_segment(struct el_recorder *recorder, int segment);
/* How many steps of a segment were kept. */
size_t el_recorder_kept(const struct el_recorder *recorder, int segment);
/* Errors: EL_ERR_INVALID (a position that is not this recorder's, or no step), EL_ERR_HOST_MEMORY (spans were lost). */
enum el_status el_recorder_summarize(const struct el_recorder *recorder, int position, int segment,
                                     struct el_device_summary *summary_p);

/* The time of the device's kernels, added up, in measured step `index`; `*step_p`: its number among the job's steps,
 * warm-up's too. */
int64_t el_recorder_computed_ns(const struct el_recorder *recorder, int position, size_t index, uint64_t *step_p);

/* Of asynchronous devices also when the host queued each op, from now on: for the probe, with nothing else in its place
 * (`*watch_p` must last as long). Costs two clock readings an op. */
void el_recorder_watch_launches(struct el_recorder *recorder, struct el_watch *watch_p);
/* Of a measured step: [n_ops] spans of the host's thread; NULL: they were not watched. */
const struct el_span *el_recorder_launches(const struct el_recorder *recorder, size_t index);

/* For other arithmetic over the measured steps: how many there are, and each as it was told, but without `cpu_ns`.
 * Steps with the same `ops` pointer ran the same list. Ownership: the recorder's, until the next step or begin. */
size_t el_recorder_step_count(const struct el_recorder *recorder);
struct el_step_event el_recorder_step(const struct el_recorder *recorder, size_t index);

/* The device's collectives and messages in the steps of a segment. `n` is 0 where there are none, or where steps differ
 * in them. Ownership: the caller's, el_collectives_free. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_recorder_collectives(const struct el_recorder *recorder, int position, int segment,
                                       struct el_collectives *collectives_p);

/* Ops of one name and phase, a step on average over the measured steps. */
struct el_op_figures {
    const char *label; /* the recorder's */
    enum el_phase phase;
    double mean_s, count; /* a step */
    double bytes;         /* that all of them read and write, a step */
    double median_s;      /* over steps, of what a step spends in all of them */
    const char *how;      /* el_op_info.how, where it is the same for all of them; the recorder's, or NULL */
};
/* In the order of issue. `*figures_p`: to be freed. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_recorder_ops(const struct el_recorder *recorder, int position, struct el_op_figures **figures_p,
                               size_t *n_p);
/* What only all members together know of a segment's steps, on this process's clock; copied. `latest_ns`: when the last
 * member arrived at each of them, [n_steps][n]. `windows`: of a model in stages, from the first forward to the last
 * backward of all its stages, [n_steps]; NULL: it is none. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_recorder_tell(struct el_recorder *recorder, int position, int segment, const int64_t *latest_ns,
                                size_t n_latest, const struct el_span *windows, size_t n_windows);

/* What a device of a stage did in one measured step, as papers draw it: runs of kernels of one box of its schedule, or
 * of one phase where they are in none, and communication without the wait for it. In order of their begin, in time from
 * that of the step's window; none where no windows were told. `boxes`: to be freed. Errors: EL_ERR_HOST_MEMORY. */
struct el_lane_box {
    struct el_op_piece piece;
    enum el_phase phase;
    enum el_op_link link;
    struct el_span span;
};
struct el_lane {
    struct el_lane_box *boxes; /* [n]; NULL: none */
    size_t n;
    int64_t window_ns; /* the window's length */
};
enum el_status el_recorder_lane(const struct el_recorder *recorder, int position, size_t step, struct el_lane *lane_p);
/* The most micro-batches, of all its parts, that the device has gone forward with and not yet all the way back: sets of
 * activations that it holds. In the last measured step; 0: it has no schedule. */
int el_recorder_in_flight(const struct el_recorder *recorder, int position);
