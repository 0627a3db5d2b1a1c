/* A run against a store of this machine's sessions, as cells: each trial by itself, each figure by itself.
 *
 *     el_regress_dirs(store_dir, run_dir, "", stderr, &set);      (store.h)
 *     el_regress_judge(&set);
 *
 * Trials belong together where their workloads are the same (session.h), whatever built them. A timed figure is a
 * HISTORY cell of el_level_of's values, and what has no noise is compared with the last session; a run that is in the
 * store is compared with the others, but where it alone makes the accepted level, with itself: a note says which. A
 * trial that did not finish is an UNREADABLE cell, a workload that is not in the store a NO_BASELINE cell; one that
 * only the store has is not asked for.
 */
#ifndef EL_BENCH_COMPARE_H
#define EL_BENCH_COMPARE_H

#include <jansson.h>
#include <stdio.h>

#include "bench/regress/regress.h"

/* `metrics`: names by comma, "device_peak_bytes" of all devices, "device_peak_bytes[1]" of one; "": what has no noise
 * and the median step, of a program of one's own all. `notes` takes lines "note: ..."; NULL: none. Errors:
 * EL_ERR_IO, EL_ERR_INVALID: a document that cannot be read, a metric that is none, nothing to compare. */
enum el_status el_regress_dirs(const char *store_dir, const char *run_dir, const char *metrics, FILE *notes,
                               struct el_regress_set *set);

/* ---- between compare.c and compare_figures.c ---- */

/* A trial of the run, and what there is of it in the store. */
struct el_compared {
    const char *name;
    const json_t *past; /* sessions, oldest first */
    const json_t *last; /* the one of them whose figures are asked for */
    const json_t *head; /* the session that is judged */
};
/* A cell for each figure that is asked for. */
enum el_status el_compare_figures(const struct el_compared *trial, const char *metrics, struct el_regress_set *set);

#endif
