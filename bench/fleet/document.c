/* From what the agents told to verdicts: figures of devices among their kind, links among hosts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/fleet/fleet.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "bench/stats/stats.h"

/* A share of segments sent again that is a loss: this much, and so many times the median host's. */
#define LOSS_SHARE 0.002
#define LOSS_TIMES 5
#define LOSS_LEAST 20 /* segments */
#define PAIR_FLOOR 0.15
/* Beyond it a figure is undecided: a run that finds only slowdowns above this says little. */
enum { LEAST_ROUNDS = 3 };
#define DETECTS_MOST 0.15
#define DIFFER       "good ones differ so much that 15 % slower would not be found: give more --repeats, or a quieter time"

struct judging {
    const struct el_options *options;
    json_t *gathered, *document, *hosts, *devices, *faults, *peers, *reasons;
    const json_t *baseline;
    int *host_of; /* by rank */
    bool undecided;
};

static const char *text_of(const json_t *object, const char *key)
{
    return el_json_text(object, key, "");
}

static json_t *host_named(const struct judging *j, const char *name)
{
    EL_EACH(host, j->hosts)
        if (el_json_is(host, "name", name)) return host;
    return NULL;
}

/* By rank. */
static void place_devices(struct judging *j)
{
    EL_EACH(device, j->devices) {
        const json_t *agent =
            json_array_get(json_object_get(j->gathered, "agents"), (size_t)el_json_whole(device, "agent"));
        j->host_of[device_at.i] = -1;
        EL_EACH(host, j->hosts)
            if (el_json_is(host, "name", text_of(agent, "name"))) j->host_of[device_at.i] = (int)host_at.i;
    }
}

/* ---- hosts and devices ---- */

static void put_hosts(struct judging *j)
{
    EL_EACH(agent, json_object_get(j->gathered, "agents")) {
        json_t *host = host_named(j, text_of(agent, "name"));
        if (host && el_json_is(agent, "state", "measured")) continue;
        if (host) {
            json_object_set(host, "state", json_object_get(agent, "state"));
            json_object_set(host, "reason", json_object_get(agent, "reason"));
            continue;
        }
        json_array_append_new(j->hosts,
                              el_json_of(EL_KEY("name", text_of(agent, "name")), EL_KEY("boot", text_of(agent, "boot")),
                                         EL_KEY("group", json_incref(json_object_get(agent, "group"))),
                                         EL_KEY("ranks", json_array()),
                                         EL_KEY("state", json_incref(json_object_get(agent, "state"))),
                                         EL_KEY("reason", json_incref(json_object_get(agent, "reason"))),
                                         EL_KEY("devices", json_array()), EL_KEY("slower_pct", 0.0),
                                         EL_KEY("worst", json_null()), EL_KEY("retransmitted_pct", (double)NAN)));
    }
}

/* steps/s: what a rank computed in a step, without waiting. */
static json_t *step_rates(const struct judging *j, const json_t *device)
{
    json_t *rates = json_array();
    const json_t *step = json_object_get(j->document, "step");
    int64_t rank = el_json_whole(device, "in_step");
    const json_t *ms = json_array_get(json_object_get(step, "compute_ms"), rank < 0 ? SIZE_MAX : (size_t)rank);
    EL_EACH(value, ms)
        if (json_number_value(value) > 0) json_array_append_new(rates, el_json_real(1e3 / json_number_value(value)));
    return rates;
}

