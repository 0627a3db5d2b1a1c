/* Messages of the communicator `nccl`, its memory and its parts, on a table of functions that is not NCCL, between
 * members of one process with a thread each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/device_mail.h"
#include "tests/unit/fake_nccl.h"

static enum el_status open_members(const struct el_comm_place *places, int n, void **states)
{
    return el_nccl_open_members(&api, places, n, states);
}

static const struct el_comm_backend backend = {.name = "nccl", .ops = &el_nccl_ops, .open_members = open_members};

static void messages_wait_in_mailboxes(void **state)
{
    check_device_mail(&backend, reset);
    assert_int_equal(nccl.n_open, 0);
    assert_int_equal(nccl.n_taken, 0);
    assert_int_equal(nccl.n_registered, 0);
}

static void open_bench(struct group *group)
{
    reset(FAKE_LAZY);
    group->n = MAIL_DEVICES;
    for (int d = 0; d < group->n; d++) group->devices[d] = fake_device(d);
    assert_int_equal(el_comm_open_with(&backend, group->devices, group->n, group->comms), EL_OK);
}

static enum el_status open_to_next(struct el_comm *comm)
{
    bool partners[MAIL_DEVICES] = {el_comm_rank(comm) == 1, el_comm_rank(comm) != 1, el_comm_rank(comm) == 1};
    EL_TRY(el_comm_open_mailboxes(comm, partners, BOX_BYTES));
    size_t boxes = el_device_ledger(el_comm_device(comm))->live_by_tag[EL_TAG_MAILBOX];
    return boxes == (el_comm_rank(comm) == 1 ? 2u : 1u) * BOX_BYTES ? EL_OK : EL_ERR_INTERNAL;
}

/* A communicator for each way, and none for the pair that exchanges nothing. */
static void only_partners_have_links(void **state)
{
    struct group group;
    open_bench(&group);
    all_do(&group, open_to_next, EL_OK);
    assert_int_equal(nccl.n_open, MAIL_DEVICES + 2 * 2 * 2);
    close_group(&group);
    assert_int_equal(nccl.n_open, 0);
    assert_int_equal(fake.n_wrong, 0);
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
    close_group(&group);
    assert_int_equal(nccl.n_open, 0);
    assert_int_equal(nccl.n_taken, 0);
    assert_int_equal(fake.n_wrong, 0);
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
    nccl.async_error = EL_NCCL_REMOTE;
    all_do(&group, wait_for_nothing, EL_OK);
    assert_int_equal(nccl.n_open, 0); /* links' communicators too */
    close_group(&group);
    assert_int_equal(nccl.n_destroyed, 0);
    assert_int_equal(fake.n_wrong, 0);
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
    assert_int_equal(nccl.n_taken, 2);
    assert_int_equal(nccl.n_registered, 2);
    el_device_free(buffers[0]);
    assert_int_equal(nccl.n_taken, 1);
    assert_int_equal(nccl.n_registered, 1);
    nccl.no_memory = true;
    assert_int_equal(el_comm_alloc(group.comms[1], EL_TAG_BUCKET, 64, "bucket", &buffers[0]), EL_OK);
    assert_int_equal(ledger->live_by_tag[EL_TAG_BUCKET], 4096 + 64);
    assert_int_equal(nccl.n_taken, 1);
    el_device_free(buffers[0]);
    for (int d = 0; d < group.n; d++) el_comm_close(group.comms[d]);
    assert_int_equal(nccl.n_registered, 0);
    assert_int_equal(nccl.n_taken, 1); /* it outlives its communicator */
    el_device_free(buffers[1]);
    assert_int_equal(nccl.n_taken, 0);
    for (int d = 0; d < group.n; d++) el_device_close(group.devices[d]);
    assert_int_equal(fake.n_wrong, 0);
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
    close_group(&group);
    assert_int_equal(nccl.n_open, 0);
    assert_int_equal(fake.n_wrong, 0);
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
    close_group(&group);
    assert_int_equal(nccl.n_open, 0);
    assert_int_equal(fake.n_wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_wait_in_mailboxes),
        cmocka_unit_test(only_partners_have_links),
        cmocka_unit_test(a_partner_that_knows_nothing_of_it),
        cmocka_unit_test(a_message_that_never_comes),
        cmocka_unit_test(memory_is_the_librarys),
        cmocka_unit_test(members_of_a_process_split),
        cmocka_unit_test(a_part_whose_member_gave_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
