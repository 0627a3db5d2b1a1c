/* The best of each mode on several numbers of devices: the document, its rows for spreadsheets, and the picture. */
#include <math.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/plan/plan.h"

static const char *const OF_TOKENS = "tokens_per_s", *const OF_SAMPLES = "samples_per_s";

/* ---- the document ---- */

/* Of rows that are sorted, the first of each mode. */
static enum el_status add_best(const struct el_options *run, const json_t *rows, json_t *best)
{
    json_t *seen = json_object();
    enum el_status status = EL_OK;
    EL_EACH(row, rows) {
        const char *mode = el_json_text(row, "mode", "?");
        if (status != EL_OK || !json_is_true(json_object_get(row, "fits")) || json_object_get(seen, mode)) continue;
        json_object_set_new(seen, mode, json_true());
        el_json_put_all(row, EL_KEY("devices", run->n_devices),
                        EL_KEY("global_batch", run->batches[0] * (run->batch_is_per_device ? run->n_devices : 1)));
        status = el_plan_detail(run, false, row);
        json_array_append(best, row);
    }
    json_decref(seen);
    return status;
}

enum el_status el_plan_sizes(const struct el_options *options, json_t **document_p)
{
    json_t *best = json_array(), *none = json_array();
    enum el_status status = EL_OK;
    for (int i = 0; i < options->sizes.n && status == EL_OK; i++) {
        const size_t before = json_array_size(best);
        struct el_options run;
        json_t *rows;
        el_plan_options(options, options->sizes.v[i], &run);
        status = el_plan_rows(&run, true, &rows);
        if (status != EL_OK) break;
        status = add_best(&run, rows, best);
        json_decref(rows);
        if (json_array_size(best) == before) json_array_append_new(none, json_integer(run.n_devices));
    }
    if (status == EL_OK)
        *document_p = el_json_of(EL_KEY("rows", best), EL_KEY("none_fits", none));
    else
        json_decref(best), json_decref(none);
    return status;
}

static bool is_ours(const json_t *document)
{
    return el_json_is(document, "command", "plan") && el_json_whole(document, "schema") == 1;
}

enum el_status el_plan_read(const char *path, json_t **document_p)
{
    return el_read_document(path, is_ours, "plan", document_p);
}

enum el_status el_plan_csv(const void *document, FILE *out)
{
    static const char *const texts[] = {"mode", "mesh"}, *const numbers[] = {
                                                             "devices",         "global_batch", "micro",
                                                             "accumulate",      "step_ms",      OF_SAMPLES,
                                                             OF_TOKENS,         "mfu_pct",      "exposed_ms",
                                                             "bubble_pct",      "peak_bytes",   "sent_bytes",
                                                             "checkpoint_bytes"};
    enum { N_TEXTS = sizeof texts / sizeof texts[0], N_NUMBERS = sizeof numbers / sizeof numbers[0] };
    for (int i = 0; i < N_TEXTS; i++) fprintf(out, "%s,", texts[i]);
    for (int i = 0; i < N_NUMBERS; i++) fprintf(out, "%s%s", numbers[i], i + 1 < N_NUMBERS ? "," : "\n");
    EL_EACH(row, json_object_get(document, "rows")) {
        for (int i = 0; i < N_TEXTS; i++) fprintf(out, "\"%s\",", el_json_text(row, texts[i], ""));
        for (int i = 0; i < N_NUMBERS; i++) {
            char text[32];
            const double value = el_json_number(row, numbers[i]);
            fprintf(out, "%s%s", isnan(value) ? "" : el_json_written(value, text), i + 1 < N_NUMBERS ? "," : "\n");
        }
    }
    return EL_OK;
}

/* ---- the picture ---- */

static const double MARGIN = 1.3; /* left and right of what is drawn */
static const double ALIKE = 0.01; /* of the highest rate: a line that is no further off covers another */
enum { BARS = 12 };

static double per_device(const json_t *row, const char *of)
{
    return el_json_number(row, of) / el_json_number(row, "devices");
}

