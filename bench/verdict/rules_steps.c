/* Doubts from a trial's own samples. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/stats/stats.h"
#include "bench/verdict/verdict.h"

void el_verdict_reported(struct el_verdict_case *c)
{
    EL_EACH(repeat, c->repeats)
        EL_EACH(text, json_object_get(repeat, "warnings"))
            if (json_is_string(text)) el_verdict_say(c, "%s", json_string_value(text));
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
    EL_EACH(repeat, c->ok) {
        size_t steps = json_array_size(json_object_get(repeat, "step_ms"));
        if (steps < fewest) fewest = steps;
    }
    if ((double)fewest < c->rule->limit)
        el_verdict_say(c, "too few samples: %zu measured steps in a repeat, at least %.0f wanted; raise --steps",
                       fewest, c->rule->limit);
}

static double measured_s(const json_t *repeat)
{
    double sum_ms = 0;
    EL_EACH(step, json_object_get(repeat, "step_ms")) sum_ms += json_number_value(step);
    return sum_ms / 1e3;
}

void el_verdict_time(struct el_verdict_case *c)
{
    double least = INFINITY;
    EL_EACH(repeat, c->ok) least = fmin(least, measured_s(repeat));
    if (least < c->rule->limit)
        el_verdict_say(c, "too short: %.2g s measured in a repeat, at least %g s wanted; raise --min-time", least,
                       c->rule->limit);
}

static double change_pct(double ratio)
{
    return 100 * fabs(ratio - 1);
}

/* An odd number's middle step is in neither half. Too short halves say nothing. */
void el_verdict_drift(struct el_verdict_case *c)
{
    double first[EL_REPEATS_MAX], second[EL_REPEATS_MAX];
    size_t n = 0;
    EL_EACH(repeat, c->ok) {
        double *ms;
        size_t steps = el_json_numbers(json_object_get(repeat, "step_ms"), &ms), half = steps / 2;
        if (steps < EL_VERDICT_STEPS_MIN || n == EL_REPEATS_MAX) half = 0;
        if (half) first[n] = el_stats_median(ms, half);
        if (half) second[n] = el_stats_median(ms + (steps - half), half);
        n += half && first[n] > 0 && second[n] > 0;
        free(ms);
    }
    struct el_drift drift = el_stats_drift(first, second, n);
    if (n > 0 && drift.found)
        el_verdict_say(c, "steps got %.0f %% %s within the repeats: warm up longer (--warmup)", change_pct(drift.ratio),
                       drift.ratio > 1 ? "slower" : "faster");
}

void el_verdict_trend(struct el_verdict_case *c)
{
    double mean_ms[EL_REPEATS_MAX];
    size_t n = 0;
    EL_EACH(repeat, c->ok) {
        size_t steps = json_array_size(json_object_get(repeat, "step_ms"));
        if (steps > 0 && n < EL_REPEATS_MAX) mean_ms[n++] = 1e3 * measured_s(repeat) / (double)steps;
    }
    struct el_trend trend = el_stats_trend(mean_ms, n);
    if (n > 0 && trend.found)
        el_verdict_say(c,
                       "steps got %.0f %% %s from the first repeat to the last: let the machine settle, measure again",
                       change_pct(trend.ratio), trend.ratio > 1 ? "slower" : "faster");
}

/* NCCL's sums within NVLink switches (NVLS) have another order in each run: losses may differ, except the first step's,
 * and hardly by more than rounding grows. */
static const double NVLS_DIFFERENCE = 0.01;

static bool is_rounding(const json_t *repeat, size_t step, const json_t *a, const json_t *b)
{
    double x = json_number_value(a), y = json_number_value(b);
    return el_json_is(repeat, "communicator", "nccl") && step > 0 && fabs(x - y) <= NVLS_DIFFERENCE * fabs(x);
}

/* --min-time may give some repeats more steps. *by_more_p: by more than NVLS may. */
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

