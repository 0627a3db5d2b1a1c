/* Checkpoints during training, and resuming from one (format: state/checkpoint.h).
 * After every `every`th step (0: every `every_s` seconds of the first worker's clock) each worker copies its state
 * (snapshot.h) and a thread writes it, while training goes on if `async`. The first worker's thread waits for all
 * files, writes the index, renames the folder into place and removes all but the last `keep`. A failed write ends that
 * checkpoint with a line on standard error; training goes on.
 * Units: steps, bytes, nanoseconds. Ownership: a plain value; `resume` must outlive the training. Threads: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct el_checkpoint;

enum { EL_CHECKPOINT_REASON_BYTES = 320 };

struct el_checkpoint_spec {
    const char *dir;
    const char *job; /* the job's name, for restarts; NULL: none */
    int64_t every;
    double every_s;
    int keep;
    bool async;
    const struct el_checkpoint *resume; /* checked by el_checkpoint_check; NULL: start at step 0 */
};

/* For this process's first worker. */
struct el_checkpoint_result {
    int n, n_failed;
    char reason[EL_CHECKPOINT_REASON_BYTES]; /* of the first failure */
    int64_t bytes;                           /* of this worker's last file */
    int64_t copied;                          /* host memory of the copy, in bytes */
    int64_t copy_ns;                         /* training stopped to copy */
    int64_t wait_ns;                         /* training waited for unwritten files */
    int64_t write_ns;                        /* the thread wrote files */
};
