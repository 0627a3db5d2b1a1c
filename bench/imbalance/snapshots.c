/* PyTorch's snapshots as devices, causes and a sentence. */
#include "bench/imbalance/snapshots.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/options/options.h"
#include "bench/report/report.h"
#include "profiles/snapshot.h"

/* Of the first one's peak: smaller differences count as none, as in the tables of records. */
#define EVEN_RATIO 0.01
/* Of the difference: smaller parts are not named. */
#define PART_RATIO 0.02

enum { DEVICES_SHOWN = 8, PLACES_KEPT = 32, SENTENCE_BYTES = 1024 };

static json_t *failure_json(const struct el_snapshot_failure *failure)
{
    if (failure->asked_bytes <= 0) return json_null();
    return el_json_of(EL_KEY("asked_bytes", failure->asked_bytes), EL_KEY("where", el_json_filled(failure->where)),
                      EL_KEY("device_free_bytes", el_json_count(failure->device_free_bytes)),
                      EL_KEY("free_bytes", failure->free_bytes), EL_KEY("free_pieces", failure->n_free),
                      EL_KEY("largest_free_bytes", failure->largest_free_bytes));
}

static json_t *device_json(const char *file, const struct el_snapshot_device *device)
{
    char name[32];
    json_t *causes = json_object(), *places = json_array();
    snprintf(name, sizeof name, "cuda:%d", (int)device->number);
    for (int c = 0; c < EL_SNAPSHOT_N_CAUSES; c++)
        el_json_put(causes, el_snapshot_cause_name(c), json_integer(device->at_peak[c]));
    for (size_t i = 0; i < device->n_places && i < PLACES_KEPT; i++)
        json_array_append_new(places, el_json_of(EL_KEY("cause", el_snapshot_cause_name(device->places[i].cause)),
                                                 EL_KEY("where", el_json_filled(device->places[i].where)),
                                                 EL_KEY("bytes", device->places[i].bytes)));
    return el_json_of(EL_KEY("file", file), EL_KEY("device", name), EL_KEY("events", (uint64_t)device->n_events),
                      EL_KEY("peak_bytes", device->peak_bytes), EL_KEY("now_bytes", device->now_bytes),
                      EL_KEY("reserved_bytes", device->reserved_bytes), EL_KEY("at_peak", causes),
                      EL_KEY("places", places), EL_KEY("failure", failure_json(&device->failure)));
}

/* "": allocated before the trace, or frames without a file. */
static const char *largest_place(const json_t *device, const char *cause)
{
    EL_EACH(place, json_object_get(device, "places"))
        if (el_json_is(place, "cause", cause)) return el_json_text(place, "where", "");
    return "";
}

static json_t *cause_json(const json_t *devices, const char *cause)
{
    char path[64];
    snprintf(path, sizeof path, "at_peak.%s", cause);
    const json_t *first = json_array_get(devices, 0), *second = json_array_get(devices, 1);
    double bytes = el_json_number(first, path), more = second ? el_excess_of(devices, path) : NAN;
    return el_json_of(EL_KEY("cause", cause), EL_KEY("first_bytes", bytes), EL_KEY("others_bytes", bytes - more),
                      EL_KEY("more_bytes", more), EL_KEY("where", largest_place(more < 0 ? second : first, cause)));
}

static double size_of(const json_t *cause)
{
    double more = el_json_number(cause, "more_bytes");
    return fabs(isnan(more) ? el_json_number(cause, "first_bytes") : more);
}

/* By difference, or by size for one device. */
static json_t *causes_json(const json_t *devices)
{
    json_t *causes = json_array();
    for (int c = 0; c < EL_SNAPSHOT_N_CAUSES; c++) {
        json_t *cause = cause_json(devices, el_snapshot_cause_name(c));
        size_t at = 0;
        while (at < json_array_size(causes) && size_of(json_array_get(causes, at)) >= size_of(cause)) at++;
        bool any = el_json_number(cause, "first_bytes") > 0 || el_json_number(cause, "others_bytes") > 0;
        if (any) json_array_insert(causes, at, cause);
        json_decref(cause);
    }
    return causes;
}

/* "a.pickle cuda:0"; no file if all are equal. */
static const char *name_of(const json_t *devices, size_t i, char text[EL_CELL_BYTES])
{
    const json_t *device = json_array_get(devices, i), *file = json_object_get(device, "file");
    bool differ = false;
    EL_EACH(other, devices) differ |= !json_equal(json_object_get(other, "file"), file);
    snprintf(text, EL_CELL_BYTES, "%.200s%s%s", differ ? el_json_text(device, "file", "?") : "", differ ? " " : "",
             el_json_text(device, "device", "?"));
    return text;
}

