/* `evenload trace-stats DIR`: traces, or dumps of a job that hangs; `trace-stats A B`: the change between two jobs. */
#include "bench/base/jvalue.h"
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
    EL_TRY(el_traces_read(options->other, NULL, &b));
    enum el_status status = el_traces_difference(a, &b, &document);
    el_traces_free(&b);
    if (status == EL_OK) status = show_difference(options, document);
    json_decref(document);
    return status;
}

/* What --without and --merge add. */
static enum el_status add_asked(const struct el_options *options, const struct el_traces *traces, json_t *document)
{
    const json_t *job = json_object_get(document, "job");
    json_t *made = NULL;
    if (options->without[0]) {
        EL_TRY(el_traces_without(traces, job, options->without, &made));
        el_json_put(document, "without", made);
    }
    if (options->merge[0]) {
        EL_TRY(el_traces_merge(traces, job, options->merge, &made));
        el_json_put(document, "merged", made);
    }
    return EL_OK;
}

static enum el_status describe(const struct el_options *options, const struct el_traces *traces)
{
    json_t *document;
    EL_TRY(el_traces_document(traces, &document));
    struct el_store store = {.locked = false};
    enum el_status status = add_asked(options, traces, document);
    if (status == EL_OK && options->out[0]) status = el_store_create(options->out, "trace-stats", &store);
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
    const char *of_traces = options->out[0]       ? "--out draws"
                            : options->without[0] ? "--without replays"
                            : options->merge[0]   ? "--merge joins"
                                                  : NULL;
    enum el_status status =
        of_traces ? el_fail(EL_ERR_INVALID, "trace-stats: %s traces, not dumps of the flight recorder: leave it out",
                            of_traces)
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
    const bool asks = options->without[0] || options->merge[0];
    if (asks && options->other[0])
        return el_fail(EL_ERR_INVALID, "trace-stats: --without and --merge are of one job: give one folder");
    enum el_status status = options->other[0] ? EL_ERR_ABSENT : describe_dumps(options);
    if (status != EL_ERR_ABSENT) return status;
    EL_TRY(el_traces_read(options->dir, el_traces_named(options->without), &traces));
    status = options->other[0] ? compare(options, &traces) : describe(options, &traces);
    el_traces_free(&traces);
    return status;
}
