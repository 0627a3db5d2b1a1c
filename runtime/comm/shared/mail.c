/* Send and receive between members with access to each other's memory, by a mailbox per sender at the receiver.
 *
 * Messages lie in the box as in a ring buffer; notes describe them in a separate ring, so an empty message takes no
 * bytes. A receiver takes the oldest message with its tag; space frees in send order. */
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/shared/engine.h"

enum { NOTES = 64 };

struct note {
    int tag;
    size_t bytes, begin;
};

/* Seen by both ends; at the receiver. Initially zero. */
struct el_shared_link {
    struct el_flag put, gone;
    struct note notes[NOTES]; /* of message k: [k % NOTES] */
    bool open;                /* the receiver named the sender */
    size_t box_begin;         /* the sender's box among the receiver's */
};

/* One end's private state. */
struct end {
    struct el_shared_link *link;
    char *box; /* [bytes] */
    uint32_t n_put, n_gone;
    size_t used, next; /* sender: bytes in the box as far as it knows; start of the next message */
    bool taken[NOTES]; /* receiver: messages taken before an older one */
};

struct el_shared_mail {
    size_t bytes;
    struct end *to, *from; /* [size] */
};

size_t el_shared_links_bytes(int size)
{
    return (size_t)size * sizeof(struct el_shared_link);
}

static bool place_number(const struct el_shared *shared, const void *address, struct el_shared_place *place_p)
{
    return shared->ways->place(shared->owner, address, 1, place_p);
}

static void offer(const struct el_shared *shared, const bool *partners, struct el_shared_link *links, size_t bytes)
{
    size_t begin = 0;
    for (int i = 0; i < shared->size; i++) {
        if (!partners[i]) continue;
        links[i].open = true;
        links[i].box_begin = begin;
        begin += bytes;
    }
}

static struct end end_of(const struct el_shared *shared, struct el_shared_place links, struct el_shared_place boxes,
                         int sender)
{
    struct el_shared_link *link = (struct el_shared_link *)shared->ways->address(shared->owner, &links) + sender;
    char *first = shared->ways->address(shared->owner, &boxes);
    return (struct end){.link = link, .box = first + (link->open ? link->box_begin : 0)};
}

static enum el_status settle(struct el_shared *shared, const bool *partners, const uint64_t *links,
                             const uint64_t *boxes, const struct el_shared_place *own)
{
    for (int i = 0; i < shared->size; i++) {
        struct el_shared_place there[2] = {{own[0].region, links[i]}, {own[1].region, boxes[i]}};
        if (!partners[i]) continue;
        shared->mail->to[i] = end_of(shared, there[0], there[1], shared->rank);
        shared->mail->from[i] = end_of(shared, own[0], own[1], i);
        if (!shared->mail->to[i].link->open)
            return el_fail(EL_ERR_INVALID, "mailboxes: rank %d names rank %d, which does not name it", shared->rank, i);
    }
    return EL_OK;
}

enum el_status el_shared_open_mail(struct el_shared *shared, enum el_status mine, const bool *partners, void *links,
                                   void *boxes, size_t bytes)
{
    uint64_t numbers[2][EL_SHARED_MEMBERS_MAX];
    struct el_shared_place own[2] = {{0}};
    struct el_shared_mail *mail = calloc(1, sizeof *mail);
    struct end *ends = calloc(2 * (size_t)shared->size, sizeof *ends);
    if (mine == EL_OK && (!mail || !ends)) mine = el_fail(EL_ERR_HOST_MEMORY, "mailboxes: no memory");
    if (mine == EL_OK && !(place_number(shared, links, &own[0]) && place_number(shared, boxes, &own[1])))
        mine = el_fail(EL_ERR_INTERNAL, "mailboxes in memory that other ranks cannot access");
    if (mine == EL_OK) offer(shared, partners, links, bytes);
    enum el_status status = el_shared_agree(shared, mine, own[0].offset, numbers[0]);
    if (status == EL_OK) status = el_shared_agree(shared, EL_OK, own[1].offset, numbers[1]);
    if (status != EL_OK || !mail) {
        free(ends);
        free(mail);
        return status;
    }
    *mail = (struct el_shared_mail){.bytes = bytes, .to = ends, .from = ends + shared->size};
    shared->mail = mail;
    mine = settle(shared, partners, numbers[0], numbers[1], own);
    status = el_shared_agree(shared, mine, 0, NULL);
    if (status != EL_OK) el_shared_close_mail(shared);
    return status;
}

void el_shared_close_mail(struct el_shared *shared)
{
    if (shared->mail) free(shared->mail->to);
    free(shared->mail);
    shared->mail = NULL;
}

