/* A command's words as el_options_command_line quotes them, its options, and a command of those. */
#include "bench/page/page.h"

#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/options/options.h"

enum { WORDS_MAX = 256 };

/* In place: words between blanks, of which '...' are parts. Returns how many; 0: too many, or a quote that is open. */
static int split(char *text, char *words[WORDS_MAX])
{
    int n = 0;
    for (char *at = text; *(at += strspn(at, " "));) {
        char *to = at;
        if (n == WORDS_MAX - 1) return 0;
        words[n++] = at;
        for (bool quoted = false; quoted || (*at && *at != ' '); at++) {
            if (*at == '\0') return 0;
            if (*at == '\'')
                quoted = !quoted;
            else if (*at == '\\' && !quoted && at[1])
                *to++ = *++at;
            else
                *to++ = *at;
        }
        bool last = *at == '\0';
        *to = '\0';
        if (last) break;
        at++;
    }
    words[n] = NULL;
    return n;
}

/* Those that write a file. */
static bool writes(const struct el_options *options)
{
    static const char *const names[] = {"out", "save", "trace", NULL};
    int n = 0;
    while (names[n] && !el_option_given(options, names[n])) n++;
    return names[n] != NULL;
}

/* Which command it is; 0: none of those that train, or its options are none of them. */
static unsigned read_options(char *command, struct el_options *options)
{
    static const unsigned commands[] = {EL_CMD_RUN, EL_CMD_COMPARE, EL_CMD_SCALE, EL_CMD_IMBALANCE};
    char *words[WORDS_MAX];
    int n = split(command, words);
    if (n < 2 || strcmp(words[0], "evenload") != 0) return 0;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(words[1], el_command_name(commands[i])) != 0) continue;
        el_options_defaults(commands[i], options);
        bool good = el_options_parse(commands[i], n - 1, words + 1, options) == EL_OK;
        return good && !writes(options) && !options->help ? commands[i] : 0;
    }
    return 0;
}

void el_page_command(const json_t *trial, const json_t *context, char *text)
{
    struct el_options *options = malloc(sizeof *options);
    char *command = strdup(el_json_text(trial, "command", ""));
    (void)context;
    unsigned which = options && command ? read_options(command, options) : 0;
    if (!which || el_options_command_line(which, options, text, EL_CELL_BYTES) != EL_OK)
        snprintf(text, EL_CELL_BYTES, "none: what the record names is no command that trains, or too long");
    free(command);
    free(options);
}