static void put_devices(struct judging *j)
{
    EL_EACH(device, j->devices) {
        json_t *host = json_array_get(j->hosts, (size_t)j->host_of[device_at.i]), *figures = json_object();
        const json_t *parts = json_object_get(device, "parts"), *by_itself = json_object_get(parts, "devices");
        const json_t *any = by_itself ? by_itself : json_object_get(parts, "links");
        for (int f = 0; f < EL_FLEET_DEVICE_FIGURES; f++) {
            const char *key = el_fleet_figures[f].key;
            char again[64];
            snprintf(again, sizeof again, "again.%s", key);
            json_t *rates = strcmp(key, "step") ? json_incref(json_object_get(by_itself, key)) : step_rates(j, device);
            double *values = NULL;
            size_t n = el_json_numbers(rates, &values);
            el_json_put(figures, key,
                        el_json_of(EL_KEY("rates", rates ? rates : json_array()),
                                   EL_KEY("again", json_incref(el_json_at(parts, again))),
                                   EL_KEY("median", n ? el_stats_median(values, n) : NAN),
                                   EL_KEY("slower_pct", (double)NAN), EL_KEY("bad", false)));
            free(values);
        }
        json_array_append_new(json_object_get(host, "ranks"), json_integer((json_int_t)device_at.i));
        json_array_append_new(
            json_object_get(host, "devices"),
            el_json_of(EL_KEY("rank", (int64_t)device_at.i), EL_KEY("name", text_of(device, "name")),
                       EL_KEY("uuid", el_json_filled(text_of(any, "uuid"))),
                       EL_KEY("model", el_json_filled(text_of(any, "model"))),
                       EL_KEY("core", el_json_count(el_json_whole(by_itself, "core"))),
                       EL_KEY("granted_pct", el_json_number(by_itself, "granted_pct")), EL_KEY("figures", figures),
                       EL_KEY("reason", json_incref(json_object_get(device, "reason"))), EL_KEY("wrong", json_null())));
    }
}

/* ---- verdicts on hosts ---- */

static void accuse(json_t *host, double slower, const char *what)
{
    double before = el_json_number(host, "slower_pct");
    el_json_put_text(host, "verdict", "bad");
    if (100 * slower <= before && !json_is_null(json_object_get(host, "worst"))) return;
    el_json_put_real(host, "slower_pct", 100 * slower);
    el_json_put_text(host, "worst", what);
}

static void cannot_tell(struct judging *j, const char *figure, const char *why)
{
    char text[240];
    snprintf(text, sizeof text, "%s: %s", figure, why);
    j->undecided = true;
    EL_EACH(reason, j->reasons)
        if (!strcmp(json_string_value(reason), text)) return;
    json_array_append_new(j->reasons, json_string(text));
}

static void put_peers(struct judging *j, const struct el_fleet_figure *figure, const struct el_peers *peers, size_t n)
{
    bool told = !isnan(peers->detects) && peers->detects <= DETECTS_MOST;
    el_json_put(j->peers, figure->key,
                el_json_of(EL_KEY("peers", (int64_t)n), EL_KEY("centre", peers->centre),
                           EL_KEY("sd_pct", 100 * peers->sd), EL_KEY("detects_pct", 100 * peers->detects),
                           EL_KEY("few", peers->few)));
    if (told || j->baseline) return;
    cannot_tell(j, figure->name,
                n < 3 ? "fewer than three devices of a kind cannot tell which is slow: give --baseline" : DIFFER);
}

struct judged {
    json_t *host, *figure;
};

/* Of the first measurement, or of the one that was made because a device was slow: bad is what both times stands out.
 */
static size_t gather_units(const struct judging *j, const char *rates_key, const char *key, const char *model,
                           struct el_peer *units, struct judged *rows, double **values)
{
    size_t n = 0;
    EL_EACH(host, j->hosts)
        EL_EACH(device, json_object_get(host, "devices")) {
            json_t *row = json_object_get(json_object_get(device, "figures"), key);
            if (strcmp(text_of(device, "model"), model)) continue;
            size_t k = el_json_numbers(json_object_get(row, rates_key), &values[n]);
            if (k == 0) continue;
            units[n] = (struct el_peer){.rates = values[n], .n = k};
            rows[n++] = (struct judged){host, row};
        }
    return n;
}

/* One figure of all devices of one model. */
static void judge_kind(struct judging *j, const struct el_fleet_figure *figure, const char *model)
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

static void accuse_slow(struct judging *j)
{
    EL_EACH(host, j->hosts)
        EL_EACH(device, json_object_get(host, "devices"))
            for (int f = 0; f < EL_FLEET_DEVICE_FIGURES; f++) {
                const json_t *figure = json_object_get(json_object_get(device, "figures"), el_fleet_figures[f].key);
                if (json_is_true(json_object_get(figure, "bad")))
                    accuse(host, el_json_number(figure, "slower_pct") / 100, el_fleet_figures[f].name);
            }
}

static bool first_of_model(const struct judging *j, size_t at, const char *model)
{
    size_t k = 0;
    EL_EACH(host, j->hosts)
        EL_EACH(device, json_object_get(host, "devices")) {
            if (k == at) return true;
            if (!strcmp(text_of(device, "model"), model)) return false;
            k++;
        }
    return true;
}

