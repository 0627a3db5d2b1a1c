/* The tables of `explain` and `explain A B`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/explain/explain.h"
#include "bench/report/report.h"

static const double BUSY_PCT = 5;

static void show_alone(const json_t *row, const json_t *context, char *text)
{
    (void)context;
    const char *with = el_json_text(row, "alone_is", ""), *name = el_json_text(row, "cause", "");
    snprintf(text, EL_CELL_BYTES, "%s", strcmp(with, name) ? with : "");
}

static const struct el_column time_columns[] =
    EL_COLUMNS(EL_TEXT("cause", -8, "cause"), EL_FIGURE("ms", 9, "ms"), EL_INTERVAL("95 % interval", 17, "ci95"),
               EL_FIGURE("alone ms", 11, "alone_ms"), EL_INTERVAL("95 % interval", 17, "alone_ci95"),
               EL_SHOWN("with what it needs", -24, show_alone, .gap = 2));

static const struct el_column memory_columns[] =
    EL_COLUMNS(EL_TEXT("without", -34, "without"), EL_MIB("first", 9, "first"), EL_MIB("others", 9, "others"),
               EL_MIB("more", 9, "excess"));

static void print_time(const char *name, const json_t *of, const char *ms, const char *interval, FILE *out)
{
    json_t *row = el_json_of(EL_KEY("cause", name), EL_KEY("ms", el_json_number(of, ms)),
                             EL_KEY("ci95", json_incref(json_object_get(of, interval))));
    el_table_row(&(struct el_table){.columns = time_columns, .first = 3, .out = out}, EL_TABLE_PLAIN, row);
    json_decref(row);
}

/* Older records have only dp. */
static const char *mode_of(const json_t *document)
{
    return el_json_text(document, "mode", "dp");
}

static void print_times(const json_t *document, FILE *out)
{
    const struct el_table table = {.columns = time_columns, .out = out};
    const json_t *steps = json_object_get(document, "steps"), *causes = json_object_get(document, "causes");
    el_table_heads(&table, EL_TABLE_PLAIN);
    const size_t last = json_array_size(causes) + 1;
    char whole[64];
    snprintf(whole, sizeof whole, "%s - ddp", mode_of(document));
    print_time(mode_of(document), json_array_get(steps, 0), "step_ms", "step_ci95", out);
    EL_EACH(cause, causes) el_table_row(&table, EL_TABLE_PLAIN, cause);
    print_time("rest", json_object_get(document, "rest"), "ms", "ci95", out);
    print_time("ddp", json_array_get(steps, last), "step_ms", "step_ci95", out);
    print_time(whole, json_object_get(document, "whole"), "ms", "ci95", out);
}

/* Causes whose intervals exclude 0; *unshown_p: the others. */
static void shown_text(const json_t *causes, char *text, size_t bytes, size_t *unshown_p)
{
    *text = '\0';
    *unshown_p = 0;
    EL_EACH(cause, causes) {
        double low = el_json_number(cause, "ci95.0"), high = el_json_number(cause, "ci95.1");
        char ms[EL_FIGURE_BYTES];
        *unshown_p += low <= 0 && high >= 0;
        if (low > 0 || high < 0)
            el_text_append(text, bytes, "%s%s (%s ms)", *text ? ", " : "", el_json_text(cause, "cause", "?"),
                           el_text_figure(el_json_number(cause, "ms"), ms));
    }
}

static void print_answer(const json_t *document, FILE *out)
{
    char names[256];
    size_t unshown;
    shown_text(json_object_get(document, "causes"), names, sizeof names, &unshown);
    if (!*names && unshown == 0) return;
    fputc('\n', out);
    if (*names)
        el_text_say("", "", out, "Shown to make a difference, in turn: %s.%s", names,
                    unshown == 0   ? ""
                    : unshown == 1 ? " The other cause is not: its interval contains 0."
                                   : " No other cause is: their intervals contain 0.");
    else
        el_text_say(
            "", "", out,
            "No cause is shown to make a difference, in turn: each interval contains 0. More launches (--repeats) or "
            "longer ones (--min-time) narrow them.");
}

static void print_words(const json_t *document, FILE *out)
{
    const json_t *causes = json_object_get(document, "causes");
    fputc('\n', out);
    EL_EACH(cause, causes)
        fprintf(out, "%-10s%s\n", el_json_text(cause, "cause", "?"), el_json_text(cause, "what", "?"));
    el_text_say("rest      ", "          ", out, "%s", el_json_text(document, "rest_is", "?"));
    fputc('\n', out);
    el_text_say("", "", out,
                "ms: the time that a step loses when the cause is removed after those above it; causes and rest add up "
                "to %s - ddp. Alone: when only it is removed, with the causes that it needs. If the two differ, one "
                "cause hides behind another.",
                mode_of(document));
}

