/* The figures' data: speed-up over devices with the ideal line, and efficiency below it; and of a sweep of bucket sizes
 * each size's step against the usual one's. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/plot/layout.h"
#include "bench/record/record.h"
#include "bench/scale/scale.h"

enum { BARS = 12 };

/* Between the largest count and the frame, as a ratio: on a logarithmic axis it is the same everywhere. */
static const double MARGIN = 1.25;

static bool is_drawn(const json_t *row)
{
    return !isnan(el_json_number(row, "samples_per_s"));
}

static double most_devices(const json_t *rows)
{
    double most = 1;
    for (size_t i = 0; i < json_array_size(rows); i++)
        most = fmax(most, el_json_number(json_array_get(rows, i), "devices"));
    return most;
}

/* The lowest and the highest end of any whisker of speed-up, and of the ideal line. */
static void find_extent(const json_t *rows, double *low_p, double *high_p)
{
    *low_p = 1;
    *high_p = most_devices(rows);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        static const char *const paths[] = {"plain.speedup", "plain.speedup_ci95.0", "plain.speedup_ci95.1"};
        for (size_t k = 0; k < sizeof paths / sizeof paths[0]; k++) {
            double value = el_json_number(json_array_get(rows, i), paths[k]);
            if (!(value > 0)) continue;
            *low_p = fmin(*low_p, value);
            *high_p = fmax(*high_p, value);
        }
    }
}

static bool seen(const json_t *rows, size_t end, const char *key)
{
    for (size_t i = 0; i < end; i++) {
        const json_t *value = json_object_get(json_array_get(rows, i), key);
        if (json_equal(value, json_object_get(json_array_get(rows, end), key))) return true;
    }
    return false;
}

static void put(double value, FILE *file)
{
    if (isnan(value))
        fputs("\t?", file);
    else
        fprintf(file, "\t%.6g", value);
}

/* Whiskers of no length where there is no interval: a missing end would drop the point. */
static void put_point(double value, double low, double high, FILE *file)
{
    put(value, file);
    put(isnan(low) ? value : low, file);
    put(isnan(high) ? value : high, file);
}

static void write_points(const json_t *rows, FILE *file)
{
    el_layout_begin(file, "points",
                    "devices, speed-up against plain single, ci95 low, high, efficiency %, ci95 low, high, mode, "
                    "whether the devices share a core or a card, whether it is valid");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *plain = json_object_get(row, "plain");
        char mode[EL_NAME_BYTES];
        if (!is_drawn(row)) continue;
        el_layout_name(el_json_text(row, "mode", "?"), mode);
        fprintf(file, "%g", el_json_number(row, "devices"));
        if (json_is_object(plain)) {
            put_point(el_json_number(plain, "speedup"), el_json_number(plain, "speedup_ci95.0"),
                      el_json_number(plain, "speedup_ci95.1"), file);
            put_point(100 * el_json_number(plain, "efficiency"), 100 * el_json_number(plain, "efficiency_ci95.0"),
                      100 * el_json_number(plain, "efficiency_ci95.1"), file);
        } else {
            put_point(1, NAN, NAN, file);
            put_point(100, NAN, NAN, file);
        }
        fprintf(file, "\t%s\t%d\t%d\n", mode, json_is_string(json_object_get(row, "shared")), el_layout_is_valid(row));
    }
    fputs("?\t?\t?\t?\t?\t?\t?\t_\t0\t1\n", file); /* so that the block is never empty */
    el_layout_end(file);
}

static void write_ideal(const json_t *rows, FILE *file)
{
    double most = most_devices(rows) * MARGIN;
    el_layout_begin(file, "ideal", "devices, speed-up, efficiency %");
    fprintf(file, "%.6g\t%.6g\t100\n%.6g\t%.6g\t100\n", 1 / MARGIN, 1 / MARGIN, most, most);
    el_layout_end(file);
}

static void write_ticks(const json_t *rows, FILE *file)
{
    el_layout_begin(file, "counts", "devices, label");
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (!seen(rows, i, "devices"))
            fprintf(file, "%.0f\t%.0f\n", el_json_number(json_array_get(rows, i), "devices"),
                    el_json_number(json_array_get(rows, i), "devices"));
    el_layout_end(file);
}

/* "Strong scaling: 64 samples a step on all devices; textcnn, f32" */
static void title_text(const json_t *document, char title[EL_TITLE_BYTES])
{
    bool weak = strcmp(el_json_text(document, "scaling", ""), "weak") == 0;
    char model[EL_NAME_BYTES], dtype[EL_NAME_BYTES];
    el_layout_text(el_json_text(document, "model", "?"), model, sizeof model);
    el_layout_text(el_json_text(document, "dtype", "?"), dtype, sizeof dtype);
    snprintf(title, EL_TITLE_BYTES, "%s scaling: %.0f samples a step on %s; %s, %s%s", weak ? "Weak" : "Strong",
             el_json_number(document, "batch"), weak ? "each device" : "all devices", model, dtype,
             json_is_true(json_object_get(document, "simulated")) ? " (simulated)" : "");
}

/* Whether an earlier row of row `end`'s mode is of devices that share. */
static bool shares_earlier(const json_t *rows, size_t end)
{
    const json_t *mode = json_object_get(json_array_get(rows, end), "mode");
    for (size_t i = 0; i < end; i++) {
        const json_t *row = json_array_get(rows, i);
        if (json_is_string(json_object_get(row, "shared")) && json_equal(json_object_get(row, "mode"), mode))
            return true;
    }
    return false;
}

