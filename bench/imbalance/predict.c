/* A run's document from forecasts, made through the record as if from a repeat. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/machine/host.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "runtime/train/forecast.h"

/* A process resides at its ledgers' sum plus its surroundings; first-fit addresses may spread a little wider. */
#define NEED_RATIO      1.05
#define NEED_REST_BYTES (256.0 * (1 << 20))

static json_t *member_of(const struct el_trial *trial, int position, const struct el_layout *layout,
                         const struct el_memory_forecast *forecast)
{
    char name[64];
    const struct el_device_name device = el_nth_device(trial->devices, position);
    snprintf(name, sizeof name, "%s:%d", device.backend, device.index);
    struct el_member_account account = {.device = name,
                                        .rank = el_layout_spot(layout, position).process,
                                        .layout = layout,
                                        .spot = el_layout_spot(layout, position),
                                        .ledger = &forecast->ledger,
                                        .reserved_bytes = -1,
                                        .driver_bytes = -1,
                                        .grown_bytes = -1,
                                        .driver_reason = "predicted: nothing was run"};
    return el_record_member(&account);
}

static json_t *repeat_of(const struct el_trial *trial, const struct el_memory_forecast *forecasts)
{
    struct el_layout layout;
    json_t *members = json_array(), *batches = json_array();
    el_layout_of(&trial->train, trial->procs, &layout);
    for (int i = 0; i < trial->n_devices; i++) {
        json_array_append_new(members, member_of(trial, i, &layout, &forecasts[i]));
        json_array_append_new(batches, json_integer(el_layout_spot(&layout, i).samples));
    }
    return json_pack("{s:i, s:s, s:s, s:o, s:o}", "schema", EL_SCHEMA, "trial", trial->id, "status", "ok",
                     "batch_per_device", batches, "members", members);
}

static json_t *trial_of(const struct el_trial *trial, const struct el_memory_forecast *forecasts)
{
    json_t *repeats = json_pack("[o]", repeat_of(trial, forecasts));
    json_t *record = el_record_trial(trial, "", repeats);
    el_json_put_all(record, EL_KEY("verdict", "predicted"), EL_KEY("warnings", json_array()),
                    EL_KEY("warning_rules", json_array()));
    json_decref(repeats);
    return record;
}

enum el_status el_imbalance_predict(const struct el_trial_set *set, json_t **run_p)
{
    struct el_memory_forecast *forecasts = calloc(EL_SIMULATED_MAX, sizeof *forecasts);
    json_t *trials = json_array();
    enum el_status status = forecasts && trials ? EL_OK : el_fail_errno("forecasts");
    for (int t = 0; t < set->n && status == EL_OK; t++) {
        status = el_trial_forecast(&set->trials[t], forecasts);
        if (status == EL_OK) json_array_append_new(trials, trial_of(&set->trials[t], forecasts));
    }
    free(forecasts);
    if (status == EL_OK) *run_p = json_pack("{s:O}", "trials", trials);
    json_decref(trials);
    return status;
}

enum el_status el_imbalance_check_memory(const struct el_trial_set *set)
{
    const double gib_bytes = 1 << 30;
    double most_bytes = 0, free_bytes = el_host_free_bytes("");
    json_t *run;
    EL_TRY(el_imbalance_predict(set, &run));
    for (int t = 0; t < set->n; t++) {
        const json_t *trial = json_array_get(json_object_get(run, "trials"), (size_t)t);
        double bytes = 0;
        EL_EACH(device, json_object_get(trial, "per_device")) bytes += el_json_number(device, el_at_device_peak_bytes);
        if (el_trial_backend(&set->trials[t]).on_host) most_bytes = fmax(most_bytes, bytes);
    }
    json_decref(run);
    double need_bytes = NEED_RATIO * most_bytes + NEED_REST_BYTES;
    if (most_bytes <= 0 || !(free_bytes < need_bytes)) return EL_OK;
    return el_fail(EL_ERR_ABSENT,
                   "imbalance: the run needs %.1f GiB of memory, %.1f GiB are free here: make room, or give --dry-run, "
                   "which predicts the same",
                   need_bytes / gib_bytes, free_bytes / gib_bytes);
}

/* Published configurations, and their tables beside ours. */

enum { WORDS_BYTES = 512, ARGUMENTS_MAX = 48, PRESETS_MAX = 16 };

/* docs/imbalance.md says what can be concluded from it. */
static const struct el_published two_cards[] = {
    {"dp", 64, 3678, 1833}, {"dp", 128, 3741, 1863}, {"dp", 256, 3821, 1925}, {.mode = NULL}};

