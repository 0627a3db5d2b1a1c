/* The document for people, in nccl-tests' columns, and as comm.csv. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/comm/wire.h"

static double number(const json_t *document, const char *path)
{
    return el_json_number(document, path);
}

static void print_head(const json_t *document, FILE *out)
{
    static const char *const averages[] = {"that of rank 0", "the mean of the ranks", "that of the fastest rank",
                                           "that of the slowest rank"};
    int64_t average = el_json_whole(document, "average");
    const char *source = el_json_text(document, "source", NULL);
    if (source) {
        fprintf(out, "# %s: %.0f ranks on %.0f host%s\n", source, number(document, "ranks"), number(document, "hosts"),
                number(document, "hosts") > 1 ? "s" : "");
        fputs(json_is_object(json_object_get(document, "late"))
                  ? "# time: median of the calls, of each that of the rank that came last: the others wait for it\n#\n"
                  : "# time: as it was measured; bandwidths from it\n#\n",
              out);
        return;
    }
    fprintf(out, "# evenload comm: %.0f ranks in %.0f process%s, communicator %s\n", number(document, "ranks"),
            number(document, "processes"), number(document, "processes") > 1 ? "es" : "",
            el_json_text(document, "backend", "?"));
    double aggregate = number(document, "agg_iters"), blocking = number(document, "blocking");
    if (json_is_string(json_object_get(document, "group")))
        el_text_line(out, "# --group %s: %.0f group%s of that many ranks, at the same time; figures are of one group",
                     el_json_text(document, "group", "?"), number(document, "groups"),
                     number(document, "groups") > 1 ? "s" : "");
    fprintf(out, "# warmup iters: %.0f iters: %.0f validation: %.0f\n", number(document, "warmup"),
            number(document, "iters"), number(document, "check"));
    fprintf(out, "# time: median of the calls, %s; the time of a call is %s\n",
            blocking == 0   ? "one behind the other"
            : blocking == 1 ? "with the barrier behind each operation"
                            : "each after a barrier",
            average >= 0 && average < 4 ? averages[average] : "?");
    if (aggregate > 1) fprintf(out, "# a call is %.0f operations; its time is divided by that\n", aggregate);
    fputs("# in-place: in memory that the communicator allocated, registered if it supports that\n#\n", out);
}

static void print_columns(FILE *out)
{
    fprintf(out, "#%54s%-32s%s\n", "", "        out-of-place", "          in-place");
    fprintf(out, "#%11s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
    for (int p = 0; p < EL_WIRE_WARM_PLACES; p++)
        fprintf(out, "  %7s  %6s  %6s %6s", "time", "algbw", "busbw", "#wrong");
    fprintf(out, "\n#%11s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
    for (int p = 0; p < EL_WIRE_WARM_PLACES; p++) fprintf(out, "  %7s  %6s  %6s %6s", "(us)", "(GB/s)", "(GB/s)", "");
    fputc('\n', out);
}

static void print_point(const json_t *curve, const json_t *point, FILE *out)
{
    bool reduces = json_is_true(json_object_get(curve, "reduces"));
    bool rooted = json_is_true(json_object_get(curve, "rooted"));
    fprintf(out, "%12.0f  %12.0f  %8s  %6s  %6.0f", number(point, "bytes"), number(point, "count"),
            el_json_text(curve, "datatype", "?"), reduces ? el_json_text(curve, "redop", "?") : "none",
            rooted ? number(curve, "root") : -1);
    for (int p = 0; p < EL_WIRE_WARM_PLACES; p++) {
        const json_t *place = json_object_get(point, el_wire_places[p]), *wrong = json_object_get(place, "wrong");
        if (!json_is_object(place)) {
            fprintf(out, "  %7s  %6s  %6s %6s", "N/A", "N/A", "N/A", "N/A");
            continue;
        }
        el_wire_put_us(number(place, "time_us"), out);
        fprintf(out, "  %6.2f  %6.2f", number(place, "algbw_gb_per_s"), number(place, "busbw_gb_per_s"));
        if (json_is_integer(wrong))
            fprintf(out, " %6lld", (long long)json_integer_value(wrong));
        else
            fprintf(out, " %6s", "N/A");
    }
    fputc('\n', out);
}

static void name_algorithms(const json_t *curve, char *text, size_t bytes)
{
    const json_t *points = json_object_get(curve, "points");
    snprintf(text, bytes, "%s", el_json_text(curve, "algorithm", "?"));
    if (strcmp(text, "auto") || !json_array_size(points)) return;
    text[0] = 0;
    EL_EACH(point, points)
        if (!el_data_seen(points, point_at.i, "algorithm"))
            el_text_append(text, bytes, "%s%s", *text ? ", then " : "", el_json_text(point, "algorithm", "?"));
    if (!strcmp(text, "auto")) snprintf(text, bytes, "the library's choice");
}

static void print_curve(const json_t *curve, FILE *out)
{
    const json_t *points = json_object_get(curve, "points");
    char algorithms[128];
    double sum = 0, n = 0;
    name_algorithms(curve, algorithms, sizeof algorithms);
    fprintf(out, "# %s, algorithm: %s\n", el_json_text(curve, "operation", "?"), algorithms);
    if (strcmp(el_json_text(curve, "status", ""), "ok")) {
        el_text_wrap(el_json_text(curve, "reason", "?"), "# absent: ", "#   ", out);
        fputs("#\n", out);
        return;
    }
    print_columns(out);
    EL_EACH(point, points) {
        print_point(curve, point, out);
        for (int p = 0; p < EL_WIRE_WARM_PLACES; p++)
            if (json_is_object(json_object_get(point, el_wire_places[p])))
                sum += number(json_object_get(point, el_wire_places[p]), "busbw_gb_per_s"), n++;
    }
    fprintf(out, "# Avg bus bandwidth    : %.4g\n#\n", n > 0 ? sum / n : 0);
    el_wire_print_overlap(curve, out);
}

static const char *judgement(const json_t *reached, const char *low)
{
    const json_t *normal = json_object_get(reached, "normal");
    return json_is_true(normal) ? "normal" : json_is_false(normal) ? low : "not judged";
}

static void say_reached(const json_t *document, const json_t *reached, FILE *out)
{
    if (!json_is_object(reached)) return;
    if (isfinite(number(reached, "link_gb_per_s"))) {
        el_text_say("Is this normal? ", "  ", out,
                    "NCCL takes a card's links for %.0f GB/s one way. The busbw is %.0f %% of that: %s (%s). "
                    "Normal is at least %.0f %%.",
                    number(reached, "link_gb_per_s"), 100 * number(reached, "share"),
                    judgement(reached, "lower than expected"), el_json_text(reached, "why", "?"),
                    100 * number(reached, "expected_share"));
        return;
    }
    if (!isfinite(number(reached, "copy_gb_per_s"))) {
        el_text_say("Is this normal? ", "  ", out, "Not judged: %s.", el_json_text(reached, "why", "?"));
        return;
    }
    const char *why = json_is_true(json_object_get(document, "shared_cores")) ? "devices share a core here"
                                                                              : el_json_text(reached, "why", "?");
    char mib[EL_FIGURE_BYTES];
    el_text_say("Is this normal? ", "  ", out,
                "At %s MiB each rank copies memory at %.2f GB/s while all ranks do. The busbw is %s (%s).",
                el_text_mib(number(reached, "bytes"), mib), number(reached, "copy_gb_per_s"),
                judgement(reached, "lower than expected"), why);
    if (json_is_number(json_object_get(reached, "expected_share")))
        fprintf(out, "  Normal is at least %.0f %% of that rate.\n", 100 * number(reached, "expected_share"));
}

static void say_cold(const json_t *curve, FILE *out)
{
    const json_t *points = json_object_get(curve, "points"), *most = NULL;
    double ratio = 0;
    char mib[EL_FIGURE_BYTES], cold[EL_FIGURE_BYTES], warm[EL_FIGURE_BYTES];
    EL_EACH(point, points) {
        double times = number(point, "cold.time_us") / number(point, "in_place.time_us");
        if (!(times > ratio)) continue;
        ratio = times;
        most = point;
    }
    if (!most) return;
    el_text_say("In a training step? ", "  ", out,
                "There the data are in no cache. %s of %s MiB in place then takes %s us (cold, in comm.csv), and %s us "
                "on memory that the call before has used.",
                el_json_text(curve, "operation", "?"), el_text_mib(number(most, "bytes"), mib),
                el_text_figure(number(most, "cold.time_us"), cold),
                el_text_figure(number(most, "in_place.time_us"), warm));
}

static void show_judgement(const json_t *curve, const json_t *context, char *text)
{
    (void)context;
    bool reached = isfinite(number(curve, "reached.share"));
    snprintf(text, EL_CELL_BYTES, "%s", reached ? judgement(json_object_get(curve, "reached"), "low") : "");
}

/* "reduce, half, sum" */
static void show_operation(const json_t *curve, const json_t *document, char *text)
{
    bool reduces = json_is_true(json_object_get(curve, "reduces"));
    snprintf(text, EL_CELL_BYTES, "%s", el_json_text(curve, "operation", "?"));
    if (el_json_is(document, "datatype", "all"))
        el_text_append(text, EL_CELL_BYTES, ", %s", el_json_text(curve, "datatype", "?"));
    if (el_json_is(document, "redop", "all") && reduces)
        el_text_append(text, EL_CELL_BYTES, ", %s", el_json_text(curve, "redop", "?"));
}

