/* The tables and sentences of `data`. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/data/data.h"

enum { COLUMNS = 100 };

static const struct el_column stage_columns[] = {{.head = "stages", .gap = 2, .width = -26, .path = "stage"},
                                                 EL_FIGURE("ms", 10, "ms"),
                                                 EL_FIGURE("samples/s", 12, "samples_per_s"),
                                                 {.head = "", .gap = 2, .width = -50, .path = "note"},
                                                 EL_NO_MORE};

static void print_stage(const json_t *row, const char *name, double ms, const char *note, FILE *out)
{
    json_t *stage = el_json_of(EL_KEY("stage", name), EL_KEY("ms", ms), EL_KEY("note", note),
                               EL_KEY("samples_per_s", ms > 0 ? 1e3 * el_json_number(row, "samples") / ms : NAN));
    el_table_row(&(struct el_table){.columns = stage_columns, .out = out}, EL_TABLE_PLAIN, stage);
    json_decref(stage);
}

static double pin_ms(const json_t *document, const json_t *row)
{
    double ms = NAN;
    EL_EACH(other, json_object_get(document, "rows"))
        if (isnan(ms) && el_json_is(other, "page_cache", el_json_text(row, "page_cache", "?")))
            ms = el_json_number(other, "pin_ms");
    return ms;
}

static void print_transfer(const json_t *document, const json_t *row, FILE *out)
{
    const bool on = el_json_is(row, "pinned", "on"), off = el_json_is(row, "pinned", "off");
    const char *how = el_json_text(document, "non_blocking", "");
    print_stage(row, "host to pinned", on ? pin_ms(document, row) : NAN,
                on    ? "out of workers' queue; else it is made there"
                : off ? "pageable memory: the driver stages the copy"
                      : el_json_text(document, "pinned_reason", ""),
                out);
    print_stage(row, "to the device", el_json_number(row, "h2d_ms"),
                !strcmp(how, "ahead") ? "a step ahead, beside the one that computes"
                : !strcmp(how, "off") ? "the host waits for it"
                : !strcmp(how, "on")  ? "the host goes on meanwhile"
                                      : "",
                out);
}

static void print_stages(const json_t *document, const json_t *row, FILE *out)
{
    bool words = el_json_is(document, "decodes", "words"), disk = el_json_is(document, "data_in", "disk");
    char head[64], reads[64] = "";
    snprintf(head, sizeof head, "stages, %s page cache", el_json_text(row, "page_cache", "?"));
    if (el_json_is(document, "pinned", "both"))
        snprintf(head, sizeof head, "stages, %s, %s", el_json_text(row, "page_cache", "?"),
                 el_json_is(row, "pinned", "on") ? "pinned" : "pageable");
    if (el_json_number(row, "reads") > 0)
        snprintf(reads, sizeof reads, "%.3g ms a read of %.0f bytes",
                 el_json_number(row, "read_ms") / el_json_number(row, "reads"),
                 el_json_number(row, "read_bytes") / el_json_number(row, "reads"));
    fprintf(out, "  %-26s%10s%12s\n", disk || el_json_is(document, "pinned", "both") ? head : "stages", "ms",
            "samples/s");
    print_stage(row, "read", el_json_number(row, "read_ms"), reads, out);
    print_stage(row, words ? "words to ids" : "decode, scale", el_json_number(row, "decode_ms"), "", out);
    print_stage(row, "batch (collate)", el_json_number(row, "collate_ms"), "", out);
    print_transfer(document, row, out);
    print_stage(row, "compute, all else", el_json_number(row, "compute_ms"), "", out);
}

static void show_launches(const json_t *row, const json_t *context, char *text)
{
    const json_t *each = json_object_get(row, "launches_pct");
    (void)context;
    *text = 0;
    double low = INFINITY, high = -INFINITY;
    EL_EACH(pct, each) {
        if (!json_is_number(pct)) continue;
        low = fmin(low, json_number_value(pct));
        high = fmax(high, json_number_value(pct));
    }
    if (low <= high) snprintf(text, EL_CELL_BYTES, "%.2f-%.2f", low, high);
}

static void show_pinned(const json_t *row, const json_t *context, char *text)
{
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%s", el_json_text(row, "pinned", "-"));
}

static const struct el_column columns[] = {EL_COUNT("workers", 7, "workers"),
                                           EL_COUNT("ahead", 6, "prefetch"),
                                           EL_TEXT("cache", 6, "page_cache"),
                                           EL_SHOWN("pin", 4, show_pinned),
                                           EL_FIGURE("step ms", 9, "step_ms"),
                                           EL_FIGURE("samples/s", 11, "samples_per_s"),
                                           EL_FIGURE("make ms", 9, "load_ms"),
                                           EL_FIGURE("exposed ms", 11, "exposed_ms"),
                                           EL_FIGURE("%", 7, "exposed_pct"),
                                           EL_SHOWN("launches %", 11, show_launches),
                                           EL_TEXT("waits", 9, "waits"),
                                           EL_MIB("queue MiB", 10, "queue_bytes"),
                                           EL_NO_MORE};

static void print_rows(const json_t *rows, FILE *out)
{
    const struct el_table table = {.columns = columns, .out = out};
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(row, rows) {
        if (!el_json_is(row, "status", "ok"))
            el_text_line(out, "%7.0f %6s  %s: %s", el_json_number(row, "workers"), el_json_text(row, "page_cache", "?"),
                         el_json_text(row, "status", "?"), el_json_text(row, "reason", "?"));
        else
            el_table_row(&table, EL_TABLE_PLAIN, row);
    }
}

static void say_slowest(const json_t *answer, FILE *out)
{
    const char *stage = el_json_text(answer, "slowest_stage", "");
    if (!strcmp(stage, "read"))
        el_text_say("", "  ", COLUMNS, out,
                    "The slowest stage is reading: %.3g ms a read. More workers wait side by side.",
                    el_json_number(answer, "ms_per_read"));
    else
        el_text_say(
            "", "  ", COLUMNS, out,
            "The slowest stage is %s, which needs a core: workers hide it only on cores that no device computes on.",
            !strcmp(stage, "decode") ? "decoding" : "putting batches together");
}

static const char SLOWER[] = " That is no gain: workers and the device share cores, or something else was running.";

static void say_none_hides(const json_t *answer, const json_t *document, FILE *out)
{
    char without[EL_FIGURE_BYTES];
    const char *cache = el_json_text(answer, "page_cache", "?");
    double estimate = el_json_number(answer, "estimate");
    double most = 0; /* most workers measured with this page cache */
    EL_EACH(row, json_object_get(document, "rows"))
        if (el_json_is(row, "page_cache", cache)) most = fmax(most, el_json_number(row, "workers"));
    bool more = !(estimate <= most);
    el_text_say("", "  ", COLUMNS, out,
                "With a %s page cache no measured number of workers hides loading (below %g %% of the step; without "
                "workers it is %s %%). The stage times say that %.0f would be enough, on as many free cores: %s.",
                cache, EL_LOADING_HIDDEN_PCT, el_text_figure(el_json_number(answer, "without_pct"), without), estimate,
                more ? "give --workers a longer list"
                     : "that many were measured, so cores were shared or other programs ran");
    say_slowest(answer, out);
}

