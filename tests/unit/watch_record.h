/* What the tests of watch ask of its record, and what is printed of it. */
#ifndef EL_TESTS_WATCH_RECORD_H
#define EL_TESTS_WATCH_RECORD_H

#include "bench/base/jvalue.h"
#include "bench/watch/watch.h"
#include "tests/unit/printed.h"

/* What a document says, by a path in it. */
static inline double number(const json_t *document, const char *path)
{
    return el_json_number(document, path);
}

/* The tables, in the width they have to keep; to be freed. */
static inline char *tables_of(const json_t *document)
{
    char *text = printed(el_watch_print, document);
    int columns = 0; /* of characters, not bytes */
    for (const char *at = text; *at; at++) {
        columns = *at == '\n' ? 0 : columns + (((unsigned char)*at & 0xc0) != 0x80);
        if (columns > 110) fail_msg("too wide: %s", text);
    }
    return text;
}

#endif
