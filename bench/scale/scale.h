/* `evenload scale`: throughput, speed-up and efficiency of each mode by number of devices, against plain training on
 * one device and the same mode on one, and where the loss goes (docs/scale.md).
 *
 *     el_scale_options(&asked, cores, gpus, &options);      a campaign's options
 *     el_scale_document(run, dir, &document);               from a run's document (results.json)
 *     el_scale_print(document, stdout);
 *     el_figure_scale                                       for el_plot_figures
 *
 * Ratios pair repeats by number, as they ran in one round; intervals are Student's t on logarithms. Counts whose
 * devices share a core or a card are marked, without claims. */
#pragma once

#include <stdio.h>

#include "bench/base/table.h"
#include "bench/options/config.h"
#include "bench/plot/data_file.h"

/* Fills in what was not given (counts, including 1; batch; single before the modes) and checks it. `gpus` 0: none.
 * Errors: EL_ERR_INVALID naming the options. */
enum el_status el_scale_options(const struct el_options *asked, int cores, int gpus, struct el_options *options_p);

/* --json's document (docs/scale.md). New reference. Errors: EL_ERR_INVALID: no plain single, or several batches. */
enum el_status el_scale_document(const json_t *run, const char *dir, json_t **document_p);

/* Other work was on the machine: the ratio changes with the load, by more than the scatter here shows
 * (docs/scale.md). */
bool el_scale_disturbed(const json_t *trial);
/* Columns of the document's `rows`. */
extern const struct el_column el_scale_columns[], el_scale_token_columns[]; /* rows over tokens */
/* Two tables, sentences, doubts; 110 columns. */
void el_scale_print(const json_t *document, FILE *out);
/* scale.csv: a row for each of `rows` and `predicted`. EL_OK. */
enum el_status el_scale_csv(const void *document, FILE *file);
extern const struct el_figure el_figure_scale;
