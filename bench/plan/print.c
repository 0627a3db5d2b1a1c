/* The table of a plan. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/plan/plan.h"
#include "bench/report/report.h"

static const double GIB = 1 << 30;
enum { N_SHOWN = 20 };

/* "activation 15.7, optimizer 12.4": the largest, in GiB; only one beside a step. */
static void show_tags(const json_t *row, const json_t *context, char *text)
{
    const int n = json_is_string(json_object_get(context, "machine")) ? 1 : 2;
    struct el_tag_bytes tags[EL_TAG_COUNT];
    *text = 0;
    el_tags_largest(json_object_get(row, "at_peak_by_tag"), tags);
    for (int i = 0; i < n && tags[i].bytes > 0; i++) {
        char figure[EL_FIGURE_BYTES];
        el_text_append(text, EL_CELL_BYTES, "%s%s %s", i ? ", " : "", el_tag_name(tags[i].tag),
                       el_text_figure(tags[i].bytes / GIB, figure));
    }
}

static void show_mesh(const json_t *row, const json_t *context, char *text)
{
    const char *mesh = el_json_text(row, "mesh", "");
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%s%s", *mesh ? "--mesh " : "", mesh);
    if (el_json_whole(row, "micro") > 0)
        el_text_append(text, EL_CELL_BYTES, " --schedule micro=%.0f", el_json_number(row, "micro"));
    if (el_json_whole(row, "accumulate") > 1)
        el_text_append(text, EL_CELL_BYTES, " --accumulate %.0f", el_json_number(row, "accumulate"));
    if (*text == ' ') memmove(text, text + 1, strlen(text));
}

static void show_how(const json_t *row, const json_t *context, char *text)
{
    char mesh[EL_CELL_BYTES];
    show_mesh(row, context, mesh);
    snprintf(text, EL_CELL_BYTES, "--mode %.20s%s%.300s", el_json_text(row, "mode", "?"), *mesh ? " " : "", mesh);
}

#define GIB_COLUMN(title, columns, at) EL_FIGURE((title), (columns), (at), .scale = 1.0 / (1 << 30))
#define MEMORY_COLUMNS(width_of_tags)                                                                                  \
    GIB_COLUMN("GiB", 5, "peak_bytes"), GIB_COLUMN("free", 5, "room_bytes"),                                           \
        EL_SHOWN("of it", -(width_of_tags), show_tags, .gap = 2), GIB_COLUMN("sent", 5, "sent_bytes")
#define HOW_COLUMN EL_SHOWN("evenload run ... --dry-run", -1, show_how, .gap = 2)
static const struct el_column of_memory[] = EL_COLUMNS(MEMORY_COLUMNS(30), HOW_COLUMN),
                              of_steps[] =
                                  EL_COLUMNS(MEMORY_COLUMNS(16), EL_FIGURE("step ms", 7, "step_ms"), HOW_COLUMN);

static void print_rows(const json_t *document, FILE *out)
{
    const bool steps = json_is_string(json_object_get(document, "machine"));
    const struct el_table table = {.columns = steps ? of_steps : of_memory, .context = document, .out = out};
    const json_t *rows = json_object_get(document, "rows");
    size_t n = 0;
    EL_EACH(row, rows) {
        if (!json_is_true(json_object_get(row, "fits")) || n == N_SHOWN) break;
        if (n++ == 0) el_table_heads(&table, EL_TABLE_BOLD);
        el_table_row(&table, EL_TABLE_PLAIN, row);
    }
    const int64_t n_fit = el_json_whole(document, "fit");
    if ((size_t)n_fit > n) fprintf(out, "and %lld more that fit: --json has all\n", (long long)n_fit - (long long)n);
}

