/* Features: a sentence as its bag of words, hashed into bins and scaled to unit L2 norm. Counts are not weighted by how
 * rare a word is, and signs are not hashed, so that a sentence can never cancel to zero. */
#include "runtime/data/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* By the word's number, not its text: the set may be dummy. The finaliser of SplitMix64. */
static int32_t bin_of(int32_t id, int64_t features)
{
    uint64_t x = (uint64_t)id * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return (int32_t)((x ^ x >> 31) % (uint64_t)features);
}

static int64_t total_tokens(const struct el_dataset *dataset, enum el_data_split split, int64_t count)
{
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) total += el_dataset_sample(dataset, split, i).length;
    return total;
}

/* The sum of the squared counts is the sum, over the tokens, of their bin's count. */
static double scale_of(const int32_t *bins, int64_t length, int32_t *counts)
{
    double squares = 0;
    for (int64_t t = 0; t < length; t++) counts[bins[t]]++;
    for (int64_t t = 0; t < length; t++) squares += counts[bins[t]];
    for (int64_t t = 0; t < length; t++) counts[bins[t]] = 0;
    return 1 / sqrt(squares);
}

static void free_bags(struct el_bags *bags)
{
    if (!bags) return;
    free(bags->starts);
    free(bags->bins);
    free(bags->scales);
    free(bags);
}

/* `counts`: [features], all zero, before and after. */
static void fill(const struct el_dataset *dataset, int64_t count, int32_t *counts, struct el_bags *bags)
{
    bags->starts[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        struct el_sample sample = el_dataset_sample(dataset, bags->split, i);
        int32_t *bins = bags->bins + bags->starts[i];
        for (int64_t t = 0; t < sample.length; t++) bins[t] = bin_of(sample.tokens[t], bags->features);
        bags->scales[i] = scale_of(bins, sample.length, counts);
        bags->starts[i + 1] = bags->starts[i] + sample.length;
    }
}

static void add_bins(const int32_t *bins, int64_t n, double scale, enum el_dtype dtype, void *row)
{
    if (dtype == EL_F64) {
        for (int64_t t = 0; t < n; t++) ((double *)row)[bins[t]] += scale;
    } else {
        for (int64_t t = 0; t < n; t++) ((float *)row)[bins[t]] += (float)scale;
    }
}

static size_t row_bytes(int64_t features, enum el_dtype dtype)
{
    return (size_t)features * (dtype == EL_F64 ? sizeof(double) : sizeof(float));
}

void el_bag_row_of(const int32_t *tokens, int64_t length, int64_t features, int32_t *bins, int32_t *counts,
                   enum el_dtype dtype, void *row)
{
    memset(row, 0, row_bytes(features, dtype));
    for (int64_t t = 0; t < length; t++) bins[t] = bin_of(tokens[t], features);
    add_bins(bins, length, scale_of(bins, length, counts), dtype, row);
}

static struct el_bags *make_bags(const struct el_dataset *dataset, enum el_data_split split, int64_t features)
{
    int64_t count = el_dataset_size(dataset, split), total = total_tokens(dataset, split, count);
    int32_t *counts = calloc((size_t)features, sizeof *counts);
    struct el_bags *bags = calloc(1, sizeof *bags);
    if (bags)
        *bags = (struct el_bags){.split = split,
                                 .features = features,
                                 .starts = malloc((size_t)(count + 1) * sizeof *bags->starts),
                                 .bins = malloc((size_t)(total + 1) * sizeof *bags->bins),
                                 .scales = malloc((size_t)(count + 1) * sizeof *bags->scales)};
    if (counts && bags && bags->starts && bags->bins && bags->scales) {
        fill(dataset, count, counts, bags);
    } else {
        free_bags(bags);
        bags = NULL;
    }
    free(counts);
    return bags;
}

enum el_status el_bags_find(const struct el_dataset *dataset, enum el_data_split split, int64_t features,
                            const struct el_bags **bags_p)
{
    struct el_bag_store *store = el_dataset_bag_store(dataset);
    pthread_mutex_lock(&store->lock);
    struct el_bags *bags = store->first;
    while (bags && (bags->split != split || bags->features != features)) bags = bags->next;
    if (!bags && (bags = make_bags(dataset, split, features))) {
        bags->next = store->first;
        store->first = bags;
    }
    pthread_mutex_unlock(&store->lock);
    if (!bags) return el_fail(EL_ERR_HOST_MEMORY, "no memory for bags of words in %lld bins", (long long)features);
    *bags_p = bags;
    return EL_OK;
}

void el_bag_store_clear(struct el_bag_store *store)
{
    for (struct el_bags *bags = store->first, *next; bags; bags = next) {
        next = bags->next;
        free_bags(bags);
    }
    store->first = NULL;
}

void el_bags_row(const struct el_bags *bags, int64_t position, enum el_dtype dtype, void *row)
{
    memset(row, 0, row_bytes(bags->features, dtype));
    if (position < 0) return;
    int64_t first = bags->starts[position], end = bags->starts[position + 1];
    add_bins(bags->bins + first, end - first, bags->scales[position], dtype, row);
}
