/* Values of modes' options, from and to text. */
#include "runtime/modes/option.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/modes/mode.h"

static const struct el_mode_option *all[EL_MODE_OPTIONS_MAX + 1];
static pthread_once_t all_once = PTHREAD_ONCE_INIT;

static const struct el_mode_option *find(const struct el_mode_option *const *rows, const char *name)
{
    while (rows && *rows && strcmp((*rows)->name, name)) rows++;
    return rows ? *rows : NULL;
}

static void list_all(void)
{
    int n = 0;
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++)
        for (const struct el_mode_option *const *row = mode->options; row && *row && n < EL_MODE_OPTIONS_MAX; row++)
            if (!find(all, (*row)->name)) all[n++] = *row;
}

const struct el_mode_option *const *el_mode_options(void)
{
    pthread_once(&all_once, list_all);
    return all;
}

const struct el_mode_option *el_mode_option_of(const char *mode, const char *name)
{
    const struct el_mode_ops *ops = el_mode_ops_find(mode);
    return ops ? find(ops->info.options, name) : NULL;
}

const char *el_mode_option_key(const struct el_mode_option *row, char *key)
{
    snprintf(key, EL_MODE_TEXT_BYTES, "%s", row->key ? row->key : row->name);
    for (char *c = key; *c; c++)
        if (*c == '-') *c = '_';
    return key;
}

/* Index of the first `length` characters of `word` in "a|b|c"; -1: not found. */
static int place_of(const char *choices, const char *word, size_t length)
{
    int place = 0;
    for (const char *at = choices; *at; at += strspn(at, "|"), place++) {
        size_t own = strcspn(at, "|");
        if (own == length && !strncmp(at, word, length)) return place;
        at += own;
    }
    return -1;
}

static enum el_status refuse(const struct el_mode_option *row, const char *text)
{
    return row->choices ? el_fail(EL_ERR_INVALID, "--%s: '%s' is not one of %s", row->name, text, row->choices)
                        : el_fail(EL_ERR_INVALID, "--%s: '%s' is not a whole number", row->name, text);
}

static int count_choices(const char *choices)
{
    int n = 1;
    for (const char *at = choices; *at; at++) n += *at == '|';
    return n;
}

static enum el_status read_words(const struct el_mode_option *row, const char *text, unsigned *bits_p)
{
    bool every = !strcmp(text, "all");
    unsigned bits = every ? (1U << count_choices(row->choices)) - 1 : 0;
    for (const char *at = every || !strcmp(text, "none") ? "" : text; *at;) {
        size_t length = strcspn(at, ",");
        int place = place_of(row->choices, at, length);
        if (place < 0) return refuse(row, text);
        bits |= 1U << place;
        at += length + (at[length] == ',');
    }
    *bits_p = bits;
    return EL_OK;
}

static enum el_status read_whole(const struct el_mode_option *row, const char *text, int64_t *number_p)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end) return refuse(row, text);
    if ((double)number < row->min || (double)number > row->max)
        return el_fail(EL_ERR_INVALID, "--%s: %s is out of range: give %.0f to %.0f", row->name, text, row->min,
                       row->max);
    *number_p = number;
    return EL_OK;
}

static enum el_status read_text(const struct el_mode_option *row, const char *text, char *field)
{
    if (strlen(text) >= row->bytes)
        return el_fail(EL_ERR_INVALID, "--%s: longer than %zu characters", row->name, row->bytes - 1);
    memmove(field, text, strlen(text) + 1);
    return EL_OK;
}

static enum el_status read_shares(const struct el_mode_option *row, const char *text, struct el_shares *shares_p)
{
    struct el_shares shares = {0};
    for (const char *at = text; *text;) {
        char *end;
        long weight = strtol(at, &end, 10);
        int length = (int)strcspn(at, ",");
        if (shares.n == EL_SHARES_MAX)
            return el_fail(EL_ERR_INVALID, "--%s: more than %d weights", row->name, EL_SHARES_MAX);
        if (end == at || end != at + length || *at < '0' || *at > '9' || weight < 1 || weight > EL_SHARE_WEIGHT_MAX)
            return el_fail(EL_ERR_INVALID,
                           "--%s: weight %d, '%.*s', is not a whole number from 1 to %d: give one for "
                           "each device, as in 3,1",
                           row->name, shares.n + 1, length < 32 ? length : 32, at, EL_SHARE_WEIGHT_MAX);
        shares.weight[shares.n++] = (int)weight;
        if (!*end) break;
        at = end + 1;
    }
    *shares_p = shares;
    return EL_OK;
}

