/* An operation before it runs: the bytes it books, what is refused, where its data may lie, and the streams it is
 * issued on. Most of it on devices without memory, in a local group. */
#include "tests/test.h"

#include "runtime/comm/comm_ops.h"
#include "runtime/device/internal.h"
#include "tests/unit/local_group.h"

static void expect_traffic(const struct el_comm *comm, const struct el_comm_op *op, uint64_t sent, uint64_t received)
{
    struct el_comm_traffic traffic = el_comm_traffic(comm, op);
    assert_int_equal(traffic.sent_bytes, sent);
    assert_int_equal(traffic.received_bytes, received);
}

static void test_bytes_of_an_all_reduce(void **state)
{
    struct group group;
    struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE, .count = 1 << 20, .dtype = EL_F32};
    open_group(&group, 2, "null");
    for (int i = 0; i < 2; i++) expect_traffic(group.comms[i], &op, 4 << 20, 4 << 20); /* 2(n-1)/n of the data */
    op = (struct el_comm_op){.verb = EL_COMM_BROADCAST, .count = 1000, .dtype = EL_F64, .root = 1};
    expect_traffic(group.comms[0], &op, 0, 8000);
    op.verb = EL_COMM_REDUCE;
    expect_traffic(group.comms[0], &op, 8000, 0);
    close_group(&group);
    open_group(&group, 1, "null");
    op = (struct el_comm_op){.verb = EL_COMM_ALL_REDUCE, .count = 1000, .dtype = EL_F32};
    expect_traffic(group.comms[0], &op, 0, 0);
    close_group(&group);
}

