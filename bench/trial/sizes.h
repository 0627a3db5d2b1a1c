/* The sizes of a trial's model: from its row, the data and the user.
 *
 *     el_sizes_check(&options.train.model)                   what the user gave goes with the model
 *     el_sizes_resolve(&options, &model, &dataset)           all sizes, and the data, open
 *
 * Ownership: the caller closes the data set. Threads: any. Errors: EL_ERR_INVALID names the option or the file.
 */
#ifndef EL_TRIAL_SIZES_H
#define EL_TRIAL_SIZES_H

#include "bench/options/options.h"
#include "runtime/data/data.h"

enum el_status el_sizes_check(const struct el_model_config *given);
/* After an error nothing is open. */
enum el_status el_sizes_resolve(const struct el_options *options, struct el_model_config *model_p,
                                struct el_dataset **dataset_p);

#endif
