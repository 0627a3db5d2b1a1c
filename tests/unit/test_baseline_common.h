/* What the tests of the stored baseline share: a folder that is made before them and removed after. */
#ifndef EL_TESTS_BASELINE_COMMON_H
#define EL_TESTS_BASELINE_COMMON_H

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/near.h"

static char dir[64];

static inline int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/evenload-baseline-XXXXXX");
    return mkdtemp(dir) == NULL;
}

static inline int remove_dir(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command); // NOLINT(cert-env33-c,concurrency-mt-unsafe): a folder that this test made
}

#endif
