/* Messages between members with threads of their own, on fake asynchronous devices whose streams run out of step: all
 * send to all before they receive; boxes are used round and round; what is sent is overwritten behind the send, and
 * what is received is used right behind the receive. */
#ifndef EL_TESTS_DEVICE_MAIL_H
#define EL_TESTS_DEVICE_MAIL_H

#include "tests/unit/fake_async.h"
#include "tests/unit/local_group.h"

/* BOX_BYTES: less than two steps' messages of a link, and no multiple of any. */
enum { MAIL_DEVICES = 3, MAIL_STEPS = 5, BOX_BYTES = 1000, MESSAGES = 2, FLOATS = 100, SHORT_FLOATS = 75 };
enum { SIDE_FLOATS = MAIL_DEVICES * MESSAGES * FLOATS };

struct mail_sides {
    struct el_buffer *source, *data, *result, *out, *rubbish;
};

static float mail_value(int from, int to, int i, int k, int step)
{
    return (float)(10000 * from + 1000 * to + 500 * i + k) + (float)step / 8;
}

static size_t mail_place(int other, int i)
{
    return (size_t)(other * MESSAGES + i) * FLOATS * sizeof(float);
}

static enum el_status mail_sides_open(struct el_device *device, struct mail_sides *sides)
{
    struct el_buffer **all[] = {&sides->source, &sides->data, &sides->result, &sides->out, &sides->rubbish};
    float host[SIDE_FLOATS];
    for (int i = 0; i < SIDE_FLOATS; i++) host[i] = -1;
    for (int s = 0; s < 5; s++) {
        EL_TRY(el_device_alloc(device, EL_TAG_INPUT, sizeof host, "side", all[s]));
        EL_TRY(el_device_write(el_view_of(*all[s], 0), host, sizeof host));
    }
    return EL_OK;
}

static void mail_copy(struct el_program *program, struct el_device *device, struct el_buffer *to,
                      struct el_buffer *from)
{
    const struct el_op_head head = {.phase = EL_PHASE_COMM};
    el_program_copy(program, device, EL_STREAM_COMPUTE, &head, el_view_of(to, 0), el_view_of(from, 0), from->bytes,
                    NULL);
}

static void mail_issue_one(struct el_comm *comm, struct el_program *program, const struct mail_sides *sides,
                           enum el_comm_verb verb, int other, int i, size_t count)
{
    bool sends = verb == EL_COMM_SEND;
    struct el_view view = el_view_of(sends ? sides->data : sides->result, mail_place(other, i));
    struct el_comm_op op = {
        .verb = verb, .dtype = EL_F32, .count = count, .root = other, .phase = EL_PHASE_COMM, .join = true};
    *(sends ? &op.data : &op.result) = view;
    el_comm_issue(comm, program, &op, NULL);
}

/* With an empty message to the next one between the others. */
static void mail_issue_all(struct el_comm *comm, struct el_program *program, const struct mail_sides *sides)
{
    struct el_device *device = el_comm_device(comm);
    int rank = el_comm_rank(comm), n = el_comm_size(comm);
    mail_copy(program, device, sides->data, sides->source);
    for (int d = 1; d < n; d++) {
        int to = (rank + d) % n;
        mail_issue_one(comm, program, sides, EL_COMM_SEND, to, 0, FLOATS);
        if (d == 1) mail_issue_one(comm, program, sides, EL_COMM_SEND, to, 0, 0);
        mail_issue_one(comm, program, sides, EL_COMM_SEND, to, 1, SHORT_FLOATS);
    }
    mail_copy(program, device, sides->data, sides->rubbish);
    for (int d = 1; d < n; d++) {
        int from = (rank + d) % n;
        mail_issue_one(comm, program, sides, EL_COMM_RECV, from, 0, FLOATS);
        if (d == n - 1) mail_issue_one(comm, program, sides, EL_COMM_RECV, from, 0, 0);
        mail_issue_one(comm, program, sides, EL_COMM_RECV, from, 1, SHORT_FLOATS);
    }
    mail_copy(program, device, sides->out, sides->result);
    mail_copy(program, device, sides->result, sides->rubbish);
}

static enum el_status mail_fill(struct el_comm *comm, const struct mail_sides *sides, int step)
{
    float host[SIDE_FLOATS];
    for (int to = 0; to < MAIL_DEVICES; to++)
        for (int i = 0; i < MESSAGES; i++)
            for (int k = 0; k < FLOATS; k++)
                host[(to * MESSAGES + i) * FLOATS + k] = mail_value(el_comm_rank(comm), to, i, k, step);
    return el_device_write(el_view_of(sides->source, 0), host, sizeof host);
}

