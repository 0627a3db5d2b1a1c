/* Whether a schedule can be run: every part goes forward and back with every micro-batch once, and no device waits for
 * ever, neither for what it needs nor for room in a mailbox.
 *
 * The rows are gone through as the devices will: each does its actions in turn, waits for what an action needs, and
 * then, where a message goes to another device, for room in that one's mailbox. Messages of a device are taken in the
 * order in which it sends them: what was sent before the one that is needed is taken with it. Devices that wait for one
 * another only so come to the same end however long their actions take, so that going through them once says what every
 * run will do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/layout/schedule.h"

char el_action_letter(enum el_action_kind kind)
{
    return "FBIW"[kind];
}

const char *el_action_text(struct el_action action, char text[16])
{
    snprintf(text, 16, "%d%c%d", action.part, el_action_letter(action.kind), action.micro);
    return text;
}

/* ---- each once ---- */

struct counts {
    unsigned char of[EL_PARTS_MAX][EL_MICRO_MAX][EL_ACTION_KINDS];
};

static enum el_status check_cell(const struct el_schedule *schedule, const char *name, const struct counts *counts,
                                 int part, int micro)
{
    static const char *const what[] = {"forward", "backward", "backward for inputs", "backward for weights"};
    const unsigned char *n = counts->of[part][micro];
    for (int kind = 0; kind < EL_ACTION_KINDS; kind++)
        if (n[kind] > 1)
            return el_fail(EL_ERR_INVALID, "--schedule %s: stage %d has more than one %s of micro-batch %d", name, part,
                           what[kind], micro);
    const char *missing = !n[EL_ACTION_FORWARD]                                             ? what[0]
                          : n[EL_ACTION_BACKWARD]                                           ? NULL
                          : !n[EL_ACTION_BACKWARD_INPUTS] && !n[EL_ACTION_BACKWARD_WEIGHTS] ? what[1]
                          : !n[EL_ACTION_BACKWARD_INPUTS]                                   ? what[2]
                          : !n[EL_ACTION_BACKWARD_WEIGHTS]                                  ? what[3]
                                                                                            : NULL;
    if (missing)
        return el_fail(EL_ERR_INVALID, "--schedule %s: stage %d has no %s of micro-batch %d (of %d)", name, part,
                       missing, micro, schedule->n_micro);
    if (n[EL_ACTION_BACKWARD] && (n[EL_ACTION_BACKWARD_INPUTS] || n[EL_ACTION_BACKWARD_WEIGHTS]))
        return el_fail(EL_ERR_INVALID, "--schedule %s: stage %d has a whole backward of micro-batch %d, and a half",
                       name, part, micro);
    return EL_OK;
}

static enum el_status check_counts(const struct el_schedule *schedule, const char *name)
{
    struct counts *counts = calloc(1, sizeof *counts);
    if (!counts) return el_fail_errno("checking a schedule");
    for (int d = 0; d < schedule->n_devices; d++)
        for (int i = 0; i < schedule->n_actions[d]; i++) {
            const struct el_action *action = &schedule->actions[d][i];
            unsigned char *n = &counts->of[action->part][action->micro][action->kind];
            *n = *n < 2 ? *n + 1 : 2;
        }
    enum el_status status = EL_OK;
    for (int k = 0; k < schedule->n_parts && status == EL_OK; k++)
        for (int m = 0; m < schedule->n_micro && status == EL_OK; m++)
            status = check_cell(schedule, name, counts, k, m);
    free(counts);
    return status;
}

/* ---- nobody waits for ever ---- */

enum { ROOM_MAX = 63, FORWARD = 0, INPUTS = 1, WAYS = 2 };

/* Messages from one device to another. */
struct link {
    int n_put, n_taken;
};

struct run {
    const struct el_schedule *schedule;
    int room; /* 0: without limit */
    int next[EL_PARTS_MAX];
    bool computed[EL_PARTS_MAX]; /* of the next action only its message is still to be sent */
    bool done[EL_PARTS_MAX][EL_MICRO_MAX][WAYS], sent[EL_PARTS_MAX][EL_MICRO_MAX][WAYS];
    int number[EL_PARTS_MAX][EL_MICRO_MAX][WAYS]; /* of the message among those of its link */
    struct link links[EL_PARTS_MAX][EL_PARTS_MAX];
};

/* The part that an action waits for; -1: none. */
static int part_before(const struct run *run, struct el_action action)
{
    if (action.kind == EL_ACTION_FORWARD) return action.part - 1;
    return el_action_goes_back(action.kind) && action.part + 1 < run->schedule->n_parts ? action.part + 1 : -1;
}

/* A part's way back with a micro-batch, whole or for inputs: one of the two is there. */
static struct el_action way_back(const struct el_schedule *schedule, int part, int micro)
{
    const struct el_action *action = schedule->actions[schedule->device[part]];
    while (!el_action_goes_back(action->kind) || action->part != part || action->micro != micro) action++;
    return *action;
}

