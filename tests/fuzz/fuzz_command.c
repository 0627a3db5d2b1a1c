/* The file that --resume goes on by (command.json): into options, and those into trials. No data file that it names is
 * read: two sentences take its place. */
#include <stdlib.h>
#include <string.h>

#include "bench/campaign/store.h"
#include "bench/options/options.h"
#include "bench/trial/trial.h"
#include "tests/fuzz/fuzz.h"

static enum el_status take(const json_t *echo, struct el_options *options)
{
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        const char *text = json_string_value(json_object_get(echo, row->name));
        if (text && (row->commands & EL_CMD_COMPARE)) EL_TRY(el_option_set(row, text, options));
    }
    return EL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct el_options *options = calloc(1, sizeof *options);
    struct el_store store;
    struct el_trial_set set;
    json_t *echo = NULL;
    fuzz_file("command.json", data, size);
    if (!options) abort();
    el_options_defaults(EL_CMD_COMPARE, options);
    bool good = fuzz_status(el_store_open(fuzz_folder(), &store)) &&
                fuzz_status(el_store_load_command(&store, "compare", &echo)) && fuzz_status(take(echo, options));
    fuzz_own_data(options);
    if (good && fuzz_status(el_trials_resolve(EL_CMD_COMPARE, options, &set))) el_trials_free(&set);
    json_decref(echo);
    free(options);
    return 0;
}
