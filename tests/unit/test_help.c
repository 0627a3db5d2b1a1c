/* Help and suggestions over every row: commands, options, names of other programs, environment variables. */
#include <stdlib.h>
#include <string.h>

#include "bench/commands.h"
#include "tests/test.h"
#include "tests/unit/options_parse.h"

enum { COLUMNS = 100, SCREEN = 45, COMMON_MAX = 16 };

/* To be freed. */
static char *help_of(const struct el_command_row *command, bool all)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    assert_non_null(memory);
    if (command)
        el_options_help(memory, command, all);
    else
        el_variables_help(memory);
    fclose(memory);
    return text;
}

/* Returns the number of lines. */
static int check_width(const char *text)
{
    int n = 0;
    for (const char *at = text; *at; n++) {
        int width = 0;
        for (; *at && *at != '\n'; at++) width += ((unsigned char)*at & 0xC0) != 0x80;
        if (width > COLUMNS) fail_msg("%d columns: %.*s", width, width, at - width);
        at += *at == '\n';
    }
    return n;
}

static bool has_option(const char *help, const struct el_option_row *row, unsigned command)
{
    char words[64], keys[48];
    const bool within = el_option_is_within(row, command);
    if (within) el_option_keys(row, keys, sizeof keys);
    snprintf(words, sizeof words, within ? "\n    %s " : "--%s ", within ? keys : row->name);
    for (const char *at = help; (at = strstr(at, words)); at++) {
        const char *line = at;
        while (line > help && line[-1] != '\n') line--;
        if (within || line[2] == '-') return true;
    }
    return false;
}

static void help_of_every_command(void **state)
{
    for (const struct el_command_row *command = el_command_rows(); command->bit; command++) {
        char usage[64];
        char *brief = help_of(command, false), *all = help_of(command, true);
        int n = 0, n_brief = 0, lines = check_width(brief);
        snprintf(usage, sizeof usage, "usage: evenload %s ", el_command_name(command->bit));
        assert_memory_equal(brief, usage, strlen(usage));
        assert_non_null(strstr(brief, "\nExamples\n  evenload "));
        if (lines > SCREEN) fail_msg("%s --help has %d lines", el_command_name(command->bit), lines);
        check_width(all);
        for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
            if (!(row->commands & command->bit)) continue;
            if (!has_option(all, row, command->bit))
                fail_msg("%s --help all has no --%s", el_command_name(command->bit), row->name);
            n++;
            n_brief += has_option(brief, row, command->bit);
        }
        assert_true(n_brief >= 3 && n_brief <= COMMON_MAX);
        bool says = strstr(brief, " --help all\n") != NULL; /* where the others are */
        assert_true(n_brief == n ? !says : says);
        free(brief);
        free(all);
    }
}

static void all_follows_help(void **state)
{
    for (const struct el_command_row *command = el_command_rows(); command->bit; command++) {
        assert_int_equal(parse(command->bit, "--help all"), EL_OK);
        assert_true(options.help && options.help_all && !options.dir[0] && !options.command_at);
        assert_int_equal(parse(command->bit, "--help"), EL_OK);
        assert_true(options.help && !options.help_all);
    }
    assert_int_equal(parse(EL_CMD_PLOT, "all"), EL_OK); /* a folder */
    assert_string_equal(options.dir, "all");
    assert_int_equal(parse(EL_CMD_RUN, "--help most"), EL_ERR_INVALID);
}

static void environment_variables(void **state)
{
    char *help = help_of(NULL, true);
    assert_true(check_width(help) > 15);
    free(help);
}

/* Whether `ours` is among the words of some option: its name, or one of its choices. */
static bool is_choice(const struct el_option_row *row, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = row->choices; at && (at = strstr(at, word)); at++)
        if ((at == row->choices || at[-1] == '|') && (at[length] == '|' || !at[length])) return true;
    return false;
}

/* What a command says to `--NAME`, or to a value of an option. */
static const char *refusal(unsigned command, const char *option, const char *value)
{
    char words[128];
    snprintf(words, sizeof words, "%s%s%s%s", option[1] ? "--" : "-", option, value ? "=" : "", value ? value : "");
    assert_int_equal(parse(command, words), EL_ERR_INVALID);
    return el_error_message();
}

static bool suggests(const char *message, const char *mark, const char *ours)
{
    char words[64];
    snprintf(words, sizeof words, "did you mean '%s%s", mark, ours);
    return strstr(message, words) != NULL;
}