static void put_parts(const json_t *causes, double sign, double least, const char *before, char text[SENTENCE_BYTES])
{
    char mib[EL_FIGURE_BYTES];
    size_t n = 0, named = 0;
    EL_EACH(cause, causes) n += sign * el_json_number(cause, "more_bytes") > least;
    EL_EACH(cause, causes) {
        double more = sign * el_json_number(cause, "more_bytes");
        const char *where = el_json_text(cause, "where", "");
        if (!(more > least)) continue;
        el_text_append(text, SENTENCE_BYTES, "%s%s%s of %s%s%s%s",
                       named == 0       ? before
                       : named == n - 1 ? " and "
                                        : ", ",
                       el_text_mib(more, mib), named == 0 ? " MiB" : "", el_json_text(cause, "cause", "?"),
                       *where ? " (" : "", where, *where ? ")" : "");
        named++;
    }
}

static void make_sentence(const json_t *devices, const json_t *causes, char text[SENTENCE_BYTES])
{
    double more = el_excess_of(devices, "peak_bytes"), peak = el_json_number(devices, "0.peak_bytes");
    char name[EL_CELL_BYTES], other[EL_CELL_BYTES] = "the others' mean", mib[EL_FIGURE_BYTES], ratio[EL_FIGURE_BYTES];
    *text = 0;
    name_of(devices, 0, name);
    if (json_array_size(devices) == 2) name_of(devices, 1, other);
    if (fabs(more) <= EVEN_RATIO * peak) {
        el_text_append(text, SENTENCE_BYTES, "%s holds the same as %s at its peak, within 1 %%", name, other);
        put_parts(causes, 1, EVEN_RATIO * peak, ", but more ", text);
        put_parts(causes, -1, EVEN_RATIO * peak, ", and less ", text);
    } else {
        el_text_append(text, SENTENCE_BYTES, "%s holds %s MiB %s than %s at its peak (%s times)", name,
                       el_text_mib(fabs(more), mib), more > 0 ? "more" : "less", other,
                       el_text_figure(peak / (peak - more), ratio));
        put_parts(causes, more > 0 ? 1 : -1, PART_RATIO * fabs(more), ": ", text);
        put_parts(causes, more > 0 ? -1 : 1, PART_RATIO * fabs(more), more > 0 ? ", and less " : ", and more ", text);
    }
    el_text_append(text, SENTENCE_BYTES, ".");
}

static json_t *difference_json(const json_t *devices, const json_t *causes)
{
    char sentence[SENTENCE_BYTES];
    size_t n = json_array_size(devices);
    if (n < 2) return json_null();
    make_sentence(devices, causes, sentence);
    double more = el_excess_of(devices, "peak_bytes"), peak = el_json_number(devices, "0.peak_bytes");
    return el_json_of(EL_KEY("against", n == 2 ? "second" : "mean of the others"), EL_KEY("peak_bytes", more),
                      EL_KEY("now_bytes", el_excess_of(devices, "now_bytes")),
                      EL_KEY("reserved_bytes", el_excess_of(devices, "reserved_bytes")),
                      EL_KEY("first_over_rest", peak / (peak - more)), EL_KEY("sentence", sentence));
}

static const char *file_name(const json_t *paths, size_t i)
{
    const char *path = json_string_value(json_array_get(paths, i)), *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    EL_EACH(text, paths) {
        const char *other = json_string_value(text), *behind = strrchr(other, '/');
        if (text_at.i != i && !strcmp(behind ? behind + 1 : other, name)) return path;
    }
    return name;
}

enum el_status el_snapshots_read(const json_t *paths, json_t **document_p)
{
    json_t *devices = json_array();
    enum el_status status = EL_OK;
    EL_EACH(path, paths) {
        struct el_snapshot snapshot;
        if (status == EL_OK) status = el_snapshot_read_file(json_string_value(path), &snapshot);
        if (status != EL_OK) continue;
        for (size_t i = 0; i < snapshot.n; i++)
            json_array_append_new(devices, device_json(file_name(paths, path_at.i), &snapshot.devices[i]));
        el_snapshot_free(&snapshot);
    }
    json_t *causes = causes_json(devices);
    if (status == EL_OK)
        *document_p =
            el_json_of(EL_KEY("snapshots", json_true()), EL_KEY("devices", json_incref(devices)),
                       EL_KEY("difference", difference_json(devices, causes)), EL_KEY("causes", json_incref(causes)));
    if (status == EL_OK) el_json_printable(*document_p);
    json_decref(causes);
    json_decref(devices);
    return status;
}