static void say_misfits(const json_t *document, FILE *out)
{
    json_t *seen = json_object();
    char text[1024] = "";
    EL_EACH(row, json_object_get(document, "rows")) {
        const char *mode = el_json_text(row, "mode", "?"), *mesh = el_json_text(row, "mesh", "");
        const double peak = el_json_number(row, "peak_bytes");
        char figure[EL_FIGURE_BYTES];
        if (json_object_get(seen, mode)) continue;
        json_object_set_new(seen, mode, json_true());
        if (json_is_true(json_object_get(row, "fits"))) continue;
        el_text_figure((isnan(peak) ? el_json_number(row, "least_bytes") : peak) / GIB, figure);
        el_text_append(text, sizeof text, "%s%s%s%s %s%s GiB", *text ? ", " : "", mode, *mesh ? " " : "", mesh,
                       isnan(peak) ? "over " : "", figure);
    }
    json_decref(seen);
    if (*text) EL_SAY(out, "Does not fit: %s.", text);
}

static void say_next(const json_t *document, FILE *out)
{
    const json_t *would = json_object_get(document, "would_fit");
    const char *command = el_json_text(document, "rows.0.command", "evenload");
    if (el_json_whole(document, "fit") == 0) {
        if (!json_is_object(would)) {
            EL_SAY(out,
                   "Nothing fits, not even on %.0f devices: give a smaller --batch or --seq, or more --devices mem.",
                   el_json_number(document, "tried_devices"));
            return;
        }
        EL_SAY(out, "Nothing fits on %.0f devices; on %.0f something does:", el_json_number(document, "devices"),
               el_json_number(would, "devices"));
        command = el_json_text(would, "row.command", "evenload");
    }
    el_text_line(out, "Next: %s%s", el_program_word(), command + strlen("evenload"));
}

/* "gpt of 6,659 million parameters as GPT-3 6.7B (layers 32), f32, adamw" */
static void show_model(const json_t *document, char text[1024])
{
    const char *shape = el_json_text(document, "shape", "");
    char figure[EL_FIGURE_BYTES];
    bool any = false;
    snprintf(text, 1024, "%s of %s million parameters%s%s", el_json_text(document, "model", "?"),
             el_text_figure(el_json_number(document, "parameters") / 1e6, figure), *shape ? " " : "", shape);
    EL_EACH_KEY(name, value, json_object_get(document, "sizes")) {
        el_text_append(text, 1024, "%s%s %s", any ? ", " : " (", name, json_string_value(value));
        any = true;
    }
    const char *precision = el_json_text(document, "precision", "f32");
    el_text_append(text, 1024, "%s, %s, %s", any ? ")" : "",
                   strcmp(precision, "f32") ? precision : el_json_text(document, "dtype", "?"),
                   el_json_text(document, "optimizer", "?"));
}

/* " (H100 SXM5 80GB, unless --machine names another)"; "" if it was named. */
static const char *say_machine(const json_t *document, char text[EL_CELL_BYTES])
{
    *text = 0;
    if (json_is_true(json_object_get(document, "machine_is_default")))
        snprintf(text, EL_CELL_BYTES, " (%s, unless --machine names another)", el_json_text(document, "machine", "?"));
    return text;
}

static void say_unknown(const json_t *document, FILE *out)
{
    const char *machine = el_json_text(document, "machine", NULL);
    const bool products = json_is_true(json_object_get(document, "products_known"));
    const bool network = el_json_whole(document, "devices_per_host") > 0;
    if (!machine) return;
    EL_SAY(out, "Not modelled: %s%s%s%s.", products ? "" : "what matrix products of each size lose against ",
           products ? "" : machine, products ? "" : "'s peak, and ",
           network ? "contention between groups on one link"
                   : "the network: the machine's file has none, so all devices are as in one host");
}

