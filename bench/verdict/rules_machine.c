/* Each rule reports the worst finished repeat. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/verdict/verdict.h"
#include "profiles/system.h"

static double worst_at(const struct el_verdict_case *c, const char *path)
{
    double worst = NAN;
    EL_EACH(repeat, c->ok) {
        double value = el_json_number(repeat, path);
        if (!isnan(value) && (isnan(worst) || fabs(value) > fabs(worst))) worst = value;
    }
    return worst;
}

/* The highest share; repeats with windows too short for ticks are pooled. NAN: still too short, or a repeat without
 * figure. */
static double ticks_at(const struct el_verdict_case *c, const char *path)
{
    double worst = NAN, sum = 0, together_s = 0;
    EL_EACH(repeat, c->ok) {
        double value = el_json_number(repeat, path), window_s = el_json_number(repeat, "system.window_s");
        bool is_short = window_s < EL_SYSTEM_WINDOW_MIN_S;
        if (isnan(value)) return NAN;
        sum += is_short ? value * window_s : 0;
        together_s += is_short ? window_s : 0;
        if (!is_short) worst = fmax(worst, value);
    }
    if (together_s == 0) return worst;
    return together_s < EL_SYSTEM_WINDOW_MIN_S ? NAN : fmax(worst, sum / together_s);
}

static bool share_a_core(const json_t *a, const json_t *b)
{
    if (!el_json_is(a, "host", el_json_text(b, "host", ""))) return false;
    EL_EACH(core, json_object_get(a, "cores"))
        EL_EACH(other, json_object_get(b, "cores"))
            if (el_json_number(core, "cpu") == el_json_number(other, "cpu")) return true;
    return false;
}

void el_verdict_physical_core(struct el_verdict_case *c)
{
    double least = c->rule->limit;
    int n = 0;
    EL_EACH(repeat, c->ok) {
        double pct = el_json_number(repeat, "system.core_rate_pct");
        n += pct < c->rule->limit;
        least = fmin(least, pct);
    }
    if (n)
        el_verdict_say(c,
                       "two of the devices' cores share one physical core: together each reached %.0f %% of its speed "
                       "alone, in %d of %zu repeats; measure again, or on physical cores of your own",
                       least, n, json_array_size(c->ok));
}

static bool any_shared(const json_t *members, bool (*share)(const json_t *, const json_t *), size_t *a, size_t *b)
{
    for (*b = 1; *b < json_array_size(members); ++*b)
        for (*a = 0; *a < *b; ++*a)
            if (share(json_array_get(members, *a), json_array_get(members, *b))) return true;
    return false;
}

/* NAN if ranks share a core, as they wait for each other. */
static double waited_pct(const struct el_verdict_case *c)
{
    double worst = NAN;
    size_t a, b;
    EL_EACH(repeat, c->ok) {
        double value = el_json_number(repeat, "system.waited_pct");
        if (isnan(value) || any_shared(json_object_get(repeat, "members"), share_a_core, &a, &b)) return NAN;
        worst = fmax(worst, value);
    }
    return worst;
}

/* Load on few of many cores shows only in the devices' share. */
void el_verdict_others(struct el_verdict_case *c)
{
    double all = ticks_at(c, "system.others_pct"), devices = ticks_at(c, "system.others_on_devices_pct");
    double waited = waited_pct(c);
    if (all > c->rule->limit)
        el_verdict_say(c, "other processes took up to %.0f %% of the cores: stop them or measure again", all);
    else if (devices > c->rule->limit)
        el_verdict_say(c, "other processes took up to %.0f %% of the devices' cores: stop them or measure again",
                       devices);
    else if (waited > c->rule->limit)
        el_verdict_say(
            c, "other processes had a device's core for up to %.0f %% of the time: stop them or measure again", waited);
}

void el_verdict_stolen(struct el_verdict_case *c)
{
    double stolen = ticks_at(c, "system.steal_pct");
    if (stolen > c->rule->limit)
        el_verdict_say(c,
                       "the hypervisor gave up to %.0f %% of the cores' time to other machines: measure when they are "
                       "quiet, or on cores of your own",
                       stolen);
}

