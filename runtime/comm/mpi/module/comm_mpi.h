/* What the files of the module share: how this process calls MPI, how a failure ends all ranks' operations, who looks
 * whether the others are there, and a rank's state in a communicator.
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

/* How this process calls MPI: from any thread, one at a time (MPI_THREAD_SERIALIZED), and never in a call that waits
 * for another rank while others could go on.
 *
 *     el_mpi_enter();                        this thread's turn
 *     MPI_Irecv(...); MPI_Isend(...);
 *     el_mpi_wait(&a, &b, alarm);            gives the turn away while nothing moves
 *     el_mpi_leave();
 *
 * So operations of several communicators, each in its own thread, go on beside one another in whatever order the ranks
 * come to them; whoever polls moves the messages of all.
 *
 * MPI libraries wait by polling. Ours polls too while a transfer is under way, but sleeps for microseconds between
 * polls when nothing moves: on few cores it shares one with the compute thread. */

/* How one rank's failure ends the running operations of all, so that no memory of theirs is touched afterwards.
 *
 * Every rank tells every other one, once, that it has stopped: an empty message, sent when it has no receive left that
 * could match (so also at once by a rank that is in no operation). A rank that has these words from all others knows
 * that those of its sends that are still open will never be asked for; until then it keeps MPI going, because the other
 * side of a transfer that has begun needs both.
 *
 * All functions but el_mpi_alarm_raise: in this thread's turn (el_mpi_enter).
 */
struct el_mpi_alarm {
    _Atomic int raised; /* by this rank, or by a message */
    bool told;          /* this rank has told the others */
    int rank, size, n_stopped;
    MPI_Comm comm;
    MPI_Request message; /* a receive that is posted until all others have stopped */
    /* What the running operation's waits may take, and what to say if they take longer. */
    int64_t began_ns, timeout_ns; /* 0: for ever */
    int waits_for;                /* rank */
};

/* Initialises MPI. Once a process. `library` gets the library's version. */
enum el_status el_mpi_start(int *rank_p, int *size_p, char *library, size_t bytes);
/* Ends MPI. Threads: the one that started it. */
void el_mpi_stop(void);
/* Ends the job by MPI_Abort, in its turn if that comes within seconds. Does not return. Threads: any, without turn. */
void el_mpi_abort(int exit_status);

/* Not to be nested. */
void el_mpi_enter(void);
void el_mpi_leave(void);
/* In its turn, which others may take meanwhile. */
void el_mpi_nap(void);

/* In its turn: a nap, while waiting for what only others can bring about. Errors: as el_mpi_wait. */
enum el_status el_mpi_pause(struct el_mpi_alarm *alarm);

/* In its turn. Waits until both requests have ended; a pointer may be NULL, and so may `alarm`.
 * Errors: EL_ERR_PEER after an alarm or the alarm's deadline, or when a rank is gone (el_mpi_watch_check); the requests
 * stay as they are (el_mpi_alarm_give_up). */
enum el_status el_mpi_wait(MPI_Request *a, MPI_Request *b, struct el_mpi_alarm *alarm);

/* EL_OK, or EL_ERR_PEER with the call and MPI's own words. */
enum el_status el_mpi_check(int code, const char *call);
#define EL_MPI_TRY(call) EL_TRY(el_mpi_check((call), #call))

void el_mpi_alarm_open(struct el_mpi_alarm *alarm, MPI_Comm comm, int rank, int size);
void el_mpi_alarm_close(struct el_mpi_alarm *alarm);
/* Looks for messages; whether there is an alarm. NULL is legal: none. */
bool el_mpi_alarm_check(struct el_mpi_alarm *alarm);
/* Threads: any. The next check finds it. */
void el_mpi_alarm_raise(struct el_mpi_alarm *alarm);
/* Tells the others that this rank has stopped, which raises their alarms; no receive may be open. */
void el_mpi_alarm_tell(struct el_mpi_alarm *alarm);
/* Ends an operation's receives and sends, as far as that can be had within a second, or less when a rank is gone. */
void el_mpi_alarm_give_up(struct el_mpi_alarm *alarm, MPI_Request receives[2], MPI_Request sends[2]);

/* Ranks of one host watch each other. Usually mpirun ends all ranks at once when one of them died; but under load it
 * has taken 6 to 24 s to notice, and MPI itself never does.
 *
 *     el_mpi_watch_begin(presence);
 *     EL_TRY(el_mpi_watch_check());     in each wait for another rank
 *     lost = el_mpi_watch_end();        before ranks leave one by one
 *
 * A rank that sees another one gone first leaves it to mpirun, which knows how it ended. Then its waits fail, and name
 * the rank. If it has not ended by itself some time after that, as inside a call of MPI that waits, it says so in a
 * line and ends. Threads: any; begin and end: one. */

/* `presence` stays until the end. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_mpi_watch_begin(struct el_presence *presence);
/* Whether a rank was lost: then nobody can leave MPI in order. Legal if it never began. */
bool el_mpi_watch_end(void);
/* EL_ERR_PEER naming the rank. Cost: a read. */
enum el_status el_mpi_watch_check(void);

/* ---- postman.c ---- */

/* Mail over MPI: a message is copied into the sender's mailbox and leaves from there when its receiver asks for it, so
 * that a sender waits only while its mailbox is full, and no order of sends and receives can deadlock before that.
 *
 * Messages of a mailbox stand one behind the other, and go on at its beginning; room comes free in the order in which
 * they were put. A message in the mailbox may need MPI to be called on the sender's side too: a thread of the group
 * sees to that as long as there is one. All functions but the first and the last: in this thread's turn (el_mpi_enter).
 */

/* For one receiver. */
struct el_mpi_box {
    char *at; /* [bytes of a mailbox] */
    size_t used, next;
    bool holds; /* while letters are looked through: an older one is still there */
};

struct el_mpi_mail {
    size_t bytes;                          /* of a mailbox */
    struct el_mpi_box *boxes;              /* [size]; NULL: not opened */
    struct el_mpi_letter *letters, **last; /* whose room is not free, oldest first */
    pthread_t postman;
    bool has_postman, closing;
    sem_t work;
};

/* ---- the communicator ---- */

struct el_mpi_group {
    int rank, size;
    MPI_Comm comm;
    struct el_mpi_alarm alarm;
    bool running;              /* an operation: it finds an alarm itself, and tells the other ranks */
    MPI_Request in[2], out[2]; /* of the running operation, so that a failed one can be ended in one place */
    char *inbox[2];            /* [SEGMENT_BYTES] each: segments that wait to be combined */
    char *scratch;             /* [scratch_bytes]: see el_comm_scratch */
    size_t scratch_bytes;
    struct el_mpi_mail mail;
};

/* The hook of comm_ops.h. Not in turn. */
enum el_status el_mpi_open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes);
enum el_status el_mpi_send(struct el_mpi_group *group, const struct el_comm_task *task);
enum el_status el_mpi_receive(struct el_mpi_group *group, const struct el_comm_task *task);
/* Waits until all has left, but not long, and not after an alarm: nobody asks for it then. Not in turn. */
void el_mpi_mail_close(struct el_mpi_group *group);

extern const struct el_comm_backend el_mpi_comm_backend;
