/* `evenload data`: the cost of loading: stages of a batch, exposed part of a step by number of workers, who waits for
 * whom, and how many workers hide it (docs/data.md).
 *
 *     el_loading_document(&campaign, &document);      of a campaign over numbers of workers
 *     el_loading_print(document, stdout);
 *     el_figure_loading                               for el_plot_figures
 *
 * Step and rate are the trial's. Exposed share and stages are each launch's, of the device with the most exposed
 * loading, then medians over launches. */
#pragma once

#include "bench/campaign/campaign.h"
#include "bench/plot/data_file.h"

/* Per cent of the step: below it loading counts as hidden. */
#define EL_LOADING_HIDDEN_PCT 2.0

/* --json's document (docs/data.md). New reference. */
enum el_status el_loading_document(const struct el_campaign *campaign, json_t **document_p);
void el_loading_print(const json_t *document, FILE *out);
extern const struct el_figure el_figure_loading;
