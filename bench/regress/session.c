/* A trial's record into a session and its workload. Which figures there are stands here, once. */
#include "bench/regress/session.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/program.h"
#include "bench/base/text.h"
#include "bench/record/record.h"
#include "bench/stats/stats.h"
#include "runtime/base/utf8.h"
#include "runtime/train/train.h"

enum { NAME_BYTES = 160 };

bool el_program_is(const json_t *trial)
{
    return json_is_string(json_object_get(trial, "program"));
}

/* ---- the workload ---- */

static const char *const identity[] = {"mode",         "model", "dtype",        "optimizer", "seed",
                                       "device_names", "procs", "global_batch", NULL};
/* How long and how closely to measure, and what to disturb. */
static const char *const skipped[] = {"steps", "min_time_s", "timeout_s", "control", "control_pairs", "inject"};

json_t *el_workload_of(const json_t *trial)
{
    if (el_program_is(trial)) return json_pack("{s:O}", "program", json_object_get(trial, "program"));
    json_t *workload = json_object(), *config = json_deep_copy(json_object_get(trial, "config"));
    el_json_copy(workload, trial, identity);
    for (size_t i = 0; i < sizeof skipped / sizeof skipped[0]; i++) json_object_del(config, skipped[i]);
    json_object_set_new(workload, "config", config ? config : json_object());
    return workload;
}

/* " buckets of 1 MiB" where they are not the usual ones; nothing of a mode that has none. */
static void put_buckets(const json_t *trial, const char *mode, char *text, size_t bytes)
{
    static const double MIB = 1 << 20;
    double cap = el_json_number(trial, "config.bucket_cap_bytes");
    double first = el_json_number(trial, "config.bucket_first_bytes");
    bool usual = cap == EL_BUCKET_CAP_BYTES && (isnan(first) || first == EL_BUCKET_FIRST_BYTES);
    if (isnan(cap) || usual || !el_mode_option_of(mode, "bucket-mb")) return; /* older records have none */
    el_text_append(text, bytes, " buckets of %g MiB", cap / MIB);
    if (!isnan(first) && first != cap) el_text_append(text, bytes, ", the first %g", first / MIB);
}

/* " ranks 2" where the record's value is not the usual one; an older record may have none. */
static void put_option(const json_t *trial, const char *key, const char *word, const char *usual, char *text,
                       size_t bytes)
{
    const json_t *given = json_object_get(json_object_get(trial, "config"), key);
    char value[EL_MODE_TEXT_BYTES];
    if (!given) return;
    if (json_is_string(given))
        snprintf(value, sizeof value, "%s", json_string_value(given));
    else
        snprintf(value, sizeof value, "%.0f", json_number_value(given));
    if (strcmp(value, usual)) el_text_append(text, bytes, " %s %s", word, value);
}

/* " accumulate 4 sync param": what the mode has and is not as usual. */
static void put_options(const json_t *trial, const char *mode, char *text, size_t bytes)
{
    if (el_mode_option_of(mode, "mesh")) put_option(trial, "ranks", "mesh", "1", text, bytes);
    if (el_mode_cuts(mode)) put_option(trial, "pieces", "pieces", "1", text, bytes);
    if (el_mode_option_of(mode, "beside")) put_option(trial, "beside", "beside", "0", text, bytes);
    for (const struct el_mode_option *const *rows = el_mode_options(); *rows; rows++) {
        const struct el_mode_option *own = el_mode_option_of(mode, (*rows)->name);
        char key[EL_MODE_TEXT_BYTES];
        if (!own || !own->help) continue; /* the command line's rows are named by themselves */
        put_option(trial, el_mode_option_key(own, key), own->name, own->initial ? own->initial : "", text, bytes);
    }
}

