/* A recorder's contents, for recorder.c and the files with its arithmetic. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "profiles/recorder.h"

/* Of one segment, for separate sums. */
struct op_list {
    int segment;
    int n_ops;
    struct el_op_info *ops; /* with copied texts: a program's may end with it */
    int64_t *cpu_ns;        /* by op, over all steps */
    int n_marks;
    struct el_mark *marks;
    int n_waits;
    int *waits;
};

struct step {
    int list;
    uint64_t number; /* of the job's steps */
    size_t first_span;
    struct el_span whole;
    int64_t queue_ns;
};

struct launch {
    const struct el_op_info *op; /* the program's */
    struct el_span span;
};

/* Known only from all members; NULL: unknown. */
struct told {
    int64_t *latest_ns; /* last arrivals */
    size_t n_latest, n_windows;
    struct el_span *windows;
};

struct el_recorder {
    int first_position, n_positions;
    struct op_list *lists;
    int n_lists;
    size_t lists_room;
    struct step *steps;
    size_t n_steps, steps_room;
    struct el_span *spans;
    size_t n_spans, spans_room;
    bool keeps_launches;
    struct el_span *launches; /* like spans */
    struct launch *queued;    /* of the running step */
    size_t launches_room, n_queued, queued_room;
    int64_t n_dropped;
    bool simulated, failed;
    int segment;       /* of coming steps; negative: not kept */
    struct told *told; /* [n_positions][EL_RECORDER_SEGMENTS] */
};

static inline struct told *el_recorder_told(const struct el_recorder *recorder, int position, int segment)
{
    return &recorder->told[(position - recorder->first_position) * EL_RECORDER_SEGMENTS + segment];
}

static inline const struct el_span *el_recorder_spans(const struct el_recorder *recorder, const struct step *step)
{
    return recorder->spans + step->first_span;
}

static inline const struct op_list *el_recorder_list(const struct el_recorder *recorder, const struct step *step)
{
    return &recorder->lists[step->list];
}

/* A collective or a message of the device. */
static inline bool el_recorder_is_comm(const struct el_op_info *op, int position)
{
    return op->device == position && op->op_class == EL_CLASS_COMM;
}

/* The last arrival, limited to the span. */
static inline int64_t el_recorder_arrival(struct el_span span, int64_t latest_ns)
{
    return latest_ns < span.begin_ns ? span.begin_ns : latest_ns < span.end_ns ? latest_ns : span.end_ns;
}

size_t el_recorder_count(const struct op_list *list, int position);
/* Last arrivals of the list's communication in step `number` of its segment; NULL: unknown. */
const int64_t *el_recorder_latest(const struct el_recorder *recorder, const struct op_list *list, int position,
                                  size_t number);

/* To be freed; NULL: no memory. */
static inline void *el_recorder_copy(const void *array, size_t n, size_t element_bytes)
{
    void *copy = malloc(n * element_bytes + 1);
    if (copy && n > 0) memcpy(copy, array, n * element_bytes);
    return copy;
}

/* Errors: EL_ERR_INVALID (another recorder's position), EL_ERR_HOST_MEMORY (lost spans). */
enum el_status el_recorder_check(const struct el_recorder *recorder, int position);
