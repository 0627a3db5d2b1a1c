/* Communicators: a group of members that can broadcast, reduce and all-reduce device memory.
 *
 *     el_comm_open_local(devices, n, comms);                 or _self, _together, _ranks: one struct a member
 *     el_comm_issue(comm, program, &op, &id);                into a step; the same operations in the same order by all
 *     el_program_wait(program, device, EL_STREAM_COMPUTE, id);     before the outcome is used; or op.join
 *     el_program_end(program); el_program_run(...); ...
 *     el_program_destroy(program); el_comm_close(comm);
 *
 * Each member holds its own `struct el_comm`, which has a stream of its device for itself as long as it is open (a
 * group of one from its first operation on): its operations run there in order, beside the compute stream and beside
 * other communicators'.
 *
 * Backends: `self` (one member, nothing moves), `local` (members of one process; real copies between their memories),
 * `mpi` (one member per process), `shm` (one member per process, one host), `tcp` (one member per process, any hosts),
 * `nccl` (GPUs, in one process or one per process), `peer` (GPUs for which one thread issues, by copies between them
 * and sums on the root). Sums are taken in a fixed order: the same inputs give the same bits, on every member. NCCL's
 * order is its own: the same bits on every member, and in every run on the same machines with the same settings, not
 * beyond. A communicator that needs the host to read the memory stages it where the host cannot: device, host,
 * collective, host, device, while the host waits.
 *
 * Bytes: an op is booked on each member with what it sends and receives under the algorithm used; see
 * el_comm_traffic(). Errors: building errors are the program's; while running EL_ERR_PEER when a member is gone or
 * failed. Threads: one at a time a communicator, but for el_comm_abort.
 */
#pragma once

#include "runtime/comm/bootstrap.h"
#include "runtime/device/program.h"

struct el_comm;

/* What an operation does with the members' parts. A part has `count` elements; n: the number of members. */
enum el_comm_verb {
    /* data[count] -> result[count] of every member: the parts combined */
    EL_COMM_ALL_REDUCE,
    /* the root's data[count] -> result[count] of every member */
    EL_COMM_BROADCAST,
    /* data[count] -> the root's result[count]: the parts combined; `data` stays as it is elsewhere */
    EL_COMM_REDUCE,
    /* data[n * count] -> result[count]: member r gets part r of all, combined */
    EL_COMM_REDUCE_SCATTER,
    /* data[count] -> result[n * count]: part r is member r's */
    EL_COMM_ALL_GATHER,
    /* the root's data[n * count] -> result[count]: member r gets part r */
    EL_COMM_SCATTER,
    /* data[count] -> the root's result[n * count]: part r is member r's */
    EL_COMM_GATHER,
    /* data[n * count] -> result[n * count]: part r goes to member r, part r of the result came from it; not in place */
    EL_COMM_ALL_TO_ALL,
    /* data[count] -> the mailbox of member `root`; waits only while that is full */
    EL_COMM_SEND,
    /* the oldest message of member `root` with this tag -> result[count] */
    EL_COMM_RECV,
    /* nothing moves; ends when all have come */
    EL_COMM_BARRIER,
    EL_COMM_VERB_COUNT
};

/* How parts are combined. Sums, products and the like are taken in a fixed order. Average: the sum divided by the
 * number of members (integers: towards zero; their sums and products wrap). Of f16 and bf16 the sum of each two is
 * rounded. And, or, xor: bit by bit, integers only. */
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

/* In which messages a collective's bytes move; rounds.h says which, message by message. */
enum el_comm_algorithm {
    EL_COMM_AUTO,   /* by verb, size of the group and bytes: the fastest measured */
    EL_COMM_DIRECT, /* everybody with everybody, or with the root */
    EL_COMM_RING,   /* each to the next one only */
    EL_COMM_PS,     /* a parameter server: all to rank 0, and back */
    EL_COMM_ALGORITHM_COUNT
};

/* What stands in a verb's row; el_comm_verb_row() finds it. */
struct el_comm_verb_row {
    const char *name;    /* "all_reduce" */
    bool has_root;       /* `root` means a rank: the root's, or the partner's */
    bool reduces;        /* it uses `reduction` */
    bool all_data;       /* `data` has a part for each member */
    bool all_result;     /* `result` has a part for each member */
    bool data_on_root;   /* only the root gives data */
    bool result_on_root; /* only the root gets a result */
    bool is_link;        /* between two members: send, recv */
};

/* One operation, as a member says it. All members give the same verb, reduction, type, count and root; a send and its
 * recv the same type, count and tag.
 *
 * In place: `result` left out (all zeros) where the data is as large as the result; else the member's own part of the
 * larger one: part `rank` of `data` as the result of a reduce-scatter or of a scatter's root, part `rank` of `result`
 * as the data of an all-gather or of a gather's root. Otherwise they do not overlap. */
