/* What a function prints of a document, as text. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* To be freed. */
static inline char *printed(void (*print)(const json_t *, FILE *), const json_t *of)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    assert_non_null(memory);
    print(of, memory);
    fclose(memory);
    return text;
}

/* The same, with each sentence on one line. */
static inline char *said(void (*print)(const json_t *, FILE *), const json_t *of)
{
    char *text = printed(print, of), *to = text;
    for (const char *from = text; *from; to++) {
        bool wrapped = !strncmp(from, "\n  ", 3);
        *to = wrapped ? ' ' : *from;
        from += wrapped ? 3 : 1;
    }
    *to = 0;
    return text;
}
