/* Sentences from a run's figures. An interval that holds 1 is not significant. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/report.h"
#include "runtime/modes/mode_info.h"

enum { TEXT_BYTES = 1024 };

static bool finished(const json_t *trial)
{
    return el_report_is_ok(trial) && !isnan(el_json_number(trial, el_at_samples_per_s));
}

static bool is_mode(const json_t *trial, const char *mode)
{
    return el_json_is(trial, "mode", mode);
}

static const json_t *largest(const json_t *trials, const char *mode, double devices_min)
{
    const json_t *found = NULL;
    EL_EACH(trial, trials) {
        if (!is_mode(trial, mode) || !finished(trial) || !(el_json_number(trial, "devices") >= devices_min)) continue;
        if (found == NULL || el_json_number(trial, "global_batch") > el_json_number(found, "global_batch"))
            found = trial;
    }
    return found;
}

static bool was_asked_for(const json_t *trials, const char *mode)
{
    EL_EACH(trial, trials)
        if (is_mode(trial, mode)) return true;
    return false;
}

/* " (in reduce, at 93 % of the step)" */
static void moment_text(const json_t *device, char *text, size_t bytes)
{
    const json_t *timeline = el_json_at(device, "memory.timeline");
    const json_t *ms = json_object_get(timeline, "ms");
    size_t n = json_array_size(ms);
    double step_ms = n > 0 ? json_number_value(json_array_get(ms, n - 1)) : 0;
    double at_ms = el_json_number(timeline, "peak_ms");
    *text = '\0';
    if (isnan(at_ms) || !(step_ms > 0)) return;
    snprintf(text, bytes, " (in %s, at %.0f %% of the step)", el_json_text(timeline, "peak_phase", "?"),
             100 * at_ms / step_ms);
}

static void even_text(const json_t *trials, char *text, size_t bytes)
{
    char ratio[EL_FIGURE_BYTES];
    *text = '\0';
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        bool same = mode->memory.others == 0 && !el_mode_cuts(mode->name);
        const json_t *trial = same ? largest(trials, mode->name, 2) : NULL;
        if (!trial) continue;
        double over_rest = el_json_number(trial, "imbalance.memory.first_over_rest");
        el_text_append(text, bytes, "; in %s it is %s times", mode->name, el_text_figure(over_rest, ratio));
    }
}

static void say_memory_of(const json_t *trial, const char *even, FILE *out)
{
    const json_t *devices = json_object_get(trial, "per_device"), *first = json_array_get(devices, 0);
    double whole = el_excess_of(devices, el_at_device_peak_bytes),
           peak = el_json_number(first, el_at_device_peak_bytes);
    char peak_mib[EL_FIGURE_BYTES], more_mib[EL_FIGURE_BYTES], ratio[EL_FIGURE_BYTES], moment[128];
    char parts[TEXT_BYTES], more[TEXT_BYTES + 64] = "no more than the others, to 1 %";
    moment_text(first, moment, sizeof moment);
    if (whole > peak / 100)
        snprintf(more, sizeof more, "%s MiB more, made up of %s", el_text_mib(whole, more_mib),
                 el_excess_text(devices, parts, sizeof parts));
    EL_ITEM(out, "In %s the first device (%s) peaks at %s MiB%s, %s times the %s (batch %.0f): %s%s.",
            el_json_text(trial, "mode", "?"), el_json_text(first, "device", "?"), el_text_mib(peak, peak_mib), moment,
            el_text_figure(el_json_number(trial, "imbalance.memory.first_over_rest"), ratio),
            json_array_size(devices) == 2 ? "other's" : "others' mean", el_json_number(trial, "global_batch"), more,
            even);
}

/* One GPU can be two devices. */
static void say_no_memory(const json_t *trials, const char *mode, FILE *out)
{
    const json_t *alone = largest(trials, mode, 1), *devices = json_object_get(alone, "device_names");
    const char *first = json_string_value(json_array_get(devices, 0));
    bool gpu = first && !strncmp(first, "cuda:", strlen("cuda:"));
    EL_ITEM(
        out, "No statement about the first device's extra memory: %s on two devices or more %s.%s", mode,
        alone ? "was not run" : "did not finish",
        gpu ? " --devices cuda:0,cuda:0 runs it on one GPU: memory, bytes sent and equal losses are real there, times "
              "are not."
            : "");
}

/* For modes whose first device holds what belongs to all. */
static void say_memory(const json_t *trials, FILE *out)
{
    char even[TEXT_BYTES];
    even_text(trials, even, sizeof even);
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        if (mode->memory.others == 0 || !was_asked_for(trials, mode->name)) continue;
        const json_t *trial = largest(trials, mode->name, 2);
        if (trial)
            say_memory_of(trial, even, out);
        else
            say_no_memory(trials, mode->name, out);
        if (trial) even[0] = 0;
    }
}

