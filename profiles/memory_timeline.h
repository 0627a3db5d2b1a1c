/* A device's memory over the mean step: live bytes by tag at each change, and its lanes of compute and communication.
 *
 *     el_memory_timeline_make(recorder, position, ledger.live_by_tag, &timeline);     after training
 *     timeline.points[timeline.peak] ...                                              the ledger's peak
 *     el_memory_timeline_free(&timeline);
 *
 * A mark of an allocation or free has the start time of the next op on the compute stream, the mean over steps, or the
 * step's end. Marks at one time become one point, the last; if an earlier one had a larger sum it is a point too, so
 * the peak is kept. Phase changes are points. The phase is the compute stream's; where that is idle for more than a
 * hundredth of the step, that of the other streams.
 *
 * Lanes: collectives, copies between devices and streams other than the first are communication, the rest compute. A
 * collective's wait for its last member is separate if known.
 *
 * If steps differ (an epoch's last batch), the steps with the highest peak count. Units: nanoseconds and bytes.
 * Threads: the recorder's, after training. */
#pragma once

#include "profiles/recorder.h"

struct el_memory_point {
    int64_t at_ns;       /* after the step's start */
    int phase;           /* enum el_phase from here on; EL_PHASE_COUNT: idle */
    const char *label;   /* of the op that begins here, or ""; the recorder's */
    int64_t total_bytes; /* sum of the following */
    int64_t bytes[EL_TAG_COUNT];
};

enum el_timeline_lane { EL_LANE_COMPUTE, EL_LANE_COMM };

/* Consecutive ops of one phase in a lane. */
struct el_timeline_box {
    enum el_timeline_lane lane;
    int phase;                /* enum el_phase; EL_PHASE_COUNT: waits for other members */
    const char *communicator; /* NULL: none; the recorder's */
    struct el_span span;
};

struct el_memory_timeline {
    struct el_memory_point *points; /* from 0 to the step's end */
    int n;
    size_t room;
    int peak;                      /* index of the first point with the largest sum */
    struct el_timeline_box *boxes; /* both lanes', each in the order of its ops */
    int n_boxes;
};

/* `base`: bytes that live across steps. Free the timeline before the recorder. Errors: EL_ERR_INVALID (no recorded
 * step), EL_ERR_HOST_MEMORY. */
enum el_status el_memory_timeline_make(const struct el_recorder *recorder, int position,
                                       const size_t base[EL_TAG_COUNT], struct el_memory_timeline *timeline_p);
void el_memory_timeline_free(struct el_memory_timeline *timeline);
