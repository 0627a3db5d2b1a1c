/* What the files of the communicator `mpi` share: a rank's state, and segments of data on their way. */
#ifndef EL_MPI_GROUP_H
#define EL_MPI_GROUP_H

#include "runtime/comm/comm_ops.h"
#include "runtime/comm/mpi/progress.h"

/* A message's length: long enough to hide its start, short enough that a sum reads it from the cache. */
enum { EL_MPI_SEGMENT_BYTES = 256 * 1024 };

struct el_mpi_group {
    int rank, size;
    MPI_Comm comm;
    struct el_mpi_alarm alarm;
    struct el_mpi_job alarm_job; /* tells the other ranks */
    _Atomic int aborted;         /* alarm_job has been submitted */
    MPI_Request in[2], out[2];   /* of the running operation, so that a failed one can be ended in one place */
    char *inbox[2];              /* [EL_MPI_SEGMENT_BYTES] each: segments that wait to be summed */
};

/* Each is a job's body: in the thread that calls MPI. Contracts: comm_ops.h. */
enum el_status el_mpi_all_reduce(struct el_mpi_group *group, const struct el_comm_task *task);
enum el_status el_mpi_broadcast(struct el_mpi_group *group, const struct el_comm_task *task);
enum el_status el_mpi_reduce(struct el_mpi_group *group, const struct el_comm_task *task);
/* What they send and receive. */
struct el_comm_traffic el_mpi_traffic(const struct el_comm_shape *shape);

extern const struct el_comm_backend el_mpi_comm_backend;

#endif
