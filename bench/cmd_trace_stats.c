/* `evenload trace-stats DIR`: traces of PyTorch's profiler, each by itself and all of a job beside one another. The
 * arithmetic is profiles/kineto.h's and profiles/relate.h's. */
#include "bench/commands.h"
#include "bench/traces/traces.h"

enum el_status el_cmd_trace_stats(struct el_options *options, int *exit_status_p)
{
    struct el_traces traces;
    json_t *document = NULL;
    (void)exit_status_p;
    if (!options->dir[0])
        return el_fail(EL_ERR_INVALID, "trace-stats: which traces? give their folder: evenload trace-stats log/...");
    EL_TRY(el_traces_read(options->dir, &traces));
    enum el_status status = el_traces_document(&traces, &document);
    el_traces_free(&traces);
    if (status == EL_OK && options->json)
        status = el_print_json(document, stdout);
    else if (status == EL_OK)
        el_traces_print(document, stdout);
    json_decref(document);
    return status;
}
