/* What makes dp slower than ddp, cause by cause: dp's step with its causes (runtime/modes/dp/fix.h), without each of
 * them, and without more and more of them, beside ddp's with a thread a rank.
 *
 *     el_explain_resolve(&options, &set);                       dp's trial, checked
 *     el_explain_measure(&options, &set, &store, &samples);     some launches, in each of which all variants take turns
 *     document = el_explain_document(trial, samples);           a pure function of what was measured
 *     el_explain_print(document, stdout);                       and el_figure_explain
 *
 * In turn: a cause's part is the step before it is taken away less the step after, the earlier ones having gone
 * already. So the parts, and the rest from the last variant to ddp, add up to the whole. Alone: the first step less the
 * step without this cause, and without those whose fixes its own needs. Both differ where one cause hides behind
 * another.
 *
 * The unit is a launch: of each variant the median of its blocks' median steps. Memory is the ledger's, exact.
 */
#ifndef EL_BENCH_EXPLAIN_H
#define EL_BENCH_EXPLAIN_H

#include <jansson.h>
#include <stdio.h>

#include "bench/campaign/store.h"
#include "bench/options/options.h"
#include "bench/plot/data_file.h"
#include "bench/trial/trial.h"
#include "runtime/modes/dp/fix.h"

enum { EL_EXPLAIN_SCHEMA = 1, EL_EXPLAIN_BLOCKS = 3, EL_EXPLAIN_VARIANTS_MAX = 2 * EL_DP_FIXES + 2 };

/* A schedule that is measured: dp with some fixes, or ddp. */
struct el_explain_variant {
    unsigned fixes;
    bool is_ddp;
};

/* First dp without fixes, then with one more after another (EL_DP_FIXES of them), then ddp; behind it those sets of a
 * single fix that are not there yet. Returns how many. */
int el_explain_variants(struct el_explain_variant *list);
enum { EL_EXPLAIN_DDP = EL_DP_FIXES + 1 };
/* Which of them has this cause alone taken away. */
int el_explain_alone(int cause);

/* Errors: EL_ERR_INVALID in one line: fewer than two devices, or several trials. The caller frees the set. */
enum el_status el_explain_resolve(const struct el_options *options, struct el_trial_set *set_p);

/* Launches in fresh processes, options->repeats of them. *samples_p: [launch] of what a launch writes, new reference;
 * NULL where it was interrupted. Errors: that of the first launch that failed. */
enum el_status el_explain_measure(const struct el_options *options, const struct el_trial_set *set,
                                  const struct el_store *store, json_t **samples_p);
/* "explain RESULT LAUNCH --option=value ...": such a process. Returns its exit status. */
int el_explain_worker(int argc, char **argv);

/* New reference. `samples`: [launch], each {"variants": [{"block_ms": [], "memory": [{"peak_bytes", "peak_by_tag"}]}]}.
 */
json_t *el_explain_document(const struct el_trial *trial, const json_t *samples);
/* What lies in an explain.json: this, or what two records come to (difference.h). Errors: EL_ERR_IO, EL_ERR_INVALID. */
enum el_status el_explain_read(const char *path, json_t **document_p);
void el_explain_print(const json_t *document, FILE *out);
extern const struct el_figure el_figure_explain;

#endif
