/* Numbers that are as good as equal. */
#pragma once

#include <math.h>

static inline void near(double got, double wanted, double tolerance)
{
    if (!(fabs(got - wanted) <= tolerance)) fail_msg("got %.12g, wanted %.12g", got, wanted);
}

static inline void near_ms(double got_s, double wanted_ms)
{
    near(got_s * 1e3, wanted_ms, 1e-9);
}
