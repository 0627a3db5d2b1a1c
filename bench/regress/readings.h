/* What a program said of itself: metrics read from its standard output.
 *
 *     el_readings_parse(text, &readings);       lines 'metric value [unit]', or JSON; docs/regress.md has the forms
 *     el_readings_free(&readings);
 *
 * A metric that was printed several times is one reading, the median; in several units it is none, and `other_unit`
 * says so. What is longer than a cell's name or unit is cut, and ends in '~' and a hash of the whole: it stays another.
 * Of JSON of ours the figures that a gate is for are taken, and others only where they are asked for by name (`extra`).
 */
#ifndef EL_BENCH_READINGS_H
#define EL_BENCH_READINGS_H

#include <jansson.h>

#include "bench/regress/regress.h"

struct el_reading {
    char name[EL_CELL_NAME_BYTES], unit[EL_CELL_UNIT_BYTES];
    char other_unit[EL_CELL_UNIT_BYTES]; /* of a later one of this name; the same as `unit`: there is none */
    double value;                        /* NAN: it was said to be none */
    enum el_better better;
    bool exact; /* its unit says that it has no noise */
    bool extra;
    bool again; /* within readings.c: an earlier row has this name */
};

struct el_readings {
    struct el_reading *rows; /* owned */
    size_t n;
};

/* Errors: EL_ERR_INVALID: nothing in it is a metric; EL_ERR_HOST_MEMORY. `readings` is to be freed in either case. */
enum el_status el_readings_parse(const char *text, struct el_readings *readings);
void el_readings_free(struct el_readings *readings);

/* ---- between readings.c and readings_json.c ---- */
/* "before after", either of which may be "", as a text of so many bytes, cut if it must be. */
void el_readings_join(char *text, size_t bytes, const char *before, const char *after);
/* Adds one; which way is better and whether it is exact by the metric rows, else by unit and name. */
enum el_status el_readings_add(struct el_readings *readings, const char *name, const char *unit, double value);
/* Adds what a JSON document holds. */
enum el_status el_readings_json(struct el_readings *readings, const json_t *document);

#endif
