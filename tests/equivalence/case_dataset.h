/* The data of the cases, open while a group of tests runs: cmocka_run_group_tests(tests, open_all, close_all). */
#pragma once

#include "tests/equivalence/cases.h"

static struct el_dataset *dataset;

static int open_all(void **state)
{
    return el_case_dataset(&dataset) == EL_OK ? 0 : -1;
}

static int close_all(void **state)
{
    el_dataset_close(dataset);
    return 0;
}
