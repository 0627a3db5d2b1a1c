/* The figures that results.json alone gives, a file each (figure_*.c); figures.c has the list. */
#ifndef EL_BENCH_PLOT_FIGURES_H
#define EL_BENCH_PLOT_FIGURES_H

#include "bench/plot/data_file.h"

extern const struct el_figure el_figure_memory, el_figure_throughput, el_figure_step, el_figure_utilization;
extern const struct el_figure el_figure_timeline; /* trials that have a memory timeline */
extern const struct el_figure el_figure_watch;    /* a run of `evenload watch` */

#endif
