/* Doubts that GPUs raise, by what the driver said of them (el_record_gpu): clocks that were held down, a host that
 * does not keep up, and who else computed there. Each looks at all finished repeats and tells of the worst one. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/verdict/verdict.h"

/* The highest share of the samples, and the reason of it. */
static double throttled_pct(const json_t *member, const char **reason_p)
{
    double worst = NAN;
    EL_EACH_KEY(reason, share, el_json_at(member, "gpu.throttled_pct")) {
        if (!json_is_number(share) || json_number_value(share) <= worst) continue;
        worst = json_number_value(share);
        *reason_p = reason;
    }
    return worst;
}

static double most_throttled_pct(const json_t *member)
{
    const char *reason;
    return throttled_pct(member, &reason);
}

void el_verdict_gpu_throttled(struct el_verdict_case *c)
{
    double pct;
    const char *reason = "";
    const json_t *worst = el_verdict_worst_member(c, most_throttled_pct, c->rule->limit, &pct);
    if (!worst) return;
    throttled_pct(worst, &reason);
    el_verdict_say(c,
                   "the clock of %s was held down in up to %.0f %% of the samples (%s): cool the card or lock a lower "
                   "clock (nvidia-smi -lgc), measure again",
                   el_json_text(worst, "device", "?"), pct, reason);
}

static double queueing_pct(const json_t *member)
{
    return 100 * el_json_number(member, "queue_ms") / el_json_number(member, "step_ms");
}

/* An op's span begins when its stream is through with the one before, and the card then waits for the launch. */
void el_verdict_host_bound(struct el_verdict_case *c)
{
    double pct;
    const json_t *worst = el_verdict_worst_member(c, queueing_pct, c->rule->limit, &pct);
    if (worst)
        el_verdict_say(c,
                       "%s waits for the host, which takes %.0f %% of a step to load and queue it: spans of its ops "
                       "contain the time between launches; take a larger batch or model",
                       el_json_text(worst, "device", "?"), pct);
}

/* A GPU has its UUID in every process: how many of the job's are on it. A process counts once, however many devices it
 * has there. */
static double job_processes_on(const json_t *members, const char *uuid)
{
    double n = 0;
    EL_EACH(member, members) {
        bool counted = !el_json_is(member, "uuid", uuid);
        for (size_t k = 0; k < member_at.i && !counted; k++) {
            const json_t *other = json_array_get(members, k);
            counted =
                el_json_number(other, "rank") == el_json_number(member, "rank") && el_json_is(other, "uuid", uuid);
        }
        n += !counted;
    }
    return n;
}

void el_verdict_gpu_others(struct el_verdict_case *c)
{
    double worst = 0;
    const char *device = NULL;
    for (size_t i = 0; i < json_array_size(c->ok); i++) {
        const json_t *members = json_object_get(json_array_get(c->ok, i), "members");
        EL_EACH(member, members) {
            const char *uuid = el_json_text(member, "uuid", NULL);
            double others = el_json_number(member, "gpu.processes") - (uuid ? job_processes_on(members, uuid) : NAN);
            if (!(others > worst)) continue;
            worst = others;
            device = el_json_text(member, "device", "?");
        }
    }
    if (device)
        el_verdict_say(c, "%.0f other process%s computed on %s: stop %s or take another card", worst,
                       worst == 1 ? "" : "es", device, worst == 1 ? "it" : "them");
}
