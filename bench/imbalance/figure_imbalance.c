/* Bars of the cards by tag, and per trial a bar of the first card's extra memory. Replicas count as parameters
 * there. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/plot/bars.h"
#include "bench/report/report.h"

static const double THIN_RATIO = 0.02; /* of its bar: not in the legend */
static const double MODE_GAP = 0.5, MIB = 1048576;

#define TAG_PART(id, text) {text, el_bar_tag_mib},
static const struct el_bar_part tags[] = {EL_TAG_LIST(TAG_PART){0}};

static void name_tags(const struct el_bars *bars, struct el_data_names *names)
{
    double share[EL_TAG_COUNT] = {0};
    for (size_t i = 0; i < bars->n; i++) {
        double whole = 0;
        for (int t = 0; t < EL_TAG_COUNT; t++) whole += fmax(0, el_bar_tag_mib(&bars->list[i], tags[t].name));
        for (int t = 0; t < EL_TAG_COUNT && whole > 0; t++)
            share[t] = fmax(share[t], el_bar_tag_mib(&bars->list[i], tags[t].name) / whole);
    }
    for (int t = 0; t < EL_TAG_COUNT; t++)
        if (share[t] > 0) el_data_add_name(share[t] < THIN_RATIO ? names->thin : names->present, tags[t].name);
}

/* Positive parts stack above zero, negative ones below. */
static void put_more(const struct el_bars *bars, FILE *file)
{
    el_data_block(file, "x, left, right, from MiB, to MiB, tag", "more");
    el_bars_row(file, 0, 0, 0, 0, tags[0].name); /* a block is never empty; left of the axis */
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        for (size_t i = 0, end; i < bars->n; i = end) {
            double bytes[EL_TAG_COUNT], foot = 0, x = el_bars_middle(bars, i, &end);
            el_excess_by_tag(json_object_get(bars->list[i].trial, "per_device"), bytes);
            for (int below = 0; below < t; below++)
                if ((bytes[below] > 0) == (bytes[t] > 0)) foot += bytes[below] / MIB;
            if (bytes[t] != 0) el_bars_row(file, x, 2 * EL_BAR_HALF, foot, foot + bytes[t] / MIB, tags[t].name);
        }
    }
}

static void put_net(const struct el_bars *bars, FILE *file)
{
    el_data_block(file, "x, left, right, MiB, top of the bar, words", "net");
    for (size_t i = 0, end; i < bars->n; i = end) {
        double bytes[EL_TAG_COUNT], top = 0, x = el_bars_middle(bars, i, &end);
        char mib[EL_FIGURE_BYTES];
        const json_t *devices = json_object_get(bars->list[i].trial, "per_device");
        double whole = el_excess_of(devices, el_at_device_peak_bytes);
        el_excess_by_tag(devices, bytes);
        for (int t = 0; t < EL_TAG_COUNT; t++) top += fmax(0, bytes[t] / MIB);
        fprintf(file, "%g\t%.6g\t%.6g\t%.6g\t%.6g\t%s%s\n", x, x - 2.4 * EL_BAR_HALF, x + 2.4 * EL_BAR_HALF,
                whole / MIB, top, whole > 0 ? "+" : "", el_text_mib(whole, mib));
    }
}

static enum el_status write_imbalance(const struct el_figure *figure, const json_t *run, FILE *file, bool *any_p)
{
    (void)figure;
    struct el_bars bars;
    struct el_data_names names = {"", ""};
    char title[EL_TITLE_BYTES];
    const json_t *all = json_object_get(run, "trials");
    json_t *trials = json_array();
    EL_EACH(trial, all)
        if (el_imbalance_has_cards(trial)) json_array_append(trials, trial);
    enum el_status status = el_bars_place(trials, true, MODE_GAP, &bars);
    if (status == EL_OK) {
        name_tags(&bars, &names);
        el_data_title(trials, title);
        if (el_json_is(trials, "0.verdict", "predicted")) el_text_append(title, sizeof title, ", predicted");
        el_bars_labels(&bars, trials, &(struct el_bars_words){title, &names, NULL, EL_DATA_BYTES_EXACT}, file);
        el_bars_parts(&bars, tags, true, file);
        put_more(&bars, file);
        put_net(&bars, file);
        *any_p = bars.n > 0;
        el_bars_free(&bars);
    }
    json_decref(trials);
    return status;
}

const struct el_figure el_figure_imbalance = {.name = "imbalance", .write = write_imbalance};
