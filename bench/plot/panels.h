/* The panels of the memory timeline's figure: which devices are shown, and what a record says of each. Used by
 * timeline.c alone, which writes them down. Indices `i` are those of the timeline's points. */
#ifndef EL_BENCH_PLOT_PANELS_H
#define EL_BENCH_PLOT_PANELS_H

#include <jansson.h>
#include <stddef.h>

#include "runtime/base/probe.h"

#define EL_PANEL_IDLE "idle" /* the phase in which nothing runs */
enum { EL_PANELS_MAX = 12 };

struct el_panel {
    const json_t *trial, *device, *timeline;
};

struct el_panels {
    struct el_panel list[EL_PANELS_MAX];
    int n;
};

/* For the largest batch that finished of each mode the first device, and where one thread issues for all devices (dp)
 * the second too, against which the first one's load is seen. None where no trial has a timeline. */
void el_panels_choose(const json_t *trials, struct el_panels *panels);

size_t el_panel_points(const struct el_panel *panel);
double el_panel_ms(const struct el_panel *panel, size_t i);
double el_panel_step_ms(const struct el_panel *panel);
/* The sum of the tags before `tag`; EL_TAG_COUNT gives that of all. */
double el_panel_below_mib(const struct el_panel *panel, int tag, size_t i);
/* The highest sum, and the most of one tag. */
double el_panel_peak_mib(const struct el_panel *panel);
double el_panel_tag_mib(const struct el_panel *panel, int tag);
const char *el_panel_phase(const struct el_panel *panel, size_t i);
/* The end of the run of points that share the phase of point `i`. */
size_t el_panel_run_end(const struct el_panel *panel, size_t i);

/* Where a phase lasts. */
struct el_panel_part {
    double from_ms, to_ms;
};
struct el_panel_part el_panel_longest(const struct el_panel *panel, const char *phase);
/* How much of the step the phase's longest part is. */
double el_panel_phase_ratio(const struct el_panel *panel, const char *phase);

#endif
