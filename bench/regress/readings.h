/* What a program said of itself: metrics read from its standard output.
 *
 *     el_readings_parse(text, &readings);       lines 'metric value unit', or the JSON of `evenload run` and `compare`
 *     el_readings_free(&readings);
 *
 * A metric that was printed several times is one reading, the median; in several units it is none, and `other_unit`
 * says so. Which way is better, and whether a figure has no noise, is said by its unit (a table in readings.c); where
 * that does not say it, the user has to. Of JSON of ours the figures that a gate is for are taken, and others only
 * where they are asked for by name (`extra`).
 */
#ifndef EL_BENCH_READINGS_H
#define EL_BENCH_READINGS_H

#include "bench/regress/regress.h"

struct el_reading {
    char name[EL_CELL_NAME_BYTES], unit[EL_CELL_UNIT_BYTES];
    char other_unit[EL_CELL_UNIT_BYTES]; /* of a later one of this name; the same as `unit`: there is none */
    double value;                        /* NAN: it was said to be none */
    double *values;                      /* owned; all of this name */
    size_t n_values;
    enum el_better better;
    bool directed; /* its unit says which way is better */
    bool exact;    /* its unit says that it has no noise */
    bool extra;
};

struct el_readings {
    struct el_reading *rows; /* owned */
    size_t n;
};

/* Errors: EL_ERR_INVALID: nothing in it is a metric, or a name is too long; EL_ERR_HOST_MEMORY. `readings` is to be
 * freed in either case. */
enum el_status el_readings_parse(const char *text, struct el_readings *readings);
void el_readings_free(struct el_readings *readings);

#endif