static const struct el_column fit_columns[] = EL_COLUMNS(
    EL_SHOWN("operation", -15, show_operation, .gap = 2), EL_TEXT("algorithm", -9, "algorithm"),
    EL_FIGURE("latency us", 11, "fit.out_of_place.latency_us"), EL_FIGURE("GB/s", 8, "fit.out_of_place.gb_per_s"),
    EL_FIGURE("latency us", 11, "fit.in_place.latency_us"), EL_FIGURE("GB/s", 8, "fit.in_place.gb_per_s"),
    EL_FIGURE("busbw GB/s", 12, "reached.busbw_gb_per_s"), EL_COUNT("% of limit", 10, "reached.share", .scale = 100),
    EL_SHOWN("", -11, show_judgement, .gap = 2));

static void say_late(const json_t *late, FILE *out)
{
    static const struct el_column columns[] =
        EL_COLUMNS(EL_COUNT("rank", 6, "rank"), EL_PERCENT("came last %", 13, "last_pct"),
                   EL_FIGURE("caused us", 11, "caused_us"), EL_FIGURE("waited us", 11, "waited_us"));
    const struct el_table table = {.columns = columns, .out = out};
    if (!json_is_object(late)) return;
    el_table_list(&table, "Who waits for whom, means of a call:\n", json_incref(json_object_get(late, "ranks")));
    el_text_wrap(el_json_text(late, "sentence", ""), "* ", "  ", out);
}

