/* Counts that share cores or cards are reported as shared, without claims. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"
#include "bench/scale/scale.h"

enum { TEXT_BYTES = 320 };

static bool is_shared(const json_t *row)
{
    return json_is_string(json_object_get(row, "shared"));
}

static bool is_finished(const json_t *row)
{
    return !isnan(el_json_number(row, "samples_per_s"));
}

/* "4*": devices share. */
static void show_count(const json_t *row, const json_t *context, char *text)
{
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%.0f%s", el_json_number(row, "devices"), is_shared(row) ? "*" : "");
}

static void show_verdict(const json_t *row, const json_t *context, char *text)
{
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%s", is_shared(row) ? "shared" : el_json_text(row, "verdict", "?"));
}

static void print_failed(const json_t *row, FILE *out)
{
    char count[EL_CELL_BYTES], head[EL_CELL_BYTES + 32];
    show_count(row, NULL, count);
    snprintf(head, sizeof head, "%-6s%8s  ", el_json_text(row, "mode", "?"), count);
    el_report_failed(row, head, "                ", out);
}

/* Empty in rows that are the baseline themselves. */
/* clang-format off */
#define SCALE_COLUMNS(rate, figure) \
    EL_TEXT("mode", -6, "mode"), EL_SHOWN("dev.", 4, show_count), EL_FIGURE(rate, 10, figure), \
    EL_FIGURE("speed-up", 9, "plain.speedup"), EL_INTERVAL("95 %", 13, "plain.speedup_ci95"), \
    EL_FIGURE("eff. %", 7, "plain.efficiency", .scale = 100), \
    EL_INTERVAL("95 %", 11, "plain.efficiency_ci95", .scale = 100), \
    EL_FIGURE("speed-up", 9, "wrapped.speedup"), EL_INTERVAL("95 %", 13, "wrapped.speedup_ci95"), \
    EL_FIGURE("eff. %", 7, "wrapped.efficiency", .scale = 100), \
    EL_INTERVAL("95 %", 11, "wrapped.efficiency_ci95", .scale = 100)
/* clang-format on */
const struct el_column el_scale_columns[] = EL_COLUMNS(SCALE_COLUMNS("samples/s", "samples_per_s"));
const struct el_column el_scale_token_columns[] = EL_COLUMNS(SCALE_COLUMNS("tokens/s", "tokens_per_s"));

static void print_speedups(const json_t *rows, FILE *out)
{
    fprintf(out, "%-20s%40s%40s\n", "", "against plain single", "against the same mode on 1");
    struct el_table table = {.columns = el_report_of_tokens(rows) ? el_scale_token_columns : el_scale_columns,
                             .out = out};
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(row, rows) {
        table.first = !json_is_object(json_object_get(row, "plain"))     ? 3
                      : !json_is_object(json_object_get(row, "wrapped")) ? 7
                                                                         : 11;
        if (!el_report_is_ok(row)) print_failed(row, out);
        if (is_finished(row)) el_table_row(&table, EL_TABLE_PLAIN, row);
    }
}

/* Lost: the step minus the ideal step. */
static const struct el_column loss_columns[] =
    EL_COLUMNS(EL_TEXT("mode", -6, "mode"), EL_SHOWN("dev.", 4, show_count), EL_FIGURE("step", 7, "step.step_ms"),
               EL_FIGURE("lost", 7, "step.lost_ms"), EL_FIGURE("= compute", 10, "step.compute_ms"),
               EL_FIGURE("+ contention", 13, "step.contention_ms"), EL_FIGURE("+ exposed", 10, "step.exposed_ms"),
               EL_FIGURE("+ idle", 7, "step.idle_ms"), EL_FIGURE("costs", 7, "step.comm_costs_ms"),
               EL_INTERVAL("95 %", 12, "step.comm_costs_ci95"), EL_MIB("MiB", 7, "peak_bytes"),
               EL_SHOWN("verdict", -9, show_verdict, .gap = 1));

