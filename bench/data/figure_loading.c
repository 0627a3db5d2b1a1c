/* The last steps in time, in two rows: without workers, and with the recommended number of them (else the largest that
 * was measured). */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/data/data.h"

enum { STEPS_SHOWN = 5, PANELS = 2, WIDTH_BARS = 14, TITLE_PIXELS = 30, LANE_PIXELS = 30, AXIS_PIXELS = 34 };
enum { HEAD_PIXELS = 34, FOOT_PIXELS = 16, LEGEND_PIXELS = 120 };
static const double LOW = 0.14, HIGH = 0.86; /* of a lane of height 1 */

/* Times since the first one's begin. */
struct panel {
    const json_t *row, *spans;
    size_t first, last, n;     /* batches: first and last shown, and all */
    double from_ms, to_ms;     /* shown */
    double own_ms, loading_ms; /* sums over the shown steps */
    int workers, top, height;
};

static double ms_of(const struct panel *panel, const char *column, size_t i)
{
    const json_t *value = json_array_get(json_object_get(panel->spans, column), i);
    return json_is_number(value) ? json_number_value(value) - panel->from_ms : NAN;
}

/* A batch's times are known once it is taken; workers may be ahead by their number. */
static bool open_panel(const json_t *row, struct panel *panel)
{
    const json_t *spans = json_object_get(row, "spans");
    size_t n = json_array_size(json_object_get(spans, "got_ms")),
           workers = row ? (size_t)el_json_whole(row, "workers") : 0;
    if (!row || n < 2) return false;
    size_t shown = n - 1 < STEPS_SHOWN ? n - 1 : STEPS_SHOWN,
           ahead = workers ? workers * (size_t)el_json_whole(row, "prefetch") : 0;
    size_t last = n - 1 - (ahead < n - 1 - shown ? ahead : n - 1 - shown);
    *panel = (struct panel){.row = row, .spans = spans, .first = last - shown, .last = last, .n = n};
    panel->from_ms = ms_of(panel, "asked_ms", panel->first);
    panel->to_ms = panel->own_ms = ms_of(panel, "asked_ms", last);
    for (size_t i = panel->first; i < last; i++)
        panel->loading_ms += ms_of(panel, "got_ms", i) - ms_of(panel, "asked_ms", i);
    panel->workers = (int)el_json_whole(row, "workers");
    panel->height = LANE_PIXELS * (1 + panel->workers);
    return panel->to_ms > 0;
}

static int choose_panels(const json_t *document, struct panel panels[PANELS])
{
    const json_t *rows = json_object_get(document, "rows"), *without = NULL, *with = NULL;
    double wanted = el_json_number(document, "recommended.0.workers");
    int n = 0;
    EL_EACH(row, rows) {
        double workers = el_json_number(row, "workers");
        if (!el_json_is(row, "page_cache", el_json_text(document, "recommended.0.page_cache", "warm"))) continue;
        if (el_json_is(document, "pinned", "both") && el_json_is(row, "pinned", "off")) continue;
        if (workers == 0) without = row;
        bool before = isnan(wanted) || workers <= wanted;
        if (workers > 0 && before && (!with || workers > el_json_number(with, "workers"))) with = row;
    }
    n += without && open_panel(without, &panels[n]);
    n += with && open_panel(with, &panels[n]);
    return n;
}

static void put_box(FILE *file, double from, double to, double end, int lane)
{
    if (isnan(from + to) || to < 0 || from > end) return;
    fprintf(file, "%.6g\t%.6g\t%g\t%g\n", fmax(from, 0), fmin(to, end), LOW - lane - 1, HIGH - lane - 1);
}

static void put_panel(const struct panel *panel, int k, FILE *file)
{
    const double end = panel->to_ms;
    el_data_block(file, "title, end ms, lowest lane, pixels from the top, height in pixels", "%d about", k);
    fprintf(file, "%d worker%s: %.3g ms per step, loading %.2g %% of it\t%.6g\t%d\t%d\t%d\n", panel->workers,
            panel->workers == 1 ? "" : "s", panel->own_ms / (double)(panel->last - panel->first),
            100 * panel->loading_ms / panel->own_ms, end, -(1 + panel->workers), panel->top, panel->height);
    el_data_block(file, "from ms, to ms, low, high", "%d data", k);
    fputs("0\t0\t0\t0\n", file);
    for (size_t i = panel->first; i < panel->last; i++)
        put_box(file, ms_of(panel, "asked_ms", i), ms_of(panel, "got_ms", i), end, 0);
    el_data_block(file, "from ms, to ms, low, high", "%d step", k);
    fputs("0\t0\t0\t0\n", file);
    for (size_t i = panel->first; i < panel->last; i++)
        put_box(file, ms_of(panel, "got_ms", i), ms_of(panel, "asked_ms", i + 1), end, 0);
    el_data_block(file, "from ms, to ms, low, high", "%d made", k);
    fputs("0\t0\t0\t0\n", file);
    for (size_t i = 0; i < panel->n; i++) {
        const json_t *worker = json_array_get(json_object_get(panel->spans, "worker"), i);
        if (json_is_integer(worker))
            put_box(file, ms_of(panel, "from_ms", i), ms_of(panel, "to_ms", i), panel->own_ms,
                    1 + (int)json_integer_value(worker));
    }
    el_data_block(file, "y, lane", "%d lanes", k);
    fprintf(file, "-0.5\tdevice\n");
    for (int w = 0; w < panel->workers; w++) fprintf(file, "%g\tworker %d\n", -1.5 - w, w);
}

static enum el_status write_loading(const struct el_figure *figure, const json_t *document, FILE *file, bool *any_p)
{
    (void)figure;
    struct panel panels[PANELS];
    char title[EL_TITLE_BYTES], foot[EL_TITLE_BYTES];
    int n = choose_panels(document, panels), height = HEAD_PIXELS;
    double most_ms = 0;
    for (int k = 0; k < n; k++) {
        panels[k].top = height + TITLE_PIXELS;
        height = panels[k].top + panels[k].height + (k + 1 == n ? AXIS_PIXELS : 0);
        most_ms = fmax(most_ms, panels[k].to_ms);
    }
    for (int k = 0; k < n; k++) panels[k].to_ms = most_ms; /* a common scale */
    snprintf(title, sizeof title, "%s, batch %.0f, data on %s", el_data_word(el_json_text(document, "model", "?")).text,
             el_json_number(document, "global_batch"), el_json_is(document, "data_in", "disk") ? "disk" : "memory");
    snprintf(foot, sizeof foot, "Steps of the first launch, with a %s page cache.%s",
             el_data_word(el_json_text(document, "recommended.0.page_cache", "?")).text,
             json_is_string(json_object_get(document, "injected")) ? " Disturbed on purpose." : "");
    struct el_data_names names = {"data step", ""};
    for (int k = 0; k < n; k++)
        if (panels[k].workers > 0) el_data_add_name(names.present, "made");
    el_data_about(file, &(struct el_data_about){title, &names, 1, WIDTH_BARS, foot}, ", panels, height in pixels");
    height += FOOT_PIXELS;
    fprintf(file, "\t%d\t%d\n", n, height < LEGEND_PIXELS ? LEGEND_PIXELS : height);
    for (int k = 0; k < n; k++) put_panel(&panels[k], k, file);
    *any_p = n > 0;
    return EL_OK;
}

const struct el_figure el_figure_loading = {.name = "loading", .write = write_loading};
