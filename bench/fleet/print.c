/* The fleet's table, its sentences, and what other programs read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/fleet/fleet.h"
#include "bench/stats/stats.h"

enum { NAMES_BYTES = 400, GRANTED_PCT = 90, ROWS_MOST = 40 };

static void show_rate(const json_t *host, int f, char *text)
{
    char figure[EL_FIGURE_BYTES];
    snprintf(text, EL_CELL_BYTES, "%s",
             el_text_figure(el_fleet_slowest(host, el_fleet_figures[f].key) * el_fleet_figures[f].scale, figure));
}

static void show_products(const json_t *host, const json_t *context, char *text)
{
    (void)context;
    show_rate(host, 0, text);
}

static void show_memory(const json_t *host, const json_t *context, char *text)
{
    (void)context;
    show_rate(host, 1, text);
}

static void show_copies(const json_t *host, const json_t *context, char *text)
{
    (void)context;
    show_rate(host, 2, text);
}

/* The median of its links to others, or from them. */
static void show_links(const json_t *host, const json_t *document, const char *side, char *text)
{
    char figure[EL_FIGURE_BYTES];
    int64_t at = -1;
    EL_EACH(row, json_object_get(document, "hosts"))
        if (row == host) at = (int64_t)row_at.i;
    snprintf(text, EL_CELL_BYTES, "%s", el_text_figure(el_fleet_link_median(document, at, side), figure));
}

static void show_sends(const json_t *host, const json_t *document, char *text)
{
    show_links(host, document, "from", text);
}

static void show_receives(const json_t *host, const json_t *document, char *text)
{
    show_links(host, document, "to", text);
}

static void show_ranks(const json_t *host, const json_t *context, char *text)
{
    const json_t *ranks = json_object_get(host, "ranks");
    size_t n = json_array_size(ranks);
    int64_t first = n ? json_integer_value(json_array_get(ranks, 0)) : -1;
    int64_t last = n ? json_integer_value(json_array_get(ranks, n - 1)) : -1;
    (void)context;
    if (n == 0)
        snprintf(text, EL_CELL_BYTES, "-");
    else if (last - first + 1 == (int64_t)n && n > 1)
        snprintf(text, EL_CELL_BYTES, "%lld-%lld", (long long)first, (long long)last);
    else
        snprintf(text, EL_CELL_BYTES, n > 1 ? "%lld, ..." : "%lld", (long long)first);
}

static void show_verdict(const json_t *host, const json_t *context, char *text)
{
    const char *verdict = el_fleet_text(host, "verdict"), *worst = el_fleet_text(host, "worst");
    double slower = el_json_number(host, "slower_pct");
    (void)context;
    if (strcmp(verdict, "bad"))
        snprintf(text, EL_CELL_BYTES, "%s", verdict);
    else if (!strcmp(worst, "packets lost"))
        snprintf(text, EL_CELL_BYTES, "BAD: %.2g %% of packets lost", slower);
    else if (slower > 0)
        snprintf(text, EL_CELL_BYTES, "BAD: %s %.0f %% slower", worst, slower);
    else
        snprintf(text, EL_CELL_BYTES, "BAD: %s", worst);
}

static const struct el_column columns[] =
    EL_COLUMNS(EL_NAME("host", 16, "name"), EL_SHOWN("ranks", 7, show_ranks), EL_SHOWN("GFLOP/s", 8, show_products),
               EL_SHOWN("memory", 7, show_memory), EL_SHOWN("copies", 7, show_copies), EL_SHOWN("sends", 7, show_sends),
               EL_SHOWN("receives", 8, show_receives), EL_SHOWN("verdict", -12, show_verdict, .gap = 2));

static void print_table(const json_t *document, FILE *out)
{
    const struct el_table table = {.columns = columns, .context = document, .out = out};
    const json_t *hosts = json_object_get(document, "hosts");
    size_t n = json_array_size(hosts), left = 0;
    el_table_heads(&table, EL_TABLE_BOLD);
    EL_EACH(at, json_object_get(document, "order")) {
        const json_t *host = json_array_get(hosts, (size_t)json_integer_value(at));
        bool bad = !el_json_is(host, "verdict", "good") && !el_json_is(host, "verdict", "undecided");
        if (bad || at_at.i < ROWS_MOST || n <= ROWS_MOST + 1)
            el_table_row(&table, bad ? EL_TABLE_RED : EL_TABLE_PLAIN, host);
        else
            left++;
    }
    if (left) fprintf(out, "and %zu more; all are in fleet.csv\n", left);
    fputs("memory, copies, sends and receives: GB/s; of a host its slowest device, and the median of its links\n", out);
}

