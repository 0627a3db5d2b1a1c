/* The tables of a study. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"
#include "bench/study/study.h"

static void show_late(const json_t *row, const json_t *context, char *text)
{
    (void)context;
    const char *rank = el_json_text(row, "late.rank", NULL), *part = el_json_text(row, "late.part", "?");
    snprintf(text, EL_CELL_BYTES, "%s%s%s%s", rank ? rank : "-", rank ? " (" : "", rank ? part : "", rank ? ")" : "");
}

#define RATE(title, path) EL_FIGURE(title, 11, path), EL_INTERVAL("95 %", 15, "ci95")
#define RATIO             EL_RATIO("speed-up", 10, "speedup"), EL_INTERVAL("95 %", 14, "speedup_ci95")
#define REST                                                                                                           \
    EL_FIGURE("data ms", 9, "data_ms"), EL_FIGURE("wait ms", 9, "wait_ms"), EL_MIB("peak MiB", 10, "peak_bytes"),      \
        EL_SHOWN("late", -20, show_late, .gap = 2)
#define EFFICIENCY EL_FIGURE("eff. %", 8, "efficiency", .scale = 100)

#define BY_COUNT(title, path)                                                                                          \
    EL_COUNT("dev.", 4, "devices"), EL_FIGURE("step ms", 9, "step_ms.median"), RATE(title, path), RATIO, EFFICIENCY,   \
        REST
#define BY_NAME(title, path)                                                                                           \
    EL_TEXT("name", -12, "name"), EL_FIGURE("step ms", 9, "step_ms.median"), RATE(title, path), RATIO, REST
static const struct el_column by_count[2][16] = {EL_COLUMNS(BY_COUNT("steps/s", "steps_per_s")),
                                                 EL_COLUMNS(BY_COUNT("samples/s", "samples_per_s"))};
static const struct el_column by_name[2][16] = {EL_COLUMNS(BY_NAME("steps/s", "steps_per_s")),
                                                EL_COLUMNS(BY_NAME("samples/s", "samples_per_s"))};

static void say_scale(const json_t *rows, FILE *out)
{
    char figures[5][EL_FIGURE_BYTES];
    const json_t *row = json_array_get(rows, json_array_size(rows) - 1), *first = json_array_get(rows, 0);
    if (json_array_size(rows) < 2 || !(el_json_number(row, "speedup") > 0)) return;
    EL_ITEM(
        out,
        "%.0f devices: %s times the rate of %.0f, %s %% of the ideal. Of a step of %s ms %s are lost; the ranks wait "
        "%s "
        "ms for one another.",
        el_json_number(row, "devices"), el_text_figure(el_json_number(row, "speedup"), figures[0]),
        el_json_number(first, "devices"), el_text_figure(100 * el_json_number(row, "efficiency"), figures[1]),
        el_text_figure(el_json_number(row, "step_ms.median"), figures[2]),
        el_text_figure(el_json_number(row, "lost_ms"), figures[3]),
        el_text_figure(el_json_number(row, "wait_ms"), figures[4]));
}

static void say_compare(const json_t *rows, FILE *out)
{
    const char *first = el_json_text(rows, "0.name", "?");
    EL_EACH(row, rows) {
        char figure[EL_FIGURE_BYTES];
        const double low = el_json_number(row, "speedup_ci95.0"), high = el_json_number(row, "speedup_ci95.1");
        if (row_at.i == 0 || !(el_json_number(row, "speedup") > 0)) continue;
        const char *what = isnan(low) ? "; an interval needs 5 launches"
                           : low > 1  ? "; it is faster"
                           : high < 1 ? "; it is slower"
                                      : "; they do not differ by what these launches can tell";
        EL_ITEM(out, "%s: %s times the rate of %s%s.", el_json_text(row, "name", "?"),
                el_text_figure(el_json_number(row, "speedup"), figure), first, what);
    }
}

void el_study_print(const json_t *run, FILE *out)
{
    const json_t *study = json_object_get(run, "study"), *rows = json_object_get(study, "rows");
    const bool scale = el_json_is(study, "kind", "scale"), samples = el_json_highest(rows, "samples_per_s") > 0;
    const struct el_column *columns = scale ? by_count[samples] : by_name[samples];
    el_table_list(&(struct el_table){.columns = columns, .out = out}, "", json_incref((json_t *)(uintptr_t)rows));
    fputc('\n', out);
    if (!samples)
        EL_ITEM(out,
                "The DataLoader gave no samples that can be counted: the rates are of steps, and compare only where a "
                "step has as many samples.");
    if (scale)
        say_scale(rows, out);
    else
        say_compare(rows, out);
    EL_EACH(row, rows) {
        const char *reason = el_json_text(row, "reason", NULL);
        if (reason) EL_ITEM(out, "%s: %s.", el_json_text(row, "name", "?"), reason);
    }
}
