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
#pragma once

#include <stddef.h>

/* group[i] is the bucket of order[i]; both have n entries. `bytes` is indexed by tensor. The limits are used in turn,
 * the last one for all further buckets. Returns the number of buckets. */
int el_buckets_assign(const size_t *bytes, const int *order, int n, const size_t *limits, int n_limits, int *group);

/* group[i] is the chunk of tensor i. Returns the number of chunks. */
int el_chunks_take(const size_t *bytes, int n, size_t limit, int *group);
