/* What recording a step costs, by counting: how many events of each kind a step has, and what one of each kind costs.
 *
 *     el_cost_count(ops, n_ops, asynchronous, &events);  a pure function of the op list
 *     el_cost_measure(recorder, &prices);                tight loops of a few ms, after training
 *     prices.event_record_ns = ...                       of asynchronous devices, which only they can tell
 *     el_cost_ns(&events, &prices);
 *
 * It adds up what happens on all streams, as if one after the other, so it is an upper bound of what a step loses to
 * these events; what they disturb (caches, the scheduler) is not in it. That is what control blocks are for
 * (runtime/train/control.c). Units: nanoseconds, bytes. Threads: that of the recorder, when training has ended.
 */
#pragma once

#include "profiles/recorder.h"

/* A step's. */
struct el_cost_events {
    int64_t clock_reads;     /* one a stream and an op, and one more for each op that waits */
    int64_t cpu_clock_reads; /* of a thread's CPU clock: two for each collective and copy */
    int64_t event_records;   /* on streams of asynchronous devices, instead of both; only host calls read a clock */
    int64_t kept_bytes;      /* that the recorder copies when the step is over */
};

/* Of one event, in nanoseconds: medians of short loops. */
struct el_cost_prices {
    double clock_read_ns, cpu_clock_read_ns;
    double event_record_ns; /* el_cost_measure leaves 0 */
    double kept_byte_ns;    /* with finding the step's op list, and making room */
};

void el_cost_count(const struct el_op_info *ops, int n_ops, bool asynchronous, struct el_cost_events *events_p);
/* Replays the recorder's first measured step into a recorder of its own. Timing: blocking, some 5 ms.
 * Errors: EL_ERR_INVALID (no step was recorded), EL_ERR_HOST_MEMORY. */
enum el_status el_cost_measure(const struct el_recorder *recorder, struct el_cost_prices *prices_p);
double el_cost_ns(const struct el_cost_events *events, const struct el_cost_prices *prices);
