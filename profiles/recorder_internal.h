/* What a recorder keeps: shared by recorder.c, which fills it, and the files that do the arithmetic. Nobody else
 * includes it. */
#ifndef EL_RECORDER_INTERNAL_H
#define EL_RECORDER_INTERNAL_H

#include "profiles/recorder.h"

/* Of one segment, so that its sums are, too. */
struct op_list {
    int segment;
    int n_ops;
    struct el_op_info *ops; /* their texts are copies: a program's own may end with it */
    int64_t *cpu_ns;        /* an op, over all steps */
    int n_marks;
    struct el_mark *marks;
};

struct step {
    int list;
    size_t first_span;
    struct el_span whole;
    int64_t queue_ns;
};

struct el_recorder {
    int first_position, n_positions;
    struct op_list *lists;
    int n_lists, lists_capacity;
    struct step *steps;
    size_t n_steps, steps_capacity;
    struct el_span *spans;
    size_t n_spans, spans_capacity;
    int64_t n_dropped;
    bool simulated, failed;
    int segment;         /* of the steps that come; negative: they are not kept */
    int64_t **latest_ns; /* [n_positions]: arrivals of the last members, or NULL */
    size_t *n_latest;
};

static inline const struct el_span *el_recorder_spans(const struct el_recorder *recorder, const struct step *step)
{
    return recorder->spans + step->first_span;
}

/* Errors: EL_ERR_INVALID (a position that is not this recorder's), EL_ERR_HOST_MEMORY (spans were lost). */
enum el_status el_recorder_check(const struct el_recorder *recorder, int position);

#endif
