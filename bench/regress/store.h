/* The stored baseline: a folder of records, one a run that was added; and a run beside it.
 *
 *     STORE/<fingerprint>-<time it was added>-<run>.json
 *     {"schema", "environment", "machine": {"fingerprint", "fields"}, "trials": [a session and its workload's fields]}
 *
 *     el_baseline_add(store_dir, run_dir, false, false);
 *     el_regress_dirs(store_dir, run_dir, "", stderr, &set);    cells, for el_regress_judge
 *
 * A record is written whole or not at all, and never changed: writers at once lose nothing. A name's order is that of
 * time. A session (session.h) with "accepted": true begins an era: what came before is kept and no longer counts for
 * the level (struct el_level).
 *
 * A run's folder has the results.json of `run` and `compare`, or the program.json of a program that was launched. Both
 * are read as a run's document of trials.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "bench/options/config.h"
#include "bench/regress/regress.h"

#define EL_BASELINE_STORE "results/baseline"

/* Whether there is a run's record in the folder. */
bool el_regress_is_run(const char *dir);
/* Errors: EL_ERR_IO, EL_ERR_INVALID. */
enum el_status el_run_load(const char *dir, json_t **run_p);

/* Keeps the run's trials as sessions, or (`accept`) as the level from now on. All trials are checked before
 * anything is written. Errors: EL_ERR_INVALID: a trial that did not finish, an injected disturbance (unless `force`), a
 * run that is in the store already; EL_ERR_IO. */
enum el_status el_baseline_add(const char *store_dir, const char *run_dir, bool accept, bool force);

/* What `baseline --json` prints: docs/regress.md has the fields. New reference. Errors: EL_ERR_ABSENT: there is
 * nothing; EL_ERR_IO, EL_ERR_INVALID. */
enum el_status el_baseline_describe(const char *store_dir, json_t **document_p);
/* A table a machine, and what to do next. */
void el_baseline_print(const json_t *document, FILE *out);
/* "Next: evenload baseline accept RUN --store STORE", or add. */
void el_baseline_print_next(const char *store, const char *run, bool accept, FILE *out);

/* A run against a store of this machine's sessions, as cells: each trial by itself, each figure by itself. Trials
 * belong together where their workloads are the same, whatever built them. A timed figure is a HISTORY cell of
 * el_level_of's values, and what has no noise is compared with the last session; a run that is in the store is compared
 * with the others, but where it alone makes the accepted level, with itself: a note says which. A trial that did not
 * finish is an UNREADABLE cell, a workload that is not in the store a NO_BASELINE cell; one that only the store has is
 * not asked for.
 *
 * `metrics`: names by comma, "device_peak_bytes" of all devices, "device_peak_bytes[1]" of one; "": what has no noise
 * and the median step, of a program of one's own all. `notes` takes lines "note: ..."; NULL: none. Errors:
 * EL_ERR_IO, EL_ERR_INVALID: a document that cannot be read, a metric that is none, nothing to compare. */
enum el_status el_regress_dirs(const char *store_dir, const char *run_dir, const char *metrics, FILE *notes,
                               struct el_regress_set *set);

/* ---- the level that past sessions of one figure make, and how far they scatter; pure functions of arrays
 * ----
 *
 * Sessions stand in order of time; an accepted one begins an era. Where EL_LEVEL_SESSIONS_MIN or more came since the
 * last one, only they count. With fewer, the level is theirs, and the scatter that of earlier eras too, each about its
 * own level; an earlier era of one session has none and is skipped. E levels are then estimated from K sessions:
 * the scatter has K - E degrees of freedom (`df`), fewer than EL_LEVEL_DF_MIN decide nothing, and a rule has to use
 * as many. One session gives a level less precisely than many: the values are then given that much further apart, so
 * that a rule that takes them for sessions of one level, but for `df`, errs no more often than it should (fingerprint.c
 * has the factor).
 *
 * Of eight or more sessions of an era, what lies more than three interquartile ranges outside the quartiles, and more
 * than 2 %, is an outlier ("far"): it is kept in the store and reported, but it does not count.
 */
