/* --profile and --trace: which steps, and what does not go together with them. */
#include "bench/trial/trial.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* As in PyTorch's examples, and one cycle. */
static const char USUAL[] = "wait=1,warmup=1,active=2,repeat=1";

/* The option that asks for a profile; NULL: none does. */
static const char *asked_by(const struct el_trial *trial)
{
    return *trial->profile ? "--profile" : *trial->trace ? "--trace" : NULL;
}

bool el_trial_profile(const struct el_trial *trial, struct el_profile_schedule *schedule_p)
{
    if (!asked_by(trial)) return false;
    return el_profile_schedule_read(*trial->profile ? trial->profile : USUAL, schedule_p) == EL_OK;
}

enum el_status el_trial_check_profile(const struct el_trial *trial)
{
    struct el_profile_schedule schedule;
    struct stat info;
    const char *option = asked_by(trial);
    if (!option) return EL_OK;
    EL_TRY(el_profile_schedule_read(*trial->profile ? trial->profile : USUAL, &schedule));
    int64_t needed = el_profile_schedule_steps(&schedule);
    if (!trial->record)
        return el_fail(EL_ERR_INVALID, "%s needs spans, and --no-record keeps none: leave one of them out", option);
    if (trial->train.epochs == 0 && needed > trial->train.steps)
        return el_fail(EL_ERR_INVALID,
                       "%s needs %" PRId64 " measured steps, and at least %" PRId64
                       " are measured: give --steps %" PRId64,
                       option, needed, trial->train.steps, needed);
    if (*trial->trace && stat(trial->trace, &info) == 0 && !S_ISDIR(info.st_mode))
        return el_fail(EL_ERR_INVALID, "--trace %s: is a file; give a folder", trial->trace);
    return EL_OK;
}
