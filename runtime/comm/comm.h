/* Communicators: a group of members that broadcast, reduce and all-reduce device memory.
 *
 *     el_comm_open_local(devices, n, comms);                 or _self, _together, _ranks: one struct per member
 *     el_comm_issue(comm, program, &op, &id);                into a step; the same operations in the same order by all
 *     el_program_wait(program, device, EL_STREAM_COMPUTE, id);     before the result is used; or op.join
 *     el_program_end(program); el_program_run(...); ...
 *     el_program_destroy(program); el_comm_close(comm);
 *
 * Each member has its own `struct el_comm` with a stream of its device (a group of one: from its first operation on),
 * where operations run in order, concurrently with other streams. Backends: `self` (one member), `local` (members of
 * one process), `mpi`, `shm` (one host), `tcp` (one member per process), `nccl` (GPUs), `peer` (GPUs of one issuing
 * thread: copies, and sums on the root). Host-memory backends stage GPU memory through the host, which waits
 * meanwhile.
 *
 * Sums are taken in a fixed order: the same inputs give the same bits on every member. NCCL repeats its bits only on
 * the same machines with the same settings. Errors: while building, the program's; while running, EL_ERR_PEER when a
 * member is gone or failed; EL_ERR_HOST_MEMORY anywhere. Threads: one at a time per communicator, except
 * el_comm_abort. el_comm_open_ranks, _alloc, _open_mailboxes and _split are collective: all members, each in its own
 * thread, between steps. */
#pragma once

#include "runtime/comm/bootstrap.h"
#include "runtime/device/program.h"

struct el_comm;

/* Each part has `count` elements; n: the number of members. */
enum el_comm_verb {
    /* data[count] -> result[count] of every member, combined */
    EL_COMM_ALL_REDUCE,
    /* the root's data[count] -> result[count] of every member */
    EL_COMM_BROADCAST,
    /* data[count] -> the root's result[count], combined; `data` is kept elsewhere */
    EL_COMM_REDUCE,
    /* data[n * count] -> result[count]: member r gets part r of all members, combined */
    EL_COMM_REDUCE_SCATTER,
    /* data[count] -> result[n * count]: part r comes from member r */
    EL_COMM_ALL_GATHER,
    /* the root's data[n * count] -> result[count]: member r gets part r */
    EL_COMM_SCATTER,
    /* data[count] -> the root's result[n * count]: part r comes from member r */
    EL_COMM_GATHER,
    /* data[n * count] -> result[n * count]: part r goes to member r, the result's part r comes from it; not in place */
    EL_COMM_ALL_TO_ALL,
    /* data[count] -> the mailbox of member `root`; waits only while it is full */
    EL_COMM_SEND,
    /* the oldest message of member `root` with this tag -> result[count] */
    EL_COMM_RECV,
    EL_COMM_BARRIER,
    EL_COMM_VERB_COUNT
};

/* Average: the sum divided by the number of members (integers: towards zero; integer sums and products wrap). AND, OR,
 * XOR: bitwise, integers only. Rounding of f16 and bf16: combine.h. */
enum el_comm_reduction {
    EL_COMM_SUM,
    EL_COMM_PRODUCT,
    EL_COMM_MIN,
    EL_COMM_MAX,
    EL_COMM_AVERAGE,
    EL_COMM_AND,
    EL_COMM_OR,
    EL_COMM_XOR,
    EL_COMM_REDUCTION_COUNT
};

enum el_comm_algorithm {
    EL_COMM_AUTO,   /* the fastest measured for verb, group size and bytes */
    EL_COMM_DIRECT, /* every member with every other, or with the root */
    EL_COMM_RING,   /* each to the next one only */
    EL_COMM_PS,     /* a parameter server: all to rank 0, and back */
    EL_COMM_ALGORITHM_COUNT
};

struct el_comm_verb_row {
    const char *name;
    bool has_root; /* `root` is a rank: the root, or the link's partner */
    bool reduces;
    bool all_data;       /* `data` has a part for each member */
    bool all_result;     /* `result` has a part for each member */
    bool data_on_root;   /* only the root has data */
    bool result_on_root; /* only the root has a result */
    bool is_link;        /* send, recv */
};

/* All members give the same verb, reduction, type, count and root; a send and its recv the same type, count and tag.
 * In place: where data and result have the same size, leave `result` zero; else the smaller is the member's own part
 * of the larger (part `rank`). They must not overlap otherwise. */
