/* A command line, a word a line, the first a subcommand (a worker's is that of `run`): parsed, echoed, written as a
 * line for a shell, and resolved into trials. What is written of options reads as the same options. */
#include <stdlib.h>
#include <string.h>

#include "bench/commands.h"
#include "bench/options/options.h"
#include "bench/trial/trial.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS_MAX = 64, LINE_BYTES = 8192 };

static void resolve(unsigned command, struct el_options *options)
{
    struct el_trial_set set;
    const unsigned trials = EL_CMD_COMPARE | EL_CMD_RUN | EL_CMD_IMBALANCE;
    if (!(command & trials) || options->help) return;
    fuzz_own_data(options);
    if (fuzz_status(el_trials_resolve(command, options, &set))) el_trials_free(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *words[WORDS_MAX + 1] = {NULL}, *rest = text, line[LINE_BYTES];
    struct el_options *options = calloc(1, sizeof *options);
    int n = 0;
    for (char *word; n < WORDS_MAX && (word = strsep(&rest, "\n"));) words[n++] = word;
    const struct el_command_row *row = el_command_rows();
    while (row->bit && n && strcmp(el_command_name(row->bit), words[0]) != 0) row++;
    if (!options) abort();
    if (row->bit) {
        el_options_defaults(row->bit, options);
        if (fuzz_status(el_options_parse(row->bit, n, words, options))) {
            json_decref(el_options_echo(row->bit, options));
            fuzz_status(el_options_command_line(row->bit, options, line, sizeof line));
            resolve(row->bit, options);
        }
    }
    free(options);
    free(text);
    return 0;
}
