/* A loader's workers: threads that make batches ahead of their step.
 *
 * Private to runtime/data. Worker w makes the batches whose number leaves w when divided by the number of workers, each
 * into a slot that is its own (batch modulo slots); whoever trains takes them in the order of their numbers. So what is
 * in a batch, and which comes next, depends on no clock. A slot's word says whose turn it is.
 *
 * Threads: one takes. Ownership: the batchers are the caller's, one per worker, and outlive the team.
 */
#pragma once

#include "runtime/data/batcher.h"

struct el_team;

enum el_status el_team_open(const struct el_loading *loading, struct el_batcher *const *batchers,
                            struct el_team **team_p);
void el_team_close(struct el_team *team); /* NULL is legal; ends the workers */

/* Copies the batch of `step` out; blocks until it is made. What it cost is added to `times`. Errors: what the worker
 * failed with; EL_ERR_IO within a second where it ended without a word. */
enum el_status el_team_take(struct el_team *team, uint64_t step, void *inputs, int32_t *labels,
                            struct el_load_times *times, struct el_load_span *span);
size_t el_team_bytes(const struct el_team *team); /* of all slots */
