/* Launches as the command line asks for them, with progress on standard error; `regress` and `baseline add` share this.
 *
 *     el_launching_begin(&options, &launching);
 *     el_regress_ab(&launching.ask, &set);                         two programs interleaved
 *     el_launching_program(&launching, &options, dir, &set);       or --from's by itself, to DIR/program.json
 *
 * Progress: after the first block what it will take, and whether the budget ends it too early; then on a terminal a
 * line that is written over, elsewhere a line a minute, within a long launch too. Threads: one launching at a time.
 */
#ifndef EL_BENCH_REGRESS_LAUNCHING_H
#define EL_BENCH_REGRESS_LAUNCHING_H

#include <stdio.h>

#include "bench/options/config.h"
#include "bench/regress/ab.h"

/* What has been said so far. */
struct el_regress_progress {
    FILE *out;
    bool terminal;
    int64_t period_ns; /* between two lines where it is no terminal */
    const struct el_regress_ask *ask;
    int64_t begin_ns, line_ns; /* 0: nothing was launched yet */
    int blocks, next;          /* next: the analysis, or the last launch */
};

struct el_regress_launching {
    struct el_regress_ask ask;
    struct el_regress_progress progress;
};

/* The ask's go_on is false after SIGINT, SIGTERM or SIGHUP, which are caught from here on. `launching` stays where it
 * is until the launches have ended. */
void el_launching_begin(const struct el_options *options, struct el_regress_launching *launching);
/* The name under which sessions of --from's (of --ab: the head's) program are kept: --name, or its command. */
const char *el_launching_name(const struct el_options *options);
/* --launches of --from's command into `set`, DIR/program.json, and --export-csv's file. EL_OK also where it was
 * interrupted: then nothing is written. Errors: EL_ERR_INVALID, EL_ERR_TIMEOUT, EL_ERR_IO. */
enum el_status el_launching_program(struct el_regress_launching *launching, const struct el_options *options,
                                    const char *dir, struct el_regress_set *set);

/* An ask's tick, with the progress as its context; and what its go_on does about ten times a second. */
void el_regress_progress_block(void *progress, const struct el_regress_set *set, int next, double elapsed_s);
void el_regress_progress_wait(struct el_regress_progress *progress);

#endif
