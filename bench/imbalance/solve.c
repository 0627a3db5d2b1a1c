/* Time: a device computes a + c n ms for n samples: proportional to its time with equal shares, or by the line through
 * two trials. Samples go one by one to the device that would end first, which is optimal for such times. Memory: the
 * device with the highest forecast peak gives ever fewer samples to the one with the lowest, until that no longer
 * lowers the highest peak. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/record/metrics.h"

/* A step this close to the optimum needs no other round. */
#define CLOSE_RATIO 1.01

static const json_t *trial_of(const json_t *trials, const char *shares)
{
    EL_EACH(trial, trials)
        if (!strcmp(el_json_text(trial, "config.shares", ""), shares)) return trial;
    return NULL;
}

static double samples_of(const json_t *trial, int device)
{
    return json_number_value(json_array_get(json_object_get(trial, "batch_per_device"), (size_t)device));
}

/* Phases that grow with samples; ranks load their own and have their own loss. */
static double compute_ms(const json_t *trial, int device)
{
    static const char *const phases[] = {"forward", "backward", "data", "h2d", "loss"};
    const bool all = el_mode_find(el_json_text(trial, "mode", "?"))->loss == EL_LOSS_OF_RANKS;
    const json_t *busy = el_json_at(json_array_get(json_object_get(trial, "per_device"), (size_t)device), "busy_ms");
    double sum = 0;
    for (size_t p = 0; p < (all ? 5 : 2); p++) sum += json_number_value(json_object_get(busy, phases[p]));
    return sum;
}

static double step_ms(const json_t *trial)
{
    return el_json_number(trial, el_at_step_median_ms);
}

struct line {
    double fixed_ms, sample_ms;
};

static struct line line_of(const json_t *equal, const json_t *other, int device)
{
    double n = samples_of(equal, device), ms = compute_ms(equal, device);
    double more = other ? samples_of(other, device) - n : 0;
    struct line line = {0, ms / n};
    if (more == 0) return line;
    double slope = (compute_ms(other, device) - ms) / more;
    if (slope > 0 && slope <= line.sample_ms) line = (struct line){ms - slope * n, slope};
    return line;
}

/* At least one sample per device. */
static double deal(const struct line *lines, int n, int64_t batch, int64_t *samples)
{
    double most = 0;
    for (int d = 0; d < n; d++) samples[d] = 1;
    for (int64_t i = n; i < batch; i++) {
        int best = 0;
        for (int d = 1; d < n; d++)
            if (lines[d].fixed_ms + lines[d].sample_ms * (double)(samples[d] + 1) <
                lines[best].fixed_ms + lines[best].sample_ms * (double)(samples[best] + 1))
                best = d;
        samples[best]++;
    }
    for (int d = 0; d < n; d++) most = fmax(most, lines[d].fixed_ms + lines[d].sample_ms * (double)samples[d]);
    return most;
}

static void solve_time(struct el_solution *s, const struct el_trial *equal, const json_t *trials)
{
    const json_t *first = trial_of(trials, ""), *other = s->n > 0 ? trial_of(trials, s->shares[s->n - 1]) : NULL;
    struct line lines[EL_SOLVE_DEVICES];
    double slowest_ms = 0;
    for (int d = 0; d < equal->n_devices; d++) {
        lines[d] = line_of(first, other, d);
        slowest_ms = fmax(slowest_ms, compute_ms(first, d));
    }
    s->optimum = step_ms(first) - slowest_ms + deal(lines, equal->n_devices, equal->train.global_batch, s->samples);
}

struct peaks {
    double bytes[EL_SOLVE_DEVICES];
    int highest, lowest, n_highest;
};

static enum el_status forecast(const struct el_trial *equal, const int64_t *samples, struct peaks *peaks_p)
{
    struct el_memory_forecast forecasts[EL_SOLVE_DEVICES];
    struct el_trial trial = *equal;
    struct peaks peaks = {.highest = 0};
    trial.train.shares.n = equal->n_devices;
    for (int d = 0; d < equal->n_devices; d++) trial.train.shares.weight[d] = (int)samples[d];
    EL_TRY(el_trial_forecast(&trial, forecasts));
    for (int d = 0; d < equal->n_devices; d++) {
        peaks.bytes[d] = (double)forecasts[d].ledger.peak_bytes;
        if (peaks.bytes[d] > peaks.bytes[peaks.highest]) peaks.highest = d;
        if (peaks.bytes[d] < peaks.bytes[peaks.lowest]) peaks.lowest = d;
    }
    for (int d = 0; d < equal->n_devices; d++) peaks.n_highest += peaks.bytes[d] == peaks.bytes[peaks.highest];
    *peaks_p = peaks;
    return EL_OK;
}

