/* What the tests of the stored baseline share: a folder that is made before them and removed after, and a comparison of
 * numbers. */
#ifndef EL_TESTS_BASELINE_COMMON_H
#define EL_TESTS_BASELINE_COMMON_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static inline void near(double value, double wanted, double within)
{
    if (!(fabs(value - wanted) <= within)) fail_msg("%.12g is not %.12g within %g", value, wanted, within);
}

static char dir[64];

static inline int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/evenload-baseline-XXXXXX");
    return mkdtemp(dir) == NULL;
}

static inline int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command); // NOLINT(cert-env33-c,concurrency-mt-unsafe): a folder that this test made
}

#endif
