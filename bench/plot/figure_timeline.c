/* A panel per device: live bytes stacked by tag over the mean step, lanes of compute and communication. Indices `i`:
 * the timeline's points. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/plot/plot.h"
#include "bench/report/report.h"
#include "runtime/train/train.h"

#define IDLE "idle" /* nothing runs */
#define WAIT "wait" /* communication that waits for other members */
/* Communication along these axes is named by axis, not phase. */
static const char *const cut_axes[] = {"stage", "tensor"};
enum { WIDTH_BARS = 12, PANELS_MAX = 12, CUT_AXES = 2, NAMES = EL_PHASE_COUNT + 1 + CUT_AXES };
static const double HEAD_ROOM = 1.2;    /* axis over the highest peak: room for the label */
static const double THIN_RATIO = 0.01;  /* of the axis */
static const double LANE_HEIGHT = 0.44; /* of the strip; communication is the lower lane */
static const double MIB = 1048576;

struct panel {
    const json_t *trial, *device, *timeline;
    size_t n; /* points, at least two */
};

struct panels {
    struct panel list[PANELS_MAX];
    int n;
};

static const json_t *timeline_of(const json_t *trial, size_t position)
{
    const json_t *device = json_array_get(json_object_get(trial, "per_device"), position);
    const json_t *timeline = el_json_at(device, "memory.timeline");
    return json_array_size(json_object_get(timeline, "ms")) < 2 ? NULL : timeline;
}

static const json_t *largest(const json_t *trials, const char *mode)
{
    const json_t *found = NULL;
    EL_EACH(trial, trials) {
        if (strcmp(el_json_text(trial, "mode", ""), mode) != 0 || timeline_of(trial, 0) == NULL) continue;
        if (strcmp(el_json_text(trial, "status", ""), "ok") != 0) continue;
        if (found == NULL || el_json_number(trial, "global_batch") > el_json_number(found, "global_batch"))
            found = trial;
    }
    return found;
}

/* Each mode's largest batch: the first device, and the second one too if one thread issues for all (dp). */
static void choose_panels(const json_t *trials, struct panels *panels)
{
    panels->n = 0;
    EL_EACH(of_mode, trials) {
        const char *mode = el_json_text(of_mode, "mode", "?");
        const json_t *trial = el_data_seen(trials, of_mode_at.i, "mode") ? NULL : largest(trials, mode), *timeline;
        const struct el_mode_info *info = el_mode_find(mode);
        size_t wanted = info != NULL ? (size_t)info->n_shown : 1;
        for (size_t k = 0; k < wanted && panels->n < PANELS_MAX && (timeline = timeline_of(trial, k)) != NULL; k++)
            panels->list[panels->n++] = (struct panel){trial, json_array_get(json_object_get(trial, "per_device"), k),
                                                       timeline, json_array_size(json_object_get(timeline, "ms"))};
    }
}

static double column(const json_t *object, const char *name, size_t i)
{
    const json_t *value = json_array_get(json_object_get(object, name), i);
    return json_is_number(value) ? json_number_value(value) : 0;
}

static double ms_at(const struct panel *panel, size_t i)
{
    return column(panel->timeline, "ms", i);
}

static double step_ms(const struct panel *panel)
{
    return ms_at(panel, panel->n - 1);
}

static double tag_mib(const struct panel *panel, int tag, size_t i)
{
    return column(json_object_get(panel->timeline, "bytes"), el_tag_name((enum el_tag)tag), i) / MIB;
}

/* EL_TAG_COUNT: of all. */
static double below_mib(const struct panel *panel, int tag, size_t i)
{
    double sum = 0;
    for (int t = 0; t < tag; t++) sum += tag_mib(panel, t, i);
    return sum;
}

static double peak_mib(const struct panel *panel)
{
    double peak = 0;
    for (size_t i = 0; i < panel->n; i++) peak = fmax(peak, below_mib(panel, EL_TAG_COUNT, i));
    return peak;
}

struct box {
    const char *phase;
    bool comm; /* the lane of communication */
    double from_ms, to_ms;
};

static const char *text_at(const json_t *object, const char *name, size_t i)
{
    const char *text = json_string_value(json_array_get(json_object_get(object, name), i));
    return text ? text : IDLE;
}

static const char *box_name(const struct panel *panel, const json_t *lanes, size_t i)
{
    const char *group = json_string_value(json_array_get(json_object_get(lanes, "group"), i));
    const json_t *groups = el_json_at(panel->device, "comm.by_group");
    const char *axis = group ? el_report_axis(group, json_object_get(groups, group)) : "";
    for (int a = 0; a < CUT_AXES; a++)
        if (!strcmp(axis, cut_axes[a])) return cut_axes[a];
    return text_at(lanes, "phase", i);
}

