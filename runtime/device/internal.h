/* What the files of this folder share: the insides of a device and of a program. Nobody else includes it. */
#pragma once

#include <stdatomic.h>

#include "runtime/base/grow.h"
#include "runtime/device/device_ops.h"
#include "runtime/device/joint.h"

struct el_device {
    const struct el_device_ops *ops;
    void *state; /* the backend's */
    struct el_device_spec spec;
    char name[EL_DEVICE_NAME_BYTES];
    void *streams[EL_DEVICE_STREAMS_MAX]; /* opened at first use */
    void *marks[EL_DEVICE_STREAMS_MAX];   /* events of el_device_enqueue_wait, opened at first use */
    bool taken[EL_DEVICE_STREAMS_MAX];    /* streams that communicators have for themselves */
    /* Where the program that was issued to last keeps them: looked at first, as issuing goes on in few places. */
    int queue_hints[EL_DEVICE_STREAMS_MAX], memory_hint;
    struct el_ledger ledger;           /* persistent allocations, and the peaks of steps that ran */
    struct el_persistent *allocations; /* list: freed at close */
    int64_t reserved_bytes;            /* mapped for allocations and arenas */
    int64_t adopted_bytes;             /* of which others mapped */
    int64_t inject_hits;               /* kernels issued that an injected disturbance names */
    int64_t taken_bytes;               /* by injected leaks */
};

/* Where a view's first byte is, once its buffer has a place. */
static inline void *el_view_address(struct el_view view)
{
    return (void *)(view.buffer ? view.buffer->address + view.offset : view.offset);
}

/* Memory that lives across steps. */
struct el_persistent {
    struct el_buffer buffer; /* first: a buffer is one of these or a step buffer */
    struct el_persistent *next, **link;
    struct el_lent_memory lent; /* release NULL: the backend's own */
};

/* What of a buffer's bytes is booked under another tag than its own: gaps as padding, what may be wanted as allowance.
 */
struct el_buffer_part {
    enum el_tag tag;
    size_t bytes;
};

/* Memory of a step: a mark where it is allocated and one where it is freed. */
struct el_step_buffer {
    struct el_buffer buffer;
    struct el_buffer_part part;
    int allocated, freed; /* positions in mark order; freed = -1: lives to the step's end */
    size_t offset;
    size_t tried; /* by the planner */
};

enum el_task_kind { EL_TASK_KERNEL, EL_TASK_COPY, EL_TASK_CALL };

