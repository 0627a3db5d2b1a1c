/* Grouping of tensors by size; see buckets.h. */
#include "runtime/gradients/buckets.h"

int el_buckets_assign(const size_t *bytes, const int *order, int n, const size_t *limits, int n_limits, int *group)
{
    int bucket = 0, limit = 0;
    size_t filled = 0;
    for (int i = 0; i < n; i++) {
        group[i] = bucket;
        filled += bytes[order[i]];
        if (filled < limits[limit]) continue;
        bucket++;
        filled = 0;
        if (limit < n_limits - 1) limit++;
    }
    return filled ? bucket + 1 : bucket;
}

int el_chunks_take(const size_t *bytes, int n, size_t limit, int *group)
{
    int chunk = 0;
    size_t filled = 0;
    for (int i = 0; i < n; i++) {
        if (filled && filled + bytes[i] > limit) {
            chunk++;
            filled = 0;
        }
        group[i] = chunk;
        filled += bytes[i];
    }
    return n ? chunk + 1 : 0;
}
