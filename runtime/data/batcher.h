/* Makes any step's batch of one member's rows, for a loader or for each of its workers. Private to runtime/data.
 * Threads: one at a time; several batchers of a set may run at once. */
#pragma once

#include "runtime/data/data.h"

struct el_batcher;

enum el_status el_batcher_open(const struct el_dataset *dataset, const struct el_loader_spec *spec,
                               struct el_batcher **batcher_p);
void el_batcher_close(struct el_batcher *batcher); /* NULL is legal */

int64_t el_batcher_steps(const struct el_batcher *batcher);  /* per epoch */
int64_t el_batcher_labels(const struct el_batcher *batcher); /* per batch */
size_t el_batcher_input_bytes(const struct el_batcher *batcher);
/* As el_loader_length; 0: no sentences as ids. Enters the step's epoch. */
int64_t el_batcher_length(struct el_batcher *batcher, uint64_t step);
/* As el_loader_fill; adds its times to `times`. */
enum el_status el_batcher_fill(struct el_batcher *batcher, uint64_t step, void *inputs, int32_t *labels,
                               struct el_load_times *times);
void el_load_times_add(const struct el_load_times *more, struct el_load_times *times);
