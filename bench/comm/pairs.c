/* `evenload comm p2p`: a message back and forth between each two ranks while the others wait. Half the round trip, by
 * the lower rank's clock. */
#include <math.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/comm/wire.h"
#include "bench/stats/stats.h"

enum { TABLE_RANKS_MAX = 12, WIDTH_IN_BARS = 20 };

int el_wire_pairs(int n)
{
    return n * (n - 1) / 2;
}

/* In the order (0,1), (0,2) ... (1,2) ... */
static void ranks_of(int k, int n, int *a_p, int *b_p)
{
    int a = 0;
    for (; k >= n - 1 - a; a++) k -= n - 1 - a;
    *a_p = a;
    *b_p = a + 1 + k;
}

size_t el_wire_pair_count(const struct el_wire_plan *plan, int place)
{
    size_t count = plan->sizes[place ? plan->n_sizes - 1 : 0] / el_dtype_bytes(plan->copied);
    return count ? count : 1;
}

int el_wire_partner(const struct el_wire_member *member)
{
    int rank = el_comm_rank(member->comm), a, b;
    ranks_of(member->pair, member->plan->n, &a, &b);
    return rank == a ? b : rank == b ? a : -1;
}

static double median_us(const struct el_wire_plan *plan, const json_t *members, int a, int k, size_t place)
{
    const json_t *rows = json_object_get(json_array_get(members, (size_t)a), "samples_us");
    double *us;
    size_t n = el_json_numbers(json_array_get(json_array_get(rows, (size_t)k), place), &us);
    double median = n == (size_t)plan->options->iters ? el_stats_median(us, n) : NAN;
    free(us);
    return median / 2;
}

json_t *el_wire_pairs_json(const struct el_wire_plan *plan, const json_t *members)
{
    json_t *pairs = json_array();
    for (int k = 0; k < el_wire_pairs(plan->n) && json_array_size(members); k++) {
        int a, b;
        ranks_of(k, plan->n, &a, &b);
        double large = (double)(el_wire_pair_count(plan, 1) * el_dtype_bytes(plan->copied));
        json_t *rows = json_object_get(json_array_get(members, (size_t)a), "samples_us");
        json_array_append_new(
            pairs, el_json_of(EL_KEY("a", a), EL_KEY("b", b), EL_KEY("latency_us", median_us(plan, members, a, k, 0)),
                              EL_KEY("gb_per_s", large / median_us(plan, members, a, k, 1) * 1e-3),
                              EL_KEY("there_and_back_us", json_incref(json_array_get(rows, (size_t)k)))));
    }
    return pairs;
}

static const char *host_of(const json_t *document, int rank)
{
    const json_t *members = json_object_get(document, "members");
    bool several = false;
    EL_EACH(member, members) several |= !el_json_is(member, "host", el_json_text(members, "0.host", ""));
    return several ? el_json_text(json_array_get(members, (size_t)rank), "host", NULL) : NULL;
}

static void print_matrix(const json_t *document, int n, const char *key, const char *title, FILE *out)
{
    const json_t *pairs = json_object_get(document, "pairs");
    fprintf(out, "%s\n  rank", title);
    for (int b = 0; b < n; b++) fprintf(out, "%9d", b);
    for (int a = 0; a < n; a++) {
        fprintf(out, "\n  %4d", a);
        for (int b = 0; b < n; b++) {
            double value = NAN;
            char text[EL_FIGURE_BYTES];
            EL_EACH(pair, pairs) {
                int low = (int)el_json_whole(pair, "a"), high = (int)el_json_whole(pair, "b");
                if ((low == a && high == b) || (low == b && high == a)) value = el_json_number(pair, key);
            }
            fprintf(out, "%9s", a == b ? "" : el_text_figure(value, text));
        }
        if (host_of(document, a)) fprintf(out, "  %s", host_of(document, a));
    }
    fputs("\n\n", out);
}

static bool has(const json_t *pair, int rank)
{
    return el_json_whole(pair, "a") == rank || el_json_whole(pair, "b") == rank;
}

/* Slow: the best pair has less than half the bandwidth of the median rank's best pair. */
static bool find_slow(const json_t *pairs, int n, double *best, bool *slow)
{
    bool any = false;
    for (int rank = 0; rank < n; rank++) {
        best[rank] = 0;
        EL_EACH(pair, pairs)
            if (has(pair, rank)) best[rank] = fmax(best[rank], el_json_number(pair, "gb_per_s"));
    }
    double usual = el_stats_median(best, (size_t)n);
    for (int rank = 0; rank < n; rank++) any |= slow[rank] = best[rank] < usual / 2;
    return any;
}

