/* The synthetic set's files, in DIR/data: for whoever wants to see what was trained on, or reads it from there. */
#ifndef EL_BENCH_DATA_FILES_H
#define EL_BENCH_DATA_FILES_H

#include "bench/options/config.h"

struct el_data_files {
    char dir[EL_PATH_BYTES + 8], train[EL_PATH_BYTES], test[EL_PATH_BYTES];
    size_t existing;            /* letters of `dir` that were a folder before */
    bool made_train, made_test; /* by el_data_files_write */
};

/* Where they are not there yet. A command that is refused later takes them back. Errors: EL_ERR_IO, EL_ERR_INVALID;
 * nothing is left then. */
enum el_status el_data_files_write(const struct el_options *options, bool images, struct el_data_files *files_p);
/* Removes what was made, with its folders where they are empty. Of zeros: nothing. */
void el_data_files_take_back(const struct el_data_files *files);

#endif
