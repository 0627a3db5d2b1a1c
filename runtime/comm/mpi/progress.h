/* The one thread of this process that calls MPI: it initialises MPI, does jobs in the order they come, and ends MPI.
 *
 * So MPI needs to support no more than one calling thread, and no two libraries' locks meet. Jobs are done one after
 * the other: ranks must submit theirs in the same order, which a communication stream does.
 *
 * MPI libraries wait by polling. Ours polls too while a transfer is under way (el_mpi_wait), but sleeps for
 * microseconds between polls when nothing moves: on few cores it shares one with the compute thread.
 */
#ifndef EL_MPI_PROGRESS_H
#define EL_MPI_PROGRESS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/status.h"
#include "runtime/comm/mpi/alarm.h"

struct el_mpi_job {
    enum el_status (*run)(void *context);
    void *context;
    struct el_error outcome;
    bool done;
    struct el_mpi_job *next;
};

/* Starts the thread and MPI. Once a process. `library` gets the library's version. */
enum el_status el_mpi_start(int *rank_p, int *size_p, char *library, size_t bytes);
/* Ends MPI and the thread. */
void el_mpi_stop(void);
/* Does a job in the thread and waits for it. Threads: any but the thread itself. */
enum el_status el_mpi_do(enum el_status (*run)(void *context), void *context);
/* Queues a job, which must live until it is done, and does not wait. */
void el_mpi_submit(struct el_mpi_job *job);
/* Makes the thread call MPI_Abort as soon as it can. Does not return. */
void el_mpi_abort(int exit_status);

/* In jobs only. Waits until both requests have ended; a pointer may be NULL, and so may `alarm`.
 * Errors: EL_ERR_PEER after an alarm; the requests stay as they are (el_mpi_alarm_give_up). */
enum el_status el_mpi_wait(MPI_Request *a, MPI_Request *b, struct el_mpi_alarm *alarm);

/* EL_OK, or EL_ERR_PEER with the call and MPI's own words. */
enum el_status el_mpi_check(int code, const char *call);
#define EL_MPI_TRY(call) EL_TRY(el_mpi_check((call), #call))

#endif
