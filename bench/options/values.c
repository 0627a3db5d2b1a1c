/* Text to field and field to text, a kind of option at a time; lists of them, and the text of --mesh. Which
 * options there are is in rows.c. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/options/options.h"

static enum el_status fail_number(const struct el_option_row *row, const char *text, const char *what)
{
    return el_fail(EL_ERR_INVALID, "--%s: '%s' is not %s", row->name, text, what);
}

static enum el_status option_number(const struct el_option_row *row, const char *text, double *number_p)
{
    char *end;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || *end || !isfinite(number) || strpbrk(text, "xX ")) return fail_number(row, text, "a number");
    if (number < row->min || number > row->max)
        return el_fail(EL_ERR_INVALID, "--%s: %s is out of range: give %g to %g", row->name, text, row->min, row->max);
    *number_p = number;
    return EL_OK;
}

/* Errors: EL_ERR_INVALID naming the option and its range. */
static enum el_status option_whole(const struct el_option_row *row, const char *text, int64_t *number_p)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end || text[0] == ' ') return fail_number(row, text, "a whole number");
    if (errno || (double)number < row->min || (double)number > row->max)
        return el_fail(EL_ERR_INVALID, "--%s: %s is out of range: give %.0f to %.0f", row->name, text, row->min,
                       row->max);
    *number_p = number;
    return EL_OK;
}

static enum el_status set_seed(const struct el_option_row *row, const char *text, uint64_t *seed_p)
{
    char *end;
    errno = 0;
    unsigned long long seed = strtoull(text, &end, 10);
    if (end == text || *end || errno || !strchr("0123456789", text[0]))
        return fail_number(row, text, "a whole number from 0 to 18446744073709551615");
    *seed_p = seed;
    return EL_OK;
}

static const double MIB = 1 << 20;

struct unit {
    const char *text;
    double scale;
};

/* "64MiB", "1.5g", "1000"; "90", "90s", "5m"; "5", "5%": a number, and one of the units (ended by a scale of 0), of
 * which "" is the last. `what`: a value of this kind, for who gave another. */
static enum el_status set_with_unit(const struct el_option_row *row, const char *text, const struct unit *units,
                                    const char *what, double *number_p)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || !isfinite(number) || strpbrk(text, "xX ")) return fail_number(row, text, what);
    while (units->scale > 0 && strcasecmp(end, units->text)) units++;
    if (!(units->scale > 0)) return el_fail(EL_ERR_INVALID, "--%s: unknown unit '%s': give %s", row->name, end, what);
    number *= units->scale;
    if (number >= 0 && number < row->min && row->min >= MIB)
        return el_fail(EL_ERR_INVALID, "--%s: %s is less than %g MiB: give a unit, as in 80G", row->name, text,
                       row->min / MIB);
    if (number < row->min || number > row->max)
        return el_fail(EL_ERR_INVALID, "--%s: %s is out of range: give %g to %g, in %s", row->name, text, row->min,
                       row->max, what);
    *number_p = number;
    return EL_OK;
}

static const struct unit bytes_of[] = {{"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824},
                                       {"K", 1024},   {"M", 1048576},   {"G", 1073741824},
                                       {"B", 1},      {"", 1},          {NULL, 0}};
static const struct unit seconds[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"", 1}, {NULL, 0}};
static const struct unit points[] = {{"pt", 1}, {"mm", 72 / 25.4}, {"cm", 72 / 2.54}, {"in", 72}, {"", 1}, {NULL, 0}};
static const struct unit percent[] = {{"%", 1}, {"", 1}, {NULL, 0}};

