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
 * Building computes nothing and reads no device data. Devices of one issuing thread share a program.
 *
 * Memory: alloc and free are marks in issue order on the compute stream, which must wait for other streams' uses
 * before a free. Contents are undefined at each step's start. The ledger's peak depends on the marks alone.
 *
 * Errors: each building call returns its failure, and el_program_end the first one, so calls need no checks. Threads:
 * one at a time. */
#pragma once

#include "runtime/device/device.h"

struct el_program;

struct el_op_head {
    const char *label; /* copied; NULL: the kernel's */
    enum el_phase phase;
    bool again;
    uint64_t sent_bytes, received_bytes; /* to and from other devices and the host, counted for `device` */
};

/* Operands and args.d[0] of one tensor of many. */
struct el_tensor_views {
    struct el_view views[EL_TENSOR_POINTERS];
    int64_t n;
};

/* args.p come from `views`. Scratch is marked as `workspace`, `allowance` and `padding` for this op only. */
struct el_kernel_op {
    struct el_op_head head;
    enum el_op_kind op;
    enum el_dtype dtype;
    struct el_view views[EL_ARGS_POINTERS]; /* {0}: no such operand */
    struct el_kernel_args args;
    const struct el_tensor_views *tensors; /* copied; replaces views and args.d[0]; NULL: one tensor */
    int n_tensors;
};

/* Why a call is made: to queue work; to record it into a graph; or because the graph is launched again. */
enum el_call_graph { EL_CALL_QUEUES, EL_CALL_NOTES, EL_CALL_AGAIN };

/* `p`: the views as addresses. On synchronous devices a call runs on its stream's thread. On asynchronous ones the
 * program's thread makes all calls ahead of the device: a call that touches device memory queues on `stream` or waits
 * first (el_device_stream_synchronize), and must not wait for a later call of its group. */
struct el_call_args {
    void *context;
    const void *arguments;
    void *const *p;
    uint64_t step;
    void *stream;          /* native (cudaStream_t); NULL if synchronous */
    int member, n_members; /* index among the group's calls of this thread; 0 of 1 with a thread each */
    enum el_call_graph graph;
};

/* The collective that a call is part of. A program's calls of one group are made adjacently; on simulated devices they
 * end together across programs (joint.h). */
struct el_call_group {
    const void *of;  /* communicator, equal in this process; NULL: none */
    uint64_t number; /* of the communicator's operations */
    int n_members;   /* in this process */
};

static inline bool el_call_group_same(struct el_call_group a, struct el_call_group b)
{
    return a.of == b.of && a.number == b.number;
}

/* The message that a call sends or receives. On simulated devices the receiver's k-th call with these fields ends
 * after the sender's k-th in another program. */
struct el_call_message {
    const void *of; /* communicator, equal in this process; NULL: none */
    int from, to, tag;
    bool sends;
};

enum { EL_CALL_ARGUMENT_BYTES = 48 };

/* A function in stream order on the stream's thread: a collective, loading a batch. */
struct el_call_op {
    struct el_op_head head;
    enum el_op_class op_class;
    bool blocks; /* asynchronous: it waits for the device or other members, so its time is not work */
    bool notes;  /* all its device work is queued on its stream: allowed in graphs */
    enum el_status (*run)(const struct el_call_args *args);
    void *context;
    const void *arguments; /* copied; NULL: none */
    size_t argument_bytes; /* at most EL_CALL_ARGUMENT_BYTES */
    struct el_view views[EL_ARGS_POINTERS];
    double bytes;
    const char *communicator; /* for el_op_info */
    struct el_op_messages messages;
    struct el_call_group group;
    struct el_call_message message;
    uint64_t operation; /* identifies the collective or link in all processes; 0: none */
};

enum el_copy_how {
    EL_COPY_PINNED = 1,   /* pinned (el_device_host_alloc): read only when the stream reaches the copy */
    EL_COPY_PAGEABLE = 2, /* not pinned: read before the copy returns, or as late as that */
    EL_COPY_WAITS = 4     /* the host waits for the copy and all before it on its stream */
};

enum el_status el_program_create(struct el_program **program_p);
void el_program_destroy(struct el_program *program); /* NULL is legal */

