/* cmocka, and what it needs before it: the first thing that a C test includes. */
#ifndef EL_TESTS_CHECK_H
#define EL_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
