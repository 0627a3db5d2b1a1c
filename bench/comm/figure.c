/* Bus bandwidth against size, a curve per operation and algorithm, with the machine's copy rate as the limit. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/comm/wire.h"

enum { WIDTH_IN_BARS = 14, LABELS_MAX = 7 };

static const double MARGIN = 1.3; /* a ratio, on logarithmic axes */

static size_t number_of(const json_t *curves, size_t c, const char *key)
{
    const json_t *value = json_object_get(json_array_get(curves, c), key);
    size_t number = 0, i = 0;
    for (; i < c && !json_equal(json_object_get(json_array_get(curves, i), key), value); i++)
        number += !el_data_seen(curves, i, key);
    return number;
}

/* Other types, reductions, roots and cycles are only in comm.csv. */
static bool is_drawn(const json_t *curves, size_t c)
{
    const json_t *curve = json_array_get(curves, c);
    for (size_t i = 0; i < c; i++)
        if (el_json_is(json_array_get(curves, i), "operation", el_json_text(curve, "operation", "")) &&
            el_json_is(json_array_get(curves, i), "algorithm", el_json_text(curve, "algorithm", "")))
            return false;
    return el_json_number(curve, "points.0.bytes") > 0; /* a barrier has no size */
}

static void name_curve(const json_t *curve, char name[EL_NAME_BYTES])
{
    snprintf(name, EL_NAME_BYTES, "%.18s/%.12s", el_json_text(curve, "operation", "?"),
             el_json_text(curve, "algorithm", "?"));
}

static void put_size(FILE *file, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    double value = bytes;
    for (; value >= 1024 && unit < 3; unit++) value /= 1024;
    fprintf(file, "%.0f\t%.4g %s\n", bytes, value, units[unit]);
}

static void put_axes(const json_t *copy, FILE *file)
{
    size_t apart = (json_array_size(copy) + LABELS_MAX - 1) / LABELS_MAX;
    el_data_block(file, "bytes, GB/s at which each rank copies while all do", "copy");
    EL_EACH(row, copy) fprintf(file, "%.0f\t%.6g\n", el_json_number(row, "bytes"), el_json_number(row, "gb_per_s"));
    el_data_block(file, "bytes, label", "sizes");
    EL_EACH(row, copy)
        if (row_at.i % apart == 0) put_size(file, el_json_number(row, "bytes"));
}

static void put_points(const json_t *curve, FILE *file)
{
    char name[EL_NAME_BYTES];
    name_curve(curve, name);
    EL_EACH(point, json_object_get(curve, "points")) {
        fprintf(file, "%.0f", el_json_number(point, "bytes"));
        el_data_number(file, el_wire_best_place(point));
        el_data_number(file, el_json_number(point, "out_of_place.busbw_gb_per_s"));
        fprintf(file, "\t%s\n", el_data_word(name).text);
    }
}

static enum el_status write_wire(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    (void)figure;
    const json_t *curves = json_object_get(document, "curves"), *copy = json_object_get(document, "copy");
    struct el_data_names names = {"", ""};
    char title[EL_TITLE_BYTES], name[EL_NAME_BYTES];
    double first, last;
    el_json_range(copy, "bytes", &first, &last);
    EL_EACH(curve, curves) {
        name_curve(curve, name);
        if (is_drawn(curves, curve_at.i)) el_data_add_name(names.present, name);
    }
    if (!*names.present || !(first > 0)) return EL_OK;
    snprintf(title, sizeof title, "Bus bandwidth in place: %.0f ranks, communicator %s, %s",
             el_json_number(document, "ranks"), el_data_label(el_json_text(document, "backend", "?")).text,
             el_data_label(el_json_text(curves, "0.datatype", el_json_text(document, "datatype", "?"))).text);
    el_data_about(file, &(struct el_data_about){title, &names, last * MARGIN, WIDTH_IN_BARS, NULL}, ", left end");
    fprintf(file, "\t%.6g\n", first / MARGIN);
    put_axes(copy, file);
    el_data_block(file, "curve, number of its operation, of its algorithm", "curves");
    EL_EACH(curve, curves) {
        name_curve(curve, name);
        if (is_drawn(curves, curve_at.i))
            fprintf(file, "%s\t%zu\t%zu\n", el_data_word(name).text, number_of(curves, curve_at.i, "operation"),
                    number_of(curves, curve_at.i, "algorithm"));
    }
    el_data_block(file, "bytes, busbw in GB/s in place, out of place, curve", "points");
    EL_EACH(curve, curves)
        if (is_drawn(curves, curve_at.i)) put_points(curve, file);
    *any_p = true;
    return EL_OK;
}

const struct el_figure el_figure_wire = {.name = "comm", .write = write_wire};
