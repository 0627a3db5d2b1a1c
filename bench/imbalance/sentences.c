/* What the difference is made of, in words: a sentence a trial, one for all even trials of a mode on as many devices,
 * and one that says how the difference goes with the batch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/imbalance/imbalance.h"
#include "bench/report/excess.h"

/* Below this part of the first card's peak a difference, or a change of one, is none. */
#define EVEN_RATIO 0.01

enum { COLUMNS = 110 };

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

static const char *mode_of(const json_t *trial)
{
    return el_json_text(trial, "mode", "?");
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

static bool counts_differ(const json_t *trials)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        if (!can_tell(trial)) continue;
        if (n > 0 && count_of(trial) != n) return true;
        n = count_of(trial);
    }
    return false;
}

/* "dp", or "dp on 4 devices" where others are on more or fewer. */
static void say_mode(const json_t *trials, const json_t *trial, FILE *out)
{
    fputs(mode_of(trial), out);
    if (counts_differ(trials)) fprintf(out, " on %zu devices", count_of(trial));
}

/* Of one group are trials of the same mode on as many devices: only their batches differ. */
static bool same_group(const json_t *a, const json_t *b)
{
    return strcmp(mode_of(a), mode_of(b)) == 0 && count_of(a) == count_of(b);
}

void el_imbalance_say(const json_t *trials, const json_t *trial, FILE *out)
{
    const json_t *devices = devices_of(trial), *main = json_array_get(devices, 0);
    double more = difference(trial);
    char mib[EL_FIGURE_BYTES], ratio[EL_FIGURE_BYTES];
    const char *name = el_json_text(main, "device", "?"),
               *others = json_array_size(devices) == 2 ? el_json_text(json_array_get(devices, 1), "device", "?")
                                                       : "the others' mean";
    say_mode(trials, trial, out);
    fprintf(out, ", batch %.0f: ", batch_of(trial));
    if (isnan(more)) {
        fputs("memory was not recorded.", out);
    } else if (is_even(trial)) {
        fprintf(out, "%s holds the same as %s, within 1 %%.", name, others);
    } else {
        fprintf(out, "%s holds %s MiB %s than %s (%s times): ", name, el_text_mib(fabs(more), mib),
                more > 0 ? "more" : "less", others,
                el_text_figure(el_json_number(trial, "imbalance.memory.first_over_rest"), ratio));
        el_excess_say(devices, out);
        fputc('.', out);
    }
}

/* Trials of the group before this one that are even: then all of them have been said. */
static bool said_before(const json_t *trials, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        const json_t *other = json_array_get(trials, k);
        if (can_tell(other) && is_even(other) && same_group(other, json_array_get(trials, i))) return true;
    }
    return false;
}

/* "ddp, batch 64, 128, 256: the first device holds as much as the others, within 1 %." */
static void say_even(const json_t *trials, size_t first, FILE *out)
{
    const json_t *like = json_array_get(trials, first);
    const char *before = ", batch ";
    say_mode(trials, like, out);
    for (size_t i = first; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        if (!can_tell(trial) || !is_even(trial) || !same_group(trial, like)) continue;
        fprintf(out, "%s%.0f", before, batch_of(trial));
        before = ", ";
    }
    fputs(": the first device holds as much as the others, within 1 %.", out);
}

/* The trial of its group with the smallest or the largest batch. */
static const json_t *extreme(const json_t *trials, const json_t *like, bool largest)
{
    const json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        if (!can_tell(trial) || !same_group(trial, like)) continue;
        if (!found || (largest ? batch_of(trial) > batch_of(found) : batch_of(trial) < batch_of(found))) found = trial;
    }
    return found;
}

/* From the smallest batch to the largest. Nothing where the difference stays. */
static void say_growth(const json_t *trials, const json_t *like, FILE *out)
{
    const json_t *few = extreme(trials, like, false), *many = extreme(trials, like, true);
    double before[EL_TAG_COUNT], after[EL_TAG_COUNT];
    char from[EL_FIGURE_BYTES], to[EL_FIGURE_BYTES], by[EL_FIGURE_BYTES];
    int most = 0;
    if (few == many || fabs(difference(many) - difference(few)) <= EVEN_RATIO * main_peak(many)) return;
    el_excess_by_tag(devices_of(few), before);
    el_excess_by_tag(devices_of(many), after);
    for (int t = 1; t < EL_TAG_COUNT; t++)
        if (fabs(after[t] - before[t]) > fabs(after[most] - before[most])) most = t;
    say_mode(trials, like, out);
    fprintf(out, ": from batch %.0f to %.0f the difference goes from %s to %s MiB, mostly by %s (%s%s MiB).",
            batch_of(few), batch_of(many), el_text_mib(difference(few), from), el_text_mib(difference(many), to),
            el_excess_word((enum el_tag)most), after[most] > before[most] ? "+" : "-",
            el_text_mib(fabs(after[most] - before[most]), by));
}

static void put(char *text, FILE *out)
{
    if (text && *text) el_text_wrap(text, "* ", "  ", COLUMNS, out);
    free(text);
}

/* Says one of the sentences about trial i into a text of its own. */
static void put_sentence(const json_t *trials, size_t i, void (*say)(const json_t *, size_t, FILE *), FILE *out)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (memory == NULL) return;
    say(trials, i, memory);
    fclose(memory);
    put(text, out);
}

static void say_trial(const json_t *trials, size_t i, FILE *out)
{
    const json_t *trial = json_array_get(trials, i);
    if (!can_tell(trial)) return;
    if (!is_even(trial))
        el_imbalance_say(trials, trial, out);
    else if (!said_before(trials, i))
        say_even(trials, i, out);
}

/* Once a group: at its first trial. */
static void say_course(const json_t *trials, size_t i, FILE *out)
{
    const json_t *like = json_array_get(trials, i);
    for (size_t k = 0; k < i; k++)
        if (same_group(json_array_get(trials, k), like)) return;
    say_growth(trials, like, out);
}

void el_imbalance_sentences(const json_t *trials, FILE *out)
{
    for (size_t i = 0; i < json_array_size(trials); i++) put_sentence(trials, i, say_trial, out);
    for (size_t i = 0; i < json_array_size(trials); i++) put_sentence(trials, i, say_course, out);
}
