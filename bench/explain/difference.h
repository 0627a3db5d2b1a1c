/* Where the time and the memory went from one record to another: `explain A B`.
 *
 *     el_side_open("results/one:dp:128", &a);  el_side_open("results/two", &b);
 *     el_sides_check(&a, &b);                      the same work? else one line that says what is not
 *     document = el_difference_document(&a, &b);   a pure function of both
 *     el_difference_print(document, stdout);       and el_figure_explain
 *     el_side_close(&a);  el_side_close(&b);
 *
 * A step is taken apart on the trial's slowest member, launch by launch, so that its parts and a rest add up to it; a
 * part's change is the mean over B's launches less that over A's, and what the parts do not hold is the rest. Where the
 * folder has no repeats/, as that of a record that was sent, parts are the record's own means and have no interval.
 */
#ifndef EL_BENCH_DIFFERENCE_H
#define EL_BENCH_DIFFERENCE_H

#include <jansson.h>
#include <stdio.h>

#include "bench/base/io.h"

enum el_part {
    EL_PART_COMPUTE,
    EL_PART_CONTENTION,
    EL_PART_EXPOSED,
    EL_PART_SKEW,
    EL_PART_BUBBLE,
    EL_PART_DATA,
    EL_PART_IDLE,
    EL_PART_HOST, /* of PyTorch's records alone */
    EL_PARTS
};

/* A launch's, or the mean over launches. Until both sides are split, compute has contention in it, and exposed skew. */
struct el_parts {
    double ms[EL_PARTS]; /* NAN: not known */
};

struct el_side {
    char record[EL_PATH_BYTES]; /* the file */
    json_t *run;
    const json_t *trial;       /* of it */
    size_t n;                  /* launches that finished */
    double *step_ms;           /* [n] */
    double *repeat;            /* [n]: their numbers */
    struct el_parts *launches; /* [n]; NULL: only the mean is known */
    struct el_parts mean;
};

/* A folder or its results.json; where it has several trials ":MODE", ":MODE:BATCH" or ":ID" behind it. Errors:
 * EL_ERR_IO, EL_ERR_INVALID in one line: no such record, which trials there are to choose from, one that did not
 * finish. Nothing is left open then. */
enum el_status el_side_open(const char *word, struct el_side *side_p);
void el_side_close(struct el_side *side);

/* EL_ERR_INVALID: another model, other data or another batch. */
enum el_status el_sides_check(const struct el_side *a, const struct el_side *b);
/* What else is not alike: [{"field", "a", "b"}]. New reference. */
json_t *el_sides_differences(const struct el_side *a, const struct el_side *b);
/* Whether it is a record of PyTorch (scripts/peer-torch): its framework's name, or NULL. Borrowed. */
const char *el_side_framework(const struct el_side *side);

/* New reference. Splits both sides: once. */
json_t *el_difference_document(struct el_side *a, struct el_side *b);
void el_difference_print(const json_t *document, FILE *out);

#endif
