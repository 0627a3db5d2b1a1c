/* Messages between members of `nccl`. NCCL's send ends when its message was received; ours when it lies in a mailbox
 * at the sender, which it leaves on the link's own stream and communicator: no order of sends and receives deadlocks
 * while the mailboxes have room. Received data go straight to their place.
 *
 * NCCL has no tags: a link keeps send order. The mailbox is a ring buffer; a message that wraps travels as two NCCL
 * messages, and both ends count the same bytes. */
#include <stdlib.h>

#include "runtime/comm/nccl/comm_nccl.h"

struct el_nccl_letter {
    size_t bytes;
    void *left;
};

enum { TOKEN_BYTES = 1 }; /* an empty message: NCCL moves no zero bytes */

/* The next `bytes` of the ring buffer: *first_p up to its end, the rest from its beginning. */
static size_t stretch(struct el_nccl_link *link, size_t box_bytes, size_t bytes, size_t *first_p)
{
    size_t begin = link->next;
    *first_p = box_bytes - begin < bytes ? box_bytes - begin : bytes;
    link->next = box_bytes ? (begin + bytes) % box_bytes : 0;
    return begin;
}

/* Makes the stream wait until the oldest messages have left. */
static enum el_status make_room(struct el_nccl_member *member, int stream, struct el_nccl_link *link, size_t bytes)
{
    while (link->used + bytes > member->mail->bytes || link->n_put - link->n_gone == EL_NCCL_LETTERS) {
        const struct el_nccl_letter *oldest = &link->letters[link->n_gone++ % EL_NCCL_LETTERS];
        EL_TRY(el_device_enqueue_wait_event(member->device, stream, oldest->left));
        link->used -= oldest->bytes;
    }
    return EL_OK;
}

static enum el_status put(struct el_nccl_member *member, char *box, const char *data, size_t bytes)
{
    struct el_device *device = member->device;
    return bytes ? el_device_enqueue_copy(device, member->stream, box, device, data, device, bytes) : EL_OK;
}

static enum el_status move(const struct el_nccl_member *member, bool sends, void *const at[2], const size_t bytes[2],
                           void *comm, void *stream)
{
    const struct el_nccl_api *api = member->group->api;
    int n = bytes[1] > 0 ? 2 : 1, peer = sends ? 1 : 0, failed = 0;
    if (n == 2) EL_NCCL_TRY(api, member->device, group_start);
    for (int i = 0; i < n && failed == 0; i++)
        failed = sends ? api->send(at[i], bytes[i], EL_U8, peer, comm, stream)
                       : api->receive(at[i], bytes[i], EL_U8, peer, comm, stream);
    int ended = n == 2 ? api->group_end() : 0;
    EL_TRY(el_nccl_check(api, member->device, failed, sends ? "nccl send" : "nccl receive"));
    return el_nccl_check(api, member->device, ended, "nccl group_end");
}

/* Separate from the word that the member's stream writes. */
static char *token_of(const struct el_nccl_member *member)
{
    return (char *)member->word->address + sizeof(float);
}

static enum el_status send_message(struct el_nccl_member *member, const struct el_comm_task *task, size_t bytes)
{
    struct el_nccl_link *link = &member->mail->to[task->root];
    struct el_device *device = member->device;
    void *native;
    size_t pieces[2];
    EL_TRY(make_room(member, member->stream, link, bytes));
    size_t begin = stretch(link, member->mail->bytes, bytes, &pieces[0]);
    pieces[1] = bytes - pieces[0];
    EL_TRY(put(member, link->box + begin, task->data, pieces[0]));
    EL_TRY(put(member, link->box, (const char *)task->data + pieces[0], pieces[1]));
    EL_TRY(el_device_enqueue_wait(device, link->stream, device, member->stream));
    EL_TRY(el_device_native_stream(device, link->stream, &native));
    void *at[2] = {bytes ? link->box + begin : token_of(member), link->box};
    if (bytes == 0) pieces[0] = TOKEN_BYTES;
    EL_TRY(move(member, true, at, pieces, link->comm, native));
    struct el_nccl_letter *letter = &link->letters[link->n_put++ % EL_NCCL_LETTERS];
    letter->bytes = bytes;
    link->used += bytes;
    return el_device_enqueue_record(device, link->stream, letter->left);
}

