/* Ranks beside one another as a person reads them: one table and one sentence for a record's devices (imbalance) and
 * for the traces of a job (trace-stats). What is blamed is profiles/ranks.h's. Units: milliseconds and bytes in JSON.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "profiles/ranks.h"

enum { EL_RANKS_SENTENCE_BYTES = 512 };

/* [{"rank", "compute_ms", "last_pct", "late_ms", "late_low_ms", "caused_ms", "wait_ms", "wait_exposed_ms",
 * "transfer_ms", "exposed_ms", "sent_bytes"}], null for what is not known. New reference. */
json_t *el_ranks_json(const struct el_rank_row *rows, int n);
/* {"kind", "rank" (null: no one), "stays", "late_ranks", "late_ms", "caused_pct", "wait_ms", "transfer_ms", "step_ms",
 * "sentence"}. New reference. */
json_t *el_ranks_blame_json(const struct el_rank_row *rows, int n, const struct el_ranks_blame *blame);
/* A rank's compute time over the mean of the others'; NAN where one is not known. */
double el_ranks_compute_ratio(const struct el_rank_row *rows, int n, int who);

/* The heads, and a line for each of el_ranks_json; 100 columns. */
void el_ranks_heads(FILE *out);
void el_ranks_table(const json_t *ranks, FILE *out);
/* What the columns mean, below the table. */
void el_ranks_explain(FILE *out);
