/* The map by which members tell each other which parameters they used in a step: DDP's, with find_unused_parameters. An
 * integer a parameter that is not frozen, 1 where a gradient came; summed over the members, 0 where nobody has one.
 *
 *     el_used_map_open(shard, comm, NULL, &map);
 *     el_used_map_issue(map, program, &op);     in a step, when all buckets are on their way
 *     el_used_map_check(map);                   between steps
 *     el_used_map_close(map);
 *
 * A step is captured, so what it does about a parameter is known before it runs: what a member does not use nobody
 * does. check holds the map to that.
 *
 * Memory: 4 bytes a parameter, of the communicator's own (tag bucket). Ownership: shard and communicator are the
 * caller's. Threads: the worker's. Errors: EL_ERR_OOM, EL_ERR_HOST_MEMORY; of issue the program's.
 */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/state/shard.h"

struct el_used_map;

/* Over the members of `comm`, and where `across` is not NULL over those of that too. */
enum el_status el_used_map_open(const struct el_shard *shard, struct el_comm *comm, struct el_comm *across,
                                struct el_used_map **map_p);
/* NULL is legal. */
void el_used_map_close(struct el_used_map *map);
/* Brings the member's own map to the device and sums it; *op_p is the operation to wait for. Collective. */
void el_used_map_issue(struct el_used_map *map, struct el_program *program, int *op_p);
/* After a step that summed it. Blocking. Errors: EL_ERR_INTERNAL where another member used what this one did not. */
enum el_status el_used_map_check(const struct el_used_map *map);

/* The parameters that should have gradients and get none, for a message: "'side.weight' and 1 more"; "": there are
 * none. */
void el_used_map_missing(const struct el_graph *graph, char *text, size_t bytes);
