/* The data file of the memory timeline: a panel a device, live bytes stacked by tag over the mean step.
 *
 * Everything the script draws is a row here: steps as their corners, the strip of phases, and on which side of its line
 * the peak's label has room. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/plot/layout.h"
#include "bench/plot/panels.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/report/parts.h"

enum { WIDTH_BARS = 10 };
static const double HEAD_ROOM = 1.2;      /* the axis over the highest peak: room for the label */
static const double LETTER_RATIO = 0.012; /* of a panel's width, at the size of the phases' names */
static const double THIN_RATIO = 0.01;    /* of the axis, of the step */
static const double MIB = 1048576;

static void begin_block(FILE *file, size_t k, const char *name, const char *columns)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%zu %s", k, name);
    el_layout_begin(file, whole, columns);
}

/* The steps of the sum of the tags before `tag`: two corners for each run of points with the same sum. `back`: from the
 * right to the left. */
static void write_steps(const struct el_panel *panel, int tag, bool back, FILE *file)
{
    size_t n = el_panel_points(panel) - 1;
    for (size_t i = 0, end; i < n; i = end) {
        double mib = el_panel_below_mib(panel, tag, back ? n - 1 - i : i);
        for (end = i + 1; end < n; end++) {
            if (el_panel_below_mib(panel, tag, back ? n - 1 - end : end) != mib) break;
        }
        fprintf(file, "%.6g\t%.6g\n", el_panel_ms(panel, back ? n - i : i), mib);
        fprintf(file, "%.6g\t%.6g\n", el_panel_ms(panel, back ? n - end : end), mib);
    }
}

/* A closed outline, along the top and back along the bottom: in one piece, for pieces side by side show seams. */
static void write_tag(const struct el_panel *panel, size_t k, int tag, FILE *file)
{
    begin_block(file, k, el_tag_name((enum el_tag)tag), "ms, MiB of the outline");
    write_steps(panel, tag + 1, false, file);
    write_steps(panel, tag, true, file);
    el_layout_end(file);
}

static void write_total(const struct el_panel *panel, size_t k, FILE *file)
{
    begin_block(file, k, "total", "ms, MiB");
    write_steps(panel, EL_TAG_COUNT, false, file);
    el_layout_end(file);
}

/* The label stands on the side of its line where there is more room; the other block has a row without text. */
static void write_peak(const struct el_panel *panel, size_t k, double top_mib, FILE *file)
{
    char mib[EL_FIGURE_BYTES], phase[EL_NAME_BYTES];
    double at = el_json_number(panel->timeline, "peak_ms");
    bool right = at < el_panel_step_ms(panel) / 2;
    el_layout_name(el_json_text(panel->timeline, "peak_phase", "?"), phase);
    begin_block(file, k, "peak", "ms, to MiB");
    fprintf(file, "%.6g\t%.6g\n", at, top_mib * 0.99);
    el_layout_end(file);
    for (int side = 0; side < 2; side++) {
        begin_block(file, k, side ? "note right" : "note left", "ms, MiB, label");
        fprintf(file, "%.6g\t%.6g\t", at, top_mib * 0.92);
        if (right == (side == 1)) {
            fprintf(file, "peak %s MiB, in %s\n", el_text_mib(el_panel_peak_mib(panel) * MIB, mib), phase);
        } else {
            fputs(" \n", file);
        }
        el_layout_end(file);
    }
}

static void write_phase(const struct el_panel *panel, size_t k, const char *phase, FILE *file)
{
    char name[32];
    snprintf(name, sizeof name, "phase %s", phase);
    begin_block(file, k, name, "from ms, to ms");
    for (size_t i = 0, end; i + 1 < el_panel_points(panel); i = end) {
        end = el_panel_run_end(panel, i);
        if (strcmp(el_panel_phase(panel, i), phase) == 0)
            fprintf(file, "%.6g\t%.6g\n", el_panel_ms(panel, i), el_panel_ms(panel, end));
    }
    fputs("0\t0\n", file); /* so that the block is never empty */
    el_layout_end(file);
}

/* Each phase once, under its longest part, where the name has room. */
static void write_names(const struct el_panel *panel, size_t k, FILE *file)
{
    begin_block(file, k, "names", "ms, phase");
    fputs("0\t \n", file); /* so that the block is never empty */
    for (int p = 0; p < EL_PHASE_COUNT; p++) {
        const char *phase = el_phase_name((enum el_phase)p);
        struct el_panel_part part = el_panel_longest(panel, phase);
        if (el_panel_phase_ratio(panel, phase) < (double)(strlen(phase) + 1) * LETTER_RATIO) continue;
        fprintf(file, "%.6g\t%s\n", (part.from_ms + part.to_ms) / 2, phase);
    }
    el_layout_end(file);
}

/* What is drawn, in the order of all plots; and what of it is too thin to be seen, so that no legend needs it. */
struct names {
    char tags[EL_NAMES_BYTES], thin_tags[EL_NAMES_BYTES], phases[EL_NAMES_BYTES], thin_phases[EL_NAMES_BYTES];
};

