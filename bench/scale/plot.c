/* The figure's data: speed-up over devices with the ideal line, and efficiency below it, a block a mode. Counts that
 * share cores or cards are in blocks of their own, to be drawn hollow. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/plot/layout.h"
#include "bench/record/jvalue.h"
#include "bench/record/record.h"
#include "bench/scale/scale.h"

enum { NAMES_BYTES = 256, BARS = 12 };

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

static void write_mode(const json_t *rows, const char *mode, bool shared, FILE *file)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", mode, shared ? " shared" : "");
    el_layout_begin(file, name, "devices, speed-up against plain single, ci95 low, high, efficiency %, ci95 low, high");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *plain = json_object_get(row, "plain");
        bool own = strcmp(el_json_text(row, "mode", ""), mode) == 0;
        if (!own || !is_drawn(row) || json_is_string(json_object_get(row, "shared")) != shared) continue;
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
        fputc('\n', file);
    }
    fputs("?\t?\t?\t?\t?\t?\t?\n", file); /* so that the block is never empty */
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

static void write_about(const json_t *document, FILE *file)
{
    const json_t *rows = json_object_get(document, "rows");
    char modes[NAMES_BYTES] = "", shared[NAMES_BYTES] = " ";
    bool weak = strcmp(el_json_text(document, "scaling", ""), "weak") == 0;
    double low, high;
    find_extent(rows, &low, &high);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        size_t used = strlen(modes);
        if (json_is_string(json_object_get(row, "shared"))) snprintf(shared, sizeof shared, "shared");
        if (seen(rows, i, "mode")) continue;
        snprintf(modes + used, sizeof modes - used, "%s%s", used ? " " : "", el_json_text(row, "mode", "?"));
    }
    el_layout_begin(file, "about",
                    "title, modes, whether devices share anywhere, right end, width in bars, left end, lowest and "
                    "highest speed-up");
    fprintf(file, "%s scaling: %.0f samples a step on %s; %s, %s%s\t%s\t%s\t%.6g\t%d\t%.6g\t%.6g\t%.6g\n",
            weak ? "Weak" : "Strong", el_json_number(document, "batch"), weak ? "each device" : "all devices",
            el_json_text(document, "model", "?"), el_json_text(document, "dtype", "?"),
            json_is_true(json_object_get(document, "simulated")) ? " (simulated)" : "", modes, shared,
            most_devices(rows) * MARGIN, BARS, 1 / MARGIN, low / MARGIN, high * MARGIN);
    el_layout_end(file);
}

enum el_status el_scale_plot_data(const json_t *document, const char *plots_dir)
{
    const json_t *rows = json_object_get(document, "rows");
    char path[EL_PATH_BYTES], temporary[EL_PATH_BYTES + 64];
    if (mkdir(plots_dir, 0777) != 0 && errno != EEXIST) return el_fail_errno("%s could not be made", plots_dir);
    snprintf(path, sizeof path, "%s/scale.dat", plots_dir);
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    if (file == NULL) return el_fail_errno("%s could not be written", path);
    write_about(document, file);
    write_ideal(rows, file);
    write_ticks(rows, file);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        if (seen(rows, i, "mode")) continue;
        const char *mode = el_json_text(json_array_get(rows, i), "mode", "?");
        write_mode(rows, mode, false, file);
        write_mode(rows, mode, true, file);
    }
    return el_file_end(file, temporary, path);
}