static void write_about(const json_t *document, FILE *file)
{
    const json_t *rows = json_object_get(document, "rows");
    char modes[EL_NAMES_BYTES] = "", shared[EL_NAMES_BYTES] = "", foot[EL_TITLE_BYTES], title[EL_TITLE_BYTES],
         mode[EL_NAME_BYTES];
    double low, high;
    find_extent(rows, &low, &high);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        el_layout_name(el_json_text(row, "mode", "?"), mode);
        if (json_is_string(json_object_get(row, "shared")) && !shares_earlier(rows, i))
            el_layout_append(shared, sizeof shared, mode);
        if (seen(rows, i, "mode")) continue;
        el_layout_append(modes, sizeof modes, mode);
    }
    title_text(document, title);
    el_layout_foot(rows, "circled", foot);
    el_layout_begin(file, "about", EL_ABOUT_COLUMNS ", left end, lowest and highest speed-up");
    el_layout_about(file, title, modes, shared, most_devices(rows) * MARGIN, BARS, foot);
    fprintf(file, "\t%.6g\t%.6g\t%.6g\n", 1 / MARGIN, low / MARGIN, high * MARGIN);
    el_layout_end(file);
}

static enum el_status begin_file(const char *plots_dir, const char *name, char *path, char *temporary, FILE **file_p)
{
    if (mkdir(plots_dir, 0777) != 0 && errno != EEXIST) return el_fail_errno("%s could not be made", plots_dir);
    snprintf(path, EL_PATH_BYTES, "%s/%s.dat", plots_dir, name);
    *file_p = el_file_begin(path, temporary, EL_PATH_BYTES + 64);
    return *file_p == NULL ? el_fail_errno("%s could not be written", path) : EL_OK;
}

enum el_status el_scale_plot_data(const json_t *document, const char *plots_dir)
{
    const json_t *rows = json_object_get(document, "rows");
    char path[EL_PATH_BYTES], temporary[EL_PATH_BYTES + 64];
    FILE *file;
    EL_TRY(begin_file(plots_dir, "scale", path, temporary, &file));
    write_about(document, file);
    write_ideal(rows, file);
    write_ticks(rows, file);
    write_points(rows, file);
    return el_file_end(file, temporary, path);
}

static bool is_step_known(const json_t *row)
{
    return el_json_number(row, "step_ms") > 0 && el_json_number(row, "mib") > 0 && el_json_number(row, "ratio") > 0;
}

/* "Buckets of ddp on 2 devices; textcnn, f32" */
static void write_sweep_about(const json_t *document, const json_t *rows, FILE *file)
{
    double low = INFINITY, high = 0;
    char title[EL_TITLE_BYTES], mode[EL_NAME_BYTES], model[EL_NAME_BYTES], dtype[EL_NAME_BYTES];
    for (size_t i = 0; i < json_array_size(rows); i++) {
        double mib = el_json_number(json_array_get(rows, i), "mib");
        if (!is_step_known(json_array_get(rows, i))) continue;
        low = fmin(low, mib);
        high = fmax(high, mib);
    }
    el_layout_name(el_json_text(document, "buckets.mode", "?"), mode);
    el_layout_text(el_json_text(document, "model", "?"), model, sizeof model);
    el_layout_text(el_json_text(document, "dtype", "?"), dtype, sizeof dtype);
    snprintf(title, sizeof title, "Size of %s's buckets on %.0f devices; %s, %s%s", mode,
             el_json_number(document, "buckets.devices"), model, dtype,
             json_is_true(json_object_get(document, "simulated")) ? " (simulated)" : "");
    el_layout_begin(file, "about", EL_ABOUT_COLUMNS ", left end, base MiB");
    el_layout_about(file, title, "", "", high * MARGIN, BARS, " ");
    fprintf(file, "\t%.6g\t%.6g\n", low / MARGIN, el_json_number(document, "buckets.base_mib"));
    el_layout_end(file);
}

enum el_status el_scale_plot_buckets(const json_t *document, const char *plots_dir, bool *drawn_p)
{
    const json_t *rows = el_json_at(document, "buckets.rows");
    char path[EL_PATH_BYTES], temporary[EL_PATH_BYTES + 64];
    FILE *file;
    *drawn_p = false;
    for (size_t i = 0; i < json_array_size(rows); i++) *drawn_p |= is_step_known(json_array_get(rows, i));
    if (!*drawn_p) return EL_OK;
    EL_TRY(begin_file(plots_dir, "buckets", path, temporary, &file));
    write_sweep_about(document, rows, file);
    el_layout_begin(file, "sizes", "MiB, step against the base, ci95 low, high, step ms, label");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!is_step_known(row)) continue;
        fprintf(file, "%.6g", el_json_number(row, "mib"));
        put_point(el_json_number(row, "ratio"), el_json_number(row, "ci95.0"), el_json_number(row, "ci95.1"), file);
        fprintf(file, "\t%.6g\t%.3g\n", el_json_number(row, "step_ms"), el_json_number(row, "mib"));
    }
    el_layout_end(file);
    return el_file_end(file, temporary, path);
}
