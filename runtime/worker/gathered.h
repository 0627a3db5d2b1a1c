/* Whole parameters where a device stores ranges of them: hooks of a pass that gather a unit (runtime/state/units.h)
 * before its first node, and free it after its last one; in backward again. The next units are on their way while one
 * is computed with.
 *
 *     el_gathered_open(shard, comm, 1, true, &gathered);
 *     spec.params = el_gathered_params(gathered);      of a pass; its hooks are el_gathered_before and _after
 *     el_gathered_close(gathered);
 *
 * A unit that is the last in forward and the first in backward stays in between; where nobody goes back, until the
 * program's end.
 *
 * Memory: a unit's elements, in the pass's program (tag replica; what it is filled up with: padding). Bytes: an
 * all-gather a unit, each time. Ownership: shard and comm must outlive it. Threads: the worker's. Errors:
 * EL_ERR_HOST_MEMORY; others are the program's.
 */
#pragma once

#include "runtime/state/shard.h"

struct el_gathered;

/* `comm`: among those that have the other ranges; NULL: there are none. `ahead`: units that are on their way beside the
 * one that is in use. `frees` false: what was gathered in forward stays until the last of `n_passes`, a step's, has
 * gone back through it. */
enum el_status el_gathered_open(const struct el_shard *shard, struct el_comm *comm, int ahead, bool frees, int n_passes,
                                struct el_gathered **gathered_p);
void el_gathered_close(struct el_gathered *gathered); /* NULL is legal */
/* [n_params]: views of what is there. */
const struct el_view *el_gathered_params(const struct el_gathered *gathered);
/* Of a pass; `gathered` is the context. */
void el_gathered_before(void *gathered, struct el_program *program, const struct el_node *node, enum el_phase phase);
void el_gathered_after(void *gathered, struct el_program *program, const struct el_node *node, enum el_phase phase);
