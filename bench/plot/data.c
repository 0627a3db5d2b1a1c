/* The figures' data files: tab separated, with a comment before each block that names it and its columns.
 *
 * All arithmetic of a figure is here (stacking, units, which part of comm is drawn), none in the scripts. A figure
 * whose spans were not recorded has no file. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/plot/layout.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "runtime/base/probe.h"

static const double THIN_RATIO = 0.01; /* of the largest part */
static const double HALF_BAR = 0.42;

/* A stacked or grouped part of a bar: value of the slot, NAN for none. */
struct part {
    const char *name;
    double (*value)(const struct el_slot *slot, const char *name);
};

struct figure {
    const char *name;
    bool per_device, stacked, whiskers;
    double mode_gap;
    const struct part *parts; /* NULL: one a mode */
    double (*of_mode)(const struct el_slot *slot, const char *name);
};

static double tag_mib(const struct el_slot *slot, const char *tag)
{
    return el_json_number(el_json_at(slot->device, "memory.at_peak_by_tag"), tag) / 1048576;
}

/* Of communication only what is not hidden behind compute lengthens the step, so only that is stacked; and where waits
 * for late members are known they are a part of their own. */
static double phase_ms(const struct el_slot *slot, const char *phase)
{
    if (strcmp(phase, "idle") == 0) return el_json_number(slot->trial, "idle_ms");
    if (strcmp(phase, "wait") == 0) return el_json_number(slot->trial, "comm.wait_exposed_ms");
    double ms = el_json_number(el_json_at(slot->trial, "phases_ms"), phase);
    if (strcmp(phase, el_phase_name(EL_PHASE_COMM)) != 0 || !(ms > 0)) return ms;
    double hidden = el_json_number(slot->trial, "comm.overlapped_ms");
    double wait = el_json_number(slot->trial, "comm.wait_ms");
    if (!isnan(wait)) hidden -= wait - el_json_number(slot->trial, "comm.wait_exposed_ms");
    return hidden > 0 ? fmax(0, ms - hidden) : ms;
}

#define PHASE_NAME(id, text) text,
static const char *const phase_names[] = {EL_PHASE_LIST(PHASE_NAME) "wait", "idle"};

/* Phases are medians over launches, each for itself: in proportion, so that the bar ends at the trial's step. */
static double step_part_ms(const struct el_slot *slot, const char *phase)
{
    double sum = 0, step = el_json_number(slot->trial, "step_ms.mean");
    for (size_t i = 0; i < sizeof phase_names / sizeof phase_names[0]; i++) {
        double ms = phase_ms(slot, phase_names[i]);
        sum += ms > 0 ? ms : 0;
    }
    return phase_ms(slot, phase) * (sum > 0 && step > 0 ? step / sum : 1);
}

/* What the system says that the device holds beyond the ledger's peak. */
static double unattributed_mib(const struct el_slot *slot, const char *name)
{
    (void)name;
    return el_json_number(slot->device, "memory.unattributed_bytes") / 1048576;
}

static double throughput(const struct el_slot *slot, const char *mode)
{
    if (strcmp(el_json_text(slot->trial, "mode", ""), mode) != 0) return NAN;
    return el_json_number(slot->trial, "throughput.samples_per_s");
}

static double busy_pct(const struct el_slot *slot, const char *mode)
{
    if (strcmp(el_json_text(slot->trial, "mode", ""), mode) != 0) return NAN;
    return el_json_number(slot->device, "utilization.busy_pct");
}

#define TAG_PART(id, text)   {text, tag_mib},
#define PHASE_PART(id, text) {text, step_part_ms},
static const struct part tags[] = {EL_TAG_LIST(TAG_PART){"unattributed", unattributed_mib}, {0}};
static const struct part phases[] = {EL_PHASE_LIST(PHASE_PART){"wait", step_part_ms}, {"idle", step_part_ms}, {0}};

