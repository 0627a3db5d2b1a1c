/* Positions, labels and blocks of bars. */
#include "bench/plot/bars.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/report.h"

static const double BATCH_GAP = 1.2;
/* Pixels on the canvas. */
static const double LETTER_PIXELS = 9, GAP_PIXELS = 9, AREA_PIXELS = 270;
static const double WORDS_RATIO = 0.12; /* room for two lines of words, of the highest stack */
static const double LITTLE_RATIO = 0.02, MIB = 1048576;

static double batch_of(const json_t *trial)
{
    return el_json_number(trial, "global_batch");
}

static size_t bars_of(const json_t *trial, bool per_device)
{
    size_t n = per_device ? json_array_size(json_object_get(trial, "per_device")) : 0;
    return n > 0 ? n : 1;
}

static void add_trial(struct el_bars *bars, const json_t *trial, bool per_device, double *x)
{
    const json_t *devices = per_device ? json_object_get(trial, "per_device") : NULL;
    for (size_t k = 0, n = bars_of(trial, per_device); k < n; k++) {
        bars->list[bars->n++] =
            (struct el_bar){.trial = trial, .device = json_array_get(devices, k), .position = k, .x = *x};
        *x += 1;
    }
}

enum el_status el_bars_place(const json_t *trials, bool per_device, double mode_gap, struct el_bars *bars_p)
{
    struct el_bars bars = {0};
    double x = 1;
    size_t n = json_array_size(trials), n_bars = 0;
    for (size_t i = 0; i < n; i++) n_bars += bars_of(json_array_get(trials, i), per_device);
    bars.list = calloc(n_bars + 1, sizeof *bars.list);
    if (bars.list == NULL) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu bars", n_bars);
    for (size_t i = 0; i < n; i++) {
        if (el_data_seen(trials, i, "global_batch")) continue; /* its group is placed */
        if (bars.n > 0) x += BATCH_GAP - mode_gap;
        for (size_t k = i; k < n; k++) {
            const json_t *trial = json_array_get(trials, k);
            if (batch_of(trial) != batch_of(json_array_get(trials, i))) continue;
            add_trial(&bars, trial, per_device, &x);
            x += mode_gap;
        }
    }
    bars.right = x - mode_gap;
    *bars_p = bars;
    return EL_OK;
}

void el_bars_free(struct el_bars *bars)
{
    free(bars->list);
    *bars = (struct el_bars){0};
}

/* `batch`: of all trials of one batch. */
static double middle(const struct el_bars *bars, size_t i, bool batch, size_t *end_p)
{
    const json_t *trial = bars->list[i].trial;
    size_t end = i + 1;
    for (; end < bars->n; end++) {
        const json_t *next = bars->list[end].trial;
        if (batch ? batch_of(next) != batch_of(trial) : next != trial) break;
    }
    *end_p = end;
    return (bars->list[i].x + bars->list[end - 1].x) / 2;
}

double el_bars_middle(const struct el_bars *bars, size_t i, size_t *end_p)
{
    return middle(bars, i, false, end_p);
}

static struct el_data_text mode_of(const struct el_bar *bar)
{
    char mode[32];
    el_table_mode(bar->trial, mode, sizeof mode);
    return el_data_label(mode);
}

static size_t letters_of(const struct el_bar *bar, bool batch)
{
    return batch ? (size_t)snprintf(NULL, 0, "batch %.0f", batch_of(bar->trial)) : strlen(mode_of(bar).text);
}

static double row_pitch(const struct el_bars *bars, bool batch)
{
    double pitch = 0, x = 0, letters = 0;
    for (size_t i = 0, end; i < bars->n; i = end) {
        double before_x = x, before = letters;
        x = middle(bars, i, batch, &end);
        letters = (double)letters_of(&bars->list[i], batch);
        if (i > 0) pitch = fmax(pitch, ((letters + before) / 2 * LETTER_PIXELS + GAP_PIXELS) / (x - before_x));
    }
    return pitch;
}

/* In bars: plots/style.gnuplot adds 24 pixels per bar, up to 1800, to a minimum that leaves 270. */
static double width_of(const struct el_bars *bars)
{
    double pitch = fmax(row_pitch(bars, false), row_pitch(bars, true));
    return fmax((double)bars->n, (pitch * bars->right - AREA_PIXELS) / 24);
}

static void put_devices(const struct el_bars *bars, FILE *file)
{
    el_data_block(file, "x, position of the device", "devices");
    for (size_t i = 0; i < bars->n; i++)
        if (bars->list[i].device != NULL) fprintf(file, "%g\t%zu\n", bars->list[i].x, bars->list[i].position);
}

static void put_marks(const struct el_bars *bars, FILE *file)
{
    el_data_block(file, "x, verdict of a trial with a mark", "marks");
    fputs("0\t \n", file); /* left of the axis: a block is never empty */
    for (size_t i = 0; i < bars->n; i++)
        if (el_data_has_mark(bars->list[i].trial))
            fprintf(file, "%g\t%s\n", bars->list[i].x,
                    el_data_word(el_json_text(bars->list[i].trial, "verdict", "?")).text);
}