static void print_losses(const json_t *rows, FILE *out)
{
    const struct el_table table = {.columns = loss_columns, .out = out};
    fputs("\nWhere the time goes, ms per step: lost = step - ideal step; costs: by communication; MiB: peak\n", out);
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(row, rows)
        if (is_finished(row)) el_table_row(&table, EL_TABLE_PLAIN, row);
}

static const struct el_column predicted_columns[] =
    EL_COLUMNS(EL_TEXT("mode", -6, "mode"), EL_SHOWN("dev.", 4, show_count),
               EL_FIGURE("samples/s", 11, "samples_per_s"), EL_FIGURE("speed-up", 10, "plain.speedup"),
               EL_INTERVAL("95 %", 14, "plain.speedup_ci95"), EL_FIGURE("eff. %", 8, "plain.efficiency", .scale = 100),
               EL_FIGURE("measured", 11, "measured_samples_per_s"), EL_CHANGE("error %", 9, "error_pct"));

/* "records wire results/weak", or "rates of h100-sxm" */
static void scale_predicted_from(const json_t *document, char *text, size_t bytes)
{
    const char *costs = el_json_text(document, "predicted_costs", NULL);
    const char *machine = el_json_text(document, "predicted_machine", "?");
    size_t at = (size_t)snprintf(text, bytes, "%s", costs ? "records " : "rates of ");
    for (const char *c = costs ? costs : machine; *c && at + 2 < bytes; c++) {
        text[at++] = *c;
        if (costs && *c == ',') text[at++] = ' ';
    }
    text[at] = '\0';
}

static void print_predicted(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "predicted");
    const struct el_table table = {.columns = predicted_columns, .out = out};
    char from[TEXT_BYTES];
    if (json_array_size(rows) == 0) return;
    scale_predicted_from(document, from, sizeof from);
    fputc('\n', out);
    el_text_say("", "", out, "Predicted, not measured, from %s; against %s:", from,
                json_is_string(json_object_get(document, "predicted_costs")) ? "the measured plain single"
                                                                             : "plain single by the same rates");
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(row, rows) el_table_row(&table, EL_TABLE_PLAIN, row);
    EL_EACH(row, rows) {
        const char *reason = el_json_text(row, "plain.reason", NULL);
        if (reason && !el_data_seen(rows, row_at.i, "mode"))
            EL_ITEM(out, "%s has no interval: %s.", el_json_text(row, "mode", "?"), reason);
    }
}

static void print_heading(const json_t *document, FILE *out)
{
    bool weak = strcmp(el_json_text(document, "scaling", ""), "weak") == 0;
    el_text_say("", "", out, "%s scaling%s: %.0f samples per step on %s; %s, %s, %s. Efficiency is %s.",
                weak ? "Weak" : "Strong", json_is_true(json_object_get(document, "simulated")) ? " (simulated)" : "",
                el_json_number(document, "batch"), weak ? "each device" : "all devices together",
                el_json_text(document, "model", "?"), el_json_text(document, "dtype", "?"),
                el_json_text(document, "optimizer", "?"),
                weak ? "samples per second over n times those of one device"
                     : "one device's step over n times that of n");
    fputc('\n', out);
}

/* At least two devices. */
static const json_t *largest_own(const json_t *rows, const json_t *of)
{
    const json_t *found = NULL, *mode = json_object_get(of, "mode");
    double most = 1;
    EL_EACH(row, rows) {
        double n = el_json_number(row, "devices");
        bool of_mode = json_equal(json_object_get(row, "mode"), mode);
        if (!of_mode || is_shared(row) || !(n > most) || !is_finished(row)) continue;
        found = row;
        most = n;
    }
    return found;
}

