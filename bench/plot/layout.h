/* Where the bars of a figure stand: batches from left to right, in each its modes, in each of those its devices; and
 * what the data files of all figures share. Used by data.c, timeline.c and figures of subcommands. The scripts get
 * finished positions and labels, so that they compute nothing. */
#ifndef EL_BENCH_PLOT_LAYOUT_H
#define EL_BENCH_PLOT_LAYOUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* One bar. */
struct el_slot {
    const json_t *trial;
    const json_t *device; /* NULL: a bar a trial, or a trial without devices */
    size_t position;
    double x;
};

struct el_layout {
    struct el_slot *slots;
    size_t n, capacity;
    double right; /* end of the last bar */
    bool failed;
};

/* `per_device`: a bar a device, else one a trial. `mode_gap` is free space between modes, in bars. */
void el_layout_build(const json_t *trials, bool per_device, double mode_gap, struct el_layout *layout_p);
void el_layout_free(struct el_layout *layout);

enum { EL_TITLE_BYTES = 256, EL_NAME_BYTES = 32, EL_NAMES_BYTES = 512 };

/* gnuplot must never read foreign text as its own words, so all of a record's text that a data file holds goes through
 * these: what is not a letter, a digit, a blank or one of "_.:/-" becomes '_', and it is cut to the room. */
void el_layout_text(const char *foreign, char *text, size_t bytes);
/* As a word: without blanks too. */
void el_layout_name(const char *foreign, char name[EL_NAME_BYTES]);
/* Adds a name to a list of words; where it has no room it is left out. */
void el_layout_append(char *list, size_t bytes, const char *name);

/* "textcnn, f32, sgd, 2 CPU cores": what the devices are; title.c. */
void el_layout_title(const json_t *trials, char title[EL_TITLE_BYTES]);
/* Whether the trial's figures may be trusted; a predicted trial's may. */
bool el_layout_is_valid(const json_t *trial);
/* The words under a figure that say which trials are not valid and `how` they are drawn; " " where all are. */
void el_layout_foot(const json_t *trials, const char *how, char foot[EL_TITLE_BYTES]);

/* A figure's file has named blocks ("# name", rows, two empty lines). Texts in it have no tabs. */
void el_layout_begin(FILE *file, const char *name, const char *columns);
void el_layout_end(FILE *file);
/* The first columns of the block "about", which every figure has. */
#define EL_ABOUT_COLUMNS "title, parts drawn, parts too thin for the legend, right end, width in bars, foot"
void el_layout_about(FILE *file, const char *title, const char *present, const char *thin, double right, double bars,
                     const char *foot);
/* Blocks that all figures with bars have: about, devices, modes, batches, notes. */
void el_layout_write(const struct el_layout *layout, const json_t *trials, const char *title, const char *present,
                     const char *thin, FILE *file);

#endif
