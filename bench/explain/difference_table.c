/* The tables of `explain A B`, for people. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/explain/difference.h"
#include "bench/report/report.h"

enum { TAGS_SHOWN = 4, TAGS_WIDTH = 57 };

/* "activation +17.1, bucket -10.4": the tags that change most, in MiB, as many as the line can take. */
static void show_tags(const json_t *row, const json_t *context, char *text)
{
    double bytes[EL_TAG_COUNT];
    struct el_tag_bytes tags[EL_TAG_COUNT];
    (void)context;
    *text = 0;
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        double change = el_json_number(json_object_get(row, "by_tag"), el_tag_name((enum el_tag)t));
        bytes[t] = isnan(change) ? 0 : fabs(change);
    }
    el_tags_by_size(bytes, tags);
    for (int i = 0; i < TAGS_SHOWN && tags[i].bytes > 0; i++) {
        char mib[EL_FIGURE_BYTES], next[EL_CELL_BYTES];
        const char *name = el_tag_name(tags[i].tag);
        bool less = el_json_number(json_object_get(row, "by_tag"), name) < 0;
        snprintf(next, sizeof next, "%s%s %s%s", *text ? ", " : "", name, less ? "-" : "+",
                 el_text_mib(tags[i].bytes, mib));
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

static const struct el_column time_columns[] = {EL_TEXT("part", -12, "part"),
                                                EL_FIGURE("A ms", 9, "a_ms"),
                                                EL_FIGURE("B ms", 9, "b_ms"),
                                                EL_FIGURE("B - A ms", 11, "ms"),
                                                EL_INTERVAL("95 % interval", 18, "ci95"),
                                                EL_NO_MORE};
static const struct el_column memory_columns[] = {EL_SHOWN("device", -14, show_device),
                                                  EL_MIB("A MiB", 9, "a_bytes"),
                                                  EL_MIB("B MiB", 9, "b_bytes"),
                                                  EL_MIB("B - A", 9, "change_bytes"),
                                                  {.head = "by tag", .gap = 2, .width = -TAGS_WIDTH, .show = show_tags},
                                                  EL_NO_MORE};

static void print_side(const json_t *document, const char *name, FILE *out)
{
    const json_t *side = json_object_get(document, name);
    char head[4] = {(char)(*name - 'a' + 'A'), ' ', ' ', 0};
    double devices = el_json_number(side, "devices"), launches = el_json_number(side, "launches");
    el_text_say(head, "   ", EL_REPORT_COLUMNS, out, "%s: %s on %.0f %sdevice%s (the slowest: %s), %.0f launch%s%s%s",
                el_json_text(side, "record", "?"), el_json_text(side, "mode", "?"), devices,
                json_is_true(json_object_get(side, "simulated")) ? "simulated " : "", devices == 1 ? "" : "s",
                el_json_text(side, "device", "?"), launches, launches == 1 ? "" : "es",
                el_json_text(side, "framework", NULL) ? ", " : "", el_json_text(side, "framework", ""));
    if (el_json_is(side, "verdict", "simulated") && el_json_text(side, "warning", NULL))
        el_text_say("   ! ", "     ", EL_REPORT_COLUMNS, out, "%s", el_json_text(side, "warning", "?"));
    if (el_json_is(side, "verdict", "suspect"))
        el_text_say("   ! suspect: ", "     ", EL_REPORT_COLUMNS, out, "%s", el_json_text(side, "warning", "?"));
}

static void print_differs(const json_t *document, FILE *out)
{
    const json_t *list = json_object_get(document, "differs");
    char text[4096] = "";
    EL_EACH(one, list)
        el_text_append(text, sizeof text, "%s%s (%s, %s)", *text ? ", " : "", el_json_text(one, "field", "?"),
                       el_json_text(one, "a", "?"), el_json_text(one, "b", "?"));
    if (*text) el_text_say("They differ in ", "   ", EL_REPORT_COLUMNS, out, "%s", text);
}

/* The first and the last row: both steps, and what lies between them. */
static void print_whole(const struct el_table *table, const json_t *document)
{
    json_t *row = json_copy(json_object_get(document, "whole"));
    json_object_set_new(row, "part", json_string("step"));
    json_object_set(row, "a_ms", el_json_at(document, "a.step_ms"));
    json_object_set(row, "b_ms", el_json_at(document, "b.step_ms"));
    el_table_row(table, EL_TABLE_PLAIN, row);
    json_decref(row);
}

/* Contention is a difference of two measurements, so it may come out below 0. */
static void print_negative(const json_t *parts, FILE *out)
{
    EL_EACH(part, parts) {
        if (!el_json_is(part, "part", "contention")) continue;
        if (!(el_json_number(part, "a_ms") < 0 || el_json_number(part, "b_ms") < 0)) continue;
        el_text_say("Contention below 0: ", "", EL_REPORT_COLUMNS, out,
                    "kernels were faster in the blocks with communication on than in those with it off. Chance alone "
                    "can do that: none is shown.");
    }
}

static void print_times(const json_t *document, FILE *out)
{
    const struct el_table table = {.columns = time_columns, .out = out};
    const json_t *parts = json_object_get(document, "parts");
    json_t *rest = json_copy(json_object_get(document, "rest"));
    json_object_set_new(rest, "part", json_string("rest"));
    fputc('\n', out);
    el_table_heads(&table, EL_TABLE_PLAIN);
    for (size_t i = 0; i < json_array_size(parts); i++) el_table_row(&table, EL_TABLE_PLAIN, json_array_get(parts, i));
    el_table_row(&table, EL_TABLE_PLAIN, rest);
    print_whole(&table, document);
    json_decref(rest);
    fputc('\n', out);
    EL_EACH(part, parts) fprintf(out, "%-12s%s\n", el_json_text(part, "part", "?"), el_json_text(part, "what", "?"));
    fprintf(out, "%-12s%s\n", "rest",
            json_array_size(parts) > 1
                ? "what these leave of the step: other work of the host in it, and its clock"
                : "all else: kernels and communication, which PyTorch's record does not separate");
    print_negative(parts, out);
    if (el_json_text(document, "ci_reason", NULL))
        el_text_say("No interval: ", "", EL_REPORT_COLUMNS, out, "%s.", el_json_text(document, "ci_reason", ""));
}

void el_difference_print(const json_t *document, FILE *out)
{
    const json_t *memory = json_object_get(document, "memory");
    const struct el_table table = {.columns = memory_columns, .out = out};
    el_text_line(out, "From A to B: %s, batch %.0f", el_json_text(document, "model", "?"),
                 el_json_number(document, "global_batch"));
    print_side(document, "a", out);
    print_side(document, "b", out);
    print_differs(document, out);
    print_times(document, out);
    if (json_array_size(memory) == 0) return;
    fprintf(out, "\nPeak memory by device, MiB, and the tags that change most\n");
    el_table_heads(&table, EL_TABLE_PLAIN);
    for (size_t i = 0; i < json_array_size(memory); i++)
        el_table_row(&table, EL_TABLE_PLAIN, json_array_get(memory, i));
}
