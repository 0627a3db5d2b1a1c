/* Two runs of ours into cells: each trial that finished in both, each figure by itself.
 *
 *     el_regress_dirs(base_dir, head_dir, "", stderr, &set);      a run's folder, or a store of sessions (baseline.h)
 *     el_regress_judge(&set);
 *
 * Trials belong together where their workloads are the same (session.h), whatever built them. What only the head has is
 * no cell and gets a note; what only the base has is an UNREADABLE cell, and so is a trial that did not finish in the
 * head. `metrics`: figure.h. `notes` takes lines "note: ..."; NULL: none.
 */
#ifndef EL_BENCH_RUNS_H
#define EL_BENCH_RUNS_H

#include <jansson.h>
#include <stdio.h>

#include "bench/regress/regress.h"

/* Errors: EL_ERR_ABSENT: no baseline that fits this machine (the command's EL_REGRESS_NO_BASELINE); EL_ERR_IO,
 * EL_ERR_INVALID: a document that cannot be read, a metric that is none, nothing to compare. */
enum el_status el_regress_runs(const char *base_dir, const char *head_dir, const char *metrics, FILE *notes,
                               struct el_regress_set *set);
/* Whether there is a run's record in the folder. */
bool el_regress_is_run(const char *dir);
/* That, or el_regress_baseline where `base_dir` is no run's folder. */
enum el_status el_regress_dirs(const char *base_dir, const char *head_dir, const char *metrics, FILE *notes,
                               struct el_regress_set *set);

/* A run's document by its folder. Errors: EL_ERR_IO, EL_ERR_INVALID. */
enum el_status el_run_load(const char *dir, json_t **run_p);
/* The trial of `run` with the same workload, or NULL. Borrowed. `differs`: of the one that has only the name. */
const json_t *el_run_find(const json_t *run, const json_t *trial, char *differs, size_t bytes);
/* Whether it finished. */
bool el_trial_finished(const json_t *trial);

#endif
