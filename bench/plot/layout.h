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

/* "textcnn, f32, sgd, 2 devices"; a simulated run says so. */
enum { EL_TITLE_BYTES = 256 };
void el_layout_title(const json_t *trials, char title[EL_TITLE_BYTES]);

/* A figure's file has named blocks ("# name", rows, two empty lines). Texts in it have no tabs. */
void el_layout_begin(FILE *file, const char *name, const char *columns);
void el_layout_end(FILE *file);
/* Blocks all figures have: about (title, names of the blocks, right end), devices, modes, batches, notes. */
void el_layout_write(const struct el_layout *layout, const char *title, const char *present, const char *thin,
                     FILE *file);

#endif
