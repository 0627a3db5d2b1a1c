/* Private to this folder: the insides of devices and programs. */
#pragma once

#include <stdatomic.h>

#include "runtime/base/grow.h"
#include "runtime/device/device_ops.h"
#include "runtime/device/joint.h"

struct el_device {
    const struct el_device_ops *ops;
    void *state;
    struct el_device_spec spec;
    char name[EL_DEVICE_NAME_BYTES];
    void *streams[EL_DEVICE_STREAMS_MAX];
    void *marks[EL_DEVICE_STREAMS_MAX]; /* events of el_device_enqueue_wait, opened at first use */
    bool taken[EL_DEVICE_STREAMS_MAX];  /* by communicators */
    /* Where the last program keeps them, to find them fast. */
    int queue_hints[EL_DEVICE_STREAMS_MAX], memory_hint;
    struct el_ledger ledger; /* persistent allocations, and peaks of finished steps */
    struct el_persistent *allocations;
    int64_t reserved_bytes;
    int64_t adopted_bytes; /* mapped by others, of these */
    int64_t inject_hits;
    int64_t taken_bytes;           /* by injected leaks */
    _Atomic(const char *) issuing; /* asynchronous: the op that is being queued, and since when; 0: none is */
    _Atomic int64_t issuing_since_ns;
    _Atomic bool issues_first; /* the program's first run: libraries load their kernels in it */
};

/* After the buffer has a place. */
static inline void *el_view_address(struct el_view view)
{
    return (void *)(view.buffer ? view.buffer->address + view.offset : view.offset);
}

struct el_persistent {
    struct el_buffer buffer; /* first */
    struct el_persistent *next, **link;
    struct el_lent_memory lent; /* release NULL: the backend's own */
};

/* Bytes booked under another tag: gaps as padding, possible needs as allowance. */
struct el_buffer_part {
    enum el_tag tag;
    size_t bytes;
};

/* Memory of a step, between two marks. */
struct el_step_buffer {
    struct el_buffer buffer;
    struct el_buffer_part part;
    int allocated, freed; /* in mark order; freed -1: lives to the step's end */
    size_t offset;
    size_t tried;
};

enum el_task_kind { EL_TASK_KERNEL, EL_TASK_COPY, EL_TASK_CALL };

struct el_task {
    enum el_task_kind kind;
    int queue;
    int n_waits;
    int first_wait;  /* into program->waits */
    int64_t cost_ns; /* simulated: its time, given who is busy meanwhile (beside.c) */
    struct el_call_group group;
    bool awaited;
    struct el_call_message message;
    int message_number;                     /* among equal messages of this program */
    int64_t alone_ns, beside_ns;            /* simulated: its time alone, and beside others */
    double busy_before_ns;                  /* scratch of beside.c */
    double stretch;                         /* injected factor on a kernel's time; 0: none */
    int64_t pause_ns;                       /* injected */
    struct el_view views[EL_ARGS_POINTERS]; /* copy: destination, source */
    struct el_buffer *workspace;
    union {
        struct {
            const struct el_kernel *kernel;
            struct el_kernel_args args;
            int first_tensor; /* into program->tensors, if it has many */
        };
        struct {
            size_t copy_bytes;
            unsigned copy_how;
        };
        struct {
            enum el_status (*run)(const struct el_call_args *args);
            void *context;
            bool blocks, notes;
            void *p[EL_ARGS_POINTERS];
            _Alignas(16) unsigned char arguments[EL_CALL_ARGUMENT_BYTES];
        };
    };
};

struct el_queue {
    struct el_program *program;
    struct el_device *device;
    int stream;
    int index; /* in program->queues */
    int n_tasks;
    size_t room;
    int *tasks;      /* ids */
    int64_t free_ns; /* simulated: the end of the last resolved op */
    int beside;      /* scratch of beside.c */
    int n_pending;
    int pending[64];
};

struct el_step_memory {
    struct el_device *device;
    struct el_ledger ledger;
    int peak_task; /* the op that needed the peak's last buffer */
    uintptr_t arena;
    size_t arena_bytes;
};

