/* `evenload plot DIR`: the plots again, from the run's files alone. What is drawn is plot.h's business. */
#include <unistd.h>

#include "bench/comm/wire.h"
#include "bench/commands.h"
#include "bench/explain/explain.h"
#include "bench/plot/plot.h"

/* Folders of commands that make no trials: their document, and what is drawn of it. */
static const struct {
    const char *file;
    enum el_status (*read)(const char *path, json_t **document_p);
    const struct el_figure *figures[3]; /* ended by NULL */
} documents[] = {{"comm.json", el_wire_read, {&el_figure_wire, &el_figure_pairs, NULL}},
                 {"explain.json", el_explain_read, {&el_figure_explain, NULL}}};
enum { N_DOCUMENTS = sizeof documents / sizeof documents[0] };

/* EL_ERR_ABSENT, without a message, as what follows says its own: it is none of them. */
static enum el_status plot_document(const struct el_options *options)
{
    const char *names[3];
    int n = 0, at = 0;
    char path[EL_PATH_BYTES + 16], plots[EL_PATH_BYTES + 16];
    json_t *document;
    bool drawn, there = false;
    for (; at < N_DOCUMENTS && !there; at += !there) {
        snprintf(path, sizeof path, "%s/%s", options->dir, documents[at].file);
        there = access(path, F_OK) == 0;
    }
    if (!there) return EL_ERR_ABSENT;
    snprintf(plots, sizeof plots, "%s/plots", options->dir);
    EL_TRY(documents[at].read(path, &document));
    enum el_status status = EL_OK;
    const struct el_figure *const *figures = documents[at].figures;
    for (int i = 0; figures[i] && status == EL_OK; i++) {
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
    enum el_status status = plot_document(options);
    return status == EL_ERR_ABSENT ? el_plot_run(options->dir, options->term, stdout) : status;
}
