/* From all ranks' samples to the document's curves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/comm/wire.h"
#include "bench/foreign/foreign.h"
#include "bench/report/report.h"
#include "bench/stats/stats.h"
#include "bench/trial/machine.h"

/* How often a backend at best moves each byte through memory, and why. 0: copies say nothing about its links. */
static const struct backend_row {
    const char *name;
    double copies;
    const char *why;
} backends[] = {
    {"local", 1, "ranks read and write each other's memory"},
    {"shm", 1, "ranks read and write memory that they share"},
    {"mpi", 2, "the library copies into and out of shared memory"},
    {"tcp", 4, "the kernel copies into and out of sockets at both ends"},
    {"nccl", 0, "the links between GPUs are the limit, not their memory: compare with the rate of the links"},
    {NULL, 2, "each byte is copied at least twice"}};

/* Smaller sizes are mostly latency. */
#define JUDGED_BYTES      1048576.0
/* Medians suffer when other programs take more of a thread's core. */
#define DISTURBED_PCT     5.0
/* Of what those copies allow: less is not normal. */
#define NORMAL_RATIO      0.4
/* Of NCCL's own figure for the card's links, 0.8 of the data sheet; its rings over eight cards behind a switch reach
 * it. */
#define LINK_NORMAL_RATIO 0.75
#define LINK_JUDGED_BYTES 67108864.0

static json_t *part_of(const json_t *members, size_t m, const char *key, size_t s, size_t p)
{
    const json_t *sizes = json_object_get(json_array_get(members, m), key);
    return json_array_get(json_array_get(sizes, s), p);
}

static double of_ranks(const json_t *members, size_t s, size_t p, size_t i, int average)
{
    double sum = 0, least = INFINITY, most = 0;
    size_t n = json_array_size(members);
    for (size_t m = 0; m < n; m++) {
        double us = json_number_value(json_array_get(part_of(members, m, "samples_us", s, p), i));
        if (m == 0 && average == 0) return us;
        sum += us, least = fmin(least, us), most = fmax(most, us);
    }
    return average == 1 ? sum / (double)n : average == 2 ? least : most;
}

static json_t *samples_of(const json_t *members, size_t s, size_t p)
{
    json_t *samples = json_array();
    for (size_t m = 0; m < json_array_size(members); m++)
        json_array_append(samples, part_of(members, m, "samples_us", s, p));
    return samples;
}

static int64_t wrong_of(const json_t *members, size_t s, size_t p)
{
    int64_t wrong = 0;
    for (size_t m = 0; m < json_array_size(members); m++)
        wrong += json_integer_value(part_of(members, m, "wrong", s, p));
    return wrong;
}

static size_t list_times(const struct el_wire_plan *plan, const json_t *members, size_t s, size_t p,
                         double us[EL_WIRE_ITERS_MAX])
{
    size_t n = (size_t)plan->options->iters;
    for (size_t i = 0; i < n; i++) us[i] = of_ranks(members, s, p, i, plan->options->average);
    return n;
}

static json_t *overlap_json(const struct el_wire_plan *plan, const json_t *members, size_t s, size_t p, double pure_us)
{
    double us[EL_WIRE_ITERS_MAX];
    if (!plan->options->overlap || p >= EL_WIRE_WARM_PLACES) return json_null();
    double compute_us = el_stats_median(us, list_times(plan, members, s, EL_WIRE_COMPUTE + p, us));
    double overall_us = el_stats_median(us, list_times(plan, members, s, EL_WIRE_OVERALL + p, us));
    return el_json_of(EL_KEY("compute_us", compute_us), EL_KEY("overall_us", overall_us),
                      EL_KEY("overlap_pct", el_wire_overlap_pct(pure_us, compute_us, overall_us)),
                      EL_KEY("compute_samples_us", samples_of(members, s, EL_WIRE_COMPUTE + p)),
                      EL_KEY("overall_samples_us", samples_of(members, s, EL_WIRE_OVERALL + p)));
}

