/* Schedules that are known by name; see schedule.h. */
#include "runtime/layout/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/layout/config.h"

static const struct el_schedule_kind kinds[] = {
    {"1f1b", "one forward and one backward alternately: fewer activations at a time", .parts = 1, .one = true,
     .lead = 1},
    {"gpipe", "all micro-batches forward, then all backward", .parts = 1, .one = true, .lead = 0},
    {"interleaved", "1f1b with several parts per device: less waiting, more messages", .parts = 2, .lead = 2},
    {"zero-bubble", "1f1b whose gradients of weights come later, when a device would wait", .parts = 1, .lead = 1,
     .halves = true},
    {.name = NULL},
};

const struct el_schedule_kind *el_schedule_list(void)
{
    return kinds;
}

enum el_status el_schedule_add(struct el_schedule *schedule, int device, struct el_action action)
{
    int n = schedule->n_actions[device];
    if ((n & (n - 1)) == 0) { /* full: twice as many */
        struct el_action *more = realloc(schedule->actions[device], (n ? 2 * (size_t)n : 1) * sizeof *more);
        if (!more) return el_fail_errno("a schedule of %d actions", n);
        schedule->actions[device] = more;
    }
    schedule->actions[device][schedule->n_actions[device]++] = action;
    return EL_OK;
}

/* ---- rows by formula, as torch.distributed.pipelining's _get_1f1b_rank_ops has them ---- */

/* Micro-batches go in rounds: a device does those of a round with one of its parts, then with the next one. */
struct rounds {
    int device, n_local; /* parts of the device */
    int n_in_round, n_all;
};

/* The `step`-th forward, or backward, whose parts come in turn from the last one. */
static struct el_action nth(const struct el_schedule *schedule, const struct rounds *rounds, enum el_action_kind kind,
                            int step)
{
    int local = step / rounds->n_in_round % rounds->n_local;
    int of_round = step / (rounds->n_in_round * rounds->n_local);
    if (kind != EL_ACTION_FORWARD) local = rounds->n_local - 1 - local;
    return (struct el_action){.kind = kind,
                              .part = local * schedule->n_devices + rounds->device,
                              .micro = of_round * rounds->n_in_round + step % rounds->n_in_round};
}

/* How many forwards come before the first backward. */
static int count_ahead(const struct el_schedule *schedule, const struct el_schedule_kind *kind,
                       const struct rounds *rounds)
{
    int ahead = (rounds->n_local - 1) * rounds->n_in_round + kind->lead * (schedule->n_devices - 1 - rounds->device);
    return kind->lead == 0 || ahead > rounds->n_all ? rounds->n_all : ahead;
}

/* The first device's weights come with the inputs, and each later one's so many backwards later: as long as the way of
 * its gradients to the first device and back, which it would wait. */
static enum el_status fill_row(struct el_schedule *schedule, const struct el_schedule_kind *kind,
                               const struct rounds *rounds)
{
    int ahead = count_ahead(schedule, kind, rounds), weights = 0;
    enum el_action_kind backward = kind->halves ? EL_ACTION_BACKWARD_INPUTS : EL_ACTION_BACKWARD;
    for (int step = 0; step < rounds->n_all + ahead; step++) {
        int back = step - ahead;
        if (step < rounds->n_all)
            EL_TRY(el_schedule_add(schedule, rounds->device, nth(schedule, rounds, EL_ACTION_FORWARD, step)));
        if (back >= 0) EL_TRY(el_schedule_add(schedule, rounds->device, nth(schedule, rounds, backward, back)));
        if (kind->halves && back >= rounds->device)
            EL_TRY(el_schedule_add(schedule, rounds->device,
                                   nth(schedule, rounds, EL_ACTION_BACKWARD_WEIGHTS, weights++)));
    }
    while (kind->halves && weights < rounds->n_all)
        EL_TRY(el_schedule_add(schedule, rounds->device, nth(schedule, rounds, EL_ACTION_BACKWARD_WEIGHTS, weights++)));
    return EL_OK;
}