/* Place of `text` among "a|b|c". */
static enum el_status option_place(const struct el_option_row *row, const char *choices, const char *text, int *place_p)
{
    enum { CHOICES_BYTES = 128, CHOICES_MAX = 16 };
    char words[CHOICES_BYTES], all[CHOICES_BYTES], *rest = words;
    const char *names[CHOICES_MAX + 1] = {NULL};
    snprintf(words, sizeof words, "%s", choices);
    for (int place = 0; place < CHOICES_MAX && (names[place] = strsep(&rest, "|")); place++) {
        if (strcmp(names[place], text) != 0) continue;
        *place_p = place;
        return EL_OK;
    }
    snprintf(words, sizeof words, "%s", choices);
    el_option_add_words(row, words, sizeof words);
    snprintf(all, sizeof all, "%s", words);
    rest = words;
    for (int i = 0; i < CHOICES_MAX && (names[i] = strsep(&rest, "|")); i++) continue;
    const char *near = el_suggest(text, names),
               *file = row->of_mode && row->of_mode->kind == EL_MODE_FILE ? ", nor a file (name.csv)" : "";
    if (!near) return el_fail(EL_ERR_INVALID, "--%s: '%s' is not one of %s%s", row->name, text, all, file);
    return el_fail(EL_ERR_INVALID, "--%s: '%s' is not one of %s%s: did you mean '%s'?", row->name, text, all, file,
                   near);
}

/* Place of `text` among "a|b|c". */
static enum el_status option_text(const struct el_option_row *row, const char *text, char *field, size_t bytes)
{
    if (!*text) return el_fail(EL_ERR_INVALID, "--%s: the value is empty: give one, or leave it out", row->name);
    if (strlen(text) >= bytes)
        return el_fail(EL_ERR_INVALID, "--%s: the value is longer than %zu characters", row->name, bytes - 1);
    memmove(field, text, strlen(text) + 1);
    return EL_OK;
}

static enum el_status option_set_list(const struct el_option_row *row, const char *text, struct el_options *options);

enum el_status el_option_set(const struct el_option_row *row, const char *text, struct el_options *options)
{
    void *field = (char *)options + row->offset;
    int place = 0;
    int64_t whole = 0;
    double number = 0;
    switch (row->kind) {
    case EL_OPTION_FLAG:
    case EL_OPTION_UNFLAG:
        *(bool *)field = row->kind == EL_OPTION_FLAG;
        return EL_OK;
    case EL_OPTION_INT:
        EL_TRY(option_whole(row, text, &whole));
        *(int *)field = (int)whole;
        return EL_OK;
    case EL_OPTION_COUNT:
        return option_whole(row, text, field);
    case EL_OPTION_SEED:
        return set_seed(row, text, field);
    case EL_OPTION_REAL:
        return option_number(row, text, field);
    case EL_OPTION_SECONDS:
        return set_with_unit(row, text, seconds, "seconds, or as 90s, 5m, 2h", field);
    case EL_OPTION_POINTS:
        return set_with_unit(row, text, points, "points (1/72 inch), or as 252pt, 89mm, 8.9cm, 3.5in", field);
    case EL_OPTION_PERCENT:
        return set_with_unit(row, text, percent, "per cent", field);
    case EL_OPTION_BYTES:
        EL_TRY(set_with_unit(row, text, bytes_of, "bytes, or KiB, MiB or GiB", &number));
        *(int64_t *)field = (int64_t)number;
        return EL_OK;
    case EL_OPTION_TEXT:
        return option_text(row, text, field, EL_PATH_BYTES);
    case EL_OPTION_WORD:
        EL_TRY(option_place(row, row->choices, text, &place));
        return option_text(row, text, field, sizeof((struct el_options *)0)->comm);
    case EL_OPTION_SWITCH:
        EL_TRY(option_place(row, row->choices, text, &place));
        *(bool *)field = place;
        return EL_OK;
    case EL_OPTION_CHOICE:
        EL_TRY(option_place(row, row->choices, text, &place));
        *(int *)field = place;
        return EL_OK;
    default:
        return option_set_list(row, text, options);
    }
}

static void show_choice(const struct el_option_row *row, int place, char *text, size_t bytes)
{
    const char *choice = row->choices;
    while (place-- > 0) choice += strcspn(choice, "|") + 1;
    snprintf(text, bytes, "%.*s", (int)strcspn(choice, "|"), choice);
}

const char *el_option_choice(const char *name, int place, char word[EL_CHOICE_BYTES])
{
    const struct el_option_row *row = el_option_rows();
    while (!(row->commands & EL_CMD_RUN) || strcmp(row->name, name)) row++;
    show_choice(row, place, word, EL_CHOICE_BYTES);
    return word;
}

static void option_show_list(const struct el_option_row *row, const struct el_options *options, char *text,
                             size_t bytes);

