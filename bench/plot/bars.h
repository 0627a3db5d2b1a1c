/* Bar positions and blocks for plots/bars.gnuplot: batches from left to right, in each its modes, in each of those its
 * devices. */
#pragma once

#include "bench/plot/data_file.h"

#define EL_BAR_HALF 0.42 /* of a bar's width; bars are 1 apart */

struct el_bar {
    const json_t *trial;
    const json_t *device; /* NULL: a bar per trial, or a trial without devices */
    size_t position;
    double x;
};

struct el_bars {
    struct el_bar *list;
    size_t n;
    double right; /* end of the last bar */
};

/* A part of a bar; `value` NAN: none. */
struct el_bar_part {
    const char *name;
    double (*value)(const struct el_bar *bar, const char *name);
};

/* `per_device`: a bar per device, else per trial. `mode_gap`: space between modes, in bars. Errors:
 * EL_ERR_HOST_MEMORY. */
enum el_status el_bars_place(const json_t *trials, bool per_device, double mode_gap, struct el_bars *bars_p);
void el_bars_free(struct el_bars *bars);

/* Middle of the bars of one trial from bar `i`; *end_p is behind the last. */
double el_bars_middle(const struct el_bars *bars, size_t i, size_t *end_p);
/* MiB of the tag at the device's peak. */
double el_bar_tag_mib(const struct el_bar *bar, const char *tag);
/* Whether a part is drawn: a stack skips parts that are not positive. */
bool el_bars_has(double value, bool stacked);
/* The texts of a bar figure. */
struct el_bars_words {
    const char *title;
    const struct el_data_names *names;
    const char *foot;    /* NULL: none */
    const char *warning; /* after the one on marked trials; NULL: none */
};
/* The blocks about, warning, marks (at the foot of marked trials' bars), devices, modes, batches, notes. */
void el_bars_labels(const struct el_bars *bars, const json_t *trials, const struct el_bars_words *words, FILE *file);
/* The block "bars". `parts` are stacked or overlaid; ends with a NULL name. */
void el_bars_parts(const struct el_bars *bars, const struct el_bar_part *parts, bool stacked, FILE *file);
/* For memory, the blocks "tops" (MiB of a stack) and "excess" (first device over the others' mean, if above a
 * fiftieth). */
bool el_bars_has_excess(const struct el_bars *bars, const struct el_bar_part *parts);
void el_bars_tops(const struct el_bars *bars, const struct el_bar_part *parts, FILE *file);
/* A row of such a block; `part` NULL: no such cell. */
void el_bars_row(FILE *file, double x, double half, double from, double to, const char *part);
