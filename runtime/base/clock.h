/* The host's monotonic clock: what every span and every step is timed by.
 * Units: nanoseconds since an arbitrary origin, the same for all processes of one host. Cost: about 20 ns. */
#ifndef EL_BASE_CLOCK_H
#define EL_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t el_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
