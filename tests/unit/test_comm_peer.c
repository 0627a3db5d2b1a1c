/* The communicator `peer`, for several GPUs of one process for which one thread issues, on a fake whose streams run out
 * of step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/comm_ops.h"
#include "tests/conformance/comm_checks.h"
#include "tests/sanitized.h"
#include "tests/unit/fake_async.h"
#include "tests/unit/together.h"

enum { MEMBERS = 3 };

struct group {
    struct el_device *devices[MEMBERS];
    struct el_comm *comms[MEMBERS];
    struct el_buffer *data[MEMBERS], *result;
    struct el_program *program;
    size_t count;
};

static void open_group(struct group *group, const struct el_comm_backend *backend, size_t count,
                       enum fake_policy policy)
{
    fake_reset(policy);
    group->count = count;
    for (int m = 0; m < MEMBERS; m++) group->devices[m] = fake_device(m);
    assert_int_equal(el_comm_open_with(backend, group->devices, MEMBERS, group->comms), EL_OK);
    for (int m = 0; m < MEMBERS; m++)
        assert_int_equal(
            el_device_alloc(group->devices[m], EL_TAG_GRAD, count * sizeof(float), "data", &group->data[m]), EL_OK);
    assert_int_equal(el_device_alloc(group->devices[0], EL_TAG_GRAD, count * sizeof(float), "sum", &group->result),
                     EL_OK);
    assert_int_equal(el_program_create(&group->program), EL_OK);
}

static void close_group(struct group *group)
{
    el_program_destroy(group->program);
    for (int m = 0; m < MEMBERS; m++) el_comm_close(group->comms[m]);
    for (int m = 0; m < MEMBERS; m++) el_device_close(group->devices[m]);
    assert_int_equal(fake.n_wrong, 0);
    assert_int_equal(fake.n_events, 0);
}

static void fill(const struct group *group)
{
    float *host = calloc(group->count, sizeof *host);
    for (int m = 0; m < MEMBERS; m++) {
        for (size_t i = 0; i < group->count; i++) host[i] = (float)check_value(m, i);
        assert_int_equal(el_device_write(el_view_of(group->data[m], 0), host, group->count * sizeof *host), EL_OK);
    }
    free(host);
}

static int wrong(const struct group *group, struct el_buffer *buffer, double factor, int root)
{
    float *host = calloc(group->count, sizeof *host);
    int n_wrong = 0;
    assert_int_equal(el_device_read(el_view_of(buffer, 0), host, group->count * sizeof *host), EL_OK);
    for (size_t i = 0; i < group->count; i++)
        n_wrong += host[i] != (float)(factor * (root < 0 ? check_sum(MEMBERS, i) : check_value(root, i)));
    free(host);
    return n_wrong;
}

/* Twice the data on the compute stream, an operation behind it, and its outcome overwritten behind that: as a mode
 * issues it. */
static void issue(struct group *group, enum el_comm_verb verb, int root)
{
    for (int m = 0; m < MEMBERS; m++) {
        struct el_view data = el_view_of(group->data[m], 0);
        struct el_kernel_op twice = {.op = EL_OP_SCALE,
                                     .dtype = EL_F32,
                                     .views = {data, data},
                                     .args = {.d = {(int64_t)group->count}, .s = {2}}};
        struct el_comm_op op = {.verb = verb,
                                .dtype = EL_F32,
                                .count = group->count,
                                .root = root,
                                .data = data,
                                .phase = EL_PHASE_COMM,
                                .join = true};
        if (verb == EL_COMM_REDUCE) op.result = el_view_of(group->result, 0);
        el_program_kernel(group->program, group->devices[m], EL_STREAM_COMPUTE, &twice, NULL);
        el_comm_issue(group->comms[m], group->program, &op, NULL);
        if (verb == EL_COMM_REDUCE)
            el_program_kernel(group->program, group->devices[m], EL_STREAM_COMPUTE, &twice, NULL);
    }
    assert_int_equal(el_program_end(group->program), EL_OK);
}

