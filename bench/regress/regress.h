/* Did training get slower? Cells, each judged by itself, and what is said of them.
 *
 *     el_regress_ab(&ask, &set);                                two programs interleaved (launches.h)
 *     el_regress_dirs(store_dir, run_dir, "", stderr, &set);    or a run and a store of sessions (store.h)
 *     el_regress_judge(&set);                                   verdicts (rule.c); pure
 *     el_answer_print(&set, stdout); ...                        one answer, several forms (answer.h)
 *     el_regress_free(&set);
 *
 * A cell is one metric of one thing that is measured; there is never a mean over cells. Costs are judged on logarithms,
 * so an effect of 1.05 is 5 % slower whatever the unit; of what is better when higher (samples/s) the inverse is taken,
 * so that above 1 is always worse.
 *
 * The room: programs that are launched, what they print, and what is kept (launches, progress, shell, readings); the
 * figures of a session (session); the store, what it holds and a run beside it (store, level, fingerprint, show,
 * compare); verdicts (rule, paired, unpaired); what is said of them (answer, answer_ci).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "bench/record/metrics.h"
#include "runtime/base/status.h"

enum { EL_CELL_NAME_BYTES = 256, EL_CELL_UNIT_BYTES = 48, EL_CELL_REASON_BYTES = 200, EL_SIDE_NAME_BYTES = 1024 };

/* How two sides of a cell were measured; the rule follows from it. */
enum el_cell_kind {
    EL_CELL_EXACT,  /* has no noise (bytes, operations): one figure a side, any change for the worse is a regression.
                        0 is a figure like any other */
    EL_CELL_PAIRED, /* base[i] and head[i] ran next to each other, in random order: signed ranks */
    EL_CELL_HISTORY /* base[] are sessions of the past, oldest first; head[] is one figure: this session */
};

/* What says that a launched program's cell is exact: its unit only as long as it is seen to be. */
enum el_cell_claim { EL_CELL_NOISY, EL_CELL_EXACT_BY_UNIT, EL_CELL_EXACT_BY_NAME };

enum el_cell_verdict {
    EL_CELL_SAME,         /* no regression: the interval ends below what would be one */
    EL_CELL_REGRESSION,   /* worse, and by enough to matter */
    EL_CELL_IMPROVEMENT,  /* better, by the same rule */
    EL_CELL_INCONCLUSIVE, /* not decided by so many samples; reason says how many more */
    EL_CELL_UNREADABLE,   /* a side is missing, not a number, not above 0, or in another unit */
    EL_CELL_NO_BASELINE   /* nothing that fits to compare with */
};

struct el_regress_cell {
    char name[EL_CELL_NAME_BYTES]; /* "ddp 2 devices textcnn batch 128 step_mean_ms"; of a program the metric's name */
    char unit[EL_CELL_UNIT_BYTES]; /* "": none given */
    enum el_better better;         /* NEITHER: of an exact cell any change counts, of others more is taken for worse */
    enum el_cell_kind kind;
    enum el_cell_claim claim;
    enum el_cell_verdict fault; /* UNREADABLE, NO_BASELINE: found by who fills it in, who gives the reason too */
    double *base, *head;        /* owned; [n_base], [n_head] */
    size_t n_base, n_head;
    size_t printed; /* how often a launch printed it, at most */
    size_t base_df; /* of a history: degrees of freedom of base[]'s scatter (store.h); 0: n_base - 1 */
    bool is_level;  /* of a history: the head is what base[]'s level was accepted by, and is the same as it */
    char doubt[EL_CELL_REASON_BYTES]; /* why a side is doubtful ("current is suspect: drift"), said with the verdict */

    /* Written by el_regress_judge. NAN: does not apply, or is not known. */
    enum el_cell_verdict verdict;
    double effect;        /* head over base, above 1 is worse: Hodges-Lehmann of the logarithms' differences */
    double low, high;     /* its 95 % interval; of a history: of the past sessions' next */
    double p, p_adjusted; /* one-sided, of worse; Holm's over the set's cells of this kind */
    double floor;      /* the effect that counts: max(least, what the same program differs from itself), as a ratio */
    double detectable; /* the smallest effect that would have been found in at least 90 of 100 such runs */
    int more;          /* blocks that would decide, about; 0: none needed, or no number up to 200 would */
    char reason[EL_CELL_REASON_BYTES]; /* of anything but SAME: in words */
};

struct el_regress_set {
    struct el_regress_cell *cells; /* owned */
    size_t n;
    json_t *unjudged;   /* owned: names of printed metrics of which nothing says which way is better; NULL: none */
    bool of_slowest;    /* of what a launch prints several times; else its median */
    int stage, blocks;  /* of a paired set: which analysis, 0, 1 or 2, and how many blocks were run */
    bool last_analysis; /* no more samples will come: what is not decided stays inconclusive */
    char base_name[EL_SIDE_NAME_BYTES], head_name[EL_SIDE_NAME_BYTES]; /* the commands, or the folders */
    double least_effect;                                               /* as a ratio: what counts at least; 0: 1.02 */
    size_t new_trials;      /* against a store: trials of the head that are not in it */
    size_t other_trials;    /* and those that are not its level */
    size_t sessions_needed; /* by the store until all can be judged, before this run is added; 0: none */
    char environment[EL_CELL_REASON_BYTES]; /* written by el_regress_judge: why this machine is too noisy, or "" */
};

/* Exit statuses of the command; where several apply: USE, FOUND, NO_BASELINE, INCONCLUSIVE, in that order. */
enum el_regress_exit {
    EL_REGRESS_NONE = 0,
    EL_REGRESS_FOUND = 1,
    EL_REGRESS_USE = 2,
    EL_REGRESS_INCONCLUSIVE = 3,
    EL_REGRESS_NO_BASELINE = 4
};

/* Fills in the cells' verdicts. Pure: no clock, no files, no random numbers. */
void el_regress_judge(struct el_regress_set *set);
/* What the set comes to. */
enum el_regress_exit el_regress_outcome(const struct el_regress_set *set);

/* The level of an analysis: what is left of 0.005 where it is the last, else its share. And how many blocks that level
 * needs: with fewer significance cannot be reached in any of so many cells. */
double el_regress_level(int stage, bool last_analysis);
int el_regress_blocks_needed(size_t cells, double level);

/* What the command calls the two sides, made printable. */
void el_regress_name_sides(struct el_regress_set *set, const char *base, const char *head);
/* A cell at the end of the set, zeroed, its name copied (too long: cut; not UTF-8: replaced). Valid until the next
 * call. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_regress_add(struct el_regress_set *set, const char *name, struct el_regress_cell **cell_p);
/* A sample of one side. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_regress_append(double **values, size_t *n, double value);
/* Marks the cell with what is wrong; the first such reason stays. */
void el_regress_fault(struct el_regress_cell *cell, enum el_cell_verdict fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void el_regress_free(struct el_regress_set *set);

/* "peak", "peak[1]" and "peak cpu:0" are in the comma-separated list "step_ms,peak". */
bool el_regress_listed(const char *list, const char *name);
