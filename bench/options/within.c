/* Options that are written within the value of another one: --checkpoint DIR,every=5,keep=3. Each keeps a row of its
 * own, with its kind, range and default. */
#include <string.h>

#include "bench/base/text.h"
#include "bench/options/options.h"

static const struct el_option_within table[] = {
    {"dtype", "precision", "f64", true},
    {"tf32", "precision", "tf32", true},
    {"momentum", "optimizer", "momentum", false},
    {"weight-decay", "optimizer", "weight-decay", false},
    {"foreach", "optimizer", "foreach", false},
    {"dropout", "model", "dropout", false},
    {"max-norm", "model", "max-norm", false},
    {"capacity", "model", "capacity", false},
    {"aux", "model", "aux", false},
    {"z", "model", "z", false},
    {"placement", "routing", "placement", false},
    {"device-mem", "devices", "mem", false},
    {"first-bucket-mb", "bucket-mb", "first", false},
    {"bucket-view", "bucket-mb", "view", false},
    {"static-graph", "find-unused", "once", true},
    {"share-weights", "shares", "weights", false},
    {"output-device", "loss-in", "device", false},
    {"micro", "schedule", "micro", false},
    {"parts", "schedule", "parts", false},
    {"reduce-in", "unit", "reduce", false},
    {"reshard", "unit", "reshard", false},
    {"gather-ahead", "unit", "ahead", false},
    {"length-by", "lengths", "pad", false},
    {"bucket-lengths", "lengths", "bucketed", false},
    {"prefetch", "workers", "prefetch", false},
    {"page-cache", "data-in", "cache", false},
    {"pin-memory", "non-blocking", "pin", false},
    {"checkpoint-every", "checkpoint", "every", false},
    {"checkpoint-keep", "checkpoint", "keep", false},
    {"checkpoint-async", "checkpoint", "async", false},
    {"max-restarts", "checkpoint", "restarts", false},
    {"elastic-batch", "elastic", "batch", false},
    {"eval", "epochs", "eval", false},
    {"sort", "profile", "sort", false},
    {"launch", "launcher", "rank", false},
    {"launch", "launcher", "self", false},
    {"comm-check", "comm", "check", false},
    {"control-pairs", "control", "pairs", false},
};
enum { N = sizeof table / sizeof table[0] };

const struct el_option_within *el_option_within(const char *name)
{
    for (int i = 0; i < N; i++)
        if (!strcmp(table[i].name, name)) return &table[i];
    return NULL;
}

const struct el_option_row *el_option_of_command(unsigned command, const char *name)
{
    for (const struct el_option_row *row = el_option_rows(); row->name; row++)
        if ((row->commands & command) && !strcmp(row->name, name)) return row;
    return NULL;
}

bool el_option_is_within(const struct el_option_row *row, unsigned command)
{
    const struct el_option_within *within = el_option_within(row->name);
    return within && el_option_of_command(command, within->in);
}

/* What the bare key stands for: the choice of that name, or on; NULL: it needs a value. */
static const char *bare_value(const struct el_option_row *row, const char *key)
{
    if (!row->choices) return NULL;
    for (const char *at = row->choices; *at; at += strcspn(at, "|"), at += *at == '|')
        if (strcspn(at, "|") == strlen(key) && !strncmp(at, key, strlen(key))) return key;
    return strncmp(row->choices, "off|on", strlen("off|on")) ? NULL : "on";
}

void el_option_write_within(const struct el_option_row *row, const char *value, char *text, size_t bytes)
{
    const char *key = el_option_within(row->name)->key, *bare = NULL;
    for (int i = 0; i < N && !(bare && !strcmp(bare, value)); i++)
        if (!strcmp(table[i].name, row->name) && (bare = bare_value(row, table[i].key))) key = table[i].key;
    const bool alone = bare && !strcmp(bare, value);
    el_text_append(text, bytes, "%s%s%s%s", *text ? "," : "", key, alone ? "" : "=", alone ? "" : value);
}

void el_option_keys(const struct el_option_row *row, char *text, size_t bytes)
{
    *text = 0;
    for (int i = 0; i < N; i++)
        if (!strcmp(table[i].name, row->name)) el_text_append(text, bytes, "%s%s", *text ? "|" : "", table[i].key);
    const char *bare = bare_value(row, el_option_within(row->name)->key);
    if (!bare || !strcmp(bare, row->initial)) el_text_append(text, bytes, "=%s", row->argument);
}

void el_option_add_words(const struct el_option_row *row, char *words, size_t bytes)
{
    for (int i = 0; i < N; i++) {
        const struct el_option_row *inner = el_option_find(table[i].name, strlen(table[i].name));
        if (!strcmp(table[i].in, row->name) && (inner->commands & row->commands) && bare_value(inner, table[i].key))
            el_text_append(words, bytes, "|%s", table[i].key);
    }
}

