/* The step as it would be without a cause of time, by replaying a job's related traces.
 *
 *     el_replay_begin(traces, &relation, &replay);
 *     el_replay_step(replay, &(struct el_replay_cause){EL_REPLAY_WAITS, NULL}, &step_s);       as often as wanted
 *     el_replay_free(replay);
 *
 * What is kept: the lengths of computation, of pauses and of transfers. What follows from what:
 *
 *     an arrival       its member's time before it; where it had queued behind a call, that call's end
 *     a call's end     the last arrival, plus the transfer; a message's and a root's likewise, if it waited
 *     work after a pause in which a call ended       that end, if the pause is longer than those between kernels or
 *                                                    lines of Python are, or lies in the call
 *
 * The causes:
 *
 *     RANK         these members come to no collective later than the latest of the others
 *     WAITS        all members come to a collective at the mean of their times: the same work, spread evenly
 *     TRANSFERS    communication takes no time once all have arrived
 *     DATA         nobody waits for PyTorch's DataLoader; of a device: where it is idle meanwhile
 *     NAMED        the events that el_kineto_read was asked for take no time, where nothing else computes beside them
 *
 * NOTHING gives relation.step_s. What only now would be waited for (a transfer that shorter computation no longer
 * hides) is found where the trace has a wait at that place. Units: seconds. Threads: one at a time. */
#pragma once

#include "profiles/relate.h"

enum el_replay_kind {
    EL_REPLAY_NOTHING,
    EL_REPLAY_RANK,
    EL_REPLAY_WAITS,
    EL_REPLAY_TRANSFERS,
    EL_REPLAY_DATA,
    EL_REPLAY_NAMED
};

struct el_replay_cause {
    enum el_replay_kind kind;
    const bool *members; /* RANK: which, [n_members] */
};

struct el_replay;
/* Traces and relation stay the caller's, and outlive it. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_replay_begin(struct el_kineto_trace *traces, const struct el_relation *relation,
                               struct el_replay **replay_p);
enum el_status el_replay_step(struct el_replay *replay, const struct el_replay_cause *cause, double *step_s_p);
void el_replay_free(struct el_replay *replay);