/* Runs last. */
void el_verdict_unchecked(struct el_verdict_case *c)
{
    const char *reason = "the system did not say";
    EL_EACH(repeat, c->ok) reason = el_json_text(repeat, "system.reason", reason);
    if (c->suspect || !json_array_size(c->ok)) return;
    if (isnan(ticks_at(c, "system.others_pct")) && isnan(waited_pct(c)))
        el_verdict_say(c, "not checked: whether other processes took the cores (%s)", reason);
    if (isnan(ticks_at(c, "system.steal_pct")))
        el_verdict_say(c, "not checked: whether the hypervisor gave the cores' time to other machines (%s)", reason);
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

/* UUIDs are the same in every process and host. */
static bool share_a_gpu(const json_t *a, const json_t *b)
{
    const char *uuid = el_json_text(a, "uuid", NULL);
    return uuid && !strcmp(uuid, el_json_text(b, "uuid", ""));
}

static void look_for_shared(struct el_verdict_case *c, bool (*share)(const json_t *, const json_t *), const char *what,
                            const char *remedy)
{
    size_t a, b;
    EL_EACH(repeat, c->ok) {
        const json_t *members = json_object_get(repeat, "members");
        if (any_shared(members, share, &a, &b))
            el_verdict_say(c, "devices share a %s (%s and %s): %s", what,
                           el_json_text(json_array_get(members, a), "device", "?"),
                           el_json_text(json_array_get(members, b), "device", "?"), remedy);
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

/* Capacity first: it includes work per cycle. */
void el_verdict_heterogeneous_cores(struct el_verdict_case *c)
{
    static const char *const figures[] = {"capacity", "max_mhz"}, *const words[] = {"capacity", "highest MHz"};
    const json_t *members = el_json_at(c->ok, "0.members");
    for (size_t f = 0; f < sizeof figures / sizeof figures[0]; f++) {
        double least = NAN, most = NAN; /* fmin and fmax ignore NAN */
        EL_EACH(member, members) {
            EL_EACH(core, json_object_get(member, "cores")) {
                least = fmin(least, el_json_number(core, figures[f]));
                most = fmax(most, el_json_number(core, figures[f]));
            }
        }
        if (!(least / most < c->rule->limit)) continue;
        el_verdict_say(c, "the devices' cores are heterogeneous (%s %.0f and %.0f): take cores of one kind (taskset)",
                       words[f], least, most);
        return;
    }
}

void el_verdict_heterogeneous_machines(struct el_verdict_case *c)
{
    EL_EACH(repeat, c->ok) {
        const char *text = el_json_text(repeat, "system.machine_differences.0", NULL);
        if (text == NULL) continue;
        el_verdict_say(c, "ranks ran on heterogeneous machines (%s): take machines of one kind", text);
        return;
    }
}

static double packets_of(const json_t *interface)
{
    return el_json_number(interface, "rx_packets") + el_json_number(interface, "tx_packets");
}

static double lost_at(const json_t *interface)
{
    static const char *const counters[] = {"rx_errors", "tx_errors", "rx_dropped", "tx_dropped", "collisions"};
    double lost = 0;
    for (int i = 0; i < 5; i++) lost += fmax(0, el_json_number(interface, counters[i])); /* fmin and fmax ignore NAN */
    return lost;
}

/* Ranks on several hosts use interfaces with at least a tenth of their host's packets; on one host only the loopback,
 * and only with tcp. */
static bool is_in_use(const json_t *interface, const json_t *interfaces, bool apart)
{
    const char *host = el_json_text(interface, "host", "");
    bool loopback = el_json_is(interface, "name", "lo");
    double all = 0;
    EL_EACH(other, interfaces)
        if (el_json_is(other, "host", host) && !el_json_is(other, "name", "lo")) all += fmax(0, packets_of(other));
    return apart ? !loopback && packets_of(interface) >= 0.1 * all : loopback;
}

/* Every network drops single packets, of protocols that nobody there speaks. */
void el_verdict_network_errors(struct el_verdict_case *c)
{
    enum { FEWEST = 10 };
    EL_EACH(repeat, c->ok) {
        const json_t *interfaces = el_json_at(repeat, "system.interfaces");
        bool apart = false;
        EL_EACH(member, json_object_get(repeat, "members"))
            apart |= !el_json_is(member, "host", el_json_text(repeat, "members.0.host", ""));
        if (!apart && !el_json_is(repeat, "communicator", "tcp")) continue;
        EL_EACH(interface, interfaces) {
            double lost = lost_at(interface), pct = 100 * lost / packets_of(interface);
            bool down = el_json_number(interface, "link_downed") > 0;
            if (!is_in_use(interface, interfaces, apart) || (!down && !(lost >= FEWEST && pct > c->rule->limit)))
                continue;
            el_verdict_say(c, "%s of %s %s while it was measured (%.0f packets lost, %.2g %%): check cable and switch",
                           el_json_text(interface, "name", "?"), el_json_text(interface, "host", "?"),
                           down ? "went down" : "lost packets", lost, pct);
        }
    }
}

/* NVIDIA DCGM's limits: any NVLink error (DCGM_LIMIT_MAX_NVLINK_ERROR; infinite here), or PCIe replays per minute
 * (DCGM_LIMIT_MAX_PCIREPLAY_RATE). Shorter windows count as a minute. */
static double link_errors(const json_t *member)
{
    if (el_json_number(member, "gpu.nvlink_errors") > 0) return INFINITY;
    return el_json_number(member, "gpu.pcie_replays") / fmax(1, el_json_number(member, "gpu.window_s") / 60);
}

void el_verdict_gpu_links(struct el_verdict_case *c)
{
    double errors;
    const json_t *worst = el_verdict_worst_member(c, link_errors, c->rule->limit, &errors);
    if (!worst) return;
    bool nvlink = isinf(errors);
    el_verdict_say(c, "%s of %s grew by %.0f in %.3g s: check the card's seat (%s)",
                   nvlink ? "NVLink errors" : "PCIe replays", el_json_text(worst, "device", "?"),
                   el_json_number(worst, nvlink ? "gpu.nvlink_errors" : "gpu.pcie_replays"),
                   el_json_number(worst, "gpu.window_s"), nvlink ? "nvidia-smi nvlink -e" : "nvidia-smi -q");
}

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

/* An op's span begins when its stream is free, so it includes the wait for the launch. */
void el_verdict_host_bound(struct el_verdict_case *c)
{
    double pct;
    const json_t *worst = el_verdict_worst_member(c, queueing_pct, c->rule->limit, &pct);
    if (worst)
        el_verdict_say(c,
                       "%s may wait for the host, which takes %.0f %% of a step to load and queue it: spans of its ops "
                       "contain the time between launches, and how busy it was is not known; take a larger batch or "
                       "model",
                       el_json_text(worst, "device", "?"), pct);
}

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
    EL_EACH(repeat, c->ok) {
        const json_t *members = json_object_get(repeat, "members");
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