/* What is missing before it can begin. */
static bool lacks(const struct run *run, struct el_action action, struct el_action *missing_p)
{
    int way = el_action_goes_back(action.kind) ? INPUTS : FORWARD, before = part_before(run, action);
    if (action.kind != EL_ACTION_FORWARD && !run->done[action.part][action.micro][FORWARD]) {
        *missing_p = (struct el_action){EL_ACTION_FORWARD, action.part, action.micro};
        return true;
    }
    if (action.kind == EL_ACTION_BACKWARD_WEIGHTS && !run->done[action.part][action.micro][INPUTS]) {
        *missing_p = way_back(run->schedule, action.part, action.micro);
        return true;
    }
    if (before < 0) return false;
    bool here = run->schedule->device[before] == run->schedule->device[action.part];
    if ((here ? run->done : run->sent)[before][action.micro][way]) return false;
    *missing_p = (struct el_action){EL_ACTION_FORWARD, before, action.micro};
    if (way == INPUTS) *missing_p = way_back(run->schedule, before, action.micro);
    return true;
}

static struct link *link_of(struct run *run, int from_part, int to_part)
{
    int from = run->schedule->device[from_part], to = run->schedule->device[to_part];
    return from == to ? NULL : &run->links[from][to];
}

static void take_message(struct run *run, struct el_action action)
{
    int before = part_before(run, action), way = el_action_goes_back(action.kind);
    struct link *link = before < 0 ? NULL : link_of(run, before, action.part);
    int number = link ? run->number[before][action.micro][way] : 0;
    if (link && link->n_taken <= number) link->n_taken = number + 1;
}

static bool put_message(struct run *run, struct el_action action)
{
    int behind = el_schedule_receiver(run->schedule, action), way = el_action_goes_back(action.kind);
    struct link *link = behind < 0 ? NULL : link_of(run, action.part, behind);
    if (!link) return true;
    if (run->room > 0 && link->n_put - link->n_taken == run->room) return false;
    run->number[action.part][action.micro][way] = link->n_put++;
    run->sent[action.part][action.micro][way] = true;
    return true;
}

/* As far as the device comes; whether it did anything. */
static bool advance(struct run *run, int device)
{
    const struct el_schedule *schedule = run->schedule;
    struct el_action missing;
    bool moved = false;
    for (; run->next[device] < schedule->n_actions[device]; run->next[device]++, moved = true) {
        struct el_action action = schedule->actions[device][run->next[device]];
        if (!run->computed[device]) {
            if (lacks(run, action, &missing)) return moved;
            take_message(run, action);
            if (action.kind != EL_ACTION_BACKWARD_WEIGHTS)
                run->done[action.part][action.micro][el_action_goes_back(action.kind)] = true;
            run->computed[device] = moved = true;
        }
        if (!put_message(run, action)) return moved;
        run->computed[device] = false;
    }
    return moved;
}

/* The first device that never comes to its end; -1: all do. */
static int find_stuck(struct run *run, int room)
{
    const struct el_schedule *schedule = run->schedule;
    memset(run, 0, sizeof *run); /* too large for the stack */
    run->schedule = schedule;
    run->room = room;
    for (bool moved = true; moved;) {
        moved = false;
        for (int d = 0; d < run->schedule->n_devices; d++) moved = advance(run, d) || moved;
    }
    for (int d = 0; d < run->schedule->n_devices; d++)
        if (run->next[d] < run->schedule->n_actions[d]) return d;
    return -1;
}

static enum el_status find_room(struct el_schedule *schedule, struct run *run, const char *name)
{
    char texts[2][16];
    int device = find_stuck(run, 0);
    if (device >= 0) {
        struct el_action action = schedule->actions[device][run->next[device]], missing;
        lacks(run, action, &missing);
        return el_fail(EL_ERR_INVALID,
                       "--schedule %s: deadlock: device %d would wait for ever before %s for %s, which cannot come "
                       "before it",
                       name, device, el_action_text(action, texts[0]), el_action_text(missing, texts[1]));
    }
    for (schedule->room = 2; schedule->room <= ROOM_MAX; schedule->room++)
        if (find_stuck(run, schedule->room) < 0) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--schedule %s: more than %d messages would have to lie in one mailbox", name,
                   ROOM_MAX);
}

enum el_status el_schedule_check(struct el_schedule *schedule, const char *name)
{
    EL_TRY(check_counts(schedule, name));
    struct run *run = calloc(1, sizeof *run);
    if (!run) return el_fail_errno("checking a schedule");
    run->schedule = schedule;
    enum el_status status = find_room(schedule, run, name);
    free(run);
    return status;
}
