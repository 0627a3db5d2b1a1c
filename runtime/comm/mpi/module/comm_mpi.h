/* What the files of the communicator `mpi` share: a rank's state, and segments of data on their way. */
#ifndef EL_COMM_MPI_H
#define EL_COMM_MPI_H

#include "runtime/comm/comm_ops.h"
#include "runtime/comm/mpi/module/calls.h"
#include "runtime/comm/mpi/module/postman.h"

/* A message's length: long enough to hide its start, short enough that it is combined from the cache. */
enum { EL_MPI_SEGMENT_BYTES = 256 * 1024 };

struct el_mpi_group {
    int rank, size;
    MPI_Comm comm;
    struct el_mpi_alarm alarm;
    bool running;              /* an operation: it finds an alarm itself, and tells the other ranks */
    MPI_Request in[2], out[2]; /* of the running operation, so that a failed one can be ended in one place */
    char *inbox[2];            /* [EL_MPI_SEGMENT_BYTES] each: segments that wait to be combined */
    char *scratch;             /* [scratch_bytes]: see el_comm_scratch */
    size_t scratch_bytes;
    struct el_mpi_mail mail;
};

/* In this thread's turn (calls.h). Errors: EL_ERR_PEER; requests stay open. */
enum el_status el_mpi_collective(struct el_mpi_group *group, const struct el_comm_task *task);
enum el_status el_mpi_barrier(struct el_mpi_group *group);

extern const struct el_comm_backend el_mpi_comm_backend;

#endif