static json_t *place_json(const struct el_wire_plan *plan, enum el_comm_verb verb, uint64_t bytes,
                          const json_t *members, size_t s, size_t p)
{
    double us[EL_WIRE_ITERS_MAX];
    size_t n = list_times(plan, members, s, p, us);
    bool checked = plan->options->check && p != EL_WIRE_COLD;
    double median = el_stats_median(us, n), algbw = (double)bytes / median * 1e-3;
    return el_json_of(EL_KEY("time_us", median), EL_KEY("mean_us", el_stats_mean(us, n)),
                      EL_KEY("min_us", el_stats_quantile(us, n, 1e-9)), EL_KEY("p50_us", el_stats_quantile(us, n, 0.5)),
                      EL_KEY("p99_us", el_stats_quantile(us, n, 0.99)), EL_KEY("algbw_gb_per_s", algbw),
                      EL_KEY("busbw_gb_per_s", algbw * el_wire_bus_factor(verb, plan->n)),
                      EL_KEY("wrong", checked ? json_integer(wrong_of(members, s, p)) : json_null()),
                      EL_KEY("samples_us", samples_of(members, s, p)),
                      EL_KEY("overlap", overlap_json(plan, members, s, p, median)));
}

/* time = latency + size / bandwidth; null for fewer than two points. */
static json_t *fit_json(const json_t *points, const char *place)
{
    double bytes[EL_WIRE_SIZES_MAX], seconds[EL_WIRE_SIZES_MAX], latency_s, slope;
    size_t n = 0;
    EL_EACH(point, points) {
        double us = el_json_number(json_object_get(point, place), "time_us");
        if (!(us > 0) || n == EL_WIRE_SIZES_MAX) continue;
        bytes[n] = el_json_number(point, "bytes");
        seconds[n++] = us * 1e-6;
    }
    if (!el_stats_line(bytes, seconds, n, &latency_s, &slope)) latency_s = slope = NAN;
    return el_json_of(EL_KEY("latency_us", latency_s * 1e6), EL_KEY("gb_per_s", slope > 0 ? 1e-9 / slope : NAN));
}

json_t *el_wire_curve_json(const struct el_wire_plan *plan, const struct el_wire_curve *curve, const json_t *members)
{
    enum el_comm_verb verb = curve->operation->verb;
    const struct el_comm_verb_row *row = el_comm_verb_row(verb);
    json_t *points = json_array(), *fit = json_object();
    json_t *used = json_object_get(json_array_get(members, 0), "used");
    bool rooted = row->has_root && !row->is_link;
    for (size_t s = 0; s < (size_t)plan->n_sizes && json_array_size(members); s++) {
        size_t count;
        uint64_t bytes;
        if (!el_wire_size(plan, curve, (int)s, &count, &bytes)) continue;
        json_t *point = el_json_of(EL_KEY("bytes", bytes), EL_KEY("count", count),
                                   EL_KEY("algorithm", json_incref(json_array_get(used, s))));
        for (size_t p = 0; p < EL_WIRE_PLACES; p++)
            el_json_put(point, el_wire_places[p],
                        el_wire_has_place(verb, (int)p, plan->sizes[s]) ? place_json(plan, verb, bytes, members, s, p)
                                                                        : json_null());
        json_array_append_new(points, point);
    }
    for (size_t p = 0; p < EL_WIRE_PLACES; p++)
        el_json_put(fit, el_wire_places[p], fit_json(points, el_wire_places[p]));
    return el_json_of(EL_KEY("operation", curve->operation->name),
                      EL_KEY("algorithm", el_comm_algorithm_name(curve->algorithm)),
                      EL_KEY("datatype", el_wire_dtype(curve->dtype)),
                      EL_KEY("redop", row->reduces ? el_wire_redop(curve->reduction) : "none"),
                      EL_KEY("root", rooted ? curve->root : -1), EL_KEY("cycle", curve->cycle), EL_KEY("status", "ok"),
                      EL_KEY("reason", json_null()), EL_KEY("reduces", row->reduces), EL_KEY("rooted", rooted),
                      EL_KEY("points", points), EL_KEY("fit", fit));
}

static json_t *copies_json(const struct el_wire_plan *plan, const json_t *members, size_t s, uint64_t bytes, size_t p)
{
    double us[EL_WIRE_ITERS_MAX], median = el_stats_median(us, list_times(plan, members, s, p, us));
    return el_json_of(EL_KEY("time_us", median), EL_KEY("gb_per_s", (double)bytes / median * 1e-3),
                      EL_KEY("samples_us", samples_of(members, s, p)));
}

json_t *el_wire_copy_json(const struct el_wire_plan *plan, const json_t *members)
{
    size_t width = el_dtype_bytes(plan->copied);
    json_t *rows = json_array();
    for (size_t s = 0; s < (size_t)plan->n_sizes; s++) {
        uint64_t bytes = plan->sizes[s] / width * width;
        bool cold = el_wire_has_place(EL_COMM_BROADCAST, EL_WIRE_COLD, plan->sizes[s]);
        json_t *row = copies_json(plan, members, s, bytes, EL_WIRE_APART);
        json_object_set_new(row, "bytes", json_integer((json_int_t)bytes));
        json_object_set_new(row, "cold", cold ? copies_json(plan, members, s, bytes, EL_WIRE_COLD) : json_null());
        json_array_append_new(rows, row);
    }
    return rows;
}

