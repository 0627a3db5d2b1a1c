/* What every C test is made with: cmocka, with the headers that it wants before it, and a main.
 *
 *     static void sums_are_exact(void **state) { ... }
 *     RUN_TESTS(set_up, tear_down, sums_are_exact, ...)         of all tests together, or NULL
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define RUN_TESTS(set_up, tear_down, ...)                                                                              \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        return RUN(set_up, tear_down, __VA_ARGS__);                                                                    \
    }

/* The same of a main that does more. */
#define RUN(set_up, tear_down, ...)                                                                                    \
    run_named_tests((char[]){#__VA_ARGS__}, (const CMUnitTestFunction[]){__VA_ARGS__},                                 \
                    sizeof(const CMUnitTestFunction[]){__VA_ARGS__} / sizeof(CMUnitTestFunction), set_up, tear_down)

/* `names` are as they stand between commas, and are cut there. */
static inline int run_named_tests(char *names, const CMUnitTestFunction *functions, size_t n, CMFixtureFunction set_up,
                                  CMFixtureFunction tear_down)
{
    struct CMUnitTest tests[64] = {{.name = NULL}};
    if (n > sizeof tests / sizeof *tests) return fprintf(stderr, "more tests in a program than it has room for\n"), 1;
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){.name = strtok(i ? NULL : names, ", "), .test_func = functions[i]};
    return _cmocka_run_group_tests("tests", tests, n, set_up, tear_down);
}
