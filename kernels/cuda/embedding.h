/* The workspace of embedding_backward. */
#pragma once

#include "kernels/cuda/shape.h"

/* int32 positions; this byte repeated four times means "none yet". */
enum { EL_EMBEDDING_NONE_BYTE = 0x7f, EL_EMBEDDING_POSITIONS_MAX = 0x7f7f7f7f };

/* Offsets from the workspace's start, in bytes. Sums and peaks are adjacent: one memset clears both. */
struct el_embedding_layout {
    size_t sums;  /* int64 [n, e, words]: the gradient's sum for the id whose first position is n */
    size_t peaks; /* u64 [n]: the bits of the largest magnitude, as double */
    size_t heads; /* int32 [v]: each id's first position */
    size_t bytes;
};

static inline struct el_embedding_layout el_embedding_layout(int64_t n, int64_t v, int64_t e, int words)
{
    struct el_embedding_layout layout;
    layout.sums = 0;
    layout.peaks = (size_t)(n * e) * (size_t)words * sizeof(int64_t);
    layout.heads = el_cuda_align(layout.peaks + (size_t)n * sizeof(uint64_t));
    layout.bytes = layout.heads + (size_t)v * sizeof(int32_t);
    return layout;
}
