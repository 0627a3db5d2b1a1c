/* Forecasts every possible mode and mesh. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/plan/plan.h"
#include "bench/record/record.h"
#include "bench/trial/machine.h"
#include "bench/trial/trial.h"
#include "runtime/layout/schedule.h"
#include "runtime/state/state.h"

static const double NEAR = 0.15;
/* GPT-2's vocabulary, padded for division over devices as in Megatron-LM; GPT-3's context. */
static const int64_t VOCAB = 50304, SEQ = 2048;

/* GPT-3: Brown et al., 2020, table 2.1, except what does not divide there (heads of 1.3B, width of 13B). OPT: Zhang et
 * al., 2022. Llama: Touvron et al., 2023. MT-NLG: Smith et al., 2022. */
static const struct shape {
    const char *name;
    int64_t layers, embed, heads;
} shapes[] = {{"GPT-3 125M", 12, 768, 12},   {"GPT-3 350M", 24, 1024, 16},    {"GPT-3 760M", 24, 1536, 16},
              {"GPT-3 1.3B", 24, 2048, 16},  {"GPT-3 2.7B", 32, 2560, 32},    {"GPT-3 6.7B", 32, 4096, 32},
              {"GPT-3 13B", 40, 5120, 40},   {"OPT 30B", 48, 7168, 56},       {"Llama 70B", 80, 8192, 64},
              {"GPT-3 175B", 96, 12288, 96}, {"MT-NLG 530B", 105, 20480, 128}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

/* "6.7B" */
static enum el_status read_number(const char *text, double *number_p)
{
    static const char letters[] = "KMBT";
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    const char *letter = *end ? strchr(letters, *end & ~0x20) : NULL;
    if (letter) number *= pow(1000, (double)(letter - letters) + 1);
    if (errno || end == text || (*end && (!letter || end[1])) || !(number >= 1e6 && number <= 1e13))
        return el_fail(EL_ERR_INVALID, "--params %.40s: must be a number of parameters from 1M to 10T, like 7B", text);
    *number_p = number;
    return EL_OK;
}

static double block_count(double embed)
{
    return 12 * embed * embed + 13 * embed;
}

static double count(const struct shape *shape, double vocab, double seq)
{
    const double embed = (double)shape->embed;
    return (double)shape->layers * block_count(embed) + (vocab + seq + 2) * embed;
}

static int64_t set_if_not_given(struct el_model_config *model, const char *name, int64_t value)
{
    if (!el_model_values(model, name)) el_model_set(model, name, &value, 1);
    return el_model_size(model, name);
}

enum el_status el_plan_shape(const char *params, struct el_model_config *model, char words[EL_PLAN_SHAPE_BYTES])
{
    double wanted = 0;
    if (!el_model_size_row(el_model_find(model->name), "heads"))
        return el_fail(EL_ERR_INVALID, "--params: model %s has no layers to choose by it: leave it out", model->name);
    EL_TRY(read_number(params, &wanted));
    const double vocab = (double)set_if_not_given(model, "vocab", VOCAB),
                 seq = (double)set_if_not_given(model, "seq", SEQ);
    struct shape shape = shapes[0];
    for (int i = 1; i < N_SHAPES; i++)
        if (fabs(log(count(&shapes[i], vocab, seq) / wanted)) < fabs(log(count(&shape, vocab, seq) / wanted)))
            shape = shapes[i];
    const bool near = fabs(count(&shape, vocab, seq) / wanted - 1) <= NEAR;
    if (!near) {
        const double embed = (double)shape.embed;
        shape.layers = llround((wanted - (vocab + seq + 2) * embed) / block_count(embed));
    }
    if (shape.layers < 1 || shape.layers > 1000)
        return el_fail(EL_ERR_INVALID,
                       "--params %.40s: no shape is near that (125M to 530B): give --layers, --embed and --heads",
                       params);
    set_if_not_given(model, "layers", shape.layers);
    set_if_not_given(model, "embed", shape.embed);
    set_if_not_given(model, "heads", shape.heads);
    snprintf(words, EL_PLAN_SHAPE_BYTES, "%s %s", near ? "as" : "as wide as", shape.name);
    return EL_OK;
}

/* Other modes are a baseline, or inferior to these. */
static const char *const modes[] = {"ddp", "zero1", "zero2", "zero3", "tp", "ep", "pipeline"};
enum { N_MODES = sizeof modes / sizeof modes[0], MICRO_MAX = 256 };

struct plan {
    const struct el_options *run;
    struct el_model_config model;     /* resolved */
    const struct el_machine *machine; /* NULL: none */
    bool best;                        /* drop rows that cannot be their mode's best */
    struct el_memory_forecast *forecasts;
    json_t *rows, *later;    /* tried; one mode's, to be tried */
    struct el_error refused; /* why the first mesh is impossible */
};

void el_plan_options(const struct el_options *options, int n_devices, struct el_options *run)
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

/* Over stages the mean. */
static double least_bytes(const struct el_train_config *config, const struct el_layout *layout, double param_count)
{
    struct el_state_row row;
    double bytes = 0;
    for (int what = EL_STATE_PARAM; what < EL_STATE_COUNT; what++) {
        const bool is_there = el_state_row(config, (enum el_state)what, &row) || what == EL_STATE_GRAD;
        if (!is_there || row.of_buffers) continue;
        const bool whole = what == EL_STATE_GRAD && config->zero == 1; /* though it keeps a part */
        const double parts = layout->split & 1U << what && !whole ? layout->n[EL_AXIS_SHARD] : 1;
        bytes += param_count * (double)el_dtype_bytes(row.dtype) / parts;
    }
    return bytes / el_layout_per_copy(layout);
}

static double state_bytes(const struct el_train_config *config, double param_count)
{
    struct el_state_row row;
    double bytes = 0;
    for (int what = EL_STATE_PARAM; what < EL_STATE_BUFFER; what++)
        if (what != EL_STATE_GRAD && el_state_row(config, (enum el_state)what, &row))
            bytes += param_count * (double)el_dtype_bytes(row.dtype);
    return bytes;
}

static void put_forecast(json_t *row, const struct el_trial *trial, const struct el_memory_forecast *forecasts,
                         double step_ns)
{
    const double samples_per_s = (double)trial->train.global_batch / (step_ns * 1e-9);
    const int64_t limit = trial->device_mem_bytes, tokens = el_trial_tokens(trial);
    uint64_t sent = 0;
    size_t kept = 0;
    int fullest = 0;
    for (int d = 0; d < trial->n_devices; d++) {
        if (forecasts[d].ledger.peak_bytes > forecasts[fullest].ledger.peak_bytes) fullest = d;
        if (forecasts[d].sent_bytes > sent) sent = forecasts[d].sent_bytes;
        if (forecasts[d].kept_bytes > kept) kept = forecasts[d].kept_bytes;
    }
    const struct el_memory_forecast *f = &forecasts[fullest];
    const bool fits = f->ledger.peak_bytes <= (size_t)limit;
    el_json_put_all(row, EL_KEY("peak_bytes", (int64_t)f->ledger.peak_bytes),
                    EL_KEY("room_bytes", limit - (int64_t)f->ledger.peak_bytes), EL_KEY("device", fullest),
                    EL_KEY("moment", f->moment), EL_KEY("at_peak_by_tag", el_record_tags(f->ledger.at_peak_by_tag)),
                    EL_KEY("sent_bytes", sent), EL_KEY("step_ms", fits ? step_ns / 1e6 : NAN),
                    EL_KEY("samples_per_s", fits ? samples_per_s : NAN),
                    EL_KEY("tokens_per_s", fits && tokens ? samples_per_s * (double)tokens : NAN),
                    EL_KEY("checkpoint_bytes", (int64_t)kept), EL_KEY("fits", fits));
}

static enum el_status state_of(const struct el_trial *trial, double *count_p, double *least_p)
{
    struct el_graph *model;
    struct el_layout layout;
    EL_TRY(el_model_build(&trial->train.model, &model));
    *count_p = (double)el_graph_param_count(model);
    el_graph_destroy(model);
    el_layout_of(&trial->train, 1, &layout);
    *least_p = least_bytes(&trial->train, &layout, *count_p);
    return EL_OK;
}

static enum el_status forecast_row(struct plan *plan, const struct el_trial *trial, json_t *row)
{
    char command[2 * EL_PATH_BYTES];
    double step_ns = NAN, count, least;
    const struct el_predict_spec spec = {
        .machines = plan->machine, .n_machines = plan->machine != NULL, .limit_bytes = trial->device_mem_bytes};
    EL_TRY(el_trial_command(trial, command, sizeof command));
    EL_TRY(state_of(trial, &count, &least));
    el_json_put_all(row, EL_KEY("command", json_sprintf("%s --dry-run", command)), EL_KEY("parameters", (int64_t)count),
                    EL_KEY("least_bytes", (int64_t)least),
                    EL_KEY("state_bytes", (int64_t)state_bytes(&trial->train, count)),
                    EL_KEY("peak_bytes", json_null()), EL_KEY("fits", json_false()));
    if (least > (double)trial->device_mem_bytes) return EL_OK;
    const enum el_status status = el_train_predict(&trial->train, el_kernels_cpu(), &spec, plan->forecasts, &step_ns);
    if (status == EL_OK) put_forecast(row, trial, plan->forecasts, step_ns);
    if (status == EL_ERR_OOM && least < (double)trial->device_mem_bytes)
        el_json_put(row, "least_bytes", json_integer(trial->device_mem_bytes));
    return status == EL_ERR_OOM ? EL_OK : status;
}

static int64_t samples_per_copy(const struct el_options *options, const int n[EL_AXIS_COUNT])
{
    const int copies = n[EL_AXIS_DATA] * n[EL_AXIS_SHARD] * n[EL_AXIS_EXPERT];
    return options->batches[0] * (options->batch_is_per_device ? options->n_devices : 1) / copies;
}

/* Up to eight per stage: activations of few samples are held, and stages wait for at most a ninth of the step. */
static int64_t choose_micro(const struct el_options *options, const int n[EL_AXIS_COUNT])
{
    const int64_t samples = samples_per_copy(options, n);
    int64_t micro = 8 * (int64_t)n[EL_AXIS_STAGE];
    if (micro > MICRO_MAX) micro = MICRO_MAX;
    if (micro > samples) micro = samples;
    while (micro > 1 && samples % micro != 0) micro--;
    return micro;
}

/* From the memory that grows with samples; 0: nothing helps. */
static int64_t choose_accumulate(const json_t *row, int64_t samples, int64_t before)
{
    const double grows =
                     el_json_number(row, "at_peak_by_tag.activation") + el_json_number(row, "at_peak_by_tag.output"),
                 room = el_json_number(row, "room_bytes") + grows;
    if (!(room > 0) || json_is_true(json_object_get(row, "fits"))) return 0;
    int64_t n = before + 1;
    while (n <= samples && (samples % n != 0 || (double)n < (double)before * grows / room)) n++;
    return n <= samples ? n : 0;
}

void el_plan_row_options(const struct el_options *run, const json_t *row, struct el_options *options)
{
    const int64_t micro = el_json_whole(row, "micro"), steps = el_json_whole(row, "accumulate");
    *options = *run;
    snprintf(options->modes[0], sizeof options->modes[0], "%s", el_json_text(row, "mode", "?"));
    snprintf(options->mesh, sizeof options->mesh, "%s", el_json_text(row, "mesh", ""));
    if (micro > 0) snprintf(el_given_of_modes(options->of_modes, "micro"), EL_MODE_TEXT_BYTES, "%" PRId64, micro);
    if (steps > 1) snprintf(el_given_of_modes(options->of_modes, "accumulate"), EL_MODE_TEXT_BYTES, "%" PRId64, steps);
}

static enum el_status resolve(const struct plan *plan, const struct el_options *options, struct el_trial *trial)
{
    const struct el_trial_choice choice = {.model = &plan->model};
    *trial = (struct el_trial){.n_devices = 0};
    return el_trial_resolve(EL_CMD_RUN, options, &choice, trial);
}

static enum el_status try_row(struct plan *plan, json_t *row)
{
    struct el_options options;
    struct el_trial trial;
    el_plan_row_options(plan->run, row, &options);
    EL_TRY(resolve(plan, &options, &trial));
    return forecast_row(plan, &trial, row);
}

static enum el_status try_steps(struct plan *plan, const char *mode, int64_t samples, json_t *row)
{
    int64_t n = 1;
    EL_TRY(try_row(plan, row));
    while (el_mode_option_of(mode, "accumulate") && (n = choose_accumulate(row, samples, n)) > 0) {
        el_json_put(row, "accumulate", json_integer(n));
        EL_TRY(try_row(plan, row));
    }
    return EL_OK;
}

static enum el_status take_row(struct plan *plan, int64_t samples, json_t *row)
{
    enum el_status status = try_steps(plan, el_json_text(row, "mode", "?"), samples, row);
    if (status == EL_OK) json_array_append(plan->rows, row);
    if (status == EL_ERR_INVALID && plan->refused.status == EL_OK) el_error_take(status, &plan->refused);
    return status == EL_ERR_INVALID ? EL_OK : status;
}

/* From one micro-batch; 0: unknown. */
static double floor_ms(const struct plan *plan, const int n[EL_AXIS_COUNT], const json_t *row)
{
    const int64_t micro = el_json_whole(row, "micro");
    struct el_options options;
    struct el_trial one;
    double ms = 0, count, least;
    el_plan_row_options(plan->run, row, &options);
    options.batches[0] = samples_per_copy(plan->run, n) / micro * n[EL_AXIS_DATA] * n[EL_AXIS_SHARD];
    options.batch_is_per_device = false;
    snprintf(el_given_of_modes(options.of_modes, "micro"), EL_MODE_TEXT_BYTES, "1");
    if (resolve(plan, &options, &one) != EL_OK || state_of(&one, &count, &least) != EL_OK) return 0;
    if (least > (double)one.device_mem_bytes || el_plan_floor(&one, plan->machine, micro, &ms) != EL_OK) return 0;
    return ms;
}

static enum el_status try_mesh(struct plan *plan, const char *mode, const int n[EL_AXIS_COUNT])
{
    const struct el_options *run = plan->run;
    char mesh[EL_PATH_BYTES] = "";
    const int64_t micro = n[EL_AXIS_STAGE] > 1 || el_mode_cuts(mode) ? choose_micro(run, n) : -1,
                  samples = samples_per_copy(run, n);
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++)
        if (n[axis] > 1 && n[axis] < run->n_devices)
            el_text_append(mesh, sizeof mesh, "%s%s=%d", *mesh ? "," : "", el_axis_row(axis)->word, n[axis]);
    json_t *row = el_json_of(EL_KEY("mode", mode), EL_KEY("mesh", (const char *)mesh),
                             EL_KEY("micro", el_json_count(micro)), EL_KEY("accumulate", 1));
    enum el_status status = EL_OK;
    if (plan->best && plan->machine && micro > 1)
        json_array_append_new(plan->later, el_json_of(EL_KEY("floor_ms", floor_ms(plan, n, row)),
                                                      EL_KEY("samples", samples), EL_KEY("row", json_incref(row))));
    else
        status = take_row(plan, samples, row);
    json_decref(row);
    return status;
}

