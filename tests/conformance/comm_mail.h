/* Send and receive by mailboxes, as one member of a group sees it: order, tags, boxes that are full or used again and
 * again, and what is refused. Included by the tests that start members, each in its own way. */
#pragma once

#include "tests/conformance/comm_checks.h"

enum { MAIL_BYTES = 1000 };

/* `count` bytes to or from a partner. */
static inline enum el_status mail(struct el_comm *comm, enum el_comm_verb verb, int partner, int tag, uint8_t *bytes,
                                  size_t count)
{
    struct el_comm_op op = {.verb = verb, .dtype = EL_U8, .count = count, .root = partner, .tag = tag};
    if (verb == EL_COMM_SEND)
        op.data = el_view_host(bytes);
    else
        op.result = el_view_host(bytes);
    return el_comm_exchange(comm, &op);
}

static inline enum el_status mail_send(struct el_comm *comm, int to, int tag, int value, size_t count)
{
    uint8_t bytes[MAIL_BYTES];
    for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)((size_t)value + i);
    return mail(comm, EL_COMM_SEND, to, tag, bytes, count);
}

static inline enum el_status mail_take(struct el_comm *comm, int from, int tag, int value, size_t count)
{
    uint8_t bytes[MAIL_BYTES];
    EL_TRY(mail(comm, EL_COMM_RECV, from, tag, bytes, count));
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != (uint8_t)((size_t)value + i))
            return el_fail(EL_ERR_INTERNAL, "tag %d from %d: [%zu] is %d, not of message %d", tag, from, i, bytes[i],
                           value);
    return EL_OK;
}

/* All send first: in boxes that are not full nobody waits. Tags are taken out of order, each tag's messages in it. */
static inline enum el_status mail_tags(struct el_comm *comm)
{
    int rank = el_comm_rank(comm), size = el_comm_size(comm);
    static const int tags[] = {1, 2, 1, 3}, order[] = {3, 1, 0, 2};
    for (int d = 1; d < size; d++)
        for (int i = 0; i < 4; i++) EL_TRY(mail_send(comm, (rank + d) % size, tags[i], 10 * rank + i, 100 + (size_t)i));
    for (int d = 1; d < size; d++)
        for (int i = 0; i < 4; i++) {
            int from = (rank + d) % size;
            EL_TRY(mail_take(comm, from, tags[order[i]], 10 * from + order[i], 100 + (size_t)order[i]));
        }
    return EL_OK;
}

/* Far more than a box holds, of every length, round and round in it; also more empty ones than it has notes for. The
 * first member waits for room again and again. */
static inline enum el_status mail_stream(struct el_comm *comm)
{
    int last = el_comm_size(comm) - 1;
    for (int i = 0; i < 400; i++) {
        size_t count = i < 300 ? 1 + (size_t)(i * 37 % MAIL_BYTES) : 1;
        if (el_comm_rank(comm) == 0) EL_TRY(mail_send(comm, last, 5, i, count));
        if (el_comm_rank(comm) == last) EL_TRY(mail_take(comm, 0, 5, i, count));
    }
    return EL_OK;
}

/* An empty message is one: who takes it waits for it, and one of another tag does not stand for it. */
static inline enum el_status mail_empty(struct el_comm *comm)
{
    int last = el_comm_size(comm) - 1, rank = el_comm_rank(comm);
    static const int tags[] = {1, 2, 1}, order[] = {2, 1, 1};
    uint8_t byte = 7;
    for (int i = 0; i < 3; i++) {
        if (rank == 0) EL_TRY(mail(comm, EL_COMM_SEND, last, tags[i], &byte, tags[i] == 2));
        if (rank == last && i == 0) byte = 0;
    }
    for (int i = 0; i < 3 && rank == last; i++) EL_TRY(mail(comm, EL_COMM_RECV, 0, order[i], &byte, order[i] == 2));
    return byte == 7 || (rank != 0 && rank != last) ? EL_OK : el_fail(EL_ERR_INTERNAL, "%d came", byte);
}

