/* A reducer: sums gradients in buckets over a communicator's members during backward. Or over several processes with
 * several members each: `comm` within a process, `across` among the same places in all processes. Then either all take
 * part (reduce-scatter, an all-reduce of each part across, all-gather), or each process's first member reduces for the
 * others (reduce, all-reduce across), which get no sums.
 *
 *     el_reducer_open(&spec, &reducer);
 *     el_reducer_group(reducer, limits, 2);                 while no program exists: assigns gradients to buckets
 *     el_reducer_place(reducer, param)                      where to write a gradient, with views
 *     el_reducer_begin(reducer, program, grads);            a step is issued ...
 *     ... el_reducer_ready(reducer, param);                 each gradient's last contribution is issued (a pass's hook)
 *     el_reducer_finish(reducer);                           ... grads[] hold the sums
 *     el_reducer_close(reducer);
 *
 * A ready gradient is copied into its bucket, a full bucket is summed by one all-reduce on the communicator's stream,
 * in the order of buckets, and sums (all, or the member's own) are copied back. The order in which gradients became
 * ready determines the next grouping; the first uses the parameters' order. With views grads[] are places in the
 * buckets, which each grouping changes. Frozen parameters have no place.
 * Shapes: grads[n_params] of the shard's graph. Memory: a bucket per group until the next grouping or close (tag
 * bucket), from el_comm_alloc, padded to whole elements per member if parts go across; with spec.unused a map.
 * Ownership: shard, communicator and grads are the caller's. Threads: the worker's. Errors: issuing errors are the
 * program's; EL_ERR_OOM, EL_ERR_HOST_MEMORY. */
#pragma once

#include <stddef.h>

#include "runtime/comm/comm.h"
#include "runtime/state/shard.h"

struct el_reducer;

/* Parameters without gradient. Find and static put zeros into their places at the step's first gradient, and leave them
 * without one. */
enum el_reducer_unused {
    EL_UNUSED_FAIL, /* their bucket is never summed, and the next grouping fails */
    EL_UNUSED_FIND, /* members sum a map of used parameters in every step (el_used_map). Buckets are never regrouped: in
                       the order of parameters, last bucket first */
    EL_UNUSED_STATIC /* the first step's map holds for all steps; in later groupings they are last */
};

/* Who has which sums at the end. */
enum el_reducer_end {
    EL_REDUCER_ALL,  /* every member all */
    EL_REDUCER_OWN,  /* every member its own range of each bucket (el_reducer_own) */
    EL_REDUCER_FIRST /* the first of `comm` all, others none */
};

/* Which parameters it sums; others have no place. */
enum el_reducer_of { EL_REDUCER_OF_ALL, EL_REDUCER_OF_WHOLE, EL_REDUCER_OF_SLICES };

struct el_reducer_spec {
    const struct el_shard *shard;
    struct el_comm *comm;
    struct el_comm *across; /* NULL: `comm` has all members */
    enum el_reducer_end end;
    enum el_reducer_of of;
    bool average; /* means instead of sums; with `across` over its members only */
    bool views;   /* gradients are written in the buckets */
    enum el_reducer_unused unused;
    bool finds;   /* failures may recommend EL_UNUSED_FIND */
    bool overlap; /* launch full buckets during backward; false: all at the end */
};

enum el_status el_reducer_open(const struct el_reducer_spec *spec, struct el_reducer **reducer_p);
void el_reducer_close(struct el_reducer *reducer); /* NULL is legal */

/* A bucket is closed when it reaches its limit: limits[0], limits[1], ..., the last one for all later buckets. {0}: a
 * bucket per parameter; {SIZE_MAX}: one bucket. All members must group alike. Errors: EL_ERR_INVALID naming parameters
 * that got no gradient in the step before. */
enum el_status el_reducer_group(struct el_reducer *reducer, const size_t *limits, int n_limits);
/* DistributedDataParallel's grouping by round: first one bucket, later the configuration's limits. */
enum el_status el_reducer_group_round(struct el_reducer *reducer, int round);
/* A parameter's place in its bucket until the next grouping; undefined contents after a grouping. */
struct el_view el_reducer_place(const struct el_reducer *reducer, int param);

/* Whether it sums a parameter, unless that is frozen. */
bool el_reducer_takes(const struct el_reducer *reducer, int param);

void el_reducer_begin(struct el_reducer *reducer, struct el_program *program, const struct el_view *grads);
/* This member's own elements of a gradient at the end: [*first_p, *first_p + *count_p), maybe none. */
void el_reducer_own(const struct el_reducer *reducer, int param, int64_t *first_p, int64_t *count_p);
/* For el_pass_spec's hook, with `reducer` as context, once per parameter and step; again: EL_ERR_INVALID. Reads the
 * gradient's view from begin's grads, which a pass may have set since. With views it is the parameter's place. */
void el_reducer_ready(void *reducer, int param);
void el_reducer_finish(struct el_reducer *reducer);
/* After a step: whether parameters taken as unused are unused by all members. Blocking. */
enum el_status el_reducer_check(const struct el_reducer *reducer);

/* Grouping tensors for communication, by two algorithms of PyTorch (docs/semantics.md):
 *
 *     el_buckets_assign   the reducer's (ddp): a bucket is closed after the tensor that reaches its limit
 *     el_chunks_take      take_tensors (dp's broadcast and reduce): a chunk is closed before the one that exceeds it
 *
 * Source: torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size; torch/_utils.py, _take_tensors.
 * Known answer: ResNet-18 at a cap of 25 MiB (pytorch#48880), in tests/unit/test_buckets.c. Pure functions. */

/* group[i]: the bucket of order[i], n entries each; `bytes` by tensor. Limits apply in turn, the last one to all later
 * buckets. Returns the number of buckets. */
int el_buckets_assign(const size_t *bytes, const int *order, int n, const size_t *limits, int n_limits, int *group);

/* group[i]: the chunk of tensor i. Returns the number of chunks. */
int el_chunks_take(const size_t *bytes, int n, size_t limit, int *group);

/* The map of DDP's find_unused_parameters: an integer per trained parameter, 1 if a gradient came, summed over members.
 *
 *     el_used_map_open(shard, comm, NULL, &map);
 *     el_used_map_issue(map, program, &op);     in a step, after all buckets
 *     el_used_map_check(map);                   between steps
 *     el_used_map_close(map);
 *
 * A captured step must know unused parameters before it runs: it assumes that all members use the same ones, and check
 * verifies that. Memory: 4 bytes per parameter (tag bucket). */

struct el_used_map;
