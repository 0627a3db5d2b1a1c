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
    options->train.model.dropout = options->train.lr = options->train.weight_decay = options->bucket_mib =
        options->first_bucket_mib = -1;
    options->train.capture = true;
    options->record = options->plot = options->hook = true;
    options->regress.budget_s = -1;
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        const char *initial = el_option_initial(row, command);
        /* A trial of `explain` has also what only commands that are told a mode can be given. */
        bool has = row->commands & command || (command == EL_CMD_EXPLAIN && row->commands == EL_CMD_OF_MODES);
        if (has && *initial && el_option_take(command, row, initial, options) != EL_OK) abort();
    }
}

/* The rows of a command, as getopt_long wants them; a code says which row. `letters` are added to. */
static void list_options(unsigned command, struct option *long_options, char letters[LETTERS_BYTES])
{
    const struct el_option_row *rows = el_option_rows(), *row = rows;
    for (; row->name; row++) {
        if (!(row->commands & command)) continue;
        *long_options++ =
            (struct option){.name = row->name, .has_arg = row->argument != NULL, .val = FIRST_CODE + (int)(row - rows)};
        if (row->letter) el_text_append(letters, LETTERS_BYTES, "%c:", row->letter);
    }
    *long_options = (struct option){.name = NULL};
}

const struct el_option_row *el_option_find(const char *name, size_t length)
{
    for (const struct el_option_row *row = el_option_rows(); row->name; row++)
        if (strlen(row->name) == length && !strncmp(row->name, name, length)) return row;
    return NULL;
}

bool el_option_given(const struct el_options *options, const char *name)
{
    const struct el_option_row *row = el_option_find(name, strlen(name));
    return row && options->given[row - el_option_rows()];
}

const char *el_command_name(unsigned bits)
{
#define NAME(bit, function, name) name,
    static const char *const names[] = {EL_COMMANDS(NAME)};
    for (int i = 0; i < EL_CMD_COUNT; i++)
        if (bits & 1U << i) return names[i];
    return "evenload";
}

static enum el_status fail_option(unsigned command, const char *argument)
{
    const char *name = argument + strspn(argument, "-"), *here = el_command_name(command);
    const char *names[EL_OPTIONS_MAX + 1] = {NULL};
    size_t length = strcspn(name, "="), n = 0;
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    const struct el_option_row *elsewhere = argument[1] == '-' ? el_option_find(name, length) : NULL;
    const char *instead = command & (EL_CMD_OF_TRIALS | EL_CMD_COMM) ? el_suggest_instead(command, word) : NULL;
    if (instead) return el_fail(EL_ERR_INVALID, "unknown option '%s': %s", argument, instead);
    if (elsewhere && command == EL_CMD_WATCH && !strcmp(word, "json"))
        return el_fail(EL_ERR_INVALID, "watch has no --json: standard output is the command's own; the record is in "
                                       "results.json of the folder (--out DIR)");
    if (elsewhere)
        return el_fail(EL_ERR_INVALID, "--%s is an option of 'evenload %s', not of '%s'", word,
                       el_command_name(elsewhere->commands), here);
    for (const struct el_option_row *row = el_option_rows(); row->name; row++)
        if (row->commands & command) names[n++] = row->name;
    const char *near = el_suggest(word, names);
    const struct el_option_row *row = near ? el_option_of_command(command, near) : NULL;
    if (row && el_option_is_within(row, command))
        return el_fail(EL_ERR_INVALID, "unknown option '%s': did you mean '--%s %s=%s'?", argument,
                       el_option_within(near)->in, el_option_within(near)->key, row->argument);
    if (near) return el_fail(EL_ERR_INVALID, "unknown option '%s': did you mean '--%s'?", argument, near);
    return el_fail(EL_ERR_INVALID, "unknown option '%s': 'evenload %s --help all' lists them", argument, here);
}

/* Whose first word says what to do, and who takes a folder. */
enum {
    ACTIONS = EL_CMD_BASELINE | EL_CMD_COMM,
    FOLDERS = EL_CMD_BASELINE | EL_CMD_PLOT | EL_CMD_TRACE_STATS | EL_CMD_IMBALANCE | EL_CMD_SCALE | EL_CMD_REPORT |
              EL_CMD_EXPLAIN,
    TWO_FOLDERS = EL_CMD_EXPLAIN | EL_CMD_TRACE_STATS | EL_CMD_IMBALANCE
};

