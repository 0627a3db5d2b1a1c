/* Schedules of pipelines: which device holds which part of the model, and in which order it does its work of one step.
 * Data, not code: whoever issues a step, predicts its memory or draws it reads the same table.
 *
 *     el_schedule_open(&config, n_devices, &schedule);
 *     for (int i = 0; i < schedule.n_actions[d]; i++) ... schedule.actions[d][i].kind, .part, .micro
 *     el_schedule_close(&schedule);
 *
 * The model is cut into n_parts parts, numbered along its depth; PyTorch calls them stages. A table has been checked:
 * every part goes forward and back with every micro-batch once, and no device waits for ever.
 *
 * gpipe: all forwards, then all backwards (Huang et al., GPipe, 2019). 1f1b: after as many forwards as there are
 * devices behind it, a device does a forward and a backward in turns (Narayanan et al., PipeDream, 2019; PyTorch's
 * Schedule1F1B). interleaved: the same with several parts on a device, each p after the last one (Narayanan et al.,
 * Megatron-LM, 2021; ScheduleInterleaved1F1B). zero-bubble: 1f1b whose backward is parted, so that gradients of weights
 * fill the time in which a device would wait (Qi et al., Zero Bubble, 2024: ZB-H1; ScheduleInterleavedZeroBubble, which
 * it equals with several parts a device too). It is that one, not ZB-V, as it asks for one part a device only and holds
 * no more activations than 1f1b's first device. FILE.csv: PyTorch's compute table of any other.
 *
 * gpipe and 1f1b are idle for (p - 1) / (m + p - 1) of the time between the first forward and the last backward, for p
 * devices of equal time and m micro-batches.
 *
 * Ownership: a table is its opener's; constant once open. Threads: any reads.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/status.h"
#include "runtime/layout/layout.h"

enum { EL_MICRO_MAX = 512, EL_PARTS_MAX = 128 };

/* A backward is whole, or it comes in two halves: for inputs, which the part before waits for, and for weights. A
 * device that has nothing to do waits: that is no action. */
enum el_action_kind { EL_ACTION_FORWARD, EL_ACTION_BACKWARD, EL_ACTION_BACKWARD_INPUTS, EL_ACTION_BACKWARD_WEIGHTS };
enum { EL_ACTION_KINDS = 4 };

struct el_action {
    enum el_action_kind kind;
    int part, micro;
};

struct el_schedule {
    int n_devices, n_parts, n_micro;
    int device[EL_PARTS_MAX]; /* which one holds the part */
    int n_actions[EL_PARTS_MAX];
    struct el_action *actions[EL_PARTS_MAX]; /* a row per device, each of which has a part */
    /* How many edges' worth of messages a mailbox between two devices has to take, so that nobody waits for ever. */
    int room;
};

/* A schedule that is known by name. */
struct el_schedule_kind {
    const char *name, *summary;
    int parts; /* a device, where --schedule parts does not say otherwise; 1 and `one`: always */
    bool one;
    int lead;    /* forwards that a device has more before its first backward than the next one; 0: all of them */
    bool halves; /* backward is parted */
};

/* The list, ended by a row whose name is NULL; the first is the default. */
const struct el_schedule_kind *el_schedule_list(void);

/* By config.schedule (empty: the list's first), .parts and .n_micro (0: as many as devices, or as the file has).
 * Errors: EL_ERR_INVALID naming the option to change; EL_ERR_IO; EL_ERR_HOST_MEMORY. After a failure too it may be
 * closed. */
enum el_status el_schedule_open(const struct el_train_config *config, int n_devices, struct el_schedule *schedule);
/* A schedule of zeros is legal. */
void el_schedule_close(struct el_schedule *schedule);

/* The most sets of activations that a device holds: a part with a micro-batch has one from its forward until the end of
 * its backward. */
int el_schedule_in_flight(const struct el_schedule *schedule, int device);

/* The part that waits for what an action gives; -1: none does. */
int el_schedule_receiver(const struct el_schedule *schedule, struct el_action action);

/* "3B0" */
const char *el_action_text(struct el_action action, char text[16]);
char el_action_letter(enum el_action_kind kind);

/* Fills in devices, parts, micro-batches and rows. */
bool el_schedule_is_file(const char *name);
