/* A run as one page (`evenload report`), from results.json and plots/, or from the document of a command without
 * trials.
 *
 *     el_printed_read(dir, &run);            NULL: the folder has trials, or nothing known
 *     kind = el_printed_kind(run);           NULL: a run with trials
 *
 * The HTML contains pictures, style and sorting, and loads nothing. Every text of the record is escaped. The Markdown
 * is the short form for a pull request. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "bench/plot/data_file.h"

/* Limit of a page; pictures beyond it are left out and named. */
enum { EL_PAGE_BYTES_MAX = 2 << 20 };

/* `dir`: the run's folder as given. Errors: EL_ERR_ABSENT: the program's plots/ is missing; EL_ERR_HOST_MEMORY. Write
 * errors stay in `out`. */
enum el_status el_page_html(const json_t *run, const char *dir, FILE *out);
enum el_status el_page_markdown(const json_t *run, FILE *out);

enum { EL_PRINTED_FIGURES_MAX = 2 };
/* A list within a row of a table. */
#define EL_LIST(...)                                                                                                   \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

/* A command with a document of its own. */
struct el_printed_kind {
    const char *command;
    const char *file, *heading;
    const struct el_figure *figures[EL_PRINTED_FIGURES_MAX + 1]; /* ends with NULL */
    bool (*is_one)(const json_t *document); /* of this version; NULL: a run's record with a member `command` */
    void (*title)(const json_t *document, char title[EL_TITLE_BYTES]);
    void (*verdict)(const json_t *document, FILE *out); /* one line without newline */
    void (*print)(const json_t *document, FILE *out);
    enum el_status (*csv)(const void *document, FILE *out); /* COMMAND.csv; NULL: none */
};

struct el_options;
struct el_plot_look;
/* A command's end: writes document and CSV into `dir`, prints it as --json, --csv or text, and draws its figures.
 * Errors: EL_ERR_IO. */
enum el_status el_printed_show(const char *command, const struct el_options *options, const char *dir,
                               const json_t *document);

/* The kind of the document in `dir`; NULL: none. */
const struct el_printed_kind *el_printed_in(const char *dir);
/* Draws all figures of the folder of a run or of a command's document. Errors: EL_ERR_INVALID: there is nothing to
 * draw; el_plot_draw's. */
enum el_status el_page_plot(const char *dir, const struct el_plot_look *look, FILE *messages);
/* A document for el_page_html: {"printed": the command's own, "command", "environment", "trials": []}. New reference,
 * or NULL. */
enum el_status el_printed_read(const char *dir, json_t **run_p);
const struct el_printed_kind *el_printed_kind(const json_t *run);

/* ---- parts of the page ---- */

/* "9 trials: 6 valid, 3 suspect", then lists, as HTML or Markdown. Errors: EL_ERR_HOST_MEMORY. */
enum el_outcome { EL_OUTCOME_VERDICT, EL_OUTCOME_SENTENCES, EL_OUTCOME_FAILED, EL_OUTCOME_WARNINGS, EL_OUTCOMES };
