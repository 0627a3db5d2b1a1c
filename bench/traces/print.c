/* The tables of `trace-stats`. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/ranks.h"
#include "bench/traces/traces.h"

enum { STEPS_NAMED = 8 };

static void show_device(const json_t *lane, const json_t *context, char *text)
{
    (void)context;
    int64_t device = el_json_whole(lane, "device");
    snprintf(text, EL_CELL_BYTES, device < 0 ? "CPU" : "%d", (int)device);
}

static const struct el_column lane_columns[] = EL_COLUMNS(
    EL_NAME("trace", 22, "file"), EL_SHOWN("device", 7, show_device), EL_FIGURE("window ms", 11, "window_ms"),
    EL_PERCENT("compute %", 11, "compute_pct"), EL_PERCENT("exposed %", 11, "exposed_pct"),
    EL_PERCENT("copies %", 10, "copies_pct"), EL_PERCENT("idle %", 8, "idle_pct"), EL_FIGURE("comm. ms", 10, "comm_ms"),
    EL_PERCENT("hidden %", 10, "overlap_pct"));

static const struct el_column size_columns[] =
    EL_COLUMNS(EL_TEXT("operation", -16, "operation"), EL_COUNT("ranks", 7, "ranks"), EL_COUNT("bytes", 14, "bytes"),
               EL_COUNT("calls", 8, "calls"), EL_FIGURE("transfer ms", 13, "transfer_ms"),
               EL_FIGURE("busbw GB/s", 12, "busbw_gb_per_s"));

static const struct el_column clock_columns[] = EL_COLUMNS(
    EL_NAME("clock of", 34, "file"), EL_FIGURE("moved by ms", 13, "offset_ms"), EL_FIGURE("drift ppm", 11, "drift_ppm"),
    EL_FIGURE("error ms", 10, "error_ms"), EL_COUNT("ends", 7, "ends"));

static void print_table(const char *title, const struct el_column *columns, json_t *rows, FILE *out)
{
    el_table_list(&(struct el_table){.columns = columns, .out = out}, title, json_incref(rows));
}

static void print_counts(const json_t *document, FILE *out)
{
    bool cpu_only = json_is_true(json_object_get(document, "cpu_only"));
    size_t counts[3] = {0};
    EL_EACH(lane, json_object_get(document, "devices")) {
        counts[0] += (size_t)el_json_whole(lane, "events.compute");
        counts[1] += (size_t)el_json_whole(lane, "events.communication");
        counts[2] += (size_t)el_json_whole(lane, "events.copies");
    }
    fprintf(out, "\n");
    el_text_say("", "", out, "Counted: %zu %s as computation, %zu %s as communication, %zu %s.", counts[0],
                cpu_only ? "CPU ops (cat cpu_op)" : "kernels", counts[1],
                cpu_only ? "ops (gloo:, mpi:, nccl:, ucc:)" : "(of communication libraries, Memcpy PtoP)", counts[2],
                "other copies and memsets");
    if (cpu_only)
        el_text_say(
            "", "", out,
            "These traces have no device: all CPU threads count together, and idle is the time in which none worked.");
    el_text_say(
        "", "", out,
        "Compute, exposed, copies and idle are parts of the window, from the first counted event to the end of the "
        "last one; hidden is the part of communication beside computation.");
}

static void print_clocks(const json_t *job, FILE *out)
{
    double error_ms = 0;
    EL_EACH(clock, json_object_get(job, "clocks")) error_ms = fmax(error_ms, el_json_number(clock, "error_ms"));
    if (json_is_true(json_object_get(job, "common_clock"))) {
        el_text_say("", "", out, "The traces say that their times are on one clock.");
        return;
    }
    print_table("\nClocks, by the ends of collectives that all ranks leave together\n", clock_columns,
                json_object_get(job, "clocks"), out);
    el_text_say("", "", out,
                "Arrivals of different ranks are comparable within %.3g ms: 9 of 10 ends are so near to one another.",
                error_ms);
}

static void print_doubts(const json_t *document, const json_t *job, FILE *out)
{
    char ranks[256] = "";
    EL_EACH(rank, json_object_get(job, "missing_ranks"))
        el_text_append(ranks, sizeof ranks, "%s%" JSON_INTEGER_FORMAT, *ranks ? ", " : "", json_integer_value(rank));
    if (*ranks)
        el_text_say("! ", "  ", out,
                    "No trace is of rank %s: if one of them is late, waiting for it is shown as transfer.", ranks);
    if (el_json_whole(job, "alone") > 0)
        el_text_say("! ", "  ", out,
                    "%" PRId64 " calls have no partner in the other traces and are in no figure of the ranks.",
                    el_json_whole(job, "alone"));
    if (el_json_whole(job, "steps_left_out") > 0)
        el_text_say("! ", "  ", out, "%" PRId64 " steps are missing in some traces; no figure includes them.",
                    el_json_whole(job, "steps_left_out"));
    char names[256] = "";
    EL_EACH(name, json_object_get(document, "foreign"))
        el_text_append(names, sizeof names, "%s%s", *names ? ", " : "", json_string_value(name));
    if (*names) el_text_say("! ", "  ", out, "Left out (no traces): %s.", names);
    size_t left = json_array_size(json_object_get(document, "left_out"));
    if (left)
        el_text_say("! ", "  ", out,
                    "Workers have several files here: the last of each is read, %zu older ones are not.", left);
}

/* "In steps 3, 4, 9 and 2 more." */
static void say_steps(const json_t *job, FILE *out)
{
    const json_t *steps = el_json_at(job, "blame.late_steps");
    const size_t n = json_array_size(steps), shown = n > STEPS_NAMED + 1 ? STEPS_NAMED : n;
    char text[256] = "";
    if (n == 0 || n == (size_t)el_json_whole(job, "steps") || el_json_is(job, "blame.kind", "once")) return;
    for (size_t i = 0; i < shown; i++)
        el_text_append(text, sizeof text, "%s%" JSON_INTEGER_FORMAT,
                       i == 0       ? ""
                       : i + 1 == n ? " and "
                                    : ", ",
                       json_integer_value(json_array_get(steps, i)));
    if (shown < n) el_text_append(text, sizeof text, " and %zu more", n - shown);
    el_text_say("", "", out, "It is late in step%s %s.", n == 1 ? "" : "s", text);
}