static enum el_status read(const struct el_mode_option *row, const char *text, struct el_train_config *config)
{
    void *field = (char *)config + row->offset;
    int64_t number = 0;
    switch (row->kind) {
    case EL_MODE_SWITCH:
    case EL_MODE_CHOICE: {
        int place = place_of(row->choices, text, strlen(text));
        if (place < 0) return refuse(row, text);
        if (row->kind == EL_MODE_SWITCH)
            *(bool *)field = place;
        else
            *(int *)field = place;
        return EL_OK;
    }
    case EL_MODE_WORDS:
        return read_words(row, text, field);
    case EL_MODE_INT:
        EL_TRY(read_whole(row, text, &number));
        *(int *)field = (int)number;
        return EL_OK;
    case EL_MODE_COUNT:
        return read_whole(row, text, field);
    case EL_MODE_TEXT:
    case EL_MODE_FILE:
        return read_text(row, text, field);
    case EL_MODE_SHARES:
        return read_shares(row, text, field);
    default:
        return EL_OK;
    }
}

enum el_status el_mode_option_set(struct el_train_config *config, const char *name, const char *text)
{
    const struct el_mode_option *row = el_mode_option_of(config->mode, name);
    if (!row) return el_fail(EL_ERR_INVALID, "mode %s has no --%s", config->mode, name);
    return read(row, text, config);
}

static bool is_setting(const struct el_mode_option *row)
{
    return row->offset >= offsetof(struct el_train_config, settings) &&
           row->offset < offsetof(struct el_train_config, settings) + EL_MODE_SETTINGS_BYTES;
}

/* The value in a mode without the option. */
static const char *when_absent(const struct el_mode_option *row)
{
    const char *text = row->absent ? row->absent : row->initial;
    return text ? text : row->kind == EL_MODE_INT || row->kind == EL_MODE_COUNT ? "0" : "";
}

void el_mode_words_show(const char *choices, unsigned bits, char *text, size_t bytes)
{
    int n = count_choices(choices);
    bool every = bits == (1U << n) - 1;
    size_t used = (size_t)snprintf(text, bytes, "%s", every ? "all" : bits ? "" : "none");
    const char *at = choices;
    for (int place = 0; place < n && !every; place++, at += strcspn(at, "|"), at += *at == '|') {
        if (!(bits & 1U << place) || used >= bytes) continue;
        used += (size_t)snprintf(text + used, bytes - used, "%s%.*s", used ? "," : "", (int)strcspn(at, "|"), at);
    }
}

void el_mode_option_show(const struct el_mode_option *row, const struct el_train_config *config, char *text,
                         size_t bytes)
{
    const struct el_mode_option *own = el_mode_option_of(config->mode, row->name);
    const void *field = (const char *)config + (own ? own : row)->offset;
    const char *choice = row->choices;
    if (!own && is_setting(row)) {
        snprintf(text, bytes, "%s", when_absent(row));
        return;
    }
    switch (row->kind) {
    case EL_MODE_SWITCH:
    case EL_MODE_CHOICE:
        for (int place = row->kind == EL_MODE_SWITCH ? *(const bool *)field : *(const int *)field; place > 0; place--)
            choice += strcspn(choice, "|") + 1;
        snprintf(text, bytes, "%.*s", (int)strcspn(choice, "|"), choice);
        return;
    case EL_MODE_WORDS:
        el_mode_words_show(row->choices, *(const unsigned *)field, text, bytes);
        return;
    case EL_MODE_INT:
        snprintf(text, bytes, "%d", *(const int *)field);
        return;
    case EL_MODE_COUNT:
        snprintf(text, bytes, "%" PRId64, *(const int64_t *)field);
        return;
    case EL_MODE_TEXT:
    case EL_MODE_FILE:
        snprintf(text, bytes, "%s", (const char *)field);
        return;
    case EL_MODE_SHARES:
        *text = 0;
        for (int i = 0, used = 0; i < ((const struct el_shares *)field)->n && (size_t)used < bytes; i++)
            used += snprintf(text + used, bytes - (size_t)used, "%s%d", i ? "," : "",
                             ((const struct el_shares *)field)->weight[i]);
        return;
    default:
        *text = 0;
    }
}

void el_mode_options_reset(struct el_train_config *config)
{
    const struct el_mode_option *const *rows = el_mode_options();
    for (; *rows; rows++) {
        const char *text = when_absent(*rows);
        if (el_mode_option_of(config->mode, (*rows)->name) || is_setting(*rows)) continue;
        if (*text || (*rows)->kind >= EL_MODE_TEXT) read(*rows, text, config);
    }
}

const void *el_mode_settings(const struct el_train_config *config)
{
    return config->settings;
}

void el_mode_change(struct el_train_config *config, const char *mode)
{
    if (strcmp(config->mode, mode)) memset(config->settings, 0, sizeof config->settings);
    snprintf(config->mode, sizeof config->mode, "%s", mode);
}
