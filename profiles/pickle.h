/* Reads Python pickles without executing anything: dicts, lists, tuples, texts, numbers, True, False, None.
 *
 *     el_pickle_read(data, size, "a.pickle", &pickle);        borrows `data`: texts lie in it
 *     uint32_t blocks = el_pickle_at(&pickle, segment, "blocks");
 *     struct el_pickle_walk walk = el_pickle_walk(&pickle, blocks);
 *     while (el_pickle_next(&pickle, &walk, &block)) ...
 *     el_pickle_free(&pickle);
 *
 * Accepts only the opcodes of such values in protocols 2 to 5 (Python's pickletools); all others are refused by name,
 * above all those that import or call: GLOBAL, REDUCE, BUILD, INST, OBJ, NEWOBJ, persistent ids. Input is untrusted.
 * Values are flat, by number, so nothing recurses, even for values that contain themselves. After EL_PICKLE_STEPS steps
 * per byte of the file all walks end and `exhausted` is set. Memory: at most about 40 bytes per byte of the file.
 *
 * Errors: EL_ERR_INVALID with `name` and byte, EL_ERR_HOST_MEMORY. Threads: one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

enum { EL_PICKLE_STEPS = 64, EL_PICKLE_MARKS_MAX = 64 };
enum el_pickle_kind { EL_PICKLE_NONE, EL_PICKLE_INT, EL_PICKLE_REAL, EL_PICKLE_TEXT, EL_PICKLE_LIST, EL_PICKLE_DICT };

struct el_pickle_value {
    uint8_t kind;
    uint32_t n; /* bytes of a text */
    union {
        int64_t whole; /* unsigned beyond its range: as its bits */
        double real;
        const char *text;
        struct {
            uint32_t first, last; /* chunks in `cells`: {next, n, n values}; dicts alternate keys and values */
        };
    };
};

struct el_pickle {
    struct el_pickle_value *values; /* [0]: nothing */
    uint32_t *cells;
    size_t n_values, n_cells, values_room, cells_room;
    uint32_t root; /* the whole value */
    uint64_t steps_left;
    bool exhausted;
};

enum el_status el_pickle_read(const uint8_t *data, size_t size, const char *name, struct el_pickle *pickle_p);
void el_pickle_free(struct el_pickle *pickle);

/* Values of a list or tuple in order; of a dict alternating keys and values. Others have none. false: the end. */
struct el_pickle_walk {
    uint32_t chunk, i;
};
struct el_pickle_walk el_pickle_walk(const struct el_pickle *pickle, uint32_t value);
bool el_pickle_next(struct el_pickle *pickle, struct el_pickle_walk *walk, uint32_t *value_p);
/* The value at the key; 0: none, or no dict. */
uint32_t el_pickle_at(struct el_pickle *pickle, uint32_t dict, const char *key);
/* A whole number there, or `otherwise`. */
int64_t el_pickle_whole(struct el_pickle *pickle, uint32_t dict, const char *key, int64_t otherwise);
/* A text there, cut to fit; "": none. */
void el_pickle_text(struct el_pickle *pickle, uint32_t dict, const char *key, char *text, size_t bytes);
