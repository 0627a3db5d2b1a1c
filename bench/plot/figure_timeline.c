/* The memory timeline: a panel a device, live bytes stacked by tag over the mean step, under it the strip of phases.
 *
 * Everything the script draws is a row here: steps as their corners, the parts of the strip, and on which side of its
 * line the peak's label has room. Indices `i` are those of the timeline's points. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/plot/plot.h"
#include "bench/report/row_names.h"
#include "runtime/parallel/train.h"

#define IDLE "idle" /* the phase in which nothing runs */
enum { WIDTH_BARS = 10, PANELS_MAX = 12 };
static const double HEAD_ROOM = 1.2;      /* the axis over the highest peak: room for the label */
static const double LETTER_RATIO = 0.012; /* of a panel's width, at the size of the phases' names */
static const double THIN_RATIO = 0.01;    /* of the axis, of the step */
static const double MIB = 1048576;

struct panel {
    const json_t *trial, *device, *timeline;
    size_t n; /* points, two at least */
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

/* The mode's finished trial with the largest batch; NULL if none has a timeline. */
static const json_t *largest(const json_t *trials, const char *mode)
{
    const json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        if (strcmp(el_json_text(trial, "mode", ""), mode) != 0 || timeline_of(trial, 0) == NULL) continue;
        if (strcmp(el_json_text(trial, "status", ""), "ok") != 0) continue;
        if (found == NULL || el_json_number(trial, "global_batch") > el_json_number(found, "global_batch"))
            found = trial;
    }
    return found;
}

/* Of each mode the largest batch that finished: the first device, and where one thread issues for all devices (dp) the
 * second too, against which the first one's load is seen. */
static void choose_panels(const json_t *trials, struct panels *panels)
{
    panels->n = 0;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const char *mode = el_json_text(json_array_get(trials, i), "mode", "?");
        const json_t *trial = el_data_seen(trials, i, "mode") ? NULL : largest(trials, mode), *timeline;
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

/* The sum of the tags before `tag`; EL_TAG_COUNT gives that of all. */
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

static const char *phase_at(const struct panel *panel, size_t i)
{
    const char *phase = json_string_value(json_array_get(json_object_get(panel->timeline, "phase"), i));
    return phase != NULL ? phase : IDLE;
}

/* The next part of the strip that is of this phase, from point *i_p on; *i_p is its end then. */
static bool next_part(const struct panel *panel, const char *phase, size_t *i_p, double *from_ms, double *to_ms)
{
    size_t i = *i_p, end;
    while (i + 1 < panel->n && strcmp(phase_at(panel, i), phase) != 0) i++;
    for (end = i; end + 1 < panel->n && strcmp(phase_at(panel, end), phase) == 0;) end++;
    *i_p = end;
    *from_ms = ms_at(panel, i);
    *to_ms = ms_at(panel, end);
    return end > i;
}

/* How much of the step the phase's longest part is; *middle_p: where that lies. */
static double longest_ratio(const struct panel *panel, const char *phase, double *middle_p)
{
    double most = 0, from_ms, to_ms;
    for (size_t i = 0; next_part(panel, phase, &i, &from_ms, &to_ms);) {
        if (to_ms - from_ms <= most) continue;
        most = to_ms - from_ms;
        *middle_p = (from_ms + to_ms) / 2;
    }
    return most / step_ms(panel);
}

/* The steps of the sum of the tags before `tag`: two corners for each run of points with the same sum. `back`: from the
 * right to the left. */
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

/* Tags as closed outlines, along the top and back along the bottom: in one piece, for pieces side by side show seams.
 */
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

/* The label stands on the side of its line where there is more room; the other block has a row without text. */
static void put_peak(const struct panel *panel, int k, double top_mib, FILE *file)
{
    char mib[EL_FIGURE_BYTES];
    double at = el_json_number(panel->timeline, "peak_ms");
    int own_side = at < step_ms(panel) / 2;
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
    return p < EL_PHASE_COUNT ? el_phase_name((enum el_phase)p) : IDLE;
}

/* The strip; and each phase's name once, under its longest part, where it has room. */
static void put_phases(const struct panel *panel, int k, FILE *file)
{
    double from_ms, to_ms, middle_ms;
    for (int p = 0; p <= EL_PHASE_COUNT; p++) {
        el_data_block(file, "from ms, to ms", "%d phase %s", k, phase_name(p));
        for (size_t i = 0; next_part(panel, phase_name(p), &i, &from_ms, &to_ms);)
            fprintf(file, "%.6g\t%.6g\n", from_ms, to_ms);
        fputs("0\t0\n", file); /* so that the block is never empty */
    }
    el_data_block(file, "ms, phase", "%d names", k);
    fputs("0\t \n", file);
    for (int p = 0; p < EL_PHASE_COUNT; p++) {
        double room = (double)(strlen(phase_name(p)) + 1) * LETTER_RATIO;
        if (longest_ratio(panel, phase_name(p), &middle_ms) >= room)
            fprintf(file, "%.6g\t%s\n", middle_ms, phase_name(p));
    }
}

/* "dp, batch 256 (2 x 128): cpu:0", and all of its panel. */
static void put_panel(const struct panel *panel, int k, double top_mib, FILE *file)
{
    char batch[EL_CELL_BYTES];
    el_table_batch(panel->trial, NULL, batch);
    el_data_block(file, "title, step ms", "%d about", k);
    fprintf(file, "%s%s, batch %s: %s\t%.6g\n", el_data_word(el_json_text(panel->trial, "mode", "?")).text,
            el_data_is_valid(panel->trial) ? "" : "*", batch,
            el_data_word(el_json_text(panel->device, "device", "?")).text, step_ms(panel));
    put_stack(panel, k, file);
    put_peak(panel, k, top_mib, file);
    put_phases(panel, k, file);
}

/* What is drawn, in the order of all plots; and what of it is too thin to be seen, so that no legend needs it. */
static void name_all(const struct panels *panels, double top_mib, struct el_data_names *tags,
                     struct el_data_names *phases)
{
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        double most = 0;
        for (int k = 0; k < panels->n; k++)
            for (size_t i = 0; i < panels->list[k].n; i++) most = fmax(most, tag_mib(&panels->list[k], t, i));
        char *list = most < THIN_RATIO * top_mib ? tags->thin : tags->present;
        if (most > 0) el_data_add_name(list, el_tag_name((enum el_tag)t));
    }
    for (int p = 0; p < EL_PHASE_COUNT; p++) {
        double most = 0, middle_ms;
        for (int k = 0; k < panels->n; k++)
            most = fmax(most, longest_ratio(&panels->list[k], phase_name(p), &middle_ms));
        if (most > 0) el_data_add_name(most < THIN_RATIO ? phases->thin : phases->present, phase_name(p));
    }
    el_data_add_name(phases->present, IDLE);
}

