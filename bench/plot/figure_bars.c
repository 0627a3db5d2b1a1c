/* Bar figures of memory, throughput, step, utilization and `imbalance`. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/options/config.h"
#include "bench/plot/bars.h"
#include "bench/plot/plot.h"
#include "bench/record/metrics.h"
#include "runtime/base/probe.h"

static const double THIN_RATIO = 0.01; /* of the largest part */

struct kind {
    bool per_device, stacked;
    bool memory;      /* bytes, not times */
    const char *foot; /* true of all its bars; NULL: nothing */
    /* false: none, or of zero width as in virtual time. NULL: never */
    bool (*interval)(const struct el_bar *bar, double *low_p, double *high_p);
    double mode_gap;
    const struct el_bar_part *parts; /* NULL: one per mode */
    double (*of_mode)(const struct el_bar *bar, const char *mode);
};

static double unattributed_mib(const struct el_bar *bar, const char *name)
{
    (void)name;
    return el_json_number(bar->device, el_at_device_unattributed_bytes) / 1048576;
}

/* Only exposed communication lengthens the step, so only that is stacked. */
static double phase_ms(const struct el_bar *bar, const char *phase)
{
    const json_t *of = bar->device ? bar->device : bar->trial;
    if (strcmp(phase, "idle") == 0) return el_json_number(of, "idle_ms");
    if (strcmp(phase, "wait") == 0) return el_json_number(of, "comm.wait_exposed_ms");
    double ms = el_json_number(el_json_at(of, bar->device ? "busy_ms" : "phases_ms"), phase);
    if (strcmp(phase, el_phase_name(EL_PHASE_COMM)) != 0 || !(ms > 0)) return ms;
    double exposed = el_json_number(of, "comm.exposed_ms"), wait = el_json_number(of, "comm.wait_exposed_ms");
    return isnan(exposed) ? ms : fmax(0, isnan(wait) ? exposed : exposed - wait);
}

static double moved_mib(const struct el_bar *bar, const char *name)
{
    return el_json_number(bar->device, strcmp(name, "sent") ? "received_bytes" : "sent_bytes") / 1048576;
}

#define PHASE_NAME(id, text) text,
static const char *const phase_names[] = {EL_PHASE_LIST(PHASE_NAME) "wait", "idle"};

static bool is_exposed(const char *phase)
{
    return strcmp(phase, "wait") == 0 || strcmp(phase, el_phase_name(EL_PHASE_COMM)) == 0;
}

/* Phases are medians of their own. Exposed communication is drawn as in the tables; the others are scaled so that the
 * bar ends at the step. If it exceeds the step, all are scaled. */
static double step_part_ms(const struct el_bar *bar, const char *phase)
{
    double exposed = 0, others = 0;
    double step = bar->device ? el_json_number(bar->device, "step_ms") : el_json_number(bar->trial, el_at_step_mean_ms);
    for (size_t i = 0; i < sizeof phase_names / sizeof phase_names[0]; i++) {
        double ms = phase_ms(bar, phase_names[i]);
        if (ms > 0) *(is_exposed(phase_names[i]) ? &exposed : &others) += ms;
    }
    double ms = phase_ms(bar, phase);
    if (!(step > 0) || !(exposed + others > 0)) return ms;
    if (exposed >= step || !(others > 0)) return ms * step / (exposed + others);
    return is_exposed(phase) ? ms : ms * (step - exposed) / others;
}

static bool is_of(const struct el_bar *bar, const char *mode)
{
    return strcmp(el_json_text(bar->trial, "mode", ""), mode) == 0;
}

static double throughput(const struct el_bar *bar, const char *mode)
{
    const double tokens_per_s = el_json_number(bar->trial, el_at_tokens_per_s);
    if (!is_of(bar, mode)) return NAN;
    return tokens_per_s > 0 ? tokens_per_s : el_json_number(bar->trial, el_at_samples_per_s);
}

static double busy_pct(const struct el_bar *bar, const char *mode)
{
    return is_of(bar, mode) ? el_json_number(bar->device, el_at_device_busy_pct) : NAN;
}

static double part_max(const struct el_bars *bars, const struct el_bar_part *part, bool stacked)
{
    double max = NAN;
    for (size_t i = 0; i < bars->n; i++) {
        double value = part->value(&bars->list[i], part->name);
        if (el_bars_has(value, stacked)) max = fmax(max, value); /* fmax ignores NAN */
    }
    return max;
}

static void name_parts(const struct el_bars *bars, const struct el_bar_part *parts, bool stacked,
                       struct el_data_names *names)
{
    double tallest = 0;
    for (const struct el_bar_part *part = parts; part->name != NULL; part++)
        tallest = fmax(tallest, part_max(bars, part, stacked));
    for (const struct el_bar_part *part = parts; part->name != NULL; part++) {
        double max = part_max(bars, part, stacked);
        bool thin = stacked && max < tallest * THIN_RATIO;
        if (!isnan(max)) el_data_add_name(thin ? names->thin : names->present, part->name);
    }
}

static bool rate_interval(const struct el_bar *bar, double *low_p, double *high_p)
{
    const bool tokens = el_json_number(bar->trial, el_at_tokens_per_s) > 0;
    *low_p = el_json_number(bar->trial, tokens ? el_at_tokens_per_s_ci95_low : el_at_samples_per_s_ci95_low);
    *high_p = el_json_number(bar->trial, tokens ? el_at_tokens_per_s_ci95_high : el_at_samples_per_s_ci95_high);
    return *high_p > *low_p;
}

