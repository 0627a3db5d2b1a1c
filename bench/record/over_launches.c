/* Figures within each launch, then one over launches: each launch counts once, whatever its number of steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/stats/stats.h"
#include "bench/verdict/verdict.h"

/* Per token 6 N + 12 L H Q T (Chowdhery et al., "PaLM", 2022, appendix B; 6 N: Kaplan et al., "Scaling Laws for Neural
 * Language Models", 2020). N: parameters that multiply a token, so without position embeddings; the token table is the
 * head's matrix and counts once. H Q is the width. Attention counts all T tokens, without the causal mask. NAN: no
 * tokens. */
static double formula_flops(const struct el_trial *trial, const json_t *record)
{
    const struct el_model_config *model = &trial->train.model;
    const double seq = (double)el_trial_tokens(trial), width = (double)el_model_size(model, "embed");
    const double params =
        el_json_number(record, "param_bytes") / (double)el_dtype_bytes(el_config_stored(&trial->train));
    const double a_token = 6 * (params - seq * width) + 12 * (double)el_model_size(model, "layers") * width * seq;
    return seq > 0 ? a_token * seq * (double)trial->train.global_batch : NAN;
}

json_t *el_trial_arithmetic(const struct el_trial *trial, const json_t *record, const json_t *ok)
{
    const json_t *machine = el_json_at(ok, "0.machine"); /* null: simulated, or no --machine */
    const double step_s = el_json_number(record, el_at_step_mean_ms) / 1e3;
    const double rate = el_json_number(record, "flops_per_step") / step_s / trial->n_devices;
    const char *key = trial->train.model.precision   ? "bf16_tflop_per_s"
                      : trial->train.dtype == EL_F64 ? "f64_tflop_per_s"
                                                     : "f32_tflop_per_s";
    const double gemm = 1e12 * el_json_number(machine, key);
    return el_json_of(EL_KEY("flop_per_s_per_device", rate),
                      EL_KEY("formula_flops_per_step", formula_flops(trial, record)), EL_KEY("gemm_flop_per_s", gemm),
                      EL_KEY("gemm_pct", 100 * rate / gemm),
                      EL_KEY("gemm_source", el_json_text(machine, "source", NULL)));
}

static json_t *member_at(const json_t *repeat, size_t position)
{
    return json_array_get(json_object_get(repeat, "members"), position);
}

static double median_at(const json_t *ok, size_t position, const char *path)
{
    char at[128];
    double *values;
    snprintf(at, sizeof at, "members.%zu.%s", position, path);
    size_t n = el_json_numbers_at(ok, at, &values);
    double median = el_stats_median(values, n);
    free(values);
    return median;
}

static void set_medians(json_t *value, const json_t *ok, size_t position, const char *path);

/* Ops: all repeats list them in the same order. */
static void set_medians_of_each(json_t *array, const json_t *ok, size_t position, const char *path)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        char at[96];
        if (snprintf(at, sizeof at, "%s.%zu", path, i) >= (int)sizeof at) return;
        if (json_is_object(json_array_get(array, i))) set_medians(json_array_get(array, i), ok, position, at);
    }
}

/* Integers stay whole. `path`: `value`'s. */
static void set_medians(json_t *value, const json_t *ok, size_t position, const char *path)
{
    void *next;
    const char *key;
    json_t *child;
    json_object_foreach_safe(value, next, key, child)
    {
        char at[96];
        snprintf(at, sizeof at, "%s%s%s", path, *path == '\0' ? "" : ".", key);
        if (json_is_object(child)) {
            set_medians(child, ok, position, at);
        } else if (json_is_array(child)) {
            set_medians_of_each(child, ok, position, at);
        } else if (json_is_integer(child)) {
            el_json_put(value, key, json_integer((json_int_t)llround(median_at(ok, position, at))));
        } else if (json_is_real(child) || json_is_null(child)) {
            el_json_put_real(value, key, median_at(ok, position, at));
        }
    }
}

/* The slower of two. */
static size_t median_repeat(const json_t *ok, double global_batch)
{
    size_t n = json_array_size(ok), found = 0;
    for (size_t i = 0; i < n; i++) {
        double rate = el_repeat_samples_per_s(json_array_get(ok, i), global_batch);
        size_t slower = 0;
        for (size_t k = 0; k < n; k++) {
            double other = el_repeat_samples_per_s(json_array_get(ok, k), global_batch);
            slower += other < rate || (other == rate && k < i);
        }
        if (slower == (n - 1) / 2) found = i;
    }
    return found;
}