/* *i_p begins at 0. */
static bool next_box(const struct panel *panel, size_t *i_p, struct box *box_p)
{
    const json_t *lanes = json_object_get(panel->timeline, "lanes");
    size_t i = *i_p;
    if (i >= json_array_size(json_object_get(lanes, "lane"))) return false;
    *box_p = (struct box){box_name(panel, lanes, i), !strcmp(text_at(lanes, "lane", i), "comm"),
                          column(lanes, "from_ms", i), column(lanes, "to_ms", i)};
    *i_p = i + 1;
    return true;
}

static double longest_ms(const struct panel *panel, const char *phase)
{
    double most = 0;
    struct box box;
    for (size_t i = 0; next_box(panel, &i, &box);)
        if (!strcmp(box.phase, phase)) most = fmax(most, box.to_ms - box.from_ms);
    return most;
}

/* Two corners per run of equal sums. `back`: right to left. */
static void put_steps(const struct panel *panel, int tag, bool back, FILE *file)
{
    size_t n = panel->n - 1;
    for (size_t i = 0, end; i < n; i = end) {
        double mib = below_mib(panel, tag, back ? n - 1 - i : i);
        for (end = i + 1; end < n; end++)
            if (below_mib(panel, tag, back ? n - 1 - end : end) != mib) break;
        fprintf(file, "%.6g\t%.6g\n", ms_at(panel, back ? n - i : i), mib);
        fprintf(file, "%.6g\t%.6g\n", ms_at(panel, back ? n - end : end), mib);
    }
}

/* Closed outlines: adjacent pieces would show seams. */
static void put_stack(const struct panel *panel, int k, FILE *file)
{
    for (int tag = 0; tag < EL_TAG_COUNT; tag++) {
        el_data_block(file, "ms, MiB of the outline", "%d %s", k, el_tag_name((enum el_tag)tag));
        put_steps(panel, tag + 1, false, file);
        put_steps(panel, tag, true, file);
    }
    el_data_block(file, "ms, MiB", "%d total", k);
    put_steps(panel, EL_TAG_COUNT, false, file);
}

/* On the roomier side of its line; the other block's row has no text. */
static void put_peak(const struct panel *panel, int k, double top_mib, double end_ms, FILE *file)
{
    char mib[EL_FIGURE_BYTES];
    double at = el_json_number(panel->timeline, "peak_ms");
    int own_side = at < end_ms / 2;
    el_text_mib(peak_mib(panel) * MIB, mib);
    el_data_block(file, "ms, to MiB", "%d peak", k);
    fprintf(file, "%.6g\t%.6g\n", at, top_mib * 0.99);
    for (int side = 0; side < 2; side++) {
        el_data_block(file, "ms, MiB, label", "%d note %s", k, side ? "right" : "left");
        fprintf(file, "%.6g\t%.6g\t", at, top_mib * 0.92);
        if (side == own_side)
            fprintf(file, "peak %s MiB, in %s\n", mib,
                    el_data_word(el_json_text(panel->timeline, "peak_phase", "?")).text);
        else
            fputs(" \n", file);
    }
}

static const char *phase_name(int p)
{
    if (p > EL_PHASE_COUNT) return cut_axes[p - EL_PHASE_COUNT - 1];
    return p < EL_PHASE_COUNT ? el_phase_name((enum el_phase)p) : WAIT;
}

static void put_lanes(const struct panel *panel, int k, FILE *file)
{
    struct box box;
    el_data_block(file, "y, lane", "%d lanes", k);
    fprintf(file, "%g\tcompute\n%g\tcomm\n", 1 - LANE_HEIGHT / 2, LANE_HEIGHT / 2);
    for (int p = 0; p < NAMES; p++) {
        el_data_block(file, "from ms, to ms, low, high", "%d phase %s", k, phase_name(p));
        for (size_t i = 0; next_box(panel, &i, &box);)
            if (!strcmp(box.phase, phase_name(p)))
                fprintf(file, "%.6g\t%.6g\t%g\t%g\n", box.from_ms, box.to_ms, box.comm ? 0 : 1 - LANE_HEIGHT,
                        box.comm ? LANE_HEIGHT : 1);
        fputs("0\t0\t0\t0\n", file); /* a block is never empty */
    }
    el_data_block(file, "from ms, to ms, low, high", "%d phase " IDLE, k); /* under all others */
    fprintf(file, "0\t%.6g\t0\t%g\n0\t%.6g\t%g\t1\n", step_ms(panel), LANE_HEIGHT, step_ms(panel), 1 - LANE_HEIGHT);
}

