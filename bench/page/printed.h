/* Folders of commands that make no trials, as a page: what the command prints of its document, and its figures.
 *
 *     el_printed_read(dir, &run);            NULL: the folder has trials, or nothing that is known here
 *     kind = el_printed_kind(run);           NULL: a run with trials
 */
#ifndef EL_BENCH_PRINTED_H
#define EL_BENCH_PRINTED_H

#include <jansson.h>
#include <stdio.h>

#include "bench/plot/data_file.h"

enum { EL_PRINTED_PICTURES_MAX = 2 };

struct el_printed_kind {
    const char *command;
    const char *file, *heading;
    const char *pictures[EL_PRINTED_PICTURES_MAX + 1]; /* ended by NULL */
    /* Errors: EL_ERR_IO; EL_ERR_INVALID: not this command's document, or of another version. */
    enum el_status (*read)(const char *path, json_t **document_p);
    void (*title)(const json_t *document, char title[EL_TITLE_BYTES]);
    void (*verdict)(const json_t *document, FILE *out); /* a line, without its end */
    void (*print)(const json_t *document, FILE *out);
};

/* A document for el_page_html: {"printed": the command's own, "command", "environment", "trials": []}. New reference,
 * or NULL. */
enum el_status el_printed_read(const char *dir, json_t **run_p);
const struct el_printed_kind *el_printed_kind(const json_t *run);
/* What the command prints of it; to be freed; NULL without memory. */
char *el_printed_text(const json_t *run);

#endif