enum el_status el_program_alloc(struct el_program *program, struct el_device *device, enum el_tag tag, size_t bytes,
                                const char *name, struct el_buffer **buffer_p);
/* `padding` of the bytes are gaps, booked under that tag. */
enum el_status el_program_alloc_padded(struct el_program *program, struct el_device *device, enum el_tag tag,
                                       size_t bytes, size_t padding, const char *name, struct el_buffer **buffer_p);
/* NULL is legal. The struct stays valid until the program is destroyed. */
void el_program_free(struct el_program *program, struct el_buffer *buffer);

/* Each queues one op. `op_id_p` may be NULL. */
enum el_status el_program_kernel(struct el_program *program, struct el_device *device, int stream,
                                 const struct el_kernel_op *op, int *op_id_p);
enum el_status el_program_copy(struct el_program *program, struct el_device *device, int stream,
                               const struct el_op_head *head, struct el_view destination, struct el_view source,
                               size_t bytes, int *op_id_p);
enum el_status el_program_call(struct el_program *program, struct el_device *device, int stream,
                               const struct el_call_op *op, int *op_id_p);
/* How a copy reads host memory on an asynchronous device. Default 0: by the host, reusable at once. */
void el_program_copy_how(struct el_program *program, int op_id, unsigned how);

/* The pipeline schedule's box of later ops; kind 0: none. */
void el_program_piece(struct el_program *program, struct el_op_piece piece);

/* The stream's next op starts after op `op_id`. -1: no wait. */
enum el_status el_program_wait(struct el_program *program, struct el_device *device, int stream, int op_id);
/* The stream's next op waits for all that stream `other`'s next op waits for. */
enum el_status el_program_wait_like(struct el_program *program, struct el_device *device, int stream, int other);
/* -1: none. */
int el_program_last(const struct el_program *program, const struct el_device *device, int stream);

/* Keeps the issuer's failure as a building call's. */
void el_program_fail(struct el_program *program, enum el_status status);

/* Before el_program_end, asynchronous devices: runs as a graph (CUDA graph). The first run queues op by op and then
 * makes the graph; later runs are one launch, except runs whose spans `probe` wants. Host calls precede the launch, in
 * order. Errors of el_program_end: EL_ERR_ABSENT where the backend has no graphs, EL_ERR_INVALID naming an op that
 * cannot be in one. */
void el_program_use_graph(struct el_program *program);
int64_t el_program_graph_runs(const struct el_program *program);

/* Before el_program_end: uses `lender`'s memory if that is large enough on every device; else gets its own, as large
 * as both need. The lender has ended and is destroyed later; one runs at a time. */
void el_program_borrow(struct el_program *program, const struct el_program *lender);
/* False on simulated devices. */
bool el_program_has_borrowed(const struct el_program *program);

/* Plans addresses and prepares each kernel on its computing thread. Errors: the first building failure; EL_ERR_OOM. */
enum el_status el_program_end(struct el_program *program);

/* Books its bytes in the devices' ledgers as a finished step. */
void el_program_book(struct el_program *program);

/* Returns when every stream has finished. `probe` may be NULL. Errors: the first op that failed; program and
 * communicators are then unusable. */
enum el_status el_program_run(struct el_program *program, uint64_t step, const struct el_probe *probe);

/* Calls hook(context) once, on the failing stream's thread, when an op fails: to abort collectives. */
void el_program_on_failure(struct el_program *program, void (*hook)(void *context), void *context);

/* Calls hook(context) repeatedly while the host waits for asynchronous devices; its failure fails the run
 * (on_failure's hook must then end the streams). Equal pairs count once. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_program_on_wait(struct el_program *program, enum el_status (*hook)(void *context), void *context);

int el_program_op_count(const struct el_program *program);
const struct el_op_info *el_program_ops(const struct el_program *program);
/* Nanoseconds; virtual on simulated devices. */
int64_t el_program_elapsed_ns(const struct el_program *program);
/* FLOPs of forward and backward kernels without recomputation. */
double el_program_model_flops(const struct el_program *program);
/* The step's bytes on a device, and the phase of their peak; NULL: none. */
const struct el_ledger *el_program_ledger(const struct el_program *program, const struct el_device *device,
                                          enum el_phase *peak_phase_p);