static void one_operation(enum el_comm_verb verb, int root, size_t count, enum fake_policy policy)
{
    struct group group;
    open_group(&group, &el_comm_peer_backend, count, policy);
    issue(&group, verb, root);
    for (uint64_t step = 0; step < 2; step++) {
        fill(&group);
        if (el_program_run(group.program, step, NULL) != EL_OK) fail_msg("%s", el_error_message());
        for (int m = 0; m < MEMBERS && verb == EL_COMM_ALL_REDUCE; m++)
            assert_int_equal(wrong(&group, group.data[m], 2, -1), 0);
        for (int m = 0; m < MEMBERS && verb == EL_COMM_BROADCAST; m++)
            assert_int_equal(wrong(&group, group.data[m], 2, root), 0);
        if (verb == EL_COMM_REDUCE) assert_int_equal(wrong(&group, group.result, 2, -1), 0);
    }
    close_group(&group);
}

static void peer_sums_and_sends(void **state)
{
    for (int policy = 0; policy < FAKE_POLICIES; policy++) {
        srand(1); /* NOLINT(cert-msc32-c,cert-msc51-cpp): the same orders in every run */
        one_operation(EL_COMM_ALL_REDUCE, 0, 1000, (enum fake_policy)policy);
        for (int root = 0; root < MEMBERS; root++)
            one_operation(EL_COMM_BROADCAST, root, 1000, (enum fake_policy)policy);
        one_operation(EL_COMM_REDUCE, 0, 1000, (enum fake_policy)policy);
        one_operation(EL_COMM_REDUCE, 0, is_sanitized() ? 1100000 : 2500000,
                      (enum fake_policy)policy); /* more than one scratchful */
    }
}

static void peer_books_what_it_moves(void **state)
{
    struct group group;
    open_group(&group, &el_comm_peer_backend, 16, FAKE_LAZY);
    for (int verb = 0; verb <= EL_COMM_REDUCE; verb++) {
        const struct el_comm_op op = {
            .verb = (enum el_comm_verb)verb, .dtype = EL_F32, .count = 16, .root = verb ? 1 : 0};
        uint64_t all_sent = 0, all_received = 0;
        for (int m = 0; m < MEMBERS; m++) {
            struct el_comm_traffic traffic = el_comm_traffic(group.comms[m], &op);
            all_sent += traffic.sent_bytes;
            all_received += traffic.received_bytes;
        }
        assert_int_equal(all_sent, all_received);
        assert_int_equal(all_sent, 16 * sizeof(float) * (MEMBERS - 1) * (verb == EL_COMM_ALL_REDUCE ? 2 : 1));
    }
    close_group(&group);
}

static void issue_alone(struct group *group, int m)
{
    const struct el_comm_op op = {.dtype = EL_F32, .count = group->count, .data = el_view_of(group->data[m], 0)};
    assert_int_equal(el_comm_issue(group->comms[m], group->program, &op, NULL), EL_OK);
}

static void peer_wants_all_members_in_one_program(void **state)
{
    struct group group;
    open_group(&group, &el_comm_peer_backend, 16, FAKE_LAZY);
    issue_alone(&group, 1);
    assert_int_equal(el_program_end(group.program), EL_OK);
    assert_int_equal(el_program_run(group.program, 0, NULL), EL_ERR_INTERNAL);
    close_group(&group);
}

static void peer_wants_members_in_the_order_of_their_ranks(void **state)
{
    struct group group;
    open_group(&group, &el_comm_peer_backend, 16, FAKE_LAZY);
    for (int m = MEMBERS - 1; m >= 0; m--) issue_alone(&group, m);
    assert_int_equal(el_program_end(group.program), EL_OK);
    assert_int_equal(el_program_run(group.program, 0, NULL), EL_ERR_INTERNAL);
    assert_non_null(strstr(el_error_message(), "member 2 was issued as number 0"));
    close_group(&group);
}

/* Two communicators over the same devices, their operations interleaved: each on a stream of its own, and neither
 * counts on what only the other's stream orders. */
