/* Sums and maxima by lanes, which a compiler makes vectors of. Lanes are joined in pairs, so that no addition waits for
 * all others. */
#pragma once

enum { EL_LANES = 32 };

static inline __attribute__((always_inline)) double el_lanes_total(const float lane[EL_LANES])
{
    double sum[EL_LANES / 2];
    for (int j = 0; j < EL_LANES / 2; j++) sum[j] = (double)lane[j] + (double)lane[j + EL_LANES / 2];
    for (int n = EL_LANES / 4; n > 0; n /= 2)
        for (int j = 0; j < n; j++) sum[j] += sum[j + n];
    return sum[0];
}

static inline __attribute__((always_inline)) float el_lanes_largest(float lane[EL_LANES])
{
    for (int n = EL_LANES / 2; n > 0; n /= 2)
        for (int j = 0; j < n; j++) lane[j] = lane[j + n] > lane[j] ? lane[j + n] : lane[j];
    return lane[0];
}