struct el_comm_op {
    enum el_comm_verb verb;
    enum el_comm_reduction reduction;
    enum el_dtype dtype;
    size_t count; /* elements per part; 0: a collective does nothing, a message is empty */
    int root;     /* the partner's for a link; else 0 without root */
    int tag;      /* of a message; >= 0 */
    struct el_view data;
    struct el_view result;
    /* All-to-all: how much of each part is used; left out: all. int32 [2][n][used_each] in the device's memory, read
     * when the operation runs: of the part that goes to member r, the first unit * sum of used[0][r][...] elements, of
     * the part that comes from it, unit * sum of used[1][r][...]; two members agree on each, and none is beyond
     * `count`. Only these move, and the rest of the result stays. NCCL, peer and devices without kernels move whole
     * parts. */
    struct el_view used;
    int64_t used_each;
    int64_t unit;
    bool back;         /* the halves change places: the way home */
    double expected;   /* all-to-all: share of its parts that the busiest member uses, for bytes and costs; 0: all */
    const char *label; /* copied; NULL: the verb's name */
    enum el_phase phase;
    bool join; /* the next op on the compute stream waits for it */
};

struct el_comm_traffic {
    uint64_t sent_bytes, received_bytes;
};

enum el_status el_comm_open_self(struct el_device *device, struct el_comm **comm_p);
/* Opens `n` members of this process by rank, one per device, each with its own issuing thread: `local`, or `nccl` for
 * GPUs. On simulated devices nothing runs; joined programs (runtime/device/joint.h) wait in virtual time. Errors:
 * EL_ERR_INVALID (no member, too many, no free stream); the library's own. */
enum el_status el_comm_open_local(struct el_device *const *devices, int n, struct el_comm **comms);
/* The same for members of one issuing thread and program; `peer` where GPUs have no NCCL or share a card. */
enum el_status el_comm_open_together(struct el_device *const *devices, int n, struct el_comm **comms);
/* One member per rank of the bootstrap, which it borrows. `kind`: "mpi" (needs the bootstrap mpi), "shm", "tcp",
 * "nccl". Errors: EL_ERR_ABSENT (no such kind, or its library is missing), EL_ERR_INVALID, EL_ERR_IO, EL_ERR_PEER. */
enum el_status el_comm_open_ranks(const char *kind, struct el_bootstrap *bootstrap, struct el_device *device,
                                  struct el_comm **comm_p);
/* The fastest for these ranks: "nccl" if each has its own GPU and NCCL, "shm" on one host (one boot, PID and network
 * namespace), else "mpi" under that bootstrap, else "tcp" (the last two also if the bootstrap fails). `device`: NULL
 * if not a GPU. Collective. */
const char *el_comm_choose(struct el_bootstrap *bootstrap, struct el_device *device);
/* NULL is legal. No operation may be running. */
void el_comm_close(struct el_comm *comm);

/* Names the group in recordings: "world", "data"; `index` distinguishes groups of one name. The same in all its
 * members, before the first operation or split. `name` must outlive the communicator. */
void el_comm_name(struct el_comm *comm, const char *name, int index);

int el_comm_rank(const struct el_comm *comm);
int el_comm_size(const struct el_comm *comm);
const char *el_comm_backend(const struct el_comm *comm);
const struct el_comm_verb_row *el_comm_verb_row(enum el_comm_verb verb);
const char *el_comm_reduction_name(enum el_comm_reduction reduction);
const char *el_comm_algorithm_name(enum el_comm_algorithm algorithm);
bool el_comm_has_verb(const struct el_comm *comm, enum el_comm_verb verb);
bool el_comm_reduces(enum el_comm_reduction reduction, enum el_dtype dtype);
/* nccl has no bitwise reductions; peer only sums and averages of floating-point types. */
bool el_comm_has_reduction(const struct el_comm *comm, enum el_comm_reduction reduction, enum el_dtype dtype);

/* For every later collective that has this algorithm. Between steps; the same on all members. nccl and peer:
 * EL_ERR_ABSENT for all but EL_COMM_AUTO. */
enum el_status el_comm_set_algorithm(struct el_comm *comm, enum el_comm_algorithm algorithm);
/* EL_COMM_AUTO where the library chooses. */
enum el_comm_algorithm el_comm_algorithm(const struct el_comm *comm, const struct el_comm_op *op);
struct el_device *el_comm_device(const struct el_comm *comm);

