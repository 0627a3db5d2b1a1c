/* The figure of scaling: speed-up over devices with the ideal line, and efficiency below it. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/plot/data_file.h"
#include "bench/scale/scale.h"

enum { BARS = 12 };

/* Between the largest count and the frame, as a ratio: on a logarithmic axis it is the same everywhere. */
static const double MARGIN = 1.25;
static const double BESIDE = 1.05; /* between two modes at one count, likewise */

static double most_devices(const json_t *rows)
{
    return fmax(1, el_json_highest(rows, "devices"));
}

/* The lowest and the highest end of any whisker of speed-up, and of the ideal line. */
static void find_extent(const json_t *rows, double *low_p, double *high_p)
{
    static const char *const paths[] = {"plain.speedup", "plain.speedup_ci95.0", "plain.speedup_ci95.1"};
    *low_p = 1;
    *high_p = most_devices(rows);
    for (size_t k = 0; k < sizeof paths / sizeof paths[0]; k++) {
        double low, high;
        el_json_range(rows, paths[k], &low, &high);
        *low_p = low > 0 ? fmin(*low_p, low) : *low_p;
        *high_p = fmax(*high_p, high);
    }
}

static bool has_intervals(const json_t *rows)
{
    bool any = false;
    EL_EACH(row, rows) any |= el_json_number(row, "plain.speedup_ci95.1") > el_json_number(row, "plain.speedup_ci95.0");
    return any;
}

/* Whiskers of no length where there is no interval: a missing end would drop the point. */
static void put_point(double value, double low, double high, FILE *file)
{
    el_data_number(file, value);
    el_data_number(file, isnan(low) ? value : low);
    el_data_number(file, isnan(high) ? value : high);
}

/* Where a row's points stand: beside its count, by its mode, so that none lies on another. */
static double place_of(const json_t *rows, const json_t *row)
{
    const json_t *mode = json_object_get(row, "mode");
    int n = 0, own = 0;
    EL_EACH(other, rows) {
        if (el_data_seen(rows, other_at.i, "mode")) continue;
        if (json_equal(json_object_get(other, "mode"), mode)) own = n;
        n++;
    }
    double devices = el_json_number(row, "devices");
    return devices * pow(BESIDE, own - (n - 1) / 2.0);
}

static void put_points(const json_t *rows, FILE *file)
{
    el_data_block(file,
                  "place (devices, or beside), speed-up against plain single, ci95 low, high, efficiency %, ci95 low, "
                  "high, mode, "
                  "whether the devices share a core or a card, whether it is valid",
                  "points");
    EL_EACH(row, rows) {
        const json_t *plain = json_object_get(row, "plain");
        if (isnan(el_json_number(row, "samples_per_s"))) continue;
        bool held = json_is_object(plain); /* the others are what is held against */
        fprintf(file, "%g", place_of(rows, row));
        put_point(held ? el_json_number(plain, "speedup") : 1, el_json_number(plain, "speedup_ci95.0"),
                  el_json_number(plain, "speedup_ci95.1"), file);
        put_point(held ? 100 * el_json_number(plain, "efficiency") : 100,
                  100 * el_json_number(plain, "efficiency_ci95.0"), 100 * el_json_number(plain, "efficiency_ci95.1"),
                  file);
        fprintf(file, "\t%s\t%d\t%d\n", el_data_word(el_json_text(row, "mode", "?")).text,
                json_is_string(json_object_get(row, "shared")), !el_data_has_mark(row));
    }
    fputs("?\t?\t?\t?\t?\t?\t?\t_\t0\t1\n", file); /* so that the block is never empty */
}

static void put_axes(const json_t *rows, FILE *file)
{
    double most = most_devices(rows) * MARGIN;
    el_data_block(file, "devices, speed-up, efficiency %", "ideal");
    fprintf(file, "%.6g\t%.6g\t100\n%.6g\t%.6g\t100\n", 1 / MARGIN, 1 / MARGIN, most, most);
    el_data_block(file, "devices, label", "counts");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        double devices = el_json_number(json_array_get(rows, i), "devices");
        if (!el_data_seen(rows, i, "devices")) fprintf(file, "%.0f\t%.0f\n", devices, devices);
    }
}

/* Whether a row of the mode of row `of` has devices that share. */
static bool shares(const json_t *rows, size_t of)
{
    const json_t *mode = json_object_get(json_array_get(rows, of), "mode");
    bool shared = false;
    EL_EACH(row, rows)
        shared |= json_equal(json_object_get(row, "mode"), mode) && json_is_string(json_object_get(row, "shared"));
    return shared;
}

/* "Strong scaling: 64 samples per step on all devices; textcnn, f32" */
static enum el_status write_scale(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    (void)figure;
    const json_t *rows = json_object_get(document, "rows");
    bool weak = strcmp(el_json_text(document, "scaling", ""), "weak") == 0;
    char title[EL_TITLE_BYTES], foot[EL_TITLE_BYTES], words[EL_TITLE_BYTES];
    struct el_data_names modes = {"", ""}; /* `thin`: with devices that share */
    double low, high;
    EL_EACH(row, rows) {
        const char *mode = el_json_text(row, "mode", "?");
        if (el_data_seen(rows, row_at.i, "mode")) continue;
        el_data_add_name(modes.present, mode);
        if (shares(rows, row_at.i)) el_data_add_name(modes.thin, mode);
    }
    snprintf(title, sizeof title, "%s scaling: %.0f samples per step on %s; %s, %s%s", weak ? "Weak" : "Strong",
             el_json_number(document, "batch"), weak ? "each device" : "all devices",
             el_data_label(el_json_text(document, "model", "?")).text,
             el_data_label(el_json_text(document, "dtype", "?")).text,
             json_is_true(json_object_get(document, "simulated")) ? " (simulated)" : "");
    find_extent(rows, &low, &high);
    snprintf(words, sizeof words, "modes stand side by side%s%s",
             has_intervals(rows) ? "; whiskers: 95 % interval" : "",
             *modes.thin ? "; hollow: devices share a core or card" : "");
    el_data_foot(rows, words, foot);
    el_data_about(file, &(struct el_data_about){title, &modes, most_devices(rows) * MARGIN, BARS, foot},
                  ", left end, lowest and highest speed-up");
    fprintf(file, "\t%.6g\t%.6g\t%.6g\n", 1 / MARGIN, low / MARGIN, high * MARGIN);
    el_data_warning(file, rows, NULL);
    el_data_looks(file, &modes);
    put_axes(rows, file);
    put_points(rows, file);
    *any_p = true;
    return EL_OK;
}

const struct el_figure el_figure_scale = {.name = "scale", .write = write_scale};