void el_option_called(const struct el_option_row *row, unsigned command, char *text, size_t bytes)
{
    const bool is_within = el_option_is_within(row, command);
    const struct el_option_within *within = el_option_within(row->name);
    snprintf(text, bytes, "--%s%s%s", is_within ? within->in : row->name, is_within ? " " : "",
             is_within ? within->key : "");
}

/* The option that a part "every=5", or "check", of the value of `in` sets, and to what; NULL: it is of the value. */
static const struct el_option_row *row_of_part(unsigned command, const char *in, const char *part, size_t length,
                                               const char **value_p)
{
    const size_t key = strcspn(part, "=") < length ? strcspn(part, "=") : length;
    for (int i = 0; i < N; i++) {
        if (strcmp(table[i].in, in) || strlen(table[i].key) != key || strncmp(table[i].key, part, key)) continue;
        const struct el_option_row *row = el_option_of_command(command, table[i].name);
        *value_p = !row ? NULL : key < length ? part + key + 1 : bare_value(row, table[i].key);
        if (*value_p) return row;
    }
    return NULL;
}

/* Fails if a part of the outer option's own value was meant for an option within it: one that only other commands take,
 * or none. A text may have a = of its own. */
static enum el_status check_own_part(unsigned command, const struct el_option_row *outer, const char *part,
                                     size_t length)
{
    const char *unused;
    char keys[256] = "";
    const struct el_option_row *row = row_of_part(EL_CMD_ALL, outer->name, part, length, &unused);
    if (row)
        return el_fail(EL_ERR_INVALID, "--%s %.*s is an option of 'evenload %s', not of '%s'", outer->name, (int)length,
                       part, el_command_name(row->commands), el_command_name(command));
    for (int i = 0; i < N; i++)
        if (!strcmp(table[i].in, outer->name) && el_option_of_command(command, table[i].name))
            el_text_append(keys, sizeof keys, "%s%s", *keys ? ", " : "", table[i].key);
    if (!*keys || outer->kind == EL_OPTION_TEXT || !memchr(part, '=', length)) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--%s: '%.*s' is nothing within its value (there is: %s)", outer->name, (int)length,
                   part, keys);
}

/* Names the option as it was written. */
static enum el_status set_within(unsigned command, const struct el_option_row *row, const char *value,
                                 struct el_options *options)
{
    char called[64], own[64], message[EL_ERROR_TEXT_BYTES];
    const enum el_status status = el_option_take(command, row, value, options);
    options->given[el_option_find(row->name, strlen(row->name)) - el_option_rows()] = true;
    if (status == EL_OK) return EL_OK;
    el_option_called(row, command, called, sizeof called);
    snprintf(own, sizeof own, "--%s", row->name);
    snprintf(message, sizeof message, "%s", el_error_message());
    const bool named = !strncmp(message, own, strlen(own));
    return el_fail(status, "%s%s", named ? called : "", message + (named ? strlen(own) : 0));
}

/* Another value of the outer option takes the place of what is one too: --precision f64 --precision f32. */
static enum el_status reset_values(unsigned command, const char *in, struct el_options *options)
{
    for (int i = 0; i < N; i++) {
        if (strcmp(table[i].in, in) || !table[i].is_value) continue;
        const struct el_option_row *row = el_option_of_command(command, table[i].name);
        if (row) EL_TRY(el_option_set(row, el_option_initial(row, command), options));
    }
    return EL_OK;
}

enum el_status el_option_take_within(unsigned command, const struct el_option_row *row, const char *text,
                                     struct el_options *options, char *rest, size_t bytes)
{
    bool any = false;
    const char *unused;
    *rest = 0;
    if (!row_of_part(command, row->name, text, strcspn(text, ","), &unused))
        EL_TRY(reset_values(command, row->name, options));
    for (const char *at = text; *at;) {
        const char *value = NULL;
        size_t length = strcspn(at, ",");
        const struct el_option_row *inner = row_of_part(command, row->name, at, length, &value);
        if (!inner) {
            EL_TRY(check_own_part(command, row, at, length));
            el_text_append(rest, bytes, "%s%.*s", *rest ? "," : "", (int)length, at);
            at += length + (at[length] == ',');
            continue;
        }
        /* A list goes on as far as nothing else begins. */
        char own[EL_PATH_BYTES];
        const char *end = at + length, *other;
        while (*end && !row_of_part(command, row->name, end + 1, strcspn(end + 1, ","), &other) &&
               strcspn(end + 1, "=") >= strcspn(end + 1, ","))
            end += 1 + strcspn(end + 1, ",");
        const bool bare = !memchr(at, '=', length);
        snprintf(own, sizeof own, "%.*s", bare ? (int)strlen(value) : (int)(end - value), value);
        EL_TRY(set_within(command, inner, own, options));
        any = true;
        at = end + (*end == ',');
    }
    if (!any) snprintf(rest, bytes, "%s", text); /* as it was given */
    return EL_OK;
}
