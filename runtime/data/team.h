/* A loader's workers: threads that make batches ahead, shared within runtime/data. Of n workers, w makes batches w, w +
 * n, ... into its own slots, and training takes them in order: neither depends on a clock.
 * Threads: one takes. Ownership: the caller's batchers, one per worker, outlive the team. */
#pragma once

#include "runtime/data/batcher.h"

struct el_team;

enum el_status el_team_open(const struct el_loading *loading, struct el_batcher *const *batchers,
                            struct el_team **team_p);
void el_team_close(struct el_team *team); /* stops the workers; NULL is legal */

/* Copies the batch of `step`; blocks until it is made; adds its times to `times`. Errors: the worker's; EL_ERR_IO
 * within a second if it exited silently. */
enum el_status el_team_take(struct el_team *team, uint64_t step, void *inputs, int32_t *labels,
                            struct el_load_times *times, struct el_load_span *span);
size_t el_team_bytes(const struct el_team *team);
