/* The communicators within a process, self and local: exact sums on every member, the bytes they book, and that nobody
 * waits for a member that gave up. Each member issues and runs its own program in a thread of its own. Also meant for
 * ThreadSanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/comm_ops.h"
#include "runtime/device/internal.h"
#include "tests/conformance/comm_checks.h"
#include "tests/conformance/comm_mail.h"
#include "tests/conformance/comm_sequences.h"
#include "tests/conformance/comm_splits.h"

enum { MEMBERS_MAX = 4 };

struct group {
    int n;
    struct el_device *devices[PRODUCT_SIZE_MAX];
    struct el_comm *comms[PRODUCT_SIZE_MAX];
};

static void open_group(struct group *group, int n, const char *backend)
{
    group->n = n;
    for (int i = 0; i < n; i++) {
        struct el_device_spec spec = {.backend = backend, .index = i, .position = i};
        assert_int_equal(el_device_open(&spec, &group->devices[i]), EL_OK);
    }
    assert_int_equal(el_comm_open_local(group->devices, n, group->comms), EL_OK);
}

static void close_group(struct group *group)
{
    for (int i = 0; i < group->n; i++) el_comm_close(group->comms[i]);
    for (int i = 0; i < group->n; i++) el_device_close(group->devices[i]);
}

struct member {
    pthread_t thread;
    struct el_comm *comm;
    enum el_status (*act)(struct el_comm *comm);
    struct el_error outcome;
};

static void *be_member(void *context)
{
    struct member *member = context;
    el_error_take(member->act(member->comm), &member->outcome);
    return NULL;
}

/* Every member does `act` at the same time; each must end with `expected`. */
static void all_do(struct group *group, enum el_status (*act)(struct el_comm *comm), enum el_status expected)
{
    struct member members[PRODUCT_SIZE_MAX];
    for (int i = 0; i < group->n; i++) {
        members[i] = (struct member){.comm = group->comms[i], .act = act};
        assert_int_equal(pthread_create(&members[i].thread, NULL, be_member, &members[i]), 0);
    }
    for (int i = 0; i < group->n; i++) pthread_join(members[i].thread, NULL);
    for (int i = 0; i < group->n; i++) {
        if (members[i].outcome.status != expected) print_error("member %d: %s\n", i, members[i].outcome.text);
        assert_int_equal(members[i].outcome.status, expected);
    }
}

static void test_operations(void **state)
{
    (void)state;
    struct group group;
    for (int i = 0; i < count_product_sizes(); i++) {
        open_group(&group, product_sizes[i], "cpu");
        all_do(&group, check_product, EL_OK);
        close_group(&group);
    }
}

static void test_self(void **state)
{
    (void)state;
    struct el_device_spec spec = {.backend = "cpu"};
    struct el_device *device;
    struct el_comm *comm;
    assert_int_equal(el_device_open(&spec, &device), EL_OK);
    assert_int_equal(el_comm_open_self(device, &comm), EL_OK);
    assert_int_equal(el_comm_size(comm), 1);
    assert_int_equal(check_product(comm), EL_OK);
    el_comm_close(comm);
    el_device_close(device);
}

static enum el_status all_reduce(struct el_comm *comm, struct el_program *program, struct el_buffer *buffer,
                                 size_t count)
{
    struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                            .dtype = EL_F32,
                            .count = count,
                            .data = el_view_of(buffer, 0),
                            .phase = EL_PHASE_COMM};
    return el_comm_issue(comm, program, &op, NULL);
}

/* Numbers whose sum depends on the order: every member must get the bits of ((a+b)+c)+d. */
static enum el_status check_order(struct el_comm *comm)
{
    static const float parts[] = {1e8f, 1.25f, -1e8f, 0.3f};
    enum { COUNT = 10000 };
    struct el_buffer *buffer;
    struct el_program *program;
    float *host = malloc(COUNT * sizeof *host), expected = parts[0];
    for (int i = 0; i < COUNT; i++) host[i] = parts[el_comm_rank(comm)];
    for (int r = 1; r < el_comm_size(comm); r++) {
        volatile float sum = expected + parts[r];
        expected = sum;
    }
    EL_TRY(el_device_alloc(el_comm_device(comm), EL_TAG_GRAD, COUNT * sizeof *host, "g", &buffer));
    EL_TRY(el_device_write(el_view_of(buffer, 0), host, COUNT * sizeof *host));
    EL_TRY(el_program_create(&program));
    EL_TRY(all_reduce(comm, program, buffer, COUNT));
    EL_TRY(el_program_end(program));
    EL_TRY(el_program_run(program, 0, NULL));
    el_program_destroy(program);
    EL_TRY(el_device_read(el_view_of(buffer, 0), host, COUNT * sizeof *host));
    el_device_free(buffer);
    bool same = true;
    for (int i = 0; i < COUNT; i++) same = same && memcmp(&host[i], &expected, sizeof expected) == 0;
    free(host);
    return same ? EL_OK : el_fail(EL_ERR_INTERNAL, "not summed in rank order");
}

