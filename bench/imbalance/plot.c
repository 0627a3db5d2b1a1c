/* The figure's data: bars of the cards stacked by tag, and for each trial a bar of what the first card holds more than
 * the mean of the others, tags of which it holds less below zero. Replicas count as parameters in that bar. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/plot/layout.h"
#include "bench/record/record.h"
#include "bench/report/excess.h"

static const double THIN_RATIO = 0.02; /* of its bar: no place in the legend */
static const double MODE_GAP = 0.5, HALF_BAR = 0.42;

static double tag_mib(const struct el_slot *slot, int tag)
{
    double bytes = el_json_number(el_json_at(slot->device, "memory.at_peak_by_tag"), el_tag_name((enum el_tag)tag));
    return bytes > 0 ? bytes / 1048576 : 0;
}

/* Trials whose cards are drawn, in order; new reference. */
static json_t *drawn_trials(const json_t *run)
{
    const json_t *trials = json_object_get(run, "trials");
    json_t *drawn = json_array();
    for (size_t i = 0; i < json_array_size(trials); i++)
        if (el_imbalance_has_cards(json_array_get(trials, i))) json_array_append(drawn, json_array_get(trials, i));
    return drawn;
}

/* Tags that occur, and those that are thin in every bar. */
static void name_tags(const struct el_layout *layout, char *present, char *thin)
{
    double share[EL_TAG_COUNT] = {0};
    for (size_t i = 0; i < layout->n; i++) {
        double whole = 0;
        for (int t = 0; t < EL_TAG_COUNT; t++) whole += tag_mib(&layout->slots[i], t);
        for (int t = 0; t < EL_TAG_COUNT && whole > 0; t++)
            share[t] = fmax(share[t], tag_mib(&layout->slots[i], t) / whole);
    }
    for (int t = 0; t < EL_TAG_COUNT; t++)
        if (share[t] > 0)
            el_layout_append(share[t] < THIN_RATIO ? thin : present, EL_NAMES_BYTES, el_tag_name((enum el_tag)t));
}

static void put_bar(double x, double half, double from, double to, int tag, FILE *file)
{
    fprintf(file, "%g\t%.6g\t%.6g\t%.6g\t%.6g\t%s\n", x, x - half, x + half, from, to, el_tag_name((enum el_tag)tag));
}

static void write_cards(const struct el_layout *layout, int tag, FILE *file)
{
    for (size_t i = 0; i < layout->n; i++) {
        double foot = 0, height = tag_mib(&layout->slots[i], tag);
        for (int below = 0; below < tag; below++) foot += tag_mib(&layout->slots[i], below);
        if (height > 0) put_bar(layout->slots[i].x, HALF_BAR, foot, foot + height, tag, file);
    }
}

/* Over the bars of trials whose figures are not to be trusted. */
static void write_unsure(const struct el_layout *layout, FILE *file)
{
    el_layout_begin(file, "not valid", "x, left, right, from MiB, to MiB");
    fputs("0\t0\t0\t0\t0\n", file); /* a block is never empty; left of the axis */
    for (size_t i = 0; i < layout->n; i++) {
        double x = layout->slots[i].x, top = 0;
        for (int t = 0; t < EL_TAG_COUNT; t++) top += tag_mib(&layout->slots[i], t);
        if (!el_layout_is_valid(layout->slots[i].trial))
            fprintf(file, "%g\t%.6g\t%.6g\t0\t%.6g\n", x, x - HALF_BAR, x + HALF_BAR, top);
    }
    el_layout_end(file);
}

/* The first slot of each trial, and the middle of its bars. */
static bool begins(const struct el_layout *layout, size_t i)
{
    return i == 0 || layout->slots[i - 1].trial != layout->slots[i].trial;
}

static double middle(const struct el_layout *layout, size_t i)
{
    size_t n = json_array_size(json_object_get(layout->slots[i].trial, "per_device"));
    return layout->slots[i].x + (double)(n - 1) / 2;
}

