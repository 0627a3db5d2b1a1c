/* Stopping together. Errors of MPI are not looked at here: all that could be done is being done. */
#include "runtime/comm/mpi/module/alarm.h"

#include "runtime/base/clock.h"
#include "runtime/comm/mpi/module/calls.h"
#include "runtime/comm/mpi/module/lookout.h"

enum { TAG_STOPPED = 2, LAST_CHANCE_NS = 1000000000, LOST_CHANCE_NS = 100000000 };

static void listen_again(struct el_mpi_alarm *alarm)
{
    MPI_Irecv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_STOPPED, alarm->comm, &alarm->message);
}

void el_mpi_alarm_open(struct el_mpi_alarm *alarm, MPI_Comm comm, int rank, int size)
{
    alarm->comm = comm;
    alarm->rank = rank;
    alarm->size = size;
    listen_again(alarm);
}

void el_mpi_alarm_close(struct el_mpi_alarm *alarm)
{
    if (alarm->message == MPI_REQUEST_NULL) return;
    MPI_Cancel(&alarm->message);
    MPI_Wait(&alarm->message, MPI_STATUS_IGNORE);
}

bool el_mpi_alarm_check(struct el_mpi_alarm *alarm)
{
    if (!alarm) return false;
    for (int arrived = 1; arrived && alarm->message != MPI_REQUEST_NULL;) {
        MPI_Test(&alarm->message, &arrived, MPI_STATUS_IGNORE);
        if (!arrived) break;
        atomic_store(&alarm->raised, 1);
        if (++alarm->n_stopped < alarm->size - 1) listen_again(alarm);
    }
    return atomic_load(&alarm->raised);
}

void el_mpi_alarm_raise(struct el_mpi_alarm *alarm)
{
    atomic_store(&alarm->raised, 1);
}

/* Empty messages leave at once: nobody waits for the requests. */
void el_mpi_alarm_tell(struct el_mpi_alarm *alarm)
{
    if (alarm->told) return;
    alarm->told = true;
    for (int i = 0; i < alarm->size; i++) {
        MPI_Request request;
        if (i == alarm->rank) continue;
        if (MPI_Isend(NULL, 0, MPI_BYTE, i, TAG_STOPPED, alarm->comm, &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    }
}

/* Receives first: those that nothing has matched are cancelled, the others end, as their senders go on too. Then the
 * sends, until they have ended or every other rank has said that it will ask for nothing more. */
void el_mpi_alarm_give_up(struct el_mpi_alarm *alarm, MPI_Request receives[2], MPI_Request sends[2])
{
    int64_t deadline_ns = el_clock_ns() + (el_mpi_watch_lost() ? LOST_CHANCE_NS : LAST_CHANCE_NS);
    int received = 0, sent = 0;
    for (int i = 0; i < 2; i++)
        if (receives[i] != MPI_REQUEST_NULL) MPI_Cancel(&receives[i]);
    while (!(received && (sent || alarm->n_stopped >= alarm->size - 1)) && el_clock_ns() < deadline_ns) {
        MPI_Testall(2, receives, &received, MPI_STATUSES_IGNORE);
        MPI_Testall(2, sends, &sent, MPI_STATUSES_IGNORE);
        if (received) el_mpi_alarm_tell(alarm);
        el_mpi_alarm_check(alarm);
        el_mpi_nap();
    }
    el_mpi_alarm_tell(alarm);
    for (int i = 0; i < 2; i++) {
        if (receives[i] != MPI_REQUEST_NULL) MPI_Request_free(&receives[i]);
        if (sends[i] != MPI_REQUEST_NULL) MPI_Request_free(&sends[i]);
    }
}