struct el_async_device {
    struct el_device *device;
    void *stream, *anchor; /* the stream and event of the clock anchor */
    int64_t anchor_ns, error_ns;
};

/* Made at the end of building an asynchronous program (execute_async.c). */
struct el_async_run {
    int *order;          /* [n_tasks] issue order: a group's calls are adjacent */
    void **streams;      /* [n_queues] */
    void **done;         /* [n_tasks] events of awaited ops; else NULL */
    void **begin, **end; /* [n_tasks] timed events; NULL before the first timed run, and for host calls */
    bool *follows;       /* [n_tasks] it begins at the end of the op before on its stream */
    int n_devices;
    struct el_async_device *devices; /* [n_devices] */
    const struct el_device *active;
    int64_t queue_ns;             /* host time to queue the last run, without waiting */
    bool has_ended;               /* a run has, so that kernels are loaded */
    struct el_async_graph *graph; /* NULL: none (async_graph.c) */
};

struct el_op_at {
    int program, id;
};

struct el_ordered {
    int program, id;
    struct el_op_at sender; /* of the message it receives; program -1: none */
};

struct el_wait_hook {
    enum el_status (*hook)(void *context);
    void *context;
};

struct el_program {
    enum el_status failure;
    struct el_error error;
    bool ended;
    bool wants_graph;
    struct el_types *types;          /* element types in memory (types.c); NULL: unchecked */
    const struct el_program *lender; /* of memory; NULL: none */
    bool has_borrowed;               /* all arenas are borrowed */
    int n_tasks;
    size_t task_room, info_room, label_room;
    struct el_task *tasks;
    struct el_op_info *infos;
    char **labels; /* owned copies, one per task */
    int n_waits;
    size_t wait_room;
    int *waits;
    int n_tensors; /* of ops with many */
    size_t tensor_room, tensor_view_room;
    struct el_kernel_tensor *tensors;
    struct el_tensor_views *tensor_views;
    int n_queues;
    size_t queue_room;
    struct el_queue **queues;
    int n_devices;
    size_t device_room;
    struct el_step_memory *memory; /* [n_devices] */
    int n_buffers;
    size_t buffer_room;
    struct el_step_buffer **buffers;
    void (*on_failure)(void *context);
    void *failure_context;
    struct el_op_piece piece; /* of the ops to come */
    int mark_clock;           /* orders allocations and frees */
    int n_marks;
    size_t mark_room;
    struct el_mark *marks; /* for observers */
    struct el_span *spans;
    int64_t *cpu_ns; /* the thread's, in each collective and copy; else 0 */
    struct el_span whole;
    /* A run's state. */
    uint64_t step;
    bool timed;
    bool wall_only; /* without CPU time */
    const struct el_watch *watch;
    _Atomic uint32_t run;   /* counts runs; an op is done when its `done` is equal */
    _Atomic uint32_t *done; /* [n_tasks] */
    _Atomic uint32_t pending;
    _Atomic uint32_t failed;  /* 1: a task failed, the rest is skipped */
    _Atomic uint32_t claimed; /* who stores run_error */
    struct el_error run_error;
    struct el_async_run *async; /* NULL if synchronous */
    struct el_ordered *order;   /* [n_tasks] simulated: order of resolution; NULL in a joint */
    struct el_joint *joint;     /* NULL: resolved alone */
    int joint_member;
    int64_t span_error_ns;
    int n_wait_hooks;
    size_t wait_hook_room;
    struct el_wait_hook *wait_hooks;
};

static inline enum el_status el_program_keep(struct el_program *program, enum el_status status)
{
    if (status != EL_OK && program->failure == EL_OK) {
        program->failure = status;
        el_error_take(status, &program->error);
    }
    return status;
}

void el_ledger_add(struct el_ledger *ledger, enum el_tag tag, size_t bytes);
void el_ledger_remove(struct el_ledger *ledger, enum el_tag tag, size_t bytes);
/* The peak of `base`'s live bytes plus a step's. */
void el_ledger_merge_step(struct el_ledger *base, const struct el_ledger *step);

#define EL_PROGRAM_GROW(array, n, room)                                                                                \
    (EL_GROW(array, room, (size_t)(n) + 1) ? EL_OK : el_fail_errno("a program of %d ops", (n) + 1))

