/* What scaling comes to, in sentences; and whatever makes a row doubtful, once. Of counts that share cores or cards no
 * sentence makes a claim: they are said to be shared, and that is all. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/scale/scale.h"
#include "bench/verdict/verdict.h"

enum { COLUMNS = 110, TEXT_BYTES = 640 };

static void say(const char *text, FILE *out)
{
    el_text_wrap(text, "* ", "  ", COLUMNS, out);
}

static bool is_shared(const json_t *row)
{
    return json_is_string(json_object_get(row, "shared"));
}

/* The row of a mode with the most devices of their own; NULL: none has more than one. */
static const json_t *largest_own(const json_t *rows, const char *mode)
{
    const json_t *found = NULL;
    double most = 1;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        double n = el_json_number(row, "devices");
        if (strcmp(el_json_text(row, "mode", ""), mode) || is_shared(row) || !(n > most)) continue;
        if (isnan(el_json_number(row, "samples_per_s"))) continue;
        found = row;
        most = n;
    }
    return found;
}

/* ": 12 ms of each step are lost, most of it to exposed communication (7.1)". */
static void name_loss(const json_t *step, char *text, size_t bytes)
{
    static const struct {
        const char *name, *words;
    } parts[] = {{"compute_ms", "slower compute, even without communication"},
                 {"contention_ms", "compute slowed by communication"},
                 {"exposed_ms", "exposed communication"},
                 {"idle_ms", "waiting and copies"}};
    size_t most = 0;
    char lost[EL_FIGURE_BYTES], part[EL_FIGURE_BYTES];
    text[0] = 0;
    for (size_t i = 1; i < sizeof parts / sizeof parts[0]; i++)
        if (el_json_number(step, parts[i].name) > el_json_number(step, parts[most].name)) most = i;
    double lost_ms = el_json_number(step, "lost_ms"), value = el_json_number(step, parts[most].name);
    if (!(lost_ms > 0) || !(value > 0)) return;
    snprintf(text, bytes, "; %s of %.4g ms per step are lost, mostly to %s (%s)", el_text_figure(lost_ms, lost),
             el_json_number(step, "step_ms"), parts[most].words, el_text_figure(value, part));
}

static void say_of_mode(const json_t *row, FILE *out)
{
    const json_t *plain = json_object_get(row, "plain");
    double n = el_json_number(row, "devices"), low = el_json_number(plain, "speedup_ci95.0"),
           high = el_json_number(plain, "speedup_ci95.1");
    char text[TEXT_BYTES], loss[TEXT_BYTES / 2], speedup[EL_FIGURE_BYTES], from[EL_FIGURE_BYTES], to[EL_FIGURE_BYTES];
    name_loss(json_object_get(row, "step"), loss, sizeof loss);
    if (isnan(low) || isnan(high)) {
        snprintf(text, sizeof text, "%s on %.0f devices: %s times plain single, without an interval (%s)%s.",
                 el_json_text(row, "mode", "?"), n, el_text_figure(el_json_number(plain, "speedup"), speedup),
                 el_json_text(plain, "reason", "it has none"), loss);
    } else {
        const char *judged = low > n     ? ": superlinear: check the baseline"
                             : high < 1  ? ": slower than one device"
                             : low <= 1  ? ": no significant speed-up"
                             : high >= n ? ": consistent with ideal"
                                         : "";
        snprintf(text, sizeof text, "%s on %.0f devices: %s times plain single (%s to %s)%s%s.",
                 el_json_text(row, "mode", "?"), n, el_text_figure(el_json_number(plain, "speedup"), speedup),
                 el_text_figure(low, from), el_text_figure(high, to), judged, loss);
    }
    say(text, out);
}