static void show_name(const json_t *device, const json_t *devices, char *text)
{
    EL_EACH(other, devices)
        if (other == device) name_of(devices, other_at.i, text);
}

static void show_trace(const json_t *device, const json_t *devices, char *text)
{
    (void)devices;
    double events = el_json_number(device, "events");
    if (!(events > 0))
        snprintf(text, EL_CELL_BYTES, "none: the end's");
    else
        snprintf(text, EL_CELL_BYTES, "%.0f events", events);
}

static const struct el_column device_columns[] = EL_COLUMNS(
    EL_SHOWN("device", -30, show_name), EL_MIB("peak", 10, "peak_bytes"), EL_MIB("at the end", 12, "now_bytes"),
    EL_MIB("reserved", 10, "reserved_bytes"), EL_SHOWN("trace", -22, show_trace, .gap = 2));

static const struct el_column cause_columns[] = EL_COLUMNS(
    EL_TEXT("at the peak", -14, "cause"), EL_MIB("first", 9, "first_bytes"), EL_MIB("others", 9, "others_bytes"),
    EL_MIB("more", 9, "more_bytes"), EL_TEXT("most of it in", -40, "where", .gap = 2));

/* What could not be given, and whether it was there in pieces. */
static void say_failure(const json_t *devices, size_t i, FILE *out)
{
    const json_t *device = json_array_get(devices, i), *failure = json_object_get(device, "failure");
    const json_t *most = json_array_get(json_object_get(device, "places"), 0);
    const double asked = el_json_number(failure, "asked_bytes"), free = el_json_number(failure, "free_bytes");
    const double all = free + fmax(el_json_number(failure, "device_free_bytes"), 0);
    char name[EL_CELL_BYTES], mib[5][EL_FIGURE_BYTES];
    if (!json_is_object(failure)) return;
    el_text_say(
        "! ", "  ", out,
        "%s ran out of memory: %s asked for %s MiB; the device had %s MiB free, and PyTorch held %s MiB free in "
        "%" PRId64 " piece%s, the largest of %s MiB. %s. Most of what was held, %s MiB, is of %s (%s).",
        name_of(devices, i, name), el_json_text(failure, "where", "an allocation"), el_text_mib(asked, mib[0]),
        el_text_mib(el_json_number(failure, "device_free_bytes"), mib[1]), el_text_mib(free, mib[2]),
        el_json_whole(failure, "free_pieces"), el_json_whole(failure, "free_pieces") == 1 ? "" : "s",
        el_text_mib(el_json_number(failure, "largest_free_bytes"), mib[3]),
        all >= asked ? "Together that was enough: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True avoids such "
                       "pieces"
                     : "Together that was not enough either",
        el_text_mib(el_json_number(most, "bytes"), mib[4]), el_json_text(most, "cause", "?"),
        el_json_text(most, "where", "no line of code is known"));
}

void el_snapshots_print(const json_t *document, FILE *out)
{
    const json_t *devices = json_object_get(document, "devices"), *difference = json_object_get(document, "difference");
    const struct el_table table = {.columns = device_columns, .context = devices, .out = out};
    const struct el_table causes = {.columns = cause_columns, .out = out};
    size_t n = json_array_size(devices);
    el_table_heads(&table, EL_TABLE_BOLD);
    EL_EACH(device, devices)
        if (device_at.i < DEVICES_SHOWN) el_table_row(&table, EL_TABLE_PLAIN, device);
    if (n > DEVICES_SHOWN) fprintf(out, "and %zu more devices (--json has them all)\n", n - DEVICES_SHOWN);
    fputc('\n', out);
    el_table_heads(&causes, EL_TABLE_BOLD);
    EL_EACH(cause, json_object_get(document, "causes")) el_table_row(&causes, EL_TABLE_PLAIN, cause);
    fputc('\n', out);
    el_text_say("", "", out,
                "MiB that PyTorch's allocator gave out, at each device's own peak. reserved: "
                "what it took from the "
                "driver, as nvidia-smi shows it, less the context.%s",
                n < 2    ? ""
                : n == 2 ? " others: the second device."
                         : " others: the mean of the other devices.");
    for (size_t i = 0; i < n; i++) say_failure(devices, i, out);
    if (n < 2)
        el_text_say("Next: ", "  ", out, "%s imbalance A.pickle B.pickle    (two ranks, or two runs)",
                    el_program_word());
    else
        el_text_wrap(el_json_text(difference, "sentence", "?"), "* ", "  ", out);
}