/* Meshes in stages, by lower bound, until none can beat the mode's best. */
static enum el_status try_later(struct plan *plan, const char *mode)
{
    double best_ms = INFINITY;
    EL_EACH(row, plan->rows)
        if (el_json_is(row, "mode", mode)) best_ms = fmin(best_ms, el_json_number(row, "step_ms"));
    while (json_array_size(plan->later) > 0) {
        size_t first = 0;
        EL_EACH(each, plan->later)
            if (el_json_number(each, "floor_ms") < el_json_number(json_array_get(plan->later, first), "floor_ms"))
                first = each_at.i;
        json_t *next = json_array_get(plan->later, first), *row = json_object_get(next, "row");
        if (el_json_number(next, "floor_ms") > best_ms) break;
        el_json_put(row, "floor_ms", json_incref(json_object_get(next, "floor_ms")));
        EL_TRY(take_row(plan, el_json_whole(next, "samples"), row));
        best_ms = fmin(best_ms, el_json_number(row, "step_ms"));
        json_array_remove(plan->later, first);
    }
    json_array_clear(plan->later);
    return EL_OK;
}

static enum el_axis own_axis(const struct el_mode_info *mode)
{
    return mode->axes & 1U << EL_AXIS_SHARD    ? EL_AXIS_SHARD
           : mode->axes & 1U << EL_AXIS_STAGE  ? EL_AXIS_STAGE
           : mode->axes & 1U << EL_AXIS_EXPERT ? EL_AXIS_EXPERT
                                               : EL_AXIS_TENSOR;
}