/* "dp, batch 256 (2 x 128): cpu:0" */
static void put_panel(const struct panel *panel, int k, double top_mib, double end_ms, FILE *file)
{
    char batch[EL_CELL_BYTES], name[EL_CELL_BYTES];
    el_table_batch(panel->trial, NULL, batch);
    el_data_block(file, "title, step ms, whether it has a mark", "%d about", k);
    el_table_mode(panel->trial, name, sizeof name);
    fprintf(file, "%s, batch %s: %s\t%.6g\t%d\n", el_data_label(name).text, batch,
            el_data_word(el_json_text(panel->device, "device", "?")).text, step_ms(panel),
            el_data_has_mark(panel->trial));
    put_stack(panel, k, file);
    put_peak(panel, k, top_mib, end_ms, file);
    put_lanes(panel, k, file);
}

static void name_all(const struct panels *panels, double top_mib, double end_ms, struct el_data_names *tags,
                     struct el_data_names *phases)
{
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        double most = 0;
        for (int k = 0; k < panels->n; k++)
            for (size_t i = 0; i < panels->list[k].n; i++) most = fmax(most, tag_mib(&panels->list[k], t, i));
        char *list = most < THIN_RATIO * top_mib ? tags->thin : tags->present;
        if (most > 0) el_data_add_name(list, el_tag_name((enum el_tag)t));
    }
    for (int p = 0; p < NAMES; p++) {
        double most = 0;
        for (int k = 0; k < panels->n; k++) most = fmax(most, longest_ms(&panels->list[k], phase_name(p)));
        if (most > 0) el_data_add_name(most < THIN_RATIO * end_ms ? phases->thin : phases->present, phase_name(p));
    }
    el_data_add_name(phases->present, IDLE);
}

/* Adds the shown trials to `shown`. */
static void foot_text(const struct panels *panels, json_t *shown, char foot[EL_TITLE_BYTES])
{
    bool several = false, hidden = false;
    char words[2 * EL_TITLE_BYTES], second[EL_TITLE_BYTES] = "";
    for (int k = 0; k < panels->n; k++) {
        const struct panel *panel = &panels->list[k];
        bool first = k == 0 || panel->trial != panels->list[k - 1].trial;
        several |= json_array_size(json_object_get(panel->trial, "repeats")) > 1;
        hidden |= first && json_array_size(json_object_get(panel->trial, "per_device")) > 1;
        if (first) json_array_append(shown, (json_t *)(uintptr_t)panel->trial);
        if (!first)
            el_text_append(second, sizeof second, "%s%s", *second ? ", " : "; also on the second for ",
                           el_data_word(el_json_text(panel->trial, "mode", "?")).text);
    }
    snprintf(words, sizeof words, "Mean step of the launch%s%s%s.", several ? " with the median throughput" : "",
             hidden ? ", on the first device" : "", hidden ? second : "");
    el_data_foot(shown, words, foot);
}

/* At most five labels. */
static double tic_of(double top_mib)
{
    double unit = pow(10, floor(log10(top_mib / 5))), labels = top_mib / unit; /* 5 to 50 */
    return unit * (labels <= 5 ? 1 : labels <= 10 ? 2 : labels <= 25 ? 5 : 10);
}

static enum el_status write_timeline(const struct el_figure *figure, const json_t *run, FILE *file, bool *any_p)
{
    (void)figure;
    char title[EL_TITLE_BYTES], foot[EL_TITLE_BYTES];
    double top_mib = 1e-6, end_ms = 1e-6; /* axes are never of zero length */
    struct el_data_names tags = {"", ""}, phases = {"", ""};
    struct panels panels;
    json_t *shown = json_array();
    choose_panels(json_object_get(run, "trials"), &panels);
    for (int k = 0; k < panels.n; k++) {
        top_mib = fmax(top_mib, peak_mib(&panels.list[k]) * HEAD_ROOM);
        end_ms = fmax(end_ms, step_ms(&panels.list[k]));
    }
    el_data_title(json_object_get(run, "trials"), title);
    name_all(&panels, top_mib, end_ms, &tags, &phases);
    foot_text(&panels, shown, foot);
    el_data_about(file, &(struct el_data_about){title, &tags, end_ms, WIDTH_BARS, foot},
                  ", panels, phases, phases too thin for the legend, top MiB, MiB between labels");
    fprintf(file, "\t%d\t%s\t%s\t%.6g\t%g\n", panels.n, phases.present, *phases.thin ? phases.thin : " ", top_mib,
            tic_of(top_mib));
    el_data_warning(file, shown, EL_DATA_BYTES_EXACT);
    for (int k = 0; k < panels.n; k++) put_panel(&panels.list[k], k, top_mib, end_ms, file);
    json_decref(shown);
    *any_p = panels.n > 0;
    return EL_OK;
}

const struct el_figure el_figure_timeline = {.name = "timeline", .write = write_timeline};
