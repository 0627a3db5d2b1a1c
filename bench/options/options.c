/* The command line into options: getopt_long fed from the rows, and what goes wrong said in one line.
 * Values are read in values.c; what they mean together is for trial.c. */
#include "bench/options/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"

enum { VALUE_BYTES = 2048, FIRST_CODE = 256, LETTERS_BYTES = 64 };

const char *el_option_initial(const struct el_option_row *row, unsigned command)
{
    for (size_t i = 0; i < sizeof row->otherwise / sizeof row->otherwise[0]; i++)
        if (row->otherwise[i].commands & command) return row->otherwise[i].text;
    return row->initial;
}

void el_options_defaults(unsigned command, struct el_options *options)
{
    memset(options, 0, sizeof *options);
    options->train.model.dropout = options->train.lr = options->first_bucket_mib = -1;
    options->train.capture = true;
    options->record = options->plot = true;
    options->regress.budget_s = -1;
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        const char *initial = el_option_initial(row, command);
        if ((row->commands & command) && *initial && el_option_set(row, initial, options) != EL_OK) abort();
    }
}

/* The rows of a command, as getopt_long wants them; `names` for suggestions, ended by NULL; `letters`, which begin with
 * what is there already. Returns how many. */
static int list_options(unsigned command, struct option *long_options, const struct el_option_row **rows,
                        const char **names, char letters[LETTERS_BYTES])
{
    int n = 0;
    for (const struct el_option_row *row = el_option_rows(); row->name && n < EL_OPTIONS_MAX; row++) {
        if (!(row->commands & command)) continue;
        long_options[n] = (struct option){.name = row->name, .has_arg = row->argument != NULL, .val = FIRST_CODE + n};
        if (row->letter) el_text_append(letters, LETTERS_BYTES, "%c:", row->letter);
        rows[n] = row;
        names[n++] = row->name;
    }
    memset(&long_options[n], 0, sizeof long_options[n]);
    names[n] = NULL;
    return n;
}

static const struct el_option_row *find_row(const char *name, size_t length)
{
    for (const struct el_option_row *row = el_option_rows(); row->name; row++)
        if (strlen(row->name) == length && !strncmp(row->name, name, length)) return row;
    return NULL;
}

bool el_option_given(const struct el_options *options, const char *name)
{
    const struct el_option_row *row = find_row(name, strlen(name));
    return row && options->given[row - el_option_rows()];
}

static const char *command_of(unsigned bits)
{
    for (const struct el_command_row *row = el_command_rows(); row->name; row++)
        if (row->bit & bits) return row->name;
    return "evenload";
}

static enum el_status fail_option(unsigned command, const char *argument, const char *const *names)
{
    const char *name = argument + strspn(argument, "-");
    size_t length = strcspn(name, "=");
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    const struct el_option_row *elsewhere = argument[1] == '-' ? find_row(name, length) : NULL;
    const char *here = command_of(command);
    if (elsewhere && command == EL_CMD_WATCH && !strcmp(word, "json"))
        return el_fail(EL_ERR_INVALID, "watch has no --json: standard output is the command's own; the record is in "
                                       "results.json of the folder (--out DIR)");
    if (elsewhere)
        return el_fail(EL_ERR_INVALID, "--%s is an option of 'evenload %s', not of '%s'", word,
                       command_of(elsewhere->commands), here);
    const char *near = el_suggest(word, names);
    if (near) return el_fail(EL_ERR_INVALID, "unknown option '%s': did you mean '--%s'?", argument, near);
    return el_fail(EL_ERR_INVALID, "unknown option '%s': 'evenload %s --help' lists them", argument, here);
}

/* The first word of `baseline` and of `comm` is what to do. */
static enum el_status take_action(const char *word, struct el_options *options)
{
    if (strlen(word) >= sizeof options->action) return el_fail(EL_ERR_INVALID, "'%.40s...' is no action", word);
    snprintf(options->action, sizeof options->action, "%s", word);
    return EL_OK;
}

static enum el_status take_rest(unsigned command, int argc, char **argv, struct el_options *options)
{
    if (command == EL_CMD_WATCH) {
        options->command_at = optind < argc ? optind : 0;
        return EL_OK;
    }
    bool actions = command == EL_CMD_BASELINE || command == EL_CMD_COMM,
         ab = command == EL_CMD_REGRESS && options->regress.ab[0];
    bool taken = command == EL_CMD_BASELINE || ab || command == EL_CMD_PLOT || command == EL_CMD_IMBALANCE ||
                 command == EL_CMD_SCALE || (command == EL_CMD_COMPARE && options->resume);
    const char *what = ab ? "head command" : "folder";
    for (int i = optind; i < argc; i++) {
        if (actions && !options->action[0] && *argv[i]) {
            EL_TRY(take_action(argv[i], options));
            continue;
        }
        if (!taken || options->dir[0])
            return el_fail(EL_ERR_INVALID, "unexpected argument '%s': options begin with --; 'evenload %s --help'",
                           argv[i], command_of(command));
        if (strlen(argv[i]) >= sizeof options->dir) return el_fail(EL_ERR_INVALID, "the %s's name is too long", what);
        if (!*argv[i]) return el_fail(EL_ERR_INVALID, "the %s's name is empty", what);
        snprintf(options->dir, sizeof options->dir, "%s", argv[i]);
    }
    return EL_OK;
}

/* The word of the option just read: before its value, where that is a word of its own. */
static const char *as_given(char **argv, const struct el_option_row *row)
{
    bool apart = row->argument != NULL && optarg == argv[optind - 1];
    return argv[optind - (apart ? 2 : 1)];
}

