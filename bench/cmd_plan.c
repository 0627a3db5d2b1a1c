/* `evenload plan` (bench/plan). */
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/page/page.h"
#include "bench/plan/plan.h"
#include "bench/recover/recover.h"
#include "bench/report/report.h"
#include "bench/trial/machine.h"

static const char *const DEFAULT_MACHINE = "h100-sxm";
enum { N_TRIES = 2, TRIED_MAX = 512 }; /* more devices, if nothing fits */

static int64_t count_fits(const json_t *rows)
{
    int64_t n = 0;
    EL_EACH(row, rows) n += json_is_true(json_object_get(row, "fits"));
    return n;
}

/* The first larger number of devices on which something fits. */
static enum el_status find_more(const struct el_options *options, json_t *document)
{
    struct el_options run;
    double least = INFINITY;
    int n = options->sizes.v[0];
    EL_EACH(row, json_object_get(document, "rows")) least = fmin(least, el_json_number(row, "least_bytes"));
    while (2 * n <= TRIED_MAX && least * options->sizes.v[0] / (2 * n) > (double)options->device_mem_bytes) n *= 2;
    el_json_put(document, "would_fit", json_null());
    for (int i = 0; i < N_TRIES && 2 * n <= TRIED_MAX; i++) {
        json_t *rows;
        n *= 2;
        el_plan_options(options, n, &run);
        EL_TRY(el_plan_rows(&run, false, &rows));
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

static enum el_status make_document(const struct el_options *options, json_t **document_p)
{
    const int n_devices = options->sizes.v[0];
    struct el_options run;
    json_t *rows;
    el_plan_options(options, n_devices, &run);
    EL_TRY(el_plan_rows(&run, false, &rows));
    *document_p = el_json_of(EL_KEY("devices", n_devices),
                             EL_KEY("global_batch", run.batches[0] * (run.batch_is_per_device ? n_devices : 1)),
                             EL_KEY("fit", count_fits(rows)), EL_KEY("rows", rows));
    enum el_status status = EL_OK;
    if (count_fits(rows) == 0)
        status = find_more(options, *document_p);
    else
        status = el_plan_detail(&run, true, json_array_get(rows, 0));
    if (status != EL_OK) json_decref(*document_p);
    return status;
}

static enum el_status put_head(const struct el_options *options, const char *shape, json_t **document_p)
{
    struct el_options run;
    struct el_machine machine;
    char optimizer[EL_CHOICE_BYTES], precision[EL_CHOICE_BYTES];
    char batch[96];
    json_t *rest = *document_p;
    EL_TRY(el_machine_read(options->machine, &machine));
    el_plan_options(options, options->sizes.v[0], &run);
    const char *dtype = run.train.model.precision == EL_PRECISION_FULL ? el_dtype_name(run.train.dtype) : "bf16";
    if (options->n_batches && !options->batch_is_per_device)
        snprintf(batch, sizeof batch, "global batch %lld on all of them", (long long)run.batches[0]);
    else
        snprintf(batch, sizeof batch, "%lld sample%s per device, so that the global batch grows",
                 (long long)(options->n_batches ? run.batches[0] : 1),
                 options->n_batches && run.batches[0] > 1 ? "s" : "");
    *document_p =
        el_json_of(EL_KEY("schema", 1), EL_KEY("command", "plan"), EL_KEY("model", (const char *)run.train.model.name),
                   EL_KEY("parameters", json_incref(el_json_at(rest, "rows.0.parameters"))),
                   EL_KEY("shape", el_json_filled(shape)), EL_KEY("sizes", sizes_of(&run)),
                   EL_KEY("dtype", el_dtype_name(run.train.dtype)),
                   EL_KEY("precision", el_option_choice("precision", (int)run.train.model.precision, precision)),
                   EL_KEY("optimizer", el_option_choice("optimizer", (int)run.train.optimizer, optimizer)),
                   EL_KEY("device_mem_bytes", run.device_mem_bytes), EL_KEY("batch", (const char *)batch),
                   EL_KEY("machine", *options->machine ? (const char *)machine.name : NULL),
                   EL_KEY("devices_per_host", json_integer(machine.devices_per_host)),
                   EL_KEY("products_known", json_boolean(el_machine_knows_products(&machine, dtype))));
    json_object_update(*document_p, rest);
    json_decref(rest);
    return EL_OK;
}

/* Usual defaults for training large models. */
static void fill_in(struct el_options *options)
{
    const bool typed = el_option_given(options, "dtype") || el_option_given(options, "precision");
    if (!typed && el_model_size_row(el_model_find(options->train.model.name), "heads"))
        options->train.model.precision = EL_PRECISION_BF16_MIXED;
    if (!*options->machine) snprintf(options->machine, sizeof options->machine, "%s", DEFAULT_MACHINE);
    if (!strcmp(options->machine, "none")) *options->machine = 0;
}

enum el_status el_cmd_plan(struct el_options *options, int *exit_status_p)
{
    char shape[EL_PLAN_SHAPE_BYTES] = "";
    const bool several = options->sizes.n > 1;
    json_t *document;
    mallopt(M_MMAP_THRESHOLD, INT_MAX); /* reuses memory from row to row without clearing pages again */
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    if (options->n_batches > 1) return el_fail(EL_ERR_INVALID, "--batch: 'plan' takes one");
    if (*options->out && !several)
        return el_fail(EL_ERR_INVALID, "--out: of several numbers of devices: give --devices 8..%d, say, or --json",
                       64 * options->sizes.v[0]);
    const bool chosen = !*options->machine;
    fill_in(options);
    if (*options->params) EL_TRY(el_plan_shape(options->params, &options->train.model, shape));
    EL_TRY(several ? el_plan_sizes(options, &document) : make_document(options, &document));
    enum el_status status = put_head(options, shape, &document);
    if (status == EL_OK) el_json_put(document, "machine_is_default", json_boolean(chosen && *options->machine));
    struct el_store store;
    if (status == EL_OK && *options->out) {
        status = el_store_create(options->out, "plan", &store);
        if (status == EL_OK) status = el_printed_show("plan", options, store.dir, document);
    } else if (status == EL_OK && options->json) {
        status = el_print_json(document, stdout);
    } else if (status == EL_OK) {
        (several ? el_plan_print_sizes : el_plan_print)(document, stdout);
    }
    const bool any = json_is_true(el_json_at(document, "rows.0.fits"));
    if (!any) *exit_status_p = EL_EXIT_TRIAL; /* as the dry run of what does not fit */
    json_decref(document);
    return status;
}
