/* `evenload plot DIR`. */
#include "bench/commands.h"
#include "bench/page/page.h"

enum el_status el_cmd_plot(struct el_options *options, int *exit_status_p)
{
    (void)exit_status_p;
    if (!options->dir[0]) return el_fail(EL_ERR_INVALID, "plot: which run? give its folder: evenload plot results/...");
    return el_page_plot(options->dir, &options->look, stdout);
}