static enum el_status receive_message(struct el_nccl_member *member, const struct el_comm_task *task, size_t bytes)
{
    struct el_nccl_link *link = &member->mail->from[task->root];
    size_t pieces[2];
    stretch(link, member->mail->bytes, bytes, &pieces[0]);
    pieces[1] = bytes - pieces[0];
    void *at[2] = {bytes ? task->result : (void *)member->word->address, (char *)task->result + pieces[0]};
    if (bytes == 0) pieces[0] = TOKEN_BYTES;
    return move(member, false, at, pieces, link->comm, task->stream);
}

enum el_status el_nccl_enqueue_link(struct el_nccl_member *member, const struct el_comm_task *task)
{
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    return task->verb == EL_COMM_SEND ? send_message(member, task, bytes) : receive_message(member, task, bytes);
}

enum el_status el_nccl_each_comm(struct el_nccl_member *member,
                                 enum el_status (*each)(const struct el_nccl_member *member, void **comm_p))
{
    int n = member->mail ? member->group->size : 0;
    if (member->comm) EL_TRY(each(member, &member->comm));
    for (int r = 0; r < n; r++) {
        if (member->mail->to[r].comm) EL_TRY(each(member, &member->mail->to[r].comm));
        if (member->mail->from[r].comm) EL_TRY(each(member, &member->mail->from[r].comm));
    }
    return EL_OK;
}

static enum el_status open_sender(struct el_nccl_member *member, struct el_nccl_link *link, char *box)
{
    link->box = box;
    link->letters = calloc(EL_NCCL_LETTERS, sizeof *link->letters);
    if (!link->letters) return el_fail(EL_ERR_HOST_MEMORY, "nccl communicator: no memory");
    for (int i = 0; i < EL_NCCL_LETTERS; i++) EL_TRY(el_device_event_open(member->device, &link->letters[i].left));
    return el_device_take_stream(member->device, &link->stream);
}

static enum el_status prepare(struct el_nccl_member *member, const bool *partners, char *boxes, size_t bytes)
{
    size_t size = (size_t)member->group->size;
    struct el_nccl_mail *mail = calloc(1, sizeof *mail);
    struct el_nccl_link *links = calloc(2 * size, sizeof *links);
    if (!mail || !links) {
        free(links);
        free(mail);
        return el_fail(EL_ERR_HOST_MEMORY, "nccl communicator: no memory");
    }
    *mail = (struct el_nccl_mail){.bytes = bytes, .to = links, .from = links + size};
    for (int r = 0; r < member->group->size; r++) mail->to[r].stream = EL_STREAM_COMPUTE;
    pthread_mutex_lock(&member->group->whole->lock);
    member->mail = mail;
    pthread_mutex_unlock(&member->group->whole->lock);
    for (int r = 0; r < member->group->size; r++) {
        if (!partners[r]) continue;
        EL_TRY(open_sender(member, &mail->to[r], boxes));
        boxes += bytes;
    }
    return el_nccl_reserve_word(member);
}

/* A message waits for its receiver: so would the host, and, in the order of the calls, streams of one hardware queue:
 * two ranks for each other. */
static enum el_status check_settings(const struct el_nccl_member *member)
{
    enum { QUEUES = 32 }; /* CUDA's most: NCCL has streams, too, and CUDA chooses each stream's queue */
    int queues = member->group->api->queues();
    if (member->group->api->launches_block())
        return el_fail(EL_ERR_INVALID,
                       "%s: CUDA_LAUNCH_BLOCKING is set: the host waits for each message to be received, and two ranks "
                       "that send would wait for each other for ever: unset it",
                       el_device_name(member->device));
    if (queues == 0 || queues >= QUEUES) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "%s: CUDA_DEVICE_MAX_CONNECTIONS is %d: streams share hardware queues then, and messages between "
                   "ranks may wait for each other for ever: unset it, or set %d",
                   el_device_name(member->device), queues, QUEUES);
}

