/* What a lost rank costs: of jobs that ran undisturbed, with checkpoints, and with a rank that was killed or stopped.
 *
 *     el_recovery_events("ck/events.csv", &events);         what happened, and when
 *     falls = el_recovery_falls(events);                    what each loss cost, stage by stage
 *     el_recover_print(document, stdout);
 *
 * Times of a fall, in seconds: `detect_s` from the fall until the launcher saw the job's end; `restart_s` until the
 * job's first process began; `load_s` until the first step; `catch_up_s` until as many steps were done as before.
 *
 * Ownership: new references. Threads: any. Errors: EL_ERR_IO, EL_ERR_INVALID.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/plot/data_file.h"

/* [{"event", "step", "s"}], s from the first one on. */
enum el_status el_recovery_events(const char *path, json_t **events_p);
/* [{"kind", "step", "resumed", "lost_steps", "detect_s", "restart_s", "load_s", "catch_up_s"}]; null: it did not come
 * to that. */
json_t *el_recovery_falls(const json_t *events);
/* What each checkpoint of a job cost, in percent of the time from it to the next one, `every` steps later: steps of the
 * half that begins with it, against those of the other half. Appends reals to `costs`. */
void el_recovery_costs(const json_t *events, int64_t every, json_t *costs);
/* Steps that were done at the end, at this time each if nothing had happened, over the time that it took from the first
 * step on; NAN: it did not end. */
double el_recovery_goodput(const json_t *events, double step_s);

/* A recover.json. */
enum el_status el_recover_read(const char *path, json_t **document_p);
void el_recover_print(const json_t *document, FILE *out);
/* "After the restart losses and weights equal those of the undisturbed job, bit for bit" */
void el_recover_say_same(const json_t *document, char text[EL_TITLE_BYTES]);
extern const struct el_figure el_figure_recover; /* steps done against time, with each fall */