static void join(const json_t *names, const char *between, char text[NAMES_BYTES])
{
    text[0] = 0;
    EL_EACH(name, names) el_text_append(text, NAMES_BYTES, "%s%s", name_at.i ? between : "", json_string_value(name));
}

static void say_fault(const json_t *fault, FILE *out)
{
    const char *kind = el_fleet_text(fault, "kind");
    const json_t *hosts = json_object_get(fault, "hosts");
    double slower = el_json_number(fault, "slower_pct");
    char names[NAMES_BYTES];
    join(hosts, !strcmp(kind, "pair") ? " and " : strcmp(kind, "switch") ? " to " : ", ", names);
    if (!strcmp(kind, "host"))
        EL_ITEM(out, "%s: all its links, both ways, are %.0f %% slower than the others'.", names, slower);
    else if (!strcmp(kind, "sends") || !strcmp(kind, "receives"))
        EL_ITEM(out, "%s: what it %s is %.0f %% slower than the others', %s all hosts alike.", names, kind, slower,
                !strcmp(kind, "sends") ? "to" : "from");
    else if (!strcmp(kind, "pair"))
        EL_ITEM(out, "%s: this pair is %.0f %% slower than other pairs of the same hosts, both ways.", names, slower);
    else if (!strcmp(kind, "one_way"))
        EL_ITEM(out, "%s: this direction is %.0f %% slower, the way back is not.", names, slower);
    else if (!strcmp(kind, "devices"))
        EL_ITEM(out, "%s: this direction is %.0f %% slower than between the same devices of other hosts.", names,
                slower);
    else if (!strcmp(kind, "since"))
        EL_ITEM(out, "%s: this direction is %.0f %% slower than in the baseline.", names, slower);
    else if (!strcmp(kind, "switch"))
        EL_ITEM(out,
                "%s: fast among each other, and %.0f %% slower to all others: what lies between is slow (a switch, an "
                "uplink), not a host.",
                names, slower);
    else
        EL_ITEM(out, "%s: it sends %.2g %% of its TCP segments again: packets are lost on its way out.", names, slower);
}

static void say_device(const json_t *host, const json_t *device, FILE *out)
{
    const json_t *wrong = json_object_get(device, "wrong");
    const char *uuid = el_fleet_text(device, "uuid"), *name = el_fleet_text(device, "name");
    char label[200], text[EL_FIGURE_BYTES], granted[80] = "";
    double had_pct = el_json_number(device, "granted_pct");
    if (had_pct < GRANTED_PCT)
        snprintf(granted, sizeof granted, "; it had its core for %.0f %% of the time: a quota, or other programs",
                 had_pct);
    snprintf(label, sizeof label, "%s, %s%s%s%s", el_fleet_text(host, "name"), name, *uuid ? " (" : "", uuid,
             *uuid ? ")" : "");
    for (int f = 0; f < EL_FLEET_DEVICE_FIGURES; f++) {
        const struct el_fleet_figure *row = &el_fleet_figures[f];
        const json_t *figure = json_object_get(json_object_get(device, "figures"), row->key);
        double slower = el_json_number(figure, "slower_pct"), then = el_json_number(figure, "slower_than_baseline_pct");
        if (!json_is_true(json_object_get(figure, "bad"))) continue;
        bool of_then = !(slower > 0) || then > slower;
        EL_ITEM(out, "%s: %s %.0f %% slower than %s (%s %s)%s.", label, row->name, of_then ? then : slower,
                of_then ? "in the baseline" : "its peers",
                el_text_figure(el_json_number(figure, "median") * row->scale, text), row->unit, f < 3 ? granted : "");
    }
    if (*el_fleet_text(device, "reason")) EL_ITEM(out, "%s: %s.", label, el_fleet_text(device, "reason"));
    if (!json_is_object(wrong)) return;
    bool known = el_json_whole(wrong, "element") >= 0;
    if (known)
        EL_ITEM(out, "%s: wrong result of %s in step %lld: element %lld is %.9g, not %.9g.", label,
                el_fleet_text(wrong, "op"), (long long)el_json_whole(wrong, "step"),
                (long long)el_json_whole(wrong, "element"), el_json_number(wrong, "is"), el_json_number(wrong, "was"));
    else
        EL_ITEM(out, "%s: wrong result of %s in step %lld; its element was not found again.", label,
                el_fleet_text(wrong, "op"), (long long)el_json_whole(wrong, "step"));
}

