/* The data file of a figure: what a script of plots/ draws, and the one way to write it.
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
 * A file has named blocks: a comment with the name, one with the columns, rows whose cells are parted by tabs, two
 * empty lines. Scripts compute nothing: positions, sums and labels are finished here. A block that a script reads has a
 * row at least; a missing number is "?".
 *
 * gnuplot must never read foreign text as its own words, so every text of a record goes through el_data_word or
 * el_data_label: what is not a letter, a digit, a blank or one of "_.:/-" becomes '_', and it is cut to the room. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/status.h"

enum { EL_TITLE_BYTES = 256, EL_NAME_BYTES = 32, EL_NAMES_BYTES = 1024 };

struct el_figure {
    const char *name; /* of its data file, its script and its pictures */
    /* Writes all blocks, and sets *any_p where there is something to draw; it is false before. */
    enum el_status (*write)(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p);
    const void *rows; /* the writer's own */
    bool optional;    /* most runs have nothing for it, which is not worth a word */
};

/* Makes the folder where it is missing, and writes plots_dir/<name>.dat; where there is nothing to draw that of an
 * earlier run is removed. Errors: EL_ERR_IO, EL_ERR_HOST_MEMORY, the writer's. */
enum el_status el_data_save(const struct el_figure *figure, const json_t *document, const char *plots_dir,
                            bool *drawn_p);

/* A foreign text: a word has no blanks, a label may have some; neither is empty. */
struct el_data_text {
    char text[EL_NAME_BYTES];
};
struct el_data_text el_data_word(const char *foreign);
struct el_data_text el_data_label(const char *foreign);

/* Parts that are drawn, as words by blanks; `thin`: those that are too thin to be seen and have no place in the legend.
 * A word that has no room is left out. */
struct el_data_names {
    char present[EL_NAMES_BYTES], thin[EL_NAMES_BYTES];
};
void el_data_add_name(char list[EL_NAMES_BYTES], const char *foreign);

/* Begins a block; `name` as by printf. */
void el_data_block(FILE *file, const char *columns, const char *name, ...) __attribute__((format(printf, 3, 4)));
/* A cell after another one. */
void el_data_number(FILE *file, double value);

/* The block "about", which every figure has first. */
struct el_data_about {
    const char *title;
    const struct el_data_names *names; /* NULL: none */
    double right;                      /* end of the axis */
    double bars;                       /* width of the figure */
    const char *foot;                  /* NULL: none; in 95 letters */
};
/* Leaves the row open: the caller writes the cells of its further `columns` (", panels, lines"; "": none), each after a
 * tab, and the line's end. */
void el_data_about(FILE *file, const struct el_data_about *about, const char *columns);

/* The block "looks", for figures whose parts are modes: a row for each of them that this program has. */
void el_data_looks(FILE *file, const struct el_data_names *modes);

/* Whether an earlier row has the same value at `key` as row `i`. */
bool el_data_seen(const json_t *rows, size_t i, const char *key);
/* Whether it has figures that are not to be trusted: it is suspect, or not checked. A trial that failed has none. */
bool el_data_has_mark(const json_t *trial);
/* The figure's foot: `words` (NULL: none), and that simulated trials were computed. */
void el_data_foot(const json_t *trials, const char *words, char foot[EL_TITLE_BYTES]);
#define EL_DATA_BYTES_EXACT "; bytes are counted, and exact all the same"
/* The block "warning", which says below the figure which trials have a mark, and why; `more` (NULL: none) is said after
 * it. " " where all are valid. */
void el_data_warning(FILE *file, const json_t *trials, const char *more);
/* "textcnn, f32, sgd, 2 CPU cores": what was measured, and on what. */
void el_data_title(const json_t *trials, char title[EL_TITLE_BYTES]);