static const struct figure figures[] = {
    {.name = "memory", .per_device = true, .stacked = true, .mode_gap = 0.5, .parts = tags},
    {.name = "throughput", .whiskers = true, .of_mode = throughput},
    {.name = "step", .stacked = true, .mode_gap = 0.45, .parts = phases},
    {.name = "utilization", .per_device = true, .mode_gap = 0.5, .of_mode = busy_pct},
};
enum { N_FIGURES = sizeof figures / sizeof figures[0] };

static bool drawn(double value, bool stacked)
{
    return !isnan(value) && (value > 0 || !stacked);
}

/* The part's largest value; NAN if it has none to draw. */
static double part_max(const struct el_layout *layout, const struct part *part, bool stacked)
{
    double max = NAN;
    for (size_t i = 0; i < layout->n; i++) {
        double value = part->value(&layout->slots[i], part->name);
        if (drawn(value, stacked)) max = isnan(max) ? value : fmax(max, value);
    }
    return max;
}

/* Modes in the order of their first trial, as parts. Ended by a row whose name is NULL; to be freed. */
static struct part *modes_of(const json_t *trials, double (*value)(const struct el_slot *, const char *))
{
    size_t n = 0;
    struct part *modes = calloc(json_array_size(trials) + 1, sizeof *modes);
    for (size_t i = 0; i < json_array_size(trials) && modes != NULL; i++) {
        const char *mode = el_json_text(json_array_get(trials, i), "mode", "?");
        size_t k = 0;
        while (k < n && strcmp(modes[k].name, mode) != 0) k++;
        if (k == n) modes[n++] = (struct part){.name = mode, .value = value};
    }
    return modes;
}

/* The foot of slot's part: the sum of the parts below it. */
static double foot(const struct figure *figure, const struct part *parts, const struct part *part,
                   const struct el_slot *slot)
{
    double sum = 0;
    for (const struct part *below = parts; figure->stacked && below != part; below++) {
        double value = below->value(slot, below->name);
        sum += value > 0 ? value : 0;
    }
    return sum;
}

static void write_part(const struct figure *figure, const struct el_layout *layout, const struct part *parts,
                       const struct part *part, FILE *file)
{
    char name[EL_NAME_BYTES];
    el_layout_name(part->name, name);
    for (size_t i = 0; i < layout->n; i++) {
        const struct el_slot *slot = &layout->slots[i];
        double value = part->value(slot, part->name);
        if (!drawn(value, figure->stacked)) continue;
        double from = foot(figure, parts, part, slot);
        fprintf(file, "%g\t%.6g\t%.6g\t%.6g\t%.6g\t%s\n", slot->x, slot->x - HALF_BAR, slot->x + HALF_BAR, from,
                from + value, name);
    }
}

static void write_whiskers(const struct el_layout *layout, FILE *file)
{
    el_layout_begin(file, "whiskers", "x, ci95 low, ci95 high");
    fputs("0\t0\t0\n", file); /* a block is never empty; left of the axis */
    for (size_t i = 0; i < layout->n; i++) {
        const struct el_slot *slot = &layout->slots[i];
        double low = el_json_number(slot->trial, "throughput.ci95.0");
        double high = el_json_number(slot->trial, "throughput.ci95.1");
        if (!isnan(low) && !isnan(high)) fprintf(file, "%g\t%.6g\t%.6g\n", slot->x, low, high);
    }
    el_layout_end(file);
}

/* Over the whole bar of a trial whose figures are not to be trusted. */
static void write_unsure(const struct figure *figure, const struct el_layout *layout, const struct part *parts,
                         FILE *file)
{
    el_layout_begin(file, "not valid", "x, left, right, from, to");
    fputs("0\t0\t0\t0\t0\n", file);
    for (size_t i = 0; i < layout->n; i++) {
        const struct el_slot *slot = &layout->slots[i];
        double top = 0;
        for (const struct part *part = parts; part->name != NULL; part++) {
            double value = part->value(slot, part->name);
            if (drawn(value, figure->stacked)) top = figure->stacked ? top + value : fmax(top, value);
        }
        if (!el_layout_is_valid(slot->trial) && top > 0)
            fprintf(file, "%g\t%.6g\t%.6g\t0\t%.6g\n", slot->x, slot->x - HALF_BAR, slot->x + HALF_BAR, top);
    }
    el_layout_end(file);
}

