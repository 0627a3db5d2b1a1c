/* Figures of other tools: JSON of hyperfine, google-benchmark and pytest-benchmark, lines of trainers. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/regress/launches.h"

static enum el_status add_all(struct el_readings_reader *reader, const char *name, const char *unit,
                              const json_t *values)
{
    EL_EACH(value, values)
        if (json_is_number(value)) EL_TRY(el_readings_add(reader, name, unit, json_number_value(value), NULL));
    return EL_OK;
}

/* hyperfine --export-json: "time", or "time COMMAND" of each of several. */
static enum el_status take_hyperfine(struct el_readings_reader *reader, const json_t *results)
{
    EL_EACH(result, results) {
        char name[EL_CELL_NAME_BYTES] = "time";
        if (json_array_size(results) > 1)
            el_text_append(name, sizeof name, " %s", el_json_text(result, "command", "?"));
        EL_TRY(add_all(reader, name, "s", json_object_get(result, "times")));
    }
    return EL_OK;
}

/* google-benchmark: an iteration's real time, without its own means; pytest-benchmark: each round's. */
static enum el_status take_benchmarks(struct el_readings_reader *reader, const json_t *benchmarks)
{
    EL_EACH(row, benchmarks) {
        const char *name = el_json_text(row, "name", "?");
        const json_t *stats = json_object_get(row, "stats"), *data = json_object_get(stats, "data");
        const double value = stats ? el_json_number(stats, "median") : el_json_number(row, "real_time");
        if (json_is_true(json_object_get(row, "error_occurred")))
            return el_fail(EL_ERR_INVALID, "printed a benchmark that failed: %.60s: %.100s", name,
                           el_json_text(row, "error_message", "no reason"));
        if (el_json_is(row, "run_type", "aggregate")) continue;
        if (json_array_size(data))
            EL_TRY(add_all(reader, name, "s", data));
        else if (!isnan(value))
            EL_TRY(el_readings_add(reader, name, stats ? "s" : el_json_text(row, "time_unit", "ns"), value, NULL));
    }
    return EL_OK;
}

enum el_status el_readings_results(struct el_readings_reader *reader, const json_t *document)
{
    EL_TRY(take_hyperfine(reader, json_object_get(document, "results")));
    return take_benchmarks(reader, json_object_get(document, "benchmarks"));
}

/* "elapsed time per iteration (ms): 812.3", a part of Megatron-LM's line: elapsed_time_per_iteration, ms. */
static enum el_status take_part(struct el_readings_reader *reader, const char *part)
{
    char name[EL_CELL_NAME_BYTES], unit[EL_CELL_UNIT_BYTES], *end;
    const char *open = strchr(part, '('), *close = open ? strstr(open, "):") : NULL;
    while (isspace((unsigned char)*part)) part++;
    if (!close || open == part || open - part >= (long)sizeof name || close - open > (long)sizeof unit) return EL_OK;
    snprintf(name, sizeof name, "%.*s", (int)(open - part), part);
    snprintf(unit, sizeof unit, "%.*s", (int)(close - open) - 1, open + 1);
    if (!strncmp(unit, "TFLOP/s", 7)) memcpy(unit, "TFLOPS", 7); /* "TFLOP/s/GPU" */
    for (size_t n = strlen(name); n > 0 && isspace((unsigned char)name[n - 1]); n--) name[n - 1] = 0;
    for (char *at = name; *at; at++)
        if (isspace((unsigned char)*at)) *at = '_';
    const double value = strtod(close + 2, &end);
    return end == close + 2 ? EL_OK : el_readings_add(reader, name, unit, value, NULL);
}

/* What a name of Hugging Face's Trainer says of its unit; NULL: no figure of speed. */
static const char *unit_of(const char *name)
{
    static const char *const units[][2] = {{"_samples_per_second", "samples/s"},
                                           {"_steps_per_second", "steps/s"},
                                           {"_tokens_per_second", "tokens/s"},
                                           {"_runtime", "s"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const char *at = strstr(name, units[i][0]);
        if (at && at != name && !at[strlen(units[i][0])]) return units[i][1];
    }
    return NULL;
}

/* "{'train_runtime': 12.3, 'train_samples_per_second': '45.6', ...}" */
static enum el_status take_members(struct el_readings_reader *reader, const char *line)
{
    for (const char *at = line; (at = strchr(at, '\''));) {
        const char *end = strchr(++at, '\'');
        char name[EL_CELL_NAME_BYTES], *behind;
        if (!end || end - at >= (long)sizeof name || end[1] != ':') continue;
        snprintf(name, sizeof name, "%.*s", (int)(end - at), at);
        at = end + 2;
        at += strspn(at, " '");
        const double value = strtod(at, &behind);
        if (behind != at && unit_of(name)) EL_TRY(el_readings_add(reader, name, unit_of(name), value, NULL));
    }
    return EL_OK;
}

/* "  train_samples_per_second =     45.6": the table at its end; runtimes there are 0:00:12.34. */
static enum el_status take_row(struct el_readings_reader *reader, const char *line)
{
    char name[EL_CELL_NAME_BYTES], behind;
    double value;
    if (sscanf(line, " %63[A-Za-z0-9_] = %lf%c", name, &value, &behind) != 2 || !unit_of(name)) return EL_OK;
    return el_readings_add(reader, name, unit_of(name), value, NULL);
}

/* "Epoch 0: 100%|####| 10/10 [00:05<00:00,  1.95it/s, v_num=0]": tqdm's mean over a whole bar, as of Lightning. */
static enum el_status take_bar(struct el_readings_reader *reader, const char *line)
{
    const char *full = strstr(line, "100%|"), *open = full ? strrchr(full, '[') : NULL;
    const char *comma = open ? strchr(open, ',') : NULL;
    char *end;
    double value = comma ? strtod(comma + 1, &end) : NAN;
    if (!(value > 0) || end == comma + 1) return EL_OK;
    if (!strncmp(end, "it/s", 4)) return el_readings_add(reader, "progress", "it/s", value, NULL);
    if (!strncmp(end, "s/it", 4)) return el_readings_add(reader, "progress", "it/s", 1 / value, NULL);
    return EL_OK;
}

enum el_status el_readings_trainer_line(struct el_readings_reader *reader, const char *line)
{
    const char *iteration = strstr(line, "iteration ");
    if (iteration && strchr(iteration, '|')) {
        char *copy = strdup(iteration), *rest = NULL;
        enum el_status status = copy ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for what a program printed");
        for (char *part = copy ? strtok_r(copy, "|", &rest) : NULL; part && status == EL_OK;
             part = strtok_r(NULL, "|", &rest))
            status = take_part(reader, part);
        free(copy);
        return status;
    }
    if (line[strspn(line, " ")] == '{') return take_members(reader, line);
    if (strstr(line, "100%|")) return take_bar(reader, line);
    return take_row(reader, line);
}
