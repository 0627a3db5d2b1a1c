/* The table card by card: a line a card, under each trial a line with the difference; then the measures, and sentences.
 * Which tags have a column of their own is by their size; the others are summed up. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/plot/data_file.h"
#include "bench/record/metrics.h"
#include "bench/report/parts.h"
#include "bench/report/report.h"
#include "runtime/base/probe.h"

enum { COLUMNS = 110, NAME_WIDTH = 17, WIDTH = 8, NARROW = 7, CARDS_SHOWN = 8, CELLS_MAX = 16, N_GROUPS = 9 };

/* A tag below this part of the largest goes among the others. */
#define COLUMN_RATIO 0.003

/* Differences below 0.001 MiB are a rounding of the shares, and shown as none. */
#define DIFFERENCE_MIN_BYTES (1048576 * 0.001)

/* Tags that are one column: a replica is a copy of the parameters. */
static const struct group {
    const char *head;
    int first, second; /* EL_TAG_COUNT: none */
} groups[N_GROUPS] = {{"model", EL_TAG_PARAM, EL_TAG_REPLICA},    {"grad", EL_TAG_GRAD, EL_TAG_COUNT},
                      {"optim.", EL_TAG_OPTIMIZER, EL_TAG_COUNT}, {"activ.", EL_TAG_ACTIVATION, EL_TAG_COUNT},
                      {"input", EL_TAG_INPUT, EL_TAG_COUNT},      {"output", EL_TAG_OUTPUT, EL_TAG_COUNT},
                      {"bucket", EL_TAG_BUCKET, EL_TAG_COUNT},    {"worksp.", EL_TAG_WORKSPACE, EL_TAG_COUNT},
                      {"padding", EL_TAG_PADDING, EL_TAG_COUNT}};

/* What columns the table has, the same for all trials. */
struct shape {
    bool group[N_GROUPS];
    bool ran;          /* times and bytes moved were recorded */
    bool unattributed; /* ... and what the system says */
};

static double tag_bytes(const json_t *device, int tag)
{
    double bytes = tag == EL_TAG_COUNT
                       ? NAN
                       : el_json_number(el_json_at(device, "memory.at_peak_by_tag"), el_tag_name((enum el_tag)tag));
    return isnan(bytes) ? 0 : bytes;
}

static double group_bytes(const json_t *device, int g)
{
    return tag_bytes(device, groups[g].first) + tag_bytes(device, groups[g].second);
}

/* The largest of any device in any trial. */
static double largest(const json_t *trials, int g)
{
    double most = 0;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i), *devices = json_object_get(trial, "per_device");
        for (size_t k = 0; k < json_array_size(devices) && el_imbalance_has_cards(trial); k++)
            most = fmax(most, group_bytes(json_array_get(devices, k), g));
    }
    return most;
}

static bool has_figure(const json_t *trials, const char *path)
{
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        if (el_imbalance_has_cards(trial) && !isnan(el_json_number(trial, path))) return true;
    }
    return false;
}

static struct shape shape_of(const json_t *trials)
{
    struct shape shape = {.ran = has_figure(trials, "per_device.0.sent_bytes"),
                          .unattributed = has_figure(trials, "per_device.0.memory.unattributed_bytes")};
    double sizes[N_GROUPS], least = 0;
    int room = (COLUMNS - NAME_WIDTH - WIDTH * (3 + shape.unattributed) - NARROW * 3 * shape.ran) / WIDTH;
    for (int g = 0; g < N_GROUPS; g++) {
        sizes[g] = largest(trials, g);
        least = fmax(least, sizes[g] * COLUMN_RATIO);
    }
    for (; room > 0; room--) {
        int most = 0;
        for (int g = 1; g < N_GROUPS; g++)
            if (sizes[g] > sizes[most]) most = g;
        if (!(sizes[most] > least)) break;
        shape.group[most] = true;
        sizes[most] = 0;
    }
    return shape;
}

/* A card's figures in the order of the columns; the last three are per cent and bytes moved where it `ran`. Returns how
 * many. */
static int cells_of(const json_t *device, const struct shape *shape, double cells[CELLS_MAX])
{
    int n = 0;
    double other = 0;
    cells[n++] = el_json_number(device, "memory.peak_bytes");
    for (int g = 0; g < N_GROUPS; g++) {
        if (shape->group[g])
            cells[n++] = group_bytes(device, g);
        else
            other += group_bytes(device, g);
    }
    cells[n++] = other;
    cells[n++] = el_imbalance_highs(device);
    if (shape->unattributed) cells[n++] = el_json_number(device, "memory.unattributed_bytes");
    if (!shape->ran) return n;
    cells[n++] = el_json_number(device, "utilization.busy_pct");
    cells[n++] = el_json_number(device, "sent_bytes");
    cells[n++] = el_json_number(device, "received_bytes");
    return n;
}