/* Those that are expected, also where the last operation was of whole parts; but whole parts where they move. */
static void test_bytes_of_parts_used_in_part(void **state)
{
    static const double expected[] = {0, 0.25, 1, 0.5, 0.0001};
    static const uint64_t elements[] = {1000, 250, 1000, 500, 0};
    struct group group;
    struct el_program *program;
    struct el_buffer *memory;
    open_group(&group, 4, "sim");
    assert_int_equal(el_device_alloc(group.devices[0], EL_TAG_GRAD, 40000, "memory", &memory), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    struct el_comm_op op = {.verb = EL_COMM_ALL_TO_ALL,
                            .dtype = EL_F32,
                            .count = 1000,
                            .data = el_view_of(memory, 0),
                            .result = el_view_of(memory, 16000),
                            .used = el_view_of(memory, 32000),
                            .used_each = 8,
                            .unit = 10};
    for (int i = 0; i < 5; i++) {
        op.expected = expected[i];
        expect_traffic(group.comms[0], &op, 3 * elements[i] * 4, 3 * elements[i] * 4);
        assert_int_equal(el_comm_issue(group.comms[0], program, &op, NULL), EL_OK);
        const struct el_op_info *info = &el_program_ops(program)[i];
        assert_int_equal(info->sent_bytes, 3 * elements[i] * 4);
        assert_int_equal(info->received_bytes, 3 * elements[i] * 4);
        assert_int_equal(info->bytes, 4 * elements[i] * 4);
        assert_int_equal(info->messages.largest_bytes, elements[i] * 4);
        assert_int_equal(info->messages.most_bytes, 6 * elements[i] * 4);
        assert_int_equal(info->messages.total_bytes, 4 * elements[i] * 4);
        assert_int_equal(info->messages.given, 4 * elements[i]);
    }
    el_program_destroy(program);
    close_group(&group);
}

/* Kernels that are skipped write no numbers: parts are whole. */
static enum el_status check_without_kernels(struct el_comm *comm)
{
    struct el_buffer *memory;
    struct el_program *program;
    int32_t host[12] = {1, 2, 0, 0, 9, 9, 9, 9}; /* data, result, numbers of which two do not agree */
    for (int i = 8; i < 12; i++) host[i] = el_comm_rank(comm) * i;
    EL_TRY(el_device_alloc(el_comm_device(comm), EL_TAG_GRAD, sizeof host, "memory", &memory));
    EL_TRY(el_device_write(el_view_of(memory, 0), host, sizeof host));
    EL_TRY(el_program_create(&program));
    struct el_comm_op op = {.verb = EL_COMM_ALL_TO_ALL,
                            .dtype = EL_I32,
                            .count = 1,
                            .data = el_view_of(memory, 0),
                            .result = el_view_of(memory, 16),
                            .used = el_view_of(memory, 32),
                            .used_each = 1,
                            .unit = 1};
    EL_TRY(el_comm_issue(comm, program, &op, NULL));
    EL_TRY(el_program_end(program));
    EL_TRY(el_program_run(program, 0, NULL));
    EL_TRY(el_device_read(el_view_of(memory, 0), host, sizeof host));
    el_program_destroy(program);
    el_device_free(memory);
    const int32_t mine = el_comm_rank(comm) + 1;
    return host[4] == mine && host[5] == mine ? EL_OK : el_fail(EL_ERR_INTERNAL, "a part was not whole");
}

static void test_parts_are_whole_without_kernels(void **state)
{
    group_of_does("null", 2, check_without_kernels, EL_OK);
}

static void test_ops_carry_their_bytes(void **state)
{
    struct group group;
    struct el_program *program;
    struct el_buffer *buffer;
    open_group(&group, 2, "null");
    assert_int_equal(el_device_alloc(group.devices[0], EL_TAG_GRAD, 4000, "g", &buffer), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                            .dtype = EL_F32,
                            .count = 1000,
                            .data = el_view_of(buffer, 0),
                            .label = "bucket 0",
                            .phase = EL_PHASE_COMM};
    assert_int_equal(el_comm_issue(group.comms[0], program, &op, NULL), EL_OK);
    op.verb = EL_COMM_BROADCAST;
    op.root = 2;
    assert_int_equal(el_comm_issue(group.comms[0], program, &op, NULL), EL_ERR_INVALID);
    assert_int_equal(el_program_op_count(program), 1);
    const struct el_op_info *info = el_program_ops(program);
    assert_string_equal(info->label, "bucket 0");
    assert_int_equal(info->op_class, EL_CLASS_COMM);
    assert_int_equal(info->stream, EL_STREAM_COMM);
    assert_int_equal(info->sent_bytes, 4000);
    assert_int_equal(info->received_bytes, 4000);
    el_program_destroy(program);
    close_group(&group);
}

struct refusal {
    struct el_comm_op op; /* data and result: a view of no buffer stands for the 4000 bytes of memory */
    bool data, result;
    const char *words;
};

/* Every mistake by the verb's name, and nothing is issued. Rank 0 of 2, memory of 1000 floats. */
static void test_what_is_refused(void **state)
{
    static const struct refusal refusals[] = {
        {{.verb = EL_COMM_BROADCAST, .root = 2}, true, false, "broadcast: root 2 of 2 members"},
        {{.verb = EL_COMM_ALL_REDUCE, .root = 1}, true, false, "all_reduce: has no root, and 1 was given"},
        {{.verb = EL_COMM_SEND, .root = 0}, true, false, "send: rank 0 cannot be its own partner"},
        {{.verb = EL_COMM_RECV, .root = -1}, true, false, "recv: partner -1 of 2 members"},
        {{.verb = EL_COMM_SEND, .root = 1, .tag = -1}, true, false, "send: tag -1 is below 0"},
        {{.verb = EL_COMM_REDUCE, .reduction = EL_COMM_XOR}, true, false, "reduce: no xor of f32 values"},
        {{.verb = EL_COMM_ALL_REDUCE}, false, true, "all_reduce: no data"},
        {{.verb = EL_COMM_ALL_REDUCE, .count = 1001},
         true,
         false,
         "all_reduce: 4004 bytes of data at offset 0 of 'memory', which has 4000 bytes"},
        {{.verb = EL_COMM_ALL_REDUCE, .result.offset = 400}, true, true, "all_reduce: data and result overlap"},
        {{.verb = EL_COMM_ALL_REDUCE, .used.offset = 8}, true, false, "all_reduce: its parts are always used whole"},
        {{.verb = EL_COMM_ALL_GATHER, .expected = 1}, true, true, "all_gather: its parts are always used whole"},
        {{.verb = EL_COMM_ALL_TO_ALL, .expected = 1.5}, true, true, "all_to_all: 1.5 of each part is expected"},
        {{.verb = EL_COMM_ALL_TO_ALL, .used.offset = 8, .used_each = 1},
         true,
         true,
         "all_to_all: 1 counts of 0 elements for each part"},
        {{.verb = EL_COMM_ALL_TO_ALL, .used.offset = 8, .unit = 1, .used_each = 1LL << 32},
         true,
         true,
         "all_to_all: 4294967296 counts of 1 elements for each part"},
    };
    struct group group;
    struct el_program *program;
    struct el_buffer *memory;
    open_group(&group, 2, "null");
    assert_int_equal(el_device_alloc(group.devices[0], EL_TAG_GRAD, 4000, "memory", &memory), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct el_comm_op op = refusals[i].op;
        if (op.count == 0) op.count = 500;
        if (refusals[i].data) op.data.buffer = memory;
        if (refusals[i].result) op.result.buffer = memory;
        assert_int_equal(el_comm_issue(group.comms[0], program, &op, NULL), EL_ERR_INVALID);
        if (!strstr(el_error_message(), refusals[i].words))
            fail_msg("'%s', not '%s'", el_error_message(), refusals[i].words);
    }
    assert_int_equal(el_program_op_count(program), 0);
    el_program_destroy(program);
    el_device_free(memory);
    close_group(&group);
}

/* Verbs that not every backend has are tried where all are: in a group of one. */
static void test_where_data_and_result_may_lie(void **state)
{
    struct el_device *device;
    struct el_comm *comm;
    struct el_program *program;
    struct el_buffer *memory;
    assert_int_equal(el_device_open(&(struct el_device_spec){.backend = "null"}, &device), EL_OK);
    assert_int_equal(el_comm_open_self(device, &comm), EL_OK);
    assert_int_equal(el_device_alloc(device, EL_TAG_GRAD, 4000, "memory", &memory), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    struct el_comm_op op = {.verb = EL_COMM_REDUCE_SCATTER, .count = 500, .data = el_view_of(memory, 0)};
    assert_int_equal(el_comm_issue(comm, program, &op, NULL), EL_ERR_INVALID);
    assert_string_equal(el_error_message(), "reduce_scatter: no result");
    op.result = el_view_of(memory, 4);
    assert_int_equal(el_comm_issue(comm, program, &op, NULL), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "in place, the result is the member's own part of the data"));
    op.result = el_view_of(memory, 0);
    assert_int_equal(el_comm_issue(comm, program, &op, NULL), EL_OK);
    op.verb = EL_COMM_ALL_TO_ALL;
    assert_int_equal(el_comm_issue(comm, program, &op, NULL), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "all_to_all: data and result overlap, and it does not work in place"));
    op = (struct el_comm_op){.verb = EL_COMM_BARRIER};
    assert_int_equal(el_comm_issue(comm, program, &op, NULL), EL_OK);
    op.verb = EL_COMM_SEND;
    assert_int_equal(el_comm_issue(comm, program, &op, NULL), EL_ERR_INVALID);
    el_program_destroy(program);
    el_comm_close(comm);
    el_device_close(device);
}

