/* Which figures there are, and which of them a run's folder has. Drawing them is gnuplot.c's. */
#include <string.h>
#include <unistd.h>

#include "bench/options/config.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"

/* Of every run, and of a run of `evenload watch`. */
static const struct el_figure *const of_runs[] = {&el_figure_memory,      &el_figure_throughput, &el_figure_step,
                                                  &el_figure_utilization, &el_figure_timeline,   &el_figure_stages,
                                                  &el_figure_accuracy};
static const struct el_figure *const of_watches[] = {&el_figure_watch};
/* Figures of subcommands that write their data themselves: drawn again where those lie. */
static const char *const of_subcommands[] = {"scale", "imbalance", "explain", "loading"};
enum { N_RUNS = sizeof of_runs / sizeof of_runs[0], N_SUBCOMMANDS = sizeof of_subcommands / sizeof of_subcommands[0] };

static int list_figures(const json_t *run, const struct el_figure *const **list_p)
{
    bool watched = json_object_get(run, "watch") != NULL;
    *list_p = watched ? of_watches : of_runs;
    return watched ? 1 : N_RUNS;
}

enum el_status el_plot_data(const json_t *run, const char *plots_dir)
{
    const struct el_figure *const *list;
    bool drawn;
    for (int i = 0, n = list_figures(run, &list); i < n; i++) EL_TRY(el_data_save(list[i], run, plots_dir, &drawn));
    return EL_OK;
}

enum el_status el_plot_figures(const struct el_figure *const *figures, int n, const json_t *document, const char *dir,
                               FILE *messages)
{
    const char *names[N_SUBCOMMANDS];
    char plots[EL_PATH_BYTES + 16];
    int n_drawn = 0;
    bool drawn;
    snprintf(plots, sizeof plots, "%s/plots", dir);
    for (int i = 0; i < n; i++) {
        EL_TRY(el_data_save(figures[i], document, plots, &drawn));
        if (drawn) names[n_drawn++] = figures[i]->name;
    }
    return n_drawn > 0 ? el_plot_draw(plots, names, n_drawn, NULL, messages) : EL_OK;
}

/* Of the subcommands' figures those whose data lie in `plots`, behind the `n` names that are there. Returns how many
 * there are then. */
static int add_subcommands(const char *plots, const char **names, int n)
{
    char data[EL_PATH_BYTES + 32];
    for (int i = 0; i < N_SUBCOMMANDS; i++) {
        snprintf(data, sizeof data, "%s/%s.dat", plots, of_subcommands[i]);
        if (access(data, R_OK) == 0) names[n++] = of_subcommands[i];
    }
    return n;
}

enum el_status el_plot_run(const char *dir, const struct el_plot_look *look, FILE *messages)
{
    const struct el_figure *const *list;
    const char *names[N_RUNS + N_SUBCOMMANDS];
    char path[EL_PATH_BYTES + 16], plots[EL_PATH_BYTES + 16];
    json_t *run = NULL;
    bool drawn;
    snprintf(path, sizeof path, "%s/results.json", dir);
    snprintf(plots, sizeof plots, "%s/plots", dir);
    int n = access(path, F_OK) != 0 ? add_subcommands(plots, names, 0) : 0;
    if (n > 0) return el_plot_draw(plots, names, n, look, messages); /* explain and data have no trials */
    if (access(dir, F_OK) != 0) return el_fail(EL_ERR_INVALID, "%s: there is no such folder", dir);
    EL_TRY(el_record_read(path, &run));
    enum el_status status = EL_OK;
    for (int i = 0, n_own = list_figures(run, &list); i < n_own && status == EL_OK; i++) {
        status = el_data_save(list[i], run, plots, &drawn);
        if (drawn || !list[i]->optional) names[n++] = list[i]->name;
    }
    json_decref(run);
    if (list == of_runs) n = add_subcommands(plots, names, n);
    return status == EL_OK ? el_plot_draw(plots, names, n, look, messages) : status;
}
