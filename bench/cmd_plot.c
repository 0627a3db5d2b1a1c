/* `evenload plot DIR`: the plots again, from the run's files alone. What is drawn is plot.h's business. */
#include <unistd.h>

#include "bench/comm/wire.h"
#include "bench/commands.h"
#include "bench/plot/plot.h"

/* A folder of `comm`, which has no trials: EL_ERR_ABSENT where it is none. */
static enum el_status plot_comm(const struct el_options *options)
{
    static const struct el_figure *const figures[] = {&el_figure_wire, &el_figure_pairs};
    const char *names[2];
    int n = 0;
    char path[EL_PATH_BYTES + 16], plots[EL_PATH_BYTES + 16];
    json_t *document;
    bool drawn;
    snprintf(path, sizeof path, "%s/comm.json", options->dir);
    snprintf(plots, sizeof plots, "%s/plots", options->dir);
    if (access(path, F_OK) != 0) return EL_ERR_ABSENT; /* no message: what follows says its own */
    EL_TRY(el_wire_read(path, &document));
    enum el_status status = EL_OK;
    for (int i = 0; i < 2 && status == EL_OK; i++) {
        status = el_data_save(figures[i], document, plots, &drawn);
        if (status == EL_OK && drawn) names[n++] = figures[i]->name;
    }
    json_decref(document);
    if (status == EL_OK && n == 0) status = el_fail(EL_ERR_INVALID, "%s: nothing to draw", path);
    return status == EL_OK ? el_plot_draw(plots, names, n, options->term, stdout) : status;
}

enum el_status el_cmd_plot(struct el_options *options, int *exit_status_p)
{
    (void)exit_status_p;
    if (!options->dir[0]) return el_fail(EL_ERR_INVALID, "plot: which run? give its folder: evenload plot results/...");
    enum el_status status = plot_comm(options);
    return status == EL_ERR_ABSENT ? el_plot_run(options->dir, options->term, stdout) : status;
}
