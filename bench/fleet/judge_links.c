/* Links between hosts, pairs of devices within a host, packets that are sent again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fleet/judging.h"
#include "bench/stats/stats.h"

/* A share of segments sent again that is a loss: this much, and so many times the median host's. */
#define LOSS_SHARE 0.002
#define LOSS_TIMES 5
#define LOSS_LEAST 20 /* segments */
#define PAIR_FLOOR 0.15
enum { LEAST_ROUNDS = 3 };

/* ---- links ---- */

/* Rates between hosts by repeat, of all their devices together: sums[(from * n + to) * repeats + repeat]; `rates` of
 * each of these `devices`, so that a host of fewer is not slower. */
struct matrix {
    size_t n, repeats;
    double *sums, *latency_us, *rates, *sds, *devices;
};

static void add_up(const struct el_fleet_judging *j, const struct matrix *m)
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

static void put_link(struct el_fleet_judging *j, const struct matrix *m, size_t from, size_t to)
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

static void put_link_fault(struct el_fleet_judging *j, const struct el_peer_fault *fault, const int *part)
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
    el_fleet_put_fault(j, kinds[fault->kind], fault->slower, names);
    if (fault->kind <= EL_PEER_RECEIVES)
        el_fleet_accuse(json_array_get(j->hosts, (size_t)fault->a), fault->slower, words[fault->kind]);
}

/* Hosts at one switch have the same number; NULL: nobody said. */
static int *groups_of(const struct el_fleet_judging *j)
{
    size_t n = json_array_size(j->hosts);
    int *groups = calloc(n + 1, sizeof *groups);
    bool all = groups;
    EL_EACH(host, j->hosts) {
        all = all && *el_fleet_text(host, "group");
        for (size_t k = 0; all && k <= host_at.i; k++)
            if (el_json_is(json_array_get(j->hosts, k), "group", el_fleet_text(host, "group"))) {
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

static void judge_matrix(struct el_fleet_judging *j, const struct matrix *m)
{
    int *part = calloc(m->n + 1, sizeof *part), *group = groups_of(j);
    struct el_peer_fault *faults = calloc(EL_PEER_FAULTS_MAX, sizeof *faults);
    struct el_peers peers;
    int64_t rounds = el_json_whole(j->gathered, "rounds");
    if (rounds < el_fleet_rounds((int)m->n) && rounds < LEAST_ROUNDS)
        el_fleet_cannot_tell(
            j, "links", "fewer than three rounds do not tell a host from its partner: give more --rounds or --budget");
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
            el_fleet_cannot_tell(j, "links", "two hosts cannot tell whose is slow: give --baseline");
        if (linked > 2 && !(peers.detects <= EL_FLEET_DETECTS_MOST)) el_fleet_cannot_tell(j, "links", EL_FLEET_DIFFER);
    }
    free(part);
    free(group);
    free(faults);
}

void el_fleet_judge_links(struct el_fleet_judging *j)
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

static int local_of(const struct el_fleet_judging *j, int rank)
{
    int n = 0;
    for (int k = 0; k < rank; k++) n += j->host_of[k] == j->host_of[rank];
    return n;
}

static size_t gather_within(const struct el_fleet_judging *j, struct within *rows, size_t most)
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

static void accuse_pair(struct el_fleet_judging *j, const struct within *row, const struct el_peer *unit)
{
    json_t *host = json_array_get(j->hosts, (size_t)j->host_of[row->from]), *names = json_array();
    const int ends[2] = {row->from, row->to};
    for (int i = 0; i < 2; i++)
        json_array_append_new(names, json_sprintf("%s %s", el_fleet_text(host, "name"),
                                                  el_fleet_text(json_array_get(j->devices, (size_t)ends[i]), "name")));
    el_fleet_put_fault(j, "devices", el_peers_slower(unit->deviation), names);
    el_fleet_accuse(host, el_peers_slower(unit->deviation), "a pair of its devices");
}

static const char *model_of(const struct el_fleet_judging *j, int rank)
{
    return el_json_text(json_array_get(j->devices, (size_t)rank), "parts.links.model", "");
}

static bool same_models(const struct el_fleet_judging *j, const struct within *a, const struct within *b)
{
    return !strcmp(model_of(j, a->from), model_of(j, b->from)) && !strcmp(model_of(j, a->to), model_of(j, b->to));
}

/* Those of all hosts that lie between devices of the same numbers and models as row `first`'s. */
static void judge_pair(struct el_fleet_judging *j, const struct within *rows, size_t n, size_t first,
                       struct el_peer *units, size_t *at)
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

static bool is_first(const struct el_fleet_judging *j, const struct within *rows, size_t at)
{
    int from = local_of(j, rows[at].from), to = local_of(j, rows[at].to);
    for (size_t i = 0; i < at; i++)
        if (local_of(j, rows[i].from) == from && local_of(j, rows[i].to) == to && same_models(j, &rows[i], &rows[at]))
            return false;
    return true;
}

void el_fleet_judge_within(struct el_fleet_judging *j)
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

void el_fleet_judge_losses(struct el_fleet_judging *j)
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
            el_fleet_put_fault(j, "loss", shares[h], json_incref(names));
            el_fleet_accuse(host, shares[h], "packets lost");
        }
        json_decref(names);
    }
    free(again);
    free(shares);
    free(some);
}