/* The median launch's, named in `repeat`. */
static void take_drawn(json_t *device, const json_t *repeat, size_t position)
{
    json_t *memory = json_object_get(device, "memory");
    json_t *timeline = json_deep_copy(el_json_at(member_at(repeat, position), "memory.timeline"));
    json_t *lane = json_deep_copy(json_object_get(member_at(repeat, position), "lane"));
    json_object_set(timeline, "repeat", json_object_get(repeat, "repeat"));
    json_object_set(lane, "repeat", json_object_get(repeat, "repeat"));
    if (json_is_object(timeline)) json_object_set(memory, "timeline", timeline);
    json_decref(timeline);
    el_json_put(device, "lane", lane ? lane : json_null());
}

static json_t *busy_interval(const json_t *ok, size_t position)
{
    char at[64];
    double *values;
    snprintf(at, sizeof at, "members.%zu.utilization.busy_pct", position);
    size_t n = el_json_numbers_at(ok, at, &values);
    struct el_interval interval = el_stats_interval(values, n);
    free(values);
    return el_json_interval(interval.low, fmin(interval.high, 100));
}

/* Identity (rank, pid, host) and memory are the first repeat's, except the timeline. */
static json_t *device_over_repeats(const json_t *ok, size_t position, size_t median)
{
    static const char *const kept[] = {"device",          "host",      "rank",   "pid",   "uuid",
                                       "model",           "simulated", "memory", "cores", "layout",
                                       "activation_sets", "routing"};
    const json_t *first = member_at(json_array_get(ok, 0), position);
    json_t *device = json_deep_copy(first);
    set_medians(device, ok, position, "");
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        json_t *value = json_object_get(first, kept[i]);
        if (value != NULL) el_json_put(device, kept[i], json_deep_copy(value));
    }
    take_drawn(device, json_array_get(ok, median), position);
    /* Drop the first repeat's reason for null if another repeat has the figure. */
    json_t *utilization = json_object_get(device, "utilization");
    if (utilization) el_json_put(utilization, "busy_ci95", busy_interval(ok, position));
    if (json_is_number(json_object_get(utilization, "system_pct")))
        el_json_put(utilization, "system_reason", json_null());
    return device;
}

json_t *el_trial_per_device(const json_t *ok, double global_batch)
{
    json_t *devices = json_array();
    size_t median = median_repeat(ok, global_batch);
    size_t n = json_array_size(json_object_get(json_array_get(ok, 0), "members"));
    for (size_t i = 0; i < n; i++) json_array_append_new(devices, device_over_repeats(ok, i, median));
    return devices;
}

/* Without comm: a collective's span includes the wait for peers. */
static double worked_ms(const json_t *device)
{
    double sum = 0;
    EL_EACH_KEY(key, value, json_object_get(device, "busy_ms")) {
        if (!json_is_number(value)) return NAN;
        if (strcmp(key, el_phase_name(EL_PHASE_COMM)) != 0) sum += json_number_value(value);
    }
    return sum;
}

int el_trial_slowest(const json_t *per_device)
{
    int slowest = -1;
    double most = -1;
    EL_EACH(device, per_device) {
        double worked = worked_ms(device);
        if (!(worked > most)) continue;
        most = worked;
        slowest = (int)device_at.i;
    }
    return slowest;
}

json_t *el_trial_comm(const json_t *per_device, int slowest, const json_t *breakdown)
{
    static const char *const times[] = {"total_ms", "overlapped_ms",   "exposed_ms",
                                        "wait_ms",  "wait_exposed_ms", "transfer_ms"};
    const json_t *from = slowest < 0 ? NULL : el_json_at(json_array_get(per_device, (size_t)slowest), "comm");
    json_t *comm = json_object();
    double bytes = json_array_size(per_device) == 0 ? NAN : 0;
    EL_EACH(device, per_device) bytes += el_json_number(device, "comm.bytes");
    el_json_put(comm, "bytes", el_json_rounded(bytes));
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        el_json_put_real(comm, times[i], el_json_number(from, times[i]));
    double total = el_json_number(from, "total_ms"), overlapped = el_json_number(from, "overlapped_ms");
    el_json_put_all(comm, EL_KEY("overlap_pct", total > 0 ? 100 * overlapped / total : NAN),
                    EL_KEY("exposed_step_ms", el_json_number(breakdown, "exposed_step_ms")),
                    EL_KEY("contention_ms", el_json_number(breakdown, "contention_ms")));
    return comm;
}

