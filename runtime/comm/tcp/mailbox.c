/* Sending into a rank's mailbox, and taking out of one's own. What crosses: a head and a message's bytes one way; the
 * other way how many bytes were taken. */
#include "runtime/comm/tcp/mailbox.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "runtime/comm/tcp/group.h"

struct head {
    int32_t tag;
    uint32_t zero;
    uint64_t bytes;
};
_Static_assert(sizeof(struct head) == sizeof((struct el_tcp_post *)0)->head, "a head fits into its place");

static size_t bytes_of(const struct el_comm_task *task)
{
    return task->count * el_dtype_bytes(task->dtype);
}

/* ---- the sender ---- */

static enum el_status wait_for_room(struct el_tcp_group *group, int rank, size_t bytes)
{
    struct el_tcp_peer *peer = &group->peers[rank];
    struct pollfd polls[1];
    for (;;) {
        uint64_t unread = atomic_load(&peer->unread_bytes);
        if (unread == 0 || unread + bytes <= EL_TCP_MAILBOX_BYTES) return EL_OK;
        EL_TRY(el_tcp_wait(group, polls, 1, rank));
    }
}

/* `optional`: it is no failure that the other end has gone. */
static enum el_status put_all(struct el_tcp_group *group, int rank, int socket, const void *data, size_t bytes,
                              bool optional)
{
    for (size_t at = 0; at < bytes;) {
        struct pollfd polls[2] = {[1] = {.fd = socket, .events = POLLOUT}};
        if (atomic_load(&group->aborted)) return el_tcp_fail_aborted(group);
        ssize_t put = send(socket, (const char *)data + at, bytes - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && errno != EINTR && errno != EAGAIN)
            return optional ? EL_OK : el_tcp_fail_rank(group, rank, errno);
        if (put < 0 && errno == EAGAIN) EL_TRY(el_tcp_wait(group, polls, 2, rank));
        if (put > 0) at += (size_t)put;
    }
    return EL_OK;
}

enum el_status el_tcp_send(struct el_tcp_group *group, const struct el_comm_task *task)
{
    const struct head head = {.tag = task->tag, .bytes = bytes_of(task)};
    int rank = task->root, socket;
    EL_TRY(wait_for_room(group, rank, head.bytes));
    EL_TRY(el_tcp_mesh_to(group, rank, EL_TCP_LANE_MAIL, &socket));
    atomic_fetch_add(&group->peers[rank].unread_bytes, head.bytes);
    EL_TRY(put_all(group, rank, socket, &head, sizeof head, false));
    return put_all(group, rank, socket, task->data, head.bytes, false);
}

bool el_tcp_mail_hear(struct el_tcp_group *group, int rank)
{
    struct el_tcp_peer *peer = &group->peers[rank];
    uint64_t taken;
    if (el_tcp_read(atomic_load(&peer->to[EL_TCP_LANE_MAIL]), &taken, sizeof taken, -1) != 0) return false;
    atomic_fetch_sub(&peer->unread_bytes, taken);
    eventfd_write(group->news, 1);
    return true;
}

/* ---- the receiver's attendant ---- */

/* The head has come. */
static bool open_letter(struct el_tcp_group *group, struct el_tcp_post *post)
{
    struct head head;
    memcpy(&head, post->head, sizeof head);
    post->coming = head.bytes < SIZE_MAX / 2 ? malloc(sizeof *post->coming + (size_t)head.bytes) : NULL;
    if (!post->coming) {
        el_tcp_give_up(group, "no memory for a message that came");
        return false;
    }
    *post->coming = (struct el_tcp_letter){.tag = head.tag, .bytes = head.bytes};
    post->done = 0;
    return true;
}

/* All of it has come. */
static void deliver(struct el_tcp_group *group, struct el_tcp_post *post)
{
    pthread_mutex_lock(&group->mutex);
    if (post->last)
        post->last->next = post->coming;
    else
        post->first = post->coming;
    post->last = post->coming;
    pthread_mutex_unlock(&group->mutex);
    post->coming = NULL;
    post->done = 0;
    eventfd_write(group->news, 1);
}

bool el_tcp_mail_take(struct el_tcp_group *group, int rank)
{
    struct el_tcp_post *post = &group->peers[rank].post;
    int socket = atomic_load(&group->peers[rank].from[EL_TCP_LANE_MAIL]);
    for (;;) {
        size_t bytes = post->coming ? (size_t)post->coming->bytes : sizeof post->head;
        char *to = post->coming ? post->coming->data : post->head;
        ssize_t got = recv(socket, to + post->done, bytes - post->done, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        if (got <= 0) return false;
        post->done += (size_t)got;
        if (post->done < bytes) continue;
        if (!post->coming && !open_letter(group, post)) return false;
        if (post->done == post->coming->bytes) deliver(group, post); /* an empty one has come with its head */
    }
}

void el_tcp_mail_clear(struct el_tcp_post *post)
{
    free(post->coming);
    while (post->first) {
        struct el_tcp_letter *letter = post->first;
        post->first = letter->next;
        free(letter);
    }
}

/* ---- the receiver ---- */

/* The oldest with this tag, out of the queue; NULL: none. */
static struct el_tcp_letter *find(struct el_tcp_group *group, struct el_tcp_post *post, int tag)
{
    struct el_tcp_letter *before = NULL, *letter;
    pthread_mutex_lock(&group->mutex);
    for (letter = post->first; letter && letter->tag != tag; letter = letter->next) before = letter;
    if (letter) {
        if (before)
            before->next = letter->next;
        else
            post->first = letter->next;
        if (post->last == letter) post->last = before;
    }
    pthread_mutex_unlock(&group->mutex);
    return letter;
}

static enum el_status take(struct el_tcp_group *group, const struct el_comm_task *task,
                           const struct el_tcp_letter *letter)
{
    char words[EL_COMM_WORDS_BYTES];
    uint64_t taken = letter->bytes;
    int socket = atomic_load(&group->peers[task->root].from[EL_TCP_LANE_MAIL]);
    if (letter->bytes != bytes_of(task)) {
        el_comm_task_words(task, words);
        return el_fail(EL_ERR_INTERNAL, "tcp communicator: rank %d: for the %s came a message of %llu bytes",
                       group->rank, words, (unsigned long long)letter->bytes);
    }
    memcpy(task->result, letter->data, letter->bytes);
    /* A sender may end before all that it sent is taken. */
    return put_all(group, task->root, socket, &taken, sizeof taken, true);
}

enum el_status el_tcp_receive(struct el_tcp_group *group, const struct el_comm_task *task)
{
    struct el_tcp_letter *letter;
    struct el_tcp_post *post = &group->peers[task->root].post;
    struct pollfd polls[1];
    for (;;) {
        bool ended = atomic_load(&post->ended); /* before the last look */
        if ((letter = find(group, post, task->tag))) break;
        if (ended) return el_tcp_fail_rank(group, task->root, 0);
        EL_TRY(el_tcp_wait(group, polls, 1, task->root));
    }
    enum el_status status = take(group, task, letter);
    free(letter);
    return status;
}
