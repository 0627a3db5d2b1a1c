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
#include <string.h>

#include <cmocka.h>

#define RUN_TESTS(set_up, tear_down, ...)                                                                              \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        static const CMUnitTestFunction functions[] = {__VA_ARGS__};                                                   \
        static char names[] = #__VA_ARGS__;                                                                            \
        return run_named_tests(names, functions, sizeof functions / sizeof *functions, set_up, tear_down);             \
    }

/* `names` are as they stand between commas, and are cut there. */
static inline int run_named_tests(char *names, const CMUnitTestFunction *functions, size_t n, CMFixtureFunction set_up,
                                  CMFixtureFunction tear_down)
{
    struct CMUnitTest tests[64] = {{.name = NULL}};
    for (size_t i = 0; i < n && i < sizeof tests / sizeof *tests; i++)
        tests[i] = (struct CMUnitTest){.name = strtok(i ? NULL : names, ", "), .test_func = functions[i]};
    return _cmocka_run_group_tests("tests", tests, n, set_up, tear_down);
}