json_t *el_trial_imbalance(const json_t *ok)
{
    if (json_array_size(el_json_at(ok, "0.members")) < 2) return json_null();
    return el_json_of(EL_KEY("memory", el_launches_imbalance(ok, el_at_device_peak_bytes, NULL)),
                      EL_KEY("busy", el_launches_imbalance(ok, el_at_device_busy_pct, el_at_device_step_ms)),
                      EL_KEY("bytes", el_launches_imbalance(ok, el_at_device_sent_bytes, NULL)));
}

enum { FIGURES_MAX = 8 };

/* Launches that have figure f: at[f][0 .. n[f]). */
struct gathered {
    double *values, *at[FIGURES_MAX];
    size_t n[FIGURES_MAX];
};

/* `tell` writes figures, preset to NAN. values: to be freed. */
static struct gathered gather(const json_t *launches,
                              void (*tell)(const json_t *launch, const void *context, double *figures),
                              const void *context)
{
    size_t n = json_array_size(launches);
    struct gathered g = {.values = malloc((FIGURES_MAX * n + 1) * sizeof(double))};
    for (size_t f = 0; f < FIGURES_MAX && g.values; f++) g.at[f] = g.values + f * n;
    for (size_t i = 0; i < n && g.values; i++) {
        double figures[FIGURES_MAX];
        for (int f = 0; f < FIGURES_MAX; f++) figures[f] = NAN;
        tell(json_array_get(launches, i), context, figures);
        for (int f = 0; f < FIGURES_MAX; f++)
            if (isfinite(figures[f])) g.at[f][g.n[f]++] = figures[f];
    }
    return g;
}

static double median_of(const json_t *launches,
                        void (*tell)(const json_t *launch, const void *context, double *figures))
{
    struct gathered g = gather(launches, tell, NULL);
    double median = el_stats_median(g.at[0], g.n[0]);
    free(g.values);
    return median;
}

double el_repeat_step_ms(const json_t *repeat, enum el_step_figure figure)
{
    const json_t *steps = json_object_get(repeat, "step_ms");
    double *ms, value = NAN;
    size_t n = el_json_numbers(steps, &ms);
    bool good = n == json_array_size(steps);
    for (size_t i = 0; i < n; i++) good = good && ms[i] > 0;
    if (good)
        value = figure == EL_STEP_MEDIAN ? el_stats_median(ms, n)
                : figure == EL_STEP_MEAN ? el_stats_mean(ms, n)
                                         : el_stats_quantile(ms, n, figure == EL_STEP_P95 ? 0.95 : 0.1);
    free(ms);
    return value;
}

double el_repeat_samples_per_s(const json_t *repeat, double global_batch)
{
    return global_batch / el_repeat_step_ms(repeat, EL_STEP_MEAN) * 1e3;
}

static void tell_rate(const json_t *repeat, const void *global_batch, double *figures)
{
    figures[0] = el_repeat_samples_per_s(repeat, *(const double *)global_batch);
    figures[1] = *(const double *)global_batch / el_json_number(repeat, "wall_ms") * 1e3;
}

/* A simulated trial's launches are all alike: use the prediction's interval. */
static struct el_interval predicted(const json_t *ok, double global_batch, double centre)
{
    const json_t *step = el_json_at(el_verdict_prediction(ok), "step_ms");
    return (struct el_interval){.centre = centre,
                                .low = global_batch / el_json_number(step, "high") * 1e3,
                                .high = global_batch / el_json_number(step, "low") * 1e3,
                                .reason = el_json_text(step, "reason", step ? NULL : "simulated, without an interval")};
}