/* A tag's part of each difference: above zero on the positive ones before it, below zero on the negative ones. */
static void write_more(const struct el_layout *layout, int tag, FILE *file)
{
    for (size_t i = 0; i < layout->n; i++) {
        double bytes[EL_TAG_COUNT], foot = 0;
        if (!begins(layout, i)) continue;
        el_excess_by_tag(json_object_get(layout->slots[i].trial, "per_device"), bytes);
        for (int below = 0; below < tag; below++)
            if ((bytes[below] > 0) == (bytes[tag] > 0)) foot += bytes[below] / 1048576;
        if (bytes[tag] != 0) put_bar(middle(layout, i), 2 * HALF_BAR, foot, foot + bytes[tag] / 1048576, tag, file);
    }
}

/* The difference itself: a line across the bar, and its words above. */
static void write_net(const struct el_layout *layout, FILE *file)
{
    el_layout_begin(file, "net", "x, left, right, MiB, top of the bar, words");
    for (size_t i = 0; i < layout->n; i++) {
        double bytes[EL_TAG_COUNT], top = 0;
        char mib[EL_FIGURE_BYTES];
        if (!begins(layout, i)) continue;
        const json_t *devices = json_object_get(layout->slots[i].trial, "per_device");
        double whole = el_excess_of(devices, "memory.peak_bytes"), x = middle(layout, i);
        el_excess_by_tag(devices, bytes);
        for (int t = 0; t < EL_TAG_COUNT; t++) top += bytes[t] > 0 ? bytes[t] / 1048576 : 0;
        fprintf(file, "%g\t%.6g\t%.6g\t%.6g\t%.6g\t%s%s\n", x, x - 2.4 * HALF_BAR, x + 2.4 * HALF_BAR, whole / 1048576,
                top, whole > 0 ? "+" : "", el_text_mib(whole, mib));
    }
    el_layout_end(file);
}

static void write_blocks(const struct el_layout *layout, FILE *file)
{
    el_layout_begin(file, "bars", "x, left, right, from MiB, to MiB, tag");
    for (int t = 0; t < EL_TAG_COUNT; t++) write_cards(layout, t, file);
    el_layout_end(file);
    write_unsure(layout, file);
    el_layout_begin(file, "more", "x, left, right, from MiB, to MiB, tag");
    put_bar(0, 0, 0, 0, 0, file); /* a block is never empty; left of the axis */
    for (int t = 0; t < EL_TAG_COUNT; t++) write_more(layout, t, file);
    el_layout_end(file);
    write_net(layout, file);
}

static enum el_status write_file(const json_t *trials, const struct el_layout *layout, const char *path)
{
    char temporary[EL_PATH_BYTES + 64], what[EL_TITLE_BYTES], title[EL_TITLE_BYTES + 16];
    char present[EL_NAMES_BYTES] = "", thin[EL_NAMES_BYTES] = "";
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    if (file == NULL) return el_fail_errno("%s could not be written", path);
    bool predicted = !strcmp(el_json_text(trials, "0.verdict", ""), "predicted");
    el_layout_title(trials, what);
    snprintf(title, sizeof title, "%s%s", what, predicted ? ", predicted" : "");
    name_tags(layout, present, thin);
    el_layout_write(layout, trials, title, present, thin, file);
    write_blocks(layout, file);
    return el_file_end(file, temporary, path);
}

enum el_status el_imbalance_plot(const json_t *run, const char *plots_dir, bool *drawn_p)
{
    struct el_layout layout;
    char path[EL_PATH_BYTES];
    json_t *trials = drawn_trials(run);
    enum el_status status = EL_OK;
    el_layout_build(trials, true, MODE_GAP, &layout);
    snprintf(path, sizeof path, "%s/imbalance.dat", plots_dir);
    if (layout.failed)
        status = el_fail(EL_ERR_HOST_MEMORY, "%s: out of memory", path);
    else if (layout.n > 0 && mkdir(plots_dir, 0777) != 0 && errno != EEXIST)
        status = el_fail_errno("%s could not be made", plots_dir);
    else if (layout.n > 0)
        status = write_file(trials, &layout, path);
    *drawn_p = status == EL_OK && layout.n > 0;
    el_layout_free(&layout);
    json_decref(trials);
    return status;
}