static void test_sums_in_rank_order(void **state)
{
    (void)state;
    struct group group;
    for (int n = 2; n <= MEMBERS_MAX; n++) {
        open_group(&group, n, "cpu");
        all_do(&group, check_order, EL_OK);
        close_group(&group);
    }
}

/* Muted, the same program leaves each member's numbers alone; unmuted it sums them. */
static enum el_status check_muted(struct el_comm *comm)
{
    enum { COUNT = 1000 };
    struct el_buffer *buffer;
    struct el_program *program;
    float mine = (float)(el_comm_rank(comm) + 1), sum = 0, host[COUNT];
    bool good = true;
    for (int r = 1; r <= el_comm_size(comm); r++) sum += (float)r;
    EL_TRY(el_device_alloc(el_comm_device(comm), EL_TAG_GRAD, sizeof host, "g", &buffer));
    EL_TRY(el_program_create(&program));
    EL_TRY(all_reduce(comm, program, buffer, COUNT));
    EL_TRY(el_program_end(program));
    for (int muted = 1; muted >= 0; muted--) {
        for (int i = 0; i < COUNT; i++) host[i] = mine;
        EL_TRY(el_device_write(el_view_of(buffer, 0), host, sizeof host));
        el_comm_mute(comm, muted);
        EL_TRY(el_program_run(program, 0, NULL));
        EL_TRY(el_device_read(el_view_of(buffer, 0), host, sizeof host));
        for (int i = 0; i < COUNT; i++) good = good && host[i] == (muted ? mine : sum);
    }
    el_program_destroy(program);
    el_device_free(buffer);
    return good ? EL_OK : el_fail(EL_ERR_INTERNAL, "muted it summed, or unmuted it did not");
}

static void test_muted(void **state)
{
    (void)state;
    struct group group;
    open_group(&group, 3, "cpu");
    all_do(&group, check_muted, EL_OK);
    close_group(&group);
}

static enum el_status large(struct el_comm *comm)
{
    return check_operations(comm, 1000000, EL_F32, 0);
}

static enum el_status last_aborts(struct el_comm *comm)
{
    if (el_comm_rank(comm) == el_comm_size(comm) - 1) {
        usleep(20000);
        el_comm_abort(comm);
    }
    return large(comm);
}

static enum el_status last_never_comes(struct el_comm *comm)
{
    if (el_comm_rank(comm) != el_comm_size(comm) - 1) return large(comm);
    usleep(20000);
    el_comm_abort(comm);
    return el_fail(EL_ERR_PEER, "gave up");
}

static void test_abort_frees_the_waiting(void **state)
{
    (void)state;
    struct group group;
    for (int n = 2; n <= MEMBERS_MAX; n++) {
        open_group(&group, n, "cpu");
        all_do(&group, last_never_comes, EL_ERR_PEER);
        all_do(&group, large, EL_ERR_PEER); /* and for good */
        close_group(&group);
        open_group(&group, n, "cpu");
        all_do(&group, last_aborts, EL_ERR_PEER);
        close_group(&group);
    }
}

/* Each check has three operations, the first of them an all-reduce. */
static void test_a_failure_names_its_operation(void **state)
{
    (void)state;
    struct group group;
    open_group(&group, 2, "cpu");
    all_do(&group, large, EL_OK);
    el_comm_abort(group.comms[0]);
    struct member member = {.comm = group.comms[1], .act = large};
    be_member(&member);
    assert_int_equal(member.outcome.status, EL_ERR_PEER);
    if (!strstr(member.outcome.text, "the all_reduce number 4 of rank 1: ")) fail_msg("%s", member.outcome.text);
    close_group(&group);
}

