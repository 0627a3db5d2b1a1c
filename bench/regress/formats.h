/* A judged set, in several forms: for a person, for other programs, and for what continuous integration reads. None
 * of them computes anything.
 *
 * Files are written to a temporary name and renamed. Errors: EL_ERR_IO with the path, EL_ERR_HOST_MEMORY. */
#ifndef EL_BENCH_REGRESS_FORMATS_H
#define EL_BENCH_REGRESS_FORMATS_H

#include <jansson.h>
#include <stdio.h>

#include "bench/regress/regress.h"

/* A row a cell, why where it is not the same, and what it comes to. At most 110 columns. */
void el_regress_print(const struct el_regress_set *set, FILE *out);
/* "No regression in 3 cells, after 14 blocks." */
void el_regress_sentence(const struct el_regress_set *set, char *text, size_t bytes);
/* "same", "REGRESSION", ... */
const char *el_regress_verdict_text(enum el_cell_verdict verdict);
/* A side's figure as the table has it: the median of its samples. NAN: none. */
double el_regress_figure(const double *x, size_t n);

/* All of it, with every sample: docs/regress.md has the fields. New reference. */
json_t *el_regress_json(const struct el_regress_set *set);
/* JUnit: a case a cell; a regression fails, what cannot be told is skipped, what cannot be read is an error. */
enum el_status el_regress_write_junit(const struct el_regress_set *set, const char *path);
/* A table of GitHub's and GitLab's Markdown: appended where the path is $GITHUB_STEP_SUMMARY's, which others write to.
 */
enum el_status el_regress_write_markdown(const struct el_regress_set *set, const char *path);
/* Bencher's metric format: the head's figures, with the interval of a timed one as its bounds; a second cell
 * of one name is "name #2". */
enum el_status el_regress_write_bencher(const struct el_regress_set *set, const char *path);
/* "::error ...::" and "::warning ...::", which GitHub's runner makes annotations of. */
void el_regress_print_github(const struct el_regress_set *set, FILE *out);

#endif