static inline enum el_status mail_refused(struct el_comm *comm)
{
    int rank = el_comm_rank(comm), other = (rank + 1) % el_comm_size(comm);
    uint8_t bytes[MAIL_BYTES + 1] = {0};
    if (mail(comm, EL_COMM_SEND, other, 0, bytes, MAIL_BYTES + 1) != EL_ERR_INVALID ||
        !strstr(el_error_message(), "1001 bytes, and mailboxes of 1000"))
        return el_fail(EL_ERR_INTERNAL, "a message that is too large: %s", el_error_message());
    if (mail(comm, EL_COMM_SEND, rank, 0, bytes, 1) != EL_ERR_INVALID)
        return el_fail(EL_ERR_INTERNAL, "a message to itself");
    if (el_comm_open_mailboxes(comm, NULL, 1) != EL_ERR_INVALID) return el_fail(EL_ERR_INTERNAL, "opened twice");
    return EL_OK;
}

/* What is muted carries nothing, and is still waited for. */
static inline enum el_status mail_muted(struct el_comm *comm)
{
    int size = el_comm_size(comm), rank = el_comm_rank(comm), next = (rank + 1) % size,
        before = (rank + size - 1) % size;
    struct el_device *device = el_comm_device(comm);
    struct el_buffer *buffers[2];
    struct el_program *program;
    float value = (float)rank + 1;
    for (int b = 0; b < 2; b++) EL_TRY(el_device_alloc(device, EL_TAG_INPUT, sizeof value, "value", &buffers[b]));
    EL_TRY(el_program_create(&program));
    struct el_comm_op send = {
        .verb = EL_COMM_SEND, .dtype = EL_F32, .count = 1, .root = next, .data = el_view_of(buffers[0], 0)};
    struct el_comm_op take = {
        .verb = EL_COMM_RECV, .dtype = EL_F32, .count = 1, .root = before, .result = el_view_of(buffers[1], 0)};
    EL_TRY(el_comm_issue(comm, program, &send, NULL));
    EL_TRY(el_comm_issue(comm, program, &take, NULL));
    EL_TRY(el_program_end(program));
    for (int b = 0; b < 2; b++) EL_TRY(el_device_write(el_view_of(buffers[b], 0), &value, sizeof value));
    for (int muted = 1; muted >= 0; muted--) {
        el_comm_mute(comm, muted);
        EL_TRY(el_program_run(program, 0, NULL));
        EL_TRY(el_device_read(el_view_of(buffers[1], 0), &value, sizeof value));
        if (value != (float)(muted ? rank : before) + 1)
            return el_fail(EL_ERR_INTERNAL, "muted %d: %g", muted, (double)value);
    }
    el_program_destroy(program);
    for (int b = 0; b < 2; b++) el_device_free(buffers[b]);
    return EL_OK;
}

/* Collective, of two or more. */
static inline enum el_status check_mail(struct el_comm *comm)
{
    const struct el_ledger *ledger = el_device_ledger(el_comm_device(comm));
    size_t boxes = (size_t)(el_comm_size(comm) - 1) * MAIL_BYTES, before = ledger->live_by_tag[EL_TAG_MAILBOX];
    int other = (el_comm_rank(comm) + 1) % el_comm_size(comm);
    uint8_t byte = 0;
    if (el_comm_has_verb(comm, EL_COMM_SEND) || mail(comm, EL_COMM_SEND, other, 0, &byte, 1) != EL_ERR_ABSENT)
        return el_fail(EL_ERR_INTERNAL, "sends without mailboxes");
    EL_TRY(el_comm_open_mailboxes(comm, NULL, MAIL_BYTES));
    if (ledger->live_by_tag[EL_TAG_MAILBOX] != before + boxes)
        return el_fail(EL_ERR_INTERNAL, "%zu bytes of mailboxes", ledger->live_by_tag[EL_TAG_MAILBOX] - before);
    EL_TRY(mail_refused(comm));
    EL_TRY(mail_tags(comm));
    EL_TRY(mail_stream(comm));
    EL_TRY(mail_empty(comm));
    EL_TRY(mail_muted(comm));
    return check_operations(comm, 1000, EL_F32, 0);
}

