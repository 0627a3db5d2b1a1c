/* Messages between members with threads of their own, of `nccl` and of members of one process without it, on cards
 * whose streams run out of step: all send to all before they receive; boxes are used round and round; what is sent is
 * overwritten behind the send, and what is received is used right behind the receive. And the memory and the parts of
 * `nccl`. */
#include "runtime/comm/nccl/comm_nccl.h"
#include "tests/cards/cards_cases.h"
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
static enum el_status device_mail(struct el_comm *comm)
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

static void open_members(struct group *group, const struct el_comm_backend *backend, int n)
{
    group->n = n;
    for (int d = 0; d < n; d++) group->devices[d] = open_card(d);
    assert_int_equal(el_comm_open_with(backend, group->devices, n, group->comms), EL_OK);
}

static void close_members(struct group *group)
{
    close_group(group);
    assert_nothing_left();
    cards_set_policy(CARDS_FREE, 0);
}

static void messages_wait_in_mailboxes(void **state)
{
    static const struct el_comm_backend *const backends[] = {&el_comm_nccl_backend, &el_comm_staged_local_backend};
    for (int b = 0; b < 2; b++)
        for (int policy = CARDS_LAZY; policy < CARDS_POLICIES; policy++)
            for (int n = 2; n <= MAIL_DEVICES; n++) {
                struct group group;
                cards_set_policy((enum cards_policy)policy, 5);
                open_members(&group, backends[b], n);
                all_do(&group, device_mail, EL_OK);
                close_members(&group);
            }
}

static void open_bench(struct group *group)
{
    open_members(group, &el_comm_nccl_backend, MAIL_DEVICES);
}

static enum el_status open_to_next(struct el_comm *comm)
{
    bool partners[MAIL_DEVICES] = {el_comm_rank(comm) == 1, el_comm_rank(comm) != 1, el_comm_rank(comm) == 1};
    EL_TRY(el_comm_open_mailboxes(comm, partners, BOX_BYTES));
    size_t boxes = el_device_ledger(el_comm_device(comm))->live_by_tag[EL_TAG_MAILBOX];
    return boxes == (el_comm_rank(comm) == 1 ? 2u : 1u) * BOX_BYTES ? EL_OK : EL_ERR_INTERNAL;
}

static size_t library_bytes(void)
{
    size_t sum = 0;
    for (int d = 0; d < MAIL_DEVICES; d++) {
        struct cards_counts counts;
        cards_count(d, &counts);
        sum += counts.library_bytes;
    }
    return sum;
}

/* A communicator for each way, and none for the pair that exchanges nothing. */
static void only_partners_have_links(void **state)
{
    struct group group;
    enum { LINKS = 2 * 2 * 2, COMM_BYTES = 1 << 20 };
    open_bench(&group);
    size_t before = library_bytes();
    all_do(&group, open_to_next, EL_OK);
    assert_int_equal(library_bytes() - before, LINKS * COMM_BYTES);
    close_members(&group);
}

static enum el_status open_one_sided(struct el_comm *comm)
{
    bool partners[MAIL_DEVICES] = {false, el_comm_rank(comm) == 0, false};
    enum el_status status = el_comm_open_mailboxes(comm, partners, BOX_BYTES);
    if (el_comm_rank(comm) != 0) return EL_OK; /* it may have ended before the other knew */
    if (status == EL_ERR_INVALID && strstr(el_error_message(), "does not name it")) return EL_OK;
    return el_fail(EL_ERR_INTERNAL, "status %d", (int)status);
}

static void a_partner_that_knows_nothing_of_it(void **state)
{
    struct group group;
    open_bench(&group);
    all_do(&group, open_one_sided, EL_OK);
    close_members(&group);
}

