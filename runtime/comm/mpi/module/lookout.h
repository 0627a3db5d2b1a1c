/* Ranks of one host watch each other. Usually mpirun ends all ranks at once when one of them died; but under load it
 * has taken 6 to 24 s to notice, and MPI itself never does.
 *
 *     el_mpi_watch_begin(presence);
 *     EL_TRY(el_mpi_watch_check());     in each wait for another rank
 *     lost = el_mpi_watch_end();        before ranks leave one by one
 *
 * A rank that sees another one gone first leaves it to mpirun, which knows how it ended. Then its waits fail, and name
 * the rank. If it has not ended by itself some time after that, as inside a call of MPI that waits, it says so in a
 * line and ends. The state is global because MPI's is. Threads: any; begin and end: one.
 */
#ifndef EL_MPI_LOOKOUT_H
#define EL_MPI_LOOKOUT_H

#include <stdbool.h>

#include "runtime/comm/shared/presence.h"

/* `presence` stays until the end. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_mpi_watch_begin(struct el_presence *presence);
/* Whether a rank was lost: then nobody can leave MPI in order. Legal if it never began. */
bool el_mpi_watch_end(void);
bool el_mpi_watch_lost(void);
/* EL_ERR_PEER naming the rank. Cost: a read. */
enum el_status el_mpi_watch_check(void);

#endif