void el_option_show(const struct el_option_row *row, const struct el_options *options, char *text, size_t bytes)
{
    const void *field = (const char *)options + row->offset;
    const char *list = el_option_list(options, row->name);
    bool given = *row->initial;
    int64_t whole = row->kind == EL_OPTION_INT ? *(const int *)field : 0;
    char number[32];
    snprintf(text, bytes, "%s", list ? list : "");
    if (list) return;
    switch (row->kind) {
    case EL_OPTION_FLAG:
    case EL_OPTION_UNFLAG:
        snprintf(text, bytes, "%s", *(const bool *)field == (row->kind == EL_OPTION_FLAG) ? "yes" : "");
        return;
    case EL_OPTION_COUNT:
    case EL_OPTION_BYTES:
        whole = *(const int64_t *)field;
        /* fall through */
    case EL_OPTION_INT:
        if (given || whole) snprintf(text, bytes, "%" PRId64, whole);
        return;
    case EL_OPTION_SEED:
        snprintf(text, bytes, "%" PRIu64, *(const uint64_t *)field);
        return;
    case EL_OPTION_REAL:
    case EL_OPTION_SECONDS:
    case EL_OPTION_POINTS:
    case EL_OPTION_PERCENT:
        if (*(const double *)field >= 0) snprintf(text, bytes, "%s", el_json_shortest(*(const double *)field, number));
        return;
    case EL_OPTION_TEXT:
    case EL_OPTION_OF_MODE:
    case EL_OPTION_WORD:
        snprintf(text, bytes, "%s", (const char *)field);
        return;
    case EL_OPTION_SWITCH:
    case EL_OPTION_CHOICE:
        show_choice(row, row->kind == EL_OPTION_SWITCH ? *(const bool *)field : *(const int *)field, text, bytes);
        return;
    default:
        option_show_list(row, options, text, bytes);
    }
}

/* ---- --mesh ---- */

enum { WORDS_BYTES = 64, TEXT_BYTES = 1024 };

/* The words of the mode's axes, each with `with` behind it, and `between` them. */
static const char *axes_of(const struct el_mode_info *mode, const char *with, const char *between,
                           char text[WORDS_BYTES])
{
    size_t used = 0;
    *text = 0;
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++)
        if (mode->axes & 1U << axis)
            used += (size_t)snprintf(text + used, WORDS_BYTES - used, "%s%s%s", used ? between : "",
                                     el_axis_row(axis)->word, with);
    return text;
}

static enum el_status refuse_mesh(const char *text, const struct el_mode_info *mode)
{
    char like[WORDS_BYTES];
    return el_fail(EL_ERR_INVALID, "--mesh %.60s: must be like %s, each number at least 1", text,
                   axes_of(mode, "=2", ",", like));
}

/* "dp=2". */
static bool read_axis(const char *item, const struct el_mode_info *mode, int mesh[EL_AXIS_COUNT])
{
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++) {
        size_t n = strlen(el_axis_row(axis)->word);
        if (strncmp(item, el_axis_row(axis)->word, n) != 0 || item[n] != '=') continue;
        char *end;
        long number = strtol(item + n + 1, &end, 10);
        if (mesh[axis] || end == item + n + 1 || *end || number < 1 || number > EL_SIMULATED_MAX) return false;
        mesh[axis] = (int)number;
        return number == 1 || (mode->axes & 1U << axis);
    }
    return false;
}

enum el_status el_mesh_read(const char *text, const struct el_mode_info *mode, int n_devices, int mesh[EL_AXIS_COUNT])
{
    char copy[TEXT_BYTES], names[WORDS_BYTES], *rest;
    int others = 1;
    bool given = false;
    memset(mesh, 0, EL_AXIS_COUNT * sizeof *mesh);
    if (!*text) return EL_OK;
    snprintf(copy, sizeof copy, "%s", text);
    if (*text == ',' || text[strlen(text) - 1] == ',' || strstr(text, ",,")) return refuse_mesh(text, mode);
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest))
        if (!read_axis(item, mode, mesh)) return refuse_mesh(text, mode);
    for (enum el_axis axis = EL_AXIS_DATA + 1; axis < EL_AXIS_COUNT; axis++) {
        if (!mesh[axis]) continue;
        others *= mesh[axis];
        given |= (mode->axes & 1U << axis) != 0;
    }
    if (!given && !mesh[EL_AXIS_DATA]) return refuse_mesh(text, mode);
    if (!mesh[EL_AXIS_DATA] && n_devices % others == 0) mesh[EL_AXIS_DATA] = n_devices / others;
    if (n_devices == 0 || !given || mesh[EL_AXIS_DATA] * others == n_devices) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--mesh %s: %s must be the number of devices (%d)", text,
                   axes_of(mode, "", " times ", names), n_devices);
}