/* Ranks that share a core wait for each other within a step, which is nobody's fault. */
static bool shares_machine(const struct judging *j)
{
    EL_EACH(a, j->hosts)
        EL_EACH(b, j->hosts)
            if (a != b && el_json_is(a, "boot", text_of(b, "boot")) && *text_of(a, "boot")) return true;
    return false;
}

static bool shares_core(const struct judging *j)
{
    EL_EACH(host, j->hosts)
        EL_EACH(a, json_object_get(host, "devices"))
            EL_EACH(b, json_object_get(host, "devices"))
                if (a != b && el_json_whole(a, "core") >= 0 && el_json_whole(a, "core") == el_json_whole(b, "core"))
                    return true;
    return false;
}

static void judge_devices(struct judging *j)
{
    size_t k = 0;
    bool shared = shares_machine(j);
    if (shares_core(j)) {
        cannot_tell(j, "devices", "some share a core, so that none is judged: give fewer of each host");
        return;
    }
    EL_EACH(host, j->hosts)
        EL_EACH(device, json_object_get(host, "devices")) {
            if (!first_of_model(j, k++, text_of(device, "model"))) continue;
            for (int f = 0; f < EL_FLEET_DEVICE_FIGURES; f++)
                if (!shared || strcmp(el_fleet_figures[f].key, "step"))
                    judge_kind(j, &el_fleet_figures[f], text_of(device, "model"));
        }
    accuse_slow(j);
    if (shared)
        json_array_append_new(
            j->reasons, json_string("some hosts are one machine: they took turns, and their steps are not judged"));
}

/* ---- links ---- */

/* Rates between hosts by repeat, of all their devices together: sums[(from * n + to) * repeats + repeat]; `rates` of
 * each of these `devices`, so that a host of fewer is not slower. */
struct matrix {
    size_t n, repeats;
    double *sums, *latency_us, *rates, *sds, *devices;
};

static void add_up(const struct judging *j, const struct matrix *m)
{
    for (size_t i = 0; i < m->n * m->n; i++) m->latency_us[i] = m->rates[i] = m->sds[i] = NAN;
    EL_EACH(device, j->devices) {
        int from = j->host_of[device_at.i];
        EL_EACH(link, el_json_at(device, "parts.links.links")) {
            size_t other = (size_t)el_json_whole(link, "to");
            if (json_is_true(json_object_get(link, "within")) || other >= json_array_size(j->devices) || from < 0)
                continue;
            size_t at = (size_t)from * m->n + (size_t)j->host_of[other];
            m->latency_us[at] = el_json_number(link, "latency_us");
            m->devices[at]++;
            EL_EACH(rate, json_object_get(link, "gb_per_s"))
                if (rate_at.i < m->repeats) m->sums[at * m->repeats + rate_at.i] += json_number_value(rate);
        }
    }
}

static void put_link(struct judging *j, const struct matrix *m, size_t from, size_t to)
{
    size_t at = from * m->n + to, n = 0;
    double *sums = m->sums + at * m->repeats, sd;
    while (n < m->repeats && sums[n] > 0) n++;
    if (n == 0) return;
    double together = el_stats_median(sums, n);
    m->rates[at] = together / m->devices[at];
    for (size_t i = 0; i < n; i++) sums[i] = log(sums[i]);
    sd = n > 1 ? el_stats_stddev(sums, n) : 0;
    m->sds[at] = sd / sqrt((double)n);
    json_array_append_new(json_object_get(j->document, "links"),
                          el_json_of(EL_KEY("from", (int64_t)from), EL_KEY("to", (int64_t)to),
                                     EL_KEY("gb_per_s", together), EL_KEY("sd_pct", n > 1 ? 100 * sd : (double)NAN),
                                     EL_KEY("latency_us", m->latency_us[at])));
}

static void put_fault(struct judging *j, const char *kind, double slower, json_t *names)
{
    json_array_append_new(j->faults,
                          el_json_of(EL_KEY("kind", kind), EL_KEY("hosts", names), EL_KEY("slower_pct", 100 * slower)));
}

