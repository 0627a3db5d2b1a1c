/* The figures, and which ones a folder has. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/options/config.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"

static const struct el_figure *const of_runs[] = {&el_figure_memory,      &el_figure_throughput, &el_figure_step,
                                                  &el_figure_utilization, &el_figure_timeline,   &el_figure_stages,
                                                  &el_figure_accuracy};
enum { N_RUNS = sizeof of_runs / sizeof of_runs[0], NAME_BYTES = 32, OTHERS_MAX = 32 };

enum el_status el_plot_data(const json_t *run, const char *plots_dir)
{
    bool drawn;
    for (int i = 0; i < N_RUNS; i++) EL_TRY(el_data_save(of_runs[i], run, plots_dir, &drawn));
    return EL_OK;
}

enum el_status el_plot_figures(const struct el_figure *const *figures, int n, const json_t *document, const char *dir,
                               FILE *messages)
{
    const char *names[N_RUNS];
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

/* Subcommands' figures that have a script, and data in `plots`. */
static int find_others(const char *plots, char names[OTHERS_MAX][NAME_BYTES])
{
    static const char end[] = ".gnuplot";
    char scripts[EL_PATH_BYTES], data[EL_PATH_BYTES + 2 * NAME_BYTES];
    struct dirent **list = NULL;
    int n = 0, n_scripts = el_plot_scripts(scripts) ? scandir(scripts, &list, NULL, alphasort) : 0;
    for (int i = 0; i < n_scripts; i++) {
        const size_t length = strlen(list[i]->d_name);
        const bool fits = length > strlen(end) && length < NAME_BYTES + strlen(end) && n < OTHERS_MAX;
        if (fits && !strcmp(list[i]->d_name + length - strlen(end), end)) {
            snprintf(names[n], NAME_BYTES, "%.*s", (int)(length - strlen(end)), list[i]->d_name);
            snprintf(data, sizeof data, "%s/%s.dat", plots, names[n]);
            bool own = false;
            for (int r = 0; r < N_RUNS; r++) own = own || !strcmp(of_runs[r]->name, names[n]);
            if (!own && access(data, R_OK) == 0) n++;
        }
        free(list[i]);
    }
    free(list);
    return n;
}

enum el_status el_plot_run(const char *dir, const struct el_plot_look *look, FILE *messages)
{
    const char *names[N_RUNS + OTHERS_MAX];
    char others[OTHERS_MAX][NAME_BYTES];
    char path[EL_PATH_BYTES + 16], plots[EL_PATH_BYTES + 16];
    json_t *run = NULL;
    bool drawn;
    snprintf(path, sizeof path, "%s/results.json", dir);
    snprintf(plots, sizeof plots, "%s/plots", dir);
    const int n_others = find_others(plots, others);
    int n = 0;
    if (access(path, F_OK) != 0 && n_others > 0) { /* explain has no trials */
        for (; n < n_others; n++) names[n] = others[n];
        return el_plot_draw(plots, names, n, look, messages);
    }
    if (access(dir, F_OK) != 0) return el_fail(EL_ERR_INVALID, "%s: there is no such folder", dir);
    EL_TRY(el_record_read(path, &run));
    enum el_status status = EL_OK;
    for (int i = 0; i < N_RUNS && status == EL_OK; i++) {
        status = el_data_save(of_runs[i], run, plots, &drawn);
        if (drawn || !of_runs[i]->optional) names[n++] = of_runs[i]->name;
    }
    json_decref(run);
    for (int i = 0; i < n_others; i++) names[n++] = others[i];
    return status == EL_OK ? el_plot_draw(plots, names, n, look, messages) : status;
}

void el_say_not_drawn(enum el_status status, FILE *messages)
{
    if (status == EL_ERR_ABSENT && messages)
        fprintf(messages, "not drawn: %s\n", el_error_message());
    else if (status != EL_OK && status != EL_ERR_ABSENT)
        fprintf(stderr, "evenload: not drawn: %s\n", el_error_message());
}
