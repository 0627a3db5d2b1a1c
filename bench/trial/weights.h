/* --load and --save: what can be said of them before anything is trained.
 *
 * Errors: EL_ERR_INVALID or EL_ERR_IO in one line naming the file or the option. Threads: any.
 */
#ifndef EL_TRIAL_WEIGHTS_H
#define EL_TRIAL_WEIGHTS_H

#include "bench/trial/trial.h"

/* Of a resolved model: NULL where no file is to be loaded. The caller closes it. */
enum el_status el_trial_open_weights(const char *load, const struct el_model_config *model,
                                     struct el_safetensors **weights_p);
/* Whether the trial will have weights, and there is a folder for them. */
enum el_status el_trial_check_save(const struct el_trial *trial);

#endif
