/* Lists of values where several trials are measured: --precision f32,bf16 --schedule micro=4,8 makes a trial for each
 * combination. The option's own field has the first value. */
#include <string.h>

#include "bench/base/text.h"
#include "bench/options/options.h"

enum { COMBINATIONS_MAX = 1000 };

/* Options of a trial whose one value has no comma. What the data or the whole command is has one value. */
static bool may_be_list(const struct el_option_row *row)
{
    static const char *const once = " repeats classes epochs data-in max-restarts ";
    char name[64];
    snprintf(name, sizeof name, " %s ", row->name);
    if (strstr(once, name) || !el_option_of_command(EL_CMD_COMPARE, row->name) ||
        !el_option_of_command(EL_CMD_RUN, row->name))
        return false;
    if (!strcmp(row->name, "routing") || !strcmp(row->name, "placement")) return true;
    if (row->kind == EL_OPTION_OF_MODE)
        return row->of_mode->kind != EL_MODE_WORDS && row->of_mode->kind != EL_MODE_TEXT;
    return row->kind == EL_OPTION_INT || row->kind == EL_OPTION_COUNT || row->kind == EL_OPTION_REAL ||
           row->kind == EL_OPTION_WORD || row->kind == EL_OPTION_SWITCH || row->kind == EL_OPTION_CHOICE;
}

/* "equal/3,1": shares and placements have commas of their own. */
static const char *between(const struct el_option_row *row)
{
    const bool commas = (row->of_mode && row->of_mode->kind == EL_MODE_SHARES) || !strcmp(row->name, "placement");
    return commas ? "/" : ",";
}

static struct el_option_list *find(const struct el_options *options, const char *name)
{
    for (int i = 0; i < options->n_lists; i++)
        if (!strcmp(options->lists[i].row->name, name)) return (struct el_option_list *)(uintptr_t)&options->lists[i];
    return NULL;
}

const char *el_option_list(const struct el_options *options, const char *name)
{
    const struct el_option_list *list = find(options, name);
    return list ? list->text : NULL;
}

static void forget(struct el_options *options, struct el_option_list *list)
{
    struct el_option_list *end = options->lists + options->n_lists;
    if (!list) return;
    memmove(list, list + 1, (size_t)(end - list - 1) * sizeof *list);
    options->n_lists--;
}

/* Copies an item; returns what is behind it, or NULL behind the last. */
static const char *next_item(const char *at, const char *separator, char *item, size_t bytes)
{
    const size_t length = strcspn(at, separator);
    snprintf(item, bytes, "%.*s", (int)length, at);
    return at[length] ? at + length + 1 : NULL;
}

/* In the order of the rows, whatever the command line's was. */
static void remember(struct el_options *options, const struct el_option_row *row, const char *text)
{
    int at = options->n_lists++;
    for (; at > 0 && options->lists[at - 1].row > row; at--) options->lists[at] = options->lists[at - 1];
    options->lists[at].row = row;
    snprintf(options->lists[at].text, sizeof options->lists[at].text, "%s", text);
}

enum el_status el_option_take(unsigned command, const struct el_option_row *row, const char *text,
                              struct el_options *options)
{
    char item[EL_LIST_BYTES];
    forget(options, find(options, row->name));
    if (!may_be_list(row) || !strpbrk(text, between(row))) return el_option_set(row, text, options);
    if (!(command & (EL_CMD_COMPARE | EL_CMD_IMBALANCE)))
        return el_fail(EL_ERR_INVALID, "--%s %s: '%s' takes one value; 'evenload compare' takes a list", row->name,
                       text, el_command_name(command));
    if (strlen(text) >= EL_LIST_BYTES || options->n_lists == EL_LISTS_MAX)
        return el_fail(EL_ERR_INVALID, "--%s: too many values: give fewer", row->name);
    for (const char *at = text; at;) {
        at = next_item(at, between(row), item, sizeof item);
        if (!*item)
            return el_fail(EL_ERR_INVALID, "--%s: '%s' has an empty item: give a list like 1,2", row->name, text);
        for (const char *other = at; other;) {
            char later[EL_LIST_BYTES];
            other = next_item(other, between(row), later, sizeof later);
            if (!strcmp(item, later)) return el_fail(EL_ERR_INVALID, "--%s: '%s' is there twice", row->name, item);
        }
        EL_TRY(el_option_set(row, item, options));
    }
    next_item(text, between(row), item, sizeof item);
    remember(options, row, text);
    if (el_option_combinations(options) > COMBINATIONS_MAX)
        return el_fail(EL_ERR_INVALID, "--%s: more than %d combinations of values: give fewer", row->name,
                       COMBINATIONS_MAX);
    return el_option_set(row, item, options);
}

static int count_items(const struct el_option_list *list)
{
    int n = 1;
    for (const char *at = list->text; *at; at++) n += *at == *between(list->row);
    return n;
}

int el_option_combinations(const struct el_options *options)
{
    int n = 1;
    for (int i = 0; i < options->n_lists; i++) n *= count_items(&options->lists[i]);
    return n;
}

/* NULL: all modes have it. */
static const struct el_mode_option *of_modes(const struct el_option_row *row)
{
    const struct el_mode_option *const *option = el_mode_options();
    while (*option && strcmp((*option)->name, row->name)) option++;
    return *option;
}

/* Whether tables do not say it in words of their own (report/row_names.c), and the mode has it. */
static bool is_named(const struct el_option_row *row, const char *mode)
{
    const struct el_mode_option *option = of_modes(row);
    if (!option) return true;
    return !option->label && option->kind != EL_MODE_SHARES && strcmp(row->name, "bucket-mb") &&
           strcmp(row->name, "first-bucket-mb") && el_mode_option_of(mode, row->name);
}

static void append_chosen(const struct el_option_row *row, const char *item, char *chosen, size_t bytes)
{
    const struct el_option_within *within = el_option_within(row->name);
    const bool word = row->choices && strncmp(row->choices, "off|", 4) && strncmp(row->choices, "on|", 3);
    el_text_append(chosen, bytes, "%s%s%s%s", *chosen ? " " : "",
                   word     ? ""
                   : within ? within->key
                            : row->name,
                   word ? "" : " ", item);
}

enum el_status el_option_choose(const struct el_options *options, const char *mode, int place, struct el_options *one_p,
                                char *chosen, size_t bytes)
{
    int rest = el_option_combinations(options);
    *one_p = *options;
    one_p->n_lists = 0;
    *chosen = 0;
    for (int i = 0; i < options->n_lists; i++) {
        const struct el_option_list *list = &options->lists[i];
        char item[EL_LIST_BYTES];
        const char *at = list->text;
        rest /= count_items(list);
        for (int k = place / rest % count_items(list); k >= 0; k--)
            at = next_item(at, between(list->row), item, sizeof item);
        EL_TRY(el_option_set(list->row, item, one_p));
        if (is_named(list->row, mode)) append_chosen(list->row, item, chosen, bytes);
    }
    return EL_OK;
}