void el_wire_complete(json_t *document)
{
    EL_EACH(curve, json_object_get(document, "curves")) {
        json_t *fit = json_object();
        for (size_t p = 0; p < EL_WIRE_PLACES; p++)
            el_json_put(fit, el_wire_places[p], fit_json(json_object_get(curve, "points"), el_wire_places[p]));
        json_object_set_new(curve, "fit", fit);
    }
    el_wire_judge(document);
}

static double copy_at(const json_t *copy, double bytes)
{
    double gb_per_s = NAN, nearest = INFINITY;
    EL_EACH(row, copy) {
        double off = fabs(log(el_json_number(row, "bytes") / bytes));
        if (!(off < nearest)) continue;
        nearest = off;
        gb_per_s = el_json_number(row, "gb_per_s");
    }
    return gb_per_s;
}

double el_wire_best_place(const json_t *point)
{
    double in_place = el_json_number(point, "in_place.busbw_gb_per_s");
    return isnan(in_place) ? el_json_number(point, "out_of_place.busbw_gb_per_s") : in_place;
}

static bool has_core(const json_t *rank, const json_t *wanted, size_t except)
{
    EL_EACH(core, json_object_get(rank, "cores"))
        if (core_at.i != except && json_equal(core, wanted)) return true;
    return false;
}

bool el_wire_share_cores(const json_t *parts)
{
    EL_EACH(rank, parts) {
        const json_t *cores = json_object_get(rank, "cores");
        double quota = el_json_number(rank, "quota"), devices = 0;
        EL_EACH(other, parts) {
            /* same kernel: containers on a host have different names and the same cores */
            if (!el_json_is(other, "boot", el_json_text(rank, "boot", ""))) continue;
            devices += (double)json_array_size(json_object_get(other, "cores"));
            EL_EACH(core, cores)
                if (has_core(other, core, rank_at.i == other_at.i ? core_at.i : SIZE_MAX)) return true;
        }
        if (quota > 0 && devices > quota) return true;
    }
    return false;
}

/* As NCCL sees it (profiles/hardware); NAN: unknown, or several hosts. */
static double link_of(const json_t *document)
{
    static const struct {
        const char *card, *machine;
    } known[] = {{"H100 80GB HBM3", "h100-sxm"}, {"A100-SXM", "a100-sxm"}, {"V100-SXM2", "v100-sxm2"}};
    struct el_machine machine;
    const json_t *names = json_object_get(document, "device_names");
    if (json_array_size(names) != 1 || el_json_whole(document, "hosts") != 1) return NAN;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strstr(el_json_text(names, "0", ""), known[i].card))
            return el_machine_read(known[i].machine, &machine) == EL_OK ? machine.link_bytes_per_s * 1e-9 : NAN;
    return NAN;
}

static json_t *reached_of_link(double link, double bytes, double busbw)
{
    bool judged = bytes >= LINK_JUDGED_BYTES;
    return el_json_of(EL_KEY("bytes", bytes), EL_KEY("busbw_gb_per_s", busbw), EL_KEY("link_gb_per_s", link),
                      EL_KEY("share", busbw / link), EL_KEY("expected_share", LINK_NORMAL_RATIO),
                      EL_KEY("normal", judged ? json_boolean(busbw >= LINK_NORMAL_RATIO * link) : json_null()),
                      EL_KEY("why", judged ? "the links between the cards are the limit"
                                           : "below 64 MiB links are not filled: measure larger sizes"));
}

