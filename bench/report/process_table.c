/* Memory as the system sees it: a table process x device, as nvidia-smi prints it, and beside it what the ledger
 * accounts for. Of each mode the largest batch that finished. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/report/report.h"

enum { DEVICES_SHOWN = 6, HEADS = 2, PATH_BYTES = 32 };

/* The columns of all trials: what a row is of, devices as the trial with most of them has them, the host. */
struct columns {
    struct el_column list[HEADS + DEVICES_SHOWN + 2];
    char paths[DEVICES_SHOWN][PATH_BYTES];
    size_t n; /* devices */
    struct el_table table;
};

static bool has_reading(const json_t *trial)
{
    return !isnan(el_json_number(trial, "per_device.0.memory.driver_bytes"));
}

/* Whether another trial of the mode has a larger batch, or the same one earlier. */
static bool is_outdone(const json_t *trials, size_t i)
{
    const json_t *trial = json_array_get(trials, i);
    double batch = el_json_number(trial, "global_batch");
    EL_EACH(other, trials) {
        double theirs = el_json_number(other, "global_batch");
        if (other_at.i == i || !el_json_is(other, "mode", el_json_text(trial, "mode", "")) || !has_reading(other))
            continue;
        if (theirs > batch || (theirs == batch && other_at.i < i)) return true;
    }
    return false;
}

static size_t shown(const json_t *trial)
{
    size_t n = json_array_size(json_object_get(trial, "per_device"));
    return n < DEVICES_SHOWN ? n : DEVICES_SHOWN;
}

static void lay_out(const json_t *trial, FILE *out, struct columns *columns)
{
    struct el_column *next = columns->list;
    columns->n = shown(trial);
    columns->table = (struct el_table){.columns = columns->list, .out = out};
    *next++ = (struct el_column)EL_TEXT("mode, batch", -14, "head");
    *next++ = (struct el_column)EL_TEXT("resident MiB", -26, "what");
    for (size_t d = 0; d < columns->n; d++) {
        const json_t *device = json_array_get(json_object_get(trial, "per_device"), d);
        snprintf(columns->paths[d], PATH_BYTES, "bytes.%zu", d);
        *next++ = (struct el_column)EL_MIB(el_json_text(device, "device", "?"), 9, columns->paths[d]);
    }
    *next++ = (struct el_column)EL_MIB("host", 16, "host");
    *next = (struct el_column)EL_NO_MORE;
}

/* A row with the bytes at `path` in each device's item; `host` NAN: without that cell. */
static void put_row(struct columns *columns, enum el_table_style style, const char *head, const char *what,
                    const json_t *items, const char *path, double host)
{
    json_t *bytes = json_array();
    for (size_t d = 0; d < columns->n; d++)
        json_array_append_new(bytes, el_json_real(el_json_number(json_array_get(items, d), path)));
    json_t *row = el_json_of(EL_KEY("head", head), EL_KEY("what", what), EL_KEY("bytes", bytes), EL_KEY("host", host));
    columns->table.first = isnan(host) ? HEADS + (int)columns->n : 0;
    el_table_row(&columns->table, style, row);
    json_decref(row);
}

static void put_trial(const json_t *trial, struct columns *columns)
{
    const json_t *devices = json_object_get(trial, "per_device");
    char head[64], what[64];
    snprintf(head, sizeof head, "%s %.0f", el_json_text(trial, "mode", "?"), el_json_number(trial, "global_batch"));
    EL_EACH(process, json_object_get(trial, "processes")) {
        json_t *own = json_deep_copy(json_object_get(process, "per_device_bytes"));
        EL_EACH(value, own)
            if (!(json_number_value(value) > 0)) json_array_set_new(own, value_at.i, json_null());
        snprintf(what, sizeof what, "rank %.0f, process %.0f", el_json_number(process, "rank"),
                 el_json_number(process, "pid"));
        put_row(columns, EL_TABLE_PLAIN, process_at.i == 0 ? head : "", what, own, "",
                el_json_number(process, "process_bytes"));
        json_decref(own);
    }
    put_row(columns, EL_TABLE_DIM, "", "the ledger's peak in it", devices, "memory.peak_bytes", NAN);
    put_row(columns, EL_TABLE_DIM, "", "unattributed", devices, "memory.unattributed_bytes", NAN);
}

void el_report_processes(const json_t *run, FILE *out)
{
    const json_t *trials = json_object_get(run, "trials"), *widest = NULL;
    struct columns columns;
    EL_EACH(trial, trials)
        if (has_reading(trial) && (!widest || shown(trial) > shown(widest))) widest = trial;
    if (!widest) return;
    fputs("\nMemory as the system sees it, when the measured steps had ended\n", out);
    lay_out(widest, out, &columns);
    el_table_heads(&columns.table, EL_TABLE_BOLD);
    EL_EACH(trial, trials)
        if (has_reading(trial) && !is_outdone(trials, trial_at.i)) put_trial(trial, &columns);
}
