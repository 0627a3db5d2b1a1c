/* Doubts that a trial's own samples raise: too few, too short, or not alike where they must be. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/stats/stats.h"
#include "bench/verdict/verdict.h"

void el_verdict_reported(struct el_verdict_case *c)
{
    for (size_t i = 0; i < json_array_size(c->repeats); i++) {
        const json_t *own = json_object_get(json_array_get(c->repeats, i), "warnings");
        for (size_t k = 0; k < json_array_size(own); k++) {
            const char *text = json_string_value(json_array_get(own, k));
            if (text != NULL) el_verdict_say(c, "%s", text);
        }
    }
}

void el_verdict_finished(struct el_verdict_case *c)
{
    size_t n = json_array_size(c->ok), all = json_array_size(c->repeats);
    if (n < all) el_verdict_say(c, "%zu of %zu repeats did not finish", all - n, all);
}

void el_verdict_repeats(struct el_verdict_case *c)
{
    size_t n = json_array_size(c->ok);
    if (n > 0 && (double)n < c->rule->limit)
        el_verdict_say(c, "fewer than %.0f repeats: there is no interval; raise --repeats", c->rule->limit);
}

void el_verdict_steps(struct el_verdict_case *c)
{
    size_t fewest = SIZE_MAX;
    for (size_t i = 0; i < json_array_size(c->ok); i++) {
        size_t steps = json_array_size(json_object_get(json_array_get(c->ok, i), "step_ms"));
        if (steps < fewest) fewest = steps;
    }
    if ((double)fewest < c->rule->limit)
        el_verdict_say(c, "too few samples: %zu measured steps in a repeat, at least %.0f wanted; raise --steps",
                       fewest, c->rule->limit);
}

static double measured_s(const json_t *repeat)
{
    const json_t *steps = json_object_get(repeat, "step_ms");
    double sum_ms = 0;
    for (size_t i = 0; i < json_array_size(steps); i++) sum_ms += json_number_value(json_array_get(steps, i));
    return sum_ms / 1e3;
}

void el_verdict_time(struct el_verdict_case *c)
{
    double least = INFINITY;
    for (size_t i = 0; i < json_array_size(c->ok); i++) least = fmin(least, measured_s(json_array_get(c->ok, i)));
    if (least < c->rule->limit)
        el_verdict_say(c, "too short: %.2g s measured in a repeat, at least %g s wanted; raise --min-time", least,
                       c->rule->limit);
}

static double change_pct(double ratio)
{
    return 100 * fabs(ratio - 1);
}

/* With an odd number of steps the middle one belongs to neither half. Halves of too few steps say nothing of drift. */
static bool halves_of(const json_t *repeat, double *first_ms, double *second_ms)
{
    double *steps;
    size_t n = el_json_numbers(json_object_get(repeat, "step_ms"), &steps);
    *first_ms = el_stats_median(steps, n / 2);
    *second_ms = el_stats_median(steps == NULL ? NULL : steps + (n - n / 2), n / 2);
    free(steps);
    return n >= EL_VERDICT_STEPS_MIN && *first_ms > 0 && *second_ms > 0;
}

void el_verdict_drift(struct el_verdict_case *c)
{
    size_t n = json_array_size(c->ok), kept = 0;
    double *first = malloc((n + 1) * sizeof *first), *second = malloc((n + 1) * sizeof *second);
    for (size_t i = 0; i < n && first && second; i++)
        kept += halves_of(json_array_get(c->ok, i), &first[kept], &second[kept]);
    if (kept > 0) {
        struct el_drift drift = el_stats_drift(first, second, kept);
        if (drift.found)
            el_verdict_say(c, "steps got %.0f %% %s within the repeats: warm up longer (--warmup)",
                           change_pct(drift.ratio), drift.ratio > 1 ? "slower" : "faster");
    }
    free(first);
    free(second);
}

