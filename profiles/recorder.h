/* The recorder: receives the runtime's spans and summarizes what a device did.
 *
 *     el_recorder_create(position, &recorder);         one per device of this process
 *     probe = el_recorder_probe(recorder);             for the runtime
 *     el_recorder_begin(recorder);                     after warm-up
 *     el_recorder_segment(recorder, segment);          control blocks follow
 *     el_recorder_summarize(recorder, 0, 0, &summary); offline
 *
 * While steps run it only copies spans into arrays, up to EL_RECORDER_SPANS_MAX; further steps count in `n_dropped`.
 * Steps with spans off are not kept. Simulated steps have virtual times. Wait and transfer of collectives are separate
 * once all arrivals are known (el_recorder_tell). Threads: the probe is called by the program's thread; summarize after
 * its end. */
#pragma once

#include "profiles/collectives.h"
#include "runtime/base/probe.h"

struct el_recorder;

/* 128 MiB; measured steps leave an eighth for later ones. */
enum { EL_RECORDER_SPANS_MAX = 1 << 23 };
enum { EL_RECORDER_MEASURED = 0, EL_RECORDER_SEGMENTS = 4 };

/* Collectives and messages of one communicator. Copies between devices are in none. */
enum { EL_COMM_GROUPS_MAX = 4 };
struct el_comm_figures {
    const char *name;
    double total_s, wait_s; /* arrival to end; until the last member's arrival */
    double exposed_s;       /* of total_s, while the device does not compute */
    double sent_bytes, received_bytes;
};

/* One device over a segment's steps, per step, in seconds and bytes. Phases are unions of intervals on all its streams,
 * without waits for late members if known (docs/metrics.md). */
struct el_device_summary {
    struct el_comm_figures groups[EL_COMM_GROUPS_MAX]; /* with operations, by communicator */
    int n_groups;
    int64_t n_steps;
    bool simulated;
    double step_s;                     /* mean whole step */
    double phase_s[EL_PHASE_COUNT];    /* union per phase */
    double busy_s;                     /* union of compute and copy ops on the compute stream */
    double other_s;                    /* union of everything, minus |C or K|: loading, copies from the host */
    double loading_exposed_s;          /* phases data and h2d, minus C */
    double idle_s;                     /* step minus union of everything */
    double compute_s;                  /* |C| */
    double comm_total_s;               /* |K|: collectives and dp's copies between devices */
    double comm_overlapped_s;          /* |K and C| */
    double comm_exposed_s;             /* |K| - |K and C| */
    bool arrivals_known;               /* false: the two waits are 0 and invalid */
    bool bubble_known;                 /* a stage of several, with known windows */
    double bubble_s, window_s;         /* window: the job's first forward to its last backward; bubble: its idle part */
    double wait_s;                     /* |W|, W within K: before the last member's arrival */
    double wait_exposed_s;             /* |W| - |W and C| */
    double queue_s;                    /* host's work per step on asynchronous devices; 0: others */
    double comm_cpu_s;                 /* CPU time of threads in collectives and copies between devices */
    double sent_bytes, received_bytes; /* per step */
    double comm_bytes;                 /* sent by comm, replicate, scatter, gather, reduce ops */
    double flops;
};

/* One recorder for `n_positions` devices of a worker; each is summarized separately. */
enum el_status el_recorder_create(int first_position, int n_positions, struct el_recorder **recorder_p);
void el_recorder_destroy(struct el_recorder *recorder); /* NULL is legal */
struct el_probe el_recorder_probe(struct el_recorder *recorder);
/* Forgets all steps; keeps the memory. */
void el_recorder_begin(struct el_recorder *recorder);
/* Measured steps not kept since then for too many spans. */
int64_t el_recorder_dropped(const struct el_recorder *recorder);
/* Later steps belong to `segment` (below EL_RECORDER_SEGMENTS); negative: not kept. Initially and after begin
 * EL_RECORDER_MEASURED. */
void el_recorder_segment(struct el_recorder *recorder, int segment);
/* Kept steps of a segment. */
size_t el_recorder_kept(const struct el_recorder *recorder, int segment);
/* Errors: EL_ERR_INVALID (another recorder's position, or no step), EL_ERR_HOST_MEMORY (lost spans). */
enum el_status el_recorder_summarize(const struct el_recorder *recorder, int position, int segment,
                                     struct el_device_summary *summary_p);

/* Sum of the device's kernel times in measured step `index`; `*step_p`: its number in the job. */
int64_t el_recorder_computed_ns(const struct el_recorder *recorder, int position, size_t index, uint64_t *step_p);

/* From now on also records when the host queues ops of asynchronous devices, at two clock readings per op. `*watch_p`
 * is for the probe, exclusively, and must outlive it. */
void el_recorder_watch_launches(struct el_recorder *recorder, struct el_watch *watch_p);
/* A measured step's [n_ops] spans of the host's thread; NULL: not watched. */
const struct el_span *el_recorder_launches(const struct el_recorder *recorder, size_t index);

/* The measured steps as received, without `cpu_ns`. Equal `ops` pointers: same list. Borrowed until the next step or
 * begin. */
size_t el_recorder_step_count(const struct el_recorder *recorder);
struct el_step_event el_recorder_step(const struct el_recorder *recorder, size_t index);

/* The device's collectives and messages in a segment's steps; `n` 0: none, or steps differ. Free with
 * el_collectives_free. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_recorder_collectives(const struct el_recorder *recorder, int position, int segment,
                                       struct el_collectives *collectives_p);

/* Ops of one name and phase, mean over the measured steps. */
struct el_op_figures {
    const char *label; /* the recorder's */
    enum el_phase phase;
    double mean_s, count; /* per step */
    double bytes;         /* read and written by all, per step */
    double median_s;      /* over steps, of a step's sum */
    const char *how;      /* el_op_info.how if equal for all; the recorder's, or NULL */
};
/* In order of issue. `*figures_p`: to be freed. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_recorder_ops(const struct el_recorder *recorder, int position, struct el_op_figures **figures_p,
                               size_t *n_p);
/* Copies what only all members together know, on this process's clock. `latest_ns`: last arrivals, [n_steps][n].
 * `windows`: first forward to last backward of all stages, [n_steps]; NULL: none. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_recorder_tell(struct el_recorder *recorder, int position, int segment, const int64_t *latest_ns,
                                size_t n_latest, const struct el_span *windows, size_t n_windows);

/* One measured step of a stage's device: runs of kernels of one box of its schedule, or of one phase, and communication
 * without its wait. By begin, in time from the step's window; none without windows. `boxes`: to be freed. Errors:
 * EL_ERR_HOST_MEMORY. */
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
/* Most micro-batches, of all its parts, between forward and the end of backward in the last measured step: held sets of
 * activations. 0: no schedule. */
int el_recorder_in_flight(const struct el_recorder *recorder, int position);
