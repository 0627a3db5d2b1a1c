/* Mail over MPI: a message is copied into the sender's mailbox and leaves from there when its receiver asks for it, so
 * that a sender waits only while its mailbox is full, and no order of sends and receives can deadlock before that.
 *
 * Messages of a mailbox stand one behind the other, and go on at its beginning; room comes free in the order in which
 * they were put. A message in the mailbox may need MPI to be called on the sender's side too: a thread of the group
 * sees to that as long as there is one. All functions but the first and the last: in this thread's turn (calls.h).
 */
#ifndef EL_MPI_POSTMAN_H
#define EL_MPI_POSTMAN_H

#include <pthread.h>
#include <semaphore.h>

#include "runtime/comm/mpi/module/calls.h"

struct el_mpi_group;
struct el_comm_task;

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

/* The hook of comm_ops.h. Not in turn. */
enum el_status el_mpi_open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes);
enum el_status el_mpi_send(struct el_mpi_group *group, const struct el_comm_task *task);
enum el_status el_mpi_receive(struct el_mpi_group *group, const struct el_comm_task *task);
/* Waits until all has left, but not long, and not after an alarm: nobody asks for it then. Not in turn. */
void el_mpi_mail_close(struct el_mpi_group *group);

#endif
