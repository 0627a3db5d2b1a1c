/* Two programs in turns, in one session: a block is one launch of each, in random order, and after so many blocks the
 * cells are judged. It ends when the gate's answer stands, when no more samples may come, or when it is interrupted.
 *
 *     el_regress_ab(&ask, &set);      set.last_analysis, set.blocks and every cell's samples; judged
 */
#ifndef EL_BENCH_REGRESS_AB_H
#define EL_BENCH_REGRESS_AB_H

#include <stdint.h>

#include "bench/regress/regress.h"

struct el_regress_ask {
    const char *base, *head; /* for /bin/sh -c */
    double timeout_s;        /* of a launch */
    double budget_s;         /* of all; negative: none. One block is always run. */
    int blocks;              /* one look after so many; 0: looks after 14, 24 and 40 */
    int max_blocks;          /* 0: 40 */
    uint64_t seed;           /* of the order */
    const char *metrics;     /* only these, by comma; "": all */
    const char *exact;       /* these have no noise, by comma */
    const char *higher;      /* of these more is better, by comma */
    bool (*go_on)(void);
    /* Optional: after each block and each look. */
    void (*tick)(void *context, const struct el_regress_set *set, int next_look, double elapsed_s);
    void *context;
};

/* The set's least_effect is the caller's to give. Interrupted (`go_on` false): EL_OK, with whole blocks only and judged
 * as a last look. Errors: EL_ERR_INVALID, EL_ERR_TIMEOUT: a launch that failed, by side and block. */
enum el_status el_regress_ab(const struct el_regress_ask *ask, struct el_regress_set *set);

#endif
