/* Plots of a finished run from its files: data files from results.json to DIR/plots; gnuplot and the scripts in plots/
 * draw SVG, PNG and PDF. Without gnuplot the data files remain, with the command that draws them. */
#pragma once

#include "bench/options/config.h"
#include "bench/plot/data_file.h"
#include "runtime/base/files.h"

/* Writes DIR/plots/<figure>.dat from DIR/results.json and draws; without trials (`explain`) draws the data files there.
 * `look` NULL: defaults. `messages` (may be NULL) gets each picture's path, or why it is missing. Errors: EL_ERR_IO (no
 * results.json, unwritable folder, failed picture), EL_ERR_INVALID (not our record, nothing to draw), EL_ERR_ABSENT (no
 * gnuplot); a missing terminal is none. Blocking: seconds. */
enum el_status el_plot_run(const char *dir, const struct el_plot_look *look, FILE *messages);

/* For subcommands' own figures: writes and draws those that the document has data for. Messages and errors as above; no
 * figure is no error. */
enum el_status el_plot_figures(const struct el_figure *const *figures, int n, const json_t *document, const char *dir,
                               FILE *messages);

/* Prints the last error on standard error, or to `messages` (NULL: not at all) if gnuplot is not installed. EL_OK is
 * legal. */
void el_say_not_drawn(enum el_status status, FILE *messages);

/* Figures from results.json (figure_*.c, listed in figures.c). */
extern const struct el_figure el_figure_memory, el_figure_throughput, el_figure_step, el_figure_utilization;
extern const struct el_figure el_figure_timeline; /* trials with a memory timeline */
extern const struct el_figure el_figure_stages;   /* models in stages */
extern const struct el_figure el_figure_accuracy; /* trials of whole epochs */
extern const struct el_figure el_figure_watch;    /* a run of `evenload watch` */

/* `imbalance`: each device's step by phase, and its bytes sent and received. */
extern const struct el_figure el_figure_device_steps, el_figure_device_bytes;

/* Only the data files. */
enum el_status el_plot_data(const json_t *run, const char *plots_dir);
/* Only draws existing data files; a missing one is a line on `messages`. */
enum el_status el_plot_draw(const char *plots_dir, const char *const *figures, int n, const struct el_plot_look *look,
                            FILE *messages);

/* The scripts' folder: beside the program (build/evenload: ../plots), installed, or where it was built. false, and "":
 * not found. */
bool el_plot_scripts(char folder[EL_PATH_BYTES]);
