/* `explain`: what makes a mode slower than ddp, cause by cause: its step, its step without single causes where
 * possible, and without more and more of them, until ddp with a thread per rank. dp's causes: runtime/modes/dp/fix.h;
 * those of sharded state are options and modes on the way to ddp.
 *
 *     el_explain_resolve(&options, &set);                       checks the trial
 *     el_explain_measure(&options, &set, &store, &samples);     launches in which all variants take turns
 *     document = el_explain_document(trial, samples);           pure function
 *     el_explain_print(document, stdout);                       and el_figure_explain
 *
 * In turn: a cause's part is the step before minus the step after its removal, with the earlier ones removed; the parts
 * and the rest add up to the whole. Alone: the first step minus the step without this cause and those that its fix
 * needs. Both differ if one cause hides behind another.
 *
 * The unit is a launch: each variant's median of its blocks' median steps. Memory is the ledger's, exact. */
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

/* A schedule to measure. */
struct el_explain_variant {
    const char *mode;
    unsigned fixes;             /* dp's */
    const char *option, *value; /* of the mode; NULL: default */
};

struct el_explain_cause {
    const char *name, *what;
    int alone;                       /* variant without only this cause; -1: none */
    char with[EL_DP_FIX_TEXT_BYTES]; /* causes removed with it */
};

/* From a mode's step to ddp's: the mode, then without one more cause at a time, ddp at n_causes + 1, then those without
 * a single cause. */
struct el_explain_way {
    int n, n_causes;
    struct el_explain_variant variants[EL_EXPLAIN_VARIANTS_MAX];
    struct el_explain_cause causes[EL_DP_FIXES];
    const char *rest; /* the meaning of the last difference, to ddp */
};

/* Errors: EL_ERR_INVALID: the mode has no such way. */
enum el_status el_explain_way(const char *mode, struct el_explain_way *way_p);

/* Errors: EL_ERR_INVALID: fewer than two devices, several trials, or no way. The caller frees the set. */
enum el_status el_explain_resolve(const struct el_options *options, struct el_trial_set *set_p);

/* options->repeats launches in fresh processes. *samples_p: [launch], new reference; NULL if interrupted. Errors: the
 * first failed launch's. */
enum el_status el_explain_measure(const struct el_options *options, const struct el_trial_set *set,
                                  const struct el_store *store, json_t **samples_p);
/* "explain RESULT LAUNCH --option=value ..." */
struct el_worker;
enum el_status el_explain_worker(struct el_worker *worker);

/* `samples`: [launch], each {"variants": [{"block_ms": [], "memory": [{"peak_bytes", "peak_by_tag"}]}]}. New
 * reference. */
json_t *el_explain_document(const struct el_trial *trial, const json_t *samples);
void el_explain_put(json_t *row, const char *key, const char *interval_key, struct el_interval interval);
/* An explain.json of either kind. */
bool el_explain_is(const json_t *document);
void el_explain_print(const json_t *document, FILE *out);
extern const struct el_figure el_figure_explain;

/* ---- explain A B ----
 *
 * Where time and memory differ between two records:
 *
 *     el_side_open("results/one:dp:128", &a);  el_side_open("results/two", &b);
 *     el_sides_check(&a, &b);                      the same work?
 *     document = el_difference_document(&a, &b);   pure function
 *     el_difference_print(document, stdout);       and el_figure_explain
 *     el_side_close(&a);  el_side_close(&b);
 *
 * A step's parts are those of the trial's slowest member, by launch; a part's change is B's mean over launches minus
 * A's; the rest is what the parts do not hold. Without repeats/ (a record that was sent), parts are the record's means
 * and have no interval. */

enum el_part {
    EL_PART_COMPUTE,
    EL_PART_CONTENTION,
    EL_PART_EXPOSED,
    EL_PART_SKEW,
    EL_PART_BUBBLE,
    EL_PART_DATA,
    EL_PART_FORWARD, /* these four: of a watched training */
    EL_PART_BACKWARD,
    EL_PART_OPTIMIZER,
    EL_PART_PAUSE,
    EL_PART_IDLE,
    EL_PARTS
};

/* A launch's, or the mean. Until both sides are split, compute includes contention, and exposed includes skew. */
struct el_parts {
    double ms[EL_PARTS]; /* NAN: unknown */
};

struct el_side {
    char record[EL_PATH_BYTES]; /* the file */
    json_t *run;
    const json_t *trial; /* of it */
    size_t n;            /* finished launches */
    double step_ms[EL_REPEATS_MAX];
    double repeat[EL_REPEATS_MAX]; /* their numbers */
    bool knows_launches;           /* else only the mean of the parts */
    struct el_parts launches[EL_REPEATS_MAX], mean;
};

/* `word`: a folder or its results.json; of several trials ":MODE", ":MODE:BATCH" or ":ID" selects one. Errors:
 * EL_ERR_IO, EL_ERR_INVALID: no record, which trials there are, or an unfinished one. Nothing stays open then. */
enum el_status el_side_open(const char *word, struct el_side *side);
void el_side_close(struct el_side *side);

/* EL_ERR_INVALID: other model, data or batch. */
enum el_status el_sides_check(const struct el_side *a, const struct el_side *b);
/* Other differences: [{"field", "a", "b"}]. New reference. */
json_t *el_sides_differences(const struct el_side *a, const struct el_side *b);

/* Splits both sides, so call it once. New reference. */
json_t *el_difference_document(struct el_side *a, struct el_side *b);
void el_difference_print(const json_t *document, FILE *out);