/* getopt takes the beginning of a name for the whole; but a whole name of another command is meant as that. */
static bool is_name_of_another(const char *given, const struct el_option_row *row)
{
    const char *name = given + strspn(given, "-");
    size_t length = strcspn(name, "=");
    return length != strlen(row->name) && find_row(name, length) != NULL;
}

/* Of a letter that is in the list. */
static const struct el_option_row *row_of_letter(int letter, const struct el_option_row *const *rows)
{
    while ((*rows)->letter != letter) rows++;
    return *rows;
}

static enum el_status take_option(int code, unsigned command, char **argv, const struct el_option_row *const *rows,
                                  const char *const *names, struct el_options *options, bool *batch_seen)
{
    if (code == ':') return el_fail(EL_ERR_INVALID, "%s needs a value", argv[optind - 1]);
    if (code == '?' && optopt >= FIRST_CODE)
        return el_fail(EL_ERR_INVALID, "--%s takes no value", rows[optopt - FIRST_CODE]->name);
    if (code == '?') return fail_option(command, argv[optind - 1], names);
    if (code == 'h') {
        options->help = true;
        return EL_OK;
    }
    const struct el_option_row *row = code < FIRST_CODE ? row_of_letter(code, rows) : rows[code - FIRST_CODE];
    const char *given = as_given(argv, row);
    if (code >= FIRST_CODE && is_name_of_another(given, row)) return fail_option(command, given, names);
    if (row->kind == EL_OPTION_BATCH || row->kind == EL_OPTION_BATCH_PER_DEVICE) {
        bool other = (row->kind == EL_OPTION_BATCH_PER_DEVICE) != options->batch_is_per_device;
        if (*batch_seen && other)
            return el_fail(EL_ERR_INVALID, "--batch is of all devices together, --batch-per-device of each: give one");
        *batch_seen = true;
    }
    options->given[row - el_option_rows()] = true;
    return el_option_set(row, optarg ? optarg : "", options);
}

enum el_status el_options_parse(unsigned command, int argc, char **argv, struct el_options *options)
{
    struct option long_options[EL_OPTIONS_MAX + 1];
    const struct el_option_row *rows[EL_OPTIONS_MAX];
    const char *names[EL_OPTIONS_MAX + 1];
    char letters[LETTERS_BYTES];
    bool batch_seen = false;
    snprintf(letters, sizeof letters, "%s", command == EL_CMD_WATCH ? "+:h" : ":h");
    list_options(command, long_options, rows, names, letters);
    optind = 0; /* begin anew: a resumed run reads two command lines */
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, letters, long_options, NULL)) != -1;)
        EL_TRY(take_option(code, command, argv, rows, names, options, &batch_seen));
    return take_rest(command, argc, argv, options);
}

json_t *el_options_echo(unsigned command, const struct el_options *options)
{
    json_t *echo = json_object();
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        char text[VALUE_BYTES];
        if (!(row->commands & command) || row->kind == EL_OPTION_FLAG) continue;
        el_option_show(row, options, text, sizeof text);
        if (*text) json_object_set_new(echo, row->name, el_json_string(text));
    }
    return echo;
}

const char *el_shell_word(const char *text, char *word, size_t bytes)
{
    bool plain =
        *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./,:=@%")];
    size_t used = 0;
    for (const char *at = text; *at; at++) used += !plain && *at == '\'' ? 4 : 1;
    bool fits = used + (plain ? 1 : 3) <= bytes;
    snprintf(word, bytes, "%s", !fits ? "" : plain ? text : "'");
    if (!fits || plain) return word;
    used = 1;
    for (; *text; text++) used += (size_t)snprintf(word + used, bytes - used, *text == '\'' ? "'\\''" : "%c", *text);
    snprintf(word + used, bytes - used, "'");
    return word;
}

const char *el_program_word(void)
{
    static char word[EL_WORD_BYTES];
    return *el_shell_word(program_invocation_name, word, sizeof word) ? word : "evenload";
}

/* Appends " --name value"; false: no room. */
static bool append_option(const struct el_option_row *row, const char *value, char *text, size_t bytes)
{
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, bytes - used, " --%s%s", row->name, row->argument ? " " : "");
    if (used >= bytes) return false;
    return !row->argument || *el_shell_word(value, text + used, bytes - used);
}

enum el_status el_options_command_line(unsigned command, const struct el_options *options, char *text, size_t bytes)
{
    struct el_options *initial = malloc(sizeof *initial);
    if (!initial) return el_fail_errno("options");
    el_options_defaults(command, initial);
    bool named = command == EL_CMD_COMM && options->action[0];
    bool fits = (size_t)snprintf(text, bytes, "evenload %s%s%s", command_of(command), named ? " " : "",
                                 named ? options->action : "") < bytes;
    for (const struct el_option_row *row = el_option_rows(); row->name && fits; row++) {
        char value[VALUE_BYTES], otherwise[VALUE_BYTES];
        if (!(row->commands & command)) continue;
        el_option_show(row, options, value, sizeof value);
        el_option_show(row, initial, otherwise, sizeof otherwise);
        bool always = row->kind <= EL_OPTION_SIZE && row->kind >= EL_OPTION_MODES;
        if (*value && (always || strcmp(value, otherwise))) fits = append_option(row, value, text, bytes);
    }
    free(initial);
    return fits ? EL_OK : el_fail(EL_ERR_INVALID, "the command is too long to be kept");
}
