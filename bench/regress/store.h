/* The stored baseline: a folder of records, one a run that was added.
 *
 *     STORE/<fingerprint>-<time it was added>-<run>.json
 *     {"schema", "environment", "machine": {"fingerprint", "fields"}, "trials": [a session and its workload's fields]}
 *
 * A record is written whole or not at all, and never changed: writers at once lose nothing. A name's order is that of
 * time. A session (session.h) with "accepted": true begins an era: what came before is kept and no longer counts for
 * the level (level.h).
 */
#ifndef EL_BENCH_REGRESS_STORE_H
#define EL_BENCH_REGRESS_STORE_H

#include <jansson.h>
#include <stdio.h>

#include "bench/options/config.h"
#include "bench/regress/fingerprint.h"
#include "bench/regress/level.h"

#define EL_BASELINE_STORE "results/baseline"

/* Keeps the run's trials as sessions, or (`accept`) as the level from now on. All trials are checked before
 * anything is written. Errors: EL_ERR_INVALID: a trial that did not finish, an injected disturbance (unless `force`), a
 * run that is in the store already; EL_ERR_IO. */
enum el_status el_baseline_add(const char *store_dir, const char *run_dir, bool accept, bool force);

/* What `baseline --json` prints: docs/baseline.md has the fields. New reference. Errors: EL_ERR_ABSENT: there is
 * nothing; EL_ERR_IO, EL_ERR_INVALID. */
enum el_status el_baseline_describe(const char *store_dir, json_t **document_p);
/* A table a machine, and what to do next. */
void el_baseline_print(const json_t *document, FILE *out);
/* "Next: evenload baseline accept RUN --store STORE", or add. */
void el_baseline_print_next(const char *store, const char *run, bool accept, FILE *out);

/* ---- what is in a store (sessions.c) ---- */

/* [{"fingerprint", "fields", "workloads": [[session, ...], ...]}], sessions oldest first; empty where there is no such
 * folder. New reference. Errors: EL_ERR_IO, EL_ERR_INVALID: a record that cannot be read, an older form. */
enum el_status el_store_read(const char *store_dir, json_t **machines_p);
/* Those of a workload on a machine; NULL: none. */
const json_t *el_store_sessions(const json_t *machines, const char *key, const json_t *workload);
/* Whether the run is among them, or where `accepted` is asked for, is the last accepted one. */
bool el_sessions_have(const json_t *sessions, const char *run, bool accepted);
/* Whether the run is the accepted level, and no other session has come since. */
bool el_sessions_is_level(const json_t *sessions, const char *run);
/* The level of one figure over the sessions, without those of `except` (a run; NULL: all). A session begins an era also
 * where it is `except` or the figure is missing from it; with none after it of that era nothing counts. */
enum el_status el_sessions_level(const json_t *sessions, const char *figure, const char *unit, const char *except,
                                 struct el_level *level_p);

#endif
