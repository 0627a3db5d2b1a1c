/* Following a launch that is one long job: what rank 0 says in its log, as progress, and why it failed, in a rank's own
 * words. The rank prints a line like "[3/40] all_reduce, 1 MiB" whenever it turns to something else.
 *
 *     struct el_follow follow = {.gap_s = 5};
 *     el_store_path(store, follow.logs, "logs/verify");
 *     el_follow_launch(&follow, store, &trial, words, EL_CMD_VERIFY, options);
 */
#ifndef EL_BENCH_FOLLOW_H
#define EL_BENCH_FOLLOW_H

#include "bench/campaign/runner.h"
#include "bench/options/config.h"

struct el_follow {
    char logs[EL_PATH_BYTES]; /* the folder of the launch's logs */
    double gap_s;             /* elsewhere than on a terminal, at least so long between two lines */
    bool quiet, terminal;     /* elsewhere than on a terminal each line is printed, and none twice */
    double said_s;
    char now[128]; /* the last such line */
};

/* Blocking, as el_runner_launch. Interrupted: EL_OK. Errors: EL_ERR_PEER: the job failed, in the failed rank's own
 * words where it has any, else in those of the first that has; EL_ERR_IO: its result could not be written; those of
 * el_runner_launch. */
enum el_status el_follow_launch(struct el_follow *follow, const struct el_store *store, const struct el_trial *trial,
                                const char *const *words, unsigned command, const struct el_options *options);

#endif