/* Of the average that a file states: times have two decimals or three digits. */
#define STATED_ERROR 0.01

/* What foreign files do not have. */
static void say_lost(const json_t *document, FILE *out)
{
    const double rows = number(document, "lost_rows"), calls = number(document, "lost_calls");
    char names[256] = "";
    EL_EACH(name, json_object_get(document, "left_out"))
        el_text_append(names, sizeof names, "%s%s", *names ? ", " : "", json_string_value(name));
    if (*names) el_text_say("! ", "  ", out, "Left out (unknown format): %s.", names);
    if (json_is_true(json_object_get(document, "cut")))
        el_text_say(
            "! ", "  ", out,
            "Not whole: the run failed, the file is cut off, or other lines (NCCL_DEBUG) stand in the middle of "
            "rows.");
    if (rows > 0)
        el_text_say("! ", "  ", out, "The header announces %.0f row%s more than there %s.", rows, rows == 1 ? "" : "s",
                    rows == 1 ? "is" : "are");
    const double stated = number(document, "average.stated_busbw_gb_per_s"),
                 ours = number(document, "average.busbw_gb_per_s");
    const bool whole = !(rows > 0) && !json_is_true(json_object_get(document, "cut"));
    if (whole && fabs(ours - stated) > STATED_ERROR * stated)
        el_text_say("! ", "  ", out, "The file states an average bus bandwidth of %.4g GB/s; its rows come to %.4g.",
                    stated, ours);
    if (calls > 0)
        el_text_say("! ", "  ", out, "%.0f calls were not found for every rank; no figure includes them.", calls);
}

