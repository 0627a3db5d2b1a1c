/* Hand-made traces: a text that grows, and what the reader makes of it. */
#pragma once

#include "tests/test.h"

#include <stdio.h>

#include "profiles/kineto.h"

enum { TEXT_BYTES = 1 << 16 };

struct text {
    char at[TEXT_BYTES];
    size_t n;
};

#define ADD(text, ...) ((text)->n += (size_t)snprintf((text)->at + (text)->n, TEXT_BYTES - (text)->n, __VA_ARGS__))

/* `named`: el_kineto_read's. */
static inline struct el_kineto_trace read_trace(struct text *t, const char *named)
{
    struct el_kineto_trace trace;
    ADD(t, "]}");
    FILE *file = fmemopen(t->at, t->n, "r");
    enum el_status status = el_kineto_read(file, UINT64_MAX, "t", named, &trace);
    fclose(file);
    if (status != EL_OK) fail_msg("%s", el_error_message());
    return trace;
}
