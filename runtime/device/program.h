/* A program: the ops of one training step, issued once and run many times.
 *
 *     el_program_create(&p);
 *     el_program_alloc(p, device, EL_TAG_ACTIVATION, n, "x", &x);     a mark: the ledger counts it, nothing is taken
 *     el_program_kernel(p, device, EL_STREAM_COMPUTE, &op, &id);      queued on the stream, in order
 *     el_program_wait(p, device, EL_STREAM_COMM, id);                 the stream's next op starts after op `id`
 *     el_program_free(p, x);
 *     el_program_end(p);                                              plans addresses, prepares kernels
 *     el_program_run(p, step, probe);  ...  el_program_destroy(p);
 *
 * Between create and end nothing computes: the host reads no device data and blocks on nothing. What depends on data
 * ends the step. The devices for which one host thread issues share one program.
 *
 * Memory: alloc and free are marks in issue order, on the device's compute stream. Work on another stream that uses a
 * buffer must be waited for by the compute stream before the buffer is freed: then memory can be reused without further
 * waits. A program's buffers have undefined contents at each step's start. The ledger's peak is a property of the marks
 * alone, so it is the same for every run, and a run costs the ledger nothing.
 *
 * Errors: building calls keep the first failure, and el_program_end returns it, so that a schedule can be written
 * without a check in every line; each call also returns it. Threads: one at a time.
 */
#pragma once

#include "runtime/device/device.h"

struct el_program;

/* What all ops have. */
struct el_op_head {
    const char *label; /* copied; NULL: the kernel's name */
    enum el_phase phase;
    bool again;                          /* el_op_info has it */
    uint64_t sent_bytes, received_bytes; /* to and from other devices and the host, counted for `device` */
};

/* Operands of one of an op's many tensors, and args.d[0] of it. */
struct el_tensor_views {
    struct el_view views[EL_TENSOR_POINTERS];
    int64_t n;
};

/* A kernel: args.p are filled in from `views` when addresses are known. Its scratch comes from the device's kernel
 * table and is marked as `workspace`, `allowance` and `padding` for just this op. */
struct el_kernel_op {
    struct el_op_head head;
    enum el_op_kind op;
    enum el_dtype dtype;
    struct el_view views[EL_ARGS_POINTERS]; /* {0} where the op has no such operand */
    struct el_kernel_args args;
    const struct el_tensor_views *tensors; /* copied: what views and args.d[0] follow from; NULL: there is one */
    int n_tensors;
};

/* What a call that a graph may have is made for: to queue its work; to have it noted, for the graph; or only to hear
 * that the graph is launched again. */
enum el_call_graph { EL_CALL_QUEUES, EL_CALL_NOTES, EL_CALL_AGAIN };

/* The arguments of a call. `p` are the call's views as addresses. On synchronous devices each call has the thread of
 * its stream. On asynchronous ones all calls are made by the one thread that runs the program, while the device is
 * behind: a call that touches device memory queues its work on `stream`, or waits for it first
 * (el_device_stream_synchronize). Calls of one group come one right after the other there, so that none may wait for a
 * later one: `member` counts them, and the last one knows that all were called. */
struct el_call_args {
    void *context;
    const void *arguments; /* the op's copy of them */
    void *const *p;
    uint64_t step;
    void *stream;          /* the library's own stream (cudaStream_t); NULL on synchronous devices */
    int member, n_members; /* of the group's calls that this thread makes; 0 of 1 where each has a thread */
    enum el_call_graph graph;
};

/* Which collective a call is one member's part of. Calls of one program with equal groups are made side by side (see
 * el_call_args); on simulated devices they end together, those of other members' programs too (joint.h). */
struct el_call_group {
    const void *of;  /* the communicator: the same for all its members in this process; NULL: no group */
    uint64_t number; /* of the operation among those of the communicator */
    int n_members;   /* of the communicator, in this process */
};

static inline bool el_call_group_same(struct el_call_group a, struct el_call_group b)
{
    return a.of == b.of && a.number == b.number;
}

/* Which message between two members a call sends or receives. On simulated devices what is received ends when it has
 * been sent: the receiver's k-th call with these words waits for the sender's k-th, in another member's program. */
struct el_call_message {
    const void *of; /* the communicator: the same for all its members in this process; NULL: no message */
    int from, to, tag;
    bool sends;
};

/* Room for what a call takes along by value. */
enum { EL_CALL_ARGUMENT_BYTES = 32 };

/* A function run in stream order by the stream's thread: a collective, loading a batch, making a thread. */
struct el_call_op {
    struct el_op_head head;
    enum el_op_class op_class; /* EL_CLASS_COMM or EL_CLASS_HOST */
    bool blocks; /* on asynchronous devices: it waits for the device or for other members, so its time is no work */
    bool notes;  /* all that it does to the device is queued on its stream: a graph may have it */
    enum el_status (*run)(const struct el_call_args *args);
    void *context;
    const void *arguments; /* copied; NULL: none */
    size_t argument_bytes; /* at most EL_CALL_ARGUMENT_BYTES */
    struct el_view views[EL_ARGS_POINTERS];
    double bytes;             /* payload, for costs */
    const char *communicator; /* what el_op_info says of it */
    struct el_op_messages messages;
    struct el_call_group group;
    struct el_call_message message;
    uint64_t operation; /* what tells the collective, or the link, from all others in all processes; 0: nothing does */
};

