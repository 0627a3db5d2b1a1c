/* Commands that measure, but for a folder, whose records they only show: there no other option has a meaning. */
#include <stdlib.h>
#include <string.h>

#include "bench/options/options.h"

enum { VALUE_BYTES = 2048 };

/* How it is shown, not what is measured. */
static bool is_of_showing(const struct el_option_row *row)
{
    return !strcmp(row->name, "json") || !strcmp(row->name, "quiet");
}

enum el_status el_options_check_records_alone(unsigned command, const char *word, const struct el_options *options)
{
    struct el_options *initial = calloc(1, sizeof *initial);
    if (!initial) return el_fail_errno("options");
    el_options_defaults(command, initial);
    enum el_status status = EL_OK;
    for (const struct el_option_row *row = el_option_rows(); row->name && status == EL_OK; row++) {
        char given[VALUE_BYTES], otherwise[VALUE_BYTES];
        if (!(row->commands & command) || is_of_showing(row)) continue;
        el_option_show(row, options, given, sizeof given);
        el_option_show(row, initial, otherwise, sizeof otherwise);
        if (strcmp(given, otherwise))
            status = el_fail(EL_ERR_INVALID,
                             "%s %s reads records and measures nothing: leave out --%s, or leave out the folder", word,
                             options->dir, row->name);
    }
    free(initial);
    return status;
}
