/* What the files that write traces share: trace.c writes the file, its lanes and steps, trace_op.c single ops there.
 * Nobody else includes it. */
#pragma once

#include <stdio.h>

#include "profiles/trace.h"

struct el_trace {
    const struct el_trace_rank *rank;
    FILE *file;
    int pid, first;        /* of this process; position of its first device */
    int64_t next_id, step; /* the step whose events are written */
    bool comma;
};

/* One op of a step: what its events are made of. */
struct el_trace_op {
    const struct el_op_info *info;
    struct el_span span;
    struct el_span launch; /* when the host queued it; empty: it was computed by its stream's own thread */
    int64_t arrived_ns;    /* when the last member had come, in the span; its begin where nobody is waited for */
    int64_t id;            /* what ties its events together */
};

/* Begins an event: "{"ph": "X", "cat": .., "name": .., "pid": .., "tid": .., "ts": .." and leaves it open. */
void el_trace_begin(struct el_trace *trace, char ph, const char *cat, const char *name, int pid, int tid,
                    int64_t at_ns);
/* A complete event's length, and the begin of its arguments. */
void el_trace_duration(struct el_trace *trace, struct el_span span);
/* A text as JSON has it, in quotes. */
void el_trace_text(struct el_trace *trace, const char *text);

/* The lane of the thread of an op's stream. The stream's own lane is its number, in the process of its device. */
int el_trace_thread(const struct el_op_info *op);

/* trace_op.c: the op on its thread, and on its device's stream where it is work of the device. */
void el_trace_put_op(struct el_trace *trace, const struct el_trace_op *op);