/* Options that are lists: modes, devices and how many of them, batches, buckets, sizes; and the model's name,
 * which has a list to be found in. Whether modes, devices and batches go together is for trial.c to say. */

static const char *const backends[] = {"cpu", "null", "sim", "cuda", NULL};

/* Calls `take` for each item of a comma list. Errors: EL_ERR_INVALID for an empty item or too many. */
static enum el_status each_item(const struct el_option_row *row, const char *text, int max,
                                enum el_status (*take)(const struct el_option_row *, const char *, int, void *),
                                void *into, int *n_p)
{
    int n = 0;
    for (const char *at = text;; at++) {
        char item[32];
        size_t length = strcspn(at, ",");
        if (length == 0)
            return el_fail(EL_ERR_INVALID, "--%s: '%s' has an empty item: give a list like 1,2", row->name, text);
        if (length >= sizeof item) return el_fail(EL_ERR_INVALID, "--%s: '%.*s...' is too long", row->name, 31, at);
        if (n == max)
            return max == 1 ? el_fail(EL_ERR_INVALID, "--%s %s: give one value here", row->name, text)
                            : el_fail(EL_ERR_INVALID, "--%s: more than %d items", row->name, max);
        memcpy(item, at, length);
        item[length] = 0;
        EL_TRY(take(row, item, n++, into));
        at += length;
        if (!*at) break;
    }
    *n_p = n;
    return EL_OK;
}

static enum el_status take_mode(const struct el_option_row *row, const char *item, int n, void *into)
{
    const char *names[EL_LIST_MAX + 1] = {NULL};
    char(*modes)[16] = into;
    const struct el_mode_info *info = el_mode_list();
    for (int i = 0; info[i].name && i < EL_LIST_MAX; i++) names[i] = info[i].name;
    if (!el_mode_find(item)) return el_fail_unknown("mode", item, names);
    for (int i = 0; i < n; i++)
        if (!strcmp(modes[i], item)) return el_fail(EL_ERR_INVALID, "--%s: '%s' is there twice", row->name, item);
    snprintf(modes[n], sizeof modes[n], "%s", item);
    return EL_OK;
}

static enum el_status set_model(const char *text, char *name)
{
    const char *names[EL_LIST_MAX + 1] = {NULL};
    const struct el_model_info *info = el_model_list();
    for (int i = 0; info[i].name && i < EL_LIST_MAX; i++) names[i] = info[i].name;
    if (!el_model_find(text)) return el_fail_unknown("model", text, names);
    snprintf(name, EL_MODEL_NAME_BYTES, "%s", text);
    return EL_OK;
}

static enum el_status take_whole(const struct el_option_row *row, const char *item, int n, void *into)
{
    struct el_option_row ranged = *row;
    ranged.min = 1, ranged.max = 1e9;
    return option_whole(&ranged, item, (int64_t *)into + n);
}

/* `number`: what stands behind the backend's name, for the suggestion. */
static enum el_status check_backend(const char *backend, const char *number)
{
    for (const char *const *name = backends; *name; name++)
        if (!strcmp(backend, *name)) return EL_OK;
    const char *near = el_suggest(backend, backends);
    if (!near || !*number) return el_fail_unknown("backend", backend, backends);
    return el_fail(EL_ERR_INVALID, "unknown backend '%s': did you mean '%s:%s'? (cpu, null, sim, cuda)", backend, near,
                   number);
}

/* How many of them there may be. */
static int most(const char *backend)
{
    return el_backend_facts(backend).simulated ? EL_SIMULATED_MAX : EL_MEMBERS_MAX;
}

