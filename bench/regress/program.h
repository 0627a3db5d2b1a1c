/* A program of one's own as a run's document, so that the store and a comparison of two runs take it like a run of
 * ours.
 *
 *     el_regress_launches(&ask, &set);                      or el_regress_ab: the head is what is kept
 *     el_program_save(&set, "python train.py", dir);        DIR/program.json
 *     el_run_load(dir, &run);                               runs.h: reads it again
 *
 *     {"schema", "environment": {...}, "trials": [{"program": name, "status": "ok", "gpus": [model...],
 *      "figures": {"step_ms": {"unit", "better", "value": median, "launches": [..], "exact": true}}}]}
 *
 * "exact" stands only where the figure has no noise: its unit says so (bytes, operations) and all launches agree, or
 * --exact names it. What depends on the build of evenload is null in "environment": it does not change what somebody
 * else's program measures. The program's name is its workload: sessions of one name are compared.
 */
#ifndef EL_BENCH_PROGRAM_H
#define EL_BENCH_PROGRAM_H

#include <jansson.h>
#include <stdbool.h>

#include "bench/regress/regress.h"

#define EL_PROGRAM_FILE "program.json"

/* Whether a trial, or a session, is of somebody else's program. */
bool el_program_is(const json_t *trial);
/* Writes the head's launches to DIR/program.json. Cells that cannot be read are left out. Errors: EL_ERR_IO. */
enum el_status el_program_save(const struct el_regress_set *set, const char *name, const char *dir);
/* A watched command (the document of `watch`) as a program with one launch: seconds, CPU time, memory. New reference;
 * NULL: no memory. */
json_t *el_program_of_watch(json_t *run);

#endif