static void *abort_soon(void *context)
{
    usleep(3000);
    el_comm_abort(context);
    return NULL;
}

/* Nothing but all-reduces, on memory that goes as soon as the program has failed. */
static enum el_status abort_under_way(struct el_comm *comm)
{
    enum { COUNT = 1 << 20, OPERATIONS = 20 };
    struct el_buffer *buffer;
    struct el_program *program;
    EL_TRY(el_device_alloc(el_comm_device(comm), EL_TAG_GRAD, COUNT * sizeof(float), "g", &buffer));
    EL_TRY(el_program_create(&program));
    for (int i = 0; i < OPERATIONS; i++) EL_TRY(all_reduce(comm, program, buffer, COUNT));
    EL_TRY(el_program_end(program));
    enum el_status status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    el_device_free(buffer);
    return status;
}

static enum el_status until_failure(struct el_comm *comm)
{
    enum el_status status = EL_OK;
    for (int i = 0; i < 100000 && status == EL_OK; i++) status = abort_under_way(comm);
    return status;
}

/* An abort at any moment: each member may free its memory as soon as its operation has failed (it does). */
static void test_abort_amid_operations(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct group group;
        pthread_t thread;
        open_group(&group, 3, "cpu");
        assert_int_equal(pthread_create(&thread, NULL, abort_soon, group.comms[i % 3]), 0);
        all_do(&group, until_failure, EL_ERR_PEER);
        pthread_join(thread, NULL);
        close_group(&group);
    }
}

static enum el_status issue_different(struct el_comm *comm)
{
    return check_operations(comm, 1000 + (size_t)el_comm_rank(comm), EL_F32, 0);
}