static void say_answer(const json_t *answer, const json_t *document, FILE *out)
{
    char exposed[EL_FIGURE_BYTES], without[EL_FIGURE_BYTES], step[EL_FIGURE_BYTES], step_without[EL_FIGURE_BYTES];
    double workers = el_json_number(answer, "workers"), step_ms = el_json_number(answer, "step_ms");
    double without_step_ms = el_json_number(answer, "without_step_ms");
    const char *cache = el_json_text(answer, "page_cache", "?");
    const char *by = el_json_number(document, "launches") > 1 ? "(chosen by the first launch, confirmed by the others)"
                                                              : "(chosen and measured by one launch: give --repeats 3)";
    el_text_figure(el_json_number(answer, "exposed_pct"), exposed);
    if (isnan(workers)) {
        say_none_hides(answer, document, out);
    } else if (workers == 0) {
        el_text_say("", "  ", COLUMNS, out,
                    "With a %s page cache loading needs no workers: it is %s %% of the step %s.", cache, exposed, by);
    } else {
        el_text_say("", "  ", COLUMNS, out,
                    "Recommended with a %s page cache: --workers %.0f,prefetch=%.0f. Exposed loading is then %s %% "
                    "of the step %s; without workers it is %s %%. A step takes %s ms instead of %s.%s",
                    cache, workers, el_json_number(answer, "prefetch"), exposed, by,
                    el_text_figure(el_json_number(answer, "without_pct"), without), el_text_figure(step_ms, step),
                    el_text_figure(without_step_ms, step_without), step_ms < without_step_ms ? "" : SLOWER);
        say_slowest(answer, out);
    }
    if (el_json_text(answer, "warning", NULL))
        el_text_say("", "  ", COLUMNS, out, "These times are suspect: %s.", el_json_text(answer, "warning", ""));
}

void el_loading_print(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows"), *answers = json_object_get(document, "recommended");
    el_text_line(out, "Loading: %s, %s, a batch of %.0f, %.0f device%s", el_json_text(document, "model", "?"),
                 el_json_text(document, "mode", "?"), el_json_number(document, "global_batch"),
                 el_json_number(document, "devices"), el_json_number(document, "devices") > 1 ? "s" : "");
    el_text_line(out, "%s", el_json_text(document, "data", "?"));
    fputc('\n', out);
    EL_EACH(row, rows) {
        if (el_json_number(row, "workers") != 0 || !el_json_is(row, "status", "ok")) continue;
        print_stages(document, row, out);
        fputc('\n', out);
    }
    print_rows(rows, out);
    fputc('\n', out);
    EL_EACH(answer, answers) say_answer(answer, document, out);
}