static void put_link_fault(struct judging *j, const struct el_peer_fault *fault, const int *part)
{
    static const char *const kinds[] = {"host", "sends", "receives", "pair", "one_way", "switch"};
    static const char *const words[] = {"all its links", "what it sends", "what it receives", "", "", ""};
    json_t *names = json_array();
    if (fault->kind == EL_PEER_SWITCH) {
        EL_EACH(host, j->hosts)
            if (part[host_at.i] == part[fault->a]) json_array_append(names, json_object_get(host, "name"));
    } else
        json_array_append(names, json_object_get(json_array_get(j->hosts, (size_t)fault->a), "name"));
    if (fault->kind == EL_PEER_PAIR || fault->kind == EL_PEER_ONE_WAY)
        json_array_append(names, json_object_get(json_array_get(j->hosts, (size_t)fault->b), "name"));
    put_fault(j, kinds[fault->kind], fault->slower, names);
    if (fault->kind <= EL_PEER_RECEIVES)
        accuse(json_array_get(j->hosts, (size_t)fault->a), fault->slower, words[fault->kind]);
}

/* Hosts at one switch have the same number; NULL: nobody said. */
static int *groups_of(const struct judging *j)
{
    size_t n = json_array_size(j->hosts);
    int *groups = calloc(n + 1, sizeof *groups);
    bool all = groups;
    EL_EACH(host, j->hosts) {
        all = all && *text_of(host, "group");
        for (size_t k = 0; all && k <= host_at.i; k++)
            if (el_json_is(json_array_get(j->hosts, k), "group", text_of(host, "group"))) {
                groups[host_at.i] = (int)k;
                break;
            }
    }
    if (all) return groups;
    free(groups);
    return NULL;
}

/* Hosts of which at least one link was measured. */
static size_t linked_hosts(const struct matrix *m)
{
    size_t n = 0;
    for (size_t a = 0; a < m->n; a++) {
        bool any = false;
        for (size_t b = 0; b < m->n; b++) any |= m->rates[a * m->n + b] > 0;
        n += any;
    }
    return n;
}

static void judge_matrix(struct judging *j, const struct matrix *m)
{
    int *part = calloc(m->n + 1, sizeof *part), *group = groups_of(j);
    struct el_peer_fault *faults = calloc(EL_PEER_FAULTS_MAX, sizeof *faults);
    struct el_peers peers;
    int64_t rounds = el_json_whole(j->gathered, "rounds");
    if (rounds < el_fleet_rounds((int)m->n) && rounds < LEAST_ROUNDS)
        cannot_tell(j, "links",
                    "fewer than three rounds do not tell a host from its partner: give more --rounds or --budget");
    else if (part && faults) {
        const struct el_peer_links links = {.n = (int)m->n, .rates = m->rates, .sds = m->sds, .group = group};
        int found = el_peer_links_judge(&links, EL_PEERS_ALPHA / EL_FLEET_FIGURES, faults, part, &peers);
        for (int i = 0; i < found; i++) put_link_fault(j, &faults[i], part);
        size_t linked = linked_hosts(m);
        if (linked > 2)
            el_json_put(j->peers, "links",
                        el_json_of(EL_KEY("peers", (int64_t)linked), EL_KEY("centre", 1e9 * peers.centre),
                                   EL_KEY("sd_pct", 100 * peers.sd), EL_KEY("detects_pct", 100 * peers.detects),
                                   EL_KEY("few", peers.few)));
        if (linked == 2 && !j->baseline)
            cannot_tell(j, "links", "two hosts cannot tell whose is slow: give --baseline");
        if (linked > 2 && !(peers.detects <= DETECTS_MOST)) cannot_tell(j, "links", DIFFER);
    }
    free(part);
    free(group);
    free(faults);
}

static void judge_links(struct judging *j)
{
    struct matrix m = {.n = json_array_size(j->hosts), .repeats = (size_t)j->options->repeats};
    size_t cells = m.n * m.n + 1;
    m.sums = calloc(cells * m.repeats, sizeof *m.sums);
    m.latency_us = calloc(4 * cells, sizeof *m.latency_us);
    if (m.sums && m.latency_us && m.n > 1) {
        m.rates = m.latency_us + cells;
        m.sds = m.rates + cells;
        m.devices = m.sds + cells;
        add_up(j, &m);
        for (size_t from = 0; from < m.n; from++)
            for (size_t to = 0; to < m.n; to++) put_link(j, &m, from, to);
        judge_matrix(j, &m);
    }
    free(m.sums);
    free(m.latency_us);
}