static void two_groups_on_the_same_devices(enum fake_policy policy)
{
    struct group group;
    struct el_comm *others[MEMBERS];
    struct el_buffer *data[MEMBERS];
    open_group(&group, &el_comm_peer_backend, 1000, policy);
    assert_int_equal(el_comm_open_with(&el_comm_peer_backend, group.devices, MEMBERS, others), EL_OK);
    for (int m = 0; m < MEMBERS; m++)
        assert_int_equal(el_device_alloc(group.devices[m], EL_TAG_GRAD, 1000 * sizeof(float), "other", &data[m]),
                         EL_OK);
    for (int m = 0; m < MEMBERS; m++) issue_alone(&group, m);
    for (int m = 0; m < MEMBERS; m++) {
        struct el_view view = el_view_of(data[m], 0);
        struct el_comm_op op = {
            .verb = EL_COMM_BROADCAST, .dtype = EL_F32, .count = 1000, .root = 1, .data = view, .join = true};
        struct el_kernel_op twice = {
            .op = EL_OP_SCALE, .dtype = EL_F32, .views = {view, view}, .args = {.d = {1000}, .s = {2}}};
        int id;
        assert_int_equal(el_comm_issue(others[m], group.program, &op, &id), EL_OK);
        if (m != op.root) el_program_kernel(group.program, group.devices[m], EL_STREAM_COMPUTE, &twice, NULL);
        assert_int_equal(el_program_ops(group.program)[m].stream, EL_STREAM_COMM);
        assert_int_equal(el_program_ops(group.program)[id].stream, EL_STREAM_COMM + 1);
    }
    assert_int_equal(el_program_end(group.program), EL_OK);
    fill(&group);
    struct group other = group;
    memcpy(other.data, data, sizeof data);
    fill(&other);
    if (el_program_run(group.program, 0, NULL) != EL_OK) fail_msg("%s", el_error_message());
    for (int m = 0; m < MEMBERS; m++) {
        assert_int_equal(wrong(&group, group.data[m], 1, -1), 0);
        assert_int_equal(wrong(&group, data[m], m == 1 ? 1 : 2, 1), 0);
        el_comm_close(others[m]);
    }
    close_group(&group);
}

static void communicators_have_streams_of_their_own(void **state)
{
    for (int policy = 0; policy < FAKE_POLICIES; policy++) two_groups_on_the_same_devices((enum fake_policy)policy);
}

static void peer_gives_what_each_verb_is_to_give(void **state)
{
    for (int policy = 0; policy < FAKE_POLICIES; policy++) {
        fake_reset((enum fake_policy)policy);
        together_product(&el_comm_peer_backend);
        fake.seed = 7;
        together_two(&el_comm_peer_backend, 20, NULL);
        assert_int_equal(fake.n_wrong, 0);
    }
}

static void peer_refuses_what_its_devices_have_no_kernel_for(void **state)
{
    struct group group;
    open_group(&group, &el_comm_peer_backend, 16, FAKE_LAZY);
    struct el_comm_op op = {
        .reduction = EL_COMM_MAX, .dtype = EL_F32, .count = 16, .data = el_view_of(group.data[0], 0)};
    assert_int_equal(el_comm_issue(group.comms[0], group.program, &op, NULL), EL_ERR_ABSENT);
    assert_string_equal(el_error_message(), "communicator peer: has no max of f32 values");
    op.reduction = EL_COMM_SUM;
    op.dtype = EL_I32;
    assert_int_equal(el_comm_issue(group.comms[0], group.program, &op, NULL), EL_ERR_ABSENT);
    close_group(&group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peer_sums_and_sends),
        cmocka_unit_test(peer_books_what_it_moves),
        cmocka_unit_test(peer_wants_all_members_in_one_program),
        cmocka_unit_test(communicators_have_streams_of_their_own),
        cmocka_unit_test(peer_wants_members_in_the_order_of_their_ranks),
        cmocka_unit_test(peer_gives_what_each_verb_is_to_give),
        cmocka_unit_test(peer_refuses_what_its_devices_have_no_kernel_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