enum el_copy_how {
    EL_COPY_PINNED = 1,   /* it is el_device_host_alloc's, pinned: read when the stream comes to it, and not before */
    EL_COPY_PAGEABLE = 2, /* by the driver, which stages it: may be filled anew at once */
    EL_COPY_WAITS = 4     /* the host continues after the copy and all before it on its stream */
};

enum el_status el_program_create(struct el_program **program_p);
/* NULL is legal. Releases plans; the devices' arenas return to the devices. */
void el_program_destroy(struct el_program *program);

enum el_status el_program_alloc(struct el_program *program, struct el_device *device, enum el_tag tag, size_t bytes,
                                const char *name, struct el_buffer **buffer_p);
/* The same, where `padding` of the bytes are gaps between what lies in it: booked under that tag. */
enum el_status el_program_alloc_padded(struct el_program *program, struct el_device *device, enum el_tag tag,
                                       size_t bytes, size_t padding, const char *name, struct el_buffer **buffer_p);
/* NULL is legal. The struct stays valid until the program is destroyed; only its memory may be reused. */
void el_program_free(struct el_program *program, struct el_buffer *buffer);

/* Each queues one op on a device's stream. `op_id_p` may be NULL. */
enum el_status el_program_kernel(struct el_program *program, struct el_device *device, int stream,
                                 const struct el_kernel_op *op, int *op_id_p);
enum el_status el_program_copy(struct el_program *program, struct el_device *device, int stream,
                               const struct el_op_head *head, struct el_view destination, struct el_view source,
                               size_t bytes, int *op_id_p);
enum el_status el_program_call(struct el_program *program, struct el_device *device, int stream,
                               const struct el_call_op *op, int *op_id_p);
/* How copy `op_id` reads the host's memory on an asynchronous device, of enum el_copy_how. 0, where it is not called:
 * by the host, which may fill it anew at once. Elsewhere a copy is done by its stream's thread. */
void el_program_copy_how(struct el_program *program, int op_id, unsigned how);

/* Ops that are queued from now on belong to this box of a pipeline's schedule; one of kind 0: to none. */
void el_program_piece(struct el_program *program, struct el_op_piece piece);

/* The next op queued on the stream starts after op `op_id` has ended. -1 is legal: no wait. */
enum el_status el_program_wait(struct el_program *program, struct el_device *device, int stream, int op_id);
/* The stream's next op starts after all that the next op of stream `other` waits for. */
enum el_status el_program_wait_like(struct el_program *program, struct el_device *device, int stream, int other);
/* The id of the last op queued on the stream, or -1. */
int el_program_last(const struct el_program *program, const struct el_device *device, int stream);

/* A failure of whoever issues: kept as those of building calls are. */
void el_program_fail(struct el_program *program, enum el_status status);

/* Before el_program_end, on asynchronous devices: it is to run as a graph of their library (a CUDA graph). The first
 * run queues op by op, and makes the graph when it is over; from the second on a run is one launch, but for those whose
 * spans `probe` wants. Its host calls are made before the launch, in order. Errors of el_program_end: EL_ERR_ABSENT
 * where the backend makes none, EL_ERR_INVALID naming an op that none can have. */
void el_program_use_graph(struct el_program *program);
/* How many runs were a graph's launch. */
int64_t el_program_graph_runs(const struct el_program *program);

/* Before el_program_end: its buffers are to be where those of `lender` are, if that has as much room on every device;
 * else it has memory of its own, of as much room as both need. A lender has ended, and is destroyed after those that
 * borrowed; one runs at a time. */
void el_program_borrow(struct el_program *program, const struct el_program *lender);
/* Whether its memory is the lender's. Of simulated devices there is none. */
bool el_program_has_borrowed(const struct el_program *program);

/* Plans addresses and prepares every kernel on its computing thread. Errors: the first failure of building; EL_ERR_OOM.
 */
enum el_status el_program_end(struct el_program *program);

/* Its bytes go into its devices' ledgers, as those of a step that ran. */
void el_program_book(struct el_program *program);

/* Runs the step and returns when every stream has finished it. `probe` may be NULL.
 * Errors: the first op that failed; then the program and its communicators cannot be used again. */
enum el_status el_program_run(struct el_program *program, uint64_t step, const struct el_probe *probe);

/* Calls hook(context) once, from the failing stream's thread, as soon as an op of a run fails: to abort collectives. */
void el_program_on_failure(struct el_program *program, void (*hook)(void *context), void *context);

/* Calls hook(context) again and again while the host waits for the end of a run on asynchronous devices; what it
 * returns other than EL_OK fails the run (and on_failure's hook is called, which must make the streams end). Any number
 * of hooks; the same pair counts once. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_program_on_wait(struct el_program *program, enum el_status (*hook)(void *context), void *context);

int el_program_op_count(const struct el_program *program);
const struct el_op_info *el_program_ops(const struct el_program *program);
/* The last run's duration: virtual on simulated devices. Units: nanoseconds. */
int64_t el_program_elapsed_ns(const struct el_program *program);
/* FLOPs of the kernels of forward and backward, but for what is computed again. */
double el_program_model_flops(const struct el_program *program);
/* The step's own bytes on a device, and the phase in which they peak; NULL if it has none. */
const struct el_ledger *el_program_ledger(const struct el_program *program, const struct el_device *device,
                                          enum el_phase *peak_phase_p);