/* "null:3" or "3" into backend and number. */
static enum el_status split_device(const char *text, double min, struct el_device_name *device_p)
{
    const char *colon = strchr(text, ':'), *number = colon ? colon + 1 : text;
    size_t length = colon ? (size_t)(colon - text) : 3;
    int64_t whole;
    if (length >= sizeof device_p->backend) return el_fail(EL_ERR_INVALID, "--devices: '%s' is no device", text);
    memcpy(device_p->backend, colon ? text : "cpu", length);
    device_p->backend[length] = 0;
    if (!colon && strcspn(text, "0123456789+-.") == strlen(text)) {
        EL_TRY(check_backend(text, ""));
        return el_fail(EL_ERR_INVALID, "--devices: how many of %s? give %s:2", text, text);
    }
    EL_TRY(check_backend(device_p->backend, number));
    const struct el_option_row row = {.name = "devices", .min = min, .max = min > 0 ? most(device_p->backend) : 1023};
    EL_TRY(option_whole(&row, number, &whole));
    device_p->index = (int)whole;
    return EL_OK;
}

static enum el_status take_device(const struct el_option_row *row, const char *item, int n, void *into)
{
    if (item[strspn(item, "0123456789")] == '\0')
        return el_fail(EL_ERR_INVALID,
                       "--%s: '%s' in a list may be a core or a GPU: write cpu:%s or cuda:%s (one number alone is how "
                       "many CPU devices)",
                       row->name, item, item, item);
    return split_device(item, 0, (struct el_device_name *)into + n);
}

enum el_status el_devices_parse(const char *text, struct el_device_name *devices, int *n_devices_p)
{
    const struct el_option_row row = {.name = "devices"};
    struct el_device_name list[EL_MEMBERS_MAX];
    size_t length = strlen(text);
    int n = 0;
    if (strchr(text, ',')) {
        char copy[EL_PATH_BYTES];
        if (length >= sizeof copy) return el_fail(EL_ERR_INVALID, "--devices: the list is too long");
        memcpy(copy, text, length + 1);
        if (copy[length - 1] == ',' && length > 1) copy[length - 1] = 0; /* "cpu:1," is a list of one */
        EL_TRY(each_item(&row, copy, EL_MEMBERS_MAX, take_device, list, &n));
        for (int i = 1; i < n; i++)
            if (strcmp(list[i].backend, list[0].backend))
                return el_fail(EL_ERR_INVALID, "--devices: %s and %s do not go together: give devices of one backend",
                               list[0].backend, list[i].backend);
    } else {
        EL_TRY(split_device(text, 1, &list[0]));
        n = list[0].index;
        for (int i = 0; i < n && i < EL_MEMBERS_MAX; i++) {
            list[i] = list[0];
            list[i].index = i;
        }
    }
    memcpy(devices, list, (size_t)(n < EL_MEMBERS_MAX ? n : EL_MEMBERS_MAX) * sizeof list[0]);
    *n_devices_p = n;
    return EL_OK;
}

void el_devices_show(const struct el_device_name *devices, int n_devices, char *text, size_t bytes)
{
    bool counted = true;
    text[0] = 0;
    for (int i = 0; i < n_devices; i++)
        counted = counted && el_nth_device(devices, i).index == i &&
                  !strcmp(el_nth_device(devices, i).backend, devices[0].backend);
    if (n_devices && counted) {
        bool cpu = !strcmp(devices[0].backend, "cpu");
        snprintf(text, bytes, cpu ? "%.0s%d" : "%s:%d", devices[0].backend, n_devices);
        return;
    }
    for (int i = 0; i < n_devices; i++)
        el_text_append(text, bytes, "%s%s:%d%s", i ? "," : "", devices[i].backend, devices[i].index,
                       n_devices == 1 ? "," : "");
}

/* Counts rise, whatever their order was. */
static enum el_status take_count(const struct el_option_row *row, const char *item, int n, void *into)
{
    int *counts = into, at = n;
    int64_t whole;
    EL_TRY(option_whole(row, item, &whole));
    for (int i = 0; i < n; i++)
        if (counts[i] == whole) return el_fail(EL_ERR_INVALID, "--%s: %s is there twice", row->name, item);
    for (; at > 0 && counts[at - 1] > whole; at--) counts[at] = counts[at - 1];
    counts[at] = (int)whole;
    return EL_OK;
}