/* NCCL connects two members at their first message, which blocks the calling thread until the other end calls too.
 * Sending one here prevents a deadlock when both later send first. */
static enum el_status connect(struct el_nccl_member *member, const struct el_nccl_link *link, bool sends)
{
    const struct el_nccl_api *api = member->group->api;
    void *native, *word = (void *)member->word->address;
    EL_TRY(el_device_native_stream(member->device, sends ? link->stream : member->stream, &native));
    EL_TRY(el_nccl_enter(member->group));
    int result = sends ? api->send(token_of(member), TOKEN_BYTES, EL_U8, 1, link->comm, native)
                       : api->receive(word, TOKEN_BYTES, EL_U8, 0, link->comm, native);
    return el_nccl_leave_with(member, result, sends ? "nccl send" : "nccl receive");
}

/* One direction between this member and `peer`, or neither; all members of the group split at once. *missing_p: a peer
 * that did not come. */
static enum el_status open_way(struct el_nccl_member *member, int peer, bool sends, int *missing_p)
{
    const struct el_nccl_api *api = member->group->api;
    int rank = member->rank, n = 0, place = 0;
    bool open = peer >= 0;
    void *comm = NULL;
    EL_TRY(el_nccl_enter(member->group));
    int result = api->comm_split(el_nccl_comm(member), !open ? -1 : rank < peer ? rank : peer, sends ? 0 : 1, &comm);
    if (!open || result != EL_NCCL_OK) return el_nccl_leave_with(member, result, "nccl comm_split");
    pthread_mutex_lock(&member->group->whole->lock);
    struct el_nccl_link *link = sends ? &member->mail->to[peer] : &member->mail->from[peer];
    link->comm = comm;
    pthread_mutex_unlock(&member->group->whole->lock);
    result = api->comm_place(comm, &place, &n);
    EL_TRY(el_nccl_leave_with(member, result, "nccl comm_place"));
    if (n == 2) return connect(member, link, sends);
    *missing_p = peer;
    return EL_OK;
}

/* Round x pairs each member with rank ^ x: all pairs, once. */
static enum el_status open_ways(struct el_nccl_member *member, const bool *partners, int *missing_p)
{
    int size = member->group->size, end = 1;
    while (end < size) end *= 2;
    for (int x = 1; x < end; x++) {
        int peer = member->rank ^ x;
        if (peer >= size || !partners[peer]) peer = -1;
        for (int way = 0; way < 2; way++)
            EL_TRY(open_way(member, peer, (member->rank < peer) == (way == 0), missing_p));
    }
    return EL_OK;
}

enum el_status el_nccl_open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes)
{
    struct el_nccl_member *member = state;
    struct el_error cause;
    int missing = -1;
    if (mine == EL_OK && !member->group->api->comm_split)
        mine = el_fail(EL_ERR_ABSENT, "nccl communicator: messages need NCCL 2.18 or newer");
    if (mine == EL_OK) mine = prepare(member, partners, boxes, bytes);
    if (mine == EL_OK) mine = check_settings(member);
    if (mine == EL_OK) mine = open_ways(member, partners, &missing);
    if (mine == EL_OK && missing < 0) return EL_OK;
    if (mine == EL_OK)
        return el_fail(EL_ERR_INVALID, "mailboxes: rank %d names rank %d, which does not name it", member->rank,
                       missing);
    el_error_take(el_nccl_explain(member->group, mine), &cause); /* the others would wait in NCCL */
    el_nccl_ops.abort(state);
    return el_error_give(&cause);
}

void el_nccl_mail_close(struct el_nccl_member *member)
{
    struct el_nccl_mail *mail = member->mail;
    for (int r = 0; mail && r < member->group->size; r++) {
        struct el_nccl_link *link = &mail->to[r];
        for (int i = 0; link->letters && i < EL_NCCL_LETTERS; i++)
            el_device_event_close(member->device, link->letters[i].left);
        free(link->letters);
        if (link->stream != EL_STREAM_COMPUTE) el_device_give_back_stream(member->device, link->stream);
    }
    if (mail) free(mail->to);
    free(mail);
    member->mail = NULL;
}