static bool is_simulated(const json_t *trial)
{
    return json_is_true(json_object_get(trial, "simulated"));
}

static double rate_of(const json_t *repeat)
{
    return el_report_is_ok(repeat) ? el_json_number(repeat, "samples_per_s") : NAN;
}

struct el_interval el_report_ratio(const json_t *a, const json_t *b, size_t *n_p)
{
    const json_t *repeats = json_object_get(a, "repeats"), *others = json_object_get(b, "repeats");
    size_t room = json_array_size(repeats) + 1, n = 0;
    double *x = calloc(room, sizeof *x), *y = calloc(room, sizeof *y);
    EL_EACH(repeat, x && y ? repeats : NULL) {
        x[n] = rate_of(repeat);
        y[n] = NAN;
        EL_EACH(other, others)
            if (isnan(y[n]) && el_json_number(other, "repeat") == el_json_number(repeat, "repeat"))
                y[n] = rate_of(other);
        n += x[n] > 0 && y[n] > 0;
    }
    struct el_interval interval = el_stats_ratio_paired(x, y, n);
    if (is_simulated(a) || is_simulated(b)) /* all launches are alike */
        interval = (struct el_interval){
            .centre = interval.centre, .low = NAN, .high = NAN, .reason = "simulated, so that all launches are alike"};
    free(x);
    free(y);
    *n_p = n;
    return interval;
}

static const json_t *partner(const json_t *trials, const json_t *trial, const char *mode)
{
    EL_EACH(other, trials) {
        if (is_mode(other, mode) && finished(other) &&
            el_json_number(other, "global_batch") == el_json_number(trial, "global_batch") &&
            el_json_number(other, "devices") == el_json_number(trial, "devices"))
            return other;
    }
    return NULL;
}

struct ratios {
    char text[TEXT_BYTES];
    bool intervals, *reasoned; /* the reason for no interval is given once */
    bool several;              /* several numbers of devices: each ratio names its own */
    bool simulated;
    const char *verdict, *doubt; /* of the first trial with doubtful times */
};

/* Doubtful times carry the verdict; real ones need an interval. */
static void append_ratio(struct el_interval ratio, const json_t *trial, const char *verdict, struct ratios *r)
{
    bool none = ratio.valid && ratio.low <= 1 && ratio.high >= 1;
    char times[EL_FIGURE_BYTES], *text = r->text;
    snprintf(times, sizeof times, "%.2f times", ratio.centre);
    el_text_append(text, TEXT_BYTES, "%s%s at batch %.0f", *text ? "; " : "",
                   none                                       ? "no significant difference"
                   : verdict && !ratio.valid && !r->simulated ? "no ratio"
                                                              : times,
                   el_json_number(trial, "global_batch"));
    if (r->several) el_text_append(text, TEXT_BYTES, " on %.0f", el_json_number(trial, "devices"));
    if (ratio.valid)
        el_text_append(text, TEXT_BYTES, " (%.3f to %.3f%s%s)", ratio.low, ratio.high, verdict ? ", " : "",
                       verdict ? verdict : "");
    else if (verdict)
        el_text_append(text, TEXT_BYTES, " (%s)", verdict);
    else if (!*r->reasoned)
        el_text_append(text, TEXT_BYTES, " (no interval: %s)", ratio.reason);
    *r->reasoned |= !ratio.valid && !verdict;
    r->intervals |= ratio.valid;
}

static void add_batch(const json_t *trial, const json_t *other, struct ratios *r)
{
    size_t n;
    const json_t *doubtful = el_report_doubt(other) ? other : el_report_doubt(trial) ? trial : NULL;
    const char *verdict = doubtful ? el_report_verdict(doubtful) : NULL;
    r->simulated |= is_simulated(trial) || is_simulated(other);
    append_ratio(el_report_ratio(other, trial, &n), trial, verdict, r);
    if (!doubtful || r->doubt) return;
    r->verdict = verdict;
    r->doubt = el_report_doubt(doubtful);
}

static void say_unpaired(const json_t *trials, const char *mode, const char *base, FILE *out)
{
    const char *missing = largest(trials, base, 1) == NULL ? base : mode;
    bool ran = largest(trials, missing, 1) != NULL;
    EL_ITEM(out, "%s and %s cannot be compared: %s %s%s.", base, mode, missing,
            ran ? "has no batch in common with " : "did not finish", ran ? base : "");
}