void el_shared_abort_mail(struct el_shared *shared)
{
    for (int i = 0; shared->mail && i < shared->size; i++) {
        struct end *ends[] = {&shared->mail->to[i], &shared->mail->from[i]};
        for (int way = 0; way < 2 && ends[way]->link; way++) {
            el_flag_abort(&ends[way]->link->put);
            el_flag_abort(&ends[way]->link->gone);
        }
    }
}

static enum el_status move(const struct el_shared *shared, int partner, bool puts, char *box, char *data, size_t bytes)
{
    void *to = puts ? box : data, *from = puts ? data : box;
    if (bytes == 0) return EL_OK;
    if (shared->move) return shared->move(shared->mover, partner, puts, to, from, bytes);
    memcpy(to, from, bytes);
    return EL_OK;
}

static enum el_status move_message(const struct el_shared *shared, int partner, bool puts, size_t begin, char *data,
                                   size_t bytes)
{
    const struct el_shared_mail *mail = shared->mail;
    char *box = puts ? mail->to[partner].box : mail->from[partner].box;
    size_t first = mail->bytes - begin < bytes ? mail->bytes - begin : bytes;
    EL_TRY(move(shared, partner, puts, box + begin, data, first));
    return move(shared, partner, puts, box, data + first, bytes - first);
}

static void count_gone(struct end *end)
{
    for (uint32_t gone = el_flag_count(&end->link->gone); end->n_gone != gone; end->n_gone = el_flag_next(end->n_gone))
        end->used -= end->link->notes[end->n_gone % NOTES].bytes;
}

static enum el_status send_message(struct el_shared *shared, const struct el_comm_task *task, size_t bytes)
{
    struct end *end = &shared->mail->to[task->root];
    count_gone(end);
    shared->late = "received nothing from its full mailbox";
    while (end->used + bytes > shared->mail->bytes || el_flag_next(end->n_put) % NOTES == end->n_gone % NOTES) {
        EL_TRY(el_shared_wait_flag(shared, task->root, &end->link->gone, el_flag_next(end->n_gone)));
        count_gone(end);
    }
    if (!el_shared_touch(shared)) return el_shared_leave(shared);
    enum el_status status = move_message(shared, task->root, true, end->next, task->data, bytes);
    end->link->notes[end->n_put % NOTES] = (struct note){.tag = task->tag, .bytes = bytes, .begin = end->next};
    el_shared_untouch(shared);
    EL_TRY(status);
    end->used += bytes;
    end->next = shared->mail->bytes ? (end->next + bytes) % shared->mail->bytes : 0;
    end->n_put = el_flag_next(end->n_put);
    el_flag_raise(&end->link->put, end->n_put);
    return EL_OK;
}

/* The oldest message with the tag; -1: none. */
static int64_t find(struct end *end, int tag)
{
    end->n_put = el_flag_count(&end->link->put);
    for (uint32_t k = end->n_gone; k != end->n_put; k = el_flag_next(k))
        if (!end->taken[k % NOTES] && end->link->notes[k % NOTES].tag == tag) return k;
    return -1;
}

static void let_go(struct end *end)
{
    uint32_t before = end->n_gone;
    for (; end->taken[end->n_gone % NOTES]; end->n_gone = el_flag_next(end->n_gone))
        end->taken[end->n_gone % NOTES] = false;
    if (end->n_gone != before) el_flag_raise(&end->link->gone, end->n_gone);
}

static enum el_status receive_message(struct el_shared *shared, const struct el_comm_task *task, size_t bytes)
{
    struct end *end = &shared->mail->from[task->root];
    int64_t k;
    shared->late = "sent no message with this tag";
    while ((k = find(end, task->tag)) < 0)
        EL_TRY(el_shared_wait_flag(shared, task->root, &end->link->put, el_flag_next(end->n_put)));
    const struct note *note = &end->link->notes[k % NOTES];
    if (note->bytes != bytes)
        return el_fail(EL_ERR_INTERNAL, "%s communicator: the message from rank %d with tag %d has %zu bytes, not %zu",
                       shared->kind, task->root, task->tag, note->bytes, bytes);
    EL_TRY(move_message(shared, task->root, false, note->begin, task->result, bytes));
    end->taken[k % NOTES] = true;
    let_go(end);
    return EL_OK;
}

enum el_status el_shared_run_link(struct el_shared *shared, const struct el_comm_task *task)
{
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    el_shared_begin(shared);
    return task->verb == EL_COMM_SEND ? send_message(shared, task, bytes) : receive_message(shared, task, bytes);
}
