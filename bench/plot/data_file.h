/* The data file of a figure, read by a script of plots/.
 *
 *     static enum el_status write(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
 *     {
 *         el_data_about(file, &about, ", lowest y");
 *         fprintf(file, "\t%g\n", lowest);
 *         el_data_block(file, "x, mode", "points");
 *         fprintf(file, "%g\t%s\n", x, el_data_word(mode).text);
 *         *any_p = true;
 *         return EL_OK;
 *     }
 *     static const struct el_figure figure = {.name = "points", .write = write};
 *     el_data_save(&figure, document, "DIR/plots", &drawn);
 *
 * A named block: a comment with the name, one with the columns, rows of cells separated by tabs, two empty lines.
 * Scripts compute nothing. A block has at least one row; a missing number is "?".
 *
 * gnuplot must not interpret a record's texts, so all go through el_data_word or el_data_label: other characters than
 * letters, digits, blanks and "_.:/-" become '_'; long texts are cut. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/status.h"

enum { EL_TITLE_BYTES = 256, EL_NAME_BYTES = 32, EL_NAMES_BYTES = 1024 };

struct el_figure {
    const char *name; /* of data file, script and pictures */
    /* Writes all blocks; sets *any_p, initially false, if there is something to draw. */
    enum el_status (*write)(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p);
    const void *rows; /* the writer's own */
    bool optional;    /* missing in most runs: not reported */
};

/* Makes the folder and writes plots_dir/<name>.dat; removes an earlier run's if there is nothing to draw. Errors:
 * EL_ERR_IO, EL_ERR_HOST_MEMORY, the writer's. */
enum el_status el_data_save(const struct el_figure *figure, const json_t *document, const char *plots_dir,
                            bool *drawn_p);

/* A word has no blanks, a label may have some; neither is empty. */
struct el_data_text {
    char text[EL_NAME_BYTES];
};
struct el_data_text el_data_word(const char *foreign);
struct el_data_text el_data_label(const char *foreign);

/* Drawn parts, separated by blanks; `thin`: invisible ones, not in the legend. Words without room are dropped. */
struct el_data_names {
    char present[EL_NAMES_BYTES], thin[EL_NAMES_BYTES];
};
void el_data_add_name(char list[EL_NAMES_BYTES], const char *foreign);

/* Begins a block; `name`: printf format. */
void el_data_block(FILE *file, const char *columns, const char *name, ...) __attribute__((format(printf, 3, 4)));
/* A cell after another one. */
void el_data_number(FILE *file, double value);

/* The block "about", first in every figure. */
struct el_data_about {
    const char *title;
    const struct el_data_names *names; /* NULL: none */
    double right;                      /* end of the axis */
    double bars;                       /* width of the figure, in bars */
    const char *foot;                  /* NULL: none; at most 95 letters */
};
/* Leaves the row open: the caller adds the cells of `columns` (", panels, lines"; "": none), each after a tab, and the
 * newline. */
void el_data_about(FILE *file, const struct el_data_about *about, const char *columns);

/* The block "looks": a row for each of `modes` that this program has. */
void el_data_looks(FILE *file, const struct el_data_names *modes);

/* Whether an earlier row has row `i`'s value at `key`. */
bool el_data_seen(const json_t *rows, size_t i, const char *key);
/* Suspect or unchecked, so its figures carry a mark. Failed trials have no figures. */
bool el_data_has_mark(const json_t *trial);
/* `words` (NULL: none), and a note on simulated trials. */
void el_data_foot(const json_t *trials, const char *words, char foot[EL_TITLE_BYTES]);
#define EL_DATA_BYTES_EXACT "; bytes are counted, and exact all the same"
/* The block "warning": which trials are marked and why, then `more` (NULL: none). " " if all are valid. */
void el_data_warning(FILE *file, const json_t *trials, const char *more);
/* "textcnn, f32, sgd, 2 CPU cores" */
void el_data_title(const json_t *trials, char title[EL_TITLE_BYTES]);