/* Calls `check` with each of theirs, and ours. */
static void each_name(const struct el_foreign_name *names, void (*check)(const char *theirs, const char *ours))
{
    for (; names->theirs; names++) {
        char list[256], *rest = list, *theirs;
        snprintf(list, sizeof list, "%s", names->theirs);
        while ((theirs = strsep(&rest, " "))) check(theirs, names->ours);
    }
}

/* It is an option's, a choice's, a mode's or a backend's, and is suggested in its place. */
static void is_suggested(const char *theirs, const char *ours)
{
    bool found = el_mode_find(ours) && suggests(refusal(EL_CMD_RUN, "mode", theirs), "", ours);
    found = found || (!strcmp(ours, "cuda") && suggests(refusal(EL_CMD_RUN, "devices", "gpu:2"), "", "cuda:2"));
    for (const struct el_option_row *row = el_option_rows(); row->name && !found; row++) {
        unsigned command = row->commands & (~row->commands + 1);
        const bool is_within = el_option_is_within(row, command);
        const struct el_option_within *within = is_within ? el_option_within(ours) : NULL;
        char words[64] = "";
        if (within) snprintf(words, sizeof words, "--%s %s", within->in, within->key);
        if (!strcmp(row->name, ours))
            found = suggests(refusal(command, theirs, NULL), within ? "" : "--", within ? words : ours);
        else if (is_choice(row, ours) && !is_choice(row, theirs))
            found =
                suggests(refusal(command, is_within ? el_option_within(row->name)->in : row->name, theirs), "", ours);
    }
    if (!found) fail_msg("nothing suggests '%s' for '%s'", ours, theirs);
}

static void is_advised(const char *theirs, const char *ours)
{
    char underscored[64];
    snprintf(underscored, sizeof underscored, "%s", theirs);
    for (char *at = underscored; (at = strchr(at, '-'));) *at = '_';
    assert_non_null(strstr(refusal(EL_CMD_RUN, theirs, NULL), ours));
    assert_non_null(strstr(refusal(EL_CMD_RUN, underscored, NULL), ours));
}

/* By name or by letter. */
static void is_refused(const char *theirs, const char *ours)
{
    char line[64];
    snprintf(line, sizeof line, "%s%s 1", theirs[1] ? "--" : "-", theirs);
    assert_int_equal(parse(EL_CMD_COMM, line), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), ours));
}

static void names_of_other_programs(void **state)
{
    each_name(el_foreign_names(), is_suggested);
    each_name(el_foreign_options(), is_advised);
    assert_int_equal(parse(EL_CMD_RUN, "-np 4"), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "'-np': it is the launcher's: mpirun"));
    assert_int_equal(parse(EL_CMD_RUN, "--batch 8 -g 2"), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "'-g': write --devices cuda:N"));
    each_name(el_nccl_tests_flags(), is_refused);
}

static void whatever_the_case(void **state)
{
    assert_true(suggests(refusal(EL_CMD_RUN, "mode", "DDP"), "", "ddp'"));
    assert_true(suggests(refusal(EL_CMD_RUN, "optimizer", "SGD"), "", "sgd'"));
    assert_true(suggests(refusal(EL_CMD_RUN, "schedule", "1F1B"), "", "1f1b'"));
    assert_true(suggests(refusal(EL_CMD_RUN, "model", "ResNet18"), "", "resnet18'"));
    assert_true(suggests(refusal(EL_CMD_RUN, "devices", "CUDA:0,CUDA:1"), "", "cuda:0'"));
    assert_true(suggests(refusal(EL_CMD_RUN, "BATCH_PER_DEVICE", NULL), "--", "batch-per-device'"));
    assert_int_equal(parse(EL_CMD_RUN, "--mode pipeline --schedule table.csv"), EL_OK);
}

/* In a list for run 1 might be a core, a GPU or a number of devices. */
static void a_list_names_its_devices(void **state)
{
    assert_non_null(strstr(refusal(EL_CMD_RUN, "devices", "1,2"), "write cpu:1 or cuda:1"));
    assert_non_null(strstr(refusal(EL_CMD_COMPARE, "devices", "cuda:0,1"), "write cpu:1 or cuda:1"));
    assert_int_equal(parse(EL_CMD_SCALE, "--devices 1,2"), EL_OK);
    assert_int_equal(options.n_counts, 2);
}

RUN_TESTS(NULL, NULL, help_of_every_command, all_follows_help, environment_variables, names_of_other_programs,
          whatever_the_case, a_list_names_its_devices)