void el_workload_name(const json_t *trial, char *text, size_t bytes)
{
    const char *dtype = el_json_text(trial, "dtype", "f32"), *mode = el_json_text(trial, "mode", "?");
    double n = el_json_number(trial, "devices");
    snprintf(text, bytes, "%s", el_json_text(trial, "program", ""));
    el_utf8_printable(text);
    if (el_program_is(trial)) return;
    el_text_append(text, bytes, "%s %.0f device%s %s", mode, n, n == 1 ? "" : "s", el_json_text(trial, "model", "?"));
    if (strcmp(dtype, "f32")) el_text_append(text, bytes, " %s", dtype);
    put_option(trial, "precision", "precision", dtype, text, bytes);
    el_text_append(text, bytes, " batch %.0f", el_json_number(trial, "global_batch"));
    put_buckets(trial, mode, text, bytes);
    if (el_json_is(trial, "config.bucket_view", "on")) el_text_append(text, bytes, " views of buckets");
    put_options(trial, mode, text, bytes);
}

/* By the keys that both have. */
static bool same_fields(const json_t *base, const json_t *head)
{
    EL_EACH_KEY(key, earlier, base) {
        const json_t *later = json_object_get(head, key);
        if (later && strcmp(key, "config") && !json_equal(earlier, later)) return false;
    }
    return true;
}

bool el_workload_same(const json_t *base, const json_t *head)
{
    return el_program_is(base) == el_program_is(head) && same_fields(base, head) &&
           same_fields(json_object_get(base, "config"), json_object_get(head, "config"));
}

/* ---- exact figures: rows of the metric table ---- */

json_t *el_figure_new(const char *unit, enum el_better better, double value, json_t *launches, bool exact)
{
    json_t *figure = el_json_of(EL_KEY("unit", unit), EL_KEY("better", el_better_text(better)), EL_KEY("value", value));
    if (launches) json_object_set_new(figure, "launches", launches);
    if (exact) json_object_set_new(figure, "exact", json_true());
    return figure;
}

/* Where batches have lengths of their own, what they take depends on how many steps were measured. */
static void put_exact(const json_t *trial, json_t *figures)
{
    const json_t *devices = json_object_get(trial, "per_device");
    if (el_json_is(trial, "config.length_by", "batch")) return;
    for (const struct el_metric *m = el_metric_list(); m->name; m++) {
        bool of_trial = m->of == EL_METRIC_OF_TRIAL;
        size_t n = !m->exact ? 0 : of_trial ? 1 : json_array_size(devices);
        for (size_t i = 0; i < n; i++) {
            char name[NAME_BYTES];
            double value = el_metric_value(m, trial, of_trial ? NULL : json_array_get(devices, i));
            snprintf(name, sizeof name, of_trial ? "%s" : "%s[%zu]", m->name, i);
            if (isfinite(value))
                json_object_set_new(figures, name, el_figure_new(m->unit, m->better, value, NULL, true));
        }
    }
}

/* ---- timed figures: one per launch ---- */

/* First those of el_step_figure. The first is a gate's own: a median passes over the few steps in which the system had
 * other work. */
static const struct timed {
    const char *name, *unit;
    enum el_better better;
} timed[] = {
    {"step_median_ms", "ms", EL_BETTER_LOWER},        {"step_mean_ms", "ms", EL_BETTER_LOWER},
    {"step_p95_ms", "ms", EL_BETTER_LOWER},           {"step_p10_ms", "ms", EL_BETTER_LOWER},
    {"samples_per_s", "samples/s", EL_BETTER_HIGHER}, {"tokens_per_s", "tokens/s", EL_BETTER_HIGHER},
};
enum { N_TIMED = sizeof timed / sizeof timed[0], OF_SAMPLES = 4, OF_TOKENS = 5 };

bool el_session_leads(const json_t *session, const char *figure)
{
    return el_program_is(session) || !strcmp(figure, timed[0].name);
}

bool el_session_gates(const json_t *session, const char *name, const json_t *figure)
{
    bool is_timed = false;
    for (int i = 0; i < N_TIMED; i++) is_timed = is_timed || !strcmp(timed[i].name, name);
    return el_session_leads(session, name) || (!is_timed && el_figure_is_exact(figure));
}

bool el_figure_is_exact(const json_t *figure)
{
    return json_is_true(json_object_get(figure, "exact"));
}