/* Without kernels there are no losses. */
void el_verdict_diverged(struct el_verdict_case *c)
{
    EL_EACH(repeat, c->ok) {
        if (json_is_true(json_object_get(repeat, "simulated"))) continue;
        if (!strncmp(el_json_text(repeat, "members.0.device", ""), "null:", 5)) continue;
        EL_EACH(loss, json_object_get(repeat, "loss")) {
            if (json_is_number(loss)) continue;
            el_verdict_say(c,
                           "the loss is not a finite number from step %zu on: lower --lr, or check the values that "
                           "--load gave",
                           loss_at.i + 1);
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

/* A repeat's peak then is that of its longest batch. */
static bool lengths_differ(const json_t *members)
{
    return el_json_number(members, "0.loading.length.mean") < el_json_number(members, "0.loading.length.max");
}

void el_verdict_memory(struct el_verdict_case *c)
{
    const json_t *first = el_json_at(c->ok, "0.members");
    if (lengths_differ(first)) return;
    for (size_t i = 1; i < json_array_size(c->ok); i++) {
        const json_t *members = json_object_get(json_array_get(c->ok, i), "members");
        bool differs = json_array_size(members) != json_array_size(first);
        for (size_t k = 0; k < json_array_size(first) && !differs; k++)
            differs = memory_differs(json_array_get(first, k), json_array_get(members, k));
        if (!differs) continue;
        el_verdict_say(c, "the repeats' memory differs: the ledger should be the same in every run");
        return;
    }
}

static const double MIB = 1 << 20;

static double grown_mib(const json_t *member)
{
    return el_json_number(member, "memory.grown_bytes") / MIB;
}

/* Without a warm-up the first measured step allocates what later ones keep. */
void el_verdict_grown(struct el_verdict_case *c)
{
    double mib;
    const json_t *warmup = json_object_get(json_array_get(c->repeats, 0), "warmup_step_ms");
    if (json_is_array(warmup) && json_array_size(warmup) == 0) return;
    const json_t *member = el_verdict_worst_member(c, grown_mib, c->rule->limit, &mib);
    if (member)
        el_verdict_say(c, "memory of %s grew by %.1f MiB while it was measured, and no tag accounts for it: a leak",
                       el_json_text(member, "device", "?"), mib);
}

/* Beyond the ledger's peak and the planner's known gaps. */
static double untagged_bytes(const json_t *member)
{
    double gaps = el_json_number(member, "memory.reserved_bytes") - el_json_number(member, "memory.peak_bytes");
    double bytes = el_json_number(member, "memory.unattributed_bytes");
    return gaps > 0 ? bytes - gaps : bytes;
}

/* Per cent of the ledger's peak; below a MiB it is pages and tables. Not for GPUs: their libraries load kernels at
 * first use and keep workspaces. */
static double unattributed_pct(const json_t *member)
{
    if (el_json_text(member, "uuid", NULL)) return NAN;
    double bytes = untagged_bytes(member);
    return bytes > MIB ? 100 * bytes / el_json_number(member, "memory.peak_bytes") : NAN;
}

void el_verdict_unattributed(struct el_verdict_case *c)
{
    double pct;
    const json_t *member = el_verdict_worst_member(c, unattributed_pct, c->rule->limit, &pct);
    if (member)
        el_verdict_say(c, "%s holds %.1f MiB that no tag accounts for, %.0f %% of the ledger's peak",
                       el_json_text(member, "device", "?"), untagged_bytes(member) / MIB, pct);
}

void el_verdict_injected(struct el_verdict_case *c)
{
    const char *injected = el_json_text(json_array_get(c->repeats, 0), "injected", NULL);
    if (injected) el_verdict_say(c, "disturbances were injected: --inject %s", injected);
}

void el_verdict_emulated(struct el_verdict_case *c)
{
    const char *why = el_json_text(json_array_get(c->ok, 0), "emulated", NULL);
    if (why) el_verdict_say(c, "bf16 is computed in f32, so that its times say nothing: %s", why);
}

void el_verdict_share_weights(struct el_verdict_case *c)
{
    const json_t *first = json_array_get(c->ok, 0);
    double most = 0, least = INFINITY;
    EL_EACH(share, json_object_get(first, "batch_per_device")) {
        most = fmax(most, json_number_value(share));
        least = fmin(least, json_number_value(share));
    }
    if (el_json_is(first, "share_weights", "equal") && most > least)
        el_verdict_say(c,
                       "--shares weights=equal: samples of the smallest share (%.0f) count %.3g times as much as those "
                       "of the largest (%.0f)",
                       least, most / least, most);
}

void el_verdict_unsettled(struct el_verdict_case *c)
{
    size_t n = 0, all = json_array_size(c->ok);
    EL_EACH(repeat, c->ok) n += json_is_false(json_object_get(repeat, "settled"));
    if (all > 0 && 2 * n > all)
        el_verdict_say(c,
                       "steps had not settled when warm-up ended in %zu of %zu repeats: raise --warmup, or measure "
                       "when the machine is quiet",
                       n, all);
}

void el_verdict_time_sliced(struct el_verdict_case *c)
{
    const json_t *members = json_object_get(json_array_get(c->ok, 0), "members");
    EL_EACH(member, members) {
        if (!json_is_true(el_json_at(member, "comm.time_sliced")) ||
            !(el_json_number(member, "comm.overlapped_ms") > 0))
            continue;
        el_verdict_say(c, "communication shares a core with computation, so hidden communication still slows "
                          "computation down; see contention");
        return;
    }
}

/* Only the wait; the writer's use of cores is in the steps themselves. */
void el_verdict_checkpoints(struct el_verdict_case *c)
{
    EL_EACH(repeat, c->ok) {
        const double wait_ms = el_json_number(repeat, "checkpoints.wait_ms"),
                     n = el_json_number(repeat, "checkpoints.n"), failed = el_json_number(repeat, "checkpoints.failed"),
                     part = 100 * wait_ms * n / (wait_ms * n + 1e3 * measured_s(repeat));
        if (part > c->rule->limit)
            el_verdict_say(c,
                           "training waited %.2g %% of the time for checkpoints to be written, at %.3g MB/s: give a "
                           "larger --checkpoint every, or a faster disk",
                           part, el_json_number(repeat, "checkpoints.write_mb_per_s"));
        if (failed > 0) el_verdict_say(c, "%.0f of %.0f checkpoints could not be written; the logs say why", failed, n);
    }
}