static enum el_status take_rest(unsigned command, int argc, char **argv, struct el_options *options)
{
    if (options->help && optind < argc && !strcmp(argv[argc - 1], "all")) {
        options->help_all = true;
        argc--;
    }
    /* scale -- COMMAND, compare NAME='COMMAND' NAME='COMMAND' */
    const bool after_dashes = command == EL_CMD_SCALE && optind < argc && !strcmp(argv[optind - 1], "--");
    const bool named = command == EL_CMD_COMPARE && optind < argc && strchr(argv[optind], '=');
    if (command == EL_CMD_WATCH || after_dashes || named) {
        options->command_at = optind < argc ? optind : 0;
        return EL_OK;
    }
    bool ab = command == EL_CMD_REGRESS && options->regress.ab[0];
    const char *what = ab ? "head command" : "folder";
    for (int i = optind; i < argc; i++) {
        if ((command & ACTIONS) && !options->action[0] && *argv[i]) {
            if (strlen(argv[i]) >= sizeof options->action)
                return el_fail(EL_ERR_INVALID, "'%.40s...' is no action", argv[i]);
            snprintf(options->action, sizeof options->action, "%s", argv[i]);
            continue;
        }
        char *into = options->dir[0] && (command & TWO_FOLDERS) ? options->other : options->dir;
        if (!(ab || (command & FOLDERS)) || *into)
            return el_fail(EL_ERR_INVALID, "unexpected argument '%s': options begin with --; 'evenload %s --help'",
                           argv[i], el_command_name(command));
        if (strlen(argv[i]) >= sizeof options->dir) return el_fail(EL_ERR_INVALID, "the %s's name is too long", what);
        if (!*argv[i]) return el_fail(EL_ERR_INVALID, "the %s's name is empty", what);
        snprintf(into, EL_PATH_BYTES, "%s", argv[i]);
    }
    return EL_OK;
}

/* Where getopt found what it does not know: it is not past a word with several letters while some are left. */
static const char *unknown_argument(char **argv)
{
    const char *last = argv[optind - 1];
    bool is_letter = optopt != 0, inside = !strncmp(last, "-", 1) && strncmp(last, "--", 2) && strchr(last, optopt);
    return is_letter && !inside && argv[optind] ? argv[optind] : last;
}

static enum el_status take_option(int code, unsigned command, char **argv, struct el_options *options)
{
    const struct el_option_row *rows = el_option_rows();
    if (code == ':') return el_fail(EL_ERR_INVALID, "%s needs a value", argv[optind - 1]);
    if (code == '?' && optopt >= FIRST_CODE)
        return el_fail(EL_ERR_INVALID, "--%s takes no value", rows[optopt - FIRST_CODE].name);
    if (code == '?') return fail_option(command, unknown_argument(argv));
    if (code == 'h') {
        options->help = true;
        return EL_OK;
    }
    const struct el_option_row *row = code < FIRST_CODE ? rows : &rows[code - FIRST_CODE];
    while (code < FIRST_CODE && (row->letter != code || !(row->commands & command))) row++;
    bool apart = row->argument != NULL && optarg == argv[optind - 1]; /* its value is a word of its own */
    const char *given = argv[optind - (apart ? 2 : 1)], *name = given + strspn(given, "-");
    size_t length = strcspn(name, "=");
    /* getopt takes the beginning of a name for the whole; but a whole name of another command is meant as that. */
    if (code >= FIRST_CODE && length != strlen(row->name) && el_option_find(name, length))
        return fail_option(command, given);
    if (apart && !strncmp(optarg, "--", 2) && el_option_find(optarg + 2, strcspn(optarg + 2, "=")))
        return el_fail(EL_ERR_INVALID, "%s needs a value: the next word is the option %s", given, optarg);
    const struct el_option_within *within = el_option_within(row->name);
    if (el_option_is_within(row, command)) {
        char form[VALUE_BYTES] = "";
        el_option_write_within(row, optarg ? optarg : "", form, sizeof form);
        return el_fail(EL_ERR_INVALID, "--%s is written --%s %s", row->name, within->in, form);
    }
    char rest[EL_PATH_BYTES] = "";
    const bool fits = optarg && strlen(optarg) < sizeof rest; /* else the row's kind refuses it */
    if (fits) EL_TRY(el_option_take_within(command, row, optarg, options, rest, sizeof rest));
    if (fits && !*rest && *optarg) return EL_OK;
    options->given[el_option_find(row->name, strlen(row->name)) - rows] = true;
    if (el_option_given(options, "batch") && el_option_given(options, "batch-per-device"))
        return el_fail(EL_ERR_INVALID, "--batch is of all devices together, --batch-per-device of each: give one");
    return el_option_take(command, row, fits ? rest : optarg ? optarg : "", options);
}

