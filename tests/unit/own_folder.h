/* A folder of the test program's own: RUN_TESTS(make_folder, remove_folder, ...). */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/scratch.h"

static char folder[32];

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/evenload-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    el_scratch_remove(folder);
    return 0;
}