/* ---- pairs of devices within a host: against the same pair of other hosts, as not all pairs of a host are alike ----
 */

struct within {
    double *rates;
    size_t n;
    int from, to; /* ranks */
};

static int local_of(const struct judging *j, int rank)
{
    int n = 0;
    for (int k = 0; k < rank; k++) n += j->host_of[k] == j->host_of[rank];
    return n;
}

static size_t gather_within(const struct judging *j, struct within *rows, size_t most)
{
    size_t n = 0;
    EL_EACH(device, j->devices)
        EL_EACH(link, el_json_at(device, "parts.links.links")) {
            if (!json_is_true(json_object_get(link, "within")) || n == most) continue;
            rows[n] = (struct within){.from = (int)device_at.i, .to = (int)el_json_whole(link, "to")};
            rows[n].n = el_json_numbers(json_object_get(link, "gb_per_s"), &rows[n].rates);
            double median = rows[n].n ? el_stats_median(rows[n].rates, rows[n].n) : NAN;
            json_array_append_new(json_object_get(j->document, "within"),
                                  el_json_of(EL_KEY("host", j->host_of[device_at.i]), EL_KEY("from", rows[n].from),
                                             EL_KEY("to", rows[n].to), EL_KEY("gb_per_s", median),
                                             EL_KEY("latency_us", el_json_number(link, "latency_us"))));
            n++;
        }
    return n;
}

static void accuse_pair(struct judging *j, const struct within *row, const struct el_peer *unit)
{
    json_t *host = json_array_get(j->hosts, (size_t)j->host_of[row->from]), *names = json_array();
    const int ends[2] = {row->from, row->to};
    for (int i = 0; i < 2; i++)
        json_array_append_new(names, json_sprintf("%s %s", text_of(host, "name"),
                                                  text_of(json_array_get(j->devices, (size_t)ends[i]), "name")));
    put_fault(j, "devices", el_peers_slower(unit->deviation), names);
    accuse(host, el_peers_slower(unit->deviation), "a pair of its devices");
}

static const char *model_of(const struct judging *j, int rank)
{
    return el_json_text(json_array_get(j->devices, (size_t)rank), "parts.links.model", "");
}

static bool same_models(const struct judging *j, const struct within *a, const struct within *b)
{
    return !strcmp(model_of(j, a->from), model_of(j, b->from)) && !strcmp(model_of(j, a->to), model_of(j, b->to));
}

/* Those of all hosts that lie between devices of the same numbers and models as row `first`'s. */
static void judge_pair(struct judging *j, const struct within *rows, size_t n, size_t first, struct el_peer *units,
                       size_t *at)
{
    size_t peers = 0, n_hosts = json_array_size(j->hosts);
    const struct el_peers_rule rule = {EL_PEERS_ALPHA / EL_FLEET_FIGURES * (double)n_hosts / (double)n, PAIR_FLOOR};
    int from = local_of(j, rows[first].from), to = local_of(j, rows[first].to);
    struct el_peers found;
    for (size_t i = 0; i < n && peers < n_hosts; i++)
        if (local_of(j, rows[i].from) == from && local_of(j, rows[i].to) == to &&
            same_models(j, &rows[i], &rows[first])) {
            units[peers] = (struct el_peer){.rates = rows[i].rates, .n = rows[i].n};
            at[peers++] = i;
        }
    el_peers_judge(units, peers, &rule, &found);
    for (size_t i = 0; i < peers; i++)
        if (units[i].bad) accuse_pair(j, &rows[at[i]], &units[i]);
}

static bool is_first(const struct judging *j, const struct within *rows, size_t at)
{
    int from = local_of(j, rows[at].from), to = local_of(j, rows[at].to);
    for (size_t i = 0; i < at; i++)
        if (local_of(j, rows[i].from) == from && local_of(j, rows[i].to) == to && same_models(j, &rows[i], &rows[at]))
            return false;
    return true;
}

