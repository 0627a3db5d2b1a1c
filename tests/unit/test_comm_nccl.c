/* The communicator `nccl` with several GPUs in one process, on a table of functions that is not NCCL: who is called
 * when and with what, errors from calls and errors that no call returned, collectives that never end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/base/clock.h"
#include "runtime/comm/comm_ops.h"
#include "tests/unit/fake_nccl.h"
#include "tests/unit/together.h"

enum { MEMBERS = 3 };

static struct el_nccl_group *last_group;

static enum el_status open_members(const struct el_comm_place *places, int n, void **states)
{
    EL_TRY(el_nccl_open_members(&api, places, n, states));
    last_group = ((struct el_nccl_member *)states[0])->group;
    return EL_OK;
}

static const struct el_comm_backend backend = {.name = "nccl", .ops = &el_nccl_ops, .open_members = open_members};

struct bench {
    struct el_device *devices[MEMBERS];
    struct el_comm *comms[MEMBERS];
    struct el_buffer *data[MEMBERS];
    struct el_program *program;
};

static void open_bench(struct bench *bench)
{
    reset(FAKE_LAZY);
    for (int m = 0; m < MEMBERS; m++) {
        bench->devices[m] = fake_device(m);
        assert_int_equal(el_device_alloc(bench->devices[m], EL_TAG_GRAD, 64, "x", &bench->data[m]), EL_OK);
    }
    assert_int_equal(el_comm_open_with(&backend, bench->devices, MEMBERS, bench->comms), EL_OK);
    assert_int_equal(el_program_create(&bench->program), EL_OK);
}

static void close_bench(struct bench *bench)
{
    el_program_destroy(bench->program);
    for (int m = 0; m < MEMBERS; m++) el_comm_close(bench->comms[m]);
    for (int m = 0; m < MEMBERS; m++) el_device_close(bench->devices[m]);
    assert_int_equal(nccl.n_open, 0);
    assert_int_equal(nccl_mine.depth, 0);
    assert_int_equal(fake.n_wrong, 0);
}

static void abort_all(void *context)
{
    el_comm_abort(((struct bench *)context)->comms[0]);
}

/* One reduce to member 1; something lies between the members' calls. */
static void issue_reduce(struct bench *bench)
{
    const struct el_op_head head = {.phase = EL_PHASE_COMM};
    for (int m = 0; m < MEMBERS; m++) {
        struct el_view data = el_view_of(bench->data[m], 0);
        const struct el_comm_op op = {.verb = EL_COMM_REDUCE,
                                      .dtype = EL_F32,
                                      .count = 4,
                                      .root = 1,
                                      .data = data,
                                      .result = data,
                                      .phase = EL_PHASE_COMM};
        el_program_copy(bench->program, bench->devices[m], EL_STREAM_COMPUTE, &head, el_view_of(bench->data[m], 32),
                        data, 16, NULL);
        el_comm_issue(bench->comms[m], bench->program, &op, NULL);
    }
    el_program_on_failure(bench->program, abort_all, bench);
    assert_int_equal(el_program_end(bench->program), EL_OK);
    nccl.n_calls = 0;
}

static void members_are_opened_in_a_group(void **state)
{
    struct bench bench;
    open_bench(&bench);
    assert_int_equal(nccl.n_calls, 2 + MEMBERS);
    assert_string_equal(nccl.calls[0].what, "start");
    for (int m = 0; m < MEMBERS; m++) {
        assert_string_equal(nccl.calls[1 + m].what, "open");
        assert_int_equal(nccl.calls[1 + m].depth, 1);
        assert_int_equal(nccl.calls[1 + m].comm->device, m);
        assert_int_equal(nccl.calls[1 + m].comm->n, MEMBERS);
    }
    assert_string_equal(el_comm_backend(bench.comms[0]), "nccl");
    close_bench(&bench);
    assert_int_equal(nccl.n_destroyed, MEMBERS);
}

