/* On the wire: head and bytes one way, the count of bytes taken the other way. */
#include "runtime/comm/tcp/comm_tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

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

static enum el_status wait_for_room(struct el_tcp_group *group, int rank, size_t bytes)
{
    struct el_tcp_peer *peer = &group->peers[rank];
    struct pollfd polls[1];
    for (;;) {
        if (atomic_load(&peer->unread_bytes) + bytes <= group->mailbox_bytes) return EL_OK;
        EL_TRY(el_tcp_wait(group, polls, 1, rank));
    }
}

/* `optional`: the other end may be gone. */
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

/* Contiguous bytes of the ring buffer, from byte `at` of the message on. */
static size_t unbroken(const struct el_tcp_group *group, size_t begin, size_t at, size_t bytes, size_t *where_p)
{
    size_t box = group->mailbox_bytes, where = box ? (begin + at) % box : 0;
    *where_p = where;
    return bytes - at < box - where ? bytes - at : box - where;
}

static bool open_letter(struct el_tcp_group *group, struct el_tcp_post *post)
{
    struct head head;
    memcpy(&head, post->head, sizeof head);
    pthread_mutex_lock(&group->mutex);
    bool fits = post->box ? head.bytes <= group->mailbox_bytes : head.bytes == 0;
    post->coming = fits ? malloc(sizeof *post->coming) : NULL;
    if (post->coming) *post->coming = (struct el_tcp_letter){.tag = head.tag, .bytes = head.bytes, .begin = post->next};
    if (post->coming && head.bytes) post->next = (post->next + (size_t)head.bytes) % group->mailbox_bytes;
    pthread_mutex_unlock(&group->mutex);
    post->done = 0;
    if (!post->coming)
        el_tcp_give_up(group, fits ? "no memory for a message that came" : "a message came without a mailbox");
    return post->coming;
}

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
        size_t bytes = post->coming ? (size_t)post->coming->bytes : sizeof post->head, at = post->done,
               most = bytes - at;
        if (post->coming) most = unbroken(group, post->coming->begin, post->done, bytes, &at);
        ssize_t got = recv(socket, (post->coming ? post->box : post->head) + at, most, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        if (got <= 0) return false;
        post->done += (size_t)got;
        if (post->done < bytes) continue;
        if (!post->coming && !open_letter(group, post)) return false;
        if (post->done == post->coming->bytes) deliver(group, post); /* an empty one is complete with its head */
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

static struct el_tcp_letter *find(struct el_tcp_group *group, struct el_tcp_post *post, int tag)
{
    pthread_mutex_lock(&group->mutex);
    struct el_tcp_letter *letter = post->first;
    while (letter && (letter->taken || letter->tag != tag)) letter = letter->next;
    pthread_mutex_unlock(&group->mutex);
    return letter;
}

/* Frees the oldest taken ones; returns their bytes. */
static uint64_t let_go(struct el_tcp_group *group, struct el_tcp_post *post, struct el_tcp_letter *taken)
{
    uint64_t bytes = 0;
    pthread_mutex_lock(&group->mutex);
    taken->taken = true;
    while (post->first && post->first->taken) {
        struct el_tcp_letter *gone = post->first;
        post->first = gone->next;
        if (post->last == gone) post->last = NULL;
        bytes += gone->bytes;
        free(gone);
    }
    pthread_mutex_unlock(&group->mutex);
    return bytes;
}

static enum el_status take(struct el_tcp_group *group, const struct el_comm_task *task, struct el_tcp_letter *letter)
{
    char words[EL_COMM_WORDS_BYTES];
    struct el_tcp_post *post = &group->peers[task->root].post;
    int socket = atomic_load(&group->peers[task->root].from[EL_TCP_LANE_MAIL]);
    if (letter->bytes != bytes_of(task)) {
        el_comm_task_words(task, words);
        return el_fail(EL_ERR_INTERNAL, "tcp communicator: rank %d: for the %s came a message of %llu bytes",
                       group->rank, words, (unsigned long long)letter->bytes);
    }
    for (size_t at = 0, where, most; at < letter->bytes; at += most) {
        most = unbroken(group, letter->begin, at, (size_t)letter->bytes, &where);
        memcpy((char *)task->result + at, post->box + where, most);
    }
    uint64_t room = let_go(group, post, letter);
    /* The sender may have ended already. */
    return room ? put_all(group, task->root, socket, &room, sizeof room, true) : EL_OK;
}

enum el_status el_tcp_receive(struct el_tcp_group *group, const struct el_comm_task *task)
{
    struct el_tcp_letter *letter;
    struct el_tcp_post *post = &group->peers[task->root].post;
    struct pollfd polls[1];
    for (;;) {
        bool ended = atomic_load(&post->ended); /* read before the last search */
        if ((letter = find(group, post, task->tag))) break;
        if (ended) return el_tcp_fail_rank(group, task->root, 0);
        EL_TRY(el_tcp_wait(group, polls, 1, task->root));
    }
    return take(group, task, letter);
}

static void give_boxes(struct el_tcp_group *group, const bool *partners, char *boxes, size_t bytes)
{
    pthread_mutex_lock(&group->mutex);
    group->mailbox_bytes = bytes;
    for (int r = 0; r < group->size; r++) {
        group->peers[r].post.box = partners && partners[r] ? boxes : NULL;
        if (partners && partners[r]) boxes += bytes;
    }
    pthread_mutex_unlock(&group->mutex);
}

/* Another member may send as soon as all have agreed. */
enum el_status el_tcp_open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes)
{
    struct el_tcp_group *group = state;
    if (mine == EL_OK) give_boxes(group, partners, boxes, bytes);
    enum el_status status =
        el_comm_meet_partners(el_comm_tcp_backend.ops, group, group->rank, group->size, mine, partners);
    if (status != EL_OK) give_boxes(group, NULL, NULL, 0);
    return status;
}
