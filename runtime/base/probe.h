/* The observer's interface: what the runtime tells, to whoever listens.
 *
 * The runtime emits and does not know who listens; profiles/ implements this table. A NULL probe, or a NULL hook, costs
 * a branch. Times are of el_clock_ns() unless the step says `simulated`, then they are virtual nanoseconds from 0.
 *
 * Threads: step() is called by the thread that runs the program, between steps, never at the same time for one program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an op is for. The order is the order of a step and of every table and plot. */
#define EL_PHASE_LIST(X)                                                                                               \
    X(EL_PHASE_DATA, "data")                                                                                           \
    X(EL_PHASE_H2D, "h2d")                                                                                             \
    X(EL_PHASE_REPLICATE, "replicate")                                                                                 \
    X(EL_PHASE_SCATTER, "scatter")                                                                                     \
    X(EL_PHASE_FORWARD, "forward")                                                                                     \
    X(EL_PHASE_GATHER, "gather")                                                                                       \
    X(EL_PHASE_LOSS, "loss")                                                                                           \
    X(EL_PHASE_BACKWARD, "backward")                                                                                   \
    X(EL_PHASE_REDUCE, "reduce")                                                                                       \
    X(EL_PHASE_COMM, "comm")                                                                                           \
    X(EL_PHASE_OPTIMIZER, "optimizer")

enum el_phase {
#define EL_PHASE_ENUM(name, text) name,
    EL_PHASE_LIST(EL_PHASE_ENUM)
#undef EL_PHASE_ENUM
        EL_PHASE_COUNT
};

/* What device memory is for. The order is the order of every table and plot. */
#define EL_TAG_LIST(X)                                                                                                 \
    X(EL_TAG_PARAM, "param")                                                                                           \
    X(EL_TAG_GRAD, "grad")                                                                                             \
    X(EL_TAG_OPTIMIZER, "optimizer")                                                                                   \
    X(EL_TAG_BUFFER, "buffer")                                                                                         \
    X(EL_TAG_ACTIVATION, "activation")                                                                                 \
    X(EL_TAG_INPUT, "input")                                                                                           \
    X(EL_TAG_OUTPUT, "output")                                                                                         \
    X(EL_TAG_REPLICA, "replica")                                                                                       \
    X(EL_TAG_CAST, "cast")                                                                                             \
    X(EL_TAG_BUCKET, "bucket")                                                                                         \
    X(EL_TAG_MAILBOX, "mailbox")                                                                                       \
    X(EL_TAG_WORKSPACE, "workspace")                                                                                   \
    X(EL_TAG_ALLOWANCE, "allowance")                                                                                   \
    X(EL_TAG_PADDING, "padding")

enum el_tag {
#define EL_TAG_ENUM(name, text) name,
    EL_TAG_LIST(EL_TAG_ENUM)
#undef EL_TAG_ENUM
        EL_TAG_COUNT
};

const char *el_phase_name(enum el_phase phase);
const char *el_tag_name(enum el_tag tag);
/* For a message: "512 bytes", "1.50 KiB", "20.00 MiB", "8.00 GiB". Returns `text`. */
enum { EL_BYTES_TEXT = 32 };
const char *el_bytes_text(size_t bytes, char text[EL_BYTES_TEXT]);

/* What kind of work an op is: how it counts in compute, communication and copies. */
enum el_op_class {
    EL_CLASS_COMPUTE, /* a kernel */
    EL_CLASS_COPY,    /* host to device, device to device */
    EL_CLASS_COMM,    /* a collective */
    EL_CLASS_HOST     /* loading, making threads: on the stream's thread, not work of the device */
};

/* How a collective moves its bytes. */
struct el_op_messages {
    const char *verb;      /* "all_reduce"; NULL: the op is no collective */
    const char *algorithm; /* "ring"; "auto": its library chooses and does not tell. Both live as long as the program */
    int rounds;            /* messages one after another; 0: nothing is to be moved */
    uint64_t largest_bytes; /* the largest message of this member */
    uint64_t most_bytes;    /* that a member of the group sends and gets, this one or another; 0: not known */
    uint64_t total_bytes;   /* of the data or of the result, whichever is larger */
    const char *dtype;      /* of the elements: "f32" */
    uint64_t given, got;    /* elements that this member gives and gets */
    uint64_t copied_bytes;  /* of its own, from its data to its result: an all-gather that is not in place */
    int rank, size;         /* of this member in its group, and of the group */
    int partner;            /* of a message or a collective with a root: that rank in the group; else -1 */
    int tag;                /* of a message */
};