static void name_all(const struct el_panels *panels, double top_mib, struct names *names)
{
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        double most = 0;
        for (int k = 0; k < panels->n; k++) most = fmax(most, el_panel_tag_mib(&panels->list[k], t));
        char *list = most < THIN_RATIO * top_mib ? names->thin_tags : names->tags;
        if (most > 0) el_layout_append(list, EL_NAMES_BYTES, el_tag_name((enum el_tag)t));
    }
    for (int p = 0; p < EL_PHASE_COUNT; p++) {
        const char *phase = el_phase_name((enum el_phase)p);
        double most = 0;
        for (int k = 0; k < panels->n; k++) most = fmax(most, el_panel_phase_ratio(&panels->list[k], phase));
        if (most > 0) el_layout_append(most < THIN_RATIO ? names->thin_phases : names->phases, EL_NAMES_BYTES, phase);
    }
    el_layout_append(names->phases, EL_NAMES_BYTES, EL_PANEL_IDLE);
}

/* A round number of MiB, so that an axis has five labels at most. */
static double tic_mib(double top_mib)
{
    double unit = pow(10, floor(log10(top_mib / 5))), labels = top_mib / unit; /* 5 to 50 */
    return unit * (labels <= 5 ? 1 : labels <= 10 ? 2 : labels <= 25 ? 5 : 10);
}

/* Which of a trial's launches is shown, for records that say so; of one launch there is no choice. */
static void foot_text(const struct el_panels *panels, char foot[EL_TITLE_BYTES])
{
    bool median = true, several = false, valid = true;
    for (int k = 0; k < panels->n; k++) {
        const struct el_panel *panel = &panels->list[k];
        median &= !isnan(el_json_number(panel->timeline, "repeat"));
        several |= json_array_size(json_object_get(panel->trial, "repeats")) > 1;
        valid &= el_layout_is_valid(panel->trial);
    }
    snprintf(foot, EL_TITLE_BYTES, "mean step of %s%s",
             !several ? "the launch"
             : median ? "the launch with the median throughput"
                      : "the first launch",
             valid ? "" : "; *: suspect or not checked, see the warnings");
}

static void write_about(const struct el_panels *panels, const char *title, double top_mib, FILE *file)
{
    struct names names = {"", "", "", ""};
    char foot[EL_TITLE_BYTES];
    name_all(panels, top_mib, &names);
    foot_text(panels, foot);
    el_layout_begin(file, "about",
                    EL_ABOUT_COLUMNS ", panels, phases, phases too thin for the legend, top MiB, MiB between labels");
    el_layout_about(file, title, names.tags, names.thin_tags, 1, WIDTH_BARS, foot);
    fprintf(file, "\t%d\t%s\t%s\t%.6g\t%g\n", panels->n, names.phases, *names.thin_phases ? names.thin_phases : " ",
            top_mib, tic_mib(top_mib));
    el_layout_end(file);
}

/* "dp, batch 256 (2 x 128): cpu:0" */
static void write_panel_about(const struct el_panel *panel, size_t k, FILE *file)
{
    char batch[64], mode[EL_NAME_BYTES], device[EL_NAME_BYTES];
    el_table_batch(panel->trial, batch, sizeof batch);
    el_layout_name(el_json_text(panel->trial, "mode", "?"), mode);
    el_layout_name(el_json_text(panel->device, "device", "?"), device);
    begin_block(file, k, "about", "title, step ms");
    fprintf(file, "%s%s, batch %s: %s\t%.6g\n", mode, el_layout_is_valid(panel->trial) ? "" : "*", batch, device,
            el_panel_step_ms(panel));
    el_layout_end(file);
}

static void write_panel(const struct el_panel *panel, size_t k, double top_mib, FILE *file)
{
    write_panel_about(panel, k, file);
    for (int tag = 0; tag < EL_TAG_COUNT; tag++) write_tag(panel, k, tag, file);
    write_total(panel, k, file);
    write_peak(panel, k, top_mib, file);
    for (int p = 0; p < EL_PHASE_COUNT; p++) write_phase(panel, k, el_phase_name((enum el_phase)p), file);
    write_phase(panel, k, EL_PANEL_IDLE, file);
    write_names(panel, k, file);
}

static enum el_status write_file(const struct el_panels *panels, const json_t *trials, const char *path)
{
    char temporary[EL_PATH_BYTES + 64], title[EL_TITLE_BYTES];
    double top_mib = 1e-6; /* an axis is not of no length, whatever a record says */
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    if (file == NULL) return el_fail_errno("%s could not be written", path);
    for (int k = 0; k < panels->n; k++) top_mib = fmax(top_mib, el_panel_peak_mib(&panels->list[k]) * HEAD_ROOM);
    el_layout_title(trials, title);
    write_about(panels, title, top_mib, file);
    for (int k = 0; k < panels->n; k++) write_panel(&panels->list[k], (size_t)k, top_mib, file);
    return el_file_end(file, temporary, path);
}

enum el_status el_plot_timeline(const json_t *trials, const char *plots_dir, int *n_files_p)
{
    struct el_panels panels;
    char path[EL_PATH_BYTES];
    el_panels_choose(trials, &panels);
    snprintf(path, sizeof path, "%s/timeline.dat", plots_dir);
    if (panels.n == 0) {
        remove(path); /* of an earlier run in the same folder */
        return EL_OK;
    }
    EL_TRY(write_file(&panels, trials, path));
    *n_files_p += 1;
    return EL_OK;
}