static void a_member_that_cannot_be_opened(void **state)
{
    struct bench bench;
    reset(FAKE_LAZY);
    nccl.fail_open_rank = 1;
    for (int m = 0; m < MEMBERS; m++) bench.devices[m] = fake_device(m);
    assert_int_equal(el_comm_open_with(&backend, bench.devices, MEMBERS, bench.comms), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "words of the library"));
    assert_int_equal(nccl.n_open, 0);
    assert_int_equal(nccl_mine.depth, 0);
    for (int m = 0; m < MEMBERS; m++) el_device_close(bench.devices[m]);
}

/* CUDA's own wait for each kernel would be one for the other members', which are not queued yet. */
static void launches_that_block_are_refused(void **state)
{
    struct bench bench;
    void *one;
    struct el_comm_place place;
    reset(FAKE_LAZY);
    nccl.launches_block = true;
    for (int m = 0; m < MEMBERS; m++) bench.devices[m] = fake_device(m);
    assert_int_equal(el_comm_open_with(&backend, bench.devices, MEMBERS, bench.comms), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "CUDA_LAUNCH_BLOCKING is set"));
    assert_int_equal(nccl.n_calls, 0);
    place.device = bench.devices[0];
    assert_int_equal(el_nccl_open_members(&api, &place, 1, &one), EL_OK); /* alone it waits for nobody */
    el_nccl_ops.close(one);
    for (int m = 0; m < MEMBERS; m++) el_device_close(bench.devices[m]);
}

static void one_thread_calls_for_all_in_a_group(void **state)
{
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_OK);
    assert_int_equal(nccl.n_calls, 2 + MEMBERS);
    assert_string_equal(nccl.calls[0].what, "start");
    assert_string_equal(nccl.calls[1 + MEMBERS].what, "end");
    for (int m = 0; m < MEMBERS; m++) {
        const struct fake_call *call = &nccl.calls[1 + m];
        void *native;
        assert_int_equal(el_device_native_stream(bench.devices[m], EL_STREAM_COMM, &native), EL_OK);
        assert_int_equal(call->comm->rank, m);
        assert_int_equal(call->depth, 1);
        assert_int_equal(call->verb, EL_COMM_REDUCE);
        assert_int_equal(call->count, 4);
        assert_int_equal(call->root, 1);
        assert_ptr_equal(call->stream, native);
        assert_ptr_equal(call->data, (void *)bench.data[m]->address);
        assert_ptr_equal(call->result, m == 1 ? (void *)bench.data[m]->address : NULL);
    }
    close_bench(&bench);
}

static void a_thread_a_member_needs_no_group(void **state)
{
    struct bench bench;
    void *stream;
    open_bench(&bench);
    assert_int_equal(el_device_native_stream(bench.devices[2], EL_STREAM_COMM, &stream), EL_OK);
    nccl.n_calls = 0;
    for (int m = 0; m < MEMBERS; m++) {
        struct el_view view = el_view_of(bench.data[m], 0);
        void *data = (void *)view.buffer->address;
        assert_int_equal(el_device_native_stream(bench.devices[m], EL_STREAM_COMM, &stream), EL_OK);
        struct el_comm_part part = {.state = &last_group->members[m],
                                    .task = {.verb = EL_COMM_ALL_REDUCE,
                                             .dtype = EL_F32,
                                             .count = 4,
                                             .data = data,
                                             .result = data,
                                             .stream = stream}};
        assert_int_equal(el_nccl_ops.enqueue(&part, 1), EL_OK);
        assert_int_equal(nccl.n_calls, m + 1);
        assert_int_equal(nccl.calls[m].comm->rank, m);
        assert_int_equal(nccl.calls[m].depth, 0);
    }
    for (int m = 0; m < MEMBERS; m++)
        assert_int_equal(el_device_stream_synchronize(bench.devices[m], EL_STREAM_COMM), EL_OK);
    close_bench(&bench);
}

static void a_muted_member_calls_nothing(void **state)
{
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    for (int m = 0; m < MEMBERS; m++) el_comm_mute(bench.comms[m], true);
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_OK);
    assert_int_equal(nccl.n_calls, 0);
    close_bench(&bench);
}