/* One op. What it names by view is an address after el_program_end. */
struct el_task {
    enum el_task_kind kind;
    int queue;
    int n_waits;
    int first_wait;  /* into program->waits */
    int64_t cost_ns; /* simulated devices: what it takes, by who is busy meanwhile (beside.c) */
    struct el_call_group group;
    bool awaited; /* another stream waits for it */
    struct el_call_message message;
    int message_number;          /* of those with the same words in this program */
    int64_t alone_ns, beside_ns; /* simulated devices: what it takes alone, and beside others */
    double busy_before_ns;       /* scratch of beside.c */
    double stretch;              /* injected: a kernel takes so many times its time; 0: as it is */
    int64_t pause_ns;            /* injected: the op begins so much later */
    /* Below is what the order of ops and virtual time do not look at. */
    struct el_view views[EL_ARGS_POINTERS]; /* copy: destination, source */
    struct el_buffer *workspace;            /* kernels with scratch */
    union {
        struct {
            const struct el_kernel *kernel;
            struct el_kernel_args args;
            int first_tensor; /* into program->tensors, where it has many */
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

/* The ops of one stream, in order. */
struct el_queue {
    struct el_program *program;
    struct el_device *device;
    int stream;
    int index; /* in program->queues */
    int n_tasks;
    size_t room;
    int *tasks;      /* ids */
    int64_t free_ns; /* simulated devices: the end of the last op that was resolved */
    int beside;      /* scratch of beside.c */
    /* Waits given since the queue's last op: they become the next op's. */
    int n_pending;
    int pending[64];
};

/* A step's use of one device, by marks. */
struct el_step_memory {
    struct el_device *device;
    struct el_ledger ledger; /* the step's own bytes only */
    int peak_task;           /* the op for which the peak's last buffer was allocated */
    uintptr_t arena;
    size_t arena_bytes;
};

struct el_async_device {
    struct el_device *device;
    void *stream, *anchor; /* where the anchor is recorded, and its event */
    int64_t anchor_ns, error_ns;
};

/* What the host thread of an asynchronous program goes by: made at the program's end (execute_async.c). */
struct el_async_run {
    int *order;          /* [n_tasks] in which they are issued: a group's calls side by side */
    void **streams;      /* [n_queues] */
    void **done;         /* [n_tasks] events of awaited ops; NULL for others */
    void **begin, **end; /* [n_tasks] timed events; NULL before the first timed run, and for host calls */
    bool *follows;       /* [n_tasks] its begin is the end of the op before, on the same stream */
    int n_devices;
    struct el_async_device *devices; /* [n_devices] */
    const struct el_device *active;  /* whose hooks were called last */
    int64_t queue_ns;                /* of the last run: the host's time to queue it, without waiting */
    struct el_async_graph *graph;    /* NULL: none is wanted (async_graph.c) */
};

struct el_op_at {
    int program, id;
};

/* An op in an order over several programs. */
struct el_ordered {
    int program, id;
    struct el_op_at sender; /* of what it receives; program -1: nobody */
};

struct el_wait_hook {
    enum el_status (*hook)(void *context);
    void *context;
};

struct el_program {
    enum el_status failure; /* first failure of building */
    struct el_error error;
    bool ended;
    bool wants_graph;
    struct el_types *types;          /* of what ops have in memory (types.c); NULL: not looked at */
    const struct el_program *lender; /* of memory; NULL: nobody */
    bool has_borrowed;               /* all arenas are the lender's */
    int n_tasks;
    size_t task_room, info_room, label_room;
    struct el_task *tasks;
    struct el_op_info *infos;
    char **labels; /* owned copies, one a task */
    int n_waits;
    size_t wait_room;
    int *waits;
    int n_tensors; /* of ops that have many */
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
    struct el_step_buffer **buffers; /* in order of allocation */
    void (*on_failure)(void *context);
    void *failure_context;
    struct el_op_piece piece; /* of the ops that come */
    int mark_clock;           /* counts allocations and frees: their order */
    int n_marks;
    size_t mark_room;
    struct el_mark *marks; /* the same as an observer sees them */
    struct el_span *spans;
    int64_t *cpu_ns; /* of the thread, in each collective and copy; 0 for other ops */
    struct el_span whole;
    /* A run's state. */
    uint64_t step;
    bool timed;
    bool wall_only;               /* ... without CPU time */
    const struct el_watch *watch; /* NULL: nobody */
    _Atomic uint32_t run;         /* counts runs: an op is done when its `done` says the same */
    _Atomic uint32_t *done;       /* one a task */
    _Atomic uint32_t pending;     /* queues that have not finished */
    _Atomic uint32_t failed;      /* 1: a task failed; the rest is skipped */
    _Atomic uint32_t claimed;     /* who stores run_error */
    struct el_error run_error;
    struct el_async_run *async; /* NULL on synchronous devices */
    struct el_ordered *order;   /* [n_tasks] simulated devices: in which ops are resolved; NULL where a joint does it */
    struct el_joint *joint;     /* NULL: resolved by itself */
    int joint_member;
    int64_t span_error_ns;
    int n_wait_hooks;
    size_t wait_hook_room;
    struct el_wait_hook *wait_hooks;
};

/* Keeps the first failure of building, so that el_program_end can return it. Returns `status`. */
static inline enum el_status el_program_keep(struct el_program *program, enum el_status status)
{
    if (status != EL_OK && program->failure == EL_OK) {
        program->failure = status;
        el_error_take(status, &program->error);
    }
    return status;
}

/* memory.c */
void el_ledger_add(struct el_ledger *ledger, enum el_tag tag, size_t bytes);
void el_ledger_remove(struct el_ledger *ledger, enum el_tag tag, size_t bytes);
/* The peak of `base`'s live bytes together with a step's. */
void el_ledger_merge_step(struct el_ledger *base, const struct el_ledger *step);

/* So that one more fits. */
#define EL_PROGRAM_GROW(array, n, room)                                                                                \
    (EL_GROW(array, room, (size_t)(n) + 1) ? EL_OK : el_fail_errno("a program of %d ops", (n) + 1))

/* plan.c: gives each step buffer an offset in its device's arena; writes arena_bytes. */
enum el_status el_program_plan(struct el_program *program);

/* order.c: the ops' ids in an order in which one thread can issue them all (n_tasks of them): as they were issued,
 * except that the calls of one group stand together, and behind them what depends on any of them. Of a group, an
 * asynchronous device's streams are told first all the waits, then all the calls, then all the events that mark their
 * ends: the last call may be the one that enqueues for all (ncclGroupEnd).
 * Errors: EL_ERR_HOST_MEMORY; EL_ERR_INTERNAL where a group's calls wait for one another. */
enum el_status el_program_order(struct el_program *program, int *order);
/* The same for the programs of several members; `order` has room for all. `all`: each member of a group is among them.
 * Errors: also EL_ERR_INTERNAL where members' operations differ. */
enum el_status el_programs_order(struct el_program *const *programs, int n, bool all, struct el_ordered *order);

/* messages.c: for each op, by its number over all programs (first_op[p] + id, first_op[n] of them), who sends what it
 * receives. Of one program nothing is known of others: nobody. Errors: EL_ERR_INTERNAL where nobody sends it. */
enum el_status el_messages_match(struct el_program *const *programs, int n, const int *first_op,
                                 struct el_op_at *sender);

/* resolve.c: simulated devices. At the program's end, and its run in virtual time: fills spans and `whole`. */
enum el_status el_resolve_prepare(struct el_program *program);
enum el_status el_resolve_run(struct el_program *program);

/* beside.c: before the ops of a step are resolved, their times alone; after that, by who was busy meanwhile.
 * `changed_p`: they are not those that were resolved. */
void el_beside_begin(struct el_program *const *programs, const struct el_ordered *order, int n_ops);
enum el_status el_beside_adjust(struct el_program *const *programs, int n, const struct el_ordered *order, int n_ops,
                                bool *changed_p);
/* Before the program is gone. */
void el_joint_leave(struct el_program *program);

/* execute.c */
/* The step that was run. `probe` may be NULL. */
void el_program_tell(const struct el_program *program, const struct el_probe *probe);
enum el_status el_program_prepare(struct el_program *program);
/* That no memory has elements of two types: only in builds with sanitizers (types.c). */
enum el_status el_types_check(struct el_program *program, const struct el_kernel_op *op);
void el_types_free(struct el_types *types);

/* Keeps the first failure of a run, and calls the program's hook. */
void el_program_keep_failure(struct el_program *program, enum el_status status);

/* execute_async.c: the same on asynchronous devices. */
enum el_status el_async_prepare(struct el_program *program);
enum el_status el_async_execute(struct el_program *program);
/* Closes what prepare made; NULL is legal. */
void el_async_destroy(struct el_program *program);
/* The calling thread's calls go to `device` from now on. */
enum el_status el_async_activate(struct el_program *program, const struct el_device *device);

/* A call, or a copy, whose device is active. */
enum el_status el_async_call(struct el_program *program, int id, int member, int n_members, enum el_call_graph graph);
enum el_status el_async_copy(struct el_program *program, const struct el_task *task);

/* async_graph.c: a program that is to be one. At its end; when its first run is over; in the place of queueing its ops,
 * where it is made. */
enum el_status el_async_graph_prepare(struct el_program *program);
enum el_status el_async_graph_make(struct el_program *program);
bool el_async_graph_is_made(const struct el_program *program);
enum el_status el_async_graph_launch(struct el_program *program);
void el_async_graph_destroy(struct el_program *program);

/* async_spans.c: events round each op, made at the first timed run; and their times on the host's clock, when the run
 * is over. */
enum el_status el_async_spans_open(struct el_program *program);
enum el_status el_async_spans_read(struct el_program *program);
void el_async_spans_close(struct el_program *program);

/* inject.c: what is injected on a device; nothing where nothing is. */
enum el_status el_inject_open(struct el_device *device);
enum el_status el_inject_begin_step(struct el_device *device);
double el_inject_stretch(struct el_device *device, const char *label);
int64_t el_inject_pause_ns(struct el_device *device, const char *label);
/* Uses the core until `ratio` times what has gone since `begin_ns` is over. */
void el_inject_spin(int64_t begin_ns, double ratio);

/* device.c */
/* As el_device_open with a backend that need not be registered. */
enum el_status el_device_open_with(const struct el_device_ops *ops, const struct el_device_spec *spec,
                                   struct el_device **device_p);
enum el_status el_device_stream(struct el_device *device, int index, void **stream_p);
/* From now on el_device_is_left(). */
void el_device_leave(void);
/* Whether `device` is one of those that are given back no more. */
bool el_device_is_kept(const struct el_device *device);
enum el_status el_device_check_limit(const struct el_device *device, size_t step_live_bytes, size_t bytes,
                                     enum el_tag tag, const char *name);
