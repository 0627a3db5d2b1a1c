/* Pipeline schedules as data: which device holds which part of the model, and the order of its actions in a step.
 *
 *     el_schedule_open(&config, n_devices, &schedule);
 *     for (int i = 0; i < schedule.n_actions[d]; i++) ... schedule.actions[d][i].kind, .part, .micro
 *     el_schedule_close(&schedule);
 *
 * Parts are numbered along the depth (PyTorch: stages). A table is checked: every part goes forward and back once with
 * every micro-batch, and no device waits forever.
 * gpipe: all forwards, then all backwards (Huang et al., GPipe, 2019). 1f1b: as many forwards as devices follow, then
 * forward and backward alternately (Narayanan et al., PipeDream, 2019; Schedule1F1B). interleaved: the same with
 * several parts per device, p apart (Narayanan et al., Megatron-LM, 2021; ScheduleInterleaved1F1B). zero-bubble: 1f1b
 * with split backward; gradients of weights fill idle time (Qi et al., Zero Bubble, 2024: ZB-H1;
 * ScheduleInterleavedZeroBubble). FILE.csv: PyTorch's compute table. Idle times: docs/semantics.md.
 * Ownership: the opener's; constant once open. Threads: any reads. */
#pragma once

#include <stdbool.h>

#include "runtime/base/status.h"
#include "runtime/layout/layout.h"

enum { EL_MICRO_MAX = 512, EL_PARTS_MAX = 128 };

/* Backward is whole or in halves: for inputs, which the part before waits for, and for weights. Waiting is no
 * action. */
enum el_action_kind { EL_ACTION_FORWARD, EL_ACTION_BACKWARD, EL_ACTION_BACKWARD_INPUTS, EL_ACTION_BACKWARD_WEIGHTS };
enum { EL_ACTION_KINDS = 4 };

struct el_action {
    enum el_action_kind kind;
    int part, micro;
};

struct el_schedule {
    int n_devices, n_parts, n_micro;
    int device[EL_PARTS_MAX];
    int n_actions[EL_PARTS_MAX];
    struct el_action *actions[EL_PARTS_MAX]; /* a row per device, each with at least one part */
    /* Room that a mailbox between two devices needs against deadlock, in edges' messages. */
    int room;
};

struct el_schedule_kind {
    const char *name, *summary;
    int parts; /* per device by default (--schedule parts); 1 and `one`: always */
    bool one;
    int lead; /* how many more forwards a device does before its first backward than the next device; 0: all */
    bool halves;
};

/* Ended by a row whose name is NULL; the first is the default. */
const struct el_schedule_kind *el_schedule_list(void);

/* From config.schedule (empty: the list's first), .parts and .n_micro (0: the number of devices, or the file's).
 * Errors: EL_ERR_INVALID naming the option to change; EL_ERR_IO; EL_ERR_HOST_MEMORY. Close it after a failure too. */
enum el_status el_schedule_open(const struct el_train_config *config, int n_devices, struct el_schedule *schedule);
void el_schedule_close(struct el_schedule *schedule); /* A zeroed schedule is legal */

/* Maximum number of activation sets on a device; a part has one per micro-batch from forward to the end of backward. */
int el_schedule_in_flight(const struct el_schedule *schedule, int device);

/* The part that needs an action's result; -1: none. */
int el_schedule_receiver(const struct el_schedule *schedule, struct el_action action);

/* "3B0" */
const char *el_action_text(struct el_action action, char text[16]);
char el_action_letter(enum el_action_kind kind);

bool el_schedule_is_file(const char *name);
