/* Each mode's best row by number of devices, and a row's details. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/plan/plan.h"
#include "bench/trial/machine.h"
#include "bench/trial/trial.h"
#include "profiles/intervals.h"

static const char *const OF_TOKENS = "tokens_per_s", *const OF_SAMPLES = "samples_per_s";

static enum el_status add_best(const struct el_options *run, const json_t *rows, json_t *best)
{
    json_t *seen = json_object();
    enum el_status status = EL_OK;
    EL_EACH(row, rows) {
        const char *mode = el_json_text(row, "mode", "?");
        if (status != EL_OK || !json_is_true(json_object_get(row, "fits")) || json_object_get(seen, mode)) continue;
        json_object_set_new(seen, mode, json_true());
        el_json_put_all(row, EL_KEY("devices", run->n_devices),
                        EL_KEY("global_batch", run->batches[0] * (run->batch_is_per_device ? run->n_devices : 1)));
        status = el_plan_detail(run, false, row);
        json_array_append(best, row);
    }
    json_decref(seen);
    return status;
}

enum el_status el_plan_sizes(const struct el_options *options, json_t **document_p)
{
    json_t *best = json_array(), *none = json_array();
    enum el_status status = EL_OK;
    for (int i = 0; i < options->sizes.n && status == EL_OK; i++) {
        const size_t before = json_array_size(best);
        struct el_options run;
        json_t *rows;
        el_plan_options(options, options->sizes.v[i], &run);
        status = el_plan_rows(&run, true, &rows);
        if (status != EL_OK) break;
        status = add_best(&run, rows, best);
        json_decref(rows);
        if (json_array_size(best) == before) json_array_append_new(none, json_integer(run.n_devices));
    }
    if (status == EL_OK)
        *document_p = el_json_of(EL_KEY("rows", best), EL_KEY("none_fits", none));
    else
        json_decref(best), json_decref(none);
    return status;
}

bool el_plan_is(const json_t *document)
{
    return el_json_is(document, "command", "plan") && el_json_whole(document, "schema") == 1;
}

enum el_status el_plan_csv(const void *document, FILE *out)
{
    static const char *const texts[] = {"mode", "mesh"}, *const numbers[] = {
                                                             "devices",         "global_batch", "micro",
                                                             "accumulate",      "step_ms",      OF_SAMPLES,
                                                             OF_TOKENS,         "mfu_pct",      "exposed_ms",
                                                             "bubble_pct",      "peak_bytes",   "sent_bytes",
                                                             "checkpoint_bytes"};
    enum { N_TEXTS = sizeof texts / sizeof texts[0], N_NUMBERS = sizeof numbers / sizeof numbers[0] };
    for (int i = 0; i < N_TEXTS; i++) fprintf(out, "%s,", texts[i]);
    for (int i = 0; i < N_NUMBERS; i++) fprintf(out, "%s%s", numbers[i], i + 1 < N_NUMBERS ? "," : "\n");
    EL_EACH(row, json_object_get(document, "rows")) {
        for (int i = 0; i < N_TEXTS; i++) fprintf(out, "\"%s\",", el_json_text(row, texts[i], ""));
        for (int i = 0; i < N_NUMBERS; i++) {
            char text[32];
            const double value = el_json_number(row, numbers[i]);
            fprintf(out, "%s%s", isnan(value) ? "" : el_json_written(value, text), i + 1 < N_NUMBERS ? "," : "\n");
        }
    }
    return EL_OK;
}

static const double MARGIN = 1.3; /* left and right of the points */
static const double ALIKE = 0.01; /* of the highest rate: nearer lines cover each other */
enum { BARS = 12 };

static double per_device(const json_t *row, const char *of)
{
    return el_json_number(row, of) / el_json_number(row, "devices");
}

struct lines {
    const json_t *rows;
    const char *of, *names[EL_LIST_MAX];
    int n;
    double high;
};

static const json_t *find(const json_t *rows, const char *mode, double devices)
{
    EL_EACH(row, rows)
        if (el_json_is(row, "mode", mode) && el_json_number(row, "devices") == devices) return row;
    return NULL;
}