static enum el_status mail_look(struct el_comm *comm, const struct mail_sides *sides, int step, bool muted)
{
    float host[SIDE_FLOATS];
    EL_TRY(el_device_read(el_view_of(sides->out, 0), host, sizeof host));
    for (int from = 0; from < el_comm_size(comm); from++)
        for (int i = 0; i < MESSAGES && from != el_comm_rank(comm); i++)
            for (int k = 0; k < (i == 0 ? FLOATS : SHORT_FLOATS); k++) {
                float expected = muted ? -1 : mail_value(from, el_comm_rank(comm), i, k, step);
                float got = host[(from * MESSAGES + i) * FLOATS + k];
                if (got != expected)
                    return el_fail(EL_ERR_INTERNAL, "step %d: message %d from %d: [%d] is %g, not %g", step, i, from, k,
                                   (double)got, (double)expected);
            }
    return EL_OK;
}

/* Member 0 sends five to the last one, which has room for two: in a program of its own. */
static enum el_status mail_overflow(struct el_comm *comm, const struct mail_sides *sides)
{
    struct el_program *program;
    int last = el_comm_size(comm) - 1;
    EL_TRY(mail_fill(comm, sides, 9));
    EL_TRY(el_program_create(&program));
    if (el_comm_rank(comm) == 0) mail_copy(program, el_comm_device(comm), sides->data, sides->source);
    for (int i = 0; i < 5; i++) {
        if (el_comm_rank(comm) == 0) mail_issue_one(comm, program, sides, EL_COMM_SEND, last, i % 2, FLOATS);
        if (el_comm_rank(comm) == last) mail_issue_one(comm, program, sides, EL_COMM_RECV, 0, i % 2, FLOATS);
    }
    if (el_comm_rank(comm) == last) mail_copy(program, el_comm_device(comm), sides->out, sides->result);
    enum el_status status = el_program_end(program);
    if (status == EL_OK) status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    float host[SIDE_FLOATS] = {0};
    if (status == EL_OK && el_comm_rank(comm) == last)
        status = el_device_read(el_view_of(sides->out, 0), host, sizeof host);
    bool right = host[3] == mail_value(0, last, 0, 3, 9) && host[FLOATS + 3] == mail_value(0, last, 1, 3, 9);
    if (status == EL_OK && el_comm_rank(comm) == last && !right) return el_fail(EL_ERR_INTERNAL, "a full box");
    return status;
}

/* All of one member. */
static inline enum el_status device_mail(struct el_comm *comm)
{
    struct el_device *device = el_comm_device(comm);
    struct mail_sides sides;
    struct el_program *program;
    if (el_comm_has_verb(comm, EL_COMM_SEND)) return el_fail(EL_ERR_INTERNAL, "sends without mailboxes");
    EL_TRY(el_comm_open_mailboxes(comm, NULL, BOX_BYTES));
    if (el_device_ledger(device)->live_by_tag[EL_TAG_MAILBOX] != (size_t)(el_comm_size(comm) - 1) * BOX_BYTES)
        return el_fail(EL_ERR_INTERNAL, "the ledger does not count the mailboxes");
    EL_TRY(mail_sides_open(device, &sides));
    EL_TRY(el_program_create(&program));
    mail_issue_all(comm, program, &sides);
    enum el_status status = el_program_end(program);
    for (int step = 0; step < MAIL_STEPS && status == EL_OK; step++) {
        bool muted = step == 2;
        el_comm_mute(comm, muted);
        status = mail_fill(comm, &sides, step);
        if (status == EL_OK) status = el_program_run(program, (uint64_t)step, NULL);
        if (status == EL_OK) status = mail_look(comm, &sides, step, muted);
    }
    el_program_destroy(program);
    if (status == EL_OK) status = mail_overflow(comm, &sides);
    if (status != EL_OK) el_comm_abort(comm);
    return status;
}

/* Over a backend, with every policy. */
static inline void check_device_mail(const struct el_comm_backend *backend, void (*reset_all)(enum fake_policy policy))
{
    for (int policy = 0; policy < FAKE_POLICIES; policy++)
        for (int n = 2; n <= MAIL_DEVICES; n++) {
            struct group group = {.n = n};
            reset_all((enum fake_policy)policy);
            for (int d = 0; d < n; d++) group.devices[d] = fake_device(d);
            assert_int_equal(el_comm_open_with(backend, group.devices, n, group.comms), EL_OK);
            all_do(&group, device_mail, EL_OK);
            close_group(&group);
            assert_int_equal(fake.n_wrong, 0);
            assert_int_equal(fake.n_events, 0);
        }
}

#endif
