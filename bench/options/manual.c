/* The man page, from the rows of commands and options: roff. It knows no option and no command. */
#include <string.h>

#include "bench/options/options.h"

/* Text as roff takes it: a backslash and a hyphen are written out, and no line begins with a control character. */
static void put_text(FILE *file, const char *text)
{
    bool begins = true;
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\'')) fputs("\\&", file);
        begins = *text == '\n';
        if (*text == '\\')
            fputs("\\e", file);
        else if (*text == '-')
            fputs("\\-", file);
        else
            fputc(*text, file);
    }
}

static void put_heading(FILE *file, const char *macro, const char *text)
{
    fprintf(file, ".%s \"%s\"\n", macro, text);
}

static void put_item(FILE *file, const char *name, const char *words)
{
    fputs(".TP\n\\fB", file);
    put_text(file, name);
    fputs("\\fR\n", file);
    put_text(file, words);
    fputs("\n", file);
}

static void put_commands(FILE *file)
{
    const char *group = "";
    put_heading(file, "SH", "COMMANDS");
    for (const struct el_command_row *row = el_command_rows(); row->name; row++) {
        if (strcmp(group, row->group)) put_heading(file, "SS", group = row->group);
        fprintf(file, ".TP\n\\fB%s\\fR ", row->name);
        put_text(file, row->usage);
        fputs("\n", file);
        put_text(file, row->summary);
        fputs("\n", file);
    }
}

/* "run, overhead". */
static void put_takers(FILE *file, unsigned commands)
{
    const char *before = "";
    for (const struct el_command_row *row = el_command_rows(); row->name; row++) {
        if (!(row->bit & commands)) continue;
        fprintf(file, "%s%s", before, row->name);
        before = ", ";
    }
}

/* "Default: 64,128,256 (run, overhead: 64)." */
static void put_default(FILE *file, const struct el_option_row *row)
{
    if (!*row->initial) return;
    fputs("Default: ", file);
    put_text(file, row->initial);
    for (const struct el_option_initial *other = row->otherwise; other->commands; other++) {
        if (!*other->text) continue;
        fputs(" (", file);
        put_takers(file, other->commands);
        fputs(": ", file);
        put_text(file, other->text);
        fputs(")", file);
    }
    fputs(".\n", file);
}

static void put_option(FILE *file, const struct el_option_row *row)
{
    fprintf(file, ".TP\n\\fB");
    if (row->letter) fprintf(file, "\\-%c\\fR, \\fB", row->letter);
    fprintf(file, "\\-\\-");
    put_text(file, row->name);
    fprintf(file, "\\fR \\fI");
    put_text(file, row->argument ? row->argument : "");
    fputs("\\fR\n", file);
    put_text(file, row->help);
    if (row->choices) {
        fputs(" (", file);
        put_text(file, row->choices);
        fputs(")", file);
    }
    fputs(".\n", file);
    put_default(file, row);
    fputs(".br\nCommands: ", file);
    if (row->commands == EL_CMD_ALL)
        fputs("all", file);
    else
        put_takers(file, row->commands);
    fputs(".\n", file);
}

static void put_options(FILE *file)
{
    const char *group = "";
    put_heading(file, "SH", "OPTIONS");
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        if (strcmp(group, row->group)) put_heading(file, "SS", group = row->group);
        put_option(file, row);
    }
}

static void put_choices(FILE *file)
{
    put_heading(file, "SH", "MODES");
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++)
        put_item(file, mode->name, mode->summary);
    put_heading(file, "SH", "MODELS");
    for (const struct el_model_info *model = el_model_list(); model->name; model++)
        put_item(file, model->name, model->summary);
}

static void put_examples(FILE *file)
{
    put_heading(file, "SH", "EXAMPLES");
    fputs(".nf\n", file);
    for (const struct el_command_row *row = el_command_rows(); row->name; row++) put_text(file, row->examples);
    fputs(".fi\n", file);
}

void el_options_manual(FILE *file, const char *version)
{
    static const char *const statuses[] = {
        "0",   "success",
        "1",   "a trial failed, or with --strict is suspect; of regress: it got slower",
        "2",   "bad use, or something that this machine lacks",
        "3",   "regress: inconclusive",
        "4",   "regress: no baseline that fits",
        "130", "interrupted"};
    fprintf(file, ".TH EVENLOAD 1 \"\" \"evenload %s\" \"User Commands\"\n", version);
    fputs(".SH NAME\nevenload \\- compare the ways of training one model on several devices\n"
          ".SH SYNOPSIS\n\\fBevenload\\fR \\fICOMMAND\\fR [options]\n.SH DESCRIPTION\n"
          "Measures how evenly, and how fast, several GPUs or CPU devices share the training of one model: memory of "
          "each device, time and communication, for each mode of parallelism.\n"
          "Results go to the folder \\fIresults\\fR under the current folder, or to \\fB\\-\\-out\\fR.\n",
          file);
    put_commands(file);
    put_options(file);
    put_choices(file);
    put_heading(file, "SH", "EXIT STATUS");
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i += 2) put_item(file, statuses[i], statuses[i + 1]);
    fputs(".PP\nThat of \\fBwatch\\fR is its command's.\n", file);
    put_examples(file);
}
