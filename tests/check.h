/* cmocka, and what it needs before it: the first thing that a C test includes; and how one ends. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The program that runs these tests: CHECK_ALL(cmocka_unit_test(a), cmocka_unit_test(b)), with a set-up before all of
 * them and an end after them, or NULL. */
#define CHECK_ALL(...) CHECK_ALL_BETWEEN(NULL, NULL, __VA_ARGS__)
#define CHECK_ALL_BETWEEN(setup, teardown, ...)                                                                        \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                                               \
        return cmocka_run_group_tests(tests, setup, teardown);                                                         \
    }
