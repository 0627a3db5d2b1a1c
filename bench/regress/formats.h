/* A judged set, in several forms: for a person, for other programs, and for what continuous integration reads. None
 * of them computes anything.
 *
 * Files are written to a temporary name and renamed. Errors: EL_ERR_IO with the path, EL_ERR_HOST_MEMORY. */
#ifndef EL_BENCH_REGRESS_FORMATS_H
#define EL_BENCH_REGRESS_FORMATS_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/regress/regress.h"

/* A row a cell, why where it is not the same, and what it comes to. At most 110 columns. */
void el_regress_print(const struct el_regress_set *set, FILE *out);
/* "No regression in 3 cells, after 14 blocks." */
void el_regress_sentence(const struct el_regress_set *set, char *text, size_t bytes);
/* "same", "REGRESSION", ... */
const char *el_regress_verdict_text(enum el_cell_verdict verdict);
/* The sides' figures as tables have them, NAN for none. One is the median of its samples (of two runs the
 * geometric mean over launches, as in their own tables); the other follows from it by
 * the effect, which is estimated from pairs or from logarithms and may contradict two medians: of a history the base,
 * else the head. Exact ones are as they were measured. */
void el_regress_figures(const struct el_regress_cell *cell, double *base_p, double *head_p);
/* Whether the sides' own medians would say the opposite of the effect; then they are in base_p and head_p. */
bool el_regress_medians_disagree(const struct el_regress_cell *cell, double *base_p, double *head_p);

/* All of it, with every sample: docs/regress.md has the fields. New reference. */
json_t *el_regress_json(const struct el_regress_set *set);
/* JUnit: a case a cell; a regression fails, an inconclusive one is skipped, what cannot be read is an error. */
enum el_status el_regress_write_junit(const struct el_regress_set *set, const char *path);
/* A table of GitHub's and GitLab's Markdown: appended where the path is $GITHUB_STEP_SUMMARY's, which others write to.
 */
enum el_status el_regress_write_markdown(const struct el_regress_set *set, const char *path);
/* Bencher's metric format: the head's figures, with the interval of a timed one as its bounds; a second cell
 * of one name is "name #2". */
enum el_status el_regress_write_bencher(const struct el_regress_set *set, const char *path);
/* Every launch: block,order,side,metric,value,unit. `order` is the launch's place in its block, 1 or 2, by the seed
 * that it was drawn with. Of cells without a base, and of paired and exact ones that were launched. */
enum el_status el_regress_write_csv(const struct el_regress_set *set, uint64_t seed, const char *path);
/* "::error ...::" and "::warning ...::", which GitHub's runner makes annotations of. */
void el_regress_print_github(const struct el_regress_set *set, FILE *out);

#endif
