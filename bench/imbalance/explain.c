/* The difference between the cards in sentences. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/report/report.h"

/* Of the first card's peak: smaller differences or changes count as none. */
#define EVEN_RATIO 0.01

enum { MODE_BYTES = 96, LIST_BYTES = 512 };

struct told {
    const json_t *devices;
    char mode[MODE_BYTES - 24]; /* and its distinction: "ddp 53,11" */
    size_t n;
    double batch, difference, peak; /* difference: of the first one's peak from the others' mean; bytes */
    bool can_tell, even;
};

static struct told told_of(const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    struct told told = {.devices = devices,
                        .n = json_array_size(devices),
                        .batch = el_json_number(trial, "global_batch"),
                        .difference = el_excess_of(devices, el_at_device_peak_bytes),
                        .peak = el_json_number(devices, "0.memory.peak_bytes")};
    el_table_mode(trial, told.mode, sizeof told.mode);
    told.can_tell = el_imbalance_has_cards(trial) && !isnan(told.difference);
    told.even = fabs(told.difference) <= EVEN_RATIO * told.peak;
    return told;
}

/* "dp on 4 devices" if others have more or fewer. */
static const char *mode_text(const json_t *trials, const struct told *of, char text[MODE_BYTES])
{
    bool differ = false;
    EL_EACH(trial, trials) {
        struct told other = told_of(trial);
        differ |= other.can_tell && other.n != of->n;
    }
    int used = snprintf(text, MODE_BYTES, "%.60s", of->mode);
    if (differ) snprintf(text + used, MODE_BYTES - (size_t)used, " on %zu devices", of->n);
    return text;
}

/* Same mode and number of devices: only batches differ. */
static bool is_of_group(const struct told *told, const struct told *like)
{
    return told->can_tell && told->n == like->n && strcmp(told->mode, like->mode) == 0;
}

void el_imbalance_sentence(const json_t *trials, const json_t *trial, char text[EL_SENTENCE_BYTES])
{
    struct told told = told_of(trial);
    double more = told.difference;
    char mib[EL_FIGURE_BYTES], ratio[EL_FIGURE_BYTES], mode[MODE_BYTES], parts[LIST_BYTES];
    const char *name = el_json_text(told.devices, "0.device", "?"),
               *others = told.n == 2 ? el_json_text(told.devices, "1.device", "?") : "the others' mean";
    int used = snprintf(text, EL_SENTENCE_BYTES, "%s, batch %.0f: ", mode_text(trials, &told, mode), told.batch);
    size_t room = EL_SENTENCE_BYTES - (size_t)used;
    if (isnan(more))
        snprintf(text + used, room, "memory was not recorded.");
    else if (told.even)
        snprintf(text + used, room, "%s holds the same as %s, within 1 %%.", name, others);
    else
        snprintf(text + used, room, "%s holds %s MiB %s than %s (%s times): %s.", name, el_text_mib(fabs(more), mib),
                 more > 0 ? "more" : "less", others,
                 el_text_figure(el_json_number(trial, "imbalance.memory.first_over_rest"), ratio),
                 el_excess_text(told.devices, parts, sizeof parts));
}

/* Once per group, at its first even trial, `at`. */
static void say_even(const json_t *trials, size_t at, FILE *out)
{
    char batches[LIST_BYTES] = "", mode[MODE_BYTES];
    struct told like = told_of(json_array_get(trials, at));
    EL_EACH(trial, trials) {
        struct told told = told_of(trial);
        if (!is_of_group(&told, &like) || !told.even) continue;
        if (trial_at.i < at) return;
        el_text_append(batches, sizeof batches, "%s%.0f", *batches ? ", " : "", told.batch);
    }
    EL_ITEM(out, "%s, batch %s: the first device holds as much as the others, within 1 %%.",
            mode_text(trials, &like, mode), batches);
}

/* Once per group. Nothing if the difference stays. */
static void say_growth(const json_t *trials, size_t at, FILE *out)
{
    struct told like = told_of(json_array_get(trials, at)), few = like, many = like;
    double before[EL_TAG_COUNT], after[EL_TAG_COUNT];
    char from[EL_FIGURE_BYTES], to[EL_FIGURE_BYTES], by[EL_FIGURE_BYTES], mode[MODE_BYTES];
    int most = 0;
    EL_EACH(trial, trials) {
        struct told told = told_of(trial);
        if (!is_of_group(&told, &like)) continue;
        if (trial_at.i < at) return;
        if (told.batch < few.batch) few = told;
        if (told.batch > many.batch) many = told;
    }
    if (fabs(many.difference - few.difference) <= EVEN_RATIO * many.peak) return;
    el_excess_by_tag(few.devices, before);
    el_excess_by_tag(many.devices, after);
    for (int t = 1; t < EL_TAG_COUNT; t++)
        if (fabs(after[t] - before[t]) > fabs(after[most] - before[most])) most = t;
    EL_ITEM(out, "%s: from batch %.0f to %.0f the difference goes from %s to %s MiB, mostly by %s (%s%s MiB).",
            mode_text(trials, &like, mode), few.batch, many.batch, el_text_mib(few.difference, from),
            el_text_mib(many.difference, to), el_excess_word((enum el_tag)most), after[most] > before[most] ? "+" : "-",
            el_text_mib(fabs(after[most] - before[most]), by));
}

void el_imbalance_explain(const json_t *trials, FILE *out)
{
    char text[EL_SENTENCE_BYTES];
    EL_EACH(trial, trials) {
        struct told told = told_of(trial);
        if (told.can_tell && told.even) say_even(trials, trial_at.i, out);
        if (!told.can_tell || told.even) continue;
        el_imbalance_sentence(trials, trial, text);
        el_text_wrap(text, "* ", "  ", out);
    }
    EL_EACH(trial, trials)
        if (told_of(trial).can_tell) say_growth(trials, trial_at.i, out);
}