/* Two communicators of one device, of whatever kind, never are taken for one: streams and groups are their own. */
static void test_two_communicators_of_a_device(void **state)
{
    struct el_bootstrap *bootstrap;
    struct el_comm *comms[4];
    struct el_device *device;
    struct el_program *program;
    struct el_buffer *buffer;
    assert_int_equal(el_device_open(&(struct el_device_spec){.backend = "null"}, &device), EL_OK);
    assert_int_equal(el_bootstrap_open("self", &bootstrap), EL_OK);
    assert_int_equal(el_comm_open_self(device, &comms[0]), EL_OK);
    assert_int_equal(el_comm_open_self(device, &comms[1]), EL_OK);
    assert_int_equal(el_comm_open_ranks("shm", bootstrap, device, &comms[2]), EL_OK);
    assert_int_equal(el_comm_open_ranks("tcp", bootstrap, device, &comms[3]), EL_OK);
    assert_int_equal(el_device_alloc(device, EL_TAG_GRAD, 4000, "g", &buffer), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    for (int i = 0; i < 8; i++) assert_int_equal(all_reduce(comms[i % 4], program, buffer, 1000), EL_OK);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(el_program_ops(program)[i].stream, EL_STREAM_COMM + i % 4);
        for (int k = 0; k < i; k++) assert_false(el_call_group_same(program->tasks[i].group, program->tasks[k].group));
    }
    assert_int_equal(el_program_end(program), EL_OK);
    assert_int_equal(el_program_run(program, 0, NULL), EL_OK);
    el_program_destroy(program);
    for (int i = 0; i < 4; i++) el_comm_close(comms[i]);
    el_bootstrap_close(bootstrap);
    el_device_close(device);
}

