/* Views of results.json. RFC 4180 quoting, an apostrophe before text that looks like a formula (el_escape_csv). The key
 * is "t-<id>", because spreadsheets read 12e4567890123456 as a number. */
#include <errno.h>
#include <math.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/record/record.h"

static void put_number(double value, FILE *file)
{
    char text[32];
    if (isfinite(value)) fputs(el_json_written(value, text), file);
}

void el_csv_value(const json_t *value, FILE *file)
{
    if (json_is_string(value)) el_escape_csv(json_string_value(value), file);
    if (json_is_boolean(value)) fputs(json_is_true(value) ? "1" : "0", file);
    if (json_is_integer(value)) fprintf(file, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value)) put_number(json_real_value(value), file);
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (i > 0) fputc(' ', file);
        el_csv_value(json_array_get(value, i), file);
    }
}

/* A row's names by their record paths, which are also the columns' names. */
static const char *const of_trial[] = {"mode",      "model",     "devices",      "device_names",     "procs",
                                       "dtype",     "optimizer", "global_batch", "batch_per_device", "seed",
                                       "simulated", "status",    "reason",       "verdict",          "warning_rules"};
static const char *const trial_of_device[] = {"mode", "devices", "global_batch", "verdict"};
static const char *const of_device[] = {"device", "host", "rank"};
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* `object` NULL: writes the header. */
static void put_fields(const json_t *object, const char *const *names, size_t n, FILE *file)
{
    for (size_t i = 0; i < n; i++) {
        fputc(',', file);
        if (object == NULL) fputs(names[i], file);
        el_csv_value(json_object_get(object, names[i]), file);
    }
}

static void put_metrics(enum el_metric_of of, const json_t *trial, const json_t *device, FILE *file)
{
    for (const struct el_metric *m = el_metric_list(); m->name != NULL; m++) {
        if (m->of != of) continue;
        fputc(',', file);
        if (trial == NULL) fputs(m->name, file);
        put_number(el_metric_value(m, trial, device), file);
    }
}

static json_t *configuration(const json_t *trial)
{
    json_t *flat = json_object();
    EL_EACH_KEY(key, value, json_object_get(trial, "config")) {
        if (json_is_object(value))
            json_object_update(flat, value);
        else
            json_object_set(flat, key, value);
    }
    return flat;
}

static void put_id(const json_t *trial, FILE *file)
{
    fprintf(file, "%s%s", trial ? "t-" : "trial", el_json_text(trial, "id", ""));
}

static void put_trial(const json_t *trial, json_t *columns, FILE *file)
{
    json_t *config = trial ? configuration(trial) : NULL;
    put_id(trial, file);
    put_fields(trial, of_trial, COUNT(of_trial), file);
    EL_EACH_KEY(key, column, columns) put_fields(config, &key, 1, file);
    put_metrics(EL_METRIC_OF_TRIAL, trial, NULL, file);
    fputc('\n', file);
    json_decref(config);
}

/* Configuration columns: the union over trials. */
static void put_trials(const json_t *trials, FILE *file)
{
    json_t *columns = json_object();
    EL_EACH(trial, trials) {
        json_t *config = configuration(trial);
        json_object_update_missing(columns, config);
        json_decref(config);
    }
    put_trial(NULL, columns, file);
    EL_EACH(trial, trials) put_trial(trial, columns, file);
    json_decref(columns);
}

static void put_device(const json_t *trial, size_t position, FILE *file)
{
    const json_t *device = json_array_get(json_object_get(trial, "per_device"), position);
    put_id(trial, file);
    put_fields(trial, trial_of_device, COUNT(trial_of_device), file);
    if (trial)
        fprintf(file, ",%zu", position);
    else
        fputs(",position", file);
    put_fields(device, of_device, COUNT(of_device), file);
    put_metrics(EL_METRIC_OF_DEVICE, trial, device, file);
    fputc('\n', file);
}

static void put_devices(const json_t *trials, FILE *file)
{
    put_device(NULL, 0, file);
    EL_EACH(trial, trials)
        for (size_t k = 0; k < json_array_size(json_object_get(trial, "per_device")); k++) put_device(trial, k, file);
}

static void put_steps(const json_t *trials, FILE *file)
{
    fputs("trial,launch,step,ms\n", file);
    EL_EACH(trial, trials)
        EL_EACH(repeat, json_object_get(trial, "repeats"))
            EL_EACH(step, json_object_get(repeat, "step_ms")) {
                put_id(trial, file);
                fprintf(file, ",%.0f,%zu,", el_json_number(repeat, "repeat"), step_at.i);
                put_number(json_number_value(step), file);
                fputc('\n', file);
            }
}

enum el_status el_write_csv(const json_t *run, const char *dir)
{
    static const struct {
        const char *name;
        void (*put)(const json_t *trials, FILE *file);
    } sheets[] = {{"trials", put_trials}, {"devices", put_devices}, {"steps", put_steps}};
    const json_t *trials = json_object_get(run, "trials");
    for (size_t i = 0; i < COUNT(sheets); i++) {
        char path[EL_PATH_BYTES], temporary[EL_PATH_BYTES + 64];
        if (sheets[i].put == put_steps && json_object_get(run, "watch")) continue; /* a watch has no steps */
        if ((size_t)snprintf(path, sizeof path, "%s/%s.csv", dir, sheets[i].name) >= sizeof path)
            return el_fail(EL_ERR_INVALID, "%s: the path is too long", dir);
        FILE *file = el_file_begin(path, temporary, sizeof temporary);
        if (file == NULL) return el_fail_errno("%s could not be written", path);
        sheets[i].put(trials, file);
        EL_TRY(el_file_end(file, temporary, path));
    }
    return EL_OK;
}