void el_bars_labels(const struct el_bars *bars, const json_t *trials, const struct el_bars_words *words, FILE *file)
{
    size_t end;
    el_data_about(file, &(struct el_data_about){words->title, words->names, bars->right, width_of(bars), words->foot},
                  ", pixels from bar to bar that modes' names need, and batches'");
    fprintf(file, "\t%.4g\t%.4g\n", row_pitch(bars, false), row_pitch(bars, true));
    el_data_warning(file, trials, words->warning);
    put_marks(bars, file);
    put_devices(bars, file);
    el_data_block(file, "x, mode", "modes");
    for (size_t i = 0; i < bars->n; i = end) {
        double x = el_bars_middle(bars, i, &end);
        fprintf(file, "%g\t%s\n", x, mode_of(&bars->list[i]).text);
    }
    el_data_block(file, "x, global batch", "batches");
    for (size_t i = 0; i < bars->n; i = end) {
        double x = middle(bars, i, true, &end);
        fprintf(file, "%g\tbatch %.0f\n", x, batch_of(bars->list[i].trial));
    }
    el_data_block(file, "x, status of a trial without figures", "notes");
    fputs("0\t \n", file); /* a block is never empty */
    for (size_t i = 0; i < bars->n; i++) {
        const struct el_bar *bar = &bars->list[i];
        const char *status = el_json_text(bar->trial, "status", "failed");
        if (bar->position == 0 && strcmp(status, "ok") != 0)
            fprintf(file, "%g\t%s\n", bar->x, el_data_word(status).text);
    }
}

double el_bar_tag_mib(const struct el_bar *bar, const char *tag)
{
    return el_json_number(el_json_at(bar->device, "memory.at_peak_by_tag"), tag) / MIB;
}

bool el_bars_has(double value, bool stacked)
{
    return !isnan(value) && (value > 0 || !stacked);
}

void el_bars_row(FILE *file, double x, double half, double from, double to, const char *part)
{
    fprintf(file, "%g\t%.6g\t%.6g\t%.6g\t%.6g", x, x - half, x + half, from, to);
    if (part != NULL) fprintf(file, "\t%s", el_data_word(part).text);
    fputc('\n', file);
}

static double top_of(const struct el_bar *bar, const struct el_bar_part *parts, const char *end, bool stacked)
{
    double top = 0;
    for (const struct el_bar_part *part = parts; part->name != end; part++) {
        double value = part->value(bar, part->name);
        if (el_bars_has(value, stacked)) top = stacked ? top + value : fmax(top, value);
    }
    return top;
}

void el_bars_parts(const struct el_bars *bars, const struct el_bar_part *parts, bool stacked, FILE *file)
{
    el_data_block(file, "x, left, right, from, to, part", "bars");
    for (const struct el_bar_part *part = parts; part->name != NULL; part++) {
        for (size_t i = 0; i < bars->n; i++) {
            const struct el_bar *bar = &bars->list[i];
            double value = part->value(bar, part->name);
            if (!el_bars_has(value, stacked)) continue;
            double from = stacked ? top_of(bar, parts, part->name, true) : 0;
            el_bars_row(file, bar->x, EL_BAR_HALF, from, from + value, part->name);
        }
    }
}

static double excess_mib(const struct el_bars *bars, size_t i, size_t end, const struct el_bar_part *parts)
{
    double top = top_of(&bars->list[i], parts, NULL, true), others = 0;
    for (size_t k = i + 1; k < end; k++) others += top_of(&bars->list[k], parts, NULL, true);
    double mib = end > i + 1 ? top - others / (double)(end - i - 1) : NAN;
    return mib > LITTLE_RATIO * top ? mib : NAN;
}

bool el_bars_has_excess(const struct el_bars *bars, const struct el_bar_part *parts)
{
    bool any = false;
    for (size_t i = 0, end; i < bars->n; i = end) {
        el_bars_middle(bars, i, &end);
        any |= !isnan(excess_mib(bars, i, end, parts));
    }
    return any;
}

/* From the first bar's top over the trial's others. The words are below, or above if the others reach them. */
static void put_excess(const struct el_bars *bars, size_t i, size_t end, const struct el_bar_part *parts,
                       double highest, FILE *file)
{
    const struct el_bar *first = &bars->list[i];
    double mib = excess_mib(bars, i, end, parts), others = 0, top = top_of(first, parts, NULL, true);
    char text[EL_FIGURE_BYTES];
    if (isnan(mib)) return;
    for (size_t k = i + 1; k < end; k++) others = fmax(others, top_of(&bars->list[k], parts, NULL, true));
    bool under = top - others > WORDS_RATIO * highest;
    fprintf(file, "%g\t%g\t%.6g\t+%s\t%g\n", first->x + EL_BAR_HALF, bars->list[end - 1].x + EL_BAR_HALF, top,
            el_text_mib(mib * MIB, text), under ? -0.65 : 0.55);
}

void el_bars_tops(const struct el_bars *bars, const struct el_bar_part *parts, FILE *file)
{
    char mib[EL_FIGURE_BYTES];
    double highest = 0;
    for (size_t i = 0; i < bars->n; i++) highest = fmax(highest, top_of(&bars->list[i], parts, NULL, true));
    el_data_block(file, "x, top, MiB, position of the device", "tops");
    fputs("0\t0\t \t0\n", file); /* left of the axis: a block is never empty */
    for (size_t i = 0; i < bars->n; i++) {
        double top = top_of(&bars->list[i], parts, NULL, true);
        if (top > 0)
            fprintf(file, "%g\t%.6g\t%s\t%zu\n", bars->list[i].x, top, el_text_mib(top * MIB, mib),
                    bars->list[i].position);
    }
    el_data_block(file, "from x, to x, top, MiB, where the words stand in lines", "excess");
    fputs("0\t0\t0\t \t0\n", file);
    for (size_t i = 0, end; i < bars->n; i = end) {
        el_bars_middle(bars, i, &end);
        put_excess(bars, i, end, parts, highest, file);
    }
}