/* "8..4096" is 8,16,32 ... 4096. */
static enum el_status each_count(const struct el_option_row *row, const char *text, int *counts, int *n_p)
{
    const char *dots = strstr(text, "..");
    char list[512] = "";
    int64_t first, last;
    if (!dots) return each_item(row, text, EL_LIST_MAX, take_count, counts, n_p);
    snprintf(list, sizeof list, "%.*s", (int)(dots - text), text);
    EL_TRY(option_whole(row, list, &first));
    EL_TRY(option_whole(row, dots + 2, &last));
    if (first < 1 || last <= first)
        return el_fail(EL_ERR_INVALID, "--%s: '%s': give the smaller number first, like 8..64", row->name, text);
    for (int64_t n = 2 * first; n < last; n *= 2) el_text_append(list, sizeof list, ",%lld", (long long)n);
    el_text_append(list, sizeof list, ",%lld", (long long)last);
    return each_item(row, list, EL_LIST_MAX, take_count, counts, n_p);
}

/* "1,2,4" or "cuda:1,2,4". */
static enum el_status set_counts(const struct el_option_row *row, const char *text, struct el_options *options)
{
    const char *colon = strchr(text, ':');
    char backend[sizeof options->counts_backend] = "cpu";
    size_t length = colon ? (size_t)(colon - text) : 0;
    if (length >= sizeof backend) return el_fail(EL_ERR_INVALID, "--%s: '%s' is no list of counts", row->name, text);
    if (colon) snprintf(backend, sizeof backend, "%.*s", (int)length, text);
    EL_TRY(check_backend(backend, colon ? colon + 1 : ""));
    if (colon && strchr(colon + 1, ':'))
        return el_fail(EL_ERR_INVALID, "--%s: '%s' names devices: scale takes how many, like %s:1,2,4", row->name, text,
                       backend);
    const struct el_option_row ranged = {.name = row->name, .min = 1, .max = most(backend)};
    EL_TRY(each_count(&ranged, colon ? colon + 1 : text, options->counts, &options->n_counts));
    memcpy(options->counts_backend, backend, sizeof backend);
    return EL_OK;
}

static enum el_status set_size(const struct el_option_row *row, const char *text, struct el_model_config *model)
{
    int64_t values[EL_MODEL_VALUES_MAX];
    int n = 1;
    if (!row->size->list)
        EL_TRY(option_whole(row, text, values));
    else if (!strcmp(text, "none"))
        n = 0;
    else
        EL_TRY(each_item(row, text, EL_MODEL_VALUES_MAX, take_whole, values, &n));
    el_model_set(model, row->size->name, values, n);
    return EL_OK;
}

static enum el_status take_word(const struct el_option_row *row, const char *item, int n, void *into)
{
    (void)n;
    return option_place(row, row->of_mode->choices, item, into);
}

/* Text is kept, as it is written shortest: the mode reads it where there is one. */
static enum el_status set_of_mode(const struct el_option_row *row, const char *text, char *field)
{
    const struct el_mode_option *option = row->of_mode;
    char number[32];
    int place, n;
    int64_t whole;
    switch (option->kind) {
    case EL_MODE_SWITCH:
    case EL_MODE_CHOICE:
    case EL_MODE_WORDS:
        if (option->kind != EL_MODE_WORDS)
            EL_TRY(option_place(row, option->choices, text, &place));
        else if (strcmp(text, "all") && strcmp(text, "none"))
            EL_TRY(each_item(row, text, EL_LIST_MAX, take_word, &place, &n));
        break;
    case EL_MODE_INT:
    case EL_MODE_COUNT:
        EL_TRY(option_whole(row, text, &whole));
        snprintf(number, sizeof number, "%lld", (long long)whole);
        return option_text(row, number, field, EL_MODE_TEXT_BYTES);
    case EL_MODE_FILE:
        if (!strpbrk(text, "./")) EL_TRY(option_place(row, option->choices, text, &place));
        break;
    default:
        break;
    }
    return option_text(row, text, field, option->bytes ? option->bytes : EL_MODE_TEXT_BYTES);
}

/* "4-64"; "16" is "16-16". */
static enum el_status set_spread(const struct el_option_row *row, const char *text, struct el_spread *spread)
{
    char first[32];
    int64_t ends[2];
    const char *dash = strchr(text, '-');
    snprintf(first, sizeof first, "%.*s", (int)strcspn(text, "-"), text);
    EL_TRY(option_whole(row, first, &ends[0]));
    EL_TRY(option_whole(row, dash ? dash + 1 : first, &ends[1]));
    if (ends[1] < ends[0]) return el_fail(EL_ERR_INVALID, "--%s %s: the smaller number goes first", row->name, text);
    *spread = (struct el_spread){ends[0], ends[1]};
    return EL_OK;
}