/* Whether cell `c` of `n` is no number of bytes. */
static bool is_pct(int c, int n, bool ran)
{
    return ran && c == n - 3;
}

/* Each cell after a blank at least, however wide it or the one before is. */
static void put_cells(const char *name, const double *cells, int n, bool ran, FILE *out)
{
    char line[EL_TABLE_LINE_BYTES], text[EL_FIGURE_BYTES];
    int used = snprintf(line, sizeof line, "%-*s", NAME_WIDTH, name), end = NAME_WIDTH;
    for (int c = 0; c < n; c++) {
        const char *cell = is_pct(c, n, ran) ? el_text_figure(cells[c], text) : el_text_mib(cells[c], text);
        end += ran && c >= n - 3 ? NARROW : WIDTH;
        int blanks = end - used - (int)strlen(cell);
        used += snprintf(line + used, sizeof line - (size_t)used, "%*s%s", blanks > 1 ? blanks : 1, "", cell);
    }
    el_table_line(out, EL_TABLE_PLAIN, false, line);
}

static void put_heads(const struct shape *shape, FILE *out, bool colour)
{
    char line[EL_TABLE_LINE_BYTES];
    int used = snprintf(line, sizeof line, "%-*s%*s", NAME_WIDTH, "card", WIDTH, "memory");
    for (int g = 0; g < N_GROUPS; g++)
        if (shape->group[g]) used += snprintf(line + used, sizeof line - (size_t)used, "%*s", WIDTH, groups[g].head);
    used += snprintf(line + used, sizeof line - (size_t)used, "%*s%*s", WIDTH, "other", WIDTH, "peaks");
    if (shape->unattributed) used += snprintf(line + used, sizeof line - (size_t)used, "%*s", WIDTH, "unattr.");
    if (shape->ran)
        snprintf(line + used, sizeof line - (size_t)used, "%*s%*s%*s", NARROW, "busy %", NARROW, "sent", NARROW,
                 "recv");
    el_table_line(out, EL_TABLE_BOLD, colour, line);
}

/* Main minus the mean of the others. */
static void put_difference(const json_t *devices, const struct shape *shape, FILE *out)
{
    double difference[CELLS_MAX], cells[CELLS_MAX], others[CELLS_MAX] = {0};
    size_t n = json_array_size(devices);
    int n_cells = cells_of(json_array_get(devices, 0), shape, difference);
    for (size_t k = 1; k < n; k++) {
        cells_of(json_array_get(devices, k), shape, cells);
        for (int c = 0; c < n_cells; c++) others[c] += cells[c];
    }
    for (int c = 0; c < n_cells; c++) {
        difference[c] -= others[c] / (double)(n - 1);
        if (fabs(difference[c]) < DIFFERENCE_MIN_BYTES && !is_pct(c, n_cells, shape->ran)) difference[c] = 0;
    }
    put_cells(n == 2 ? "  main - second" : "  main - others", difference, n_cells, shape->ran, out);
}

static void put_cards(const json_t *devices, const struct shape *shape, FILE *out)
{
    double cells[CELLS_MAX], low = INFINITY, high = 0;
    char name[64], card[16], from[EL_FIGURE_BYTES], to[EL_FIGURE_BYTES];
    size_t n = json_array_size(devices);
    for (size_t k = 0; k < n; k++) {
        const json_t *device = json_array_get(devices, k);
        int n_cells = cells_of(device, shape, cells);
        snprintf(name, sizeof name, "  %-7s %s", el_imbalance_card(k, card), el_json_text(device, "device", "?"));
        if (k < CARDS_SHOWN) put_cells(name, cells, n_cells, shape->ran, out);
        if (k < CARDS_SHOWN) continue;
        low = fmin(low, cells[0]);
        high = fmax(high, cells[0]);
    }
    if (n > CARDS_SHOWN)
        fprintf(out, "  and %zu more cards, %s to %s MiB each (--json has them all)\n", n - CARDS_SHOWN,
                el_text_mib(low, from), el_text_mib(high, to));
    put_difference(devices, shape, out);
}