enum el_status el_options_parse(unsigned command, int argc, char **argv, struct el_options *options)
{
    struct option long_options[EL_OPTIONS_MAX + 1];
    char letters[LETTERS_BYTES];
    snprintf(letters, sizeof letters, "%s", command == EL_CMD_WATCH ? "+:h" : ":h");
    list_options(command, long_options, letters);
    optind = 0; /* begin anew: a preset is a command line too */
    opterr = 0;
    for (int code; (code = getopt_long(argc, argv, letters, long_options, NULL)) != -1;)
        EL_TRY(take_option(code, command, argv, options));
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
    size_t used = (size_t)snprintf(word, bytes, "%s", plain ? text : "'");
    for (; !plain && *text && used < bytes; text++)
        used += (size_t)snprintf(word + used, bytes - used, *text == '\'' ? "'\\''" : "%c", *text);
    if (!plain && used < bytes) used += (size_t)snprintf(word + used, bytes - used, "'");
    if (used >= bytes) *word = 0;
    return word;
}

const char *el_program_word(void)
{
    static char word[EL_WORD_BYTES];
    return *el_shell_word(program_invocation_name, word, sizeof word) ? word : "evenload";
}

/* Appends what is within the value of `in` and differs from the defaults. */
static void write_inner(unsigned command, const char *in, const struct el_options *options,
                        const struct el_options *initial, char text[VALUE_BYTES])
{
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        const struct el_option_within *within = el_option_within(row->name);
        char value[VALUE_BYTES], otherwise[VALUE_BYTES];
        if (!(row->commands & command) || !within || strcmp(within->in, in)) continue;
        el_option_show(row, options, value, sizeof value);
        el_option_show(row, initial, otherwise, sizeof otherwise);
        if (*value && strcmp(value, otherwise)) el_option_write_within(row, value, text, VALUE_BYTES);
    }
}

enum el_status el_options_command_line(unsigned command, const struct el_options *options, char *text, size_t bytes)
{
    struct el_options initial;
    el_options_defaults(command, &initial);
    bool named = command == EL_CMD_COMM && options->action[0];
    bool fits = (size_t)snprintf(text, bytes, "evenload %s%s%s", el_command_name(command), named ? " " : "",
                                 named ? options->action : "") < bytes;
    for (const struct el_option_row *row = el_option_rows(); row->name && fits; row++) {
        char value[VALUE_BYTES], otherwise[VALUE_BYTES];
        if (!(row->commands & command) || el_option_is_within(row, command)) continue;
        el_option_show(row, options, value, sizeof value);
        el_option_show(row, &initial, otherwise, sizeof otherwise);
        bool always = (row->kind <= EL_OPTION_SIZE && row->kind >= EL_OPTION_MODES) ||
                      (command & (EL_CMD_COMPARE | EL_CMD_SCALE) && !strcmp(row->name, "repeats"));
        if (!always && !strcmp(value, otherwise)) *value = 0;
        write_inner(command, row->name, options, &initial, value);
        if (!*value) continue;
        size_t used = strlen(text);
        used += (size_t)snprintf(text + used, bytes - used, " --%s%s", row->name, row->argument ? " " : "");
        fits = used < bytes && (!row->argument || *el_shell_word(value, text + used, bytes - used));
    }
    return fits ? EL_OK : el_fail(EL_ERR_INVALID, "the command is too long to be kept");
}

/* Whether there are several along an axis of --mesh. One that cannot be is refused elsewhere. */
static bool has_several(const struct el_options *options, const char *mode, enum el_axis axis)
{
    int mesh[EL_AXIS_COUNT];
    const struct el_mode_info *info = el_mode_find(mode);
    if (!*options->mesh) return false;
    if (!info || el_mesh_read(options->mesh, info, options->n_devices, mesh) != EL_OK) return true;
    return axis == EL_AXIS_DATA ? mesh[axis] != 1 /* 0: as many as the devices, which are not known, allow */
                                : mesh[axis] > 1;
}