struct lines {
    const json_t *rows;
    const char *of, *names[EL_LIST_MAX];
    int n;
    double high;
};

static const json_t *find(const json_t *rows, const char *mode, double devices)
{
    EL_EACH(row, rows)
        if (el_json_is(row, "mode", mode) && el_json_number(row, "devices") == devices) return row;
    return NULL;
}

/* How many of the modes that are drawn after the k-th cover its line. */
static int count_over(const struct lines *lines, int k)
{
    int over = 0;
    for (int i = k + 1; i < lines->n; i++) {
        bool alike = true;
        EL_EACH(row, lines->rows) {
            const json_t *other = find(lines->rows, lines->names[i], el_json_number(row, "devices"));
            if (el_json_is(row, "mode", lines->names[k]) && other)
                alike &= fabs(per_device(row, lines->of) - per_device(other, lines->of)) < ALIKE * lines->high;
        }
        over += alike;
    }
    return over;
}

static void write_head(const json_t *document, const struct lines *lines, bool any_over, FILE *file)
{
    char title[EL_TITLE_BYTES], foot[EL_TITLE_BYTES], text[EL_FIGURE_BYTES];
    struct el_data_names modes = {"", ""};
    double least, most;
    el_json_range(lines->rows, "devices", &least, &most);
    for (int k = 0; k < lines->n; k++) el_data_add_name(modes.present, lines->names[k]);
    snprintf(title, sizeof title, "%s, %s million parameters, %s: predicted", el_json_text(document, "model", "?"),
             el_text_figure(el_json_number(document, "parameters") / 1e6, text),
             el_data_label(el_json_text(document, "machine", "?")).text);
    snprintf(foot, sizeof foot, "Each mode in its best mesh. Dashed: the best on %.0f devices.%s", least,
             any_over ? " A wide line lies under one of the same rate." : "");
    el_data_about(file, &(struct el_data_about){title, &modes, most * MARGIN, BARS, foot},
                  ", left end, highest rate, its unit, the first number's best");
    fprintf(file, "\t%.6g\t%.6g\t%s\t%.6g\n", least / MARGIN, lines->high,
            lines->of == OF_TOKENS ? "tokens/s" : "samples/s", per_device(json_array_get(lines->rows, 0), lines->of));
    el_data_looks(file, &modes);
    el_data_block(file, "devices, label", "counts");
    EL_EACH(row, lines->rows)
        if (!el_data_seen(lines->rows, row_at.i, "devices"))
            fprintf(file, "%.0f\t%.0f\n", el_json_number(row, "devices"), el_json_number(row, "devices"));
}

static enum el_status write(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    const json_t *rows = json_object_get(document, "rows");
    struct lines lines = {.rows = rows};
    int over[EL_LIST_MAX];
    bool any_over = false;
    (void)figure;
    lines.of = isnan(el_json_number(json_array_get(rows, 0), OF_TOKENS)) ? OF_SAMPLES : OF_TOKENS;
    EL_EACH(row, rows) {
        lines.high = fmax(lines.high, per_device(row, lines.of));
        if (!el_data_seen(rows, row_at.i, "mode") && lines.n < EL_LIST_MAX)
            lines.names[lines.n++] = el_json_text(row, "mode", "?");
    }
    *any_p = lines.high > 0;
    if (!*any_p) return EL_OK;
    for (int k = 0; k < lines.n; k++) any_over |= (over[k] = count_over(&lines, k)) > 0;
    write_head(document, &lines, any_over, file);
    for (int k = 0; k < lines.n; k++) {
        el_data_block(file, "devices, rate of a device, lines over it", "points of %s", lines.names[k]);
        EL_EACH(row, rows) {
            if (el_json_is(row, "mode", lines.names[k]))
                fprintf(file, "%.4g\t%.6g\t%d\n", el_json_number(row, "devices"), per_device(row, lines.of), over[k]);
        }
    }
    return EL_OK;
}

const struct el_figure el_figure_plan = {.name = "plan", .write = write, .optional = true};
