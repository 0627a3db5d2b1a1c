/* Following a launch that is one long job: what its rank 0 says, and why it failed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/campaign/runner.h"
#include "bench/job/worker.h"

enum { TAIL_BYTES = 600 };

/* Whether rank 0 says something new. */
static bool look(struct el_follow *follow)
{
    char line[TAIL_BYTES] = "";
    el_launch_log_tail(follow->logs, 0, 1, line, sizeof line);
    line[strcspn(line, "\n")] = 0;
    if (line[0] != '[' || !strcmp(line, follow->now)) return false;
    snprintf(follow->now, sizeof follow->now, "%.*s", (int)sizeof follow->now - 1, line);
    return true;
}

static void tick(void *context, double elapsed_s)
{
    struct el_follow *follow = context;
    if (follow->quiet || !look(follow)) return;
    if (!follow->terminal && follow->said_s > 0 && elapsed_s - follow->said_s < follow->gap_s) return;
    fprintf(stderr, follow->terminal ? "\r\033[K%.100s" : "%.100s\n", follow->now);
    follow->said_s = elapsed_s;
}

static enum el_status fail(const struct el_follow *follow, const struct el_launch_result *result, int procs,
                           const char *dir)
{
    char tail[TAIL_BYTES];
    const char *said = NULL;
    for (int r = result->failed_rank < 0 ? 0 : -1; r < procs && !said && !result->signal; r++)
        said = el_runner_words(follow->logs, r < 0 ? result->failed_rank : r, tail, sizeof tail);
    if (result->exit_status == EL_WORKER_NO_ROOM)
        return el_fail(EL_ERR_IO,
                       "%s: what was measured could not be written: the disk is full, or the quota is used up", dir);
    const bool unwritten = result->exit_status == EL_WORKER_CANNOT_WRITE;
    return el_fail(unwritten ? EL_ERR_IO : EL_ERR_PEER, "%s%s", said ? said : result->reason,
                   result->timed_out ? " (--timeout)" : "");
}

enum el_status el_follow_launch(struct el_follow *follow, const struct el_store *store, const struct el_trial *trial,
                                const char *const *words, unsigned command, const struct el_options *options)
{
    struct el_runner runner;
    struct el_launch_result result = {.failed_rank = -1};
    EL_TRY(el_runner_init(&runner, store));
    runner.tick = tick;
    runner.context = follow;
    follow->quiet = options->quiet;
    follow->terminal = isatty(STDERR_FILENO) == 1;
    enum el_status status = el_runner_launch(&runner, trial, words, command, options, follow->logs, &result);
    look(follow); /* once more */
    if (follow->terminal && !follow->quiet) fprintf(stderr, "\r\033[K");
    return status != EL_OK || result.cancelled || result.ok ? status : fail(follow, &result, trial->procs, store->dir);
}
