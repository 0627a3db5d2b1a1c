/* A device's memory over a step: live bytes by tag at each moment where they change, on the mean step's clock; and what
 * its two lanes do meanwhile, so that communication behind compute is seen.
 *
 *     el_memory_timeline_make(recorder, position, ledger.live_by_tag, &timeline);     offline, after training
 *     timeline.points[timeline.peak] ...                                              the ledger's peak, found again
 *     el_memory_timeline_free(&timeline);
 *
 * Marks of allocations and frees lie between ops of the schedule. A mark's time is the start of the first op at or
 * after it on the device's compute stream, a mean over the recorded steps; the step's end where there is none. Marks
 * that fall on one time make one point, the last; where the sum was larger among them than before them, that moment is
 * a point of its own at the same time, so the peak is never lost. A point also stands where the phase changes. The
 * phase is that of the compute stream; where nothing runs on it for more than a hundredth of the step, that of the
 * device's other streams (copies, collectives).
 *
 * Lanes: collectives, copies between devices and all of other streams than the first are the lane of communication,
 * the rest is the lane of compute. The wait of a collective for its last member is apart where it is known.
 *
 * Where steps differ (an epoch's last batch is smaller), those that ran the list with the highest peak are the mean
 * step's. Units: nanoseconds and bytes. Threads: that of the recorder, when training has ended.
 */
#pragma once

#include "profiles/recorder.h"

struct el_memory_point {
    int64_t at_ns;       /* after the step's start */
    int phase;           /* enum el_phase from here on; EL_PHASE_COUNT: nothing runs */
    const char *label;   /* of the op that begins here; "" where none does; the recorder's */
    int64_t total_bytes; /* sum of what follows */
    int64_t bytes[EL_TAG_COUNT];
};

enum el_timeline_lane { EL_LANE_COMPUTE, EL_LANE_COMM };

/* Ops of one phase, one after another in a lane. */
struct el_timeline_box {
    enum el_timeline_lane lane;
    int phase;                /* enum el_phase; EL_PHASE_COUNT: waits for other members */
    const char *communicator; /* NULL: none; the recorder's */
    struct el_span span;
};

struct el_memory_timeline {
    struct el_memory_point *points; /* the first at 0, the last at the step's end */
    int n;
    size_t room;
    int peak;                      /* index of the first point with the largest sum */
    struct el_timeline_box *boxes; /* of both lanes, each in the order of its ops */
    int n_boxes;
};

/* `base` is what lives across steps. Ownership: free the timeline before the recorder.
 * Errors: EL_ERR_INVALID (no step was recorded), EL_ERR_HOST_MEMORY. */
enum el_status el_memory_timeline_make(const struct el_recorder *recorder, int position,
                                       const size_t base[EL_TAG_COUNT], struct el_memory_timeline *timeline_p);
void el_memory_timeline_free(struct el_memory_timeline *timeline);
