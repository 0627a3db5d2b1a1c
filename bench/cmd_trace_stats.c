/* `evenload trace-stats DIR`: traces, or dumps of a job that hangs; `trace-stats A B`: the change between two jobs. */
#include "bench/commands.h"
#include "bench/page/page.h"
#include "bench/traces/flight.h"
#include "bench/traces/traces.h"

static enum el_status show_difference(const struct el_options *options, const json_t *document)
{
    struct el_store store = {.locked = false};
    if (options->out[0]) {
        EL_TRY(el_store_create(options->out, "explain", &store));
        return el_printed_show("explain", options, store.dir, document);
    }
    if (options->json) return el_print_json(document, stdout);
    el_difference_print(document, stdout);
    return EL_OK;
}

static enum el_status compare(const struct el_options *options, const struct el_traces *a)
{
    struct el_traces b;
    json_t *document = NULL;
    EL_TRY(el_traces_read(options->other, &b));
    enum el_status status = el_traces_difference(a, &b, &document);
    el_traces_free(&b);
    if (status == EL_OK) status = show_difference(options, document);
    json_decref(document);
    return status;
}

static enum el_status describe(const struct el_options *options, const struct el_traces *traces)
{
    json_t *document;
    EL_TRY(el_traces_document(traces, &document));
    struct el_store store = {.locked = false};
    enum el_status status = options->out[0] ? el_store_create(options->out, "trace-stats", &store) : EL_OK;
    if (status == EL_OK && options->out[0])
        status = el_printed_show("trace-stats", options, store.dir, document);
    else if (status == EL_OK && options->json)
        status = el_print_json(document, stdout);
    else if (status == EL_OK)
        el_traces_print(document, stdout);
    json_decref(document);
    return status;
}

/* EL_ERR_ABSENT: there are no dumps. */
static enum el_status describe_dumps(const struct el_options *options)
{
    struct el_flight flight;
    json_t *document;
    EL_TRY(el_flight_read(options->dir, &flight));
    enum el_status status = options->out[0] ? el_fail(EL_ERR_INVALID, "trace-stats: --out draws traces; dumps of the "
                                                                      "flight recorder have no picture: leave it out")
                                            : el_flight_document(&flight, &document);
    el_flight_free(&flight);
    if (status != EL_OK) return status;
    if (options->json)
        status = el_print_json(document, stdout);
    else
        el_flight_print(document, stdout);
    json_decref(document);
    return status;
}

enum el_status el_cmd_trace_stats(struct el_options *options, int *exit_status_p)
{
    struct el_traces traces;
    (void)exit_status_p;
    if (!options->dir[0])
        return el_fail(EL_ERR_INVALID, "trace-stats: which traces? give their folder: evenload trace-stats log/...");
    enum el_status status = options->other[0] ? EL_ERR_ABSENT : describe_dumps(options);
    if (status != EL_ERR_ABSENT) return status;
    EL_TRY(el_traces_read(options->dir, &traces));
    status = options->other[0] ? compare(options, &traces) : describe(options, &traces);
    el_traces_free(&traces);
    return status;
}
