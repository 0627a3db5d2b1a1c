/* torch.profiler.schedule's arithmetic, and its words. */
#include "profiles/profile_schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 1000000 };

static int64_t *place_of(struct el_profile_schedule *schedule, const char *word)
{
    return !strcmp(word, "wait")         ? &schedule->wait
           : !strcmp(word, "warmup")     ? &schedule->warmup
           : !strcmp(word, "active")     ? &schedule->active
           : !strcmp(word, "repeat")     ? &schedule->repeat
           : !strcmp(word, "skip_first") ? &schedule->skip_first
                                         : NULL;
}

static enum el_status refuse(const char *text)
{
    return el_fail(EL_ERR_INVALID,
                   "--profile %.80s: must be like wait=1,warmup=1,active=2,repeat=1 (and skip_first=N), each a whole "
                   "number, active at least 1",
                   text);
}

enum el_status el_profile_schedule_read(const char *text, struct el_profile_schedule *schedule_p)
{
    struct el_profile_schedule schedule = {0};
    for (const char *at = text; *at || at == text;) {
        char word[11], digits[8];
        int n = 0;
        if (sscanf(at, "%10[a-z_]=%7[0-9]%n", word, digits, &n) != 2) return refuse(text);
        int64_t *place = place_of(&schedule, word);
        if (!place || (*place = atoll(digits)) > NUMBER_MAX) return refuse(text);
        at += n;
        if (*at && (*at++ != ',' || !*at)) return refuse(text);
    }
    if (schedule.active < 1) return refuse(text);
    *schedule_p = schedule;
    return EL_OK;
}

int64_t el_profile_cycle(const struct el_profile_schedule *schedule, int64_t step)
{
    int64_t length = schedule->wait + schedule->warmup + schedule->active;
    step -= schedule->skip_first;
    if (step < 0 || (schedule->repeat > 0 && step / length >= schedule->repeat)) return -1;
    return step % length < schedule->wait + schedule->warmup ? -1 : step / length;
}

int64_t el_profile_schedule_steps(const struct el_profile_schedule *schedule)
{
    int64_t cycles = schedule->repeat > 0 ? schedule->repeat : 1;
    return schedule->skip_first + cycles * (schedule->wait + schedule->warmup + schedule->active);
}
