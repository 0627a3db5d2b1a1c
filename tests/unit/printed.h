/* What a function prints of a document, as text. */
#ifndef EL_TESTS_PRINTED_H
#define EL_TESTS_PRINTED_H

#include <jansson.h>
#include <stdio.h>

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

#endif