/* What was sent to a member that never receives: an error of the link's communicator ends the step of both. */
static enum el_status wait_for_nothing(struct el_comm *comm)
{
    struct mail_sides sides;
    struct el_program *program;
    enum el_status status = el_comm_open_mailboxes(comm, NULL, BOX_BYTES);
    if (el_comm_rank(comm) > 0 && status == EL_ERR_PEER) return EL_OK; /* member 0 was faster */
    EL_TRY(status);
    EL_TRY(mail_sides_open(el_comm_device(comm), &sides));
    EL_TRY(el_program_create(&program));
    if (el_comm_rank(comm) == 0) mail_issue_one(comm, program, &sides, EL_COMM_RECV, 1, 0, FLOATS);
    EL_TRY(el_program_end(program));
    status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    return el_comm_rank(comm) == 0 && status != EL_ERR_PEER ? EL_ERR_INTERNAL : EL_OK;
}

static void a_message_that_never_comes(void **state)
{
    struct group group;
    open_bench(&group);
    cards_set_failures("ncclAsync:0:1=6");
    all_do(&group, wait_for_nothing, EL_OK);
    cards_set_failures(NULL);
    close_members(&group);
}

/* Counted as any other memory; without the library's, plain memory serves. */
static void memory_is_the_librarys(void **state)
{
    struct group group;
    struct el_buffer *buffers[2];
    open_bench(&group);
    const struct el_ledger *ledger = el_device_ledger(group.devices[1]);
    for (int b = 0; b < 2; b++)
        assert_int_equal(el_comm_alloc(group.comms[1], EL_TAG_BUCKET, 4096, "bucket", &buffers[b]), EL_OK);
    assert_int_equal(ledger->live_by_tag[EL_TAG_BUCKET], 8192);
    el_device_free(buffers[0]);
    assert_int_equal(ledger->live_by_tag[EL_TAG_BUCKET], 4096);
    cards_set_failures("cudaMalloc:1:1=2");
    assert_int_equal(el_comm_alloc(group.comms[1], EL_TAG_BUCKET, 64, "bucket", &buffers[0]), EL_OK);
    cards_set_failures(NULL);
    assert_int_equal(ledger->live_by_tag[EL_TAG_BUCKET], 4096 + 64);
    el_device_free(buffers[0]);
    for (int d = 0; d < group.n; d++) el_comm_close(group.comms[d]);
    el_device_free(buffers[1]); /* it outlives its communicator */
    for (int d = 0; d < group.n; d++) el_device_close(group.devices[d]);
    assert_nothing_left();
}

/* Members 0 and 2, in reverse, and 1 alone: a sum over each part. */
static enum el_status sum_in_parts(struct el_comm *comm)
{
    int rank = el_comm_rank(comm);
    struct el_device *device = el_comm_device(comm);
    struct el_comm *part = NULL;
    struct el_buffer *buffer;
    struct el_program *program;
    float value = (float)(1 << rank), sum = rank == 1 ? 2 : 5;
    EL_TRY(el_comm_split(comm, rank % 2, -rank, &part));
    if (el_comm_size(part) != (rank == 1 ? 1 : 2) || el_comm_rank(part) != (rank == 0))
        return el_fail(EL_ERR_INTERNAL, "rank %d of %d", el_comm_rank(part), el_comm_size(part));
    EL_TRY(el_device_alloc(device, EL_TAG_GRAD, sizeof value, "x", &buffer));
    EL_TRY(el_device_write(el_view_of(buffer, 0), &value, sizeof value));
    EL_TRY(el_program_create(&program));
    EL_TRY(all_reduce(part, program, buffer, 1));
    EL_TRY(el_program_end(program));
    EL_TRY(el_program_run(program, 0, NULL));
    el_program_destroy(program);
    EL_TRY(el_device_read(el_view_of(buffer, 0), &value, sizeof value));
    el_comm_close(part);
    return value == sum ? EL_OK : el_fail(EL_ERR_INTERNAL, "%g, not %g", (double)value, (double)sum);
}

