/* Mail, and a thread that keeps MPI progressing for it. */
#include "runtime/comm/mpi/module/comm_mpi.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "runtime/base/clock.h"

/* MPI promises tags up to 32767. */
enum { TAG_MAIL = 16, TAG_MAX = 32767 - TAG_MAIL, LAST_CHANCE_NS = 1000000000, MESSAGE_MAX = 1 << 30 };

struct el_mpi_letter {
    struct el_mpi_letter *next;
    MPI_Request request; /* null: it has left */
    int to;
    size_t bytes;
};

/* Returns whether any mail remains. */
static bool reap(struct el_mpi_mail *mail, int size)
{
    bool waits = false;
    for (int r = 0; mail->letters && r < size; r++) mail->boxes[r].holds = false;
    for (struct el_mpi_letter **link = &mail->letters; *link;) {
        struct el_mpi_letter *letter = *link;
        struct el_mpi_box *box = &mail->boxes[letter->to];
        int left = 0;
        MPI_Test(&letter->request, &left, MPI_STATUS_IGNORE);
        waits |= !left;
        box->holds |= !left;
        if (box->holds) {
            link = &letter->next;
            continue;
        }
        box->used -= letter->bytes;
        *link = letter->next;
        free(letter);
        if (!*link) mail->last = link;
    }
    return waits;
}

static void *deliver(void *context)
{
    struct el_mpi_group *group = context;
    struct el_mpi_mail *mail = &group->mail;
    prctl(PR_SET_NAME, "el-mpi-mail");
    el_mpi_enter();
    while (!mail->closing) {
        if (reap(mail, group->size)) {
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

/* Starts the thread at the first letter that does not leave at once. */
static enum el_status call_postman(struct el_mpi_group *group)
{
    struct el_mpi_mail *mail = &group->mail;
    if (!mail->has_postman) {
        sem_init(&mail->work, 0, 0);
        if (pthread_create(&mail->postman, NULL, deliver, group) != 0)
            return el_fail(EL_ERR_HOST_MEMORY, "mpi communicator: no thread for messages");
        mail->has_postman = true;
    }
    sem_post(&mail->work);
    return EL_OK;
}

static int send_from(struct el_mpi_group *group, const struct el_mpi_box *box, int tag, struct el_mpi_letter *letter)
{
    size_t first = group->mail.bytes - box->next;
    MPI_Datatype cut;
    if (letter->bytes <= first)
        return MPI_Isend(box->at + box->next, (int)letter->bytes, MPI_BYTE, letter->to, TAG_MAIL + tag, group->comm,
                         &letter->request);
    const int lengths[] = {(int)first, (int)(letter->bytes - first)};
    const MPI_Aint begins[] = {(MPI_Aint)box->next, 0};
    int result = MPI_Type_create_hindexed(2, lengths, begins, MPI_BYTE, &cut);
    if (result == MPI_SUCCESS) result = MPI_Type_commit(&cut);
    if (result != MPI_SUCCESS) return result;
    result = MPI_Isend(box->at, 1, cut, letter->to, TAG_MAIL + tag, group->comm, &letter->request);
    MPI_Type_free(&cut); /* takes effect when the message has left */
    return result;
}

static void put(const struct el_mpi_mail *mail, const struct el_mpi_box *box, const void *data, size_t bytes)
{
    size_t first = mail->bytes - box->next < bytes ? mail->bytes - box->next : bytes;
    if (first) memcpy(box->at + box->next, data, first);
    if (bytes > first) memcpy(box->at, (const char *)data + first, bytes - first);
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
    struct el_mpi_box *box = &mail->boxes[task->root];
    group->alarm.waits_for = task->root;
    for (reap(mail, group->size); box->used + bytes > mail->bytes; reap(mail, group->size))
        EL_TRY(el_mpi_pause(&group->alarm));
    struct el_mpi_letter *letter = malloc(sizeof *letter);
    if (!letter) return el_fail_errno("mpi communicator: a message");
    *letter = (struct el_mpi_letter){.to = task->root, .bytes = bytes};
    put(mail, box, task->data, bytes);
    int result = send_from(group, box, task->tag, letter);
    if (result != MPI_SUCCESS) {
        free(letter);
        return el_mpi_check(result, "MPI_Isend");
    }
    box->used += bytes;
    if (bytes) box->next = (box->next + bytes) % mail->bytes;
    *mail->last = letter;
    mail->last = &letter->next;
    return reap(mail, group->size) ? call_postman(group) : EL_OK;
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

/* Mail that has not left stays with MPI, and so does its memory. */
void el_mpi_mail_close(struct el_mpi_group *group)
{
    struct el_mpi_mail *mail = &group->mail;
    int64_t deadline_ns = el_clock_ns() + LAST_CHANCE_NS;
    el_mpi_enter();
    while (reap(mail, group->size) && !el_mpi_alarm_check(&group->alarm) && el_clock_ns() < deadline_ns) el_mpi_nap();
    mail->closing = true;
    el_mpi_leave();
    if (mail->has_postman) {
        sem_post(&mail->work);
        pthread_join(mail->postman, NULL);
        sem_destroy(&mail->work);
    }
    free(mail->boxes);
}

enum el_status el_mpi_open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes)
{
    struct el_mpi_group *group = state;
    char *at = boxes;
    struct el_mpi_box *made = calloc((size_t)group->size, sizeof *made);
    if (mine == EL_OK && !made) mine = el_fail(EL_ERR_HOST_MEMORY, "mpi communicator: no memory");
    for (int r = 0; mine == EL_OK && r < group->size; r++) {
        if (!partners[r]) continue;
        made[r].at = at;
        at += bytes;
    }
    enum el_status status =
        el_comm_meet_partners(el_mpi_comm_backend.ops, group, group->rank, group->size, mine, partners);
    if (status != EL_OK) {
        free(made);
        return status;
    }
    group->mail.bytes = bytes;
    group->mail.boxes = made;
    group->mail.last = &group->mail.letters;
    return EL_OK;
}
