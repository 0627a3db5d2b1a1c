/* Tables and sentences on ranks: for a record's devices (imbalance) and a job's traces (trace-stats). Attribution is
 * profiles/ranks.h's. Units: milliseconds and bytes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "profiles/ranks.h"

enum { EL_RANKS_SENTENCE_BYTES = 512 };

/* [{"rank", "compute_ms", "last_pct", "late_ms", "late_low_ms", "caused_ms", "wait_ms", "wait_exposed_ms",
 * "transfer_ms", "exposed_ms", "sent_bytes"}]; null: unknown. New reference. */
json_t *el_ranks_json(const struct el_rank_row *rows, int n);
/* {"kind", "rank" (null: none), "stays", "late_ranks", "step" (null, but of once), "late_ms", "caused_pct", "wait_ms",
 * "transfer_ms", "step_ms", "sentence"}. New reference. */
json_t *el_ranks_blame_json(const struct el_rank_row *rows, int n, const struct el_ranks_blame *blame);
/* Compute time of rank `who` over the others' mean; NAN if one is unknown. */
double el_ranks_compute_ratio(const struct el_rank_row *rows, int n, int who);

/* The heads, and a line for each of el_ranks_json; 100 columns. */
void el_ranks_heads(FILE *out);
void el_ranks_table(const json_t *ranks, FILE *out);
/* Explains the columns. */
void el_ranks_explain(FILE *out);