void el_fleet_say(const json_t *document, FILE *out)
{
    int counts[5] = {0};
    static const char *const verdicts[] = {"good", "bad", "undecided", "lost", "absent"};
    const char *between = "";
    EL_EACH(host, json_object_get(document, "hosts"))
        for (int i = 0; i < 5; i++) counts[i] += el_json_is(host, "verdict", verdicts[i]);
    for (int i = 0; i < 5; i++) {
        if (!counts[i]) continue;
        fprintf(out, "%s%d %s", between, counts[i], verdicts[i]);
        between = ", ";
    }
    size_t links = 0; /* that are no host's fault */
    EL_EACH(fault, json_object_get(document, "faults")) links += json_array_size(json_object_get(fault, "hosts")) > 1;
    if (links) fprintf(out, "; %zu slow link%s", links, links == 1 ? "" : "s");
}

static void say_peers(const json_t *document, FILE *out)
{
    const json_t *peers = json_object_get(document, "peers");
    char words[NAMES_BYTES] = "";
    EL_EACH_KEY(key, row, peers) {
        double detects = el_json_number(row, "detects_pct");
        if (isnan(detects)) continue;
        el_text_append(words, sizeof words, "%s%s %.0f %%", *words ? ", " : "", key, detects);
    }
    if (*words) EL_SAY(out, "Slowdowns that this run finds (in 95 of 100 cases): %s.", words);
}

static const char *device_name(const json_t *document, int64_t rank)
{
    EL_EACH(host, json_object_get(document, "hosts"))
        EL_EACH(device, json_object_get(host, "devices"))
            if (el_json_whole(device, "rank") == rank) return el_fleet_text(device, "name");
    return "?";
}

/* Of a single host there are no peers that could tell: its slowest pair is said. */
static void say_within(const json_t *document, FILE *out)
{
    const json_t *within = json_object_get(document, "within"), *slowest = json_array_get(within, 0);
    char texts[2][EL_FIGURE_BYTES];
    double *values = NULL;
    size_t n = el_json_numbers_at(within, "gb_per_s", &values);
    EL_EACH(pair, within)
        if (el_json_number(pair, "gb_per_s") < el_json_number(slowest, "gb_per_s")) slowest = pair;
    if (n > 2 && json_array_size(json_object_get(document, "hosts")) == 1)
        EL_SAY(out, "Slowest pair of devices: %s to %s, %s GB/s; the median pair has %s.",
               device_name(document, el_json_whole(slowest, "from")),
               device_name(document, el_json_whole(slowest, "to")),
               el_text_figure(el_json_number(slowest, "gb_per_s"), texts[0]),
               el_text_figure(el_stats_median(values, n), texts[1]));
    free(values);
}

void el_fleet_print(const json_t *document, FILE *out)
{
    char text[EL_FIGURE_BYTES];
    print_table(document, out);
    fputc('\n', out);
    EL_EACH(fault, json_object_get(document, "faults")) say_fault(fault, out);
    EL_EACH(host, json_object_get(document, "hosts")) {
        if (*el_fleet_text(host, "reason"))
            EL_ITEM(out, "%s is %s: %s.", el_fleet_text(host, "name"), el_fleet_text(host, "state"),
                    el_fleet_text(host, "reason"));
        EL_EACH(device, json_object_get(host, "devices")) say_device(host, device, out);
    }
    EL_EACH(reason, json_object_get(document, "reasons")) EL_ITEM(out, "%s.", json_string_value(reason));
    double *rates = NULL;
    size_t n = el_json_numbers(el_json_at(document, "all_reduce.busbw_gb_per_s"), &rates);
    if (n)
        EL_SAY(out, "All-reduce of 16 MiB by all: busbw %s GB/s (%s).", el_text_figure(el_stats_median(rates, n), text),
               el_json_text(document, "all_reduce.backend", "?"));
    free(rates);
    say_within(document, out);
    double rounds = el_json_number(document, "rounds.between"), of = el_json_number(document, "rounds.of");
    if (rounds < of && json_array_size(json_object_get(document, "links")))
        EL_SAY(out, "Links: %.0f of %.0f rounds, so %.0f %% of the pairs of hosts; --budget has more.", rounds, of,
               100 * rounds / of);
    double steps = el_json_number(document, "soak.steps");
    if (steps > 0) EL_SAY(out, "Soak: %.0f steps replayed, what every op wrote compared bit for bit.", steps);
    say_peers(document, out);
    fputs("Fleet: ", out);
    el_fleet_say(document, out);
    fputc('\n', out);
}

