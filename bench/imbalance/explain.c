/* What the difference is made of, in words: a sentence a trial, one for all even trials of a mode on as many devices,
 * and one that says how the difference goes with the batch. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/report/excess.h"

/* Below this part of the first card's peak a difference, or a change of one, is none. */
#define EVEN_RATIO 0.01

enum { COLUMNS = 110, MODE_BYTES = 96, LIST_BYTES = 512 };

static const json_t *devices_of(const json_t *trial)
{
    return json_object_get(trial, "per_device");
}

static double difference(const json_t *trial)
{
    return el_excess_of(devices_of(trial), "memory.peak_bytes");
}

static double main_peak(const json_t *trial)
{
    return el_json_number(trial, "per_device.0.memory.peak_bytes");
}

static bool is_even(const json_t *trial)
{
    return fabs(difference(trial)) <= EVEN_RATIO * main_peak(trial);
}

static double batch_of(const json_t *trial)
{
    return el_json_number(trial, "global_batch");
}

static size_t count_of(const json_t *trial)
{
    return json_array_size(devices_of(trial));
}

static bool can_tell(const json_t *trial)
{
    return el_imbalance_has_cards(trial) && !isnan(difference(trial));
}

/* "dp", or "dp on 4 devices" where others are on more or fewer. */
static const char *mode_text(const json_t *trials, const json_t *trial, char text[MODE_BYTES])
{
    bool differ = false;
    for (size_t i = 0; i < json_array_size(trials) && !differ; i++) {
        const json_t *other = json_array_get(trials, i);
        differ = can_tell(other) && count_of(other) != count_of(trial);
    }
    int used = snprintf(text, MODE_BYTES, "%.60s", el_json_text(trial, "mode", "?"));
    if (differ) snprintf(text + used, MODE_BYTES - (size_t)used, " on %zu devices", count_of(trial));
    return text;
}

/* Of one group are trials of the same mode on as many devices: only their batches differ. */
static bool is_of_group(const json_t *trial, const json_t *like)
{
    return can_tell(trial) && count_of(trial) == count_of(like) &&
           strcmp(el_json_text(trial, "mode", "?"), el_json_text(like, "mode", "?")) == 0;
}

void el_imbalance_sentence(const json_t *trials, const json_t *trial, char text[EL_SENTENCE_BYTES])
{
    const json_t *devices = devices_of(trial);
    double more = difference(trial);
    char mib[EL_FIGURE_BYTES], ratio[EL_FIGURE_BYTES], mode[MODE_BYTES], parts[LIST_BYTES];
    const char *name = el_json_text(devices, "0.device", "?"),
               *others = count_of(trial) == 2 ? el_json_text(devices, "1.device", "?") : "the others' mean";
    int used = snprintf(text, EL_SENTENCE_BYTES, "%s, batch %.0f: ", mode_text(trials, trial, mode), batch_of(trial));
    size_t room = EL_SENTENCE_BYTES - (size_t)used;
    if (isnan(more))
        snprintf(text + used, room, "memory was not recorded.");
    else if (is_even(trial))
        snprintf(text + used, room, "%s holds the same as %s, within 1 %%.", name, others);
    else
        snprintf(text + used, room, "%s holds %s MiB %s than %s (%s times): %s.", name, el_text_mib(fabs(more), mib),
                 more > 0 ? "more" : "less", others,
                 el_text_figure(el_json_number(trial, "imbalance.memory.first_over_rest"), ratio),
                 el_excess_text(devices, parts, sizeof parts));
}

/* "ddp, batch 64, 128, 256: the first device holds as much as the others, within 1 %." Once a group: at its first even
 * trial. */
static void say_even(const json_t *trials, const json_t *like, FILE *out)
{
    char batches[LIST_BYTES] = "", mode[MODE_BYTES];
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        if (!is_of_group(trial, like) || !is_even(trial)) continue;
        if (!*batches && trial != like) return;
        el_text_append(batches, sizeof batches, "%s%.0f", *batches ? ", " : "", batch_of(trial));
    }
    el_text_say("* ", "  ", COLUMNS, out, "%s, batch %s: the first device holds as much as the others, within 1 %%.",
                mode_text(trials, like, mode), batches);
}

/* From the smallest batch to the largest; once a group, at its first trial. Nothing where the difference stays. */
static void say_growth(const json_t *trials, const json_t *like, FILE *out)
{
    const json_t *few = NULL, *many = NULL;
    double before[EL_TAG_COUNT], after[EL_TAG_COUNT];
    char from[EL_FIGURE_BYTES], to[EL_FIGURE_BYTES], by[EL_FIGURE_BYTES], mode[MODE_BYTES];
    int most = 0;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        if (!is_of_group(trial, like)) continue;
        if (!few && trial != like) return;
        if (!few || batch_of(trial) < batch_of(few)) few = trial;
        if (!many || batch_of(trial) > batch_of(many)) many = trial;
    }
    if (few == many || fabs(difference(many) - difference(few)) <= EVEN_RATIO * main_peak(many)) return;
    el_excess_by_tag(devices_of(few), before);
    el_excess_by_tag(devices_of(many), after);
    for (int t = 1; t < EL_TAG_COUNT; t++)
        if (fabs(after[t] - before[t]) > fabs(after[most] - before[most])) most = t;
    el_text_say("* ", "  ", COLUMNS, out,
                "%s: from batch %.0f to %.0f the difference goes from %s to %s MiB, mostly by %s (%s%s MiB).",
                mode_text(trials, like, mode), batch_of(few), batch_of(many), el_text_mib(difference(few), from),
                el_text_mib(difference(many), to), el_excess_word((enum el_tag)most),
                after[most] > before[most] ? "+" : "-", el_text_mib(fabs(after[most] - before[most]), by));
}

void el_imbalance_explain(const json_t *trials, FILE *out)
{
    char text[EL_SENTENCE_BYTES];
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        if (!can_tell(trial)) continue;
        el_imbalance_sentence(trials, trial, text);
        if (is_even(trial))
            say_even(trials, trial, out);
        else
            el_text_wrap(text, "* ", "  ", COLUMNS, out);
    }
    for (size_t i = 0; i < json_array_size(trials); i++)
        if (can_tell(json_array_get(trials, i))) say_growth(trials, json_array_get(trials, i), out);
}
