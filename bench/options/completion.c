/* What a shell completes after `evenload`: commands, options and values, from the rows. It knows no option and no
 * command. The scripts are generated, and are the same wherever the program is installed. */
#include <string.h>

#include "bench/base/text.h"
#include "bench/options/options.h"

enum { WORDS_BYTES = 512 };
enum takes { TAKES_NOTHING, TAKES_WORDS, TAKES_FILE, TAKES_FOLDER, TAKES_ANY };

/* What the value of an option is; `words`: those it is one of, or a list of. */
static enum takes value_of(const struct el_option_row *row, char *words)
{
    words[0] = 0;
    if (!row->argument) return TAKES_NOTHING;
    if (row->choices) snprintf(words, WORDS_BYTES, "%s", row->choices);
    for (char *at = words; (at = strchr(at, '|'));) *at = ' ';
    if (row->kind == EL_OPTION_MODES)
        for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++)
            el_text_append(words, WORDS_BYTES, "%s%s", *words ? " " : "", mode->name);
    if (row->kind == EL_OPTION_MODEL)
        for (const struct el_model_info *model = el_model_list(); model->name; model++)
            el_text_append(words, WORDS_BYTES, "%s%s", *words ? " " : "", model->name);
    if (*words) return TAKES_WORDS;
    if (!strncmp(row->argument, "FILE", 4)) return TAKES_FILE;
    return strcmp(row->argument, "DIR") ? TAKES_ANY : TAKES_FOLDER;
}

/* Help up to the end of its first clause, without what a shell would read in quotes or brackets. */
static void put_clause(FILE *file, const char *help)
{
    for (; *help && !strchr(";(", *help) && strncmp(help, ". ", 2) != 0 && strncmp(help, ": ", 2) != 0; help++) {
        if (*help == ' ' && help[1] == '(') break;
        if (!strchr("'\"[]:\\$`", *help)) fputc(*help, file);
    }
}

/* The names of a command's options. */
static void put_names(FILE *file, unsigned command)
{
    for (const struct el_option_row *row = el_option_rows(); row->name; row++)
        if (row->commands & command) fprintf(file, " --%s", row->name);
}

static void put_bash_value(FILE *file, const struct el_option_row *row)
{
    char words[WORDS_BYTES];
    enum takes takes = value_of(row, words);
    if (takes == TAKES_NOTHING) return;
    for (const struct el_option_row *before = el_option_rows(); before < row; before++)
        if (!strcmp(before->name, row->name)) return; /* another command's, of the same kind of value */
    fprintf(file, "    --%s) ", row->name);
    if (takes == TAKES_WORDS)
        fprintf(file, "_evenload_list '%s' ;;\n", words);
    else
        fputs(takes == TAKES_FILE     ? "_evenload_paths -f ;;\n"
              : takes == TAKES_FOLDER ? "_evenload_paths -d ;;\n"
                                      : "COMPREPLY=() ;;\n",
              file);
}

static void put_bash(FILE *file)
{
    fputs("# bash completion of evenload, made by 'evenload help --bash'\n"
          "_evenload_list() { # one of the words, or a list of them by comma\n"
          "    local head=\n    [[ $cur != *,* ]] || head=${cur%,*},\n"
          "    mapfile -t COMPREPLY < <(compgen -P \"$head\" -W \"$1\" -- \"${cur##*,}\")\n}\n"
          "_evenload_paths() {\n    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n}\n"
          "_evenload() {\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} "
          "command=${COMP_WORDS[1]}\n"
          "    [[ $cur != = ]] || cur=\n    [[ $prev != = ]] || prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    COMPREPLY=()\n    if ((COMP_CWORD == 1)) || [[ $command == help ]]; then\n        _evenload_list '",
          file);
    for (const struct el_command_row *row = el_command_rows(); row->name; row++) fprintf(file, "%s ", row->name);
    fputs("help'\n        return\n    fi\n"
          "    if [[ $command == watch && \" ${COMP_WORDS[*]:0:COMP_CWORD} \" == *' -- '* ]]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -A command -A file -- \"$cur\")\n        return\n    fi\n"
          "    case $prev in\n",
          file);
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) put_bash_value(file, row);
    fputs("    *) case $cur in\n        -*) case $command in\n", file);
    for (const struct el_command_row *row = el_command_rows(); row->name; row++) {
        fprintf(file, "            %s) _evenload_list '", row->name);
        put_names(file, row->bit);
        fputs("' ;;\n", file);
    }
    fputs("            esac ;;\n        *) _evenload_paths -d ;;\n        esac ;;\n    esac\n}\n"
          "complete -F _evenload evenload\n",
          file);
}