/* At the largest size, where caches help least. */
static json_t *reached_json(const json_t *document, const json_t *curve)
{
    const json_t *points = json_object_get(curve, "points"), *last = NULL;
    const struct backend_row *backend = backends;
    const char *name = el_json_text(document, "backend", "");
    while (backend->name && strcmp(backend->name, name)) backend++;
    last = json_array_get(points, json_array_size(points) - 1);
    if (!(el_json_number(last, "bytes") > 0) || el_json_number(document, "ranks") < 2) return json_null();
    double bytes = el_json_number(last, "bytes"), busbw = el_wire_best_place(last);
    double link = backend->copies > 0 ? NAN : link_of(document);
    if (!isnan(link)) return reached_of_link(link, bytes, busbw);
    double copy = copy_at(json_object_get(document, "copy"), bytes), share = busbw / copy;
    bool disturbed = el_json_number(document, "others_waited_pct") > DISTURBED_PCT;
    bool judged = !disturbed && backend->copies > 0 && bytes >= JUDGED_BYTES &&
                  json_is_false(json_object_get(document, "shared_cores")) && isfinite(share);
    return el_json_of(
        EL_KEY("bytes", bytes), EL_KEY("busbw_gb_per_s", busbw), EL_KEY("copy_gb_per_s", copy), EL_KEY("share", share),
        EL_KEY("expected_share", backend->copies > 0 ? json_real(NORMAL_RATIO / backend->copies) : json_null()),
        EL_KEY("normal", judged ? json_boolean(share * backend->copies >= NORMAL_RATIO) : json_null()),
        EL_KEY("why", disturbed              ? "other programs used the ranks' cores: measure on a quiet machine"
                      : bytes < JUDGED_BYTES ? "below 1 MiB the time is mostly latency"
                                             : backend->why));
}

void el_wire_judge(json_t *document)
{
    json_t *curves = json_object_get(document, "curves");
    EL_EACH(curve, curves) json_object_set_new(curve, "reached", reached_json(document, curve));
}

/* Saturates: a foreign record's sum may overflow. */
static void add_wrong(const json_t *counted, int64_t *sum_p)
{
    int64_t more = json_integer_value(json_object_get(counted, "wrong"));
    if (__builtin_add_overflow(*sum_p, more, sum_p)) *sum_p = INT64_MAX;
}

int64_t el_wire_wrong(const json_t *document)
{
    const json_t *curves = json_object_get(document, "curves");
    int64_t wrong = 0;
    EL_EACH(curve, curves) {
        add_wrong(curve, &wrong);
        EL_EACH(point, json_object_get(curve, "points"))
            for (size_t p = 0; p < EL_WIRE_WARM_PLACES; p++)
                add_wrong(json_object_get(point, el_wire_places[p]), &wrong);
    }
    return wrong;
}

bool el_wire_is(const json_t *document)
{
    return el_json_is(document, "kind", "comm") && el_json_whole(document, "schema") == EL_WIRE_SCHEMA;
}

enum el_status el_wire_read(const char *path, json_t **document_p)
{
    return el_read_document(path, el_wire_is, "comm", document_p);
}

enum el_status el_wire_from(const char *list, json_t **document_p)
{
    char text[EL_PATH_BYTES], record[EL_PATH_BYTES + 16], *rest = NULL;
    const char *names[64];
    size_t n = 0;
    json_t *paths;
    snprintf(text, sizeof text, "%s", list);
    for (char *name = strtok_r(text, ",", &rest); name && n < 64; name = strtok_r(NULL, ",", &rest)) names[n++] = name;
    snprintf(record, sizeof record, "%s%s", list, access(list, F_OK) == 0 ? "/comm.json" : "");
    if (n == 1 && el_wire_read(access(record, F_OK) == 0 ? record : list, document_p) == EL_OK) return EL_OK;
    EL_TRY(el_input_paths(names, n, el_foreign_endings, &paths));
    enum el_status status = el_foreign_read(paths, json_array_size(paths) == n, document_p);
    json_decref(paths);
    if (status == EL_OK) el_wire_complete(*document_p);
    return status;
}

/* `evenload comm --from A,B`. Times are geometric means of calls, each by its slowest rank. A ratio's interval is
 * Welch's t on logarithms; it covers the calls of these two launches, and others may differ by more. */

static size_t log_times(const json_t *place, double **logs_p)
{
    const json_t *ranks = json_object_get(place, "samples_us");
    size_t calls = json_array_size(json_array_get(ranks, 0));
    double *logs = calloc(calls + 1, sizeof *logs);
    for (size_t i = 0; i < calls && logs; i++) {
        double most = 0;
        EL_EACH(rank, ranks) most = fmax(most, json_number_value(json_array_get(rank, i)));
        logs[i] = log(most);
    }
    *logs_p = logs;
    return logs ? calls : 0;
}

static json_t *row_of(const json_t *curve, const json_t *point, const char *place, const json_t *a, const json_t *b)
{
    double *a_logs, *b_logs;
    size_t n_a = log_times(a, &a_logs), n_b = log_times(b, &b_logs);
    struct el_interval ratio = el_stats_difference_unpaired(a_logs, n_a, b_logs, n_b);
    json_t *row = el_json_of(
        EL_KEY("operation", el_json_text(curve, "operation", "?")),
        EL_KEY("algorithm", el_json_text(curve, "algorithm", "?")), EL_KEY("place", place),
        EL_KEY("bytes", el_json_whole(point, "bytes")), EL_KEY("a_us", exp(el_stats_mean(a_logs, n_a))),
        EL_KEY("b_us", exp(el_stats_mean(b_logs, n_b))), EL_KEY("ratio", exp(ratio.centre)),
        EL_KEY("ratio_ci95", el_json_interval(exp(ratio.low), exp(ratio.high))), EL_KEY("reason", ratio.reason));
    free(a_logs);
    free(b_logs);
    return row;
}

