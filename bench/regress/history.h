/* Since when? Each workload's sessions in order of time, the change points of each figure, and what else changed with
 * them (changes.h has the method).
 *
 *     history = el_history_of(machines, machine, sessions);
 *     el_json_put(figure, "history", el_history_figure(history, name, figure));
 *     el_history_print(workload, figure, stdout);
 *
 * A new compiler, driver or kernel makes another machine of the store. A history goes on over these: it has the
 * sessions of all machines of the same hardware, unless they alternate, as two hosts of one kind do; and it stands at
 * the machine that has the newest one. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "bench/plot/data_file.h"

/* Of a workload's sessions on `machine`, one of el_store_read's `machines`: sessions by the time when they were
 * measured, each run once. NULL: it goes on at another machine. New reference. */
json_t *el_history_of(const json_t *machines, const json_t *machine, const json_t *sessions);
/* [{"time_utc", "commit", "accepted", "fingerprint"}]: what "session" 1, 2... in a figure's history are. New reference.
 */
json_t *el_history_sessions(const json_t *history);
/* {"values", "sd_pct", "penalty", "partition", "pieces", "changes", "creep"}: docs/regress.md. `figure`: the last
 * session's. New reference; NULL: no memory. */
json_t *el_history_figure(const json_t *history, const char *name, const json_t *figure);
/* A line a change and a creep; nothing if there is none. */
void el_history_print(const json_t *workload, const json_t *figure, FILE *out);

/* Of el_baseline_describe's document: each row's sessions over time. */
extern const struct el_figure el_figure_baseline;