/* A collective is the same operation for the members of its group, and no other group's of the job. */
static void test_names_tell_groups_apart(void **state)
{
    static const struct {
        const char *name;
        int index;
    } names[] = {{"world", 0}, {"world", 1}, {"local", 0}, {"local", 2}};
    enum { GROUPS = sizeof names / sizeof names[0] };
    struct group groups[GROUPS];
    uint64_t operations[GROUPS][2];
    for (int g = 0; g < GROUPS; g++) {
        open_group(&groups[g], 2, "null");
        for (int i = 0; i < 2; i++) {
            struct el_comm *comm = groups[g].comms[i];
            struct el_buffer *buffer;
            struct el_program *program;
            el_comm_name(comm, names[g].name, names[g].index);
            assert_int_equal(el_device_alloc(groups[g].devices[i], EL_TAG_GRAD, 4000, "g", &buffer), EL_OK);
            assert_int_equal(el_program_create(&program), EL_OK);
            assert_int_equal(all_reduce(comm, program, buffer, 1000), EL_OK);
            operations[g][i] = el_program_ops(program)->operation;
            assert_string_equal(el_program_ops(program)->communicator, names[g].name);
            el_program_destroy(program);
        }
        assert_true(operations[g][0] == operations[g][1]);
        for (int k = 0; k < g; k++) assert_true(operations[g][0] != operations[k][0]);
    }
    for (int g = 0; g < GROUPS; g++) close_group(&groups[g]);
}

/* There is an end to them, and what was given back is the next one's. */
static void test_streams_of_communicators(void **state)
{
    struct el_comm *comms[EL_DEVICE_STREAMS_MAX];
    struct el_device *device;
    struct el_program *program;
    struct el_buffer *buffer;
    int n = 0;
    assert_int_equal(el_device_open(&(struct el_device_spec){.backend = "null"}, &device), EL_OK);
    assert_int_equal(el_device_alloc(device, EL_TAG_GRAD, 4000, "g", &buffer), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    for (enum el_status status = EL_OK; status == EL_OK && n < EL_DEVICE_STREAMS_MAX; n++) {
        assert_int_equal(el_comm_open_self(device, &comms[n]), EL_OK);
        status = all_reduce(comms[n], program, buffer, 1000);
    }
    assert_int_equal(n, EL_DEVICE_STREAMS_MAX); /* the last one had none left */
    assert_non_null(strstr(el_error_message(), "streams for communication are taken"));
    el_comm_close(comms[2]);
    assert_int_equal(el_comm_open_self(device, &comms[2]), EL_OK);
    assert_int_equal(all_reduce(comms[2], program, buffer, 1000), EL_OK);
    assert_int_equal(el_program_ops(program)[n - 1].stream, EL_STREAM_COMM + 2);
    el_program_destroy(program);
    for (int i = 0; i < n; i++) el_comm_close(comms[i]);
    el_device_close(device);
}

RUN_TESTS(NULL, NULL, test_bytes_of_an_all_reduce, test_bytes_of_parts_used_in_part,
          test_parts_are_whole_without_kernels, test_ops_carry_their_bytes, test_what_is_refused,
          test_where_data_and_result_may_lie, test_two_communicators_of_a_device, test_streams_of_communicators,
          test_names_tell_groups_apart)