/* Tensor pieces communicate in each block and belong in one host. */
static int most_along(const struct plan *plan, enum el_axis axis, int left)
{
    const int host = plan->machine ? plan->machine->devices_per_host : 0;
    return axis == EL_AXIS_TENSOR && host > 0 && host < left ? host : left;
}

/* Sharded state is combined with stages only in one group and with whole gradients: otherwise each micro-batch would
 * reduce them. */
static bool is_tried(const struct el_mode_info *mode, const int n[EL_AXIS_COUNT])
{
    const bool shards = own_axis(mode) == EL_AXIS_SHARD && n[EL_AXIS_STAGE] > 1;
    return n[own_axis(mode)] > 1 && (!shards || (n[EL_AXIS_DATA] == 1 && mode->memory.backward == 2));
}

/* At least two devices along the mode's own axis. */
static enum el_status try_axes(struct plan *plan, const struct el_mode_info *mode, enum el_axis axis, int left,
                               int n[EL_AXIS_COUNT])
{
    if (axis == EL_AXIS_COUNT) return left == 1 && is_tried(mode, n) ? try_mesh(plan, mode->name, n) : EL_OK;
    const int most = most_along(plan, axis, left);
    for (n[axis] = 1; n[axis] <= most; n[axis]++)
        if (left % n[axis] == 0 && (n[axis] == 1 || mode->axes & 1U << axis))
            EL_TRY(try_axes(plan, mode, axis + 1, left / n[axis], n));
    return EL_OK;
}