static double median_of_others(const json_t *pairs, int n, const bool *slow)
{
    double *all = calloc(json_array_size(pairs) + 1, sizeof *all), middle = NAN;
    size_t others = 0;
    EL_EACH(pair, pairs) {
        bool out = !all;
        for (int rank = 0; rank < n; rank++) out |= slow[rank] && has(pair, rank);
        if (!out) all[others++] = el_json_number(pair, "gb_per_s");
    }
    if (others) middle = el_stats_median(all, others);
    free(all);
    return middle;
}

static void say_slowest(const json_t *document, int n, FILE *out)
{
    const json_t *pairs = json_object_get(document, "pairs"), *slowest = json_array_get(pairs, 0);
    double best[EL_MEMBERS_MAX];
    bool slow[EL_MEMBERS_MAX] = {false};
    char text[2][EL_FIGURE_BYTES];
    bool any = n > 2 && find_slow(pairs, n, best, slow);
    double middle = median_of_others(pairs, n, slow);
    for (int rank = 0; rank < n; rank++) {
        const char *host = host_of(document, rank);
        if (slow[rank])
            el_text_line(out, "Rank %d%s%s%s: all %d of its pairs reach at most %.0f %% of the others: %s of %s GB/s.",
                         rank, host ? " (" : "", host ? host : "", host ? ")" : "", n - 1, 100 * best[rank] / middle,
                         el_text_figure(best[rank], text[0]), el_text_figure(middle, text[1]));
    }
    EL_EACH(pair, pairs)
        if (el_json_number(pair, "gb_per_s") < el_json_number(slowest, "gb_per_s")) slowest = pair;
    if (!any)
        fprintf(out, "Slowest pair: ranks %.0f and %.0f, %s GB/s; the median pair has %s.\n",
                el_json_number(slowest, "a"), el_json_number(slowest, "b"),
                el_text_figure(el_json_number(slowest, "gb_per_s"), text[0]), el_text_figure(middle, text[1]));
    if (json_is_true(json_object_get(document, "shared_cores")))
        fputs("Devices share a core here, which can make a pair slow: take fewer devices to judge the links.\n", out);
}

void el_wire_print_pairs(const json_t *document, FILE *out)
{
    int n = (int)el_json_whole(document, "ranks");
    int64_t wrong = el_wire_wrong(document);
    if (el_json_number(document, "check") > 0)
        fprintf(out, "# Out of bounds values : %lld %s\n\n", (long long)wrong, wrong ? "FAILED" : "OK");
    if (n < 2 || n > EL_MEMBERS_MAX) return;
    if (n <= TABLE_RANKS_MAX) {
        print_matrix(document, n, "latency_us", "Latency of each pair, one way, us", out);
        print_matrix(document, n, "gb_per_s", "Bandwidth of each pair, one way, GB/s", out);
    }
    say_slowest(document, n, out);
}

static void put_label(FILE *file, double value)
{
    fprintf(file, value < 10 ? "\t%.2g" : value < 100 ? "\t%.3g" : "\t%.0f", value);
}

static enum el_status write_pairs(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    (void)figure;
    const json_t *pairs = json_object_get(document, "pairs");
    int64_t n = el_json_whole(document, "ranks");
    char title[EL_TITLE_BYTES];
    if (!json_array_size(pairs) || n < 2 || n > EL_MEMBERS_MAX) return EL_OK;
    snprintf(title, sizeof title, "Each pair of %lld ranks, communicator %s", (long long)n,
             el_data_label(el_json_text(document, "backend", "?")).text);
    el_data_about(file, &(struct el_data_about){title, NULL, (double)n, WIDTH_IN_BARS, NULL}, ", ranks");
    fputc('\n', file);
    el_data_block(file, "rank, rank, latency in us, its label, bandwidth in GB/s, its label", "pairs");
    for (size_t k = 0; k < 2 * json_array_size(pairs); k++) {
        const json_t *pair = json_array_get(pairs, k / 2);
        double latency = el_json_number(pair, "latency_us"), bandwidth = el_json_number(pair, "gb_per_s");
        fprintf(file, "%.0f\t%.0f", el_json_number(pair, k % 2 ? "a" : "b"), el_json_number(pair, k % 2 ? "b" : "a"));
        el_data_number(file, latency);
        put_label(file, latency);
        el_data_number(file, bandwidth);
        put_label(file, bandwidth);
        fputc('\n', file);
    }
    *any_p = true;
    return EL_OK;
}

const struct el_figure el_figure_pairs = {.name = "p2p", .write = write_pairs};
