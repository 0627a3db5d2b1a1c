/* Doubts that the machine raises: who else computed, how fast the cores were, and whether devices are alike. Each looks
 * at all finished repeats and tells of the worst one. */
#include <math.h>
#include <string.h>

#include "bench/record/jvalue.h"
#include "bench/verdict/verdict.h"

/* The figure furthest from 0 over the repeats, NAN where no repeat has it. */
static double worst_at(const struct el_verdict_case *c, const char *path)
{
    double worst = NAN;
    for (size_t i = 0; i < json_array_size(c->ok); i++) {
        double value = el_json_number(json_array_get(c->ok, i), path);
        if (!isnan(value) && (isnan(worst) || fabs(value) > fabs(worst))) worst = value;
    }
    return worst;
}

/* What is on few cores of many shows on the devices' cores only. */
void el_verdict_others(struct el_verdict_case *c)
{
    double all = worst_at(c, "system.others_pct"), devices = worst_at(c, "system.others_on_devices_pct");
    if (all > c->rule->limit)
        el_verdict_say(c, "other processes took up to %.0f %% of the cores: stop them or measure again", all);
    else if (devices > c->rule->limit)
        el_verdict_say(c, "other processes took up to %.0f %% of the devices' cores: stop them or measure again",
                       devices);
}

void el_verdict_stolen(struct el_verdict_case *c)
{
    double stolen = worst_at(c, "system.steal_pct");
    if (stolen > c->rule->limit)
        el_verdict_say(c,
                       "the hypervisor gave up to %.0f %% of the cores' time to other machines: measure when they are "
                       "quiet, or on cores of your own",
                       stolen);
}

void el_verdict_frequency(struct el_verdict_case *c)
{
    double change = worst_at(c, "system.frequency_change_pct");
    if (fabs(change) > c->rule->limit)
        el_verdict_say(
            c,
            "the cores' frequency %s by %.0f %% while they were measured: hold it (governor, turbo), or warm "
            "up longer",
            change < 0 ? "fell" : "rose", fabs(change));
}

void el_verdict_throttled(struct el_verdict_case *c)
{
    double count = worst_at(c, "system.throttled");
    if (count > 0)
        el_verdict_say(c, "the cores were throttled %.0f time%s for heat or power: cool the machine, measure again",
                       count, count == 1 ? "" : "s");
}

static bool share_a_core(const json_t *a, const json_t *b)
{
    const json_t *cores_a = json_object_get(a, "cores"), *cores_b = json_object_get(b, "cores");
    if (strcmp(el_json_text(a, "host", ""), el_json_text(b, "host", "")) != 0) return false;
    for (size_t i = 0; i < json_array_size(cores_a); i++) {
        double cpu = el_json_number(json_array_get(cores_a, i), "cpu");
        for (size_t k = 0; k < json_array_size(cores_b); k++)
            if (cpu == el_json_number(json_array_get(cores_b, k), "cpu")) return true;
    }
    return false;
}

/* A GPU has its UUID everywhere: whatever its number is in each process, and on whichever host. */
static bool share_a_gpu(const json_t *a, const json_t *b)
{
    const char *uuid = el_json_text(a, "uuid", NULL);
    return uuid && !strcmp(uuid, el_json_text(b, "uuid", ""));
}

/* Says the first pair of each repeat that shares. */
static void look_for_shared(struct el_verdict_case *c, bool (*share)(const json_t *, const json_t *), const char *what,
                            const char *remedy)
{
    for (size_t r = 0; r < json_array_size(c->ok); r++) {
        const json_t *members = json_object_get(json_array_get(c->ok, r), "members");
        size_t n = json_array_size(members), found = n * n;
        for (size_t at = 0; at < n * n && found == n * n; at++)
            if (at % n < at / n && share(json_array_get(members, at % n), json_array_get(members, at / n))) found = at;
        if (found == n * n) continue;
        el_verdict_say(c, "devices share a %s (%s and %s): %s", what,
                       el_json_text(json_array_get(members, found % n), "device", "?"),
                       el_json_text(json_array_get(members, found / n), "device", "?"), remedy);
    }
}

void el_verdict_shared_core(struct el_verdict_case *c)
{
    look_for_shared(c, share_a_core, "core", "take fewer devices, or cores for all of them");
}

void el_verdict_shared_gpu(struct el_verdict_case *c)
{
    look_for_shared(c, share_a_gpu, "GPU", "memory and bytes hold, times are of one card working in turns");
}

struct extent {
    double least, most;
};

static void widen(struct extent *extent, double value)
{
    extent->least = fmin(extent->least, value); /* fmin and fmax pass over a NAN */
    extent->most = fmax(extent->most, value);
}

/* Of a figure of all devices' cores in the first repeat. */
static struct extent extent_of_cores(const struct el_verdict_case *c, const char *figure)
{
    const json_t *members = el_json_at(c->ok, "0.members");
    struct extent extent = {NAN, NAN};
    for (size_t i = 0; i < json_array_size(members); i++) {
        const json_t *cores = json_object_get(json_array_get(members, i), "cores");
        for (size_t k = 0; k < json_array_size(cores); k++)
            widen(&extent, el_json_number(json_array_get(cores, k), figure));
    }
    return extent;
}

/* Capacities first: they count what a core does in a cycle too. */
void el_verdict_heterogeneous_cores(struct el_verdict_case *c)
{
    static const char *const figures[] = {"capacity", "max_mhz"}, *const words[] = {"capacity", "highest MHz"};
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        struct extent extent = extent_of_cores(c, figures[i]);
        if (!(extent.least / extent.most < c->rule->limit)) continue;
        el_verdict_say(c, "the devices' cores are heterogeneous (%s %.0f and %.0f): take cores of one kind (taskset)",
                       words[i], extent.least, extent.most);
        return;
    }
}

void el_verdict_heterogeneous_memory(struct el_verdict_case *c)
{
    const json_t *members = el_json_at(c->ok, "0.members");
    struct extent extent = {NAN, NAN};
    for (size_t i = 0; i < json_array_size(members); i++)
        widen(&extent, el_json_number(json_array_get(members, i), "memory_limit_bytes"));
    if (extent.least / extent.most < c->rule->limit)
        el_verdict_say(c, "the devices' memory limits differ (%.0f and %.0f MiB): the smallest sets the batch",
                       extent.least / 1048576, extent.most / 1048576);
}

void el_verdict_heterogeneous_machines(struct el_verdict_case *c)
{
    for (size_t i = 0; i < json_array_size(c->ok); i++) {
        const char *text = el_json_text(json_array_get(c->ok, i), "system.machine_differences.0", NULL);
        if (text == NULL) continue;
        el_verdict_say(c, "ranks ran on heterogeneous machines (%s): take machines of one kind", text);
        return;
    }
}