enum el_better el_figure_better(const json_t *figure)
{
    const char *text = el_json_text(figure, "better", "lower");
    for (enum el_better better = EL_BETTER_HIGHER; better <= EL_BETTER_NEITHER; better++)
        if (!strcmp(text, el_better_text(better))) return better;
    return EL_BETTER_NEITHER;
}

static double of_launch(int which, const json_t *repeat, double batch)
{
    return which < OF_SAMPLES ? el_repeat_step_ms(repeat, (enum el_step_figure)which)
                              : el_repeat_samples_per_s(repeat, batch);
}

static json_t *timed_figure(int which, const json_t *trial)
{
    const json_t *repeats = json_object_get(trial, "repeats");
    size_t n = json_array_size(repeats);
    double *values = calloc(n + 1, sizeof *values), batch = el_json_number(trial, "global_batch");
    if (which == OF_TOKENS) batch *= el_json_number(trial, "tokens_per_sample");
    for (size_t i = 0; i < n && values; i++) values[i] = of_launch(which, json_array_get(repeats, i), batch);
    json_t *launches = el_json_reals(values, values ? n : 0);
    double value = values ? el_stats_geometric_mean(values, n) : NAN; /* of one that is none it is none */
    free(values);
    return el_figure_new(timed[which].unit, timed[which].better, value, launches,
                         json_is_true(json_object_get(trial, "simulated")));
}

json_t *el_session_figures(const json_t *trial)
{
    if (el_program_is(trial)) return json_incref(json_object_get(trial, "figures"));
    json_t *figures = json_object();
    const int left_out = el_json_number(trial, "tokens_per_sample") > 0 ? OF_SAMPLES : OF_TOKENS;
    for (int i = 0; i < N_TIMED; i++)
        if (i != left_out) json_object_set_new(figures, timed[i].name, timed_figure(i, trial));
    put_exact(trial, figures);
    return figures;
}

/* ---- a session ---- */

/* When, where and what was measured: a folder may be moved or copied, and is the same run. */
static void put_run(const json_t *run, const json_t *trial, json_t *session)
{
    static const char *const keys[] = {"environment.time_utc", "environment.hostname", "environment.boot_id"};
    uint64_t hash = EL_HASH_BEGIN;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *value = el_json_text(run, keys[i], "");
        hash = el_hash(hash, value, strlen(value) + 1);
    }
    const char *id = el_json_text(run, "run_id", ""); /* of a program's launches */
    hash = el_hash(hash, id, strlen(id));
    char *steps = json_dumps(el_json_at(trial, el_program_is(trial) ? "figures" : "repeats.0.step_ms"), JSON_COMPACT);
    if (steps) hash = el_hash(hash, steps, strlen(steps));
    free(steps);
    el_json_put(session, "run", json_sprintf("%016" PRIx64, hash));
}

json_t *el_session_of(const json_t *run, const json_t *trial, const char *dir)
{
    static const char *const copied[] = {"environment.time_utc", "environment.hostname", "environment.commit", NULL};
    json_t *session = json_object();
    const json_t *rules = json_object_get(trial, "warning_rules");
    char name[NAME_BYTES];
    el_workload_name(trial, name, sizeof name);
    el_json_copy(session, run, copied);
    el_json_put_text(session, "dir", dir);
    put_run(run, trial, session);
    el_json_put_all(session, EL_KEY("name", name),
                    EL_KEY("suspect", json_is_array(rules) ? json_deep_copy(rules) : json_array()),
                    EL_KEY("figures", el_session_figures(trial)));
    if (el_program_is(trial)) json_object_set(session, "program", json_object_get(trial, "program"));
    return session;
}

enum el_status el_session_save_programs(json_t *environment, json_t *trials, const char *dir)
{
    char path[EL_PATH_BYTES + 32];
    uint64_t id; /* drawn for each run: two in one second may have equal figures, and are two sessions */
    json_t *document = el_record_run(environment, trials);
    if (!document || getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id) {
        json_decref(document);
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for what was measured");
    }
    el_json_put(document, "run_id", json_sprintf("%016" PRIx64, id));
    snprintf(path, sizeof path, "%s/program.json", dir);
    enum el_status status = el_write_json(document, path);
    json_decref(document);
    return status;
}
