/* Following a launch that is one long job: what rank 0 says in its log, as progress, and why it failed, in a rank's own
 * words. The rank prints a line like "[3/40] all_reduce, 1 MiB" whenever it turns to something else.
 *
 *     struct el_follow follow = {.logs = logs, .quiet = quiet, .terminal = isatty(STDERR_FILENO) == 1};
 *     runner.tick = el_follow_tick;                    runner.context = &follow;
 *     el_runner_launch(&runner, ..., logs, &result);   el_follow_end(&follow);
 *     if (!result.ok) return el_follow_fail(&follow, &result, procs);
 */
#ifndef EL_BENCH_FOLLOW_H
#define EL_BENCH_FOLLOW_H

#include <stdbool.h>

#include "runtime/launch/launch.h"

struct el_follow {
    const char *logs;     /* the folder of the launch's logs */
    bool quiet, terminal; /* elsewhere than on a terminal each line is printed, and none twice */
    double gap_s;         /* there, at least so long between two lines */
    double said_s;
    char now[128]; /* the last such line */
};

void el_follow_tick(void *follow, double elapsed_s);
/* Reads the last line once more, and clears it on a terminal. */
void el_follow_end(struct el_follow *follow);
/* EL_ERR_PEER in the failed rank's own words, where it has any; else in those of the first that has. */
enum el_status el_follow_fail(const struct el_follow *follow, const struct el_launch_result *result, int procs);

#endif
