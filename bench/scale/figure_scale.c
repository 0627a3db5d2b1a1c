/* Speed-up with the ideal line, and efficiency below. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/plot/data_file.h"
#include "bench/scale/scale.h"

enum { BARS = 12 };

/* After the largest count; a ratio, on a logarithmic axis. */
static const double MARGIN = 1.25;
static const double BESIDE = 1.04; /* between two points of one count, likewise */

static double most_devices(const json_t *rows)
{
    return fmax(1, el_json_highest(rows, "devices"));
}

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

/* A missing end would drop the point. */
static void put_point(double value, double low, double high, FILE *file)
{
    el_data_number(file, value);
    el_data_number(file, isnan(low) ? value : low);
    el_data_number(file, isnan(high) ? value : high);
}

/* Points of one count are placed side by side around it. */
static double place_of(const json_t *all, const json_t *row)
{
    double devices = el_json_number(row, "devices");
    int n = 0, own = 0;
    EL_EACH(other, all) {
        if (el_json_number(other, "devices") != devices) continue;
        if (other == row) own = n;
        n++;
    }
    return devices * pow(BESIDE, own - (n - 1) / 2.0);
}

static void put_points(const json_t *rows, const json_t *all, FILE *file)
{
    el_data_block(file,
                  "place (devices, or beside), speed-up against plain single, ci95 low, high, efficiency %, ci95 low, "
                  "high, mode, "
                  "whether the devices share a core or a card, whether it is valid",
                  "points");
    EL_EACH(row, rows) {
        const json_t *plain = json_object_get(row, "plain");
        if (isnan(el_json_number(row, "samples_per_s"))) continue;
        bool held = json_is_object(plain); /* baselines have no `plain` */
        fprintf(file, "%g", place_of(all, row));
        put_point(held ? el_json_number(plain, "speedup") : 1, el_json_number(plain, "speedup_ci95.0"),
                  el_json_number(plain, "speedup_ci95.1"), file);
        put_point(held ? 100 * el_json_number(plain, "efficiency") : 100,
                  100 * el_json_number(plain, "efficiency_ci95.0"), 100 * el_json_number(plain, "efficiency_ci95.1"),
                  file);
        fprintf(file, "\t%s\t%d\t%d\n", el_data_word(el_json_text(row, "mode", "?")).text,
                json_is_string(json_object_get(row, "shared")), !el_data_has_mark(row));
    }
    fputs("?\t?\t?\t?\t?\t?\t?\t_\t0\t1\n", file); /* a block is never empty */
}

/* From the mode's last measured point before the prediction. */
static void put_predicted(const json_t *rows, const json_t *predicted, const json_t *all, FILE *file)
{
    el_data_block(file,
                  "place, speed-up against plain single, ci95 low, high, efficiency %, ci95 low, high, mode, "
                  "whether it is a point",
                  "predicted");
    EL_EACH(row, predicted) {
        const char *mode = el_json_text(row, "mode", "?");
        const struct el_data_text word = el_data_word(mode);
        const json_t *plain = json_object_get(row, "plain"), *last = NULL;
        EL_EACH(other, el_data_seen(predicted, row_at.i, "mode") ? NULL : rows)
            if (el_json_is(other, "mode", mode) && el_json_number(other, "plain.speedup") > 0 &&
                el_json_number(other, "devices") < el_json_number(row, "devices"))
                last = other;
        if (last)
            fprintf(file, "%g\t%g\t?\t?\t%g\t?\t?\t%s\t0\n", place_of(all, last), el_json_number(last, "plain.speedup"),
                    100 * el_json_number(last, "plain.efficiency"), word.text);
        fprintf(file, "%g", place_of(all, row));
        put_point(el_json_number(plain, "speedup"), el_json_number(plain, "speedup_ci95.0"),
                  el_json_number(plain, "speedup_ci95.1"), file);
        put_point(100 * el_json_number(plain, "efficiency"), 100 * el_json_number(plain, "efficiency_ci95.0"),
                  100 * el_json_number(plain, "efficiency_ci95.1"), file);
        fprintf(file, "\t%s\t1\n", word.text);
    }
    fputs("?\t?\t?\t?\t?\t?\t?\t_\t0\n", file);
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
    const json_t *rows = json_object_get(document, "rows"), *predicted = json_object_get(document, "predicted");
    json_t *all = json_copy((json_t *)rows);
    bool weak = strcmp(el_json_text(document, "scaling", ""), "weak") == 0;
    char title[EL_TITLE_BYTES], foot[EL_TITLE_BYTES], words[EL_TITLE_BYTES] = "";
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
    json_array_extend(all, (json_t *)predicted);
    find_extent(all, &low, &high);
    snprintf(words, sizeof words, "%s%s%s%s", "Points are shifted sideways to separate modes.",
             has_intervals(all) ? " Bars: 95 % intervals." : "",
             *modes.thin ? " Open markers: devices share a core or card." : "",
             json_array_size(predicted) ? " Dashed lines, open markers: predicted." : "");
    el_data_foot(rows, words, foot);
    el_data_about(file, &(struct el_data_about){title, &modes, most_devices(all) * MARGIN, BARS, foot},
                  ", left end, lowest and highest speed-up");
    fprintf(file, "\t%.6g\t%.6g\t%.6g\n", 1 / MARGIN, low / MARGIN, high * MARGIN);
    el_data_warning(file, rows, NULL);
    el_data_looks(file, &modes);
    put_axes(all, file);
    put_points(rows, all, file);
    put_predicted(rows, predicted, all, file);
    json_decref(all);
    *any_p = true;
    return EL_OK;
}

const struct el_figure el_figure_scale = {.name = "scale", .write = write_scale};
