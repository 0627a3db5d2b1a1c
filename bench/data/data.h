/* `evenload data`: what loading costs. The stages of a batch, how much of a step they leave exposed with each number of
 * workers, who waits for whom, and how many workers hide it (docs/data.md has the definitions).
 *
 *     el_loading_document(&campaign, &document);      of a campaign over numbers of workers
 *     el_loading_print(document, stdout);
 *     el_figure_loading                               for el_plot_figures
 *
 * A row's step and rate are the trial's, as every table has them. The exposed share and the stages are each launch's
 * own, of the device with the most exposed loading, then the median over launches.
 */
#pragma once

#include "bench/campaign/campaign.h"
#include "bench/plot/data_file.h"

/* Below it loading counts as hidden, in per cent of the step. */
#define EL_LOADING_HIDDEN_PCT 2.0

/* What `data --json` prints: docs/data.md has its fields. New reference. */
enum el_status el_loading_document(const struct el_campaign *campaign, json_t **document_p);
void el_loading_print(const json_t *document, FILE *out);
extern const struct el_figure el_figure_loading;