/* A box of a pipeline's schedule: what is done with which micro-batch in which part of the model. */
struct el_op_piece {
    char kind; /* 'F' forward, 'B' backward, 'I' and 'W' backward for inputs and for weights alone; 0: no box */
    int part;  /* of the model, along its depth */
    int micro; /* micro-batch */
};

/* How an op takes part in a message between two members. */
enum el_op_link { EL_LINK_NONE, EL_LINK_SEND, EL_LINK_RECEIVE };

/* What a kernel works on: as the list of ops in kernels/kernels.h has it. */
enum { EL_OP_SIZES = 8 };
struct el_op_kernel {
    const char *name;  /* "conv1d_forward"; for good; NULL: the op is no kernel */
    const char *dtype; /* "f32"; for good */
    int64_t d[EL_OP_SIZES];
    unsigned operands; /* bit i: it was given operand i */
};

/* What is known of an op before it runs: the same for every step of its program. */
struct el_op_info {
    const char *label; /* "conv1d_forward conv3" */
    enum el_phase phase;
    enum el_op_class op_class;
    int device; /* index into el_step_event.devices' order: the member's position in its job */
    int stream; /* 0 is compute */
    bool again; /* a part of forward that backward needs and computes again: no FLOPs of the model */
    double flops;
    double bytes;
    uint64_t sent_bytes;     /* that leave `device` for another one because of this op */
    uint64_t received_bytes; /* that reach `device` from another one, or from the host */
    int peer;                /* a copy between devices: the one that sends what `device` receives; else -1 */
    struct el_op_messages messages;
    uint64_t
        operation; /* of collectives and messages: equal for all members that take part, in all processes; else 0 */
    enum el_op_link link;
    const char *communicator; /* its name in the job, "world": for good; NULL: it is in none, or has no name */
    struct el_op_piece piece;
    const char *how; /* what a library chose to do it by; NULL: nothing was chosen, or it does not tell */
    struct el_op_kernel kernel;
    int first_wait, n_waits; /* into el_step_event.waits: the ops of other streams that it waits for */
};

struct el_span {
    int64_t begin_ns, end_ns;
};

/* Where memory of a step is allocated or freed, in issue order. Bytes of a buffer beyond those requested are a mark of
 * their own, of tag padding, as in the ledger: live bytes at the step's start and the marks one by one give the
 * ledger's peak. */
struct el_mark {
    int op;     /* the mark lies before the op with this index; n_ops: after all of them */
    int device; /* as el_op_info.device */
    enum el_tag tag;
    int64_t bytes; /* negative: freed. What is never freed lives to the step's end */
};

/* One finished step of one program. `spans` and `ops` have `n_ops` entries; the arrays are the program's: copy what is
 * to be kept. */
struct el_step_event {
    uint64_t step;
    bool simulated;
    struct el_span whole; /* from the first submission to the last completion */
    int n_ops;
    const struct el_op_info *ops;
    const struct el_span *spans; /* NULL when spans are off */
    int64_t span_error_ns;       /* spans may be off by so much against the host's clock; 0: they are of that clock */
    int64_t
        queue_ns; /* the host's work for a step on asynchronous devices: loading, queueing; without waiting; else 0 */
    const int64_t *cpu_ns; /* CPU time of the thread in each collective and copy, 0 for other ops; NULL: not measured */
    int n_marks;
    const struct el_mark *marks; /* the same for every step that shares `ops` */
    int n_waits;
    const int *waits; /* indices of ops, as el_op_info has them; the same for every step that shares `ops` */
};

/* Told of steps and ops while they are issued, by the thread that does it: on asynchronous devices the one that
 * enqueues, elsewhere the stream's own. For marks in another profiler's record; nothing may wait in it. */
struct el_watch {
    void *context;
    /* By the thread that runs the program. The latter is optional. */
    void (*step_begin)(void *context, uint64_t step);
    void (*step_end)(void *context, uint64_t step);
    /* Required, each. `previous` and `next`: the thread's ops of this step before and after this one, or NULL. */
    void (*op_begin)(void *context, const struct el_op_info *op, const struct el_op_info *previous);
    void (*op_end)(void *context, const struct el_op_info *op, const struct el_op_info *next);
};

struct el_probe {
    void *context;
    bool spans;                   /* false: the runtime reads no clock inside a step */
    bool wall_only;               /* spans without CPU time, whose clock takes longer than a short op */
    const struct el_watch *watch; /* NULL: nobody */
    /* Optional: default is to tell nobody. */
    void (*step)(void *context, const struct el_step_event *event);
};
