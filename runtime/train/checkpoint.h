/* Checkpoints of a job while it trains: what is written, when, and how a job goes on from one (state/checkpoint.h has
 * the format).
 *
 * After every `every`th step (or, where that is 0, after `every_s` seconds by the first worker's clock) each worker
 * copies what it holds (snapshot.h), and a thread writes that into its file while training goes on; without `async`
 * training waits for it. The first worker's thread waits for the others' files, writes the index and gives the folder
 * its name; then it removes those before the `keep` last. What a worker cannot write ends that checkpoint with a line
 * on standard error, and not the training.
 *
 * Units: steps, bytes, nanoseconds. Ownership: a plain value; `resume` must outlive the training. Threads: any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct el_checkpoint;

enum { EL_CHECKPOINT_REASON_BYTES = 320 };

struct el_checkpoint_spec {
    const char *dir; /* NULL: none are written */
    const char *job; /* whose they are, for its restarts; NULL: it has none */
    int64_t every;
    double every_s;
    int keep;
    bool async;
    const struct el_checkpoint *resume; /* checked (el_checkpoint_check); NULL: training begins at step 0 */
};

/* Of this process's first worker. */
struct el_checkpoint_result {
    int n, n_failed;
    char reason[EL_CHECKPOINT_REASON_BYTES]; /* of the first that failed */
    int64_t bytes;                           /* of the last one, this worker's */
    int64_t copied;                          /* bytes of host memory that the copy takes */
    int64_t copy_ns;                         /* training stood still for the copies */
    int64_t wait_ns;                         /* ... and for files that were not written yet */
    int64_t write_ns;                        /* files were being written, by the thread */
};
