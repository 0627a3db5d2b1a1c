/* A session: what one run measured of one workload, as JSON, in the form in which it is stored. That of a program of
 * one's own (run_folder.h) has "program" and the program's own figures, and its workload is {"program": name}.
 *
 *     {"time_utc", "hostname", "commit", "dir", "run",          run: 16 hex digits, other ones in each run
 *      "name": "ddp 2 devices textcnn batch 128", "suspect": [rules...],
 *      "figures": {"step_median_ms": {"unit", "better", "value", "launches": [..]},
 *                  "device_peak_bytes[1]": {"unit", "better", "value", "exact": true}}}
 *
 * A figure of a device has its position in brackets. Exact figures have no noise: bytes held (peak, and by tag), bytes
 * moved, parameters, FLOPs; of a simulated trial the times too. The others are one figure a launch; `value` is their
 * geometric mean. What the record does not know is left out; what is no number or not above 0 where it must be is null.
 *
 * A workload is the resolved configuration without the build, and without what only says how long and how closely to
 * measure (steps, min_time_s, timeout_s, control, control_pairs) or what to disturb (inject).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "bench/record/metrics.h"

/* Of a run's document and one of its trials, which finished. `dir` is where it was read. New reference; NULL: no
 * memory.
 */
json_t *el_session_of(const json_t *run, const json_t *trial, const char *dir);
/* New reference; NULL: no memory. */
json_t *el_workload_of(const json_t *trial);
/* "ddp 2 devices textcnn batch 128", and " buckets of 1 MiB" where ddp's are not the usual 25 MiB. */
void el_workload_name(const json_t *trial, char *text, size_t bytes);
/* Whether figures of both may be compared. A field of `config` that only one of them has is ignored: it came with a
 * later version. */
bool el_workload_same(const json_t *base, const json_t *head);

/* The figures of a trial that finished. New reference; NULL: no memory. */
json_t *el_session_figures(const json_t *trial);
/* {"unit", "better", "value", "launches" (stolen; NULL: left out), "exact": true (only where it is)}. New reference. */
json_t *el_figure_new(const char *unit, enum el_better better, double value, json_t *launches, bool exact);
bool el_figure_is_exact(const json_t *figure);
enum el_better el_figure_better(const json_t *figure);
/* Whether a gate judges the figure unless others are asked for by name: the median step and what has no noise, of a
 * program all. And whether the store's table shows its level: the former. `session`: a trial will do, or an entry of
 * el_baseline_describe. */
bool el_session_gates(const json_t *session, const char *name, const json_t *figure);
bool el_session_leads(const json_t *session, const char *name);

/* Whether a trial, a session or a workload is of somebody else's program. */
bool el_program_is(const json_t *trial);

/* DIR/program.json: what programs measured, a trial each ({"program", "status", "figures"}), as a run that a store can
 * keep. Steals both. Errors: EL_ERR_IO, EL_ERR_HOST_MEMORY. */
enum el_status el_session_save_programs(json_t *environment, json_t *trials, const char *dir);
