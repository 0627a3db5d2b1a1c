/* Batches of similar length: an epoch's order of samples is sorted by length, cut into batches, and these are shuffled.
 * Sentences of one length stay in the order of the shuffle, so that no two epochs have the same batches. */
#include "runtime/data/samples.h"

#include <string.h>

static int64_t length_of(const struct el_dataset *dataset, const struct el_loader_spec *spec, int64_t position)
{
    return el_dataset_sample(dataset, spec->split, position).length;
}

size_t el_sorting_bytes(const struct el_dataset *dataset, const struct el_loader_spec *spec, int64_t steps)
{
    return (size_t)(steps * (spec->global_batch + 1) + el_dataset_info(dataset)->seq + 2) * sizeof(int64_t);
}

/* By counting, which keeps the order of equals. */
void el_sort_batches(const struct el_dataset *dataset, const struct el_loader_spec *spec, int64_t steps, int64_t epoch,
                     int64_t *scratch, int64_t *order)
{
    const int64_t batch = spec->global_batch, n = steps * batch, seq = el_dataset_info(dataset)->seq;
    int64_t *sorted = scratch, *batches = sorted + n, *begins = batches + steps; /* begins: [seq + 2] by length */
    memset(begins, 0, (size_t)(seq + 2) * sizeof *begins);
    for (int64_t i = 0; i < n; i++) begins[length_of(dataset, spec, order[i]) + 1]++;
    for (int64_t length = 0; length <= seq; length++) begins[length + 1] += begins[length];
    for (int64_t i = 0; i < n; i++) sorted[begins[length_of(dataset, spec, order[i])]++] = order[i];
    el_permute(steps, ~spec->seed, epoch, batches); /* not the shuffle's, where there are as many batches */
    for (int64_t b = 0; b < steps; b++)
        memcpy(order + b * batch, sorted + batches[b] * batch, (size_t)batch * sizeof *order);
}
