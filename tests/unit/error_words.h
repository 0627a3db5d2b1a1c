/* What the last error says. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"

/* All of them, "|" between them, in one line. Included after cmocka.h. */
static inline void expect_words(const char *words)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok(copy, "|"); word; word = strtok(NULL, "|"))
        if (!strstr(el_error_message(), word)) fail_msg("no '%s' in '%s'", word, el_error_message());
    assert_null(strchr(el_error_message(), '\n'));
}
