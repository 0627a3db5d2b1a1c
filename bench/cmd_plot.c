/* `evenload plot DIR`: the plots again, from the run's files alone. What is drawn is plot.h's business. */
#include "bench/commands.h"
#include "bench/plot/plot.h"

int el_cmd_plot(const struct el_options *options, int argc, char **argv)
{
    (void)argc, (void)argv;
    if (!options->dir[0])
        return el_exit_failed(el_fail(EL_ERR_INVALID, "plot: which run? give its folder: evenload plot results/..."));
    enum el_status status = el_plot_run(options->dir, options->term, stdout);
    return status == EL_OK ? el_exit_flush(0) : el_exit_failed(status);
}