enum { EL_LEVEL_SESSIONS_MIN = 8, EL_LEVEL_SESSIONS_MAX = 30, EL_LEVEL_DF_MIN = EL_LEVEL_SESSIONS_MIN - 1 };

/* What lies nearer than this is never far. */
#define EL_LEVEL_FLOOR_RATIO 1.02

struct el_level {
    double values[EL_LEVEL_SESSIONS_MAX]; /* what a rule compares with, oldest first */
    size_t n;                             /* that count */
    size_t df;                            /* degrees of freedom of their scatter; nothing is judged below the least */
    size_t n_eras;                        /* that were used */
    size_t n_era;                         /* of the n, since the last accepted one */
    size_t n_far;                         /* since the last accepted one, left out as far */
    bool last_far;                        /* the newest is one of those */
    double centre;                        /* geometric mean; NAN for none */
    double sd_ratio;                      /* standard deviation of the logarithms, as seen; NAN for df 0 */
    size_t needs;                         /* more sessions of this level until anything can be judged */
};

/* [n] positive values, oldest first; accepted[i]: this one begins an era. */
void el_level_of(const double *values, const bool *accepted, size_t n, struct el_level *level_p);
/* Marks what is far among n values of one era. */
void el_level_far(const double *values, size_t n, bool *far);

/* ---- what is in a store ---- */

/* [{"fingerprint", "fields", "workloads": [[session, ...], ...]}], sessions oldest first, each with its "machine"
 * ({"fingerprint", "fields"}); empty where there is no such folder. New reference. Errors: EL_ERR_IO, EL_ERR_INVALID: a
 * record that cannot be read. */
enum el_status el_store_read(const char *store_dir, json_t **machines_p);
/* Those of a workload on a machine (as el_fingerprint_of has it); NULL: none. */
const json_t *el_store_sessions(const json_t *machines, const json_t *machine, const json_t *workload);

/* How a run stands among sessions: whether it is one of them, whether it is the last accepted one, and whether no
 * other has come since. */
struct el_standing {
    bool there, accepted, is_level;
};
struct el_standing el_sessions_standing(const json_t *sessions, const char *run);
/* The level of one figure over the sessions, without those of `except` (a run; NULL: all). A session begins an era also
 * where it is `except` or the figure is missing from it; with none after it of that era nothing counts. */
enum el_status el_sessions_level(const json_t *sessions, const char *figure, const char *unit, const char *except,
                                 struct el_level *level_p);

/* ---- machines (fingerprint.c): figures of two runs are compared only where machine and build are the same ---- */

/* {"fingerprint": "3f0c5a1f9e21d0aa", "fields": {field: text}} of the run's document alone; nothing is read from this
 * machine. The fingerprint is FNV-1a, 64 bits, over canonical "field=value\n" lines in the order of the rows in
 * fingerprint.c. "none": this machine has none, or does not say; "unknown": the record is older than the field. Both
 * differ from a value and from each other. Host's name and load are not in it. New reference. */
json_t *el_fingerprint_of(const json_t *run);
/* How many fields differ; the first few as "cpu_microcode 0x1, then 0x2; ... and 3 more" in `text`. */
int el_fingerprint_differences(const json_t *base, const json_t *head, char *text, size_t bytes);
/* Whether they differ at most in what is installed or set: drivers, libraries, compiler, kernel, governor. */
bool el_fingerprint_same_hardware(const json_t *a, const json_t *b);
/* {field: [before, now]} of the fields that differ. New reference. */
json_t *el_fingerprint_changes(const json_t *base, const json_t *head);
/* Appends the first few of those, as above. Returns how many there are. */
size_t el_fingerprint_changes_text(const json_t *changes, char *text, size_t bytes);
/* "Intel(R) Xeon(R) Processor, 2 cores, Linux 6.18, gcc 12.2.0": what a person knows a machine by. */
void el_fingerprint_words(const json_t *fields, char *text, size_t bytes);