static void put_trial(const json_t *trial, const struct shape *shape, FILE *out, bool colour)
{
    char head[192], batch[64];
    const char *status = el_json_text(trial, "status", "failed"), *verdict = el_report_verdict(trial);
    bool doubtful = !strcmp(verdict, "suspect") || !strcmp(verdict, "unchecked");
    el_table_batch(trial, batch, sizeof batch);
    snprintf(head, sizeof head, "%s, batch %s: ", el_json_text(trial, "mode", "?"), batch);
    if (strcmp(status, "ok") != 0) {
        char text[EL_TABLE_LINE_BYTES];
        snprintf(text, sizeof text, "%s: %s", status, el_json_text(trial, "reason", "no reason was given"));
        el_text_wrap(text, head, "  ", COLUMNS, out);
    } else {
        char line[256];
        snprintf(line, sizeof line, "%s%s%s", head, verdict, doubtful ? " times" : "");
        el_table_line(out, doubtful ? EL_TABLE_YELLOW : EL_TABLE_BOLD, colour, line);
    }
    if (el_imbalance_has_cards(trial)) put_cards(json_object_get(trial, "per_device"), shape, out);
}

static void put_legend(const struct shape *shape, FILE *out)
{
    char text[1024];
    snprintf(
        text, sizeof text,
        "MiB of the ledger at each card's own peak. model: the parameters, or a replica of them. peaks: sum of each "
        "tag's own peak, without workspace: what nvidia-smi shows for a caching allocator.%s%s",
        shape->unattributed ? " unattr.: what the system reports beyond that peak." : "",
        shape->ran ? " sent, recv: MiB per step." : "");
    el_text_wrap(text, "", "", COLUMNS, out);
}

/* A line of measures: the record's, under the heads of their rows; a doubtful trial's times are called so. Nothing
 * where they were not recorded. */
static void put_measure(const json_t *trial, const char *head, const char *of, const char *words, FILE *out)
{
    char prefix[64], line[EL_TABLE_LINE_BYTES], text[EL_FIGURE_BYTES];
    bool known = false;
    snprintf(prefix, sizeof prefix, "imbalance_%s_", of);
    int used = snprintf(line, sizeof line, "  %-26s%-8s", head, words);
    for (const struct el_metric *m = el_metric_list(); m->name; m++) {
        if (strncmp(m->name, prefix, strlen(prefix)) != 0) continue;
        double value = el_metric_value(m, trial, NULL);
        known |= !isnan(value);
        snprintf(text, sizeof text, isnan(value) ? "-" : strcmp(m->unit, "%") ? "%.3f" : "%.1f", value);
        used += snprintf(line + used, sizeof line - (size_t)used, "%13s", text);
    }
    if (!strcmp(of, "busy") && strcmp(el_report_verdict(trial), "valid") != 0)
        snprintf(line + used, sizeof line - (size_t)used, "  %s", el_report_verdict(trial));
    if (known) el_table_line(out, EL_TABLE_PLAIN, false, line);
}

static void put_measures(const json_t *trials, FILE *out, bool colour)
{
    char line[EL_TABLE_LINE_BYTES], head[128], batch[64];
    int used = snprintf(line, sizeof line, "%-36s", "how uneven");
    for (const struct el_metric *m = el_metric_list(); m->name; m++) {
        if (strncmp(m->name, "imbalance_memory_", strlen("imbalance_memory_")) != 0) continue;
        snprintf(head, sizeof head, "%s%s", m->label, strcmp(m->unit, "%") ? "" : " %");
        used += snprintf(line + used, sizeof line - (size_t)used, "%13s", head);
    }
    el_table_line(out, EL_TABLE_BOLD, colour, line);
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        if (!el_imbalance_has_cards(trial)) continue;
        el_table_batch(trial, batch, sizeof batch);
        snprintf(head, sizeof head, "%s, batch %s", el_json_text(trial, "mode", "?"), batch);
        put_measure(trial, head, "memory", "memory", out);
        put_measure(trial, "", "busy", "busy", out);
        put_measure(trial, "", "bytes", "sent", out);
    }
}

void el_imbalance_print(const json_t *run, FILE *out, bool colour)
{
    const json_t *trials = json_object_get(run, "trials");
    struct shape shape = shape_of(trials);
    char title[EL_TITLE_BYTES];
    el_data_title(trials, title);
    fprintf(out, "Card by card: %s\n\n", title);
    put_heads(&shape, out, colour);
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        if (el_imbalance_has_cards(trial) || strcmp(el_json_text(trial, "status", ""), "ok") != 0)
            put_trial(trial, &shape, out, colour);
    }
    fputc('\n', out);
    put_legend(&shape, out);
    fputc('\n', out);
    put_measures(trials, out, colour);
    el_report_warnings(trials, out, colour);
    fputc('\n', out);
    el_imbalance_sentences(trials, out);
}