static const struct el_imbalance_preset presets[] = {
    /* 280 words: the second card's peaks then grow by the published 0.960 MiB per sample. Few steps: the ledger's peak
     * is the same in each, and the largest batch takes seconds per step on a core. */
    {.name = "two-cards",
     .reported = "a blog; docs/imbalance.md",
     .says = "TextCNN under DataParallel on two GPUs, as nvidia-smi shows it",
     .published = two_cards,
     .words =
         "--modes dp --devices cpu:2 --model textcnn --vocab 400000 --embed 300 --seq 280 --filters 100 --classes 2 "
         "--optimizer adam --zero-grad keep --optimizer foreach=off --batch 64,128,256 --warmup 1 --steps 2 --min-time "
         "0 "
         "--control none --repeats 1 --timeout 1800 --data dummy"},
    {.name = "outputs",
     .reported = "huggingface/transformers#279; also facebookresearch/DPR#104",
     .says = "4,000 MB on the first of 4 GPUs, 700 MB on each other one, with another model",
     .words = "--model mlp --features 64 --hidden 64 --classes 10000 --optimizer sgd --batch 256,1024,4096 "
              "--data dummy"},
    {.name = "momentum",
     .reported = "facebookresearch/mmf#190",
     .says = "the first GPU holds more than the others, with another model",
     .words = "--model mlp --features 2048 --hidden 2048,2048 --optimizer momentum --batch 64,256 --data dummy"},
    {.name = "adam",
     .reported = "codertimo/BERT-pytorch#10",
     .says = "the first of 4 GPUs holds twice as much as each other one, with another model",
     .words = "--model mlp --features 2048 --hidden 2048,2048 --optimizer adam,foreach=on --batch 64,256 --data dummy"},
    {.name = NULL},
};

const struct el_imbalance_preset *el_imbalance_presets(void)
{
    return presets;
}

static const struct el_imbalance_preset *find(const char *name)
{
    const char *names[PRESETS_MAX + 1] = {NULL};
    for (int i = 0; i < PRESETS_MAX && presets[i].name; i++) {
        names[i] = presets[i].name;
        if (!strcmp(name, presets[i].name)) return &presets[i];
    }
    el_fail_unknown("preset", name, names);
    return NULL;
}

enum el_status el_imbalance_preset(const char *name, struct el_options *options)
{
    const struct el_imbalance_preset *preset = find(name);
    char text[WORDS_BYTES], command[] = "imbalance", *argv[ARGUMENTS_MAX + 1] = {command}, *rest = NULL;
    int argc = 1;
    if (!preset) return EL_ERR_INVALID;
    el_options_defaults(EL_CMD_IMBALANCE, options);
    snprintf(text, sizeof text, "%s", preset->words);
    for (char *word = strtok_r(text, " ", &rest); word && argc < ARGUMENTS_MAX; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return el_options_parse(EL_CMD_IMBALANCE, argc, argv, options);
}

/* ---- beside what is held here ---- */

#define MIB (1024.0 * 1024)

/* Peaks are a caching allocator's, as in nvidia-smi. */
static json_t *row_of(const struct el_published *published, const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    bool same = !strcmp(el_json_text(trial, "mode", ""), published->mode) &&
                el_json_number(trial, "global_batch") == published->batch;
    if (!same || !el_imbalance_has_cards(trial) || json_array_size(devices) != 2) return NULL;
    double first = el_imbalance_highs(json_array_get(devices, 0));
    double second = el_imbalance_highs(json_array_get(devices, 1));
    double told_first = published->first_mib * MIB, told_second = published->second_mib * MIB;
    json_t *row = json_pack("{s:s, s:i}", "mode", published->mode, "global_batch", published->batch);
    el_json_put_all(row, EL_KEY("published_first_bytes", told_first), EL_KEY("published_second_bytes", told_second),
                    EL_KEY("published_difference_bytes", told_first - told_second), EL_KEY("first_bytes", first),
                    EL_KEY("second_bytes", second), EL_KEY("difference_bytes", first - second),
                    EL_KEY("difference_off_pct", 100 * ((first - second) / (told_first - told_second) - 1)));
    return row;
}

json_t *el_imbalance_published(const json_t *run, const char *preset)
{
    const struct el_imbalance_preset *row = el_imbalance_presets();
    const json_t *trials = json_object_get(run, "trials");
    while (row->name && strcmp(row->name, preset ? preset : "") != 0) row++;
    if (!row->name) return json_null();
    json_t *rows = json_array();
    for (const struct el_published *p = row->published; p && p->mode; p++)
        EL_EACH(trial, trials) {
            json_t *beside = row_of(p, trial);
            if (beside) json_array_append_new(rows, beside);
        }
    return json_pack("{s:s, s:s, s:o}", "source", row->reported, "says", row->says, "rows", rows);
}

void el_imbalance_put_published(const json_t *run, const char *preset, FILE *out)
{
    static const struct el_column columns[] =
        EL_COLUMNS(EL_TEXT("published", -9, "mode"), EL_COUNT("batch", 5, "global_batch"),
                   EL_MIB("main", 6, "published_first_bytes", .gap = 3), EL_MIB("second", 7, "published_second_bytes"),
                   EL_MIB("difference", 11, "published_difference_bytes"),
                   EL_MIB("here main", 9, "first_bytes", .gap = 3), EL_MIB("second", 7, "second_bytes"),
                   EL_MIB("difference", 11, "difference_bytes"), EL_CHANGE("off by", 9, "difference_off_pct"));
    const struct el_table table = {.columns = columns, .out = out};
    json_t *published = el_imbalance_published(run, preset);
    json_t *rows = json_object_get(published, "rows");
    if (json_is_null(published)) return;
    bool any = json_array_size(rows) > 0;
    el_table_list(&table, "\n", json_incref(rows));
    fputc('\n', out);
    el_text_say("", "", out, "Reported: %s (%s).%s", el_json_text(published, "says", ""),
                el_json_text(published, "source", ""),
                any ? " MiB; here: peaks. What a card holds beside tensors, its context above "
                      "all, is in the published figures only: compare differences, not ratios."
                    : "");
    json_decref(published);
}
