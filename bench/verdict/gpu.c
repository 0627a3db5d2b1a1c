/* Doubts that GPUs raise, by what the driver said of them (el_record_gpu): clocks that were held down, a host that
 * does not keep up, and who else computed there. Each looks at all finished repeats and tells of the worst one. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/verdict/verdict.h"

struct finding {
    double value;
    const char *device, *reason;
};

static void look_at_throttling(const json_t *member, struct finding *worst)
{
    const char *reason;
    json_t *share;
    json_object_foreach(el_json_at(member, "gpu.throttled_pct"), reason, share)
    {
        if (!json_is_number(share) || json_number_value(share) <= worst->value) continue;
        *worst = (struct finding){json_number_value(share), el_json_text(member, "device", "?"), reason};
    }
}

void el_verdict_gpu_throttled(struct el_verdict_case *c)
{
    struct finding worst = {.value = c->rule->limit};
    for (size_t i = 0; i < json_array_size(c->ok); i++) {
        const json_t *members = json_object_get(json_array_get(c->ok, i), "members");
        for (size_t k = 0; k < json_array_size(members); k++) look_at_throttling(json_array_get(members, k), &worst);
    }
    if (worst.reason)
        el_verdict_say(c,
                       "the clock of %s was held down in up to %.0f %% of the samples (%s): cool the card or lock "
                       "a lower clock (nvidia-smi -lgc), measure again",
                       worst.device, worst.value, worst.reason);
}

/* An op's span begins when its stream is through with the one before, and the card then waits for the launch. */
void el_verdict_host_bound(struct el_verdict_case *c)
{
    struct finding worst = {.value = c->rule->limit};
    for (size_t i = 0; i < json_array_size(c->ok); i++) {
        const json_t *members = json_object_get(json_array_get(c->ok, i), "members");
        for (size_t k = 0; k < json_array_size(members); k++) {
            const json_t *member = json_array_get(members, k);
            double pct = 100 * el_json_number(member, "queue_ms") / el_json_number(member, "step_ms");
            if (pct > worst.value) worst = (struct finding){pct, el_json_text(member, "device", "?"), NULL};
        }
    }
    if (worst.device)
        el_verdict_say(
            c,
            "%s waits for the host, which takes %.0f %% of a step to queue it: spans of its ops contain the time "
            "between launches; take a larger batch or model",
            worst.device, worst.value);
}

/* A GPU has its UUID in every process: how many of the job's are on it. A process counts once, however many devices it
 * has there. */
static double job_processes_on(const json_t *members, const char *uuid)
{
    double n = 0;
    for (size_t i = 0; i < json_array_size(members); i++) {
        const json_t *member = json_array_get(members, i);
        bool counted = strcmp(el_json_text(member, "uuid", ""), uuid) != 0;
        for (size_t k = 0; k < i && !counted; k++) {
            const json_t *other = json_array_get(members, k);
            counted = el_json_number(other, "rank") == el_json_number(member, "rank") &&
                      strcmp(el_json_text(other, "uuid", ""), uuid) == 0;
        }
        n += !counted;
    }
    return n;
}

static void look_for_others(const json_t *members, struct finding *worst)
{
    for (size_t i = 0; i < json_array_size(members); i++) {
        const json_t *member = json_array_get(members, i);
        const char *uuid = el_json_text(member, "uuid", NULL);
        double seen = el_json_number(member, "gpu.processes");
        if (!uuid || isnan(seen)) continue;
        double others = seen - job_processes_on(members, uuid);
        if (others > worst->value) *worst = (struct finding){others, el_json_text(member, "device", "?"), NULL};
    }
}

void el_verdict_gpu_others(struct el_verdict_case *c)
{
    struct finding worst = {.value = 0};
    for (size_t i = 0; i < json_array_size(c->ok); i++)
        look_for_others(json_object_get(json_array_get(c->ok, i), "members"), &worst);
    if (worst.device)
        el_verdict_say(c, "%.0f other process%s computed on %s: stop %s or take another card", worst.value,
                       worst.value == 1 ? "" : "es", worst.device, worst.value == 1 ? "it" : "them");
}