static bool is_lower(const struct peaks *a, const struct peaks *b)
{
    double most = a->bytes[a->highest], other = b->bytes[b->highest];
    return most < other || (most == other && a->n_highest < b->n_highest);
}

static enum el_status solve_memory(struct el_solution *s, const struct el_trial *equal)
{
    struct peaks peaks;
    const int n = equal->n_devices;
    for (int d = 0; d < n; d++) s->samples[d] = el_layout_chunk(equal->train.global_batch, n, d);
    EL_TRY(forecast(equal, s->samples, &peaks));
    for (int64_t gift = equal->train.global_batch / (8 * n) + 1; gift > 0;) {
        struct peaks after;
        s->samples[peaks.highest] -= gift;
        s->samples[peaks.lowest] += gift;
        bool can = s->samples[peaks.highest] > 0;
        if (can) EL_TRY(forecast(equal, s->samples, &after));
        if (can && is_lower(&after, &peaks)) {
            peaks = after;
            continue;
        }
        s->samples[peaks.highest] += gift;
        s->samples[peaks.lowest] -= gift;
        gift /= 2;
    }
    s->optimum = peaks.bytes[peaks.highest];
    return EL_OK;
}

/* "3,1" of 48 and 16. */
static void write_shares(const int64_t *samples, int n, char text[EL_MODE_TEXT_BYTES])
{
    int64_t divisor = samples[0];
    *text = 0;
    for (int d = 1; d < n; d++)
        for (int64_t other = samples[d]; other;) {
            int64_t rest = divisor % other;
            divisor = other;
            other = rest;
        }
    for (int d = 0; d < n; d++)
        el_text_append(text, EL_MODE_TEXT_BYTES, "%s%lld", d ? "," : "", (long long)(samples[d] / divisor));
}

static int64_t equal_samples(const struct el_trial *equal, int device)
{
    struct el_layout layout;
    el_layout_of(&equal->train, equal->procs, &layout);
    return el_layout_spot(&layout, device).samples;
}

enum el_status el_solution_check(const struct el_trial *equal)
{
    if (!el_mode_option_of(equal->train.mode, "shares"))
        return el_fail(EL_ERR_INVALID, "--solve: mode %s takes no --shares; dp, ddp and manual do", equal->train.mode);
    if (equal->n_devices > EL_SOLVE_DEVICES)
        return el_fail(EL_ERR_INVALID, "--solve: at most %d devices", EL_SOLVE_DEVICES);
    for (int d = 0; d < equal->n_devices; d++)
        if (equal_samples(equal, d) == 0)
            return el_fail(EL_ERR_INVALID, "--solve: with equal shares device %d has no samples: give a larger --batch",
                           d);
    return EL_OK;
}

enum el_status el_solution_next(struct el_solution *s, const struct el_trial *equal, const json_t *trials,
                                bool *found_p)
{
    char shares[EL_MODE_TEXT_BYTES];
    const json_t *first = trial_of(trials, "");
    const double last_ms = s->n > 0 && !s->memory ? step_ms(trial_of(trials, s->shares[s->n - 1])) : INFINITY;
    bool known = true;
    *found_p = false;
    if (s->n == (s->memory ? 1 : EL_SOLVE_ROUNDS)) return EL_OK;
    if (!s->memory && !(step_ms(first) > 0)) return EL_OK; /* its row says why */
    if (s->memory)
        EL_TRY(solve_memory(s, equal));
    else
        solve_time(s, equal, trials);
    if (last_ms <= CLOSE_RATIO * s->optimum) return EL_OK;
    for (int d = 0; d < equal->n_devices; d++) known = known && s->samples[d] == equal_samples(equal, d);
    write_shares(s->samples, equal->n_devices, shares);
    for (int i = 0; i < s->n; i++) known = known || !strcmp(shares, s->shares[i]);
    if (known) return EL_OK;
    snprintf(s->shares[s->n++], EL_MODE_TEXT_BYTES, "%s", shares);
    *found_p = true;
    return EL_OK;
}

static double peak_bytes(const json_t *trial, const char **device_p)
{
    double most = NAN;
    EL_EACH(device, json_object_get(trial, "per_device")) {
        double bytes = el_json_number(device, el_at_device_peak_bytes);
        if (bytes <= most) continue;
        most = bytes;
        *device_p = el_json_text(device, "device", "?");
    }
    return most;
}

