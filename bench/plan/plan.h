/* `evenload plan`: the modes and meshes in which a model can be trained on so many devices, each with its memory, the
 * bytes that it sends and, where a machine is named, its step; by forecast (runtime/train/forecast.h).
 *
 * Ownership: documents are new references. Threads: one at a time.
 */
#pragma once

#include <jansson.h>

#include "bench/options/options.h"
#include "bench/plot/data_file.h"
#include "bench/trial/trial.h"
#include "runtime/device/machine.h"

/* Layers, width and heads of a transformer by its number of parameters, as "6.7B", "125M" or a plain number, where they
 * are not given: those of the published shape that has nearest as many; where that has over 15 % more or fewer, its
 * width and heads with as many layers as come nearest. `words`: "as GPT-3 6.7B". Errors: EL_ERR_INVALID. */
enum { EL_PLAN_SHAPE_BYTES = 48 };
enum el_status el_plan_shape(const char *params, struct el_model_config *model, char words[EL_PLAN_SHAPE_BYTES]);

/* Options of `run` on so many simulated devices; a sample each where no batch is given. */
void el_plan_options(const struct el_options *options, int n_devices, struct el_options *run);

/* [{"mode", "mesh" ("" where the mode has none, or stands alone), "micro" (micro-batches; null: none), "accumulate"
 * (micro-steps: as many as it takes to fit), "command" (its dry run), "parameters", "least_bytes" (what parameters,
 * gradients and the optimizer's state come to on a device), "peak_bytes" (of the fullest device; null where least_bytes
 * is over the limit already, and then the following are not there), "room_bytes" (of the limit; negative: it does not
 * fit), "device" (the fullest one), "moment", "at_peak_by_tag", "sent_bytes" (of the one that sends most), "step_ms",
 * "samples_per_s", "tokens_per_s" (null: no machine, or it does not fit), "fits", "checkpoint_bytes" (the most that a
 * worker writes), "state_bytes" (that all workers write)}]: all that can be on these devices,
 * best first: by the step, else by bytes sent, then by memory. `run`: options of `run`, all but mode and mesh. Errors:
 * EL_ERR_INVALID where there is no such mode or mesh. `best`: without those that surely are not the best of their mode.
 */
enum el_status el_plan_rows(const struct el_options *run, bool best, json_t **rows_p);

/* A step in stages takes no less: a stage waits until its first micro-batch has passed those before it, computes
 * `micro` of them, and the last one goes back through the same ones before the first stage updates its state and begins
 * the next step. `one`: the same mesh with one micro-batch. Communication is left out. */
enum el_status el_plan_floor(const struct el_trial *one, const struct el_machine *machine, int64_t micro,
                             double *step_ms_p);

/* Options of `run` for such a row. */
void el_plan_row_options(const struct el_options *run, const json_t *row, struct el_options *options);

/* What the step of a row that fits is made of: adds "mfu_pct" (the time that FLOPs of forward and backward take at
 * their types' peaks, of the step), "exposed_ms" (communication, waits for late members too, while a device does not
 * compute), "bubble_pct" (of stages; null: it has none), each of all devices that are issued. `rates`: also
 * "sensitivities":
 * [{"figure" (a key of the machine's file), "step_ms", "longer_pct"}], with that figure half as good, the largest
 * first. The row is as it was where no machine is named. */
enum el_status el_plan_detail(const struct el_options *run, bool rates, json_t *row);

/* The best row of each mode on each of several numbers of devices, with its details: {"rows": [row and "devices",
 * "global_batch"; by devices, then best first], "none_fits": [devices]}. `options`: of `plan`. */
enum el_status el_plan_sizes(const struct el_options *options, json_t **document_p);

/* For people: a line a row of `document` (docs/plan.md). */
void el_plan_print(const json_t *document, FILE *out);
void el_plan_print_sizes(const json_t *document, FILE *out);
enum el_status el_plan_csv(const void *document, FILE *out);
enum el_status el_plan_read(const char *path, json_t **document_p); /* a plan.json */
extern const struct el_figure el_figure_plan;                       /* throughput against devices */