/* "; 12 of 40 ms per step are lost, mostly to exposed communication (7.1 ms)". */
static void name_loss(const json_t *step, char text[TEXT_BYTES])
{
    static const struct {
        const char *name, *words;
    } parts[] = {{"compute_ms", "slower compute, even without communication"},
                 {"contention_ms", "compute slowed by communication"},
                 {"exposed_ms", "exposed communication"},
                 {"idle_ms", "waiting and copies"}};
    size_t most = 0;
    char lost[EL_FIGURE_BYTES], part[EL_FIGURE_BYTES];
    text[0] = 0;
    for (size_t i = 1; i < sizeof parts / sizeof parts[0]; i++)
        if (el_json_number(step, parts[i].name) > el_json_number(step, parts[most].name)) most = i;
    double lost_ms = el_json_number(step, "lost_ms"), value = el_json_number(step, parts[most].name);
    if (!(lost_ms > 0) || !(value > 0)) return;
    snprintf(text, TEXT_BYTES, "; %s of %.4g ms per step are lost, mostly to %s (%s ms)", el_text_figure(lost_ms, lost),
             el_json_number(step, "step_ms"), parts[most].words, el_text_figure(value, part));
}

/* " Products take 2 % longer than alone, other ops 45 %: the devices share the memory's bandwidth." */
static void name_slower(const json_t *step, char text[TEXT_BYTES])
{
    static const double CLEARLY_PCT = 5; /* more than noise between launches */
    const double products = el_json_number(step, "products_longer_pct"),
                 others = el_json_number(step, "others_longer_pct");
    text[0] = 0;
    if (isnan(products + others) || !(fmax(products, others) > CLEARLY_PCT)) return;
    snprintf(text, TEXT_BYTES, " Matrix products take %.0f %% longer than in plain single, other ops %.0f %%: %s.",
             products, others,
             others > 2 * products ? "the devices share the memory's bandwidth"
                                   : "the cores are slower (clock, or other work: --json, system)");
}

/* `doubt`: ", suspect". */
static void judge(const json_t *plain, double n, const char *doubt, char text[TEXT_BYTES])
{
    double low = el_json_number(plain, "speedup_ci95.0"), high = el_json_number(plain, "speedup_ci95.1");
    char from[EL_FIGURE_BYTES], to[EL_FIGURE_BYTES];
    text[0] = 0;
    if (!isnan(low) && !isnan(high))
        snprintf(text, TEXT_BYTES, " (%s to %s%s)%s", el_text_figure(low, from), el_text_figure(high, to), doubt,
                 low > n     ? ": superlinear: check the baseline"
                 : high < 1  ? ": slower than one device"
                 : low <= 1  ? ": no significant speed-up"
                 : high >= n ? ": consistent with ideal"
                             : "");
}

static const json_t *doubtful_of(const json_t *rows, const json_t *row)
{
    if (el_report_doubt(row)) return row;
    EL_EACH(other, rows)
        if (json_is_null(json_object_get(other, "plain")) && el_report_doubt(other)) return other;
    return NULL;
}

/* A doubtful speed-up is stated with its doubt. */
static void say_of_mode(const json_t *rows, const json_t *row, FILE *out, const char **reason_p)
{
    const json_t *plain = json_object_get(row, "plain"), *doubtful = doubtful_of(rows, row);
    const char *mode = el_json_text(row, "mode", "?"), *doubt = doubtful ? el_report_doubt(doubtful) : NULL;
    const char *simulated = el_json_is(row, "verdict", "simulated") ? "simulated " : "";
    double n = el_json_number(row, "devices");
    char loss[TEXT_BYTES], slower[TEXT_BYTES], judged[TEXT_BYTES], speedup[EL_FIGURE_BYTES], word[32] = "",
                                                                                             why[2 * TEXT_BYTES] = "";
    if (doubt) snprintf(word, sizeof word, ", %s", el_report_verdict(doubtful));
    if (doubt) snprintf(why, sizeof why, " It is %s: %s.", el_report_verdict(doubtful), doubt);
    name_loss(json_object_get(row, "step"), loss);
    name_slower(json_object_get(row, "step"), slower);
    judge(plain, n, word, judged);
    if (doubt && !*judged && !*simulated) {
        EL_ITEM(out, "%s on %.0f devices: no speed-up is stated.%s", mode, n, why);
        return;
    }
    EL_ITEM(out, "%s on %.0f %sdevices: %s times plain single%s%s.%s%s", mode, n, simulated,
            el_text_figure(el_json_number(plain, "speedup"), speedup), judged, loss, slower, why);
    if (!*judged) *reason_p = el_json_text(plain, "reason", "they have none");
}