static void conclude_time(const struct el_solution *s, const json_t *equal, const json_t *best, const char *shares,
                          json_t *document)
{
    json_t *per_sample = json_array();
    const json_t *devices = json_object_get(equal, "per_device");
    int n = (int)json_array_size(devices), slow = 0, fast = 0;
    char times[EL_FIGURE_BYTES], before[EL_FIGURE_BYTES], after[EL_FIGURE_BYTES], gain[EL_FIGURE_BYTES],
        optimum[EL_FIGURE_BYTES], text[EL_SENTENCE_BYTES];
    double ms[EL_SOLVE_DEVICES];
    for (int d = 0; d < n && d < EL_SOLVE_DEVICES; d++) {
        ms[d] = compute_ms(equal, d) / samples_of(equal, d);
        json_array_append_new(per_sample, el_json_real(ms[d]));
        if (ms[d] > ms[slow]) slow = d;
        if (ms[d] < ms[fast]) fast = d;
    }
    const char *slowest = el_json_text(json_array_get(devices, (size_t)slow), "device", "?"),
               *fastest = el_json_text(json_array_get(devices, (size_t)fast), "device", "?");
    snprintf(text, sizeof text, "%s computes %s times as long per sample as %s", slowest,
             el_text_figure(ms[slow] / ms[fast], times), fastest);
    if (best && step_ms(best) > 0)
        el_text_append(text, sizeof text,
                       "; shares %s bring the step from %s to %s ms (%s times as fast), the optimum by the measured "
                       "speeds is %s.",
                       shares, el_text_figure(step_ms(equal), before), el_text_figure(step_ms(best), after),
                       el_text_figure(step_ms(equal) / step_ms(best), gain), el_text_figure(s->optimum, optimum));
    else
        el_text_append(text, sizeof text, "; %s.",
                       best ? "the trial with other shares did not finish" : "equal shares are the best already");
    el_json_put_all(document, EL_KEY("ms_per_sample", per_sample), EL_KEY("slowest", slowest),
                    EL_KEY("fastest", fastest), EL_KEY("times_as_long", ms[slow] / ms[fast]),
                    EL_KEY("equal_step_ms", step_ms(equal)), EL_KEY("step_ms", best ? step_ms(best) : NAN),
                    EL_KEY("optimum_step_ms", s->optimum), EL_KEY("sentence", text));
}

static void conclude_memory(const struct el_solution *s, const json_t *equal, const json_t *best, const char *shares,
                            json_t *document)
{
    const char *first = "?", *highest = "?";
    char before[EL_FIGURE_BYTES], after[EL_FIGURE_BYTES], predicted[EL_FIGURE_BYTES], text[EL_SENTENCE_BYTES];
    double equal_bytes = peak_bytes(equal, &first), bytes = peak_bytes(best, &highest);
    snprintf(text, sizeof text, "with equal shares %s holds the most, %s MiB", first, el_text_mib(equal_bytes, before));
    if (bytes > 0)
        el_text_append(text, sizeof text, "; with shares %s %s does, %s MiB (%.1f %% less, predicted %s).", shares,
                       highest, el_text_mib(bytes, after), 100 * (1 - bytes / equal_bytes),
                       el_text_mib(s->optimum, predicted));
    else
        el_text_append(text, sizeof text, "; %s.",
                       best ? "the trial with other shares did not finish" : "no other shares bring that down");
    el_json_put_all(document, EL_KEY("equal_peak_bytes", equal_bytes), EL_KEY("peak_bytes", bytes),
                    EL_KEY("predicted_peak_bytes", s->optimum), EL_KEY("sentence", text));
}

json_t *el_solution_document(const struct el_solution *s, const json_t *trials)
{
    const char *shares = s->n > 0 ? s->shares[s->n - 1] : NULL;
    const json_t *equal = trial_of(trials, ""), *best = shares ? trial_of(trials, shares) : NULL,
                 *samples = json_object_get(best, "batch_per_device");
    if (!json_array_size(json_object_get(equal, "per_device"))) return json_null(); /* its row says why */
    json_t *document = el_json_of(EL_KEY("by", s->memory ? "memory" : "time"), EL_KEY("shares", shares),
                                  EL_KEY("samples", samples ? json_deep_copy(samples) : json_null()));
    if (s->memory)
        conclude_memory(s, equal, best, shares, document);
    else
        conclude_time(s, equal, best, shares, document);
    return document;
}
