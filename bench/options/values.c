/* Text to field and field to text, a kind of option at a time; and the text of --mesh. Lists of modes, batches and
 * devices are in values_lists.c; which options there are is in rows.c. */
#include "bench/options/values.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench/base/jvalue.h"

static enum el_status fail_number(const struct el_option_row *row, const char *text, const char *what)
{
    return el_fail(EL_ERR_INVALID, "--%s: '%s' is not %s", row->name, text, what);
}

enum el_status el_option_number(const struct el_option_row *row, const char *text, double *number_p)
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

enum el_status el_option_whole(const struct el_option_row *row, const char *text, int64_t *number_p)
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
enum el_status el_option_place(const struct el_option_row *row, const char *choices, const char *text, int *place_p)
{
    enum { CHOICES_BYTES = 128, CHOICES_MAX = 16 };
    char words[CHOICES_BYTES], *rest = words;
    const char *names[CHOICES_MAX + 1] = {NULL};
    snprintf(words, sizeof words, "%s", choices);
    for (int place = 0; place < CHOICES_MAX && (names[place] = strsep(&rest, "|")); place++) {
        if (strcmp(names[place], text) != 0) continue;
        *place_p = place;
        return EL_OK;
    }
    const char *near = el_suggest(text, names),
               *file = row->of_mode && row->of_mode->kind == EL_MODE_FILE ? ", nor a file (name.csv)" : "";
    if (!strcmp(row->name, "dtype") && strstr(text, "16"))
        file = ": 16 bits are --precision's (bf16, bf16-mixed, bf16-pure)";
    if (!near) return el_fail(EL_ERR_INVALID, "--%s: '%s' is not one of %s%s", row->name, text, choices, file);
    return el_fail(EL_ERR_INVALID, "--%s: '%s' is not one of %s%s: did you mean '%s'?", row->name, text, choices, file,
                   near);
}

enum el_status el_option_text(const struct el_option_row *row, const char *text, char *field, size_t bytes)
{
    if (!*text) return el_fail(EL_ERR_INVALID, "--%s: the value is empty: give one, or leave it out", row->name);
    if (strlen(text) >= bytes)
        return el_fail(EL_ERR_INVALID, "--%s: the value is longer than %zu characters", row->name, bytes - 1);
    memmove(field, text, strlen(text) + 1);
    return EL_OK;
}

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
        EL_TRY(el_option_whole(row, text, &whole));
        *(int *)field = (int)whole;
        return EL_OK;
    case EL_OPTION_COUNT:
        return el_option_whole(row, text, field);
    case EL_OPTION_SEED:
        return set_seed(row, text, field);
    case EL_OPTION_REAL:
        return el_option_number(row, text, field);
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
        return el_option_text(row, text, field, EL_PATH_BYTES);
    case EL_OPTION_WORD:
        EL_TRY(el_option_place(row, row->choices, text, &place));
        return el_option_text(row, text, field, sizeof((struct el_options *)0)->comm);
    case EL_OPTION_SWITCH:
        EL_TRY(el_option_place(row, row->choices, text, &place));
        *(bool *)field = place;
        return EL_OK;
    case EL_OPTION_CHOICE:
        EL_TRY(el_option_place(row, row->choices, text, &place));
        *(int *)field = place;
        return EL_OK;
    default:
        return el_option_set_list(row, text, options);
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

void el_option_show(const struct el_option_row *row, const struct el_options *options, char *text, size_t bytes)
{
    const void *field = (const char *)options + row->offset;
    bool given = *row->initial;
    int64_t whole = row->kind == EL_OPTION_INT ? *(const int *)field : 0;
    char number[32];
    text[0] = 0;
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
        el_option_show_list(row, options, text, bytes);
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
