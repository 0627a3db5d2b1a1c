/* Plots of a finished run, from its files alone.
 *
 * Data files are written from results.json to DIR/plots, one a figure; gnuplot and the scripts in plots/ turn each into
 * SVG, PNG and PDF. The scripts compute nothing. Without gnuplot the data files stand, with the command that draws
 * them.
 */
#ifndef EL_BENCH_PLOT_H
#define EL_BENCH_PLOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/base/status.h"

/* Reads DIR/results.json, writes DIR/plots/<figure>.dat and draws. `term`: also draws as text to standard output. Each
 * picture's path, and each reason why one is missing, is a line on `messages` (may be NULL).
 * Errors: EL_ERR_IO (no results.json, folder not writable), EL_ERR_INVALID (not a record we read). No gnuplot, or a
 * terminal it lacks, is no error. Blocking: a few seconds. */
enum el_status el_plot_run(const char *dir, bool term, FILE *messages);

/* Draws one figure whose data file plots_dir/<figure>.dat is there: of a subcommand that has a figure of its own.
 * `messages` may be NULL. Errors: EL_ERR_IO. */
enum el_status el_plot_draw(const char *plots_dir, const char *figure, FILE *messages);

/* Only the data files. `n_files_p` may be NULL. */
enum el_status el_plot_data(const json_t *run, const char *plots_dir, int *n_files_p);
/* The one figure of a run of `evenload watch`, likewise: el_plot_data makes it where the run has such a part, and no
 * other. */
enum el_status el_plot_watch(const json_t *run, const char *plots_dir, int *n_files_p);
/* The one of the memory timeline, a part of el_plot_data: none, and *n_files_p stays, where no trial has a timeline. */
enum el_status el_plot_timeline(const json_t *trials, const char *plots_dir, int *n_files_p);

#endif
