/* What mp and pipeline check of their options; cut.c has the rows too. */
#ifndef EL_CUT_H
#define EL_CUT_H

#include "runtime/modes/mode.h"

extern const struct el_mode_option el_cut_micro, el_cut_schedule, el_cut_parts;

/* A mode's `check`: that the model can be cut as the schedule has it, and the batch too. Fills in n_micro. */
enum el_status el_cut_check(struct el_train_config *config, const struct el_layout *layout);

#endif