static int count_over(const struct lines *lines, int k)
{
    int over = 0;
    for (int i = k + 1; i < lines->n; i++) {
        bool alike = true;
        EL_EACH(row, lines->rows) {
            const json_t *other = find(lines->rows, lines->names[i], el_json_number(row, "devices"));
            if (el_json_is(row, "mode", lines->names[k]) && other)
                alike &= fabs(per_device(row, lines->of) - per_device(other, lines->of)) < ALIKE * lines->high;
        }
        over += alike;
    }
    return over;
}

static void write_head(const json_t *document, const struct lines *lines, bool any_over, FILE *file)
{
    char title[EL_TITLE_BYTES], foot[EL_TITLE_BYTES], text[EL_FIGURE_BYTES];
    struct el_data_names modes = {"", ""};
    double least, most;
    el_json_range(lines->rows, "devices", &least, &most);
    for (int k = 0; k < lines->n; k++) el_data_add_name(modes.present, lines->names[k]);
    snprintf(title, sizeof title, "%s, %s million parameters, %s: predicted", el_json_text(document, "model", "?"),
             el_text_figure(el_json_number(document, "parameters") / 1e6, text),
             el_data_label(el_json_text(document, "machine", "?")).text);
    snprintf(foot, sizeof foot, "Each mode in its best mesh. Dashed: the best on %.0f devices.%s", least,
             any_over ? " A wide line lies under one of the same rate." : "");
    el_data_about(file, &(struct el_data_about){title, &modes, most * MARGIN, BARS, foot},
                  ", left end, highest rate, its unit, the first number's best");
    fprintf(file, "\t%.6g\t%.6g\t%s\t%.6g\n", least / MARGIN, lines->high,
            lines->of == OF_TOKENS ? "tokens/s" : "samples/s", per_device(json_array_get(lines->rows, 0), lines->of));
    el_data_looks(file, &modes);
    el_data_block(file, "devices, label", "counts");
    EL_EACH(row, lines->rows)
        if (!el_data_seen(lines->rows, row_at.i, "devices"))
            fprintf(file, "%.0f\t%.0f\n", el_json_number(row, "devices"), el_json_number(row, "devices"));
}

static enum el_status write(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    const json_t *rows = json_object_get(document, "rows");
    struct lines lines = {.rows = rows};
    int over[EL_LIST_MAX];
    bool any_over = false;
    (void)figure;
    lines.of = isnan(el_json_number(json_array_get(rows, 0), OF_TOKENS)) ? OF_SAMPLES : OF_TOKENS;
    EL_EACH(row, rows) {
        lines.high = fmax(lines.high, per_device(row, lines.of));
        if (!el_data_seen(rows, row_at.i, "mode") && lines.n < EL_LIST_MAX)
            lines.names[lines.n++] = el_json_text(row, "mode", "?");
    }
    *any_p = lines.high > 0;
    if (!*any_p) return EL_OK;
    for (int k = 0; k < lines.n; k++) any_over |= (over[k] = count_over(&lines, k)) > 0;
    write_head(document, &lines, any_over, file);
    for (int k = 0; k < lines.n; k++) {
        el_data_block(file, "devices, rate of a device, lines over it", "points of %s", lines.names[k]);
        EL_EACH(row, rows) {
            if (el_json_is(row, "mode", lines.names[k]))
                fprintf(file, "%.4g\t%.6g\t%d\n", el_json_number(row, "devices"), per_device(row, lines.of), over[k]);
        }
    }
    return EL_OK;
}

const struct el_figure el_figure_plan = {.name = "plan", .write = write, .optional = true};

/* Parts and sensitivities: predicted again while observing each issued device, and on machines with one worse
 * figure. */

enum { MACHINES_MAX = 32 };

struct sums {
    const struct el_machine *machine;
    struct el_intervals comm, compute, *stages; /* per device: not bubble */
    int n;
    struct el_span window; /* first forward to last backward */
    double peak_ns, exposed_ns;
};

