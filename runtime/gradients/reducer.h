/* A reducer: sums gradients in buckets over the members of a communicator while backward runs. Or over those of
 * several processes that have several members each: `comm` is among a process's members, `across` among those of the
 * same place in all processes. Then either all take part (reduce-scatter, an all-reduce of each part across,
 * all-gather: each member moves as many bytes as in one ring of all), or the first of each process for the others
 * (reduce, all-reduce across), and the others get no sums.
 *
 *     el_reducer_open(&spec, &reducer);
 *     el_reducer_group(reducer, limits, 2);                 when no program exists: which gradients share a bucket
 *     el_reducer_place(reducer, param)                      where a gradient is to be written, with views
 *     el_reducer_begin(reducer, program, grads);            a step is issued ...
 *     ... el_reducer_ready(reducer, param);                 each gradient's last contribution is issued (a pass's hook)
 *     el_reducer_finish(reducer);                           ... grads[] hold the sums
 *     el_reducer_close(reducer);
 *
 * A gradient that is ready is copied into its bucket; a bucket that is full is summed by one all-reduce on the
 * communicator's stream. Buckets are launched in their order, however they fill, so that all members launch the same;
 * at the end sums are copied back to the gradients: all of them, or, where it ends so, those that are the member's own.
 * It remembers in which order gradients became ready: the next grouping goes by it, the first one by the order of the
 * parameters.
 *
 * With views grads[] are places in the buckets: nothing is copied. Each grouping gives other places. Frozen parameters
 * have none.
 *
 * Shapes: grads[n_params] of the shard's graph, each of its parameter's elements. Units: bytes.
 * Timing: begin, ready and finish put ops into the program: on the compute stream, and on the communicator's.
 * Memory: a bucket a group, from group to the next group or close (tag bucket), of the communicator's own
 * (el_comm_alloc; rounded up to whole elements a member of `comm`, where parts go across); nothing is allocated in a
 * step; with spec.unused a map beside them. Ownership: shard, communicator and grads are the caller's. Threads: the
 * worker's. Errors: building errors are the program's; EL_ERR_OOM, EL_ERR_HOST_MEMORY.
 */
#pragma once

#include <stddef.h>

#include "runtime/comm/comm.h"
#include "runtime/state/shard.h"

struct el_reducer;

/* What is done about parameters that get no gradient. Both others put zeros into their places at a step's first
 * gradient, and leave those parameters without one. */
enum el_reducer_unused {
    EL_UNUSED_FAIL,  /* a bucket that waits for one is never summed; the next grouping fails */
    EL_UNUSED_FIND,  /* in every step members sum a map of what they used (el_used_map). Buckets are never regrouped:
                      * they go by the order of parameters, the last bucket first */
    EL_UNUSED_STATIC /* the first step's map holds for all steps; in later groupings they come last */
};

/* Who has which sums in the end. */
enum el_reducer_end {
    EL_REDUCER_ALL,  /* every member all of them */
    EL_REDUCER_OWN,  /* every member a range of its own of each bucket (el_reducer_own) */
    EL_REDUCER_FIRST /* the first of `comm` all of them, the others none */
};

struct el_reducer_spec {
    const struct el_shard *shard; /* whose gradients */
    struct el_comm *comm;         /* among those that sum */
    struct el_comm *across;       /* NULL: they are all of `comm` */
    enum el_reducer_end end;
    bool average; /* means of the members' gradients, not sums; with `across` over its members alone */
    bool views;   /* gradients are born in the buckets */
    enum el_reducer_unused unused;
    bool finds;   /* EL_UNUSED_FIND can be asked for: failures say so */
    bool overlap; /* launch full buckets during backward; false: all at the end */
};

enum el_status el_reducer_open(const struct el_reducer_spec *spec, struct el_reducer **reducer_p);
/* NULL is legal. */
void el_reducer_close(struct el_reducer *reducer);

/* A bucket is closed when it has reached its limit: the first one limits[0], the second limits[1], all later ones the
 * last limit. {0}: a bucket a parameter; {SIZE_MAX}: one for all. Collective in that all members group alike. Errors:
 * EL_ERR_INVALID naming the parameters for which the step before waited in vain. */
enum el_status el_reducer_group(struct el_reducer *reducer, const size_t *limits, int n_limits);
/* As DistributedDataParallel does in a round of steps: all in one bucket at first, later by the configuration's limits.
 */
enum el_status el_reducer_group_round(struct el_reducer *reducer, int round);
/* A parameter's place in its bucket, until the next grouping. Its contents are undefined after a grouping. */
struct el_view el_reducer_place(const struct el_reducer *reducer, int param);

void el_reducer_begin(struct el_reducer *reducer, struct el_program *program, const struct el_view *grads);
/* The elements of a gradient that are this member's own in the end, [*first_p, *first_p + *count_p): all, some or none.
 */
void el_reducer_own(const struct el_reducer *reducer, int param, int64_t *first_p, int64_t *count_p);
/* `reducer` as el_pass_spec's hook has it, once a parameter and step: a second time is EL_ERR_INVALID. The gradient's
 * view is read from what begin was given: a pass may have filled it in since. With views it is the parameter's place.
 */
void el_reducer_ready(void *reducer, int param);
void el_reducer_finish(struct el_reducer *reducer);
/* After a step: whether what was taken to be unused is so for all members. Blocking. */
enum el_status el_reducer_check(const struct el_reducer *reducer);

/* How tensors are put together for communication. Two algorithms of PyTorch's, which differ (docs/semantics.md):
 *
 *     el_buckets_assign   the reducer's (ddp): a bucket is closed after the tensor that makes it reach its limit, so
 *                         that it may exceed it
 *     el_chunks_take      take_tensors (dp's broadcast and reduce): a chunk is closed before the tensor that would
 *                         overflow it
 *
 * Source: torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size; torch/_utils.py, _take_tensors.
 * Known answer: ResNet-18 at a cap of 25 MiB (pytorch#48880), in tests/unit/test_buckets.c. Pure functions.
 */

/* group[i] is the bucket of order[i]; both have n entries. `bytes` is indexed by tensor. The limits are used in turn,
 * the last one for all further buckets. Returns the number of buckets. */
int el_buckets_assign(const size_t *bytes, const int *order, int n, const size_t *limits, int n_limits, int *group);

/* group[i] is the chunk of tensor i. Returns the number of chunks. */
int el_chunks_take(const size_t *bytes, int n, size_t limit, int *group);

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

struct el_used_map;
