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
 * polls when nothing moves: on few cores it shares one with the compute thread.
 */
#ifndef EL_MPI_CALLS_H
#define EL_MPI_CALLS_H

#include <mpi.h>
#include <stddef.h>

#include "runtime/base/status.h"
#include "runtime/comm/mpi/module/alarm.h"

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
 * Errors: EL_ERR_PEER after an alarm or the alarm's deadline, or when a rank is gone (lookout.h); the requests stay as
 * they are (el_mpi_alarm_give_up). */
enum el_status el_mpi_wait(MPI_Request *a, MPI_Request *b, struct el_mpi_alarm *alarm);

/* EL_OK, or EL_ERR_PEER with the call and MPI's own words. */
enum el_status el_mpi_check(int code, const char *call);
#define EL_MPI_TRY(call) EL_TRY(el_mpi_check((call), #call))

#endif
