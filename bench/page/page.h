/* A run as one page: what `evenload report` writes. Made from the run's folder alone, results.json and plots/; or, of
 * commands that make no trials, from their document: what the command prints of it, and its figures.
 *
 *     el_printed_read(dir, &run);            NULL: the folder has trials, or nothing that is known here
 *     kind = el_printed_kind(run);           NULL: a run with trials
 *
 * The HTML needs nothing beside it: pictures, style and sorting are inside, and it loads nothing. Every text of the
 * record is escaped. The Markdown is the short form, for a pull request: what it comes to, the rows, the warnings.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/plot/data_file.h"

/* More than this a page never has: a picture that does not fit is left out, and named. */
enum { EL_PAGE_BYTES_MAX = 2 << 20 };

/* `dir`: the run's folder, as the user gave it. Errors: EL_ERR_ABSENT: the program's own folder plots/ is not there;
 * EL_ERR_HOST_MEMORY. What cannot be written is for the caller of `out` to see. */
enum el_status el_page_html(const json_t *run, const char *dir, FILE *out);
enum el_status el_page_markdown(const json_t *run, FILE *out);

enum { EL_PRINTED_FIGURES_MAX = 2 };

/* A command whose folder has a document of its own. */
struct el_printed_kind {
    const char *command;
    const char *file, *heading;
    const struct el_figure *figures[EL_PRINTED_FIGURES_MAX + 1]; /* ended by NULL */
    /* Errors: EL_ERR_IO; EL_ERR_INVALID: not this command's document, or of another version. */
    enum el_status (*read)(const char *path, json_t **document_p);
    void (*title)(const json_t *document, char title[EL_TITLE_BYTES]);
    void (*verdict)(const json_t *document, FILE *out); /* a line, without its end */
    void (*print)(const json_t *document, FILE *out);
    enum el_status (*csv)(const void *document, FILE *out); /* into COMMAND.csv beside it; NULL: none */
};

struct el_options;
/* How a command ends: writes its document and CSV into `dir`, prints it as --json, --csv or in words with the paths,
 * and draws its figures. Errors: EL_ERR_IO. */
enum el_status el_printed_show(const char *command, const struct el_options *options, const char *dir,
                               const json_t *document);

/* The kind whose document lies in the folder; NULL: there is none. */
const struct el_printed_kind *el_printed_in(const char *dir);
/* A document for el_page_html: {"printed": the command's own, "command", "environment", "trials": []}. New reference,
 * or NULL. */
enum el_status el_printed_read(const char *dir, json_t **run_p);
const struct el_printed_kind *el_printed_kind(const json_t *run);

/* ---- parts of the page ---- */

/* What a run comes to: "9 trials: 6 valid, 3 suspect", then lists. As HTML or Markdown. Errors: EL_ERR_HOST_MEMORY. */
enum el_outcome { EL_OUTCOME_VERDICT, EL_OUTCOME_SENTENCES, EL_OUTCOME_FAILED, EL_OUTCOME_WARNINGS, EL_OUTCOMES };