static void judge_within(struct judging *j)
{
    enum { MOST = 1 << 16 };
    struct within *rows = calloc(MOST, sizeof *rows);
    size_t n = rows ? gather_within(j, rows, MOST) : 0, n_hosts = json_array_size(j->hosts);
    struct el_peer *units = calloc(n_hosts + 1, sizeof *units);
    size_t *at = calloc(n_hosts + 1, sizeof *at);
    for (size_t i = 0; i < n && units && at && n_hosts > 2; i++)
        if (is_first(j, rows, i)) judge_pair(j, rows, n, i, units, at);
    for (size_t i = 0; i < n; i++) free(rows[i].rates);
    free(rows);
    free(units);
    free(at);
}

static void judge_losses(struct judging *j)
{
    size_t n = json_array_size(j->hosts), known = 0;
    double *again = calloc(n + 1, sizeof *again), *shares = calloc(n + 1, sizeof *shares),
           *some = calloc(n + 1, sizeof *some);
    for (size_t h = 0; h < n && shares && some && again; h++) {
        shares[h] = NAN;
        EL_EACH(device, j->devices) {
            const json_t *links = el_json_at(device, "parts.links");
            double share = el_json_number(links, "retransmitted") / el_json_number(links, "segments");
            if (j->host_of[device_at.i] != (int)h || !(share >= 0)) continue;
            shares[h] = share;
            again[h] = el_json_number(links, "retransmitted");
        }
        el_json_put_real(json_array_get(j->hosts, h), "retransmitted_pct", 100 * shares[h]);
        if (!isnan(shares[h])) some[known++] = shares[h];
    }
    double middle = known ? el_stats_median(some, known) : NAN;
    for (size_t h = 0; h < n && known > 2; h++) {
        json_t *host = json_array_get(j->hosts, h), *names = json_array();
        if (again[h] >= LOSS_LEAST && shares[h] > LOSS_SHARE && shares[h] > LOSS_TIMES * middle) {
            json_array_append(names, json_object_get(host, "name"));
            put_fault(j, "loss", shares[h], json_incref(names));
            accuse(host, shares[h], "packets lost");
        }
        json_decref(names);
    }
    free(again);
    free(shares);
    free(some);
}

/* ---- soak ---- */

static void judge_wrong(struct judging *j)
{
    EL_EACH(device, j->devices) {
        json_t *wrong = el_json_at(device, "parts.soak.wrong"),
               *host = json_array_get(j->hosts, (size_t)j->host_of[device_at.i]);
        if (!json_is_object(wrong)) continue;
        EL_EACH(row, json_object_get(host, "devices"))
            if (el_json_whole(row, "rank") == (int64_t)device_at.i) json_object_set(row, "wrong", wrong);
        accuse(host, 1, "wrong results");
        el_json_put_real(host, "slower_pct", 0);
    }
    if (json_is_true(json_object_get(j->gathered, "no_majority")))
        cannot_tell(j, "soak", "two devices computed different results, and no third one tells which is right");
    double passes = NAN, steps = 0;
    EL_EACH(device, j->devices) {
        double its = el_json_number(device, "parts.soak.passes");
        if (its > 0) passes = isnan(passes) ? its : fmin(passes, its);
        if (its > 0) steps += el_json_number(device, "parts.soak.steps");
    }
    el_json_put(j->document, "soak",
                isnan(passes) ? json_null() : el_json_of(EL_KEY("passes_at_least", passes), EL_KEY("steps", steps)));
}

/* ---- an earlier run ---- */