json_t *el_trial_throughput(const json_t *ok, double global_batch, double tokens)
{
    struct gathered g = gather(ok, tell_rate, &global_batch);
    struct el_interval interval = el_stats_interval(g.at[0], g.n[0]);
    if (json_is_true(el_json_at(ok, "0.simulated"))) interval = predicted(ok, global_batch, interval.centre);
    double wall = g.n[1] ? el_stats_interval(g.at[1], g.n[1]).centre : NAN;
    free(g.values);
    return el_json_of(
        EL_KEY("samples_per_s", interval.centre), EL_KEY("ci95", el_json_interval(interval.low, interval.high)),
        EL_KEY("ci_reason", g.n[0] == 0 ? "no repeat was finished" : interval.reason),
        EL_KEY("wall_samples_per_s", wall), EL_KEY("tokens_per_s", tokens > 0 ? tokens * interval.centre : NAN),
        EL_KEY("tokens_ci95",
               tokens > 0 ? el_json_interval(tokens * interval.low, tokens * interval.high) : json_null()));
}

static void tell_steps(const json_t *repeat, const void *context, double *figures)
{
    (void)context;
    for (int f = EL_STEP_MEDIAN; f <= EL_STEP_P95; f++) figures[f] = el_repeat_step_ms(repeat, (enum el_step_figure)f);
}

json_t *el_trial_step_ms(const json_t *repeats)
{
    static const char *const names[] = {"median", "mean", "p95"};
    struct gathered g = gather(repeats, tell_steps, NULL);
    json_t *step_ms = json_object();
    for (int f = 0; f < 3; f++) el_json_put_real(step_ms, names[f], el_stats_geometric_mean(g.at[f], g.n[f]));
    free(g.values);
    return step_ms;
}

/* ---- costs of communication, from control blocks ---- */