/* Which of a trial's launches is shown, for records that say so; of one launch there is no choice. */
static void foot_text(const struct panels *panels, char foot[EL_TITLE_BYTES])
{
    bool median = true, several = false, valid = true;
    for (int k = 0; k < panels->n; k++) {
        const struct panel *panel = &panels->list[k];
        median &= !isnan(el_json_number(panel->timeline, "repeat"));
        several |= json_array_size(json_object_get(panel->trial, "repeats")) > 1;
        valid &= el_data_is_valid(panel->trial);
    }
    snprintf(foot, EL_TITLE_BYTES, "mean step of %s%s",
             !several ? "the launch"
             : median ? "the launch with the median throughput"
                      : "the first launch",
             valid ? "" : "; *: suspect or not checked, see the warnings");
}

static enum el_status write_timeline(const struct el_figure *figure, const json_t *run, FILE *file, bool *any_p)
{
    (void)figure;
    char title[EL_TITLE_BYTES], foot[EL_TITLE_BYTES];
    double top_mib = 1e-6; /* an axis is not of no length, whatever a record says */
    struct el_data_names tags = {"", ""}, phases = {"", ""};
    struct panels panels;
    choose_panels(json_object_get(run, "trials"), &panels);
    for (int k = 0; k < panels.n; k++) top_mib = fmax(top_mib, peak_mib(&panels.list[k]) * HEAD_ROOM);
    el_data_title(json_object_get(run, "trials"), title);
    name_all(&panels, top_mib, &tags, &phases);
    foot_text(&panels, foot);
    /* A round number of MiB, so that an axis has five labels at most. */
    double unit = pow(10, floor(log10(top_mib / 5))), labels = top_mib / unit; /* 5 to 50 */
    double tic_mib = unit * (labels <= 5 ? 1 : labels <= 10 ? 2 : labels <= 25 ? 5 : 10);
    el_data_about(file, &(struct el_data_about){title, &tags, 1, WIDTH_BARS, foot},
                  ", panels, phases, phases too thin for the legend, top MiB, MiB between labels");
    fprintf(file, "\t%d\t%s\t%s\t%.6g\t%g\n", panels.n, phases.present, *phases.thin ? phases.thin : " ", top_mib,
            tic_mib);
    for (int k = 0; k < panels.n; k++) put_panel(&panels.list[k], k, top_mib, file);
    *any_p = panels.n > 0;
    return EL_OK;
}

const struct el_figure el_figure_timeline = {.name = "timeline", .write = write_timeline};
