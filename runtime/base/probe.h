/* The observer's interface: the runtime reports, profiles/ implements. A NULL probe or hook costs a branch. Times are
 * el_clock_ns(), or virtual nanoseconds from 0 if the step is `simulated`. Threads: the program's thread calls step(),
 * between steps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of a step and of every table and plot. */
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

/* In the order of every table and plot. */
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
/* "512 bytes", "1.50 KiB", "20.00 MiB", "8.00 GiB". Returns `text`. */
enum { EL_BYTES_TEXT = 32 };
const char *el_bytes_text(size_t bytes, char text[EL_BYTES_TEXT]);

enum el_op_class {
    EL_CLASS_COMPUTE,
    EL_CLASS_COPY, /* between host and device, or devices */
    EL_CLASS_COMM,
    EL_CLASS_HOST /* loading and the like, on the stream's thread */
};

struct el_op_messages {
    const char *verb;       /* "all_reduce"; NULL: no collective */
    const char *algorithm;  /* "ring"; "auto": the library's choice, unknown. Both live as long as the program */
    int rounds;             /* consecutive messages */
    uint64_t largest_bytes; /* of this member's messages */
    uint64_t most_bytes;    /* sent and received by the busiest member; 0: unknown */
    uint64_t total_bytes;   /* of data or result, the larger */
    const char *dtype;      /* "f32" */
    uint64_t given, got;    /* elements */
    uint64_t copied_bytes;  /* own data copied to the result: an all-gather not in place */
    int rank, size;         /* in the group */
    int partner;            /* rank of a message's partner or a collective's root; else -1 */
    int tag;
};

/* A box of a pipeline's schedule. */
struct el_op_piece {
    char kind; /* 'F' forward, 'B' backward, 'I', 'W' backward for inputs, weights only; 0: none */
    int part;  /* of the model, by depth */
    int micro;
};

enum el_op_link { EL_LINK_NONE, EL_LINK_SEND, EL_LINK_RECEIVE };

/* See the list of ops in kernels/kernels.h. */
enum { EL_OP_SIZES = 8 };
struct el_op_kernel {
    const char *name;  /* "conv1d_forward", static; NULL: no kernel */
    const char *dtype; /* "f32", static */
    int64_t d[EL_OP_SIZES];
    unsigned operands; /* bit i: operand i is given */
};

/* Known before an op runs; the same for every step of its program. */
struct el_op_info {
    const char *label; /* "conv1d_forward conv3" */
    enum el_phase phase;
    enum el_op_class op_class;
    int device; /* the member's position in its job */
    int stream; /* 0 is compute */
    bool again; /* recomputed forward: not in the model's FLOPs */
    double flops;
    double bytes;
    uint64_t sent_bytes;     /* leave `device` */
    uint64_t received_bytes; /* reach `device` from other devices or the host */
    int peer;                /* source device of a copy between devices; else -1 */
    struct el_op_messages messages;
    uint64_t operation; /* identifies a collective or message in all processes; else 0 */
    enum el_op_link link;
    const char *communicator; /* "world", static; NULL: none */
    struct el_op_piece piece;
    const char *how; /* the library's choice; NULL: none or unknown */
    struct el_op_kernel kernel;
    int first_wait, n_waits; /* into el_step_event.waits: ops of other streams */
};

struct el_span {
    int64_t begin_ns, end_ns;
};

/* Memory of a step allocated or freed, in issue order. Padding has marks of its own, as in the ledger: live bytes at
 * the step's start plus the marks give the ledger's peak. */
struct el_mark {
    int op; /* before the op with this index; n_ops: at the end */
    int device;
    enum el_tag tag;
    int64_t bytes; /* negative: freed; what is not freed lives to the step's end */
};

/* A finished step. `spans` and `ops` have `n_ops` entries; all arrays belong to the program. */
struct el_step_event {
    uint64_t step;
    bool simulated;
    struct el_span whole; /* first submission to last completion */
    int n_ops;
    const struct el_op_info *ops;
    const struct el_span *spans; /* NULL: off */
    int64_t span_error_ns;       /* bound against the host's clock; 0: measured by it */
    int64_t queue_ns;            /* host work of a step on asynchronous devices, without waits; else 0 */
    const int64_t *cpu_ns;       /* the thread's, per collective and copy, else 0; NULL: not measured */
    int n_marks;
    const struct el_mark *marks; /* constant while `ops` is */
    int n_waits;
    const int *waits; /* op indices; constant while `ops` is */
};

/* Called at issue, by the issuing thread (asynchronous devices: the one that enqueues). For another profiler's marks;
 * must not block. */
struct el_watch {
    void *context;
    /* On the program's thread. step_end is optional. */
    void (*step_begin)(void *context, uint64_t step);
    void (*step_end)(void *context, uint64_t step);
    /* Required. `previous`, `next`: the thread's neighbouring ops in this step, or NULL. */
    void (*op_begin)(void *context, const struct el_op_info *op, const struct el_op_info *previous);
    void (*op_end)(void *context, const struct el_op_info *op, const struct el_op_info *next);
};

struct el_probe {
    void *context;
    bool spans;     /* false: no clock is read within a step */
    bool wall_only; /* without CPU time, as reading that takes longer than a short op */
    const struct el_watch *watch;
    /* Optional. */
    void (*step)(void *context, const struct el_step_event *event);
};