struct el_comm_op {
    enum el_comm_verb verb;
    enum el_comm_reduction reduction;
    enum el_dtype dtype;
    size_t count; /* elements of a part; 0: a collective that moves nothing, an empty message */
    int root;     /* rank; of a link the partner's; else 0 */
    int tag;      /* of a message, from 0 */
    struct el_view data;
    struct el_view result;
    const char *label; /* copied; NULL: the verb's name */
    enum el_phase phase;
    bool join; /* the compute stream's next op waits for it */
};

struct el_comm_traffic {
    uint64_t sent_bytes, received_bytes;
};

/* A group of one. */
enum el_status el_comm_open_self(struct el_device *device, struct el_comm **comm_p);
/* `n` members of this process, one per device, each with a host thread that issues for it; fills comms[0..n) by rank,
 * each to be closed: `local`, or `nccl` for GPUs. On simulated devices nothing runs; members whose programs are joined
 * (runtime/device/joint.h) wait for one another in virtual time. Errors: EL_ERR_INVALID (no member, too many, a device
 * without a free stream); EL_ERR_HOST_MEMORY; the library's own. */
enum el_status el_comm_open_local(struct el_device *const *devices, int n, struct el_comm **comms);
/* The same for members that one host thread issues for, by rank and into one program. `peer` where GPUs have no NCCL,
 * or share a card. */
enum el_status el_comm_open_together(struct el_device *const *devices, int n, struct el_comm **comms);
/* One member per process, over the bootstrap's ranks. `kind`: "mpi" (of the bootstrap mpi), "shm", "tcp", "nccl".
 * Ownership: the bootstrap is borrowed, and closed after it. Blocking. Collective. Errors: EL_ERR_ABSENT (no such kind,
 * or its library is missing), EL_ERR_INVALID, EL_ERR_IO (sockets), EL_ERR_HOST_MEMORY, EL_ERR_PEER where another rank
 * failed. */
enum el_status el_comm_open_ranks(const char *kind, struct el_bootstrap *bootstrap, struct el_device *device,
                                  struct el_comm **comm_p);
/* The fastest way for these ranks: "nccl" where every rank has a GPU and NCCL, "shm" when all are on one host (one
 * boot, one process namespace), else "mpi" where that is what they met by, else "tcp". `device`: this rank's; NULL: any
 * but a GPU. Blocking. Collective. Errors: of the bootstrap; then it is one of the last two. */
const char *el_comm_choose(struct el_bootstrap *bootstrap, struct el_device *device);
/* NULL is legal. Collective among ranks only in that all must have ended their operations. */
void el_comm_close(struct el_comm *comm);

/* What the group is in its job, for whoever records its operations: "world", "data", "local"; `index`: which of the
 * groups of that name. Members in all processes say the same, and another group another. Before its first operation,
 * and before it is split. `name` is borrowed for good. */
void el_comm_name(struct el_comm *comm, const char *name, int index);

int el_comm_rank(const struct el_comm *comm);
int el_comm_size(const struct el_comm *comm);
const char *el_comm_backend(const struct el_comm *comm); /* "local" */
/* Threads: any. */
const struct el_comm_verb_row *el_comm_verb_row(enum el_comm_verb verb);
const char *el_comm_reduction_name(enum el_comm_reduction reduction); /* "sum" */
const char *el_comm_algorithm_name(enum el_comm_algorithm algorithm); /* "ring" */
/* Whether this communicator has it; a group of one has all but links. */
bool el_comm_has_verb(const struct el_comm *comm, enum el_comm_verb verb);
/* Whether values of this type can be combined so. */
bool el_comm_reduces(enum el_comm_reduction reduction, enum el_dtype dtype);
/* Whether this communicator combines them so: nccl not bit by bit, peer sums and averages of floating-point numbers. */
bool el_comm_has_reduction(const struct el_comm *comm, enum el_comm_reduction reduction, enum el_dtype dtype);

/* Takes this algorithm for every later collective that has it; the others go as before. Between steps; all members
 * alike. Backends whose library chooses (nccl) and peer have none: EL_ERR_ABSENT for all but EL_COMM_AUTO. */
enum el_status el_comm_set_algorithm(struct el_comm *comm, enum el_comm_algorithm algorithm);
/* What will be used for an operation: EL_COMM_AUTO where the backend's library chooses. */
enum el_comm_algorithm el_comm_algorithm(const struct el_comm *comm, const struct el_comm_op *op);
struct el_device *el_comm_device(const struct el_comm *comm);

/* Memory of this member's device that lives across steps, as el_device_alloc gives it, and that the communicator
 * works on in place where it can (shm: no staging). An operation gains by it where all members name the same place of
 * the same allocation, whole or a part of it; what lies elsewhere works as ever. Freed with el_device_free, before or
 * after the communicator is closed. Members that one thread issues for, and devices without memory of the host's, get
 * plain memory where their backend has no other.
 * Between steps. Blocking. Collective: all members, in the same order. Errors: EL_ERR_OOM beyond the device's limit;
 * EL_ERR_PEER where another member had no room or is gone; EL_ERR_HOST_MEMORY. */
enum el_status el_comm_alloc(struct el_comm *comm, enum el_tag tag, size_t bytes, const char *name,
                             struct el_buffer **buffer_p);

