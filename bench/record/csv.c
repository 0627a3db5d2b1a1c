/* results.csv: a row a trial and device, a column a metric row; a trial without devices (it failed) has one row.
 *
 * For spreadsheets: RFC 4180 quoting, an empty cell for what is not known, numbers as the shortest text that reads back
 * the same, "." as decimal point. A trial's id is written as "t-<id>", for a spreadsheet takes 12e4567890123456 for a
 * number. It is a view of results.json and holds nothing that is not there. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/record/jvalue.h"
#include "bench/record/metrics.h"
#include "bench/record/record.h"

/* What names a row. */
struct column {
    const char *name, *path;
    bool of_device;
};

static const struct column columns[] = {
    {"trial", "id", false},
    {"mode", "mode", false},
    {"model", "model", false},
    {"devices", "devices", false},
    {"procs", "procs", false},
    {"dtype", "dtype", false},
    {"global_batch", "global_batch", false},
    {"seed", "seed", false},
    {"optimizer", "optimizer", false},
    {"status", "status", false},
    {"reason", "reason", false},
    {"verdict", "verdict", false},
    {"simulated", "simulated", false},
    {"position", NULL, true},
    {"device", "device", true},
    {"host", "host", true},
    {"rank", "rank", true},
};
enum { N_COLUMNS = sizeof columns / sizeof columns[0] };

static void put_text(const char *text, FILE *file)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

static void put_number(double value, FILE *file)
{
    char text[32];
    if (isfinite(value)) fputs(el_json_shortest(value, text), file);
}

static void put_name(const struct column *column, const json_t *trial, const json_t *device, size_t position,
                     FILE *file)
{
    if (column->path == NULL) {
        if (device != NULL) fprintf(file, "%zu", position);
        return;
    }
    const json_t *value = el_json_at(column->of_device ? device : trial, column->path);
    if (column == &columns[0]) fputs("t-", file);
    if (json_is_string(value)) put_text(json_string_value(value), file);
    if (json_is_boolean(value)) fputs(json_is_true(value) ? "1" : "0", file);
    if (json_is_integer(value)) fprintf(file, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value)) put_number(json_real_value(value), file);
}

static void put_header(FILE *file)
{
    for (int i = 0; i < N_COLUMNS; i++) fprintf(file, "%s%s", i == 0 ? "" : ",", columns[i].name);
    for (const struct el_metric *m = el_metric_list(); m->name != NULL; m++) fprintf(file, ",%s", m->name);
    fputc('\n', file);
}

static void put_row(const json_t *trial, const json_t *device, size_t position, FILE *file)
{
    for (int i = 0; i < N_COLUMNS; i++) {
        if (i > 0) fputc(',', file);
        put_name(&columns[i], trial, device, position, file);
    }
    for (const struct el_metric *m = el_metric_list(); m->name != NULL; m++) {
        fputc(',', file);
        put_number(el_metric_value(m, trial, device), file);
    }
    fputc('\n', file);
}

enum el_status el_write_csv(const json_t *run, const char *path)
{
    char temporary[EL_PATH_BYTES + 64];
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    if (file == NULL) return el_fail_errno("%s could not be written", path);
    const json_t *trials = json_object_get(run, "trials");
    put_header(file);
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i), *devices = json_object_get(trial, "per_device");
        size_t n = json_array_size(devices);
        for (size_t k = 0; k < n; k++) put_row(trial, json_array_get(devices, k), k, file);
        if (n == 0) put_row(trial, NULL, 0, file);
    }
    return el_file_end(file, temporary, path);
}