void el_verdict_trend(struct el_verdict_case *c)
{
    size_t n = json_array_size(c->ok), kept = 0;
    double *mean_ms = malloc((n + 1) * sizeof *mean_ms);
    for (size_t i = 0; i < n && mean_ms; i++) {
        const json_t *repeat = json_array_get(c->ok, i);
        size_t steps = json_array_size(json_object_get(repeat, "step_ms"));
        if (steps > 0) mean_ms[kept++] = 1e3 * measured_s(repeat) / (double)steps;
    }
    if (kept > 0) {
        struct el_trend trend = el_stats_trend(mean_ms, kept);
        if (trend.found)
            el_verdict_say(
                c, "steps got %.0f %% %s from the first repeat to the last: let the machine settle, measure again",
                change_pct(trend.ratio), trend.ratio > 1 ? "slower" : "faster");
    }
    free(mean_ms);
}

/* NCCL's sums within NVLink's switches (NVLS) come in an order of their own in each run. Then losses may differ, but
 * not that of the first step, before any sum, and hardly more than rounding grows. */
static const double NVLS_DIFFERENCE = 0.01;

static bool is_rounding(const json_t *repeat, size_t step, const json_t *a, const json_t *b)
{
    double x = json_number_value(a), y = json_number_value(b);
    return el_json_is(repeat, "communicator", "nccl") && step > 0 && fabs(x - y) <= NVLS_DIFFERENCE * fabs(x);
}

/* Whether the repeats' losses differ, and by more than NVLS may. Over the steps that both took:
 * --min-time may give one of them more. */
static bool losses_differ(const json_t *ok, bool *by_more_p)
{
    const json_t *first = el_json_at(ok, "0.loss");
    bool differ = false;
    *by_more_p = false;
    for (size_t i = 1; i < json_array_size(ok); i++) {
        const json_t *repeat = json_array_get(ok, i), *other = json_object_get(repeat, "loss");
        for (size_t k = 0; k < json_array_size(first) && k < json_array_size(other); k++) {
            const json_t *a = json_array_get(first, k), *b = json_array_get(other, k);
            if (json_equal(a, b)) continue;
            differ = true;
            *by_more_p |= !is_rounding(repeat, k, a, b);
        }
    }
    return differ;
}

void el_verdict_rounding(struct el_verdict_case *c)
{
    bool by_more;
    if (losses_differ(c->ok, &by_more) && !by_more)
        el_verdict_say(c, "the repeats' losses differ in their last digits, as NCCL's sums in NVLink's switches (NVLS) "
                          "may: with NCCL_NVLS_ENABLE=0 they must not");
}

void el_verdict_loss(struct el_verdict_case *c)
{
    bool by_more;
    if (losses_differ(c->ok, &by_more) && by_more) el_verdict_say(c, "not deterministic: the repeats' losses differ");
}

/* Whether its kernels compute: else it has no losses. */
static bool computes(const json_t *repeat)
{
    return !json_is_true(json_object_get(repeat, "simulated")) &&
           strncmp(el_json_text(repeat, "members.0.device", ""), "null:", 5) != 0;
}

void el_verdict_diverged(struct el_verdict_case *c)
{
    EL_EACH(repeat, c->ok) {
        const json_t *loss = json_object_get(repeat, "loss");
        for (size_t k = 0; computes(repeat) && k < json_array_size(loss); k++) {
            if (json_is_number(json_array_get(loss, k))) continue;
            el_verdict_say(c,
                           "the loss is not a finite number from step %zu on: lower --lr, or check the values that "
                           "--load gave",
                           k + 1);
            return;
        }
    }
}

static bool memory_differs(const json_t *a, const json_t *b)
{
    static const char *const same[] = {"memory.peak_bytes", "memory.at_peak_by_tag", "memory.peak_by_tag"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        json_t *x = el_json_at(a, same[i]), *y = el_json_at(b, same[i]);
        if ((x == NULL) != (y == NULL) || (x != NULL && !json_equal(x, y))) return true;
    }
    return false;
}

void el_verdict_memory(struct el_verdict_case *c)
{
    const json_t *first = el_json_at(c->ok, "0.members");
    for (size_t i = 1; i < json_array_size(c->ok); i++) {
        const json_t *members = json_object_get(json_array_get(c->ok, i), "members");
        bool differs = json_array_size(members) != json_array_size(first);
        for (size_t k = 0; k < json_array_size(first) && !differs; k++) {
            differs = memory_differs(json_array_get(first, k), json_array_get(members, k));
        }
        if (!differs) continue;
        el_verdict_say(c, "the repeats' memory differs: the ledger should be the same in every run");
        return;
    }
}
