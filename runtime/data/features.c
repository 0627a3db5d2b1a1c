/* Features: a sentence as its bag of words, hashed into bins and scaled to unit L2 norm. Counts are not weighted by how
 * rare a word is, and signs are not hashed, so that a sentence can never cancel to zero. */
#include "runtime/data/samples.h"

#include <math.h>
#include <string.h>

/* By the word's number, not its text: the set may be dummy. The finaliser of SplitMix64. */
static int32_t bin_of(int32_t id, int64_t features)
{
    uint64_t x = (uint64_t)id * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return (int32_t)((x ^ x >> 31) % (uint64_t)features);
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

void el_features_row(const int32_t *tokens, int64_t length, int64_t features, int32_t *bins, int32_t *counts,
                     enum el_dtype dtype, void *row)
{
    memset(row, 0, (size_t)features * (dtype == EL_F64 ? sizeof(double) : sizeof(float)));
    for (int64_t t = 0; t < length; t++) bins[t] = bin_of(tokens[t], features);
    const double scale = scale_of(bins, length, counts);
    if (dtype == EL_F64) {
        for (int64_t t = 0; t < length; t++) ((double *)row)[bins[t]] += scale;
    } else {
        for (int64_t t = 0; t < length; t++) ((float *)row)[bins[t]] += (float)scale;
    }
}