/* ms per step with communication on and off. */
static const struct part {
    const char *name, *interval;
    struct {
        int sign;
        const char *path;
    } terms[4]; /* ends with sign 0 */
} parts[] = {
    {"step_ms", NULL, {{1, "on.step_ms"}}},
    {"compute_alone_ms", NULL, {{1, "off.compute_ms"}}},
    {"contention_ms", "contention_ci95", {{1, "on.compute_ms"}, {-1, "off.compute_ms"}}},
    {"exposed_ms", NULL, {{1, "on.exposed_ms"}}},
    {"other_ms", NULL, {{1, "on.other_ms"}}},
    {"idle_ms", NULL, {{1, "on.idle_ms"}}},
    {"exposed_step_ms", "exposed_step_ci95", {{1, "on.step_ms"}, {-1, "off.step_ms"}}},
    /* Neither compute nor communication; a muted collective still takes a microsecond. */
    {"idle_change_ms", NULL, {{1, "on.other_ms"}, {1, "on.idle_ms"}, {-1, "off.step_ms"}, {1, "off.compute_ms"}}},
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

static void tell_parts(const json_t *repeat, const void *member, double *figures)
{
    const json_t *members = json_object_get(repeat, "members");
    const json_t *blocks = json_object_get(json_array_get(members, *(const size_t *)member), "control");
    for (int p = 0; p < N_PARTS && json_object_get(blocks, "on") && json_object_get(blocks, "off"); p++) {
        figures[p] = 0;
        for (int i = 0; i < 4 && parts[p].terms[i].sign; i++)
            figures[p] += parts[p].terms[i].sign * el_json_number(blocks, parts[p].terms[i].path);
    }
}

json_t *el_trial_breakdown(const json_t *ok, int slowest)
{
    size_t member = slowest < 0 ? SIZE_MAX : (size_t)slowest, n = 0;
    struct gathered g = gather(ok, tell_parts, &member);
    for (int p = 0; p < N_PARTS; p++) n += g.n[p];
    json_t *breakdown = n ? json_object() : json_null();
    for (int p = 0; p < N_PARTS && n; p++) {
        struct el_interval interval = el_stats_difference(g.at[p], g.n[p]);
        el_json_put_real(breakdown, parts[p].name, el_stats_mean(g.at[p], g.n[p]));
        if (!parts[p].interval) continue;
        el_json_put(breakdown, parts[p].interval, el_json_interval(interval.low, interval.high));
        if (!interval.valid) el_json_put_text(breakdown, "ci_reason", interval.reason);
    }
    free(g.values);
    return breakdown;
}

static void tell_bubble(const json_t *repeat, const void *context, double *figures)
{
    double bubble_ms = 0, window_ms = 0;
    (void)context;
    EL_EACH(member, json_object_get(repeat, "members")) {
        bubble_ms += el_json_number(member, "bubble_ms");
        window_ms += el_json_number(member, "window_ms");
    }
    if (window_ms > 0) figures[0] = 100 * bubble_ms / window_ms;
}

double el_trial_bubble_pct(const json_t *ok)
{
    return median_of(ok, tell_bubble);
}

/* Bytes across the slowest link over transfer times, each by its own factor and group. */
static void tell_busbw(const json_t *repeat, const void *context, double *figures)
{
    const json_t *collectives = json_object_get(repeat, "collectives");
    double bytes = 0, ms = 0;
    (void)context;
    EL_EACH(collective, collectives) {
        if (!el_json_is(collective, "phase", el_phase_name(EL_PHASE_COMM))) continue;
        bytes += el_json_number(collective, "bus_bytes");
        ms += el_json_number(collective, "transfer_ms");
    }
    if (bytes > 0 && ms > 0) figures[0] = bytes / ms * 1e-6;
}

double el_trial_busbw(const json_t *ok)
{
    return median_of(ok, tell_busbw);
}

static void tell_recorder(const json_t *repeat, const void *context, double *figures)
{
    double *on_ms, *off_ms;
    size_t n_on = el_json_numbers(el_json_at(repeat, "control.on_ms"), &on_ms);
    size_t n_off = el_json_numbers(el_json_at(repeat, "control.off_ms"), &off_ms);
    bool record = el_json_is(repeat, "control.kind", "record") && n_on == n_off;
    double off_median_ms = el_stats_median(off_ms, n_off);
    (void)context;
    for (size_t i = 0; record && i < n_on; i++) on_ms[i] -= off_ms[i];
    double shift_ms = record ? el_stats_hodges_lehmann(on_ms, n_on) : NAN;
    figures[0] = shift_ms * 1e3;
    figures[1] = 100 * shift_ms / off_median_ms;
    free(on_ms);
    free(off_ms);
}

json_t *el_trial_recorder(const json_t *ok)
{
    static const char *const centres[][2] = {{"toggled_us", "toggled_us_ci95"}, {"toggled_pct", "toggled_pct_ci95"}};
    struct gathered g = gather(ok, tell_recorder, NULL);
    json_t *recorder = g.n[0] ? json_object() : json_null();
    for (int f = 0; f < 2 && g.n[0]; f++) {
        struct el_interval interval = el_stats_difference(g.at[f], g.n[f]);
        el_json_put_real(recorder, centres[f][0], interval.centre);
        el_json_put(recorder, centres[f][1], el_json_interval(interval.low, interval.high));
        el_json_put_text(recorder, "ci_reason", interval.reason);
    }
    free(g.values);
    return recorder;
}

static void tell_imbalance(const json_t *launch, const void *paths, double *figures)
{
    const json_t *members = json_object_get(launch, "members");
    const char *const *of = paths;
    size_t n = json_array_size(members);
    double *values = malloc((n + 1) * sizeof *values);
    struct el_imbalance m;
    for (size_t k = 0; k < n && values; k++) {
        values[k] = el_json_number(json_array_get(members, k), of[0]);
        if (of[1]) values[k] = values[k] / 100 * el_json_number(json_array_get(members, k), of[1]);
    }
    if (values && el_stats_imbalance(values, n, &m)) {
        figures[0] = m.max_over_mean_minus_1;
        figures[1] = m.imbalance_pct;
        figures[2] = m.lb;
        figures[3] = m.cv;
        figures[4] = m.first_over_rest;
    }
    free(values);
}

json_t *el_launches_imbalance(const json_t *ok, const char *path, const char *percent_of)
{
    static const char *const names[] = {"max_over_mean_minus_1", "imbalance_pct", "lb", "cv", "first_over_rest"};
    struct gathered g = gather(ok, tell_imbalance, (const char *const[]){path, percent_of});
    json_t *imbalance = json_object();
    for (int f = 0; f < 5; f++) el_json_put_real(imbalance, names[f], el_stats_median(g.at[f], g.n[f]));
    free(g.values);
    return imbalance;
}
