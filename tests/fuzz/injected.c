/* A parser with an injected defect: one of a length that is believed. Both ways to run the targets must find it from
 * the seeds, or they prove nothing; scripts/test runs it under the address sanitizer and expects a failure. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { ROOM = 16 };
static volatile char used; /* else the compiler leaves out what comes to nothing */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *room = malloc(ROOM), *word = strstr(text, "word:");
    size_t length = word ? strcspn(word, "\n") : 0;
    if (room && word) memcpy(room, word, length < ROOM || strchr(word, '\n') ? length : ROOM); /* which may be more */
    if (room && word) used = room[0];
    free(room);
    free(text);
    return 0;
}
