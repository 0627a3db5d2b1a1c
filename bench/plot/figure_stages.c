/* A step of a model in stages, as in papers on pipelines: a lane per device, a box per pass of a micro-batch, grey
 * bubbles, messages below. A device's parts alternate in shade. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/plot/plot.h"
#include "bench/report/report.h"

enum { WIDTH_BARS = 14, PANELS_MAX = 6, PARTS_MAX = 64, AREA_PIXELS = 700 };
enum { HEAD_PIXELS = 34, TITLE_PIXELS = 24, GAP_PIXELS = 10, AXIS_PIXELS = 48, LEGEND_PIXELS = 20 };
static const double DIGIT_PIXELS = 6, THIN_RATIO = 0.002;
/* A stage may load long before its turn: the share of the step shown before the first forward. */
static const double EARLY_RATIO = 0.05;
/* In a lane of height 1. */
static const double BOX_LOW = 0.22, BOX_HIGH = 0.94, MESSAGE_LOW = 0.04, MESSAGE_HIGH = 0.16;

/* In the order of the legend. */
static const struct kind {
    const char *what, *name, *other; /* in the record; odd parts; even parts */
    bool message;
} kinds[] = {
    {"F", "forward", "forward_2", false},
    {"B", "backward", "backward_2", false},
    {"I", "backward_inputs", "backward_inputs_2", false},
    {"W", "backward_weights", "backward_weights_2", false},
    {"reduce", "reduce", "reduce", false},
    {"optimizer", "optimizer", "optimizer", false},
    {"data", "load", "load", false},
    {"h2d", "load", "load", false},
    {"send", "transfer", "transfer", true},
    {"receive", "transfer", "transfer", true},
    {"comm", "transfer", "transfer", true},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

struct panel {
    const json_t *trial, *devices;
    size_t n_lanes;
    double from_ms, to_ms; /* of the axis */
    int top, height;       /* of the lanes, pixels */
};

struct panels {
    struct panel list[PANELS_MAX];
    int n, height;
    double from_ms, to_ms; /* the common axis */
};

static const json_t *lane_of(const struct panel *panel, size_t lane)
{
    return json_object_get(json_array_get(panel->devices, lane), "lane");
}

static double ms_of(const json_t *lane, const char *column, size_t i)
{
    return json_number_value(json_array_get(json_object_get(lane, column), i));
}

static size_t boxes_of(const json_t *lane)
{
    return json_array_size(json_object_get(lane, "what"));
}

static const struct kind *kind_of(const json_t *lane, size_t i)
{
    const char *what = json_string_value(json_array_get(json_object_get(lane, "what"), i));
    for (int k = 0; k < N_KINDS && what; k++)
        if (strcmp(what, kinds[k].what) == 0) return &kinds[k];
    return NULL;
}

static int part_of(const json_t *lane, size_t i)
{
    const json_t *parts = json_object_get(lane, "part");
    json_int_t own = json_integer_value(json_array_get(parts, i));
    bool before[PARTS_MAX] = {false};
    int n = 0;
    EL_EACH(part, parts) {
        json_int_t value = json_integer_value(part);
        if (!json_is_integer(part) || value < 0 || value >= PARTS_MAX || value >= own || before[value]) continue;
        before[value] = true;
        n++;
    }
    return n;
}

static const char *name_of(const json_t *lane, size_t i)
{
    const struct kind *kind = kind_of(lane, i);
    if (!kind) return "";
    return part_of(lane, i) % 2 ? kind->other : kind->name;
}

static void measure(struct panel *panel)
{
    for (size_t d = 0; d < panel->n_lanes; d++) {
        const json_t *lane = lane_of(panel, d);
        panel->to_ms = fmax(panel->to_ms, el_json_number(json_array_get(panel->devices, d), "lane.window_ms"));
        for (size_t i = 0; i < boxes_of(lane); i++) {
            panel->from_ms = fmin(panel->from_ms, ms_of(lane, "from_ms", i));
            panel->to_ms = fmax(panel->to_ms, ms_of(lane, "to_ms", i));
        }
    }
    panel->from_ms = fmax(panel->from_ms, -EARLY_RATIO * panel->to_ms);
}

static void choose_panels(const json_t *trials, struct panels *panels)
{
    *panels = (struct panels){.height = HEAD_PIXELS};
    for (size_t i = 0; i < json_array_size(trials) && panels->n < PANELS_MAX; i++) {
        const json_t *trial = json_array_get(trials, i), *devices = json_object_get(trial, "per_device");
        struct panel panel = {.trial = trial, .devices = devices, .n_lanes = json_array_size(devices), .to_ms = 1e-6};
        if (strcmp(el_json_text(trial, "status", ""), "ok") != 0 || boxes_of(lane_of(&panel, 0)) == 0) continue;
        measure(&panel);
        panels->from_ms = fmin(panels->from_ms, panel.from_ms);
        panels->to_ms = fmax(panels->to_ms, panel.to_ms);
        panel.top = panels->height + TITLE_PIXELS;
        panel.height = (int)panel.n_lanes * (panel.n_lanes <= 4 ? 34 : panel.n_lanes <= 8 ? 26 : 16);
        panels->height = panel.top + panel.height + GAP_PIXELS;
        panels->list[panels->n++] = panel;
    }
    panels->height += AXIS_PIXELS;
    for (int k = 0; k < panels->n; k++) {
        panels->list[k].from_ms = panels->from_ms;
        panels->list[k].to_ms = panels->to_ms;
    }
}

static void put_box(FILE *file, const json_t *lane, size_t i, double low, double high)
{
    fprintf(file, "%.6g\t%.6g\t%g\t%g\n", ms_of(lane, "from_ms", i), ms_of(lane, "to_ms", i), low, high);
}

/* "pipeline, batch 64 (4 stages), 1f1b, 8 micro-batches: bubble 27.3 %" */
static void put_about(const struct panel *panel, int k, FILE *file)
{
    char batch[EL_CELL_BYTES];
    double micro = el_json_number(panel->trial, "config.micro_batches"), n = (double)panel->n_lanes;
    el_table_batch(panel->trial, NULL, batch);
    el_data_block(file,
                  "title, from ms, to ms, lowest lane, pixels from the top, height in pixels, whether it has a mark",
                  "%d about", k);
    fprintf(file, "%s, batch %s", el_data_word(el_json_text(panel->trial, "mode", "?")).text, batch);
    if (micro > 1)
        fprintf(file, ", %s, %.0f micro-batches", el_data_word(el_json_text(panel->trial, "config.schedule", "?")).text,
                micro);
    fprintf(file, ": bubble %.1f %%", el_json_number(panel->trial, "bubble_pct"));
    fprintf(file, "\t%.6g\t%.6g\t%g\t%d\t%d\t%d\n", panel->from_ms, panel->to_ms, -n, panel->top, panel->height,
            el_data_has_mark(panel->trial));
}

/* Boxes cover the window, in pale also its messages: the visible rest is bubble. */
static void put_windows(const struct panel *panel, int k, FILE *file)
{
    el_data_block(file, "from ms, to ms, low, high", "%d bubble", k);
    for (size_t d = 0; d < panel->n_lanes; d++)
        fprintf(file, "0\t%.6g\t%g\t%g\n", el_json_number(json_array_get(panel->devices, d), "lane.window_ms"),
                BOX_LOW - (double)(d + 1), BOX_HIGH - (double)(d + 1));
    el_data_block(file, "from ms, to ms, low, high", "%d under", k);
    fputs("0\t0\t0\t0\n", file);
    for (size_t d = 0; d < panel->n_lanes; d++) {
        const json_t *lane = lane_of(panel, d);
        for (size_t i = 0; i < boxes_of(lane); i++)
            if (kind_of(lane, i) && kind_of(lane, i)->message)
                put_box(file, lane, i, BOX_LOW - (double)(d + 1), BOX_HIGH - (double)(d + 1));
    }
    el_data_block(file, "y, device", "%d lanes", k);
    for (size_t d = 0; d < panel->n_lanes; d++)
        fprintf(file, "%g\t%s\n", (BOX_LOW + BOX_HIGH) / 2 - (double)(d + 1),
                el_data_word(el_json_text(json_array_get(panel->devices, d), "device", "?")).text);
}

static void put_boxes(const struct panel *panel, int k, const char *name, FILE *file)
{
    el_data_block(file, "from ms, to ms, low, high", "%d %s", k, name);
    fputs("0\t0\t0\t0\n", file); /* a block is never empty */
    for (size_t d = 0; d < panel->n_lanes; d++) {
        const json_t *lane = lane_of(panel, d);
        for (size_t i = 0; i < boxes_of(lane); i++) {
            if (strcmp(name_of(lane, i), name) != 0) continue;
            bool message = kind_of(lane, i)->message;
            put_box(file, lane, i, (message ? MESSAGE_LOW : BOX_LOW) - (double)(d + 1),
                    (message ? MESSAGE_HIGH : BOX_HIGH) - (double)(d + 1));
        }
    }
}

/* A lane has all numbers, or none. */
static double room_of(const struct panel *panel, const json_t *lane, const struct kind *kind)
{
    double pixels_per_ms = AREA_PIXELS / (panel->to_ms - panel->from_ms), least = INFINITY;
    int digits = 1;
    for (size_t i = 0; i < boxes_of(lane); i++) {
        const json_t *micro = json_array_get(json_object_get(lane, "micro"), i);
        if (kind_of(lane, i) != kind || !json_is_integer(micro)) continue;
        least = fmin(least, ms_of(lane, "to_ms", i) - ms_of(lane, "from_ms", i));
        if (json_integer_value(micro) > 9) digits = json_integer_value(micro) > 99 ? 3 : 2;
    }
    return least * pixels_per_ms / (DIGIT_PIXELS * digits + 3);
}

/* Letters are for terminals. */
static void put_numbers(const struct panel *panel, int k, FILE *file)
{
    el_data_block(file, "ms, y, micro-batch, letter, room in a figure of full width (1: just enough)", "%d numbers", k);
    fputs("0\t0\t \t \t0\n", file);
    for (size_t d = 0; d < panel->n_lanes; d++) {
        const json_t *lane = lane_of(panel, d);
        for (size_t i = 0; i < boxes_of(lane); i++) {
            const struct kind *kind = kind_of(lane, i);
            double from_ms = ms_of(lane, "from_ms", i), to_ms = ms_of(lane, "to_ms", i);
            const json_t *micro = json_array_get(json_object_get(lane, "micro"), i);
            char number[24];
            if (!kind || kind->message || !json_is_integer(micro)) continue;
            snprintf(number, sizeof number, "%lld", (long long)json_integer_value(micro));
            fprintf(file, "%.6g\t%g\t%s\t%.1s\t%.3g\n", (from_ms + to_ms) / 2,
                    (BOX_LOW + BOX_HIGH) / 2 - (double)(d + 1), number, kind->what, room_of(panel, lane, kind));
        }
    }
}

static bool has(const struct panels *panels, const char *name)
{
    for (int k = 0; k < panels->n; k++) {
        const struct panel *panel = &panels->list[k];
        for (size_t d = 0; d < panel->n_lanes; d++) {
            const json_t *lane = lane_of(panel, d);
            for (size_t i = 0; i < boxes_of(lane); i++)
                if (strcmp(name_of(lane, i), name) == 0 &&
                    ms_of(lane, "to_ms", i) - ms_of(lane, "from_ms", i) > THIN_RATIO * (panel->to_ms - panel->from_ms))
                    return true;
        }
    }
    return false;
}

static void name_all(const struct panels *panels, struct el_data_names *names)
{
    for (int i = 0; i < 2 * N_KINDS; i++) {
        const char *name = i % 2 ? kinds[i / 2].other : kinds[i / 2].name;
        bool listed = false;
        for (int k = 0; k < i; k++) listed |= strcmp(name, k % 2 ? kinds[k / 2].other : kinds[k / 2].name) == 0;
        if (!listed) el_data_add_name(has(panels, name) ? names->present : names->thin, name);
    }
    if (strstr(names->present, "transfer")) el_data_add_name(names->present, "travel");
    el_data_add_name(names->present, "bubble");
}

static void each_word(const struct panel *panel, int k, const char *names, FILE *file)
{
    for (const char *at = names, *end; *at; at = *end ? end + 1 : end) {
        char name[EL_NAME_BYTES];
        end = at + strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)(end - at), at);
        if (strcmp(name, "bubble") != 0 && strcmp(name, "travel") != 0) put_boxes(panel, k, name, file);
    }
}