/* The parts that are drawn, and of a stack those that are too thin to be seen. */
struct names {
    char present[EL_NAMES_BYTES], thin[EL_NAMES_BYTES];
};

static void name_parts(const struct figure *figure, const struct el_layout *layout, const struct part *parts,
                       struct names *names)
{
    double tallest = 0;
    for (const struct part *part = parts; part->name != NULL; part++) {
        double max = part_max(layout, part, figure->stacked);
        if (max > tallest) tallest = max;
    }
    for (const struct part *part = parts; part->name != NULL; part++) {
        double max = part_max(layout, part, figure->stacked);
        if (isnan(max)) continue;
        char name[EL_NAME_BYTES];
        el_layout_name(part->name, name);
        el_layout_append(figure->stacked && max < tallest * THIN_RATIO ? names->thin : names->present, EL_NAMES_BYTES,
                         name);
    }
}

static enum el_status write_file(const struct figure *figure, const struct el_layout *layout, const json_t *trials,
                                 const struct part *parts, const struct names *names, const char *path)
{
    char temporary[EL_PATH_BYTES + 64], title[EL_TITLE_BYTES];
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    if (file == NULL) return el_fail_errno("%s could not be written", path);
    el_layout_title(trials, title);
    el_layout_write(layout, trials, title, names->present, names->thin, file);
    el_layout_begin(file, "bars", "x, left, right, from, to, part");
    for (const struct part *part = parts; part->name != NULL; part++) write_part(figure, layout, parts, part, file);
    el_layout_end(file);
    write_unsure(figure, layout, parts, file);
    if (figure->whiskers) write_whiskers(layout, file);
    return el_file_end(file, temporary, path);
}

/* Adds 1 to *n_files_p if there is something to draw. */
static enum el_status write_figure(const struct figure *figure, const json_t *trials, const char *dir, int *n_files_p)
{
    struct el_layout layout;
    struct names names = {"", ""};
    char path[EL_PATH_BYTES];
    struct part *modes = figure->parts == NULL ? modes_of(trials, figure->of_mode) : NULL;
    const struct part *parts = figure->parts == NULL ? modes : figure->parts;
    enum el_status status = EL_OK;
    el_layout_build(trials, figure->per_device, figure->mode_gap, &layout);
    snprintf(path, sizeof path, "%s/%s.dat", dir, figure->name);
    if (parts == NULL || layout.failed) {
        status = el_fail(EL_ERR_HOST_MEMORY, "%s: out of memory", path);
    } else {
        name_parts(figure, &layout, parts, &names);
        if (names.present[0] != '\0') {
            status = write_file(figure, &layout, trials, parts, &names, path);
            *n_files_p += status == EL_OK;
        } else {
            remove(path); /* of an earlier run in the same folder */
        }
    }
    el_layout_free(&layout);
    free(modes);
    return status;
}

enum el_status el_plot_data(const json_t *run, const char *plots_dir, int *n_files_p)
{
    int n = 0;
    if (json_object_get(run, "watch") != NULL) return el_plot_watch(run, plots_dir, n_files_p ? n_files_p : &n);
    if (mkdir(plots_dir, 0777) != 0 && errno != EEXIST) return el_fail_errno("%s could not be made", plots_dir);
    for (int i = 0; i < N_FIGURES; i++) {
        EL_TRY(write_figure(&figures[i], json_object_get(run, "trials"), plots_dir, &n));
    }
    EL_TRY(el_plot_timeline(json_object_get(run, "trials"), plots_dir, &n));
    if (n_files_p != NULL) *n_files_p = n;
    return EL_OK;
}