static void print_job(const json_t *document, FILE *out)
{
    const json_t *job = json_object_get(document, "job");
    double steps = el_json_number(job, "steps"), operations = el_json_number(job, "operations");
    if (isnan(steps))
        fprintf(out, "\nRanks, over the whole traces; %.0f collectives are in several of them\n", operations);
    else
        fprintf(out, "\nRanks, mean of %.0f step%s of %.3g ms; %.0f collectives are in several traces\n", steps,
                steps == 1 ? "" : "s", el_json_number(job, "step_ms"), operations);
    el_ranks_heads(out);
    el_ranks_table(json_object_get(job, "ranks"), out);
    fprintf(out, "\n");
    el_text_say("", "", out, "%s.", el_json_text(job, "blame.sentence", ""));
    if (json_is_object(el_json_at(job, "blame.cause")))
        el_text_say("", "", out, "%s.", el_json_text(job, "blame.cause.sentence", ""));
    say_steps(job, out);
    el_ranks_explain(out);
    print_table("\nBandwidth, from the transfer alone (medians)\n", size_columns, json_object_get(job, "bandwidth"),
                out);
    print_clocks(job, out);
    print_doubts(document, job, out);
}

void el_traces_print(const json_t *document, FILE *out)
{
    print_table("", lane_columns, json_object_get(document, "devices"), out);
    print_counts(document, out);
    if (json_is_object(json_object_get(document, "job")))
        print_job(document, out);
    else if (el_json_whole(document, "rank_of_two") >= 0)
        el_text_say("! ", "  ", out,
                    "Several traces are of rank %" PRId64 ", so these are files of several runs: give a folder for "
                    "each run to see who waits for whom.",
                    el_json_whole(document, "rank_of_two"));
    else if (json_array_size(json_object_get(document, "devices")) > 1)
        el_text_say("", "", out,
                    "No collective is in two of these traces, so nothing can be said of who waits for whom.");
    el_traces_print_without(document, out);
    el_traces_print_merged(document, out);
}
