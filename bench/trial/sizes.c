/* A model's sizes: from its row, the data and the user. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/trial/trial.h"
#include "runtime/base/clock.h"
#include "runtime/models/experts.h"

/* A size that the model does not have would change nothing, in silence; so would another than it always has. */
enum el_status el_sizes_check(const struct el_model_config *given)
{
    const struct el_model_info *model = el_model_find(given->name);
    const char *missing = given->dropout > 0 && !model->drops ? "dropout" : NULL;
    char sizes[256] = ""; /* "vocab embed seq filters dropout" */
    for (int i = 0; i < EL_MODEL_SIZES_MAX && given->sizes[i].name; i++) {
        const struct el_model_values *size = &given->sizes[i];
        const struct el_model_size *row = el_model_size_row(model, size->name);
        if (!row) missing = size->name;
        if (row && row->min == row->max && (size->n != 1 || size->v[0] != row->min))
            return el_fail(EL_ERR_INVALID, "--%s %" PRId64 ": model %s always has %" PRId64, size->name,
                           size->n ? size->v[0] : 0, model->name, row->min);
    }
    for (const struct el_model_size *row = model->sizes; row->name; row++)
        el_text_append(sizes, sizeof sizes, "%s%s", *sizes ? " " : "", row->name);
    if (model->drops) el_text_append(sizes, sizeof sizes, " dropout");
    if (missing) {
        char called[64];
        el_option_called(el_option_of_command(EL_CMD_RUN, missing), EL_CMD_RUN, called, sizeof called);
        return el_fail(EL_ERR_INVALID, "%s: model %s has none (it has %s): leave it out", called, model->name, sizes);
    }
    if (!model->classes || !given->classes || given->classes == model->classes) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--classes %" PRId64 ": model %s always has %" PRId64, given->classes, model->name,
                   model->classes);
}

/* What only some models take. */
enum el_status el_sizes_check_taken(const struct el_options *options)
{
    const struct el_model_info *info = el_model_find(options->train.model.name);
    if (options->lengths.longest && info->input == EL_INPUT_IMAGES)
        return el_fail(EL_ERR_INVALID, "--lengths: model %s takes images, not sentences: leave it out", info->name);
    if (options->train.model.classes && info->input == EL_INPUT_TOKENS)
        return el_fail(EL_ERR_INVALID,
                       "--classes %" PRId64 ": the classes of model %s are its vocabulary: give --vocab",
                       options->train.model.classes, info->name);
    if (options->lengths.longest && info->input == EL_INPUT_TOKENS)
        return el_fail(EL_ERR_INVALID, "--lengths: model %s takes sequences of --seq tokens: leave it out", info->name);
    const struct el_model_config *model = &options->train.model;
    const char *of_experts = model->capacity > 0             ? "capacity"
                             : model->aux != EL_MODEL_AUX    ? "aux"
                             : model->z > 0                  ? "z"
                             : !el_routing_is_learned(model) ? "routing"
                                                             : NULL;
    if (of_experts && !info->experts) {
        char called[64];
        el_option_called(el_option_of_command(EL_CMD_RUN, of_experts), EL_CMD_RUN, called, sizeof called);
        return el_fail(EL_ERR_INVALID, "%s: model %s has no experts (moe has): leave it out", called, info->name);
    }
    if (options->train.model.recompute && !info->blocks)
        return el_fail(EL_ERR_INVALID,
                       "--recompute on: model %s has no blocks to compute again (gpt has): leave it out", info->name);
    return EL_OK;
}

/* ---- images are read for minutes where there are many ---- */

static const int64_t SILENT_NS = (int64_t)2000000000, DRAW_EVERY_NS = (int64_t)1000000000;

struct reading {
    int64_t begin_ns, drawn_ns; /* the latter 0: never */
};

static void draw_reading(void *context, int64_t done, int64_t total)
{
    struct reading *reading = context;
    const int64_t now_ns = el_clock_ns();
    if (now_ns - reading->begin_ns < SILENT_NS || now_ns - reading->drawn_ns < DRAW_EVERY_NS) return;
    reading->drawn_ns = now_ns;
    fprintf(stderr, "\r\033[Kreading images: %" PRId64 " of %" PRId64, done, total);
    fflush(stderr);
}

static enum el_status open_data(const struct el_options *options, struct el_dataset_spec *spec,
                                struct el_dataset **dataset_p)
{
    struct reading reading = {.begin_ns = el_clock_ns()};
    if (!options->quiet && isatty(STDERR_FILENO) == 1) spec->progress = draw_reading;
    spec->context = &reading;
    enum el_status status = el_dataset_open(spec, dataset_p);
    if (reading.drawn_ns) fputs("\r\033[K", stderr);
    return status;
}

enum el_status el_sizes_resolve(const struct el_options *options, struct el_model_config *model_p,
                                struct el_dataset **dataset_p)
{
    const struct el_model_config *given = &options->train.model;
    const struct el_model_info *info = el_model_find(given->name);
    const struct el_model_size *seq_row = el_model_size_row(info, "seq");
    struct el_model_config model = *given;
    struct el_dataset *dataset;
    EL_TRY(el_sizes_check_taken(options));
    struct el_dataset_spec spec = {.source = options->data,
                                   .test_path = options->test[0] ? options->test : NULL,
                                   .input = info->input,
                                   .image = el_model_size(given, "image"),
                                   .vocab = el_model_size(given, "vocab"),
                                   .seq = el_model_size(given, "seq"),
                                   .seq_min = seq_row ? seq_row->min : 0,
                                   .classes = info->classes ? info->classes : given->classes,
                                   .seed = options->train.seed,
                                   .held_out = options->train.epochs ? 0.1 : 0,
                                   .in_files = options->in_files,
                                   .heads = options->dry_run};
    const bool made = !strcmp(options->data, "synthetic") || !strcmp(options->data, "dummy");
    if (info->input == EL_INPUT_TOKENS) {
        if (!spec.seq) spec.seq = seq_row->initial[0];
        if (!spec.vocab && !strcmp(options->data, "dummy")) spec.vocab = el_model_size_row(info, "vocab")->initial[0];
    }
    spec.shortest = options->lengths.shortest, spec.longest = options->lengths.longest;
    EL_TRY(open_data(options, &spec, &dataset));
    const int64_t seq = el_dataset_info(dataset)->seq, vocab = el_dataset_info(dataset)->vocab,
                  image = el_dataset_info(dataset)->image;
    if (image) el_model_set(&model, "image", &image, 1);
    if (seq_row) el_model_set(&model, "seq", &seq, 1);
    /* A set that we made has fewer words than a published vocabulary: there the model's own default stands. */
    if ((info->input == EL_INPUT_IDS && (spec.vocab || !made)) || info->input == EL_INPUT_TOKENS)
        el_model_set(&model, "vocab", &vocab, 1);
    enum el_status status = EL_OK;
    if (!info->classes) {
        model.classes = el_dataset_info(dataset)->classes;
        /* What a file says by itself must not be reported as an option that nobody gave. */
        if (!given->classes && model.classes <= 1)
            status = el_fail(EL_ERR_INVALID, "%s: %s: a classifier needs two classes; %s, or give --classes",
                             options->data, image ? "there is one class alone" : "all labels are 0",
                             image ? "add folders of others" : "label the sentences 0, 1, ...");
    }
    if (status == EL_OK) status = el_model_resolve(&model);
    if (status != EL_OK) {
        el_dataset_close(dataset);
        return status;
    }
    *model_p = model;
    *dataset_p = dataset;
    return EL_OK;
}
