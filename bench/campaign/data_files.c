/* See data_files.h. */
#include "bench/campaign/data_files.h"

#include <unistd.h>

#include "bench/campaign/store.h"

enum el_status el_data_files_write(const struct el_options *options, bool images, struct el_data_files *files_p)
{
    struct el_data_files files = {.existing = 0};
    const enum el_input_kind input = images ? EL_INPUT_IMAGES : EL_INPUT_IDS;
    const uint64_t seed = options->train.seed;
    snprintf(files.dir, sizeof files.dir, "%s/data", *options->out ? options->out : "results");
    files.existing = el_store_existing(files.dir);
    EL_TRY(el_synthetic_paths(files.dir, input, seed, files.train, files.test, sizeof files.train));
    files.made_train = access(files.train, F_OK) != 0;
    files.made_test = access(files.test, F_OK) != 0;
    enum el_status status = el_synthetic_write(files.dir, input, seed, files.train, files.test, sizeof files.train);
    if (status != EL_OK) el_data_files_take_back(&files);
    if (status == EL_OK) *files_p = files;
    return status;
}

void el_data_files_take_back(const struct el_data_files *files)
{
    if (files->made_train) unlink(files->train);
    if (files->made_test) unlink(files->test);
    if (files->made_train || files->made_test) el_store_unmake(files->dir, files->existing);
}