/* Whether a row has that doubt: by its rule, or where repeats say it themselves by its text. */
static bool has_doubt(const json_t *row, const char *rule, const char *text)
{
    const json_t *names = json_object_get(row, "warning_rules"), *warnings = json_object_get(row, "warnings");
    for (size_t w = 0; w < json_array_size(names); w++) {
        const char *name = json_string_value(json_array_get(names, w));
        const char *words = json_string_value(json_array_get(warnings, w));
        if (!name || strcmp(name, rule)) continue;
        if (strcmp(rule, "reported") || (words && !strcmp(words, text))) return true;
    }
    return false;
}

/* Devices without kernels: what is left is the harness. */
static bool computes(const json_t *rows)
{
    return strncmp(el_json_text(json_array_get(rows, 0), "device_names.0", ""), "null:", 5) != 0;
}

static bool said_before(const json_t *rows, size_t end)
{
    const char *mode = el_json_text(json_array_get(rows, end), "mode", "");
    for (size_t i = 0; i < end; i++)
        if (!strcmp(el_json_text(json_array_get(rows, i), "mode", "?"), mode)) return true;
    return false;
}

/* No mode has a count above 1 of which something can be said: why. */
static void say_none(const json_t *rows, FILE *out)
{
    bool several = false, finished = false;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!(el_json_number(row, "devices") > 1)) continue;
        several = true;
        finished = finished || !isnan(el_json_number(row, "samples_per_s"));
    }
    say(finished  ? "No count above 1 has a core or card for each device: no statement about scaling."
        : several ? "No count above 1 finished: no statement about scaling."
                  : "There is no count above 1: no statement about scaling.",
        out);
}

static void say_modes(const json_t *rows, FILE *out)
{
    bool own = false;
    if (!computes(rows)) {
        say("Null devices compute nothing: these times are the harness's own and say nothing about scaling.", out);
        return;
    }
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *mode = el_json_text(json_array_get(rows, i), "mode", "");
        const json_t *row = said_before(rows, i) ? NULL : largest_own(rows, mode);
        if (row) say_of_mode(row, out);
        own = own || row;
    }
    if (!own) say_none(rows, out);
}

/* The parts are of other steps than those that were measured: no more like them than these figures. */
static void say_blocks(const json_t *rows, FILE *out)
{
    char text[TEXT_BYTES];
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        double step = el_json_number(row, "step.step_ms"), blocks = el_json_number(row, "step.blocks_step_ms");
        if (!(fabs(blocks / step - 1) > 0.1)) continue;
        snprintf(text, sizeof text,
                 "%s on %.0f: the parts of a step were measured in control blocks, whose steps took %.4g ms instead of "
                 "%.4g: they are scaled to that.",
                 el_json_text(row, "mode", "?"), el_json_number(row, "devices"), blocks, step);
        say(text, out);
    }
}

/* What others do to one device and to two differs, and so does a speed-up from one load to the next. */
static void say_others(const json_t *rows, FILE *out)
{
    static const char *const rules[] = {"others", "gpu_others", "stolen"};
    for (size_t i = 0; i < json_array_size(rows); i++)
        for (size_t k = 0; k < sizeof rules / sizeof rules[0]; k++) {
            if (!has_doubt(json_array_get(rows, i), rules[k], "")) continue;
            say("Other programs were running; a rerun may fall outside these intervals.", out);
            return;
        }
}

static void say_shared(const json_t *rows, FILE *out)
{
    char text[TEXT_BYTES];
    const json_t *least = NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        bool less = !least || el_json_number(row, "devices") < el_json_number(least, "devices");
        if (is_shared(row) && less) least = row;
    }
    if (!least) return;
    snprintf(text, sizeof text,
             "From %.0f devices on (marked *, drawn hollow): %s. Their times say nothing about scaling.",
             el_json_number(least, "devices"), el_json_text(least, "shared", ""));
    say(text, out);
}

