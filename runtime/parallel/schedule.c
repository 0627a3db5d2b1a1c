/* Schedules of pipelines; see schedule.h. */
#include "runtime/parallel/schedule.h"

#include <stddef.h>

static int all_ahead(int n_stages, int n_micro, int stage)
{
    (void)n_stages;
    (void)stage;
    return n_micro;
}

static int stages_ahead(int n_stages, int n_micro, int stage)
{
    return n_stages - stage < n_micro ? n_stages - stage : n_micro;
}

static const struct el_schedule schedules[] = {
    {"1f1b", "one forward and one backward alternately: fewer activations at a time", stages_ahead},
    {"gpipe", "all micro-batches forward, then all backward", all_ahead},
    {NULL, NULL, NULL},
};

const struct el_schedule *el_schedule_list(void)
{
    return schedules;
}

int el_schedule_fill(const struct el_schedule *schedule, int n_stages, int n_micro, int stage,
                     struct el_action *actions)
{
    int ahead = schedule->ahead(n_stages, n_micro, stage), forward = 0, n = 0;
    for (int backward = 0; backward < n_micro; backward++) {
        while (forward < n_micro && forward < backward + ahead)
            actions[n++] = (struct el_action){EL_ACTION_FORWARD, forward++};
        actions[n++] = (struct el_action){EL_ACTION_BACKWARD, backward};
    }
    return n;
}

int el_schedule_in_flight(const struct el_schedule *schedule, int n_stages, int n_micro, int stage)
{
    struct el_action actions[2 * EL_MICRO_MAX];
    int n = el_schedule_fill(schedule, n_stages, n_micro, stage, actions), now = 0, most = 0;
    for (int i = 0; i < n; i++) {
        now += actions[i].kind == EL_ACTION_FORWARD ? 1 : -1;
        if (now > most) most = now;
    }
    return most;
}