static double key_of(const json_t *row, int key)
{
    static const char *const paths[] = {"step_ms", "sent_bytes", "peak_bytes", "least_bytes"};
    const double value = el_json_number(row, paths[key]);
    if (!json_is_true(json_object_get(row, "fits")) && key < 2) return 0; /* by memory alone */
    return isnan(value) ? key == 0 ? 0 : INFINITY : value;
}

static int better(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    const int fits = json_is_true(json_object_get(y, "fits")) - json_is_true(json_object_get(x, "fits"));
    for (int key = 0; key < 4 && !fits; key++)
        if (key_of(x, key) != key_of(y, key)) return key_of(x, key) < key_of(y, key) ? -1 : 1;
    return fits;
}

static json_t *sorted(const json_t *rows)
{
    const size_t n = json_array_size(rows);
    json_t **list = calloc(n + 1, sizeof *list), *array = json_array();
    for (size_t i = 0; list && i < n; i++) list[i] = json_array_get(rows, i);
    if (list) qsort(list, n, sizeof *list, better);
    for (size_t i = 0; list && i < n; i++) json_array_append(array, list[i]);
    free(list);
    return array;
}

/* Sizes depend on the data. */
static enum el_status resolve_model(struct plan *plan)
{
    const struct el_options *run = plan->run;
    const int64_t batch = run->batches[0] * (run->batch_is_per_device ? run->n_devices : 1);
    struct el_dataset *dataset;
    EL_TRY(el_sizes_check(&run->train.model));
    EL_TRY(el_sizes_resolve(run, &plan->model, &dataset));
    const int64_t samples = el_dataset_size(dataset, EL_SPLIT_TRAIN);
    el_dataset_close(dataset);
    if (batch <= samples) return EL_OK;
    return el_fail(EL_ERR_INVALID, "a global batch of %" PRId64 " is more than the %" PRId64 " training samples of %s",
                   batch, samples, run->data);
}

