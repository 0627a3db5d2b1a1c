/* Figures of devices among those of their kind, and beside an earlier run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fleet/judging.h"
#include "bench/stats/stats.h"

static void put_peers(struct el_fleet_judging *j, const struct el_fleet_figure *figure, const struct el_peers *peers,
                      size_t n)
{
    bool told = !isnan(peers->detects) && peers->detects <= EL_FLEET_DETECTS_MOST;
    el_json_put(j->peers, figure->key,
                el_json_of(EL_KEY("peers", (int64_t)n), EL_KEY("centre", peers->centre),
                           EL_KEY("sd_pct", 100 * peers->sd), EL_KEY("detects_pct", 100 * peers->detects),
                           EL_KEY("few", peers->few)));
    if (told || j->baseline) return;
    el_fleet_cannot_tell(j, figure->name,
                         n < 3 ? "fewer than three devices of a kind cannot tell which is slow: give --baseline"
                               : EL_FLEET_DIFFER);
}

struct judged {
    json_t *host, *figure;
};

/* Of the first measurement, or of the one that was made because a device was slow: bad is what both times stands out.
 */
static size_t gather_units(const struct el_fleet_judging *j, const char *rates_key, const char *key, const char *model,
                           struct el_peer *units, struct judged *rows, double **values)
{
    size_t n = 0;
    EL_EACH(host, j->hosts)
        EL_EACH(device, json_object_get(host, "devices")) {
            json_t *row = json_object_get(json_object_get(device, "figures"), key);
            if (strcmp(el_fleet_text(device, "model"), model)) continue;
            size_t k = el_json_numbers(json_object_get(row, rates_key), &values[n]);
            if (k == 0) continue;
            units[n] = (struct el_peer){.rates = values[n], .n = k};
            rows[n++] = (struct judged){host, row};
        }
    return n;
}

/* One figure of all devices of one model. */
static void judge_kind(struct el_fleet_judging *j, const struct el_fleet_figure *figure, const char *model)
{
    enum { TIMES = 2 };
    static const char *const times[TIMES] = {"rates", "again"};
    const struct el_peers_rule rule = {EL_PEERS_ALPHA / EL_FLEET_FIGURES, j->options->fleet.floor_pct / 100};
    size_t most = json_array_size(j->devices);
    struct el_peer *units = calloc(most + 1, sizeof *units);
    struct judged *rows = calloc(most + 1, sizeof *rows);
    double **values = calloc(most + 1, sizeof *values);
    for (int time = 0; time < TIMES && units && rows && values; time++) {
        struct el_peers peers;
        size_t n = gather_units(j, times[time], figure->key, model, units, rows, values);
        if (n == 0) continue;
        el_peers_judge(units, n, &rule, &peers);
        for (size_t i = 0; i < n; i++) {
            bool before = time == 0 || json_is_true(json_object_get(rows[i].figure, "bad"));
            el_json_put_all(rows[i].figure, EL_KEY("slower_pct", 100 * el_peers_slower(units[i].deviation)),
                            EL_KEY("bad", json_boolean(units[i].bad && before)), EL_KEY("fast", units[i].fast));
            free(values[i]);
        }
        put_peers(j, figure, &peers, n);
    }
    free(values);
    free(units);
    free(rows);
}

static void accuse_slow(struct el_fleet_judging *j)
{
    EL_EACH(host, j->hosts)
        EL_EACH(device, json_object_get(host, "devices"))
            for (int f = 0; f < EL_FLEET_DEVICE_FIGURES; f++) {
                const json_t *figure = json_object_get(json_object_get(device, "figures"), el_fleet_figures[f].key);
                if (json_is_true(json_object_get(figure, "bad")))
                    el_fleet_accuse(host, el_json_number(figure, "slower_pct") / 100, el_fleet_figures[f].name);
            }
}

static bool first_of_model(const struct el_fleet_judging *j, size_t at, const char *model)
{
    size_t k = 0;
    EL_EACH(host, j->hosts)
        EL_EACH(device, json_object_get(host, "devices")) {
            if (k == at) return true;
            if (!strcmp(el_fleet_text(device, "model"), model)) return false;
            k++;
        }
    return true;
}

/* Ranks that share a core wait for each other within a step, which is nobody's fault. */
static bool shares_machine(const struct el_fleet_judging *j)
{
    EL_EACH(a, j->hosts)
        EL_EACH(b, j->hosts)
            if (a != b && el_json_is(a, "boot", el_fleet_text(b, "boot")) && *el_fleet_text(a, "boot")) return true;
    return false;
}