static enum el_status fill(struct el_schedule *schedule, const struct el_schedule_kind *kind, int n_local)
{
    int n_rounds = schedule->n_micro / schedule->n_devices > 1 ? schedule->n_micro / schedule->n_devices : 1;
    if (schedule->n_devices * n_local > EL_PARTS_MAX)
        return el_fail(EL_ERR_INVALID, "--parts %d: on %d devices that makes more than %d parts", n_local,
                       schedule->n_devices, EL_PARTS_MAX);
    if (n_local > 1 && schedule->n_micro % n_rounds != 0)
        return el_fail(EL_ERR_INVALID,
                       "--micro %d: --schedule %s on %d devices makes %d rounds, which must have equally many "
                       "micro-batches: give --micro %d",
                       schedule->n_micro, kind->name, schedule->n_devices, n_rounds, n_rounds * schedule->n_devices);
    schedule->n_parts = schedule->n_devices * n_local;
    for (int k = 0; k < schedule->n_parts; k++) schedule->device[k] = k % schedule->n_devices;
    for (int d = 0; d < schedule->n_devices; d++) {
        struct rounds rounds = {.device = d,
                                .n_local = n_local,
                                .n_in_round = schedule->n_micro / n_rounds,
                                .n_all = n_local * schedule->n_micro};
        EL_TRY(fill_row(schedule, kind, &rounds));
    }
    return EL_OK;
}

/* ---- open, close, questions ---- */

static const struct el_schedule_kind *find(const char *name)
{
    const struct el_schedule_kind *kind = kinds;
    while (*name && kind->name && strcmp(kind->name, name) != 0) kind++;
    return kind->name ? kind : NULL;
}

static enum el_status check_numbers(const struct el_train_config *config)
{
    if (config->n_micro < 0 || config->n_micro > EL_MICRO_MAX)
        return el_fail(EL_ERR_INVALID, "--micro %lld: must be between 1 and %d", (long long)config->n_micro,
                       EL_MICRO_MAX);
    return EL_OK;
}

static enum el_status open_file(const struct el_train_config *config, int n_devices, struct el_schedule *schedule)
{
    if (config->parts)
        return el_fail(EL_ERR_INVALID, "--parts: --schedule %s says how many there are: leave it out",
                       config->schedule);
    EL_TRY(el_schedule_read(config->schedule, n_devices, schedule));
    if (config->n_micro && config->n_micro != schedule->n_micro)
        return el_fail(EL_ERR_INVALID, "--micro %lld: --schedule %s has %d micro-batches: leave --micro out",
                       (long long)config->n_micro, config->schedule, schedule->n_micro);
    return EL_OK;
}

static enum el_status open_kind(const struct el_train_config *config, int n_devices, struct el_schedule *schedule)
{
    const struct el_schedule_kind *kind = find(config->schedule);
    if (!kind)
        return el_fail(EL_ERR_INVALID,
                       "--schedule %s: no such schedule: give 1f1b, gpipe, interleaved, zero-bubble or a FILE.csv",
                       config->schedule);
    if (kind->one && config->parts > 1)
        return el_fail(EL_ERR_INVALID,
                       "--parts %d: --schedule %s has one part per device: leave it out, or give --schedule "
                       "interleaved",
                       config->parts, kind->name);
    schedule->n_micro = config->n_micro ? (int)config->n_micro : n_devices;
    return fill(schedule, kind, config->parts ? config->parts : kind->parts);
}

enum el_status el_schedule_open(const struct el_train_config *config, int n_devices, struct el_schedule *schedule)
{
    *schedule = (struct el_schedule){0};
    if (n_devices > EL_PARTS_MAX)
        return el_fail(EL_ERR_INVALID, "--devices: %d of them in a row would make more than %d parts: give --mesh dp=N",
                       n_devices, EL_PARTS_MAX);
    schedule->n_devices = n_devices;
    EL_TRY(check_numbers(config));
    EL_TRY((el_schedule_is_file(config->schedule) ? open_file : open_kind)(config, n_devices, schedule));
    return el_schedule_check(schedule, config->schedule);
}

void el_schedule_close(struct el_schedule *schedule)
{
    for (int d = 0; d < schedule->n_devices; d++) free(schedule->actions[d]);
    *schedule = (struct el_schedule){0};
}

bool el_action_goes_back(enum el_action_kind kind)
{
    return kind == EL_ACTION_BACKWARD || kind == EL_ACTION_BACKWARD_INPUTS;
}

int el_schedule_receiver(const struct el_schedule *schedule, struct el_action action)
{
    if (el_action_goes_back(action.kind)) return action.part - 1;
    return action.kind == EL_ACTION_FORWARD && action.part + 1 < schedule->n_parts ? action.part + 1 : -1;
}

int el_schedule_in_flight(const struct el_schedule *schedule, int device)
{
    int now = 0, most = 0;
    for (int i = 0; i < schedule->n_actions[device]; i++) {
        enum el_action_kind kind = schedule->actions[device][i].kind;
        if (kind == EL_ACTION_FORWARD) now++;
        if (kind == EL_ACTION_BACKWARD || kind == EL_ACTION_BACKWARD_WEIGHTS) now--;
        if (now > most) most = now;
    }
    return most;
}