static enum el_status write_stages(const struct el_figure *figure, const json_t *run, FILE *file, bool *any_p)
{
    (void)figure;
    const json_t *trials = json_object_get(run, "trials");
    char title[EL_TITLE_BYTES], foot[EL_TITLE_BYTES];
    json_t *shown = json_array();
    int legend = HEAD_PIXELS + LEGEND_PIXELS;
    struct el_data_names names = {"", ""};
    struct panels panels;
    choose_panels(trials, &panels);
    for (int k = 0; k < panels.n; k++) json_array_append(shown, (json_t *)(uintptr_t)panels.list[k].trial);
    el_data_foot(shown, "One step, of median length. Bubbles are counted from the first forward to the last backward.",
                 foot);
    el_data_title(trials, title);
    name_all(&panels, &names);
    for (const char *at = names.present; at; at = strchr(at + 1, ' ')) legend += LEGEND_PIXELS;
    if (panels.height < legend) panels.height = legend;
    el_data_about(file, &(struct el_data_about){title, &names, 1, WIDTH_BARS, foot}, ", panels, height in pixels");
    fprintf(file, "\t%d\t%d\n", panels.n, panels.height);
    el_data_warning(file, shown, NULL);
    json_decref(shown);
    for (int k = 0; k < panels.n; k++) {
        const struct panel *panel = &panels.list[k];
        put_about(panel, k, file);
        put_windows(panel, k, file);
        each_word(panel, k, names.present, file);
        each_word(panel, k, names.thin, file);
        put_numbers(panel, k, file);
    }
    *any_p = panels.n > 0;
    return EL_OK;
}

const struct el_figure el_figure_stages = {.name = "stages", .optional = true, .write = write_stages};
