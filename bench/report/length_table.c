/* What padding costs, and who computes longest when, of trials whose batches have lengths of their own. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/report.h"

static const struct el_column columns[] = {EL_SHOWN("mode", -9, el_report_mode),
                                           EL_SHOWN("global batch", -14, el_table_batch), EL_NO_MORE};
static const struct el_column device_columns[] = {
    {.head = "device", .gap = 2, .width = -8, .path = "device"}, EL_FIGURE("words", 8, "loading.length.words"),
    EL_FIGURE("padded to", 11, "loading.length.mean"),           EL_FIGURE("at most", 9, "loading.length.max"),
    EL_FIGURE("padding %", 11, "loading.length.padding_pct"),    EL_FIGURE("compute ms", 12, "compute_ms"),
    EL_FIGURE("longest in % of steps", 23, "longest_pct"),       EL_NO_MORE};

static double computed_ms(const json_t *device, size_t step)
{
    return json_number_value(json_array_get(el_json_at(device, "steps.compute_ms"), step));
}

/* In how many of the steps that all devices kept `own` computed longer than every other, in per cent. */
static double longest_pct(const json_t *devices, size_t own)
{
    size_t n = json_array_size(el_json_at(json_array_get(devices, 0), "steps.compute_ms")), times = 0;
    for (size_t step = 0; step < n; step++) {
        bool longest = true;
        for (size_t d = 0; d < json_array_size(devices); d++)
            longest &= d == own ||
                       computed_ms(json_array_get(devices, own), step) > computed_ms(json_array_get(devices, d), step);
        times += longest;
    }
    return n ? 100 * (double)times / (double)n : NAN;
}

static bool has_lengths(const json_t *trial)
{
    return el_report_is_ok(trial) && json_is_object(el_json_at(trial, "per_device.0.steps"));
}

static void put_trial(const struct el_table *of_trials, const struct el_table *of_devices, const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    el_table_row(of_trials, EL_TABLE_PLAIN, trial);
    EL_EACH(device, devices) {
        json_t *row = json_copy((json_t *)(uintptr_t)device);
        if (json_array_size(devices) > 1)
            el_json_put(row, "longest_pct", el_json_real(longest_pct(devices, device_at.i)));
        el_table_row(of_devices, EL_TABLE_DIM, row);
        json_decref(row);
    }
}

void el_report_lengths(const json_t *run, FILE *out)
{
    const struct el_table of_trials = {.columns = columns, .out = out},
                          of_devices = {.columns = device_columns, .out = out};
    bool any = false;
    EL_EACH(trial, json_object_get(run, "trials")) {
        if (!has_lengths(trial)) continue;
        if (!any) fputs("\nLengths: words of a sentence, what batches are padded to, and who computes longest\n", out);
        if (!any) el_table_heads(&of_devices, EL_TABLE_BOLD);
        any = true;
        put_trial(&of_trials, &of_devices, trial);
    }
}
