/* `evenload plan`: in which modes and meshes does a model fit, and which is best? By forecast; nothing is run. What a
 * row is, and how it comes, is bench/plan's. */
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/commands.h"
#include "bench/plan/plan.h"
#include "bench/report/report.h"
#include "bench/trial/machine.h"

enum { N_TRIES = 2, TRIED_MAX = 512 }; /* where nothing fits: of more devices */

/* Options of `run` on so many simulated devices; a sample each where no batch is given. */
static void run_options(const struct el_options *options, int n_devices, struct el_options *run)
{
    el_options_defaults(EL_CMD_RUN, run);
    run->train.model = options->train.model;
    run->train.dtype = options->train.dtype;
    run->train.optimizer = options->train.optimizer;
    run->train.foreach = options->train.foreach;
    run->device_mem_bytes = options->device_mem_bytes;
    memcpy(run->machine, options->machine, sizeof run->machine);
    snprintf(run->data, sizeof run->data, "dummy");
    run->batch_is_per_device = options->batch_is_per_device;
    if (options->n_batches) memcpy(run->batches, options->batches, sizeof run->batches);
    if (options->n_batches == 0) run->batches[0] = n_devices;
    run->n_batches = options->n_batches > 1 ? options->n_batches : 1;
    run->n_devices = n_devices;
    for (int i = 0; i < n_devices && i < EL_MEMBERS_MAX; i++)
        run->devices[i] = (struct el_device_name){.backend = "sim", .index = i};
}

static int64_t count_fits(const json_t *rows)
{
    int64_t n = 0;
    EL_EACH(row, rows) n += json_is_true(json_object_get(row, "fits"));
    return n;
}

/* Where nothing fits: the first of the next numbers of devices, among which the state could be divided, on which
 * something does. */
static enum el_status find_more(const struct el_options *options, json_t *document)
{
    struct el_options run;
    double least = INFINITY;
    int n = options->n_devices;
    EL_EACH(row, json_object_get(document, "rows")) least = fmin(least, el_json_number(row, "least_bytes"));
    while (2 * n <= TRIED_MAX && least * options->n_devices / (2 * n) > (double)options->device_mem_bytes) n *= 2;
    el_json_put(document, "would_fit", json_null());
    for (int i = 0; i < N_TRIES && 2 * n <= TRIED_MAX; i++) {
        json_t *rows;
        n *= 2;
        run_options(options, n, &run);
        EL_TRY(el_plan_rows(&run, &rows));
        if (count_fits(rows) > 0)
            el_json_put(document, "would_fit",
                        el_json_of(EL_KEY("devices", n), EL_KEY("row", json_incref(json_array_get(rows, 0)))));
        json_decref(rows);
        if (json_is_object(json_object_get(document, "would_fit"))) break;
    }
    el_json_put(document, "tried_devices", json_integer(n));
    return EL_OK;
}

static json_t *sizes_of(const struct el_options *run)
{
    json_t *echo = el_options_echo(EL_CMD_RUN, run), *sizes = json_object();
    const struct el_model_size *size = el_model_find(run->train.model.name)->sizes;
    for (; size->name; size++)
        if (json_object_get(echo, size->name)) json_object_set(sizes, size->name, json_object_get(echo, size->name));
    json_decref(echo);
    return sizes;
}

static enum el_status make_document(const struct el_options *options, const char *shape, json_t **document_p)
{
    struct el_options run;
    struct el_machine machine;
    char optimizer[EL_CHOICE_BYTES];
    json_t *rows;
    EL_TRY(el_machine_read(options->machine, &machine));
    run_options(options, options->n_devices, &run);
    EL_TRY(el_plan_rows(&run, &rows));
    *document_p = el_json_of(EL_KEY("model", (const char *)run.train.model.name),
                             EL_KEY("parameters", json_incref(json_object_get(json_array_get(rows, 0), "parameters"))),
                             EL_KEY("shape", el_json_filled(shape)), EL_KEY("sizes", sizes_of(&run)),
                             EL_KEY("dtype", el_dtype_name(run.train.dtype)),
                             EL_KEY("optimizer", el_option_choice("optimizer", (int)run.train.optimizer, optimizer)),
                             EL_KEY("devices", run.n_devices), EL_KEY("device_mem_bytes", run.device_mem_bytes),
                             EL_KEY("global_batch", run.batches[0] * (run.batch_is_per_device ? run.n_devices : 1)),
                             EL_KEY("machine", *options->machine ? (const char *)machine.name : NULL),
                             EL_KEY("fit", count_fits(rows)), EL_KEY("rows", rows));
    enum el_status status = count_fits(rows) == 0 ? find_more(options, *document_p) : EL_OK;
    if (status != EL_OK) json_decref(*document_p);
    return status;
}

enum el_status el_cmd_plan(struct el_options *options, int *exit_status_p)
{
    char shape[EL_PLAN_SHAPE_BYTES] = "";
    json_t *document;
    mallopt(M_MMAP_THRESHOLD, INT_MAX); /* what one row frees the next one takes: no page is cleared twice */
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    if (options->n_batches > 1) return el_fail(EL_ERR_INVALID, "--batch: 'plan' takes one");
    if (*options->params) EL_TRY(el_plan_shape(options->params, &options->train.model, shape));
    EL_TRY(make_document(options, shape, &document));
    enum el_status status = EL_OK;
    if (options->json)
        status = el_print_json(document, stdout);
    else
        el_plan_print(document, stdout, el_report_colour(stdout, getenv("NO_COLOR") != NULL));
    if (el_json_whole(document, "fit") == 0) *exit_status_p = EL_EXIT_TRIAL; /* as the dry run of what does not fit */
    json_decref(document);
    return status;
}
