/* --help, from the rows: usage, options by group, examples. It knows no option. */
#include <string.h>

#include "bench/options/options.h"

enum { WIDTH = 100, COLUMN = 27 };

/* Words of `text`, broken at WIDTH, continued at COLUMN. */
static void print_words(FILE *file, const char *text, int column)
{
    int at = column;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (at > column && at + 1 + length > WIDTH) {
            fprintf(file, "\n%*s", column, "");
            at = column;
        }
        at += fprintf(file, "%s%.*s", at > column ? " " : "", length, text);
        text += length;
        text += strspn(text, " ");
    }
    fprintf(file, "\n");
}

static void print_row(FILE *file, const struct el_option_row *row, unsigned command)
{
    const char *initial = el_option_initial(row, command);
    char left[64], right[512];
    snprintf(left, sizeof left, "--%s %s", row->name, row->argument ? row->argument : "");
    bool noted = row->choices || *initial;
    snprintf(right, sizeof right, "%s%s%s%s%s%s%s", row->help, noted ? " (" : "", row->choices ? row->choices : "",
             row->choices && *initial ? "; " : "", *initial ? "default: " : "", initial, noted ? ")" : "");
    int used = fprintf(file, "  %-*s", COLUMN - 2, left);
    if (used > COLUMN) fprintf(file, "\n%*s", COLUMN, "");
    print_words(file, right, COLUMN);
}

static void print_names(FILE *file, const char *heading, const char *const *pairs)
{
    fprintf(file, "\n%s\n", heading);
    for (; pairs[0]; pairs += 2) {
        fprintf(file, "  %-*s", COLUMN - 2, pairs[0]);
        print_words(file, pairs[1], COLUMN);
    }
}

static void print_choices(FILE *file)
{
    const char *pairs[2 * EL_LIST_MAX + 2] = {NULL};
    int n = 0;
    for (const struct el_mode_info *mode = el_mode_list(); mode->name && n < 2 * EL_LIST_MAX; mode++)
        pairs[n++] = mode->name, pairs[n++] = mode->summary;
    print_names(file, "Modes", pairs);
    memset(pairs, 0, sizeof pairs);
    n = 0;
    for (const struct el_model_info *model = el_model_list(); model->name && n < 2 * EL_LIST_MAX; model++)
        pairs[n++] = model->name, pairs[n++] = model->summary;
    print_names(file, "Models", pairs);
}

void el_options_help(FILE *file, unsigned command)
{
    const struct el_command_row *info = el_command_rows();
    const char *group = "";
    while (info->name && info->bit != command) info++;
    if (!info->name) return;
    fprintf(file, "usage: evenload %s %s\n\n", info->name, info->usage);
    print_words(file, info->summary, 0);
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        if (!(row->commands & command)) continue;
        if (strcmp(group, row->group)) fprintf(file, "\n%s\n", row->group);
        group = row->group;
        print_row(file, row, command);
    }
    if (command & EL_CMD_OF_TRIALS) print_choices(file);
    fprintf(file, "\nExamples\n%s", info->examples);
}
