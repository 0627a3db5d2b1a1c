/* Three sentences from a run's figures: why the first device holds more, dp against ddp, what a GPU would add.
 *
 * They claim nothing that the record does not hold: where a mode is missing or failed they say so, and where the
 * interval of the ratio holds 1 they say that the difference is not significant. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/excess.h"
#include "bench/report/report.h"
#include "bench/stats/stats.h"
#include "runtime/base/probe.h"

static bool finished(const json_t *trial)
{
    return strcmp(el_json_text(trial, "status", ""), "ok") == 0 &&
           !isnan(el_json_number(trial, "throughput.samples_per_s"));
}

static bool is_mode(const json_t *trial, const char *mode)
{
    return strcmp(el_json_text(trial, "mode", ""), mode) == 0;
}

/* The finished trial of the mode, on so many devices at least, with the largest batch; NULL: none. */
static const json_t *largest(const json_t *trials, const char *mode, double devices_min)
{
    const json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        if (!is_mode(trial, mode) || !finished(trial) || !(el_json_number(trial, "devices") >= devices_min)) continue;
        if (found == NULL || el_json_number(trial, "global_batch") > el_json_number(found, "global_batch"))
            found = trial;
    }
    return found;
}

static bool mode_was_asked_for(const json_t *trials, const char *mode)
{
    for (size_t i = 0; i < json_array_size(trials); i++) {
        if (is_mode(json_array_get(trials, i), mode)) return true;
    }
    return false;
}

/* Why there is no figure of this mode: it was not asked for, or did not finish. */
static const char *reason_for_none(const json_t *trials, const char *mode)
{
    return mode_was_asked_for(trials, mode) ? "did not finish" : "was not requested";
}

/* There nothing is missing: nobody wants to hear of it. */
static bool was_left_out(const json_t *trials, const char *mode)
{
    return json_array_size(trials) > 0 && !mode_was_asked_for(trials, mode);
}

/* Where in the step the peak lies, for records that tell. */
static void say_moment(const json_t *device, FILE *out)
{
    const json_t *timeline = el_json_at(device, "memory.timeline");
    size_t n = json_array_size(json_object_get(timeline, "ms"));
    double step_ms = n > 0 ? json_number_value(json_array_get(json_object_get(timeline, "ms"), n - 1)) : 0;
    double at_ms = el_json_number(timeline, "peak_ms");
    if (isnan(at_ms) || !(step_ms > 0)) return;
    fprintf(out, " (in %s, at %.0f %% of the step)", el_json_text(timeline, "peak_phase", "?"), 100 * at_ms / step_ms);
}

static void say_memory(const json_t *trials, FILE *out)
{
    const json_t *dp = largest(trials, "dp", 2);
    char first[EL_FIGURE_BYTES], more[EL_FIGURE_BYTES], ratio[EL_FIGURE_BYTES];
    if (dp == NULL && was_left_out(trials, "dp")) return;
    if (dp == NULL) {
        fprintf(out, "No statement about the first device's extra memory: dp on two devices or more %s.",
                mode_was_asked_for(trials, "dp") && largest(trials, "dp", 1) != NULL ? "was not run"
                                                                                     : reason_for_none(trials, "dp"));
        return;
    }
    double whole = el_excess_of(json_object_get(dp, "per_device"), "memory.peak_bytes");
    const json_t *devices = json_object_get(dp, "per_device");
    const json_t *master = json_array_get(devices, 0);
    double peak = el_json_number(master, "memory.peak_bytes");
    fprintf(out, "In dp the first device (%s) peaks at %s MiB", el_json_text(master, "device", "?"),
            el_text_mib(peak, first));
    say_moment(master, out);
    fprintf(out, ", %s times the %s (batch %.0f): ",
            el_text_figure(el_json_number(dp, "imbalance.memory.first_over_rest"), ratio),
            json_array_size(devices) == 2 ? "other's" : "others' mean", el_json_number(dp, "global_batch"));
    if (whole > peak / 100) {
        char parts[512];
        fprintf(out, "%s MiB more, made up of %s", el_text_mib(whole, more),
                el_excess_text(devices, parts, sizeof parts));
    } else {
        fputs("no more than the others, to 1 %", out);
    }
    const json_t *ddp = largest(trials, "ddp", 2);
    if (ddp != NULL) {
        fprintf(out, "; in ddp it is %s times",
                el_text_figure(el_json_number(ddp, "imbalance.memory.first_over_rest"), ratio));
    }
    fputc('.', out);
}

/* Samples a second of the repeats of both trials; paired where each repeat of the one has its fellow in the other. */
static struct el_interval ratio_of(const json_t *a, const json_t *b)
{
    json_t *rates[2] = {json_array(), json_array()};
    const json_t *rows[2] = {json_object_get(a, "repeats"), json_object_get(b, "repeats")};
    double *x, *y;
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < json_array_size(rows[side]); i++) {
            json_t *rate = json_object_get(json_array_get(rows[side], i), "samples_per_s");
            if (json_is_number(rate)) json_array_append(rates[side], rate);
        }
    }
    size_t n_x = el_json_numbers(rates[0], &x), n_y = el_json_numbers(rates[1], &y);
    bool paired = n_x == n_y && n_x == json_array_size(rows[0]) && n_y == json_array_size(rows[1]);
    struct el_interval ratio = paired ? el_stats_ratio_paired(x, y, n_x) : el_stats_ratio_welch(x, n_x, y, n_y);
    free(x);
    free(y);
    json_decref(rates[0]);
    json_decref(rates[1]);
    return ratio;
}