static void add_op(struct sums *sums, struct el_intervals *stage, const struct el_op_info *op, struct el_span span)
{
    const bool passes = op->phase == EL_PHASE_FORWARD || op->phase == EL_PHASE_BACKWARD;
    if (op->link == EL_LINK_RECEIVE) { /* idle until the sender sends, which takes as long there */
        const int64_t sent_ns = span.end_ns - (int64_t)el_machine_op_ns(sums->machine, op, op->device, 1);
        if (sent_ns > span.begin_ns) span.begin_ns = sent_ns;
    }
    if (op->op_class == EL_CLASS_COMPUTE) el_intervals_add(&sums->compute, span);
    if (op->op_class == EL_CLASS_COMM || op->peer >= 0) el_intervals_add(&sums->comm, span);
    if (op->phase != EL_PHASE_DATA && op->phase != EL_PHASE_H2D && op->phase != EL_PHASE_OPTIMIZER)
        el_intervals_add(stage, span);
    if (!passes) return;
    if (!op->again) sums->peak_ns += op->flops / el_machine_flops_per_s(sums->machine, op->kernel.dtype) * 1e9;
    if (span.begin_ns < sums->window.begin_ns) sums->window.begin_ns = span.begin_ns;
    if (span.end_ns > sums->window.end_ns) sums->window.end_ns = span.end_ns;
}

static void take_step(void *context, const struct el_step_event *event)
{
    struct sums *sums = context;
    struct el_intervals *stages = realloc(sums->stages, (size_t)(sums->n + 1) * sizeof *stages);
    if (!stages) return;
    sums->stages = stages;
    struct el_intervals *stage = &stages[sums->n++];
    *stage = (struct el_intervals){.n = 0};
    el_intervals_clear(&sums->comm);
    el_intervals_clear(&sums->compute);
    for (int i = 0; i < event->n_ops; i++) add_op(sums, stage, &event->ops[i], event->spans[i]);
    el_intervals_unite(stage);
    el_intervals_unite(&sums->comm);
    el_intervals_unite(&sums->compute);
    sums->exposed_ns += (double)(el_intervals_measure(&sums->comm) - el_intervals_common(&sums->comm, &sums->compute));
}

static double bubble_pct(const struct sums *sums)
{
    struct el_intervals window = {.n = 0};
    double idle_ns = 0, window_ns = (double)(sums->window.end_ns - sums->window.begin_ns);
    el_intervals_add(&window, sums->window);
    el_intervals_unite(&window);
    for (int i = 0; i < sums->n; i++) idle_ns += window_ns - (double)el_intervals_common(&window, &sums->stages[i]);
    el_intervals_free(&window);
    return 100 * idle_ns / (window_ns * sums->n);
}

static int by_change(const void *a, const void *b)
{
    const double x = el_json_number(*(json_t *const *)a, "longer_pct"),
                 y = el_json_number(*(json_t *const *)b, "longer_pct");
    return (x < y) - (x > y);
}

static json_t *sensitivities(const struct el_machine *machine, const double *step_ns, int n)
{
    json_t *changes[MACHINES_MAX], *list = json_array();
    for (int i = 1; i < n; i++) {
        struct el_machine worse = *machine;
        changes[i] = el_json_of(EL_KEY("figure", el_machine_worsen(&worse, i - 1)), EL_KEY("step_ms", step_ns[i] / 1e6),
                                EL_KEY("longer_pct", 100 * (step_ns[i] / step_ns[0] - 1)));
    }
    qsort(changes + 1, (size_t)(n - 1), sizeof *changes, by_change);
    for (int i = 1; i < n; i++) json_array_append_new(list, changes[i]);
    return list;
}

static enum el_status predict(const struct el_trial *trial, const struct el_machine *machines, int n, json_t *row)
{
    struct sums sums = {.machine = machines, .window = {INT64_MAX, INT64_MIN}};
    const struct el_probe probe = {.context = &sums, .step = take_step};
    const struct el_predict_spec spec = {.machines = machines, .n_machines = n, .probe = &probe};
    double step_ns[MACHINES_MAX];
    struct el_memory_forecast *forecasts = calloc((size_t)trial->n_devices, sizeof *forecasts);
    if (!forecasts) return el_fail_errno("forecasts of %d devices", trial->n_devices);
    enum el_status status = el_train_predict(&trial->train, el_kernels_cpu(), &spec, forecasts, step_ns);
    if (status == EL_OK) {
        el_json_put_all(row, EL_KEY("mfu_pct", 100 * sums.peak_ns / (step_ns[0] * sums.n)),
                        EL_KEY("exposed_ms", sums.exposed_ns / sums.n / 1e6),
                        EL_KEY("bubble_pct", el_mode_cuts(trial->train.mode) ? bubble_pct(&sums) : NAN));
        if (n > 1) el_json_put(row, "sensitivities", sensitivities(machines, step_ns, n));
    }
    for (int i = 0; i < sums.n; i++) el_intervals_free(&sums.stages[i]);
    free(sums.stages);
    el_intervals_free(&sums.comm);
    el_intervals_free(&sums.compute);
    free(forecasts);
    return status;
}