/* plan.c: assigns offsets in each device's arena, and arena_bytes. */
enum el_status el_program_plan(struct el_program *program);

/* order.c: all n_tasks ids in an order in which one thread can issue them: issue order, except that a group's calls
 * are adjacent. On asynchronous devices a group's waits precede its calls, and its end events follow, since the last
 * call may enqueue for all (ncclGroupEnd). Errors: EL_ERR_HOST_MEMORY; EL_ERR_INTERNAL where a group's calls wait for
 * one another. */
enum el_status el_program_order(struct el_program *program, int *order);
/* For several programs. `all`: all members of each group are included. Errors: also EL_ERR_INTERNAL where members'
 * operations differ. */
enum el_status el_programs_order(struct el_program *const *programs, int n, bool all, struct el_ordered *order);

/* messages.c: each op's sender, indexed by first_op[p] + id; first_op[n] is their number. A single program has none.
 * Errors: EL_ERR_INTERNAL where a sender is missing. */
enum el_status el_messages_match(struct el_program *const *programs, int n, const int *first_op,
                                 struct el_op_at *sender);

/* resolve.c: virtual time; fills spans and `whole`. */
enum el_status el_resolve_prepare(struct el_program *program);
enum el_status el_resolve_run(struct el_program *program);

/* beside.c: resets ops to their times alone; adjusts them to who was busy. `changed_p`: times changed. */
void el_beside_begin(struct el_program *const *programs, const struct el_ordered *order, int n_ops);
enum el_status el_beside_adjust(struct el_program *const *programs, int n, const struct el_ordered *order, int n_ops,
                                bool *changed_p);
/* Before the program is destroyed. */
void el_joint_leave(struct el_program *program);

/* execute.c */
void el_program_tell(const struct el_program *program, const struct el_probe *probe);
enum el_status el_program_prepare(struct el_program *program);
/* types.c: that no memory has elements of two types; sanitizer builds only. */
enum el_status el_types_check(struct el_program *program, const struct el_kernel_op *op);
void el_types_free(struct el_types *types);

void el_program_keep_failure(struct el_program *program, enum el_status status);

/* execute_async.c. */
enum el_status el_async_prepare(struct el_program *program);
enum el_status el_async_execute(struct el_program *program);
void el_async_destroy(struct el_program *program);
/* Directs the calling thread to `device`. */
enum el_status el_async_activate(struct el_program *program, const struct el_device *device);

/* The op's device is active. */
enum el_status el_async_call(struct el_program *program, int id, int member, int n_members, enum el_call_graph graph);
enum el_status el_async_copy(struct el_program *program, const struct el_task *task);

/* async_graph.c: at the program's end; after its first run; instead of queueing ops. */
enum el_status el_async_graph_prepare(struct el_program *program);
enum el_status el_async_graph_make(struct el_program *program);
bool el_async_graph_is_made(const struct el_program *program);
enum el_status el_async_graph_launch(struct el_program *program);
void el_async_graph_destroy(struct el_program *program);

/* async_spans.c */
enum el_status el_async_spans_open(struct el_program *program);
enum el_status el_async_spans_read(struct el_program *program);
void el_async_spans_close(struct el_program *program);

/* inject.c */
enum el_status el_inject_open(struct el_device *device);
enum el_status el_inject_begin_step(struct el_device *device);
double el_inject_stretch(struct el_device *device, const char *label);
int64_t el_inject_pause_ns(struct el_device *device, const char *label);
/* Uses the core until `ratio` times the time since `begin_ns` has passed. */
void el_inject_spin(int64_t begin_ns, double ratio);

/* device.c: any backend. */
enum el_status el_device_open_with(const struct el_device_ops *ops, const struct el_device_spec *spec,
                                   struct el_device **device_p);
enum el_status el_device_stream(struct el_device *device, int index, void **stream_p);
void el_device_leave(void);
/* Whether `device` is no longer freed. */
bool el_device_is_kept(const struct el_device *device);
enum el_status el_device_check_limit(const struct el_device *device, size_t step_live_bytes, size_t bytes,
                                     enum el_tag tag, const char *name);
