/* Plots of a finished run, from its files alone.
 *
 * Data files are written from results.json to DIR/plots, one a figure; gnuplot and the scripts in plots/ turn each into
 * SVG, PNG and PDF. The scripts compute nothing. Without gnuplot the data files stand, with the command that draws
 * them.
 */
#pragma once

#include "bench/options/config.h"
#include "bench/plot/data_file.h"
#include "runtime/base/files.h"

/* Reads DIR/results.json, writes DIR/plots/<figure>.dat and draws; where there are no trials, as of `explain`, it draws
 * what data files lie there. `look` NULL: as it is without options. Each picture's path, and each reason why one is
 * missing, is a line on `messages` (may be NULL).
 * Errors: EL_ERR_IO (no results.json, folder not writable, a picture that could not be drawn), EL_ERR_INVALID (not a
 * record we read, nothing to draw), EL_ERR_ABSENT (no gnuplot). A terminal that gnuplot does not have is no error.
 * Blocking: a few seconds. */
enum el_status el_plot_run(const char *dir, const struct el_plot_look *look, FILE *messages);

/* Of subcommands with figures of their own, which are in no list: writes the data files of those that the document has
 * something for, and draws them. Lines and errors as above; no figure is no error. */
enum el_status el_plot_figures(const struct el_figure *const *figures, int n, const json_t *document, const char *dir,
                               FILE *messages);

/* A figure could not be drawn and all else succeeded: prints the last error on standard error. That gnuplot is not
 * installed is printed to `messages` (NULL: not at all). EL_OK is legal. */
void el_say_not_drawn(enum el_status status, FILE *messages);

/* The figures that results.json alone gives, a file each (figure_*.c); figures.c has the list. */
extern const struct el_figure el_figure_memory, el_figure_throughput, el_figure_step, el_figure_utilization;
extern const struct el_figure el_figure_timeline; /* trials that have a memory timeline */
extern const struct el_figure el_figure_stages;   /* trials of models in stages */
extern const struct el_figure el_figure_accuracy; /* trials of whole epochs */
extern const struct el_figure el_figure_watch;    /* a run of `evenload watch` */

/* Of `imbalance`: each device's step by phase, and what it sends and receives. */
extern const struct el_figure el_figure_device_steps, el_figure_device_bytes;

/* Only the data files. */
enum el_status el_plot_data(const json_t *run, const char *plots_dir);
/* Only draws, from data files that are there; a figure without one is a line on `messages`. */
enum el_status el_plot_draw(const char *plots_dir, const char *const *figures, int n, const struct el_plot_look *look,
                            FILE *messages);

/* The folder of the scripts, and of what a page is made with: beside the program (build/evenload: ../plots), where it
 * is installed, or where it was built. false, and "": not found. */
bool el_plot_scripts(char folder[EL_PATH_BYTES]);
