/* The man page, from the rows of commands and options: roff. It knows no option and no command. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options/options.h"

/* What roff reads, in the text of `put`: a macro's dot at the begin of a line, and fonts. */
#define MACRO  "\1"
#define BOLD   "\2"
#define ITALIC "\3"
#define ROMAN  "\4"

/* As by printf. All else than those marks is text: a backslash and a hyphen are written out, and no line begins with a
 * control character. */
static void put(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(FILE *file, const char *format, ...)
{
    static const char *const marks[] = {NULL, ".", "\\fB", "\\fI", "\\fR"};
    char *text = NULL;
    bool begins = true;
    va_list list;
    va_start(list, format);
    int n = vasprintf(&text, format, list);
    va_end(list);
    if (n < 0) return;
    for (const char *at = text; *at; begins = *at++ == '\n') {
        if (begins && (*at == '.' || *at == '\'')) fputs("\\&", file);
        if (*at > 0 && *at <= 4)
            fputs(marks[(int)*at], file);
        else if (*at == '\\' || *at == '-')
            fputs(*at == '-' ? "\\-" : "\\e", file);
        else
            fputc(*at, file);
    }
    free(text);
}

static void put_item(FILE *file, const char *name, const char *words)
{
    put(file, MACRO "TP\n" BOLD "%s" ROMAN "\n%s\n", name, words);
}

static void put_commands(FILE *file)
{
    const char *group = "";
    put(file, MACRO "SH COMMANDS\n");
    for (const struct el_command_row *row = el_command_rows(); row->name; row++) {
        if (strcmp(group, row->group)) put(file, MACRO "SS \"%s\"\n", group = row->group);
        put(file, MACRO "TP\n" BOLD "%s" ROMAN " %s\n%s\n", row->name, row->usage, row->summary);
    }
}

/* "run, overhead", between two texts. */
static void put_takers(FILE *file, const char *before, unsigned commands, const char *after)
{
    fputs(before, file);
    before = "";
    for (const struct el_command_row *row = el_command_rows(); row->name && commands != EL_CMD_ALL; row++) {
        if (!(row->bit & commands)) continue;
        put(file, "%s%s", before, row->name);
        before = ", ";
    }
    put(file, "%s%s", commands == EL_CMD_ALL ? "all" : "", after);
}

/* With "Default: 64,128,256 (run, overhead: 64)." */
static void put_option(FILE *file, const struct el_option_row *row)
{
    put(file, MACRO "TP\n" BOLD);
    if (row->letter) put(file, "-%c" ROMAN ", " BOLD, row->letter);
    put(file, "--%s" ROMAN " " ITALIC "%s" ROMAN "\n%s", row->name, row->argument ? row->argument : "", row->help);
    if (row->choices) put(file, " (%s)", row->choices);
    fputs(".\n", file);
    if (*row->initial) put(file, "Default: %s", row->initial);
    for (const struct el_option_initial *other = row->otherwise; *row->initial && other->commands; other++) {
        if (!*other->text) continue;
        put_takers(file, " (", other->commands, ": ");
        put(file, "%s)", other->text);
    }
    if (*row->initial) fputs(".\n", file);
    put_takers(file, ".br\nCommands: ", row->commands, "");
    fputs(".\n", file);
}

static void put_options(FILE *file)
{
    const char *group = "";
    put(file, MACRO "SH OPTIONS\n");
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        if (strcmp(group, row->group)) put(file, MACRO "SS \"%s\"\n", group = row->group);
        put_option(file, row);
    }
}

void el_options_manual(FILE *file, const char *version)
{
    static const char *const statuses[] = {
        "0",   "success",
        "1",   "a trial failed, or with --strict is suspect; of regress: it got slower",
        "2",   "bad use, or something is missing on this machine",
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
    put(file, MACRO "SH MODES\n");
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++)
        put_item(file, mode->name, mode->summary);
    put(file, MACRO "SH MODELS\n");
    for (const struct el_model_info *model = el_model_list(); model->name; model++)
        put_item(file, model->name, model->summary);
    put(file, MACRO "SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i += 2) put_item(file, statuses[i], statuses[i + 1]);
    fputs(".PP\nThat of \\fBwatch\\fR is its command's.\n", file);
    fputs(".SH EXAMPLES\n.nf\n", file);
    for (const struct el_command_row *row = el_command_rows(); row->name; row++) put(file, "%s", row->examples);
    fputs(".fi\n", file);
}
