/* Figures with bars: where the bars stand, and the blocks that plots/bars.gnuplot reads. Batches from left to right, in
 * each its modes, in each of those its devices. */
#pragma once

#include "bench/plot/data_file.h"

#define EL_BAR_HALF 0.42 /* of its width; the next one stands at 1 */

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

/* A part of a bar: what a bar has of it, NAN for none. */
struct el_bar_part {
    const char *name;
    double (*value)(const struct el_bar *bar, const char *name);
};

/* `per_device`: a bar per device, else one per trial. `mode_gap` is free space between modes, in bars. Errors:
 * EL_ERR_HOST_MEMORY. */
enum el_status el_bars_place(const json_t *trials, bool per_device, double mode_gap, struct el_bars *bars_p);
void el_bars_free(struct el_bars *bars);

/* The middle of the bars of one trial, of which the first is `i`; *end_p is behind the last. */
double el_bars_middle(const struct el_bars *bars, size_t i, size_t *end_p);
/* Such a value: MiB of the tag at the device's peak. */
double el_bar_tag_mib(const struct el_bar *bar, const char *tag);
/* What is drawn of a part: a stack has nothing of a part that is not positive. */
bool el_bars_has(double value, bool stacked);
/* What a figure of bars says in words. */
struct el_bars_words {
    const char *title;
    const struct el_data_names *names;
    const char *foot;    /* NULL: none */
    const char *warning; /* after that of trials with a mark; NULL: none */
};
/* Blocks of all of them: about, warning, marks (the foot of each bar of a trial that has one), devices, modes,
 * batches, notes. */
void el_bars_labels(const struct el_bars *bars, const json_t *trials, const struct el_bars_words *words, FILE *file);
/* The block "bars". `parts` are stacked, or stand in front of each other; ended by a row whose name is NULL. */
void el_bars_parts(const struct el_bars *bars, const struct el_bar_part *parts, bool stacked, FILE *file);
/* Of memory. The blocks "tops" (MiB of a whole stack) and "excess" (how much higher the stack of a trial's first device
 * is than the mean of the others, where it is more than a fiftieth). */
bool el_bars_has_excess(const struct el_bars *bars, const struct el_bar_part *parts);
void el_bars_tops(const struct el_bars *bars, const struct el_bar_part *parts, FILE *file);
/* A row of such a block; `part` NULL: without that cell. */
void el_bars_row(FILE *file, double x, double half, double from, double to, const char *part);