static bool busy_interval(const struct el_bar *bar, double *low_p, double *high_p)
{
    *low_p = el_json_number(bar->device, "utilization.busy_ci95.0");
    *high_p = el_json_number(bar->device, "utilization.busy_ci95.1");
    return *high_p > *low_p;
}

static bool has_intervals(const struct kind *kind, const struct el_bars *bars)
{
    double low, high;
    for (size_t i = 0; i < bars->n && kind->interval; i++)
        if (kind->interval(&bars->list[i], &low, &high)) return true;
    return false;
}

static void put_intervals(const struct kind *kind, const struct el_bars *bars, FILE *file)
{
    double low, high;
    el_data_block(file, "x, ci95 low, ci95 high", "whiskers");
    fputs("0\t0\t0\n", file); /* left of the axis: a block is never empty */
    for (size_t i = 0; i < bars->n; i++)
        if (kind->interval(&bars->list[i], &low, &high)) fprintf(file, "%g\t%.6g\t%.6g\n", bars->list[i].x, low, high);
}

static enum el_status write_bars(const struct el_figure *figure, const json_t *run, FILE *file, bool *any_p)
{
    const struct kind *kind = figure->rows;
    const json_t *trials = json_object_get(run, "trials");
    char title[EL_TITLE_BYTES], foot[EL_TITLE_BYTES] = "";
    struct el_data_names names = {"", ""};
    struct el_bars bars;
    struct el_bar_part modes[EL_LIST_MAX + 1] = {{NULL, NULL}}; /* by first trial */
    const struct el_bar_part *parts = kind->parts != NULL ? kind->parts : modes;
    for (size_t i = 0, n = 0; i < json_array_size(trials) && n < EL_LIST_MAX; i++)
        if (!el_data_seen(trials, i, "mode"))
            modes[n++] = (struct el_bar_part){el_json_text(json_array_get(trials, i), "mode", "?"), kind->of_mode};
    EL_TRY(el_bars_place(trials, kind->per_device, kind->mode_gap, &bars));
    name_parts(&bars, parts, kind->stacked, &names);
    el_data_title(trials, title);
    if (kind->memory && el_bars_has_excess(&bars, parts))
        snprintf(foot, sizeof foot, "Line: what the first device holds more than the mean of the others, in MiB.");
    if (!kind->memory)
        el_data_foot(trials, has_intervals(kind, &bars) ? "Error bars: 95 % intervals over launches." : kind->foot,
                     foot);
    el_bars_labels(&bars, trials,
                   &(struct el_bars_words){title, &names, foot, kind->memory ? EL_DATA_BYTES_EXACT : NULL}, file);
    if (kind->parts == NULL) el_data_looks(file, &names);
    el_bars_parts(&bars, parts, kind->stacked, file);
    if (kind->interval) put_intervals(kind, &bars, file);
    if (kind->interval == rate_interval) {
        el_data_block(file, "what is counted a second", "unit");
        fputs(el_json_highest(trials, el_at_tokens_per_s) > 0 ? "tokens\n" : "samples\n", file);
    }
    if (kind->memory) el_bars_tops(&bars, parts, file);
    *any_p = names.present[0] != '\0';
    el_bars_free(&bars);
    return EL_OK;
}

#define TAG_PART(id, text)   {text, el_bar_tag_mib},
#define PHASE_PART(id, text) {text, step_part_ms},
static const struct el_bar_part tags[] = {EL_TAG_LIST(TAG_PART){"unattributed", unattributed_mib}, {0}};
static const struct el_bar_part phases[] = {
    EL_PHASE_LIST(PHASE_PART){"wait", step_part_ms}, {"idle", step_part_ms}, {0}};

static const struct el_bar_part moved[] = {{"sent", moved_mib}, {"received", moved_mib}, {0}};

static const struct kind memory = {.per_device = true, .stacked = true, .memory = true, .mode_gap = 0.5, .parts = tags};
static const struct kind rates = {.interval = rate_interval, .of_mode = throughput};
static const struct kind step = {
    .stacked = true, .mode_gap = 0.45, .parts = phases, .foot = "Mean step, averaged over launches."};
static const struct kind utilization = {
    .per_device = true, .mode_gap = 0.5, .of_mode = busy_pct, .interval = busy_interval};
static const struct kind device_steps = {.per_device = true,
                                         .stacked = true,
                                         .mode_gap = 0.5,
                                         .parts = phases,
                                         .foot = "Mean step of each device, the median over launches."};
static const struct kind device_bytes = {.per_device = true, .stacked = true, .mode_gap = 0.5, .parts = moved};

const struct el_figure el_figure_memory = {.name = "memory", .write = write_bars, .rows = &memory};
const struct el_figure el_figure_throughput = {.name = "throughput", .write = write_bars, .rows = &rates};
const struct el_figure el_figure_step = {.name = "step", .write = write_bars, .rows = &step};
const struct el_figure el_figure_utilization = {.name = "utilization", .write = write_bars, .rows = &utilization};
const struct el_figure el_figure_device_steps = {
    .name = "imbalance-time", .write = write_bars, .rows = &device_steps, .optional = true};
const struct el_figure el_figure_device_bytes = {
    .name = "imbalance-bytes", .write = write_bars, .rows = &device_bytes, .optional = true};