static void test_different_operations_are_noticed(void **state)
{
    (void)state;
    struct group group;
    struct member members[2];
    open_group(&group, 2, "cpu");
    for (int i = 0; i < 2; i++) {
        members[i] = (struct member){.comm = group.comms[i], .act = issue_different};
        assert_int_equal(pthread_create(&members[i].thread, NULL, be_member, &members[i]), 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(members[i].thread, NULL);
    for (int i = 0; i < 2; i++) assert_int_not_equal(members[i].outcome.status, EL_OK);
    close_group(&group);
}

static void expect_traffic(const struct el_comm *comm, const struct el_comm_op *op, uint64_t sent, uint64_t received)
{
    struct el_comm_traffic traffic = el_comm_traffic(comm, op);
    assert_int_equal(traffic.sent_bytes, sent);
    assert_int_equal(traffic.received_bytes, received);
}

static void test_bytes_of_an_all_reduce(void **state)
{
    (void)state;
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

static void test_bytes_add_up(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 17, 1000, 100003};
    for (int n = 2; n <= MEMBERS_MAX; n++) {
        struct group group;
        open_group(&group, n, "null");
        for (int verb = 0; verb <= EL_COMM_REDUCE; verb++)
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                struct el_comm_op op = {
                    .verb = (enum el_comm_verb)verb, .count = counts[c], .dtype = EL_F32, .root = n - 1};
                uint64_t all_sent = 0, all_received = 0;
                for (int i = 0; i < n; i++) {
                    struct el_comm_traffic traffic = el_comm_traffic(group.comms[i], &op);
                    all_sent += traffic.sent_bytes;
                    all_received += traffic.received_bytes;
                }
                uint64_t expected = (uint64_t)(n - 1) * counts[c] * 4 * (verb == EL_COMM_ALL_REDUCE ? 2 : 1);
                assert_int_equal(all_sent, expected);
                assert_int_equal(all_received, expected);
            }
        close_group(&group);
    }
}

static void test_ops_carry_their_bytes(void **state)
{
    (void)state;
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
    (void)state;
    static const struct refusal refusals[] = {
        {{.verb = EL_COMM_BROADCAST, .root = 2}, true, false, "broadcast: root 2 of 2 members"},
        {{.verb = EL_COMM_ALL_REDUCE, .root = 1}, true, false, "all_reduce: it has no root 1"},
        {{.verb = EL_COMM_SEND, .root = 0}, true, false, "send: rank 0 cannot be its own partner"},
        {{.verb = EL_COMM_RECV, .root = -1}, true, false, "recv: partner -1 of 2 members"},
        {{.verb = EL_COMM_SEND, .root = 1, .tag = -1}, true, false, "send: tag -1 is below 0"},
        {{.verb = EL_COMM_REDUCE, .reduction = EL_COMM_XOR}, true, false, "reduce: no xor of f32 values"},
        {{.verb = EL_COMM_ALL_REDUCE}, false, true, "all_reduce: no data"},
        {{.verb = EL_COMM_ALL_REDUCE, .count = 1001},
         true,
         false,
         "all_reduce: 4004 bytes of data at 0 of 'memory', which has 4000"},
        {{.verb = EL_COMM_ALL_REDUCE, .result.offset = 400}, true, true, "all_reduce: data and result overlap"},
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
    (void)state;
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
    assert_non_null(strstr(el_error_message(), "there the result is the member's own part of the data"));
    op.result = el_view_of(memory, 0);
    assert_int_equal(el_comm_issue(comm, program, &op, NULL), EL_OK);
    op.verb = EL_COMM_ALL_TO_ALL;
    assert_int_equal(el_comm_issue(comm, program, &op, NULL), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "all_to_all: data and result overlap: it has no in place"));
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
    (void)state;
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

/* There is an end to them, and what was given back is the next one's. */
static void test_streams_of_communicators(void **state)
{
    (void)state;
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
    assert_non_null(strstr(el_error_message(), "all 7 streams for communication are taken"));
    el_comm_close(comms[2]);
    assert_int_equal(el_comm_open_self(device, &comms[2]), EL_OK);
    assert_int_equal(all_reduce(comms[2], program, buffer, 1000), EL_OK);
    assert_int_equal(el_program_ops(program)[n - 1].stream, EL_STREAM_COMM + 2);
    el_program_destroy(program);
    for (int i = 0; i < n; i++) el_comm_close(comms[i]);
    el_device_close(device);
}

/* Memory from a communicator, in place and out of it, counted as any. */
static enum el_status check_registered(struct el_comm *comm)
{
    struct el_buffer *buffer;
    EL_TRY(el_comm_alloc(comm, EL_TAG_BUCKET, 4000, "bucket", &buffer));
    bool counted = el_device_ledger(el_comm_device(comm))->live_by_tag[EL_TAG_BUCKET] == 4000;
    el_device_free(buffer);
    bool freed = el_device_ledger(el_comm_device(comm))->live_bytes == 0;
    return counted && freed ? EL_OK : el_fail(EL_ERR_INTERNAL, "the ledger does not count it");
}

static void test_registered_memory_is_counted(void **state)
{
    (void)state;
    static const char *const backends[] = {"cpu", "null", "sim"};
    struct group group;
    for (int b = 0; b < 3; b++)
        for (int n = 1; n <= 2; n++) {
            open_group(&group, n, backends[b]);
            all_do(&group, check_registered, EL_OK);
            close_group(&group);
        }
}

static void test_send_and_receive(void **state)
{
    (void)state;
    struct group group;
    for (int n = 2; n <= MEMBERS_MAX; n++) {
        open_group(&group, n, "cpu");
        all_do(&group, check_mail, EL_OK);
        close_group(&group);
        open_group(&group, n, "cpu");
        all_do(&group, check_full_mailbox, EL_OK);
        close_group(&group);
    }
}

static enum el_status open_small_mailboxes(struct el_comm *comm)
{
    return el_comm_open_mailboxes(comm, 100);
}

static enum el_status receive_from_first(struct el_comm *comm)
{
    if (el_comm_rank(comm) > 0) return mail_take(comm, 0, 0, 0, 10);
    usleep(20000);
    el_comm_abort(comm);
    return el_fail(EL_ERR_PEER, "gave up");
}

static void test_abort_frees_who_receives(void **state)
{
    (void)state;
    struct group group;
    open_group(&group, 3, "cpu");
    all_do(&group, open_small_mailboxes, EL_OK);
    all_do(&group, receive_from_first, EL_ERR_PEER);
    close_group(&group);
}

/* Their mailboxes stand in the ledger, and nobody is waited for. */
static void test_simulated_devices_have_links(void **state)
{
    (void)state;
    struct group group;
    open_group(&group, 3, "sim");
    assert_false(el_comm_has_verb(group.comms[0], EL_COMM_SEND));
    assert_int_equal(el_comm_open_mailboxes(group.comms[0], 100), EL_OK);
    assert_true(el_comm_has_verb(group.comms[0], EL_COMM_SEND));
    assert_int_equal(el_device_ledger(el_comm_device(group.comms[0]))->live_by_tag[EL_TAG_MAILBOX], 200);
    close_group(&group);
}

static void test_groups_split(void **state)
{
    (void)state;
    struct group group;
    for (int n = 1; n <= MEMBERS_MAX; n++) {
        open_group(&group, n, "cpu");
        all_do(&group, check_splits, EL_OK);
        close_group(&group);
    }
}

static enum el_status sequences(struct el_comm *comm)
{
    return check_sequences(comm, 140);
}

static void test_random_sequences_over_random_groups(void **state)
{
    (void)state;
    struct group group;
    open_group(&group, MEMBERS_MAX, "cpu");
    all_do(&group, sequences, EL_OK);
    close_group(&group);
}

/* One thread for several members would wait for itself. */
static void test_members_of_one_thread_do_not_split(void **state)
{
    (void)state;
    struct group group;
    struct el_comm *part, *together[2];
    open_group(&group, 2, "null");
    assert_int_equal(el_comm_open_together(group.devices, 2, together), EL_OK);
    assert_int_equal(el_comm_split(together[0], 0, 0, &part), EL_ERR_INVALID);
    for (int i = 0; i < 2; i++) el_comm_close(together[i]);
    close_group(&group);
}

static enum el_status last_is_late(struct el_comm *comm)
{
    EL_TRY(el_comm_set_timeout(comm, 0.02));
    if (el_comm_rank(comm) == el_comm_size(comm) - 1) usleep(200000);
    return large(comm);
}

static void test_a_late_member_fails_all(void **state)
{
    (void)state;
    struct group group;
    open_group(&group, 3, "cpu");
    all_do(&group, last_is_late, EL_ERR_PEER);
    close_group(&group);
}

static void test_what_cannot_be_opened(void **state)
{
    (void)state;
    struct el_bootstrap *bootstrap;
    struct el_comm *comm;
    struct el_device *device;
    assert_int_equal(el_device_open(&(struct el_device_spec){.backend = "null"}, &device), EL_OK);
    assert_int_equal(el_bootstrap_open("none", &bootstrap), EL_ERR_ABSENT);
    assert_int_equal(el_bootstrap_open("self", &bootstrap), EL_OK);
    assert_int_equal(el_comm_open_ranks("local", bootstrap, device, &comm), EL_ERR_ABSENT);
    assert_int_equal(el_comm_open_ranks("shm", bootstrap, device, &comm), EL_OK);
    assert_string_equal(el_comm_backend(comm), "shm");
    el_comm_close(comm);
    assert_int_equal(el_bootstrap_agree(bootstrap, EL_OK), EL_OK);
    assert_int_equal(el_bootstrap_agree(bootstrap, EL_ERR_OOM), EL_ERR_OOM);
    el_bootstrap_close(bootstrap);
    el_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_self),
        cmocka_unit_test(test_sums_in_rank_order),
        cmocka_unit_test(test_muted),
        cmocka_unit_test(test_abort_frees_the_waiting),
        cmocka_unit_test(test_abort_amid_operations),
        cmocka_unit_test(test_a_failure_names_its_operation),
        cmocka_unit_test(test_different_operations_are_noticed),
        cmocka_unit_test(test_bytes_of_an_all_reduce),
        cmocka_unit_test(test_bytes_add_up),
        cmocka_unit_test(test_ops_carry_their_bytes),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_where_data_and_result_may_lie),
        cmocka_unit_test(test_two_communicators_of_a_device),
        cmocka_unit_test(test_streams_of_communicators),
        cmocka_unit_test(test_registered_memory_is_counted),
        cmocka_unit_test(test_send_and_receive),
        cmocka_unit_test(test_abort_frees_who_receives),
        cmocka_unit_test(test_simulated_devices_have_links),
        cmocka_unit_test(test_groups_split),
        cmocka_unit_test(test_random_sequences_over_random_groups),
        cmocka_unit_test(test_members_of_one_thread_do_not_split),
        cmocka_unit_test(test_a_late_member_fails_all),
        cmocka_unit_test(test_what_cannot_be_opened),
    };
    product_announce();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
