/* Two programs interleaved in one session: a block is one launch of each, in random order, and after so many blocks the
 * cells are judged. It ends when the gate's answer stands, when no more samples may come, or when it is interrupted.
 *
 *     el_regress_ab(&ask, &set);            set.last_analysis, set.blocks and every cell's samples; judged
 *     el_regress_launches(&ask, &set);      or one program by itself, for a store of sessions (program.h)
 */
#ifndef EL_BENCH_REGRESS_AB_H
#define EL_BENCH_REGRESS_AB_H

#include <stdint.h>

#include "bench/regress/regress.h"

struct el_regress_ask {
    const char *base, *head; /* for /bin/sh -c */
    const char *prepare;     /* run before each launch; "" or NULL: nothing */
    double timeout_s;        /* of a launch */
    double budget_s;         /* of all; negative: none. One block is always run. */
    int blocks;          /* one analysis after so many; 0: interim ones after 14 and 24, the last after max_blocks */
    int max_blocks;      /* 0: 40 */
    uint64_t seed;       /* of the order */
    const char *metrics; /* only these, by comma; "": all */
    const char *exact;   /* these have no noise, by comma */
    const char *higher;  /* of these more is better, by comma */
    bool (*go_on)(void);
    /* Optional: after each block. */
    void (*tick)(void *context, const struct el_regress_set *set, int next_analysis, double elapsed_s);
    void *context;
};

/* The set's least_effect is the caller's to give. Interrupted (`go_on` false): EL_OK, with whole blocks only and judged
 * as a last analysis. Errors: EL_ERR_INVALID, EL_ERR_TIMEOUT: a launch that failed, by side and block. */
enum el_status el_regress_ab(const struct el_regress_ask *ask, struct el_regress_set *set);
/* `blocks` launches of the head alone, of which nothing is judged: cells without base. Interrupted: those that there
 * are. Errors: as above; EL_ERR_INVALID also where a metric is missing in a launch or changes its unit. */
enum el_status el_regress_launches(const struct el_regress_ask *ask, struct el_regress_set *set);
/* Which side a block launches first: 0 base, 1 head. */
int el_regress_first_side(uint64_t seed, int block);

#endif
