/* What makes a mode slower than ddp, cause by cause: its step with its causes, without each of them where that can be,
 * and without more and more of them, beside ddp's with a thread per rank. dp's causes are those of
 * runtime/modes/dp/fix.h; those of sharded state are options and modes on the way to ddp.
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
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "bench/campaign/store.h"
#include "bench/options/options.h"
#include "bench/plot/data_file.h"
#include "bench/stats/stats.h"
#include "bench/trial/trial.h"
#include "runtime/modes/dp/fix.h"

enum { EL_EXPLAIN_SCHEMA = 1, EL_EXPLAIN_BLOCKS = 3, EL_EXPLAIN_VARIANTS_MAX = 2 * EL_DP_FIXES + 2 };

/* A schedule that is measured. */
struct el_explain_variant {
    const char *mode;
    unsigned fixes;             /* dp's */
    const char *option, *value; /* of the mode; NULL: as usual */
};

struct el_explain_cause {
    const char *name, *what;
    int alone;                       /* the variant without this cause alone; -1: there is none */
    char with[EL_DP_FIX_TEXT_BYTES]; /* what that leaves out besides */
};

/* The way from a mode's step to ddp's: first the mode as it is, then without one cause more after another, then ddp at
 * n_causes + 1; behind it those without a single cause that are not there yet. */
struct el_explain_way {
    int n, n_causes;
    struct el_explain_variant variants[EL_EXPLAIN_VARIANTS_MAX];
    struct el_explain_cause causes[EL_DP_FIXES];
    const char *rest; /* what the last difference, to ddp, is */
};

/* Errors: EL_ERR_INVALID for a mode that has no such way. */
enum el_status el_explain_way(const char *mode, struct el_explain_way *way_p);

/* Errors: EL_ERR_INVALID in one line: fewer than two devices, several trials, or no such way. The caller frees the set.
 */
enum el_status el_explain_resolve(const struct el_options *options, struct el_trial_set *set_p);

/* Launches in fresh processes, options->repeats of them. *samples_p: [launch] of what a launch writes, new reference;
 * NULL where it was interrupted. Errors: that of the first launch that failed. */
enum el_status el_explain_measure(const struct el_options *options, const struct el_trial_set *set,
                                  const struct el_store *store, json_t **samples_p);
/* "explain RESULT LAUNCH --option=value ...": such a process. Returns its exit status. */
struct el_worker;
enum el_status el_explain_worker(struct el_worker *worker);

/* New reference. `samples`: [launch], each {"variants": [{"block_ms": [], "memory": [{"peak_bytes", "peak_by_tag"}]}]}.
 */
json_t *el_explain_document(const struct el_trial *trial, const json_t *samples);
/* Puts its centre and its bounds. */
void el_explain_put(json_t *row, const char *key, const char *interval_key, struct el_interval interval);
/* What lies in an explain.json: this, or what two records come to (below). Errors: EL_ERR_IO, EL_ERR_INVALID. */
enum el_status el_explain_read(const char *path, json_t **document_p);
void el_explain_print(const json_t *document, FILE *out);
extern const struct el_figure el_figure_explain;

/* ---- explain A B ----
 *
 * Where the time and the memory went from one record to another: `explain A B`.
 *
 *     el_side_open("results/one:dp:128", &a);  el_side_open("results/two", &b);
 *     el_sides_check(&a, &b);                      the same work? else one line that says what is not
 *     document = el_difference_document(&a, &b);   a pure function of both
 *     el_difference_print(document, stdout);       and el_figure_explain
 *     el_side_close(&a);  el_side_close(&b);
 *
 * A step is taken apart on the trial's slowest member, launch by launch, so that its parts and a rest add up to it; a
 * part's change is the mean over B's launches less that over A's, and what the parts do not hold is the rest. Where the
 * folder has no repeats/, as that of a record that was sent, parts are the record's own means and have no interval.
 */

enum el_part {
    EL_PART_COMPUTE,
    EL_PART_CONTENTION,
    EL_PART_EXPOSED,
    EL_PART_SKEW,
    EL_PART_BUBBLE,
    EL_PART_DATA,
    EL_PART_IDLE,
    EL_PART_HOST, /* of PyTorch's records alone */
    EL_PARTS
};

/* A launch's, or the mean over launches. Until both sides are split, compute has contention in it, and exposed skew. */
struct el_parts {
    double ms[EL_PARTS]; /* NAN: not known */
};

struct el_side {
    char record[EL_PATH_BYTES]; /* the file */
    json_t *run;
    const json_t *trial; /* of it */
    size_t n;            /* launches that finished */
    double step_ms[EL_REPEATS_MAX];
    double repeat[EL_REPEATS_MAX]; /* their numbers */
    bool knows_launches;           /* else only the mean of their parts */
    struct el_parts launches[EL_REPEATS_MAX], mean;
};

/* A folder or its results.json; where it has several trials ":MODE", ":MODE:BATCH" or ":ID" behind it. Errors:
 * EL_ERR_IO, EL_ERR_INVALID in one line: no such record, which trials there are to choose from, one that did not
 * finish. Nothing is left open then. */
enum el_status el_side_open(const char *word, struct el_side *side);
void el_side_close(struct el_side *side);

/* EL_ERR_INVALID: another model, other data or another batch. */
enum el_status el_sides_check(const struct el_side *a, const struct el_side *b);
/* What else is not alike: [{"field", "a", "b"}]. New reference. */
json_t *el_sides_differences(const struct el_side *a, const struct el_side *b);
/* Whether it is a record of PyTorch (scripts/peer-torch): its framework's name, or NULL. Borrowed. */
const char *el_side_framework(const struct el_side *side);

/* New reference. Splits both sides: once. */
json_t *el_difference_document(struct el_side *a, struct el_side *b);
void el_difference_print(const json_t *document, FILE *out);