static enum el_status option_set_list(const struct el_option_row *row, const char *text, struct el_options *options)
{
    struct el_number_list *numbers;
    switch (row->kind) {
    case EL_OPTION_MODES:
        return each_item(row, text, row->commands & EL_CMD_RUN ? 1 : EL_LIST_MAX, take_mode, options->modes,
                         &options->n_modes);
    case EL_OPTION_MODEL:
        return set_model(text, options->train.model.name);
    case EL_OPTION_DEVICES:
        options->one_gpu = !strcmp(text, "cuda:1");
        return el_devices_parse(text, options->devices, &options->n_devices);
    case EL_OPTION_BATCH:
    case EL_OPTION_BATCH_PER_DEVICE:
        options->batch_is_per_device = row->kind == EL_OPTION_BATCH_PER_DEVICE;
        return each_item(row, text, EL_LIST_MAX, take_whole, options->batches, &options->n_batches);
    case EL_OPTION_OF_MODE:
        return set_of_mode(row, text, (char *)options + row->offset);
    case EL_OPTION_SIZE:
        return set_size(row, text, &options->train.model);
    case EL_OPTION_COUNTS:
        return set_counts(row, text, options);
    case EL_OPTION_NUMBERS:
        numbers = (struct el_number_list *)(void *)((char *)options + row->offset);
        return each_count(row, text, numbers->v, &numbers->n);
    case EL_OPTION_SPREAD:
        return set_spread(row, text, (struct el_spread *)(void *)((char *)options + row->offset));
    default:
        return el_fail(EL_ERR_INTERNAL, "--%s: a kind of option nobody reads", row->name);
    }
}

static void show_numbers(const int64_t *numbers, int n, char *text, size_t bytes)
{
    for (int i = 0; i < n; i++) el_text_append(text, bytes, "%s%lld", i ? "," : "", (long long)numbers[i]);
}

static void option_show_list(const struct el_option_row *row, const struct el_options *options, char *text,
                             size_t bytes)
{
    const struct el_number_list *numbers;
    const struct el_spread *spread;
    const struct el_model_values *values = NULL;
    bool local = row->kind == EL_OPTION_BATCH_PER_DEVICE;
    switch (row->kind) {
    case EL_OPTION_MODES:
        for (int i = 0; i < options->n_modes; i++) el_text_append(text, bytes, "%s%s", i ? "," : "", options->modes[i]);
        return;
    case EL_OPTION_MODEL:
        snprintf(text, bytes, "%s", options->train.model.name);
        return;
    case EL_OPTION_DEVICES:
        el_devices_show(options->devices, options->n_devices, text, bytes);
        return;
    case EL_OPTION_COUNTS:
        if (options->n_counts && strcmp(options->counts_backend, "cpu"))
            el_text_append(text, bytes, "%s:", options->counts_backend);
        for (int i = 0; i < options->n_counts; i++)
            el_text_append(text, bytes, "%s%d", i ? "," : "", options->counts[i]);
        return;
    case EL_OPTION_NUMBERS:
        numbers = (const struct el_number_list *)(const void *)((const char *)options + row->offset);
        for (int i = 0; i < numbers->n; i++) el_text_append(text, bytes, "%s%d", i ? "," : "", numbers->v[i]);
        return;
    case EL_OPTION_SPREAD:
        spread = (const struct el_spread *)(const void *)((const char *)options + row->offset);
        if (spread->longest)
            snprintf(text, bytes, "%lld-%lld", (long long)spread->shortest, (long long)spread->longest);
        return;
    case EL_OPTION_BATCH:
    case EL_OPTION_BATCH_PER_DEVICE:
        if (local == options->batch_is_per_device) show_numbers(options->batches, options->n_batches, text, bytes);
        return;
    default:
        values = el_model_values(&options->train.model, row->size->name);
        if (values && values->n == 0) snprintf(text, bytes, "none");
        if (values) show_numbers(values->v, values->n, text, bytes);
    }
}