static const json_t *bucket_row(const json_t *buckets, double mib)
{
    const json_t *rows = json_object_get(buckets, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (el_json_number(json_array_get(rows, i), "mib") == mib) return json_array_get(rows, i);
    return NULL;
}

/* Whether a size that is another has an interval. */
static bool is_told(const json_t *buckets)
{
    const json_t *rows = json_object_get(buckets, "rows");
    bool told = false;
    for (size_t i = 0; i < json_array_size(rows) && !told; i++) {
        const json_t *row = json_array_get(rows, i);
        told = json_is_false(json_object_get(row, "same")) && json_is_array(json_object_get(row, "significant95"));
    }
    return told;
}

static void take_size(const json_t *buckets, double best, double base, double looks, char text[TEXT_BYTES])
{
    const json_t *row = bucket_row(buckets, best);
    snprintf(text, TEXT_BYTES,
             "Buckets: take --bucket-mb %g: its step is %.3g times that of %g (%.3g to %.3g, corrected for testing "
             "%.0f sizes).",
             best, el_json_number(row, "ratio"), base, el_json_number(row, "significant95.0"),
             el_json_number(row, "significant95.1"), looks);
}

static void say_buckets(const json_t *buckets, FILE *out)
{
    double best = el_json_number(buckets, "recommended_mib"), base = el_json_number(buckets, "base_mib");
    double looks = el_json_number(buckets, "comparisons");
    char text[TEXT_BYTES];
    if (!json_is_object(buckets)) return;
    if (json_is_string(json_object_get(buckets, "shared")))
        snprintf(text, sizeof text, "Buckets: the devices share a core or card, so no size is recommended.");
    else if (strcmp(el_json_text(bucket_row(buckets, base), "status", ""), "ok") != 0)
        snprintf(text, sizeof text,
                 "Buckets: %g, which the others are compared with, did not finish: no size is recommended.", base);
    else if (looks < 1)
        snprintf(text, sizeof text, "Buckets: every size makes the same buckets as %g: keep it.", base);
    else if (!is_told(buckets))
        snprintf(text, sizeof text, "Buckets: no size has an interval: none is recommended.");
    else if (isnan(best))
        snprintf(text, sizeof text,
                 "Buckets: no size is significantly faster than %g, corrected for testing %.0f: keep %g.", base, looks,
                 base);
    else
        take_size(buckets, best, base, looks, text);
    say(text, out);
}

/* How many rows have it; 0 if one before `first` does, for then it has been said. */
static int count_doubt(const json_t *rows, size_t first, const char *rule, const char *text)
{
    int count = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        if (!has_doubt(json_array_get(rows, i), rule, text)) continue;
        if (i < first) return 0;
        count++;
    }
    return count;
}

/* Each doubt once, in the words of the first row that has it; the record has them all. */
static void say_doubts(const json_t *rows, FILE *out)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *warnings = json_object_get(row, "warnings");
        for (size_t w = 0; w < json_array_size(warnings); w++) {
            const char *rule = json_string_value(json_array_get(json_object_get(row, "warning_rules"), w));
            const char *text = json_string_value(json_array_get(warnings, w));
            int count = rule && text && strncmp(rule, "shared_", 7) ? count_doubt(rows, i, rule, text) : 0;
            char first[96], more[32] = "";
            const char *verdict = el_verdict_of_rule(rule);
            if (count == 0) continue;
            if (count > 1) snprintf(more, sizeof more, " (and %d more)", count - 1);
            bool note = !strcmp(verdict, "valid");
            snprintf(first, sizeof first, "! %s on %.0f%s%s%s: ", el_json_text(row, "mode", "?"),
                     el_json_number(row, "devices"), more, note ? "" : ", ", note ? "" : verdict);
            el_text_wrap(text, first, "  ", COLUMNS, out);
        }
    }
}

void el_scale_say(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows");
    say_modes(rows, out);
    say_shared(rows, out);
    say_others(rows, out);
    say_blocks(rows, out);
    say_buckets(json_object_get(document, "buckets"), out);
    say_doubts(rows, out);
}