static void say_none(const json_t *rows, FILE *out)
{
    bool several = false, finished = false;
    EL_EACH(row, rows) {
        if (!(el_json_number(row, "devices") > 1)) continue;
        several = true;
        finished = finished || is_finished(row);
    }
    EL_ITEM(out, "%s: no statement about scaling.",
            finished  ? "No count above 1 has a core or card for each device"
            : several ? "No count above 1 finished"
                      : "There is no count above 1");
}

static void say_modes(const json_t *rows, FILE *out)
{
    const char *reason = NULL;
    bool own = false;
    /* null devices: only the harness is left */
    if (strncmp(el_json_text(json_array_get(rows, 0), "device_names.0", ""), "null:", 5) == 0) {
        EL_ITEM(out, "Null devices compute nothing: these times are the harness's own and say nothing about scaling.");
        return;
    }
    EL_EACH(of, rows) {
        const json_t *row = el_data_seen(rows, of_at.i, "mode") ? NULL : largest_own(rows, of);
        if (row) say_of_mode(rows, row, out, &reason);
        own = own || row;
    }
    if (reason) EL_ITEM(out, "Without an interval: %s.", reason);
    if (!own) say_none(rows, out);
}

static void say_shared(const json_t *rows, FILE *out)
{
    const json_t *least = NULL;
    EL_EACH(row, rows) {
        bool less = !least || el_json_number(row, "devices") < el_json_number(least, "devices");
        if (is_shared(row) && less) least = row;
    }
    if (!least) return;
    EL_ITEM(out, "From %.0f devices on (marked *, drawn open): %s. Their times say nothing about scaling.",
            el_json_number(least, "devices"), el_json_text(least, "shared", ""));
}

static void say_blocks(const json_t *rows, FILE *out)
{
    EL_EACH(row, rows) {
        double step = el_json_number(row, "step.step_ms"), blocks = el_json_number(row, "step.blocks_step_ms");
        if (fabs(blocks / step - 1) > 0.1)
            EL_ITEM(out,
                    "%s on %.0f: contention and comm. costs were measured in control blocks, whose steps took %.4g ms "
                    "instead "
                    "of %.4g: contention is scaled to that.",
                    el_json_text(row, "mode", "?"), el_json_number(row, "devices"), blocks, step);
    }
}

static void say_all(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows");
    say_modes(rows, out);
    say_shared(rows, out);
    /* other programs affect one device and two differently */
    bool disturbed = false, intervals = false;
    EL_EACH(row, rows) {
        disturbed |= el_scale_disturbed(row);
        intervals |= json_is_array(el_json_at(row, "plain.speedup_ci95"));
    }
    if (disturbed && intervals) EL_ITEM(out, "Other programs were running; a rerun may fall outside these intervals.");
    say_blocks(rows, out);
    el_report_warnings(rows, "shared_", out);
    el_report_warnings(json_object_get(document, "predicted"), "shared_", out);
}

void el_scale_print(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows");
    print_heading(document, out);
    print_speedups(rows, out);
    print_predicted(document, out);
    print_losses(rows, out);
    el_report_axis_list(json_incref(json_object_get(document, "axes")), out);
    fputc('\n', out);
    say_all(document, out);
}