enum el_status el_plan_detail(const struct el_options *run, bool rates, json_t *row)
{
    struct el_machine machines[MACHINES_MAX];
    struct el_options options;
    struct el_trial_set set;
    int n = 1;
    if (!*run->machine) return EL_OK;
    EL_TRY(el_machine_read(run->machine, machines));
    for (; rates && n < MACHINES_MAX; n++) {
        machines[n] = machines[0];
        if (!el_machine_worsen(&machines[n], n - 1)) break;
    }
    el_plan_row_options(run, row, &options);
    EL_TRY(el_trials_resolve(EL_CMD_RUN, &options, &set));
    enum el_status status = predict(set.trials, machines, n, row);
    el_trials_free(&set);
    return status;
}

/* Of one micro-batch. */
struct floor {
    const struct el_machine *machine;
    const struct el_layout *layout;
    double passes_ns[EL_SIMULATED_MAX], update_ns[EL_SIMULATED_MAX]; /* by stage */
};

static void take_least(void *context, const struct el_step_event *event)
{
    struct floor *floor = context;
    double passes_ns = 0, update_ns = 0;
    for (int i = 0; i < event->n_ops; i++) {
        const struct el_op_info *op = &event->ops[i];
        const double ns = op->op_class == EL_CLASS_COMPUTE && op->stream == 0
                              ? el_machine_op_ns(floor->machine, op, op->device, 1)
                              : 0;
        if (op->phase == EL_PHASE_FORWARD || op->phase == EL_PHASE_BACKWARD) passes_ns += ns;
        if (op->phase == EL_PHASE_OPTIMIZER) update_ns += ns;
    }
    const int stage = el_layout_spot(floor->layout, event->ops[0].device).at[EL_AXIS_STAGE];
    floor->passes_ns[stage] = fmin(floor->passes_ns[stage], passes_ns);
    floor->update_ns[stage] = fmin(floor->update_ns[stage], update_ns);
}

enum el_status el_plan_floor(const struct el_trial *one, const struct el_machine *machine, int64_t micro,
                             double *step_ms_p)
{
    struct el_layout layout;
    double step_ns = NAN, least_ns = 0, before_ns = 0;
    el_layout_of(&one->train, 1, &layout);
    struct floor *floor = malloc(sizeof *floor);
    struct el_memory_forecast *forecasts = calloc((size_t)one->n_devices, sizeof *forecasts);
    enum el_status status = floor && forecasts ? EL_OK : el_fail_errno("forecasts of %d devices", one->n_devices);
    if (status == EL_OK) {
        floor->machine = machine;
        floor->layout = &layout;
        for (int s = 0; s < layout.n[EL_AXIS_STAGE]; s++) floor->passes_ns[s] = floor->update_ns[s] = INFINITY;
        const struct el_probe probe = {.context = floor, .step = take_least};
        const struct el_predict_spec spec = {
            .machines = machine, .n_machines = 1, .limit_bytes = one->device_mem_bytes, .probe = &probe};
        status = el_train_predict(&one->train, el_kernels_cpu(), &spec, forecasts, &step_ns);
    }
    for (int s = 0; s < layout.n[EL_AXIS_STAGE] && status == EL_OK; s++) {
        least_ns = fmax(least_ns, before_ns + (double)micro * floor->passes_ns[s]);
        before_ns += floor->passes_ns[s];
    }
    if (status == EL_OK && !isnan(step_ns)) *step_ms_p = (least_ns + floor->update_ns[0]) / 1e6;
    free(floor);
    free(forecasts);
    return status;
}
