/* `evenload plan`: all modes and meshes for a model on so many devices, with forecast memory, bytes sent and, for a
 * named machine, step time (runtime/train/forecast.h). Ownership: new references. Threads: one at a time. */
#pragma once

#include <jansson.h>

#include "bench/options/options.h"
#include "bench/plot/data_file.h"
#include "bench/trial/trial.h"
#include "runtime/device/machine.h"

/* Layers, width and heads of a transformer by its number of parameters ("6.7B", "125M", a plain number), where not
 * given: the nearest published shape; if it is off by more than 15 %, its width and heads with the best number of
 * layers. `words`: "as GPT-3 6.7B". Errors: EL_ERR_INVALID. */
enum { EL_PLAN_SHAPE_BYTES = 48 };
enum el_status el_plan_shape(const char *params, struct el_model_config *model, char words[EL_PLAN_SHAPE_BYTES]);

/* Options of `run` on simulated devices; one sample each without a given batch. */
void el_plan_options(const struct el_options *options, int n_devices, struct el_options *run);

/* [{"mode", "mesh" ("": none, or alone), "micro" (micro-batches; null: none), "accumulate" (micro-steps needed to fit),
 * "command" (its dry run), "parameters", "least_bytes" (parameters, gradients and optimizer state per device),
 * "peak_bytes" (of the fullest device; null, and the following are missing, if least_bytes exceeds the limit),
 * "room_bytes" (of the limit; negative: too large), "device" (the fullest), "moment", "at_peak_by_tag", "sent_bytes"
 * (of the largest sender), "step_ms", "samples_per_s", "tokens_per_s" (null: no machine, or too large), "fits",
 * "checkpoint_bytes" (most of one worker), "state_bytes" (all workers')}], best first: by step, else bytes sent, then
 * memory. `run`: options of `run` without mode and mesh. `best`: without rows that cannot be their mode's best. Errors:
 * EL_ERR_INVALID: no such mode or mesh. */
enum el_status el_plan_rows(const struct el_options *run, bool best, json_t **rows_p);

/* A lower bound of a step in stages without communication: a stage waits for its first micro-batch, computes `micro` of
 * them, and the last one returns before the first stage updates and begins the next step. `one`: the same mesh with one
 * micro-batch. */
enum el_status el_plan_floor(const struct el_trial *one, const struct el_machine *machine, int64_t micro,
                             double *step_ms_p);

void el_plan_row_options(const struct el_options *run, const json_t *row, struct el_options *options);

/* Adds to a fitting row "mfu_pct" (forward and backward FLOPs at peak rates, of the step), "exposed_ms" (communication
 * and waits while a device does not compute), "bubble_pct" (null: no stages), over all issued devices. `rates`: also
 * "sensitivities": [{"figure" (a key of the machine's file), "step_ms", "longer_pct"}] with that figure halved, largest
 * first. No change without a machine. */
enum el_status el_plan_detail(const struct el_options *run, bool rates, json_t *row);

/* Each mode's best row on each number of devices, with details: {"rows": [row and "devices", "global_batch"; by
 * devices, then best first], "none_fits": [devices]}. `options`: of `plan`. */
enum el_status el_plan_sizes(const struct el_options *options, json_t **document_p);

/* A line per row (docs/plan.md). */
void el_plan_print(const json_t *document, FILE *out);
void el_plan_print_sizes(const json_t *document, FILE *out);
enum el_status el_plan_csv(const void *document, FILE *out);
bool el_plan_is(const json_t *document);      /* a plan.json */
extern const struct el_figure el_figure_plan; /* throughput against devices */