/* Models in pieces need what keeps copies equal only where there are several; and schedules, where there are stages. */
static bool has_effect(const struct el_options *options, const char *mode, const struct el_mode_option *option)
{
    return option && (!option->of_copies || !el_mode_has_pieces(mode) || has_several(options, mode, EL_AXIS_DATA)) &&
           (!option->of_stages || el_mode_cuts(mode) || has_several(options, mode, EL_AXIS_STAGE));
}

/* The first mode that has the option, and these axes of --mesh; NULL: all have it. */
static const char *find_taker(const struct el_options *options, const char *option)
{
    const char *first = NULL;
    int mesh[EL_AXIS_COUNT];
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++) {
        if (!el_mode_option_of(mode->name, option)) continue;
        if (strcmp(option, "mesh") != 0 || el_mesh_read(options->mesh, mode, 0, mesh) == EL_OK) return mode->name;
        if (!first) first = mode->name;
    }
    return first;
}

/* A list of modes may have some that do not take an option; one of them must. */
static enum el_status check_modes_take(const struct el_options *options)
{
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        const char *taker = find_taker(options, row->name);
        bool taken = options->n_modes == 0 || !taker || !el_option_given(options, row->name);
        for (int m = 0; m < options->n_modes && !taken; m++)
            taken = has_effect(options, options->modes[m], el_mode_option_of(options->modes[m], row->name));
        if (taken || !strcmp(row->name, "procs")) continue; /* trial.c has its own words for that */
        const char *last = options->modes[options->n_modes - 1];
        char called[64];
        el_option_called(row, EL_CMD_RUN, called, sizeof called);
        const struct el_mode_option *option = el_mode_option_of(last, row->name);
        if (option)
            return el_fail(EL_ERR_INVALID,
                           "%s: mode %s with one %s of the model has no use for it: leave it out, or give --mesh "
                           "%s=2",
                           called, last, option->of_stages ? "stage" : "copy", option->of_stages ? "pp" : "dp");
        return el_fail(EL_ERR_INVALID, "%s: mode %s does not take it, %s does: leave it out, or train in that mode",
                       called, last, taker);
    }
    return EL_OK;
}

/* Options that say how something is done that is not done: refused, since whoever gave them meant something. */
static enum el_status check_has_effect(const struct el_options *options)
{
    if (!el_option_list(options, "workers") && options->train.loading.workers == 0 &&
        el_option_given(options, "prefetch"))
        return el_fail(EL_ERR_INVALID, "--workers prefetch: there are no loader workers: add --workers 1");
    if (el_option_given(options, "sort") && !el_option_given(options, "profile") && !el_option_given(options, "trace"))
        return el_fail(EL_ERR_INVALID, "--profile sort: there is no table by op: add active=2");
    if (el_option_given(options, "eval") && options->train.epochs == 0)
        return el_fail(EL_ERR_INVALID, "--epochs eval: nothing is evaluated without epochs: add --epochs 2");
    return EL_OK;
}

enum el_status el_options_check_together(const struct el_options *options)
{
    static const char *const unused[] = {"steps", "min-time"};
    for (size_t i = 0; i < sizeof unused / sizeof unused[0] && options->train.epochs; i++)
        if (el_option_given(options, unused[i]))
            return el_fail(EL_ERR_INVALID, "--%s: --epochs %lld trains whole epochs: leave one of them out", unused[i],
                           (long long)options->train.epochs);
    EL_TRY(check_modes_take(options));
    char optimizer[EL_CHOICE_BYTES];
    if (el_option_given(options, "momentum") && options->train.optimizer != EL_OPT_MOMENTUM)
        return el_fail(EL_ERR_INVALID, "--optimizer %s has no momentum: leave it out",
                       el_option_choice("optimizer", (int)options->train.optimizer, optimizer));
    return check_has_effect(options);
}

/* Commands that measure, but for a folder, whose records they only show: there only how it is shown has a meaning, and
 * where that goes. */
enum el_status el_options_check_records_alone(const char *word, const struct el_options *options)
{
    for (const struct el_option_row *row = el_option_rows(); row->name; row++)
        if (el_option_given(options, row->name) && strcmp(row->name, "json") && strcmp(row->name, "quiet") &&
            strcmp(row->name, "from") && strcmp(row->name, "csv") && strcmp(row->name, "markdown") &&
            (strcmp(row->name, "out") || !options->other[0] || strcmp(word, "explain")))
            return el_fail(EL_ERR_INVALID,
                           "%s %s reads records and measures nothing: leave out --%s, or leave out the folder", word,
                           options->dir, row->name);
    return EL_OK;
}
