/* The cost of a lost rank: jobs undisturbed, with checkpoints, and with a killed or stopped rank.
 *
 *     el_recovery_events("ck/events.csv", &events);
 *     falls = el_recovery_falls(events);                    the cost of each loss by stage
 *     el_recover_print(document, stdout);
 *
 * Times of a fall, in seconds: `detect_s` until the launcher saw the job's end; `restart_s` until the job's first
 * process began; `load_s` until the first step; `catch_up_s` until the lost steps were repeated.
 *
 * Ownership: new references. Threads: any. Errors: EL_ERR_IO, EL_ERR_INVALID. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/plot/data_file.h"

/* [{"event", "step", "s"}], s since the first one. */
enum el_status el_recovery_events(const char *path, json_t **events_p);
/* [{"kind", "step", "resumed", "lost_steps", "detect_s", "restart_s", "load_s", "catch_up_s"}]; null: not reached. */
json_t *el_recovery_falls(const json_t *events);
/* Cost of each checkpoint in per cent of the `every` steps until the next one: the half that begins with it against the
 * other half. Appends reals to `costs`. */
void el_recovery_costs(const json_t *events, int64_t every, json_t *costs);
/* Final steps times `step_s`, over the time since the first step; NAN: unfinished. */
double el_recovery_goodput(const json_t *events, double step_s);

bool el_recover_is(const json_t *document); /* a recover.json */
void el_recover_print(const json_t *document, FILE *out);
/* "After the restart losses and weights equal those of the undisturbed job, bit for bit" */
void el_recover_say_same(const json_t *document, char text[EL_TITLE_BYTES]);
extern const struct el_figure el_figure_recover; /* steps against time, with each fall */
