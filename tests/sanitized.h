/* Whether this program runs under a sanitizer (EVENLOAD_SANITIZER is set): what looks at memory and order there needs
 * each path once, while the plain job holds sizes and repetitions. */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool is_sanitized(void)
{
    return getenv("EVENLOAD_SANITIZER") != NULL;
}

/* Where what is wrong on purpose would be told as a race. */
static inline bool is_thread_sanitized(void)
{
    const char *sanitizer = getenv("EVENLOAD_SANITIZER");
    return sanitizer && strcmp(sanitizer, "thread") == 0;
}
