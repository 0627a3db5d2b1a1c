/* Private to the module.
 *
 *     calls.c       turns and waits, the alarm, the lookout     postman.c     send, recv
 *     comm_mpi.c    the communicator and its collectives        world.c       the bootstrap `mpi`
 */
#pragma once

#include <mpi.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "runtime/comm/comm_ops.h"
#include "runtime/comm/shared/presence.h"

/* ---- calls.c ---- */

/* Any thread may call MPI, one at a time (MPI_THREAD_SERIALIZED), and never by a call that waits for another rank.
 *
 *     el_mpi_enter();                        this thread's turn
 *     MPI_Irecv(...); MPI_Isend(...);
 *     el_mpi_wait(&a, &b, alarm);            gives the turn away while nothing moves
 *     el_mpi_leave();
 *
 * So several communicators, each in its own thread, proceed concurrently. A wait polls while data move and naps for
 * microseconds otherwise, since on few cores it shares one with the compute thread. */

/* Ends all ranks' running operations after a failure, so that their memory is no longer touched.
 *
 * Every rank tells all others once that it has stopped, by an empty message, when it has no matchable receive left.
 * After hearing from all, a rank knows that its open sends will never be received; until then it keeps calling MPI,
 * because a transfer in progress needs both sides. All functions but el_mpi_alarm_raise need the turn. */
struct el_mpi_alarm {
    _Atomic int raised; /* here or elsewhere */
    bool told;
    int rank, size, n_stopped;
    MPI_Comm comm;
    MPI_Request message;          /* posted until all others have stopped */
    int64_t began_ns, timeout_ns; /* 0: none */
    int waits_for;
};

/* Once per process. */
enum el_status el_mpi_start(int *rank_p, int *size_p, char *library, size_t bytes);
/* Threads: the one that started it. */
void el_mpi_stop(void);
/* MPI_Abort, within the turn if that comes within seconds. Does not return. Threads: any, without turn. */
void el_mpi_abort(int exit_status);

void el_mpi_enter(void);
void el_mpi_leave(void);
void el_mpi_nap(void);

/* Within a wait; needs the turn. Errors: as el_mpi_wait. */
enum el_status el_mpi_pause(struct el_mpi_alarm *alarm);

/* Needs the turn. Waits for both requests (NULL: none). Errors: EL_ERR_PEER after an alarm or its deadline, or when a
 * rank is gone; the requests stay open (el_mpi_alarm_give_up). */
enum el_status el_mpi_wait(MPI_Request *a, MPI_Request *b, struct el_mpi_alarm *alarm);

/* EL_OK, or EL_ERR_PEER with the call and MPI's text. */
enum el_status el_mpi_check(int code, const char *call);
#define EL_MPI_TRY(call) EL_TRY(el_mpi_check((call), #call))

void el_mpi_alarm_open(struct el_mpi_alarm *alarm, MPI_Comm comm, int rank, int size);
void el_mpi_alarm_close(struct el_mpi_alarm *alarm);
/* NULL is legal. */
bool el_mpi_alarm_check(struct el_mpi_alarm *alarm);
/* Threads: any. */
void el_mpi_alarm_raise(struct el_mpi_alarm *alarm);
/* Tells the others that this rank has stopped; no receive may be open. */
void el_mpi_alarm_tell(struct el_mpi_alarm *alarm);
/* Ends receives and sends, as far as possible within a second. */
void el_mpi_alarm_give_up(struct el_mpi_alarm *alarm, MPI_Request receives[2], MPI_Request sends[2]);

/* Ranks of one host watch each other: MPI never notices a death, and mpirun under load only after 6 to 24 s.
 *
 *     el_mpi_watch_begin(presence);
 *     EL_TRY(el_mpi_watch_check());     in each wait for another rank
 *     lost = el_mpi_watch_end();        before ranks leave one by one
 *
 * When a rank is gone, mpirun first gets time to end the job, as it knows the reason; then waits fail and name the
 * rank. A rank that still has not ended, as inside a waiting MPI call, prints a line and exits. Threads: any; begin
 * and end: one. */

/* Borrows `presence` until the end. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_mpi_watch_begin(struct el_presence *presence);
/* Whether a rank was lost: then MPI_Finalize is impossible. Legal if never begun. */
bool el_mpi_watch_end(void);
/* EL_ERR_PEER naming the rank. Cheap. */
enum el_status el_mpi_watch_check(void);

/* ---- postman.c ---- */

/* A message is copied into the sender's mailbox and leaves when its receiver asks for it, so a sender waits only while
 * its mailbox is full.
 *
 * The mailbox is a ring buffer, freed in order. Progress may need MPI calls on the sender's side: a thread of the
 * group makes them while there is mail. All functions but the first and last need the turn. */

struct el_mpi_box {
    char *at; /* [bytes of a mailbox] */
    size_t used, next;
    bool holds; /* while checking letters: an older one is still there */
};

struct el_mpi_mail {
    size_t bytes;
    struct el_mpi_box *boxes;              /* [size]; NULL: not opened */
    struct el_mpi_letter *letters, **last; /* not yet freed, oldest first */
    pthread_t postman;
    bool has_postman, closing;
    sem_t work;
};

struct el_mpi_group {
    int rank, size;
    MPI_Comm comm;
    struct el_mpi_alarm alarm;
    bool running;              /* an operation, which then handles an alarm itself */
    MPI_Request in[2], out[2]; /* of the running operation, for el_mpi_alarm_give_up */
    char *inbox[2];            /* [SEGMENT_BYTES] each: segments to combine */
    char *scratch;             /* [scratch_bytes] */
    size_t scratch_bytes;
    struct el_mpi_mail mail;
};

/* Without the turn. */
enum el_status el_mpi_open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes);
enum el_status el_mpi_send(struct el_mpi_group *group, const struct el_comm_task *task);
enum el_status el_mpi_receive(struct el_mpi_group *group, const struct el_comm_task *task);
/* Waits briefly until all mail has left, not after an alarm. Without the turn. */
void el_mpi_mail_close(struct el_mpi_group *group);

extern const struct el_comm_backend el_mpi_comm_backend;
