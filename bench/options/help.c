/* --help, from the rows: usage, options, examples; environment variables. It knows no option. */
#include <string.h>

#include "bench/base/text.h"
#include "bench/options/options.h"

enum { WIDTH = 100, COLUMN = 27 };

/* "  left      words", wrapped; what is longer than the column has a line of its own. */
static void print_item(FILE *file, const char *left, const char *words)
{
    char first[128], rest[COLUMN + 1];
    bool fits = strlen(left) <= COLUMN - 2;
    snprintf(rest, sizeof rest, "%*s", COLUMN, "");
    snprintf(first, sizeof first, "  %-*s", COLUMN - 2, left);
    if (!fits) fprintf(file, "%s\n", first);
    el_text_wrap(words, fits ? first : rest, rest, WIDTH, file);
}

static void print_row(FILE *file, const struct el_option_row *row, unsigned command)
{
    const char *initial = el_option_initial(row, command);
    char left[64], right[512], letter[8] = "";
    if (row->letter) snprintf(letter, sizeof letter, "-%c, ", row->letter);
    snprintf(left, sizeof left, "%s--%s %s", letter, row->name, row->argument ? row->argument : "");
    bool noted = row->choices || *initial;
    snprintf(right, sizeof right, "%s%s%s%s%s%s%s", row->help, noted ? " (" : "", row->choices ? row->choices : "",
             row->choices && *initial ? "; " : "", *initial ? "default: " : "", initial, noted ? ")" : "");
    print_item(file, left, right);
}

static void print_modes(FILE *file)
{
    fprintf(file, "\nModes\n");
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++)
        print_item(file, mode->name, mode->summary);
}

static void print_models(FILE *file)
{
    fprintf(file, "\nModels\n");
    for (const struct el_model_info *model = el_model_list(); model->name; model++)
        print_item(file, model->name, model->summary);
}

static void print_names(FILE *file, unsigned command)
{
    char modes[256] = "", models[512] = "";
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++)
        el_text_append(modes, sizeof modes, "%s%s", *modes ? ", " : "", mode->name);
    for (const struct el_model_info *model = el_model_list(); model->name; model++)
        el_text_append(models, sizeof models, "%s%s", *models ? ", " : "", model->name);
    fprintf(file, "\n");
    if (command & EL_CMD_OF_MODES) el_text_wrap(modes, "Modes: ", "       ", WIDTH, file);
    if (command & EL_CMD_OF_TRIALS) el_text_wrap(models, "Models: ", "        ", WIDTH, file);
}

/* Every row of the command under its group's heading. */
static void print_groups(FILE *file, unsigned command)
{
    const char *group = "";
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        if (!(row->commands & command)) continue;
        if (strcmp(group, row->group)) fprintf(file, "\n%s\n", row->group);
        group = row->group;
        print_row(file, row, command);
    }
}

static void print_common(FILE *file, unsigned command)
{
    fprintf(file, "\nCommon options\n");
    for (const struct el_option_row *row = el_option_rows(); row->name; row++)
        if ((row->commands & command) && row->common) print_row(file, row, command);
}

static int count_rows(unsigned command)
{
    int n = 0;
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) n += (row->commands & command) != 0;
    return n;
}

void el_options_help(FILE *file, const struct el_command_row *row, bool all)
{
    enum { FEW = 12 }; /* so many need no choice among them */
    const unsigned command = row->bit;
    const char *name = el_command_name(command);
    int n = count_rows(command);
    fprintf(file, "usage: evenload %s %s\n\n", name, row->usage);
    el_text_wrap(row->summary, "", "", WIDTH, file);
    if (all || n <= FEW)
        print_groups(file, command);
    else
        print_common(file, command);
    if (all && (command & EL_CMD_OF_MODES)) print_modes(file);
    if (all && (command & EL_CMD_OF_TRIALS)) print_models(file);
    if (!all && (command & EL_CMD_OF_TRIALS)) print_names(file, command);
    fprintf(file, "\nExamples\n%s", row->examples);
    if (!all && n > FEW) fprintf(file, "\nAll %d options: evenload %s --help all\n", n, name);
}

void el_variables_help(FILE *file)
{
    fprintf(file, "Environment variables\n\n");
    for (const struct el_variable_row *row = el_variable_rows(); row->name; row++)
        print_item(file, row->name, row->help);
}