static void every_verb_gives_what_it_is_to_give(void **state)
{
    for (int policy = 0; policy < FAKE_POLICIES; policy++) {
        reset((enum fake_policy)policy);
        together_product(&backend);
        assert_int_equal(nccl.n_open, 0);
        assert_int_equal(fake.n_wrong, 0);
    }
}

/* All calls of a group are of one communicator's members. */
static void groups_are_of_one_communicator(void)
{
    const struct fake_world *world = NULL;
    int depth = 0, n_seen = 0;
    if (nccl.n_calls > CALLS_MAX) fail_msg("%d calls", nccl.n_calls);
    for (int i = 0; i < nccl.n_calls; i++) {
        const struct fake_call *call = &nccl.calls[i];
        depth += strcmp(call->what, "start") == 0 ? 1 : strcmp(call->what, "end") == 0 ? -1 : 0;
        if (depth == 0) world = NULL;
        if (!call->comm) continue;
        if (world) assert_ptr_equal(call->comm->world, world);
        world = call->comm->world;
        n_seen++;
    }
    assert_true(n_seen > 0);
    nccl.n_calls = 0;
}

static void two_at_once_never_share_a_group(void **state)
{
    for (int policy = 0; policy < FAKE_POLICIES; policy++) {
        reset((enum fake_policy)policy);
        fake.seed = 5;
        together_two(&backend, 20, groups_are_of_one_communicator);
        assert_int_equal(fake.n_wrong, 0);
    }
}

static void reductions_that_nccl_does_not_have_are_refused(void **state)
{
    struct bench bench;
    open_bench(&bench);
    const struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                                  .reduction = EL_COMM_XOR,
                                  .dtype = EL_I32,
                                  .count = 4,
                                  .data = el_view_of(bench.data[0], 0)};
    assert_int_equal(el_comm_issue(bench.comms[0], bench.program, &op, NULL), EL_ERR_ABSENT);
    assert_string_equal(el_error_message(), "communicator nccl: has no xor of i32 values");
    close_bench(&bench);
}

/* All are aborted, in a group, once; nothing is called on them after that. */
static void check_aborted(struct bench *bench)
{
    assert_int_equal(nccl.n_aborted, MEMBERS);
    for (int i = 0; i < nccl.n_calls; i++)
        if (strcmp(nccl.calls[i].what, "abort") == 0) assert_int_equal(nccl.calls[i].depth, 1);
    struct el_comm_part part = {.state = &last_group->members[0],
                                .task = {.verb = EL_COMM_ALL_REDUCE, .count = 1, .data = bench, .result = bench}};
    int before = nccl.n_calls;
    assert_int_equal(el_nccl_ops.enqueue(&part, 1), EL_ERR_PEER);
    assert_int_equal(el_nccl_ops.poll(&last_group->members[0]), EL_ERR_PEER);
    el_comm_abort(bench->comms[1]);
    assert_int_equal(nccl.n_calls, before);
    close_bench(bench);
    assert_int_equal(nccl.n_destroyed, 0);
}

static void a_call_that_fails_ends_its_group(void **state)
{
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    nccl.fail_verb = EL_NCCL_BAD_ARGUMENT;
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "nccl reduce: bad: words of the library"));
    assert_string_equal(nccl.calls[1].what, "collective");
    assert_string_equal(nccl.calls[2].what, "end");
    check_aborted(&bench);
}

/* NCCL meets what a kernel before it left on the card. */
static void what_failed_before_nccl_is_told_first(void **state)
{
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    nccl.fail_verb = 1;
    fake.broken = true;
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_ERR_INTERNAL);
    fake.broken = false;
    assert_non_null(strstr(el_error_message(), ": planted: the device failed; nccl reduce: bad: words of the library"));
    check_aborted(&bench);
}

static void a_group_that_fails_at_its_end(void **state)
{
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    nccl.fail_end = EL_NCCL_REMOTE;
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_ERR_PEER);
    nccl.fail_end = 0;
    check_aborted(&bench);
}

