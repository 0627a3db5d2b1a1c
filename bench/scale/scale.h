/* `evenload scale`: what more devices bring. Throughput, speed-up and efficiency of each mode at each number of
 * devices, held against plain training on one device and against the same mode on one; and where the loss goes
 * (docs/scale.md has the definitions).
 *
 *     el_scale_options(&asked, cores, gpus, &options);      what is to be measured: a campaign's options
 *     el_scale_document(run, dir, &document);               from a run's document (results.json) alone
 *     el_scale_print(document, stdout);
 *     el_figure_scale                                       for el_plot_figures
 *
 * Ratios are of repeats with the same number, which ran in the same round; intervals are Student's t on their
 * logarithms. Counts whose devices share a core or a card are marked, and nothing is claimed of them.
 */
#pragma once

#include <stdio.h>

#include "bench/base/table.h"
#include "bench/options/config.h"
#include "bench/plot/data_file.h"

/* What goes together, and what was left out: counts (with 1 always among them), the batch, single in front of the
 * modes. `gpus` 0: none. Errors: EL_ERR_INVALID naming the options. */
enum el_status el_scale_options(const struct el_options *asked, int cores, int gpus, struct el_options *options_p);

/* What `scale --json` prints: docs/scale.md has its fields. New reference. Errors: EL_ERR_INVALID: there is no plain
 * single in the run, or more than one batch. */
enum el_status el_scale_document(const json_t *run, const char *dir, json_t **document_p);

/* Whether other work was on the machine: then a ratio is another one under the next load, and no scatter within these
 * trials tells by how much (docs/scale.md has what was measured). */
bool el_scale_disturbed(const json_t *trial);
/* The columns of the first of its tables, a row for each of the document's `rows`. */
extern const struct el_column el_scale_columns[], el_scale_token_columns[]; /* the latter: rows over tokens */
/* Two tables, what it comes to in sentences, and what made rows doubtful; 110 columns. */
void el_scale_print(const json_t *document, FILE *out);
/* scale.csv: a row for each of `rows` and `predicted`. EL_OK. */
enum el_status el_scale_csv(const void *document, FILE *file);
/* Speed-up and efficiency (figure_scale.c). */
extern const struct el_figure el_figure_scale;
