/* A judged set's record, and the record in several forms: for a person, and for what continuous integration reads.
 * None of them computes anything: what a verdict is called in each form is one table, and what a cell's columns say
 * another (answer.c).
 *
 *     document = el_answer_json(&set);                docs/regress.md has the fields
 *     el_answer_print(document, stdout); ...          also of a regress.json (el_answer_is)
 *
 * Files are written to a temporary name and renamed. Errors: EL_ERR_IO with the path, EL_ERR_HOST_MEMORY. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "bench/base/table.h"
#include "bench/regress/regress.h"

/* All of it, with every sample. New reference. */
json_t *el_answer_json(const struct el_regress_set *set);
/* The record, regress.json. */
bool el_answer_is(const json_t *document);

/* How each form calls a cell's verdict. */
struct el_answer_verdict {
    const char *record, *table;
    const char *junit;  /* the element of a case; NULL: the case passes */
    const char *github; /* the annotation's level; NULL: none, and not in bold */
};

/* A cell's row: the table's columns, the last one the verdict, and the texts that stand in them, "-" for what does not
 * apply. New reference. */
extern const struct el_column el_answer_columns[];
/* The sides' figures as tables have them, NAN for none. One is the median of its samples; the other follows from it by
 * the effect, which is estimated from pairs or from logarithms and may contradict two medians: of a history the base,
 * else the head. Exact ones are as they were measured. */
void el_answer_figures(const json_t *cell, double *base_p, double *head_p);

/* A row per cell, why where it is not the same, and what it comes to. At most 110 columns. */
void el_answer_print(const json_t *document, FILE *out);
/* A sentence on what was printed and is not judged (names); nothing where there is none. el_answer_print has it too. */
void el_answer_unjudged(const json_t *names, FILE *out);
/* JUnit: a case a cell; a regression fails, an inconclusive one is skipped, what cannot be read is an error. */
enum el_status el_answer_write_junit(const json_t *document, const char *path);
/* A table of GitHub's and GitLab's Markdown: appended where the path is $GITHUB_STEP_SUMMARY's, which others write to.
 */
enum el_status el_answer_write_markdown(const json_t *document, const char *path);
/* "::error ...::" and "::warning ...::", which GitHub's runner makes annotations of. */
void el_answer_print_github(const json_t *document, FILE *out);
