/* Letters, and the postman who keeps MPI going for them. */
#include "runtime/comm/mpi/mail.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "runtime/base/clock.h"
#include "runtime/comm/mpi/group.h"

/* MPI promises tags up to 32767. */
enum { TAG_MAIL = 16, TAG_MAX = 32767 - TAG_MAIL, LAST_CHANCE_NS = 1000000000, MESSAGE_MAX = 1 << 30 };

struct el_mpi_letter {
    struct el_mpi_letter *next;
    MPI_Request request;
    int to;
    size_t bytes;
    char data[];
};

static void reap(struct el_mpi_mail *mail)
{
    for (struct el_mpi_letter **link = &mail->letters; *link;) {
        struct el_mpi_letter *letter = *link;
        int left = 0;
        MPI_Test(&letter->request, &left, MPI_STATUS_IGNORE);
        if (!left) {
            link = &letter->next;
            continue;
        }
        *link = letter->next;
        free(letter);
    }
}

static void *deliver(void *context)
{
    struct el_mpi_mail *mail = context;
    prctl(PR_SET_NAME, "el-mpi-mail");
    el_mpi_enter();
    while (!mail->closing) {
        reap(mail);
        if (mail->letters) {
            el_mpi_nap();
            continue;
        }
        el_mpi_leave();
        sem_wait(&mail->work);
        el_mpi_enter();
    }
    el_mpi_leave();
    return NULL;
}

/* The first letter that does not leave at once needs a postman. */
static enum el_status call_postman(struct el_mpi_mail *mail)
{
    if (!mail->has_postman) {
        sem_init(&mail->work, 0, 0);
        if (pthread_create(&mail->postman, NULL, deliver, mail) != 0)
            return el_fail(EL_ERR_HOST_MEMORY, "mpi communicator: no thread for messages");
        mail->has_postman = true;
    }
    sem_post(&mail->work);
    return EL_OK;
}

static bool has_room(struct el_mpi_mail *mail, int to, size_t bytes)
{
    size_t waiting = 0;
    reap(mail);
    for (const struct el_mpi_letter *letter = mail->letters; letter; letter = letter->next)
        if (letter->to == to) waiting += letter->bytes;
    return waiting == 0 || waiting + bytes <= EL_MPI_MAILBOX_BYTES;
}

static enum el_status check(const struct el_comm_task *task, size_t bytes)
{
    if (task->tag > TAG_MAX) return el_fail(EL_ERR_INVALID, "mpi communicator: tag %d, at most %d", task->tag, TAG_MAX);
    if (bytes > MESSAGE_MAX)
        return el_fail(EL_ERR_INVALID, "mpi communicator: a message of %zu bytes, at most %d", bytes, MESSAGE_MAX);
    return EL_OK;
}

enum el_status el_mpi_send(struct el_mpi_group *group, const struct el_comm_task *task)
{
    struct el_mpi_mail *mail = &group->mail;
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    EL_TRY(check(task, bytes));
    group->alarm.waits_for = task->root;
    while (!has_room(mail, task->root, bytes)) EL_TRY(el_mpi_pause(&group->alarm));
    struct el_mpi_letter *letter = malloc(sizeof *letter + bytes);
    if (!letter) return el_fail_errno("mpi communicator: a message of %zu bytes", bytes);
    *letter = (struct el_mpi_letter){.next = mail->letters, .to = task->root, .bytes = bytes};
    if (bytes) memcpy(letter->data, task->data, bytes);
    int result =
        MPI_Isend(letter->data, (int)bytes, MPI_BYTE, task->root, TAG_MAIL + task->tag, group->comm, &letter->request);
    if (result != MPI_SUCCESS) {
        free(letter);
        return el_mpi_check(result, "MPI_Isend");
    }
    mail->letters = letter;
    reap(mail);
    return mail->letters ? call_postman(mail) : EL_OK;
}

enum el_status el_mpi_receive(struct el_mpi_group *group, const struct el_comm_task *task)
{
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    EL_TRY(check(task, bytes));
    group->alarm.waits_for = task->root;
    EL_MPI_TRY(
        MPI_Irecv(task->result, (int)bytes, MPI_BYTE, task->root, TAG_MAIL + task->tag, group->comm, &group->in[0]));
    return el_mpi_wait(&group->in[0], NULL, &group->alarm);
}

/* What has not left is left to MPI, with its memory. */
void el_mpi_mail_close(struct el_mpi_group *group)
{
    struct el_mpi_mail *mail = &group->mail;
    int64_t deadline_ns = el_clock_ns() + LAST_CHANCE_NS;
    el_mpi_enter();
    for (reap(mail); mail->letters && !el_mpi_alarm_check(&group->alarm) && el_clock_ns() < deadline_ns; reap(mail))
        el_mpi_nap();
    mail->closing = true;
    el_mpi_leave();
    if (!mail->has_postman) return;
    sem_post(&mail->work);
    pthread_join(mail->postman, NULL);
    sem_destroy(&mail->work);
}
