/* What is asked for with --profile and --trace. */
#ifndef EL_BENCH_TRIAL_PROFILE_H
#define EL_BENCH_TRIAL_PROFILE_H

#include "bench/trial/trial.h"
#include "profiles/profile_schedule.h"

/* Whether one of them was given; then the steps that are wanted. The trial has been checked. */
bool el_trial_profile(const struct el_trial *trial, struct el_profile_schedule *schedule_p);
/* Errors: EL_ERR_INVALID naming the option: no schedule, more steps than are measured, no spans, no
 * folder. */
enum el_status el_trial_check_profile(const struct el_trial *trial);

#endif
