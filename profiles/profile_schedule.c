/* torch.profiler.schedule's arithmetic, and its words. */
#include "profiles/profile_schedule.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 1000000 };

static int64_t *place_of(struct el_profile_schedule *schedule, const char *word, size_t length)
{
    static const char *const words[] = {"wait", "warmup", "active", "repeat", "skip_first"};
    int64_t *const places[] = {&schedule->wait, &schedule->warmup, &schedule->active, &schedule->repeat,
                               &schedule->skip_first};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == length && strncmp(words[i], word, length) == 0) return places[i];
    return NULL;
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
        size_t length = strcspn(at, "=,");
        int64_t *place = at[length] == '=' ? place_of(&schedule, at, length) : NULL;
        const char *digits = at + length + 1;
        char *end;
        if (!place || *digits < '0' || *digits > '9') return refuse(text);
        *place = strtoll(digits, &end, 10);
        if (*place > NUMBER_MAX || (*end && *end != ',') || (*end == ',' && !end[1])) return refuse(text);
        at = end + (*end == ',');
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