static void members_of_a_process_split(void **state)
{
    struct group group;
    open_bench(&group);
    all_do(&group, sum_in_parts, EL_OK);
    close_members(&group);
}

/* The sum of a part whose other member gave up before: the group that they were split from knows. */
static enum el_status give_up_in_a_part(struct el_comm *comm)
{
    struct el_comm *part = NULL;
    struct el_buffer *buffer;
    struct el_program *program;
    enum el_status status = el_comm_split(comm, el_comm_rank(comm) == 1 ? -1 : 0, 0, &part);
    if (el_comm_rank(comm) > 0 && status == EL_ERR_PEER) return EL_OK; /* it was still on its way in */
    if (status != EL_OK || el_comm_rank(comm) == 1) return status;
    EL_TRY(el_device_alloc(el_comm_device(comm), EL_TAG_GRAD, sizeof(float), "x", &buffer));
    if (el_comm_rank(comm) == 0) el_comm_abort(part);
    EL_TRY(el_program_create(&program));
    EL_TRY(all_reduce(part, program, buffer, 1));
    EL_TRY(el_program_end(program));
    status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    el_comm_close(part);
    return status == EL_ERR_PEER ? EL_OK : el_fail(EL_ERR_INTERNAL, "status %d", (int)status);
}

static void a_part_whose_member_gave_up(void **state)
{
    struct group group;
    open_bench(&group);
    all_do(&group, give_up_in_a_part, EL_OK);
    close_members(&group);
}

static _Atomic int n_late;

/* A second sum, that member 2 does not ask for: who sees it first ends it for both. */
static enum el_status sum_without_the_last(struct el_comm *comm)
{
    struct el_buffer *buffer;
    enum el_status status = el_device_alloc(el_comm_device(comm), EL_TAG_GRAD, sizeof(float), "x", &buffer);
    for (int step = 0; step < (el_comm_rank(comm) == 2 ? 1 : 2) && status == EL_OK; step++) {
        struct el_program *program;
        if (step == 1) EL_TRY(el_comm_set_timeout(comm, 0.05));
        EL_TRY(el_program_create(&program));
        EL_TRY(all_reduce(comm, program, buffer, 1));
        EL_TRY(el_program_end(program));
        status = el_program_run(program, 0, NULL);
        n_late += status == EL_ERR_PEER && strstr(el_error_message(), "not finished after");
        if (step == 1) el_comm_abort(comm);
        el_program_destroy(program);
    }
    return el_comm_rank(comm) == 2 ? status : EL_OK;
}

static void a_collective_that_never_ends(void **state)
{
    struct group group;
    open_bench(&group);
    all_do(&group, sum_without_the_last, EL_OK);
    assert_true(n_late > 0);
    close_members(&group);
}

static void members_without_nccl_have_what_local_has(void **state)
{
    const struct el_comm_ops *staged = el_comm_staged_local_backend.ops, *local = el_comm_local_backend.ops;
    assert_int_equal(staged->verbs, local->verbs);
    assert_int_equal(!staged->open_mailboxes, !local->open_mailboxes);
    assert_ptr_equal(staged->choose, local->choose);
    assert_ptr_equal(staged->traffic, local->traffic);
    assert_ptr_equal(staged->reduces, local->reduces);
    assert_int_equal(!staged->split, !local->split);
    assert_int_equal(!staged->set_timeout, !local->set_timeout);
}

int main(void)
{
    set_up_cards();
    setenv("CUDA_MODULE_LOADING", "EAGER", 1); /* a first launch would wait for the card, and hide what does not */
    with_nccl = true;
    return RUN(NULL, NULL, messages_wait_in_mailboxes, only_partners_have_links, a_partner_that_knows_nothing_of_it,
               a_message_that_never_comes, memory_is_the_librarys, members_of_a_process_split,
               a_part_whose_member_gave_up, a_collective_that_never_ends, members_without_nccl_have_what_local_has);
}