enum el_status el_fleet_csv(const void *document, FILE *out)
{
    const json_t *hosts = json_object_get(document, "hosts");
    fputs("host,rank,device,uuid,verdict,figure,median,slower_pct,bad\n", out);
    EL_EACH(host, hosts)
        EL_EACH(device, json_object_get(host, "devices"))
            EL_EACH_KEY(key, figure, json_object_get(device, "figures")) {
                el_escape_csv(el_fleet_text(host, "name"), out);
                fprintf(out, ",%lld,%s,%s,%s,%s,%.6g,%.3f,%d\n", (long long)el_json_whole(device, "rank"),
                        el_fleet_text(device, "name"), el_fleet_text(device, "uuid"), el_fleet_text(host, "verdict"),
                        key, el_json_number(figure, "median"), el_json_number(figure, "slower_pct"),
                        json_is_true(json_object_get(figure, "bad")));
            }
    EL_EACH(link, json_object_get(document, "links")) {
        el_escape_csv(el_fleet_text(json_array_get(hosts, (size_t)el_json_whole(link, "from")), "name"), out);
        fputs(",,,,link to ", out);
        el_escape_csv(el_fleet_text(json_array_get(hosts, (size_t)el_json_whole(link, "to")), "name"), out);
        fprintf(out, ",gb_per_s,%.6g,,\n", el_json_number(link, "gb_per_s"));
    }
    return EL_OK;
}

/* A label's value: backslash, quote and newline are escaped; names have no control characters here. */
static void put_label(FILE *out, const char *name, const char *value, const char *before)
{
    fprintf(out, "%s%s=\"", before, name);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\') fputc('\\', out);
        fputc(*value, out);
    }
    fputc('"', out);
}

static void put_metric(FILE *out, const char *name, const char *help)
{
    fprintf(out, "# HELP evenload_fleet_%s %s\n# TYPE evenload_fleet_%s gauge\n", name, help, name);
}

enum el_status el_fleet_prometheus(const void *document, FILE *out)
{
    const json_t *hosts = json_object_get(document, "hosts");
    put_metric(out, "bad", "1: the host is slow, wrong, lost or absent; 0: it is not known to be.");
    EL_EACH(host, hosts) {
        bool good = el_json_is(host, "verdict", "good") || el_json_is(host, "verdict", "undecided");
        put_label(out, "host", el_fleet_text(host, "name"), "evenload_fleet_bad{");
        put_label(out, "verdict", el_fleet_text(host, "verdict"), ",");
        fprintf(out, "} %d\n", !good);
    }
    put_metric(out, "faults", "Slow links, slow switches and losses of packets that were found.");
    fprintf(out, "evenload_fleet_faults %zu\n", json_array_size(json_object_get(document, "faults")));
    put_metric(out, "rate", "What a device reached, in FLOP/s, bytes/s or steps/s; the median of the repeats.");
    EL_EACH(host, hosts)
        EL_EACH(device, json_object_get(host, "devices"))
            EL_EACH_KEY(key, figure, json_object_get(device, "figures")) {
                double median = el_json_number(figure, "median");
                if (isnan(median)) continue;
                put_label(out, "host", el_fleet_text(host, "name"), "evenload_fleet_rate{");
                put_label(out, "device", el_fleet_text(device, "name"), ",");
                put_label(out, "uuid", el_fleet_text(device, "uuid"), ",");
                put_label(out, "figure", key, ",");
                fprintf(out, "} %.9g\n", median);
            }
    put_metric(out, "link_bytes_per_second", "What a host sends to another; the median of the repeats.");
    EL_EACH(link, json_object_get(document, "links")) {
        put_label(out, "from", el_fleet_text(json_array_get(hosts, (size_t)el_json_whole(link, "from")), "name"),
                  "evenload_fleet_link_bytes_per_second{");
        put_label(out, "to", el_fleet_text(json_array_get(hosts, (size_t)el_json_whole(link, "to")), "name"), ",");
        fprintf(out, "} %.9g\n", 1e9 * el_json_number(link, "gb_per_s"));
    }
    return EL_OK;
}