static void say_pair(const json_t *trials, const char *mode, const char *base, bool *reasoned, FILE *out)
{
    struct ratios r = {.reasoned = reasoned};
    char on[64] = "";
    double devices = 0;
    for (int pass = 0; pass < 2; pass++)
        EL_EACH(trial, trials) {
            bool first = is_mode(trial, base) && finished(trial) && partner(trials, trial, base) == trial;
            const json_t *other = first ? partner(trials, trial, mode) : NULL;
            if (other && pass) add_batch(trial, other, &r);
            if (!other || pass) continue;
            r.several |= devices > 0 && devices != el_json_number(trial, "devices");
            devices = el_json_number(trial, "devices");
        }
    const char *simulated = r.simulated ? "simulated " : "";
    if (!r.several)
        snprintf(on, sizeof on, " on %.0f %sdevice%s", devices, simulated, devices == 1 ? "" : "s");
    else if (r.simulated)
        snprintf(on, sizeof on, " on simulated devices");
    if (!*r.text)
        say_unpaired(trials, mode, base, out);
    else
        EL_ITEM(out, "%s against %s%s, %s/s: %s%s%s%s%s%s%s", mode, base, on,
                el_report_of_tokens(trials) ? "tokens" : "samples", r.text,
                r.intervals ? "; 95 % intervals over repeats." : ".", r.doubt ? " It is " : "",
                r.doubt ? r.verdict : "", r.doubt ? ": " : "", r.doubt ? r.doubt : "", r.doubt ? "." : "");
}

static void say_modes(const json_t *trials, FILE *out)
{
    const char *base = NULL;
    bool reasoned = false;
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        if (el_mode_devices(mode->name, 2) < 2 || !was_asked_for(trials, mode->name)) continue;
        if (base) say_pair(trials, mode->name, base, &reasoned, out);
        if (!base) base = mode->name;
    }
}

/* Uses the tag's own peak, which is equal in every mode; its share at the device's peak is not. */
static double bytes_a_sample(const json_t *trial)
{
    return el_json_number(trial, "per_device.0.memory.peak_by_tag.activation") /
           el_json_number(trial, "batch_per_device.0");
}

static void say_gpu(const json_t *trials, FILE *out)
{
    const json_t *trial = NULL;
    char param[EL_FIGURE_BYTES], sample[EL_FIGURE_BYTES], sent[EL_FIGURE_BYTES], comm[TEXT_BYTES] = "";
    char trained[EL_FIGURE_BYTES], rest[EL_FIGURE_BYTES + 32] = "";
    char carried[TEXT_BYTES * 2] = "Memory terms and bytes sent carry over, to PyTorch too.";
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        const json_t *of_mode = largest(trials, mode->name, 1);
        if (of_mode) trial = of_mode;
    }
    double comm_bytes = el_json_number(trial, el_at_comm_bytes);
    bool on_gpus = el_json_text(json_array_get(trials, 0), "per_device.0.uuid", NULL) != NULL;
    if (comm_bytes > 0)
        snprintf(comm, sizeof comm, ", %s MiB sent per step by all devices in %s", el_text_mib(comm_bytes, sent),
                 el_json_text(trial, "mode", "?"));
    double param_bytes = el_json_number(trial, "param_bytes"), trained_bytes = el_json_number(trial, "trained_bytes");
    if (trained_bytes < param_bytes)
        snprintf(rest, sizeof rest, " (%s of it trained)", el_text_mib(trained_bytes, trained));
    if (trial != NULL && !isnan(bytes_a_sample(trial)))
        snprintf(
            carried, sizeof carried,
            "Memory terms and bytes carry over, to PyTorch too: %s MiB for each copy of the parameters%s, %s MiB of "
            "activations per local sample%s.",
            el_text_mib(param_bytes, param), rest, el_text_figure(bytes_a_sample(trial) / 1048576, sample), comm);
    if (on_gpus)
        EL_ITEM(out, "%s The CUDA context, the libraries and what they load come on top of the memory above.", carried);
    else if (is_simulated(trial))
        EL_ITEM(out,
                "On a GPU, context and library memory come on top. %s Step times are simulated: they are those of the "
                "machine and costs above, and no measurement.",
                carried);
    else
        EL_ITEM(
            out,
            "On a GPU, context and library memory come on top, and times differ. %s Step times on CPU devices do not, "
            "nor do ratios made of them.",
            carried);
}

void el_report_sentences(const json_t *run, FILE *out)
{
    const json_t *trials = json_object_get(run, "trials");
    say_memory(trials, out);
    say_modes(trials, out);
    el_report_buckets(run, out);
    el_report_hooks(run, out);
    say_gpu(trials, out);
}