static const json_t *same_in(const json_t *list, const json_t *as, const char *const *fields)
{
    EL_EACH(other, list) {
        bool same = true;
        for (size_t i = 0; fields[i]; i++)
            same &= json_equal(json_object_get(other, fields[i]), json_object_get(as, fields[i])) == 1;
        if (same) return other;
    }
    return NULL;
}

static json_t *rows_of(const json_t *a, const json_t *b)
{
    static const char *const of_curve[] = {"operation", "algorithm", "datatype", "redop", "root", "cycle", NULL};
    static const char *const of_point[] = {"bytes", NULL}, *const places[] = {"out_of_place", "in_place"};
    json_t *rows = json_array();
    EL_EACH(curve, json_object_get(a, "curves")) {
        const json_t *other = same_in(json_object_get(b, "curves"), curve, of_curve);
        EL_EACH(point, json_object_get(curve, "points")) {
            const json_t *match = same_in(json_object_get(other, "points"), point, of_point);
            for (size_t p = 0; p < 2 && match; p++) {
                const json_t *one = json_object_get(point, places[p]), *two = json_object_get(match, places[p]);
                if (json_is_object(one) && json_is_object(two))
                    json_array_append_new(rows, row_of(curve, point, p ? "in" : "out of", one, two));
            }
        }
    }
    return rows;
}

static json_t *side_of(const char *name, const json_t *document)
{
    static const char *const copied[] = {"backend", "ranks", "iters", "shared_cores", "others_waited_pct", NULL};
    json_t *side = el_json_of(EL_KEY("name", name));
    el_json_copy(side, document, copied);
    return side;
}

static enum el_status read_one(const char *name, json_t **document_p)
{
    char path[EL_PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/comm.json", name);
    return el_wire_read(access(path, F_OK) == 0 ? path : name, document_p);
}

enum el_status el_wire_two(const char *list, json_t **document_p)
{
    char names[EL_PATH_BYTES];
    json_t *a, *b;
    struct el_error ignored;
    snprintf(names, sizeof names, "%s", list);
    char *second = strchr(names, ',');
    *document_p = NULL;
    if (!second) return EL_OK;
    *second++ = '\0';
    enum el_status status = read_one(names, &a);
    if (status != EL_OK) { /* another tool's output */
        el_error_take(status, &ignored);
        return EL_OK;
    }
    status = read_one(second, &b);
    if (status == EL_OK) {
        *document_p = el_json_of(EL_KEY("kind", "comm difference"), EL_KEY("a", side_of(names, a)),
                                 EL_KEY("b", side_of(second, b)), EL_KEY("rows", rows_of(a, b)));
        json_decref(b);
    }
    json_decref(a);
    return status;
}

void el_wire_print_two(const json_t *document, FILE *out)
{
    static const struct el_column columns[] =
        EL_COLUMNS(EL_TEXT("operation", -16, "operation"), EL_TEXT("algorithm", -10, "algorithm"),
                   EL_TEXT("place", -7, "place"), EL_COUNT("bytes", 12, "bytes"), EL_FIGURE("A us", 10, "a_us"),
                   EL_FIGURE("B us", 10, "b_us"), EL_RATIO("B / A", 8, "ratio"), EL_INTERVAL("95 %", 15, "ratio_ci95"));
    const struct el_table table = {.columns = columns, .out = out};
    const json_t *rows = json_object_get(document, "rows");
    for (int i = 0; i < 2; i++) {
        const json_t *side = json_object_get(document, i ? "b" : "a");
        el_text_line(out, "%c: %s, %.0f ranks, communicator %s%s", i ? 'B' : 'A', el_json_text(side, "name", "?"),
                     el_json_number(side, "ranks"), el_json_text(side, "backend", "?"),
                     json_is_true(json_object_get(side, "shared_cores")) ? "; devices share a core" : "");
    }
    fputc('\n', out);
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(row, rows) el_table_row(&table, EL_TABLE_PLAIN, row);
    el_text_say("", "", out,
                "Geometric means of the calls. The intervals cover the calls of one launch of each; another launch may "
                "differ by more.");
}
