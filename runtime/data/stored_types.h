/* The types of numbers in a safetensors file, a row each by enum el_stored_type. Private to its reader and writer. */
#pragma once

#include <stddef.h>

struct el_stored_kind {
    const char *name;
    size_t bytes;
    /* n numbers; `bytes` need not be aligned. */
    void (*to_double)(const char *bytes, size_t n, double *values);
    void (*from_double)(const double *values, size_t n, char *bytes); /* NULL: it is read only */
};

enum { EL_STORED_TYPES = 5 };
extern const struct el_stored_kind el_stored_types[EL_STORED_TYPES];
