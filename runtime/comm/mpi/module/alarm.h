/* How one rank's failure ends the running operations of all, so that no memory of theirs is touched afterwards.
 *
 * Every rank tells every other one, once, that it has stopped: an empty message, sent when it has no receive left that
 * could match (so also at once by a rank that is in no operation). A rank that has these words from all others knows
 * that those of its sends that are still open will never be asked for; until then it keeps MPI going, because the other
 * side of a transfer that has begun needs both.
 *
 * All functions but el_mpi_alarm_raise: in this thread's turn (calls.h).
 */
#ifndef EL_MPI_ALARM_H
#define EL_MPI_ALARM_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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

#endif