static bool shares_core(const struct el_fleet_judging *j)
{
    EL_EACH(host, j->hosts)
        EL_EACH(a, json_object_get(host, "devices"))
            EL_EACH(b, json_object_get(host, "devices"))
                if (a != b && el_json_whole(a, "core") >= 0 && el_json_whole(a, "core") == el_json_whole(b, "core"))
                    return true;
    return false;
}

void el_fleet_judge_devices(struct el_fleet_judging *j)
{
    size_t k = 0;
    bool shared = shares_machine(j);
    if (shares_core(j)) {
        el_fleet_cannot_tell(j, "devices", "some share a core, so that none is judged: give fewer of each host");
        return;
    }
    EL_EACH(host, j->hosts)
        EL_EACH(device, json_object_get(host, "devices")) {
            if (!first_of_model(j, k++, el_fleet_text(device, "model"))) continue;
            for (int f = 0; f < EL_FLEET_DEVICE_FIGURES; f++)
                if (!shared || strcmp(el_fleet_figures[f].key, "step"))
                    judge_kind(j, &el_fleet_figures[f], el_fleet_text(device, "model"));
        }
    accuse_slow(j);
    if (shared)
        json_array_append_new(
            j->reasons, json_string("some hosts are one machine: they took turns, and their steps are not judged"));
}

/* ---- an earlier run ---- */

static const json_t *figure_then(const json_t *baseline, const char *host, const json_t *device, const char *key)
{
    EL_EACH(then, json_object_get(baseline, "hosts"))
        EL_EACH(old, json_object_get(then, "devices"))
            if (el_json_is(then, "name", host) && el_json_is(old, "name", el_fleet_text(device, "name")))
                return json_object_get(json_object_get(old, "figures"), key);
    return NULL;
}

/* Slower than the same device was by more than the floor of few peers, and by Welch's t more than both scatter. */
static bool slower_than_then(const json_t *now, const json_t *then, double *slower_p)
{
    double *a = NULL, *b = NULL;
    size_t n = el_json_numbers(json_object_get(now, "rates"), &a),
           m = el_json_numbers(json_object_get(then, "rates"), &b);
    for (size_t i = 0; i < n; i++) a[i] = log(a[i]);
    for (size_t i = 0; i < m; i++) b[i] = log(b[i]);
    double by = n && m ? el_stats_median(a, n) - el_stats_median(b, m) : 0;
    struct el_interval interval = el_stats_difference_unpaired(a, n, b, m);
    *slower_p = el_peers_slower(by);
    bool slower = *slower_p > EL_PEERS_FEW_FLOOR && (!interval.valid || interval.low > 0 || interval.high < 0);
    free(a);
    free(b);
    return slower;
}

void el_fleet_compare_then(struct el_fleet_judging *j)
{
    bool any = false, shared = shares_machine(j) || shares_core(j);
    EL_EACH(host, j->hosts)
        EL_EACH(device, json_object_get(host, "devices"))
            for (int f = 0; f < EL_FLEET_DEVICE_FIGURES; f++) {
                const struct el_fleet_figure *figure = &el_fleet_figures[f];
                json_t *now = json_object_get(json_object_get(device, "figures"), figure->key);
                const json_t *then = figure_then(j->baseline, el_fleet_text(host, "name"), device, figure->key);
                double slower;
                if (!then || (shared && !strcmp(figure->key, "step"))) continue;
                any = true;
                bool bad = slower_than_then(now, then, &slower);
                el_json_put_all(now, EL_KEY("slower_than_baseline_pct", 100 * slower));
                if (!bad) continue;
                el_json_put(now, "bad", json_true());
                el_fleet_accuse(host, slower, figure->name);
            }
    EL_EACH(link, json_object_get(j->document, "links")) {
        const json_t *names[2] = {json_array_get(j->hosts, (size_t)el_json_whole(link, "from")),
                                  json_array_get(j->hosts, (size_t)el_json_whole(link, "to"))};
        EL_EACH(then, json_object_get(j->baseline, "links")) {
            const json_t *old = json_object_get(j->baseline, "hosts");
            bool same = el_json_is(json_array_get(old, (size_t)el_json_whole(then, "from")), "name",
                                   el_fleet_text(names[0], "name")) &&
                        el_json_is(json_array_get(old, (size_t)el_json_whole(then, "to")), "name",
                                   el_fleet_text(names[1], "name"));
            double slower = 1 - el_json_number(link, "gb_per_s") / el_json_number(then, "gb_per_s");
            if (!same || !(slower > EL_PEERS_FEW_FLOOR)) continue;
            el_fleet_put_fault(j, "since", slower,
                               json_pack("[s, s]", el_fleet_text(names[0], "name"), el_fleet_text(names[1], "name")));
        }
    }
    if (!any) el_fleet_cannot_tell(j, "--baseline", "it knows none of these devices");
}