static void print_memory(const json_t *document, FILE *out)
{
    const struct el_table table = {.columns = memory_columns, .out = out};
    const json_t *steps = json_object_get(document, "steps"), *causes = json_object_get(document, "causes");
    fprintf(out, "\nPeak memory, MiB: the first device, the mean of the others, and what the first holds more\n");
    el_table_heads(&table, EL_TABLE_PLAIN);
    const size_t last = json_array_size(causes) + 1;
    for (size_t v = 0; v <= last; v++) {
        const json_t *step = json_array_get(steps, v);
        double first = el_json_number(step, "memory.0.peak_bytes"), excess = el_json_number(step, "excess_bytes");
        char name[64];
        snprintf(name, sizeof name, "%s%s", v > 1 ? "and " : "",
                 v == 0 ? "nothing: as it is" : el_json_text(json_array_get(causes, v - 1), "cause", ""));
        json_t *row = el_json_of(EL_KEY("without", v == last ? "(ddp)" : name), EL_KEY("first", first),
                                 EL_KEY("others", first - excess), EL_KEY("excess", excess));
        el_table_row(&table, EL_TABLE_PLAIN, row);
        json_decref(row);
    }
}

void el_explain_print(const json_t *document, FILE *out)
{
    double launches = el_json_number(document, "launches"),
           n = (double)json_array_size(json_object_get(document, "devices"));
    const char *inject = el_json_text(document, "inject", "");
    bool virtual = !strncmp(el_json_text(document, "devices.0", ""), "sim", strlen("sim"));
    el_text_line(out,
                 "What makes %s slower than ddp here: %s, batch %.0f on %.0f %sdevices, %.0f launch%s of %.0f blocks",
                 mode_of(document), el_json_text(document, "model", "?"), el_json_number(document, "global_batch"), n,
                 virtual ? "simulated " : "", launches, launches == 1 ? "" : "es",
                 el_json_number(document, "blocks_per_launch"));
    if (*inject) el_text_line(out, "! disturbed on purpose: --inject %s", inject);
    json_t *documents = json_pack("[O]", document); /* of simulated devices */
    el_report_warnings(documents, "", out);
    json_decref(documents);
    if (!virtual && el_json_number(document, "others_waited_pct") > BUSY_PCT)
        el_text_line(
            out, "! other programs took up to %.0f %% of a core meanwhile: on a quiet machine intervals are narrower",
            el_json_number(document, "others_waited_pct"));
    fputc('\n', out);
    print_times(document, out);
    print_answer(document, out);
    print_words(document, out);
    if (virtual)
        fputs("In virtual time launches do not scatter: one is enough, and there are no intervals.\n", out);
    else if (launches < EL_REPEATS_MIN)
        fputs("An interval needs five launches (--repeats).\n", out);
    print_memory(document, out);
}

enum { TAGS_SHOWN = 4, TAGS_WIDTH = 57 };

/* "activation +17.1, bucket -10.4": the largest changes in MiB that fit. */
static void show_tags(const json_t *row, const json_t *context, char *text)
{
    struct el_tag_bytes tags[EL_TAG_COUNT];
    (void)context;
    *text = 0;
    el_tags_largest(json_object_get(row, "by_tag"), tags);
    for (int i = 0; i < TAGS_SHOWN && tags[i].bytes != 0; i++) {
        char mib[EL_FIGURE_BYTES], next[EL_CELL_BYTES];
        snprintf(next, sizeof next, "%s%s %s%s", *text ? ", " : "", el_tag_name(tags[i].tag),
                 tags[i].bytes < 0 ? "-" : "+", el_text_mib(fabs(tags[i].bytes), mib));
        if (strlen(text) + strlen(next) > TAGS_WIDTH) break;
        el_text_append(text, EL_CELL_BYTES, "%s", next);
    }
}

static void show_device(const json_t *row, const json_t *context, char *text)
{
    const char *a = el_json_text(row, "a_device", NULL), *b = el_json_text(row, "b_device", NULL);
    (void)context;
    if (a && b && strcmp(a, b))
        snprintf(text, EL_CELL_BYTES, "%s, %s", a, b);
    else
        snprintf(text, EL_CELL_BYTES, "%s", a ? a : b ? b : "?");
}

static const struct el_column part_columns[] =
    EL_COLUMNS(EL_TEXT("part", -12, "part"), EL_FIGURE("A ms", 9, "a_ms"), EL_FIGURE("B ms", 9, "b_ms"),
               EL_FIGURE("B - A ms", 11, "ms"), EL_INTERVAL("95 % interval", 18, "ci95"));
static const struct el_column device_columns[] =
    EL_COLUMNS(EL_SHOWN("device", -14, show_device), EL_MIB("A MiB", 9, "a_bytes"), EL_MIB("B MiB", 9, "b_bytes"),
               EL_MIB("B - A", 9, "change_bytes"), EL_SHOWN("by tag", -TAGS_WIDTH, show_tags, .gap = 2));

static const struct el_column axis_columns[] =
    EL_COLUMNS(EL_TEXT("axis", -12, "axis"), EL_FIGURE("A ms", 9, "a_exposed_ms"), EL_FIGURE("B ms", 9, "b_exposed_ms"),
               EL_FIGURE("B - A ms", 11, "ms"), EL_MIB("A sends MiB", 18, "a_sent_bytes"),
               EL_MIB("B sends MiB", 13, "b_sent_bytes"));

