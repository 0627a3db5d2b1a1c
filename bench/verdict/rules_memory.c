/* Doubts that memory raises: what grows, and what no tag accounts for. And what was said of a repeat before it ran: an
 * injected disturbance, a warm-up that did not settle, a stream that shares a core. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/verdict/verdict.h"

static const double MIB = 1 << 20;

static double grown_mib(const json_t *member)
{
    return el_json_number(member, "memory.grown_bytes") / MIB;
}

/* Without a warm-up the first measured step takes what all later ones keep. */
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

/* Beyond the ledger's peak and the gaps that the planner is known to leave. */
static double untagged_bytes(const json_t *member)
{
    double gaps = el_json_number(member, "memory.reserved_bytes") - el_json_number(member, "memory.peak_bytes");
    double bytes = el_json_number(member, "memory.unattributed_bytes");
    return gaps > 0 ? bytes - gaps : bytes;
}

/* In per cent of the ledger's peak; less than a MiB is pages and tables. A GPU's libraries load kernels at their first
 * use and keep workspaces of their own: there nothing is to be expected of the rest. */
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

void el_verdict_unsettled(struct el_verdict_case *c)
{
    size_t n = 0, all = json_array_size(c->ok);
    for (size_t i = 0; i < all; i++) n += json_is_false(json_object_get(json_array_get(c->ok, i), "settled"));
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
        el_verdict_say(c, "overlap is time-sliced: communication has no core of its own, so what is hidden takes "
                          "compute's time; see contention");
        return;
    }
}
