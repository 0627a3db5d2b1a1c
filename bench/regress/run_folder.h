/* Folders of runs, as a comparison and a store take them: results.json of `run` and `compare`, and
 * program.json of a program that was launched. All are read as a run's document of trials.
 *
 *     el_run_load(dir, &run);                               whichever it is
 *     el_regress_launches(&ask, &set);                      or el_regress_ab: the head is what is kept
 *     el_program_save(&set, "python train.py", dir);        DIR/program.json
 *
 *     {"schema", "environment": {...}, "trials": [{"program": name, "status": "ok", "gpus": [model...],
 *      "figures": {"step_ms": {"unit", "better", "value": median, "launches": [..], "exact": true}}}]}
 *
 * "exact" stands only where the figure has no noise: its unit says so (bytes, operations) and all launches agree, or
 * --exact names it. What depends on the build of evenload is null in "environment": it does not change what somebody
 *else's program measures. The program's name is its workload: sessions of one name are compared.
 */
#ifndef EL_BENCH_RUN_FOLDER_H
#define EL_BENCH_RUN_FOLDER_H

#include <jansson.h>
#include <stdbool.h>

#include "bench/regress/regress.h"

/* Whether there is a run's record in the folder. */
bool el_regress_is_run(const char *dir);
/* Errors: EL_ERR_IO, EL_ERR_INVALID. */
enum el_status el_run_load(const char *dir, json_t **run_p);
/* Writes the head's launches. Cells that cannot be read are left out. Errors: EL_ERR_IO. */
enum el_status el_program_save(const struct el_regress_set *set, const char *name, const char *dir);

#endif