static void put_zsh_option(FILE *file, const struct el_option_row *row)
{
    char words[WORDS_BYTES];
    enum takes takes = value_of(row, words);
    fprintf(file, "      '--%s[", row->name);
    put_clause(file, row->help);
    fputs("]", file);
    if (takes == TAKES_WORDS)
        fprintf(file, strcmp(row->argument, "LIST") ? ":value:(%s)" : ":list:_values -s , value %s", words);
    else if (takes != TAKES_NOTHING)
        fprintf(file, ":value:%s", takes == TAKES_FILE ? "_files" : takes == TAKES_FOLDER ? "_files -/" : " ");
    fputs("' \\\n", file);
}

/* After `--` the watched command's own completion. */
static const char zsh_watch[] =
    "    local at=${words[(i)--]}\n    if (( at < CURRENT )); then\n"
    "      shift at words\n      (( CURRENT -= at ))\n      _normal\n      return\n    fi\n";

static void put_zsh(FILE *file)
{
    fputs("#compdef evenload\n# zsh completion of evenload, made by 'evenload help --zsh'\n"
          "_evenload() {\n  local -a commands\n  commands=(\n",
          file);
    for (const struct el_command_row *row = el_command_rows(); row->name; row++) {
        fprintf(file, "    '%s:", row->name);
        put_clause(file, row->brief);
        fputs("'\n", file);
    }
    fputs("  )\n  if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then\n    _describe command commands\n    return\n "
          " fi\n"
          "  shift words\n  (( CURRENT-- ))\n  case $words[1] in\n",
          file);
    for (const struct el_command_row *row = el_command_rows(); row->name; row++) {
        fprintf(file, "  %s)\n", row->name);
        if (row->bit == EL_CMD_WATCH) fputs(zsh_watch, file);
        fputs("    _arguments \\\n", file);
        for (const struct el_option_row *option = el_option_rows(); option->name; option++)
            if (option->commands & row->bit) put_zsh_option(file, option);
        fputs("      '*:folder:_files -/' ;;\n", file);
    }
    fputs("  esac\n}\n_evenload \"$@\"\n", file);
}

static void put_fish_option(FILE *file, const struct el_option_row *row)
{
    char words[WORDS_BYTES];
    enum takes takes = value_of(row, words);
    fputs("complete -c evenload -n '__fish_seen_subcommand_from", file);
    for (const struct el_command_row *command = el_command_rows(); command->name; command++)
        if (command->bit & row->commands) fprintf(file, " %s", command->name);
    fprintf(file, "' -l %s%s%.1s -d '", row->name, row->letter ? " -s " : "", &row->letter);
    put_clause(file, row->help);
    fputs("'", file);
    if (takes == TAKES_WORDS) fprintf(file, " -x -a '%s'", words);
    if (takes == TAKES_FILE) fputs(" -r -F", file);
    if (takes == TAKES_FOLDER) fputs(" -x -a '(__fish_complete_directories)'", file);
    fputs(takes == TAKES_ANY ? " -x\n" : "\n", file);
}

static void put_fish(FILE *file)
{
    fputs("# fish completion of evenload, made by 'evenload help --fish'\ncomplete -c evenload -n "
          "__fish_use_subcommand -f\n",
          file);
    for (const struct el_command_row *row = el_command_rows(); row->name; row++) {
        fprintf(file,
                "complete -c evenload -n '__fish_use_subcommand; or __fish_seen_subcommand_from help' -f -a %s -d '",
                row->name);
        put_clause(file, row->brief);
        fputs("'\n", file);
    }
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) put_fish_option(file, row);
}

enum el_status el_options_completion(FILE *file, const char *shell)
{
    static const struct {
        const char *name;
        void (*put)(FILE *);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shells[i].name, shell)) continue;
        shells[i].put(file);
        return EL_OK;
    }
    return el_fail(EL_ERR_INVALID, "help --%s: there is --man, --bash, --zsh and --fish", shell);
}