static void print_fits(const json_t *document, FILE *out)
{
    bool several = el_json_is(document, "datatype", "all") || el_json_is(document, "redop", "all");
    struct el_column columns[sizeof fit_columns / sizeof fit_columns[0]];
    memcpy(columns, fit_columns, sizeof columns);
    if (several) columns[0].width -= 15;
    const struct el_table table = {.columns = columns, .context = document, .out = out};
    const json_t *curves = json_object_get(document, "curves"), *last = NULL;
    fputs("Fit of time = latency + size / bandwidth, and the largest size compared with its limit:\n", out);
    fprintf(out, "  %*s%19s%19s\n", several ? 39 : 24, "", "out-of-place", "in-place");
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(curve, curves) {
        if (!json_array_size(json_object_get(curve, "points"))) continue;
        el_table_row(&table, EL_TABLE_PLAIN, curve);
        const json_t *reached = json_object_get(curve, "reached");
        if (!last || json_is_false(json_object_get(reached, "normal"))) last = reached;
    }
    fputc('\n', out);
    say_reached(document, last, out);
    say_late(json_object_get(document, "late"), out);
    say_lost(document, out);
    say_cold(json_array_get(curves, 0), out);
    el_wire_say_overlap(document, out);
}

void el_wire_print(const json_t *document, FILE *out)
{
    const json_t *curves = json_object_get(document, "curves");
    int64_t wrong = el_wire_wrong(document);
    size_t n = 0;
    print_head(document, out);
    EL_EACH(curve, curves) {
        print_curve(curve, out);
        n += json_array_size(json_object_get(curve, "points"));
    }
    if (n > 0 && number(document, "check") > 0)
        fprintf(out, "# Out of bounds values : %lld %s\n", (long long)wrong, wrong ? "FAILED" : "OK");
    fputc('\n', out);
    if (n > 0) print_fits(document, out);
}

static void put_place(const json_t *curve, const json_t *point, const char *name, FILE *out)
{
    static const char *const figures[] = {"time_us",
                                          "mean_us",
                                          "min_us",
                                          "p50_us",
                                          "p99_us",
                                          "algbw_gb_per_s",
                                          "busbw_gb_per_s",
                                          "overlap.compute_us",
                                          "overlap.overall_us",
                                          "overlap.overlap_pct",
                                          "wrong"};
    const json_t *place = json_object_get(point, name);
    if (!json_is_object(place)) return;
    const char *const words[] = {el_json_text(curve, "operation", ""), el_json_text(curve, "algorithm", ""),
                                 el_json_text(point, "algorithm", "")};
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
        el_escape_csv(words[w], out);
        fputc(',', out);
    }
    fprintf(out, "%.0f,%.0f,", number(point, "bytes"), number(point, "count"));
    el_escape_csv(el_json_text(curve, "datatype", "?"), out);
    fprintf(out, ",%s", name);
    for (size_t f = 0; f < sizeof figures / sizeof figures[0]; f++) {
        char text[32];
        fprintf(out, ",%s",
                isfinite(number(place, figures[f])) ? el_json_written(number(place, figures[f]), text) : "");
    }
    fputc(',', out);
    el_escape_csv(el_json_text(curve, "redop", "?"), out);
    fprintf(out, ",%.0f,%.0f\n", number(curve, "root"), number(curve, "cycle"));
}

enum el_status el_wire_csv(const void *context, FILE *out)
{
    const json_t *document = context;
    fputs("operation,algorithm,used,size,count,type,place,time_us,mean_us,min_us,p50_us,p99_us,algbw_gb_per_s,"
          "busbw_gb_per_s,compute_us,overall_us,overlap_pct,wrong,redop,root,cycle\n",
          out);
    EL_EACH(curve, json_object_get(document, "curves"))
        EL_EACH(point, json_object_get(curve, "points"))
            for (int p = 0; p < EL_WIRE_PLACES; p++) put_place(curve, point, el_wire_places[p], out);
    return EL_OK;
}
