/* From figures of sessions to cells: which of them a gate judges, and what makes a side of one unreadable. */
#ifndef EL_BENCH_FIGURE_H
#define EL_BENCH_FIGURE_H

#include <jansson.h>

#include "bench/regress/regress.h"

/* `metrics` is a comma-separated list of names: of metric rows, or of a program's own figures. Errors: EL_ERR_INVALID:
 * a name that no figure of the run has. */
enum el_status el_figure_check(const json_t *run, const char *metrics);
/* Whether the list has the figure's name ("device_peak_bytes[1]" by "device_peak_bytes"). Where it is "" or NULL: the
 * exact figures and step_median_ms, but all of a program of one's own. */
bool el_figure_selected(const json_t *session, const char *name, const char *metrics);
/* Whether the store's table shows the figure's level: of a run of ours step_median_ms, of a program all. `session` may
 * be an entry of el_baseline_describe too. */
bool el_figure_leads(const json_t *session, const char *name);
/* Exact, and 0 on both sides: there is nothing to compare. */
bool el_figure_nothing(const json_t *base, const json_t *head);

/* A new cell "<workload> <name>", of a program of one's own "<name>", as the session `head` is called, with
 * unit and direction of the session `base`, without samples. EXACT where the figure is exact in both sessions, else
 * `otherwise`. NULL: no memory. */
struct el_regress_cell *el_figure_cell(const json_t *base, const json_t *head, const char *name,
                                       enum el_cell_kind otherwise, struct el_regress_set *set);
/* Sees that the head's figure can be put beside the base's: else the cell is unreadable, with the reason. */
bool el_figure_comparable(const json_t *base, const json_t *head, struct el_regress_cell *cell);
/* The value, or all launches, as samples of one side; null as NAN. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_figure_value(const json_t *figure, double **values, size_t *n);
enum el_status el_figure_launches(const json_t *figure, double **values, size_t *n);

/* Marks the cell as unreadable with a reason and takes the head's samples away. */
void el_cell_unreadable(struct el_regress_cell *cell, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "baseline is suspect: repeats; current is suspect: drift" from the sessions' rules; base may be NULL. */
void el_cell_doubt(const json_t *base, const json_t *head, struct el_regress_cell *cell);

#endif
