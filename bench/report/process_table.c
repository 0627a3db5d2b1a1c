/* Memory as the system sees it: a table process x device, as nvidia-smi prints it, and beside it what the ledger
 * accounts for. Of each mode the largest batch that finished. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/report.h"
#include "bench/report/row_names.h"

enum { DEVICES_SHOWN = 6 };

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

/* A line: what it is of, then a figure a device in MiB (NAN: none), and one more. */
static void put_line(const char *head, const char *what, const double *bytes, size_t n, double last,
                     enum el_table_style style, FILE *out, bool colour)
{
    char line[EL_TABLE_LINE_BYTES], mib[EL_FIGURE_BYTES];
    snprintf(line, sizeof line, "%-14s%-26s", head, what);
    for (size_t d = 0; d < n; d++)
        el_text_append(line, sizeof line, "%9s", isnan(bytes[d]) ? "-" : el_text_mib(bytes[d], mib));
    if (!isnan(last)) el_text_append(line, sizeof line, "%16s", el_text_mib(last, mib));
    el_table_line(out, style, colour, line);
}

static void put_heads(const json_t *trial, FILE *out, bool colour)
{
    char line[EL_TABLE_LINE_BYTES];
    snprintf(line, sizeof line, "%-14s%-26s", "mode, batch", "resident MiB");
    for (size_t d = 0; d < shown(trial); d++) {
        const json_t *device = json_array_get(json_object_get(trial, "per_device"), d);
        el_text_append(line, sizeof line, "%9s", el_json_text(device, "device", "?"));
    }
    el_text_append(line, sizeof line, "%16s", "host");
    el_table_line(out, EL_TABLE_BOLD, colour, line);
}

static void put_trial(const json_t *trial, FILE *out, bool colour)
{
    const json_t *processes = json_object_get(trial, "processes"), *devices = json_object_get(trial, "per_device");
    char head[64], what[64];
    double bytes[DEVICES_SHOWN];
    size_t n = shown(trial);
    snprintf(head, sizeof head, "%s %.0f", el_json_text(trial, "mode", "?"), el_json_number(trial, "global_batch"));
    EL_EACH(process, processes) {
        const json_t *own = json_object_get(process, "per_device_bytes");
        snprintf(what, sizeof what, "rank %.0f, process %.0f", el_json_number(process, "rank"),
                 el_json_number(process, "pid"));
        for (size_t d = 0; d < n; d++) {
            const json_t *value = json_array_get(own, d);
            bytes[d] = json_is_number(value) && json_number_value(value) > 0 ? json_number_value(value) : NAN;
        }
        put_line(process_at.i == 0 ? head : "", what, bytes, n, el_json_number(process, "process_bytes"),
                 EL_TABLE_PLAIN, out, colour);
    }
    for (size_t d = 0; d < n; d++) bytes[d] = el_json_number(json_array_get(devices, d), "memory.peak_bytes");
    put_line("", "the ledger's peak in it", bytes, n, NAN, EL_TABLE_DIM, out, colour);
    for (size_t d = 0; d < n; d++) bytes[d] = el_json_number(json_array_get(devices, d), "memory.unattributed_bytes");
    put_line("", "unattributed", bytes, n, NAN, EL_TABLE_DIM, out, colour);
}

void el_report_processes(const json_t *run, FILE *out, bool colour)
{
    const json_t *trials = json_object_get(run, "trials"), *widest = NULL;
    EL_EACH(trial, trials)
        if (has_reading(trial) && (!widest || shown(trial) > shown(widest))) widest = trial;
    if (!widest) return;
    fputs("\nMemory as the system sees it, when the measured steps had ended\n", out);
    put_heads(widest, out, colour);
    for (size_t i = 0; i < json_array_size(trials); i++)
        if (has_reading(json_array_get(trials, i)) && !is_outdone(trials, i))
            put_trial(json_array_get(trials, i), out, colour);
}