/* The streams stand still, as behind a collective that never ends, until an abort. */
static void an_error_that_no_call_returned(void **state)
{
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    fake.stuck = true;
    nccl.async_error = EL_NCCL_REMOTE;
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_ERR_PEER);
    assert_non_null(strstr(el_error_message(), "remote process exited"));
    check_aborted(&bench);
}

static void a_collective_that_never_ends(void **state)
{
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    fake.stuck = true;
    last_group->patience_ns = 30000000;
    int64_t begin_ns = el_clock_ns();
    assert_int_equal(el_program_run(bench.program, 0, NULL), EL_ERR_PEER);
    assert_true(el_clock_ns() - begin_ns >= 30000000);
    assert_non_null(strstr(el_error_message(), "not finished after"));
    check_aborted(&bench);
}

/* Each step is as if waited for during two thirds of the patience: three would exceed it if they were added up. No real
 * time passes, so that no load makes one late. */
static void steps_that_do_end_are_not_late(void **state)
{
    struct bench bench;
    open_bench(&bench);
    issue_reduce(&bench);
    const int64_t most_ns = last_group->patience_ns / 3 * 2;
    for (uint64_t step = 0; step < 6; step++) {
        assert_int_equal(el_program_run(bench.program, step, NULL), EL_OK);
        for (int m = 0; m < MEMBERS; m++) {
            assert_int_equal(el_nccl_ops.poll(&last_group->members[m]), EL_OK);
            last_group->members[m].waiting_since_ns -= most_ns;
            assert_int_equal(el_nccl_ops.poll(&last_group->members[m]), EL_OK);
        }
    }
    last_group->members[1].waiting_since_ns -= most_ns; /* a second time, and no step between */
    assert_int_equal(el_nccl_ops.poll(&last_group->members[1]), EL_ERR_PEER);
    close_bench(&bench);
}

static void a_ring_books_what_goes_round(void **state)
{
    struct bench bench;
    open_bench(&bench);
    for (size_t count = 1; count < 100; count += 7) {
        for (int verb = 0; verb <= EL_COMM_REDUCE; verb++) {
            const struct el_comm_op op = {
                .verb = (enum el_comm_verb)verb, .dtype = EL_F32, .count = count, .root = verb ? 2 : 0};
            uint64_t all_sent = 0, all_received = 0, bytes = count * sizeof(float);
            for (int m = 0; m < MEMBERS; m++) {
                struct el_comm_traffic traffic = el_comm_traffic(bench.comms[m], &op);
                uint64_t received = traffic.received_bytes;
                all_sent += traffic.sent_bytes;
                all_received += received;
                if (verb == EL_COMM_BROADCAST) assert_int_equal(received, m == 2 ? 0 : bytes);
                if (verb == EL_COMM_REDUCE) assert_int_equal(received, m == 0 ? 0 : bytes);
            }
            assert_int_equal(all_sent, all_received);
            assert_int_equal(all_sent, bytes * (MEMBERS - 1) * (verb == EL_COMM_ALL_REDUCE ? 2 : 1));
        }
    }
    close_bench(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_opened_in_a_group),
        cmocka_unit_test(a_member_that_cannot_be_opened),
        cmocka_unit_test(one_thread_calls_for_all_in_a_group),
        cmocka_unit_test(a_thread_a_member_needs_no_group),
        cmocka_unit_test(a_call_that_fails_ends_its_group),
        cmocka_unit_test(what_failed_before_nccl_is_told_first),
        cmocka_unit_test(a_group_that_fails_at_its_end),
        cmocka_unit_test(an_error_that_no_call_returned),
        cmocka_unit_test(a_collective_that_never_ends),
        cmocka_unit_test(steps_that_do_end_are_not_late),
        cmocka_unit_test(launches_that_block_are_refused),
        cmocka_unit_test(a_ring_books_what_goes_round),
        cmocka_unit_test(a_muted_member_calls_nothing),
        cmocka_unit_test(every_verb_gives_what_it_is_to_give),
        cmocka_unit_test(two_at_once_never_share_a_group),
        cmocka_unit_test(reductions_that_nccl_does_not_have_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
