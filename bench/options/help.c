/* --help, from the rows: usage, options by group, examples. It knows no option. */
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

void el_options_help(FILE *file, unsigned command)
{
    const struct el_command_row *info = el_command_rows();
    const char *group = "";
    while (info->name && info->bit != command) info++;
    if (!info->name) return;
    fprintf(file, "usage: evenload %s %s\n\n", info->name, info->usage);
    el_text_wrap(info->summary, "", "", WIDTH, file);
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        if (!(row->commands & command)) continue;
        if (strcmp(group, row->group)) fprintf(file, "\n%s\n", row->group);
        group = row->group;
        print_row(file, row, command);
    }
    if (command & EL_CMD_OF_MODES) print_modes(file);
    if (command & EL_CMD_OF_TRIALS) print_models(file);
    fprintf(file, "\nExamples\n%s", info->examples);
}