static void print_side(const json_t *document, const char *name, FILE *out)
{
    const json_t *side = json_object_get(document, name);
    char head[4] = {(char)(*name - 'a' + 'A'), ' ', ' ', 0};
    double devices = el_json_number(side, "devices"), launches = el_json_number(side, "launches");
    if (el_json_text(side, "sentence", NULL)) {
        el_text_say(head, "   ", out, "%s: %s of %.0f, %.0f steps; %s", el_json_text(side, "record", "?"),
                    el_json_text(side, "device", "?"), devices, launches, el_json_text(side, "sentence", ""));
        return;
    }
    el_text_say(head, "   ", out, "%s: %s on %.0f %sdevice%s (the slowest: %s), %.0f launch%s",
                el_json_text(side, "record", "?"), el_json_text(side, "mode", "?"), devices,
                json_is_true(json_object_get(side, "simulated")) ? "simulated " : "", devices == 1 ? "" : "s",
                el_json_text(side, "device", "?"), launches, launches == 1 ? "" : "es");
    if (el_json_is(side, "verdict", "simulated") && el_json_text(side, "warning", NULL))
        el_text_say("   ! ", "     ", out, "%s", el_json_text(side, "warning", "?"));
    if (el_json_is(side, "verdict", "suspect"))
        el_text_say("   ! suspect: ", "     ", out, "%s", el_json_text(side, "warning", "?"));
}

static void print_differs(const json_t *document, FILE *out)
{
    const json_t *list = json_object_get(document, "differs");
    char text[4096] = "";
    EL_EACH(one, list)
        el_text_append(text, sizeof text, "%s%s (%s, %s)", *text ? ", " : "", el_json_text(one, "field", "?"),
                       el_json_text(one, "a", "?"), el_json_text(one, "b", "?"));
    if (*text) el_text_say("They differ in ", "   ", out, "%s", text);
}

/* Contention is a difference of two measurements, so it may be negative. */
static void print_negative(const json_t *parts, FILE *out)
{
    EL_EACH(part, parts) {
        if (!el_json_is(part, "part", "contention")) continue;
        if (!(el_json_number(part, "a_ms") < 0 || el_json_number(part, "b_ms") < 0)) continue;
        el_text_say("Contention below 0: ", "", out,
                    "kernels were faster in the blocks with communication on than in those with it off. Chance alone "
                    "can do that: none is shown.");
    }
}

static void print_parts(const json_t *document, FILE *out)
{
    const struct el_table table = {.columns = part_columns, .out = out};
    const json_t *parts = json_object_get(document, "parts");
    json_t *rest = json_copy(json_object_get(document, "rest")), *whole = json_copy(json_object_get(document, "whole"));
    el_json_put_text(rest, "part", "rest");
    el_json_put_all(whole, EL_KEY("part", "step"), EL_KEY("a_ms", el_json_number(document, "a.step_ms")),
                    EL_KEY("b_ms", el_json_number(document, "b.step_ms")));
    fputc('\n', out);
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(part, parts) el_table_row(&table, EL_TABLE_PLAIN, part);
    el_table_row(&table, EL_TABLE_PLAIN, rest);
    el_table_row(&table, EL_TABLE_PLAIN, whole);
    json_decref(rest);
    json_decref(whole);
    fputc('\n', out);
    EL_EACH(part, parts) fprintf(out, "%-12s%s\n", el_json_text(part, "part", "?"), el_json_text(part, "what", "?"));
    fprintf(out, "%-12s%s\n", "rest", "what these leave of the step: other work of the host in it, and its clock");
    print_negative(parts, out);
    if (el_json_text(document, "ci_reason", NULL))
        el_text_say("No interval: ", "", out, "%s.", el_json_text(document, "ci_reason", ""));
}

void el_difference_print(const json_t *document, FILE *out)
{
    const json_t *memory = json_object_get(document, "memory");
    const struct el_table table = {.columns = device_columns, .out = out};
    if (el_json_text(document, "model", NULL))
        el_text_line(out, "From A to B: %s, batch %.0f", el_json_text(document, "model", "?"),
                     el_json_number(document, "global_batch"));
    else
        el_text_line(out, "From A to B: a step of the rank that waits least, for which the others wait");
    print_side(document, "a", out);
    print_side(document, "b", out);
    print_differs(document, out);
    print_parts(document, out);
    el_table_list(&(struct el_table){.columns = axis_columns, .out = out},
                  "\nCommunication by axis, on the slowest device: exposed, with the wait for others\n",
                  json_incref(json_object_get(document, "axes")));
    if (json_array_size(memory) == 0) return;
    fprintf(out, "\nPeak memory by device, MiB, and the tags that change most\n");
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(device, memory) el_table_row(&table, EL_TABLE_PLAIN, device);
}