/* Device memory as from el_device_alloc, used in place where all members name the same range of the same allocation
 * (shm: no staging). Free with el_device_free, before or after close. Plain memory where the backend has no other. The
 * same order on all members. Errors: EL_ERR_OOM beyond the device's limit; EL_ERR_PEER where another member failed. */
enum el_status el_comm_alloc(struct el_comm *comm, enum el_tag tag, size_t bytes, const char *name,
                             struct el_buffer **buffer_p);

/* Longer operations fail with EL_ERR_PEER and abort the communicator. 0 (the default): no limit. Between steps.
 * Errors: EL_ERR_ABSENT where the backend has no time-out. */
enum el_status el_comm_set_timeout(struct el_comm *comm, double seconds);

/* Opens a mailbox of so many bytes per partner at the receiver (`mpi`, `nccl`: at the sender), charged to tag
 * `mailbox`; required before send and recv, once. `partners` [size]: both sides must name each other; NULL: all. A
 * larger message is refused at issue. A send waits while its message does not fit or 63 are pending; space frees in
 * send order. `nccl` ignores tags and keeps send order. Errors: as el_comm_alloc; EL_ERR_ABSENT where the backend has
 * no links; EL_ERR_INVALID (twice, members of one issuing thread, or a partner that does not name this one). */
enum el_status el_comm_open_mailboxes(struct el_comm *comm, const bool *partners, size_t bytes);

/* Splits by color; ranks follow key, then the old rank. color < 0: in none, *part_p is NULL. The new communicator has
 * another stream of the same device; close it before this one's members. Errors: EL_ERR_ABSENT where the backend
 * cannot; EL_ERR_INVALID (members of one issuing thread, no free stream); EL_ERR_PEER where another member failed. */
enum el_status el_comm_split(struct el_comm *comm, int color, int key, struct el_comm **part_p);

/* Members compare each collective before it begins; on a mismatch all fail with EL_ERR_INTERNAL and name two
 * operations. Members that share memory or an issuing thread always compare, at no cost. Between steps; the same on
 * all members. Errors: EL_ERR_ABSENT on GPUs, where the host does not see operations begin. */
enum el_status el_comm_set_checking(struct el_comm *comm, bool checking);

/* Makes all members' pending and later operations fail with EL_ERR_PEER, without waiting for them. Threads: any. */
void el_comm_abort(struct el_comm *comm);

/* Brackets the issue of a program if members issue at different times, or not all do. `again`: its collectives reuse
 * the numbers, by which members match them, of the last program without `again`. Between steps. */
void el_comm_begin_program(struct el_comm *comm, bool again);
void el_comm_end_program(struct el_comm *comm);

/* While muted, operations leave the result memory as it is and wait for nobody (messages synchronize, empty). All
 * members switch at the same place in their order. Between steps. */
void el_comm_mute(struct el_comm *comm, bool muted);

/* Bytes in one operation of this member (buffers, label and phase are ignored), exact for its algorithm: an all-reduce
 * moves 2 (n - 1) / n of the payload each way, as nccl-tests count (doc/PERFORMANCE.md there). */
struct el_comm_traffic el_comm_traffic(const struct el_comm *comm, const struct el_comm_op *op);

/* Bytes sent and received so far beyond those of the operations' `expected` parts; may be negative. On the worker's
 * thread, between steps. */
void el_comm_beyond(const struct el_comm *comm, int64_t bytes_p[2]);

/* Queues after everything issued so far to the device's compute stream. `op_id_p` may be NULL. Errors: EL_ERR_INVALID
 * (root, sizes, overlap, no free stream); EL_ERR_ABSENT for a verb that the backend lacks. */
enum el_status el_comm_issue(struct el_comm *comm, struct el_program *program, const struct el_comm_op *op,
                             int *op_id_p);
/* Later operations also wait for op `op_id` of the member's device. Errors: the program's. */
enum el_status el_comm_wait(struct el_comm *comm, struct el_program *program, int op_id);
/* Runs an operation at once, between steps, on host views; for simulated devices. Collective. Errors: EL_ERR_PEER;
 * EL_ERR_INVALID for a communicator of device memory. */
enum el_status el_comm_exchange(struct el_comm *comm, const struct el_comm_op *op);