enum el_status el_plan_rows(const struct el_options *run, bool best, json_t **rows_p)
{
    struct el_machine machine;
    struct plan plan = {.run = run, .best = best, .machine = *run->machine ? &machine : NULL};
    int n[EL_AXIS_COUNT];
    EL_TRY(el_machine_read(run->machine, &machine));
    EL_TRY(resolve_model(&plan));
    plan.forecasts = calloc((size_t)run->n_devices, sizeof *plan.forecasts);
    plan.rows = json_array();
    plan.later = json_array();
    enum el_status status = plan.forecasts ? EL_OK : el_fail_errno("forecasts of %d devices", run->n_devices);
    for (int m = 0; m < N_MODES && status == EL_OK; m++) {
        const struct el_mode_info *mode = el_mode_find(modes[m]);
        status = mode->axes ? try_axes(&plan, mode, EL_AXIS_DATA, run->n_devices, n)
                            : try_mesh(&plan, mode->name, (int[EL_AXIS_COUNT]){run->n_devices, 1, 1, 1, 1});
        if (status == EL_OK) status = try_later(&plan, modes[m]);
    }
    if (status == EL_OK && json_array_size(plan.rows) == 0) status = el_error_give(&plan.refused);
    if (status == EL_OK) *rows_p = sorted(plan.rows);
    free(plan.forecasts);
    json_decref(plan.rows);
    json_decref(plan.later);
    return status;
}
