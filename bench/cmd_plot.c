/* `evenload plot DIR`. */
#include <string.h>

#include "bench/commands.h"
#include "bench/page/page.h"
#include "bench/plot/plot.h"

static enum el_status plot_document(const struct el_printed_kind *kind, const struct el_options *options)
{
    const char *names[EL_PRINTED_FIGURES_MAX];
    int n = 0;
    char path[EL_PATH_BYTES + 16], plots[EL_PATH_BYTES + 16];
    json_t *document;
    bool drawn;
    snprintf(path, sizeof path, "%s/%s", options->dir, kind->file);
    snprintf(plots, sizeof plots, "%s/plots", options->dir);
    EL_TRY(kind->read(path, &document));
    enum el_status status = EL_OK;
    for (int i = 0; kind->figures[i] && status == EL_OK; i++) {
        status = el_data_save(kind->figures[i], document, plots, &drawn);
        if (status == EL_OK && drawn) names[n++] = kind->figures[i]->name;
    }
    json_decref(document);
    if (status == EL_OK && n == 0) status = el_fail(EL_ERR_INVALID, "%s: nothing to draw", path);
    return status == EL_OK ? el_plot_draw(plots, names, n, &options->look, stdout) : status;
}

enum el_status el_cmd_plot(struct el_options *options, int *exit_status_p)
{
    (void)exit_status_p;
    if (!options->dir[0]) return el_fail(EL_ERR_INVALID, "plot: which run? give its folder: evenload plot results/...");
    const struct el_printed_kind *kind = el_printed_in(options->dir);
    bool own = kind && kind->figures[0] && strcmp(kind->file, "results.json") != 0;
    return own ? plot_document(kind, options) : el_plot_run(options->dir, &options->look, stdout);
}