/* How long an operation may wait for other members, from its begin on this one: after that it fails with EL_ERR_PEER,
 * and the communicator is aborted. 0, as opened: for ever. Between steps. Errors: EL_ERR_ABSENT where the backend has
 * no time-out. */
enum el_status el_comm_set_timeout(struct el_comm *comm, double seconds);

/* Opens a mailbox of so many bytes for each way between this member and its partners, at the receiver: bytes for each
 * partner, of tag `mailbox`, in the ledger of this member's device. `partners` [size]: with whom it exchanges messages
 * (its own place is not looked at), who say the same of it; NULL: with all others. Before it there is
 * no send and no recv. `mpi` and `nccl` have the mailboxes at the sender; `nccl` has no tags, and takes a link's
 * messages in the order in which they were sent. A message larger than the mailbox is refused when it is issued. A send
 * waits only while the mailbox has no room for its message, or holds 63 of them; room comes free in the order in which
 * messages were sent, and for more than the time-out the operation fails, naming the rank. Once a communicator. Between
 * steps. Blocking. Collective: all members, each in its own thread. Errors: as el_comm_alloc; EL_ERR_ABSENT where the
 * backend has no links; EL_ERR_INVALID (twice; members that one thread issues for; a partner that does not say the
 * same). */
enum el_status el_comm_open_mailboxes(struct el_comm *comm, const bool *partners, size_t bytes);

/* Splits the group: members that give the same color are together in a new one, ranked by key, and by rank where keys
 * are equal; color < 0: in none, *part_p is NULL. It is a communicator of its own, on the same device with another
 * stream, that never meets this one; closed with el_comm_close, before this one's members end. Members that one thread
 * issues for cannot be split: open another group of some of their devices instead.
 * Between steps. Blocking. Collective: all members, each in its own thread. Errors: EL_ERR_ABSENT where the backend
 * cannot; EL_ERR_INVALID (one thread for several members, no free stream); EL_ERR_PEER where another member failed or
 * is gone; EL_ERR_HOST_MEMORY. */
enum el_status el_comm_split(struct el_comm *comm, int color, int key, struct el_comm **part_p);

/* In the checking mode members tell one another before each collective which one they are about to begin; where they
 * differ all fail with EL_ERR_INTERNAL, naming two of the operations with their numbers, instead of waiting for ever or
 * mixing up their data. Local and shared memory, and members that one thread issues for, are always compared, as it
 * costs nothing there. Between steps; all members alike. Errors: EL_ERR_ABSENT on GPUs, whose operations the host does
 * not see begin; EL_ERR_HOST_MEMORY. */
enum el_status el_comm_set_checking(struct el_comm *comm, bool checking);

/* Makes all members' pending and later operations fail with EL_ERR_PEER, so that none waits for one that will not come:
 * for good. Waits for none of them. Threads: any, until el_comm_close. */
void el_comm_abort(struct el_comm *comm);

/* Around the issue of a program, where members issue theirs at different times, or not all of them: its collectives get
 * the numbers, by which members know each other's, of the program that was issued last with `again` false. Between
 * steps. */
void el_comm_begin_program(struct el_comm *comm, bool again);
void el_comm_end_program(struct el_comm *comm);

/* While muted, the member's operations move nothing and wait for nobody (but for messages, which come empty, since who
 * receives waits for who sends): a step without communication, to measure what communication costs. What they were to
 * bring keeps whatever is in its memory. All members are muted and unmuted at the same place in their order of
 * operations. Between steps. */
void el_comm_mute(struct el_comm *comm, bool muted);

/* What this member sends and receives in one operation (without buffers, label and phase): what
 * el_comm_issue books. Exact for the algorithm used: an all-reduce of n members moves 2 (n - 1) / n of the payload each
 * way, as nccl-tests count it (doc/PERFORMANCE.md there). Units: bytes. */
struct el_comm_traffic el_comm_traffic(const struct el_comm *comm, const struct el_comm_op *op);

/* Queues the operation on the communicator's stream, behind all that the compute stream of its device has been given so
 * far. `op_id_p` may be NULL. Errors: EL_ERR_INVALID for an operation that is none (a root that is no
 * member, memory that is too small, ...), or where the device has no stream left; EL_ERR_ABSENT for a verb that the
 * backend has not; EL_ERR_HOST_MEMORY. */
enum el_status el_comm_issue(struct el_comm *comm, struct el_program *program, const struct el_comm_op *op,
                             int *op_id_p);
/* What is issued next waits for op `op_id` of the member's device too: another communicator's, say. Errors: the
 * program's. */
enum el_status el_comm_wait(struct el_comm *comm, struct el_program *program, int op_id);
/* An operation at once, between steps, on host memory: `data` and `result` are host views. For members on simulated
 * devices, whose programs move nothing. Blocking. Collective. Errors: EL_ERR_PEER; EL_ERR_INVALID for a communicator
 * that works on device memory. */
enum el_status el_comm_exchange(struct el_comm *comm, const struct el_comm_op *op);
