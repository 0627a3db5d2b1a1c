/* The stored baseline: past sessions of each workload, kept by the machine's fingerprint.
 *
 *     STORE/<fingerprint>/machine.json                     the fields, so that a person sees what it is of
 *     STORE/<fingerprint>/ddp-2-textcnn-b128-<hash>.jsonl  one workload: a header line, then a session a line
 * (session.h)
 *
 * Lines are only ever appended, whole and under a lock: writers at once lose nothing, and a line that was cut off is
 * noted and skipped. A session with "accepted": true begins an era: what came before is kept and no longer counts
 * for the level (level.h). `notes` takes lines "note: ..."; NULL: none.
 */
#ifndef EL_BENCH_REGRESS_STORE_H
#define EL_BENCH_REGRESS_STORE_H

#include <jansson.h>
#include <stdio.h>

#include "bench/options/config.h"
#include "bench/regress/fingerprint.h"
#include "bench/regress/level.h"

#define EL_BASELINE_STORE "results/baseline"

/* Appends the run's trials as sessions, or (`accept`) as the level from now on. All trials are checked before
 * anything is written. Errors: EL_ERR_INVALID: a trial that did not finish, an injected disturbance (unless `force`), a
 * run that is in the store already; EL_ERR_IO. */
enum el_status el_baseline_add(const char *store_dir, const char *run_dir, bool accept, bool force, FILE *notes);

/* What `baseline --json` prints: docs/baseline.md has the fields. New reference. Errors: EL_ERR_ABSENT: there is
 * nothing; EL_ERR_IO, EL_ERR_INVALID. */
enum el_status el_baseline_describe(const char *store_dir, FILE *notes, json_t **document_p);
/* A table a machine, and what to do next. */
void el_baseline_print(const json_t *document, FILE *out);

/* A machine's folder in a store. Errors: EL_ERR_INVALID: the name is too long. */
enum el_status el_store_machine(const char *store_dir, const struct el_fingerprint *print, char folder[EL_PATH_BYTES]);

/* ---- one file of a store (sessions_file.c) ---- */

/* Whether a file of that name in a machine's folder is one of sessions; a copy of one ("x.jsonl.bak") is not. */
bool el_sessions_is_file(const char *name);
/* The file of a workload in a machine's folder: the one that is there, or the name it would have. */
enum el_status el_sessions_path(const char *folder, const json_t *workload, char *path, size_t bytes, bool *exists_p);
/* Its header and sessions, oldest first. Errors: EL_ERR_IO, EL_ERR_INVALID: no such file of ours. */
enum el_status el_sessions_read(const char *path, FILE *notes, json_t **workload_p, json_t **sessions_p,
                                size_t *skipped_p);
/* Whether the run is in it: as a session, or where `accepted` is asked for, as the last accepted one. */
bool el_sessions_have(const json_t *sessions, const char *run, bool accepted);
/* Whether the run is the accepted level, and no other session has come since. */
bool el_sessions_is_level(const json_t *sessions, const char *run);
/* Appends, making the file where it is not there; whole, durable, and under a lock. A session that is in it already (by
 * another writer just now) is left. */
enum el_status el_sessions_append(const char *path, const json_t *workload, const json_t *session);
/* The level of one figure over the sessions, without those of `except` (a run; NULL: all). A session begins an era also
 * where it is `except` or the figure is missing from it; with none after it of that era nothing counts. */
enum el_status el_sessions_level(const json_t *sessions, const char *figure, const char *unit, const char *except,
                                 struct el_level *level_p);

#endif
