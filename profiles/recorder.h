/* The recorder: listens to the runtime's probe and turns spans into what a device did.
 *
 *     el_recorder_create(position, &recorder);         one a device of this process
 *     probe = el_recorder_probe(recorder);             handed to the runtime
 *     el_recorder_begin(recorder);                     warm-up is over: forget what came before
 *     el_recorder_summarize(recorder, &summary);       offline arithmetic over the kept spans
 *
 * Run, statistics and writing are apart: while steps run it only copies spans into arrays made beforehand (they grow
 * between steps). It keeps at most EL_RECORDER_SPANS_MAX spans; steps beyond are counted in `n_dropped`. Steps whose
 * spans are off are not kept. A simulated step's times are virtual and are treated alike.
 *
 * A collective's span includes waiting for its peers: communication of a member that is never late is its wait for the
 * late one. Threads: the probe is called by the thread that runs the program; summarize after it has ended.
 */
#ifndef EL_RECORDER_H
#define EL_RECORDER_H

#include "runtime/base/probe.h"
#include "runtime/base/status.h"

struct el_recorder;

enum { EL_RECORDER_SPANS_MAX = 1 << 23 }; /* 128 MiB */

/* What one device did, a step on average over the measured steps. Units: milliseconds only in JSON; here seconds and
 * bytes. Phases are unions of their intervals on all streams of the device; definitions: docs/metrics.md. */
struct el_device_summary {
    int64_t n_steps, n_dropped;
    bool simulated;
    double step_s;                     /* mean whole step */
    double phase_s[EL_PHASE_COUNT];    /* union a phase */
    double busy_s;                     /* union of compute and copy ops on the compute stream */
    double idle_s;                     /* step minus union of everything */
    double compute_s;                  /* |C| */
    double comm_total_s;               /* |K|: collectives and dp's copies between devices */
    double comm_overlapped_s;          /* |K and C| */
    double comm_exposed_s;             /* |K| - |K and C| */
    double sent_bytes, received_bytes; /* a step */
    double comm_bytes;                 /* sent by comm, replicate, scatter, gather, reduce ops */
    double flops;
};

/* A controller's program spans several devices: one recorder then serves them all (`n_positions`), each position
 * summarized apart. */
enum el_status el_recorder_create(int first_position, int n_positions, struct el_recorder **recorder_p);
void el_recorder_destroy(struct el_recorder *recorder); /* NULL is legal */
struct el_probe el_recorder_probe(struct el_recorder *recorder);
/* Forgets all steps so far; keeps the memory. */
/* Steps since then that were not kept, because there were too many spans. */
int64_t el_recorder_dropped(const struct el_recorder *recorder);
void el_recorder_begin(struct el_recorder *recorder);
/* Errors: EL_ERR_INVALID (a position that is not this recorder's, or no step), EL_ERR_HOST_MEMORY (spans were lost). */
enum el_status el_recorder_summarize(const struct el_recorder *recorder, int position,
                                     struct el_device_summary *summary_p);

/* For other arithmetic over the kept steps: how many there are, and each as it was told, but without
 * `program` and `cpu_ns`.
 * Steps with the same `ops` pointer ran the same list. Ownership: the recorder's, until the next step or begin. */
size_t el_recorder_step_count(const struct el_recorder *recorder);
struct el_step_event el_recorder_step(const struct el_recorder *recorder, size_t index);

#endif