static void say_sensitivities(const json_t *document, FILE *out)
{
    const json_t *list = el_json_at(document, "rows.0.sensitivities");
    char text[1024] = "";
    int n = 0;
    EL_EACH(change, list) {
        const double longer = el_json_number(change, "longer_pct");
        if (n == 5 || longer < 0.05) break;
        el_text_append(text, sizeof text, "%s%s +%.1f %%", n++ ? ", " : "", el_json_text(change, "figure", "?"),
                       longer);
    }
    if (*text)
        EL_SAY(out,
               "Sensitivity of row 1: its step gets longer by this much if one rate is halved or one time doubled: %s.",
               text);
}

static const struct el_column of_sizes[] = EL_COLUMNS(
    EL_COUNT("devices", 7, "devices"), EL_TEXT("mode", -8, "mode", .gap = 1), EL_FIGURE("step ms", 9, "step_ms"),
    EL_FIGURE("samples/s", 10, "samples_per_s"), EL_FIGURE("tokens/s", 11, "tokens_per_s"),
    EL_FIGURE("MFU %", 6, "mfu_pct"), GIB_COLUMN("GiB", 5, "peak_bytes"), EL_FIGURE("exposed ms", 11, "exposed_ms"),
    EL_FIGURE("bubble %", 9, "bubble_pct"), EL_SHOWN("mesh", -1, show_mesh, .gap = 2));

void el_plan_print_sizes(const json_t *document, FILE *out)
{
    const struct el_table table = {.columns = of_sizes, .context = document, .out = out};
    const json_t *rows = json_object_get(document, "rows"), *none = json_object_get(document, "none_fits");
    const char *machine = el_json_text(document, "machine", NULL);
    char text[1024], limit[EL_FIGURE_BYTES], chosen[EL_CELL_BYTES];
    show_model(document, text);
    EL_SAY(out, "%s: devices of %s GiB%s, %s", text,
           el_text_figure(el_json_number(document, "device_mem_bytes") / GIB, limit), say_machine(document, chosen),
           el_json_text(document, "batch", ""));
    fputs("The best mesh of each mode; exposed: ms of a step in which a device communicates and does not compute\n\n",
          out);
    EL_EACH(row, rows) {
        if (row_at.i == 0) el_table_heads(&table, EL_TABLE_BOLD);
        if (row_at.i > 0 && !el_data_seen(rows, row_at.i, "devices")) fputc('\n', out);
        el_table_row(&table, EL_TABLE_PLAIN, row);
    }
    *text = 0;
    EL_EACH(devices, none)
        el_text_append(text, sizeof text, "%s%lld", *text ? ", " : "", (long long)json_integer_value(devices));
    if (*text) EL_SAY(out, "Nothing fits on %s devices.", text);
    if (machine) EL_SAY(out, "Steps on %s: predicted by its rates, not measured.", machine);
    if (!machine) EL_SAY(out, "Ordered by bytes sent, not by speed. For step times add --machine h100-sxm.");
    say_unknown(document, out);
}

void el_plan_print(const json_t *document, FILE *out)
{
    const char *machine = el_json_text(document, "machine", NULL);
    char text[1024], limit[EL_FIGURE_BYTES], chosen[EL_CELL_BYTES];
    show_model(document, text);
    EL_SAY(out, "%s: %.0f devices of %s GiB%s, global batch %.0f", text, el_json_number(document, "devices"),
           el_text_figure(el_json_number(document, "device_mem_bytes") / GIB, limit), say_machine(document, chosen),
           el_json_number(document, "global_batch"));
    fputs("GiB on the fullest device, free, its largest tags, and sent by a device in a step\n\n", out);
    print_rows(document, out);
    say_misfits(document, out);
    const bool any = el_json_whole(document, "fit") > 0;
    if (any && machine) EL_SAY(out, "Best first, by the step on %s: predicted by its rates, not measured.", machine);
    if (any && !machine) EL_SAY(out, "Ordered by bytes sent, not by speed. For step times add --machine h100-sxm.");
    if (any) say_sensitivities(document, out);
    if (any) say_unknown(document, out);
    if (machine || !any) say_next(document, out);
}