static const json_t *figure_then(const json_t *baseline, const char *host, const json_t *device, const char *key)
{
    EL_EACH(then, json_object_get(baseline, "hosts"))
        EL_EACH(old, json_object_get(then, "devices"))
            if (el_json_is(then, "name", host) && el_json_is(old, "name", text_of(device, "name")))
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

static void compare_with_baseline(struct judging *j)
{
    bool any = false, shared = shares_machine(j) || shares_core(j);
    EL_EACH(host, j->hosts)
        EL_EACH(device, json_object_get(host, "devices"))
            for (int f = 0; f < EL_FLEET_DEVICE_FIGURES; f++) {
                const struct el_fleet_figure *figure = &el_fleet_figures[f];
                json_t *now = json_object_get(json_object_get(device, "figures"), figure->key);
                const json_t *then = figure_then(j->baseline, text_of(host, "name"), device, figure->key);
                double slower;
                if (!then || (shared && !strcmp(figure->key, "step"))) continue;
                any = true;
                bool bad = slower_than_then(now, then, &slower);
                el_json_put_all(now, EL_KEY("slower_than_baseline_pct", 100 * slower));
                if (!bad) continue;
                el_json_put(now, "bad", json_true());
                accuse(host, slower, figure->name);
            }
    EL_EACH(link, json_object_get(j->document, "links")) {
        const json_t *names[2] = {json_array_get(j->hosts, (size_t)el_json_whole(link, "from")),
                                  json_array_get(j->hosts, (size_t)el_json_whole(link, "to"))};
        EL_EACH(then, json_object_get(j->baseline, "links")) {
            const json_t *old = json_object_get(j->baseline, "hosts");
            bool same =
                el_json_is(json_array_get(old, (size_t)el_json_whole(then, "from")), "name",
                           text_of(names[0], "name")) &&
                el_json_is(json_array_get(old, (size_t)el_json_whole(then, "to")), "name", text_of(names[1], "name"));
            double slower = 1 - el_json_number(link, "gb_per_s") / el_json_number(then, "gb_per_s");
            if (!same || !(slower > EL_PEERS_FEW_FLOOR)) continue;
            put_fault(j, "since", slower, json_pack("[s, s]", text_of(names[0], "name"), text_of(names[1], "name")));
        }
    }
    if (!any) cannot_tell(j, "--baseline", "it knows none of these devices");
}

/* ---- all of it ---- */

static int by_badness(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    static const char *const order[] = {"bad", "lost", "absent", "undecided", "good"};
    int places[2] = {0, 0};
    for (int i = 0; i < 5; i++) {
        if (el_json_is(x, "verdict", order[i])) places[0] = i;
        if (el_json_is(y, "verdict", order[i])) places[1] = i;
    }
    if (places[0] != places[1]) return places[0] - places[1];
    double by = el_json_number(y, "slower_pct") - el_json_number(x, "slower_pct");
    return by > 0 ? 1 : by < 0 ? -1 : strcmp(text_of(x, "name"), text_of(y, "name"));
}

/* The table's order: worst first, as places in `hosts`. */
static json_t *order_of(const struct judging *j)
{
    size_t n = json_array_size(j->hosts);
    json_t **list = calloc(n + 1, sizeof(json_t *)), *order = json_array();
    for (size_t i = 0; i < n && list; i++) list[i] = json_array_get(j->hosts, i);
    if (list) qsort(list, n, sizeof(json_t *), by_badness);
    for (size_t i = 0; i < n && list; i++)
        for (size_t k = 0; k < n; k++)
            if (json_array_get(j->hosts, k) == list[i]) json_array_append_new(order, json_integer((json_int_t)k));
    free(list);
    return order;
}

static void conclude(struct judging *j)
{
    bool bad = json_array_size(j->faults) > 0;
    EL_EACH(phase, json_object_get(j->document, "phases"))
        if (*text_of(phase, "reason")) {
            char text[320];
            snprintf(text, sizeof text, "phase %s failed: %s", text_of(phase, "name"), text_of(phase, "reason"));
            json_array_append_new(j->reasons, json_string(text));
            j->undecided = true;
        }
    if (json_is_true(json_object_get(j->gathered, "interrupted"))) {
        json_array_append_new(j->reasons, json_string("it was interrupted"));
        j->undecided = true;
    }
    EL_EACH(host, j->hosts) {
        const char *state = text_of(host, "state");
        EL_EACH(device, json_object_get(host, "devices"))
            if (*text_of(device, "reason") && !el_json_is(host, "verdict", "bad")) {
                el_json_put_text(host, "verdict", "bad");
                el_json_put_text(host, "worst", "a device that failed");
            }
        if (strcmp(state, "measured")) el_json_put_text(host, "verdict", state);
        if (!json_object_get(host, "verdict")) el_json_put_text(host, "verdict", j->undecided ? "undecided" : "good");
        bad |= !el_json_is(host, "verdict", "good") && !el_json_is(host, "verdict", "undecided");
    }
    if (json_array_size(j->devices) > EL_MEMBERS_MAX && !json_is_true(json_object_get(j->gathered, "simulated")))
        json_array_append_new(j->reasons,
                              json_sprintf("no step was measured: ddp has at most %d devices", EL_MEMBERS_MAX));
    const char *verdict = bad ? "bad" : j->undecided ? "undecided" : "good";
    el_json_put_all(j->document, EL_KEY("verdict", verdict),
                    EL_KEY("exit_status", bad            ? 1
                                          : j->undecided ? 3
                                                         : 0),
                    EL_KEY("order", order_of(j)));
}

/* Rank 0 of the phase wrote it: whoever has it. Numbers of that phase are kept, as later ones have others. */
static void take_step(struct judging *j)
{
    json_t *step = NULL;
    int64_t rank = 0;
    EL_EACH(device, j->devices) {
        json_t *its = el_json_at(device, "parts.step");
        if (!its) continue;
        if (json_object_size(its)) step = its;
        el_json_put(device, "in_step", json_integer(rank++));
    }
    el_json_put(j->document, "step", step ? json_incref(step) : json_null());
}

static void put_all_reduce(struct judging *j)
{
    EL_EACH(device, j->devices) {
        const json_t *its = el_json_at(device, "parts.links.all_reduce");
        double bytes = el_json_number(its, "bytes"), n = 0;
        json_t *rates = json_array();
        EL_EACH(other, j->devices) n += el_json_at(other, "parts.links") != NULL;
        EL_EACH(s, json_object_get(its, "s"))
            json_array_append_new(rates, el_json_real(2 * (n - 1) / n * bytes / json_number_value(s) * 1e-9));
        bool known = json_array_size(rates) > 0;
        if (known)
            el_json_put(
                j->document, "all_reduce",
                el_json_of(EL_KEY("bytes", bytes), EL_KEY("busbw_gb_per_s", json_incref(rates)),
                           EL_KEY("backend", text_of(el_json_at(device, "parts.links"), "backend")),
                           EL_KEY("message_bytes", el_json_number(el_json_at(device, "parts.links"), "bytes"))));
        json_decref(rates);
        if (known) return;
    }
    el_json_put(j->document, "all_reduce", json_null());
}

static void put_rounds(struct judging *j)
{
    int64_t rounds = el_json_whole(j->gathered, "rounds"), hosts = 0;
    EL_EACH(host, j->hosts) hosts += el_json_is(host, "state", "measured");
    int of = el_fleet_rounds((int)hosts);
    el_json_put(j->document, "rounds", el_json_of(EL_KEY("between", rounds), EL_KEY("of", of)));
}

enum el_status el_fleet_document(const struct el_options *options, json_t *gathered, const json_t *baseline,
                                 json_t **document_p)
{
    struct judging j = {.options = options,
                        .gathered = gathered,
                        .baseline = baseline,
                        .hosts = json_array(),
                        .devices = json_object_get(gathered, "devices"),
                        .faults = json_array(),
                        .peers = json_object(),
                        .reasons = json_array()};
    char command[2 * EL_PATH_BYTES] = "evenload fleet";
    el_options_command_line(EL_CMD_FLEET, options, command, sizeof command);
    j.document =
        el_json_of(EL_KEY("schema", EL_FLEET_SCHEMA), EL_KEY("kind", "fleet"), EL_KEY("command", (const char *)command),
                   EL_KEY("environment", el_environment()), EL_KEY("repeats", options->repeats),
                   EL_KEY("simulated", json_boolean(json_is_true(json_object_get(gathered, "simulated")))),
                   EL_KEY("hosts", j.hosts), EL_KEY("links", json_array()), EL_KEY("within", json_array()),
                   EL_KEY("faults", j.faults), EL_KEY("peers", j.peers), EL_KEY("reasons", j.reasons),
                   EL_KEY("phases", json_incref(json_object_get(gathered, "phases"))));
    take_step(&j);
    put_hosts(&j);
    j.host_of = calloc(json_array_size(j.devices) + 1, sizeof *j.host_of);
    if (!j.host_of) return el_fail_errno("fleet");
    place_devices(&j);
    put_devices(&j);
    put_all_reduce(&j);
    put_rounds(&j);
    judge_devices(&j);
    judge_links(&j);
    judge_within(&j);
    judge_losses(&j);
    judge_wrong(&j);
    if (baseline) compare_with_baseline(&j);
    conclude(&j);
    free(j.host_of);
    json_decref(gathered);
    *document_p = j.document;
    return EL_OK;
}

bool el_fleet_is(const json_t *document)
{
    return el_json_is(document, "kind", "fleet") && el_json_whole(document, "schema") == EL_FLEET_SCHEMA;
}