static const json_t *partner(const json_t *trials, const json_t *trial, const char *mode)
{
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *other = json_array_get(trials, i);
        if (is_mode(other, mode) && finished(other) &&
            el_json_number(other, "global_batch") == el_json_number(trial, "global_batch") &&
            el_json_number(other, "devices") == el_json_number(trial, "devices")) {
            return other;
        }
    }
    return NULL;
}

static void say_ratio(struct el_interval ratio, double batch, FILE *out)
{
    if (!ratio.valid) {
        fprintf(out, "%.2f times at batch %.0f (no interval: %s)", ratio.centre, batch, ratio.reason);
    } else if (ratio.low <= 1 && ratio.high >= 1) {
        fprintf(out, "no significant difference at batch %.0f (%.3f to %.3f)", batch, ratio.low, ratio.high);
    } else {
        fprintf(out, "%.2f times at batch %.0f (%.3f to %.3f)", ratio.centre, batch, ratio.low, ratio.high);
    }
}

static void say_modes(const json_t *trials, FILE *out)
{
    int said = 0;
    bool intervals = false;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *dp = json_array_get(trials, i);
        const json_t *ddp = is_mode(dp, "dp") && finished(dp) ? partner(trials, dp, "ddp") : NULL;
        if (ddp == NULL) continue;
        struct el_interval ratio = ratio_of(ddp, dp);
        if (said++ == 0) {
            fprintf(out, "ddp against dp on %.0f device%s, samples/s: ", el_json_number(dp, "devices"),
                    el_json_number(dp, "devices") == 1 ? "" : "s");
        } else {
            fputs("; ", out);
        }
        say_ratio(ratio, el_json_number(dp, "global_batch"), out);
        intervals |= ratio.valid;
    }
    if (said > 0) {
        fputs(intervals ? "; 95 % intervals over repeats." : ".", out);
        return;
    }
    if (was_left_out(trials, "dp") || was_left_out(trials, "ddp")) return;
    const char *missing = largest(trials, "dp", 1) == NULL ? "dp" : "ddp";
    fprintf(out, "dp and ddp cannot be compared: %s %s%s.", missing,
            largest(trials, missing, 1) == NULL ? reason_for_none(trials, missing) : "has no batch in common",
            largest(trials, missing, 1) == NULL ? "" : " with dp");
}

/* Activation bytes a local sample, from the trial's first device; NAN if unknown. By the tag's own highest, which is
 * the same in every mode: what of it is there at the device's peak depends on where in the step that lies. */
static double bytes_a_sample(const json_t *trial)
{
    return el_json_number(trial, "per_device.0.memory.peak_by_tag.activation") /
           el_json_number(trial, "batch_per_device.0");
}

static void say_gpu(const json_t *trials, FILE *out)
{
    static const char *const modes[] = {"ddp", "dp", "single"};
    const json_t *trial = NULL;
    char param[EL_FIGURE_BYTES], sample[EL_FIGURE_BYTES], sent[EL_FIGURE_BYTES];
    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && trial == NULL; i++) trial = largest(trials, modes[i], 1);
    bool on_gpus = el_json_text(json_array_get(trials, 0), "per_device.0.uuid", NULL) != NULL;
    if (!on_gpus) fputs("On a GPU, context and library memory come on top, and times differ. ", out);
    if (trial != NULL && !isnan(bytes_a_sample(trial))) {
        double comm = el_json_number(trial, "comm.bytes");
        fprintf(out,
                "Memory terms and bytes carry over, to PyTorch too: %s MiB for each copy of the parameters, %s MiB of "
                "activations a local sample",
                el_text_mib(el_json_number(trial, "param_bytes"), param),
                el_text_figure(bytes_a_sample(trial) / 1048576, sample));
        if (comm > 0) {
            fprintf(out, ", %s MiB sent a step by all devices in %s", el_text_mib(comm, sent),
                    el_json_text(trial, "mode", "?"));
        }
        fputs(". ", out);
    } else {
        fputs("Memory terms and bytes sent carry over, to PyTorch too. ", out);
    }
    if (on_gpus)
        fputs("The CUDA context, the libraries and what they load come on top of the memory above.", out);
    else
        fputs("Step times on CPU devices do not, nor do ratios made of them.", out);
}

void el_report_sentences(const json_t *run, FILE *out)
{
    static void (*const sentences[])(const json_t *, FILE *) = {say_memory, say_modes, say_gpu};
    const json_t *trials = json_object_get(run, "trials");
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *memory = open_memstream(&text, &bytes);
        if (memory == NULL) return;
        sentences[i](trials, memory);
        fclose(memory);
        if (bytes > 0) el_text_wrap(text, "* ", "  ", EL_REPORT_COLUMNS, out);
        free(text);
    }
}
