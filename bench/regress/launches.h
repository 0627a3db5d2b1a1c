/* Launches of somebody's programs: two interleaved, where a block is one launch of each, in random order, and after so
 * many blocks the cells are judged; or one by itself, for a store of sessions. `regress` and `baseline add` share this.
 *
 *     el_launching_begin(&options, &launching);             from the command line, with progress on standard error
 *     el_regress_ab(&launching.ask, &set);                  set.last_analysis, set.blocks and all samples; judged
 *     el_launching_save(&launching, &options, dir, &set);   --export-csv's file, and the head to DIR/program.json
 *
 * Progress: after the first block what it will take, and whether the budget ends it too early; then on a terminal a
 * line that is written over, elsewhere a line a minute, within a long launch too. Threads: one launching at a time.
 */
#ifndef EL_BENCH_REGRESS_LAUNCHES_H
#define EL_BENCH_REGRESS_LAUNCHES_H

#include <stdint.h>
#include <stdio.h>

#include "bench/options/config.h"
#include "bench/regress/regress.h"

struct el_regress_ask {
    const char *base, *head; /* for /bin/sh -c; base NULL: the head alone */
    const char *prepare;     /* run before each launch; "" or NULL: nothing */
    double timeout_s;        /* of a launch */
    double budget_s;         /* of all; negative: none. One block is always run. */
    int blocks;          /* one analysis after so many; 0: interim ones after 14 and 24, the last after max_blocks */
    int max_blocks;      /* 0: 40 */
    uint64_t seed;       /* of the order */
    const char *metrics; /* only these, by comma; "": all */
    const char *exact;   /* these have no noise, by comma */
    const char *higher;  /* of these more is better, by comma, */
    const char *lower;   /* and of these less; of others their unit has to say it */
    bool (*go_on)(void);
    /* Optional: after each block. */
    void (*tick)(void *context, const struct el_regress_set *set, int next_analysis, double elapsed_s);
    void *context;
};

/* Until the gate's answer stands, no more samples may come, or it is interrupted. The set's least_effect is the
 * caller's to give. Interrupted (`go_on` false): EL_OK, with whole blocks only and judged as a last analysis. Errors:
 * EL_ERR_INVALID, EL_ERR_TIMEOUT: a launch that failed, by side and block. */
enum el_status el_regress_ab(const struct el_regress_ask *ask, struct el_regress_set *set);
/* `blocks` launches of the head alone, of which nothing is judged: cells without base. Interrupted: those that there
 * are. Errors: as above; EL_ERR_INVALID also where a metric is missing in a launch or changes its unit. */
enum el_status el_regress_launches(const struct el_regress_ask *ask, struct el_regress_set *set);
/* Which side a block launches first: 0 base, 1 head. */
int el_regress_first_side(uint64_t seed, int block);

/* ---- from the command line, with progress (progress.c) ---- */

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
/* Errors: EL_ERR_IO. */
enum el_status el_launching_save(const struct el_options *options, const char *dir, const struct el_regress_set *set);
/* --from: --launches of its command, saved. EL_OK also where it was interrupted: then nothing is. Errors: as of
 * el_regress_launches, EL_ERR_IO. */
enum el_status el_launching_from(const struct el_options *options, const char *dir);

/* An ask's tick, with the progress as its context; and what its go_on does about ten times a second. */
void el_regress_progress_block(void *progress, const struct el_regress_set *set, int next, double elapsed_s);
void el_regress_progress_wait(struct el_regress_progress *progress);

#endif