/* Between neighbours of a line alone, in a group of its own: who has one has half of the memory of who has two. */
static inline enum el_status mail_neighbours(struct el_comm *line)
{
    int rank = el_comm_rank(line), last = el_comm_size(line) - 1, n = (rank > 0) + (rank < last);
    bool partners[16] = {false};
    size_t before = el_device_ledger(el_comm_device(line))->live_by_tag[EL_TAG_MAILBOX];
    for (int r = 0; r <= last; r++) partners[r] = r == rank - 1 || r == rank + 1;
    EL_TRY(el_comm_open_mailboxes(line, partners, MAIL_BYTES));
    size_t taken = el_device_ledger(el_comm_device(line))->live_by_tag[EL_TAG_MAILBOX] - before;
    if (taken != (size_t)n * MAIL_BYTES) return el_fail(EL_ERR_INTERNAL, "%zu bytes for %d partners", taken, n);
    for (int i = 0; i < 9; i++) {
        if (rank < last) EL_TRY(mail_send(line, rank + 1, 0, 10 * rank + i, 400));
        if (rank > 0) EL_TRY(mail_take(line, rank - 1, 0, 10 * (rank - 1) + i, 400));
        if (rank > 0) EL_TRY(mail_send(line, rank - 1, 0, 20 * rank + i, 300));
        if (rank < last) EL_TRY(mail_take(line, rank + 1, 0, 20 * (rank + 1) + i, 300));
    }
    int far = rank == 0 ? last : 0;
    if (last < 2 || far == rank - 1 || far == rank + 1) return EL_OK;
    if (mail_send(line, far, 0, 0, 1) == EL_ERR_INVALID && strstr(el_error_message(), "no mailboxes were opened"))
        return EL_OK;
    return el_fail(EL_ERR_INTERNAL, "a message to no partner: %s", el_error_message());
}

/* Member 0 names the last one, which names nobody. */
static inline enum el_status mail_one_sided(struct el_comm *group)
{
    int last = el_comm_size(group) - 1;
    bool partners[16] = {false};
    partners[last] = el_comm_rank(group) == 0;
    enum el_status status = el_comm_open_mailboxes(group, partners, MAIL_BYTES);
    if (status == (el_comm_rank(group) == 0 ? EL_ERR_INVALID : EL_ERR_PEER) &&
        strstr(el_error_message(), "does not name it"))
        return EL_OK;
    return el_fail(EL_ERR_INTERNAL, "status %d: %s", (int)status, el_error_message());
}

/* Collective, of two or more. */
static inline enum el_status check_partners(struct el_comm *comm)
{
    enum el_status (*const acts[])(struct el_comm *) = {mail_neighbours, mail_one_sided};
    for (int i = 0; i < 2; i++) {
        struct el_comm *part;
        EL_TRY(el_comm_split(comm, 0, el_comm_rank(comm), &part));
        enum el_status status = acts[i](part);
        if (status != EL_OK) el_comm_abort(part);
        el_comm_close(part);
        EL_TRY(status);
    }
    return EL_OK;
}

/* A box that nobody empties. Member 0 waits until its time is over; all others are aborted by that. */
static inline enum el_status check_full_mailbox(struct el_comm *comm)
{
    int rank = el_comm_rank(comm);
    EL_TRY(el_comm_open_mailboxes(comm, NULL, 100));
    EL_TRY(el_comm_set_timeout(comm, rank == 0 ? 0.2 : 0));
    if (rank == 0) EL_TRY(mail_send(comm, 1, 4, 0, 60));
    enum el_status status = rank == 0 ? mail_send(comm, 1, 4, 0, 60) : mail_take(comm, 0, 9, 0, 60);
    if (status != EL_ERR_PEER) return el_fail(EL_ERR_INTERNAL, "status %d: %s", (int)status, el_error_message());
    if (rank == 0 && !strstr(el_error_message(), "send number 2 of rank 0: ") &&
        !strstr(el_error_message(), "rank 1 received nothing from its full mailbox within 0.2 s"))
        return el_fail(EL_ERR_INTERNAL, "not named: %s", el_error_message());
    return EL_OK;
}
