/* Communicators: a group of members that can broadcast, reduce and all-reduce device memory.
 *
 * Each member holds its own `struct el_comm`. Operations are issued into a program and run on the member's
 * communication stream (EL_STREAM_COMM): the caller lets that stream wait for the data, and lets the compute stream
 * wait for the op it gets back (el_program_wait). Every member issues the same operations in the same order.
 *
 * Backends: `self` (one member, nothing moves), `local` (members of one process; real copies between their memories),
 * `mpi` (one member a process), `shm` (one member a process, one host), `tcp` (one member a process, any hosts), `nccl`
 * (GPUs, in one process or one a process), `peer` (GPUs for which one thread issues, by copies between them and sums on
 * the root).
 * Sums are taken in a fixed order: the same inputs give the same bits, on every member. NCCL's order is its own: the
 * same bits on every member, and in every run on the same machines with the same settings, not beyond.
 * A communicator that needs the host to read the memory stages it where the host cannot: device, host, collective,
 * host, device, while the host waits.
 *
 * Bytes: an op is booked on each member with what it sends and receives under the algorithm used; see
 * el_comm_traffic(). Errors: building errors are the program's; while running EL_ERR_PEER when a member is gone or
 * failed.
 */
#ifndef EL_COMM_H
#define EL_COMM_H

#include "runtime/comm/bootstrap.h"
#include "runtime/device/program.h"

struct el_comm;

enum el_comm_verb { EL_COMM_ALL_REDUCE, EL_COMM_BROADCAST, EL_COMM_REDUCE, EL_COMM_VERB_COUNT };

/* A group of one. */
enum el_status el_comm_open_self(struct el_device *device, struct el_comm **comm_p);
/* `n` members of this process, one a device, each with a host thread that issues for it; fills comms[0..n): `local`, or
 * `nccl` for GPUs. On simulated devices nothing runs. */
enum el_status el_comm_open_local(struct el_device *const *devices, int n, struct el_comm **comms);
/* The same for members that one host thread issues for, into one program: a controller's. `peer` where GPUs have no
 * NCCL, or share a card. */
enum el_status el_comm_open_controller(struct el_device *const *devices, int n, struct el_comm **comms);
/* One member a process, over the bootstrap's ranks. `kind`: "mpi" (of the bootstrap mpi), "shm", "tcp", "nccl".
 * Blocking. Collective. */
enum el_status el_comm_open_ranks(const char *kind, struct el_bootstrap *bootstrap, struct el_device *device,
                                  struct el_comm **comm_p);
/* The fastest way for these ranks: "nccl" where every rank has a GPU and NCCL, "shm" when all are on one host (one
 * boot, one process namespace), else "mpi" where that is what they met by, else "tcp". `device`: this rank's; NULL: any
 * but a GPU. Blocking. Collective. Errors: of the bootstrap; then it is one of the last two. */
const char *el_comm_choose(struct el_bootstrap *bootstrap, struct el_device *device);
/* NULL is legal. Collective among ranks only in that all must have ended their operations. */
void el_comm_close(struct el_comm *comm);

int el_comm_rank(const struct el_comm *comm);
int el_comm_size(const struct el_comm *comm);
const char *el_comm_backend(const struct el_comm *comm); /* "local" */
struct el_device *el_comm_device(const struct el_comm *comm);

/* Makes all members' pending and later operations fail with EL_ERR_PEER, so that none waits for one that will not come.
 * Threads: any. */
void el_comm_abort(struct el_comm *comm);

/* While muted, the member's operations move nothing and wait for nobody: a step without communication, to measure what
 * communication costs. What they were to bring keeps whatever is in its memory. All members are muted and unmuted at
 * the same place in their order of operations. Between steps. */
void el_comm_mute(struct el_comm *comm, bool muted);

/* What this member sends and receives in one operation: what the wrappers below book. Units: bytes. */
void el_comm_traffic(const struct el_comm *comm, enum el_comm_verb verb, size_t count, enum el_dtype dtype, int root,
                     uint64_t *sent_bytes_p, uint64_t *received_bytes_p);

/* In place: every member's `data` becomes the sum over all. */
enum el_status el_comm_all_reduce(struct el_comm *comm, struct el_program *program, const struct el_op_head *head,
                                  struct el_view data, size_t count, enum el_dtype dtype, int *op_id_p);
/* In place: every member's `data` becomes that of `root`. */
enum el_status el_comm_broadcast(struct el_comm *comm, struct el_program *program, const struct el_op_head *head,
                                 struct el_view data, size_t count, enum el_dtype dtype, int root, int *op_id_p);
/* `result` on `root` becomes the sum of all `data`, its own first, then by rank (tcp: from the root's next rank upwards
 * and round); elsewhere `result` is not looked at. */
enum el_status el_comm_reduce(struct el_comm *comm, struct el_program *program, const struct el_op_head *head,
                              struct el_view data, struct el_view result, size_t count, enum el_dtype dtype, int root,
                              int *op_id_p);

#endif
