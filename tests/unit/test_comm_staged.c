/* Host communicators for asynchronous devices, staged behind memory that the host cannot read: on a fake whose streams
 * run out of step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "runtime/comm/comm_ops.h"
#include "tests/conformance/comm_product.h"
#include "tests/conformance/comm_splits.h"
#include "tests/unit/device_mail.h"
#include "tests/unit/fake_async.h"
#include "tests/unit/star_bootstrap.h"
#include "tests/unit/together.h"

/* An inner communicator that never may see the device's addresses. */
struct inner {
    uintptr_t device_begin, device_end;
    int n_runs, n_closed, n_aborted;
};

static enum el_status inner_run(void *state, const struct el_comm_task *task)
{
    struct inner *inner = state;
    uintptr_t at = (uintptr_t)task->data;
    if (at >= inner->device_begin && at < inner->device_end) return el_fail(EL_ERR_INTERNAL, "device memory");
    inner->n_runs++;
    for (size_t i = 0; i < task->count; i++) ((float *)task->data)[i] += 1;
    return EL_OK;
}

static void inner_abort(void *state)
{
    ((struct inner *)state)->n_aborted++;
}

static void inner_close(void *state)
{
    ((struct inner *)state)->n_closed++;
}

static const struct el_comm_ops inner_ops = {.run = inner_run, .abort = inner_abort, .close = inner_close};
static const struct el_comm_backend inner_backend = {.name = "inner", .ops = &inner_ops};

static void staged_keeps_off_device_memory(void **state)
{
    enum { COUNT = 100 };
    struct el_buffer *buffer, *result;
    float host[COUNT];
    fake_reset(FAKE_LAZY);
    struct el_device *device = fake_device(0);
    assert_int_equal(el_device_alloc(device, EL_TAG_GRAD, sizeof host, "x", &buffer), EL_OK);
    assert_int_equal(el_device_alloc(device, EL_TAG_GRAD, sizeof host, "y", &result), EL_OK);
    struct inner inner = {.device_begin = buffer->address, .device_end = buffer->address + sizeof host};
    const struct el_comm_backend *backend = &inner_backend;
    const struct el_comm_place place = {.device = device, .stream = EL_STREAM_COMM};
    void *wrapped = &inner;
    assert_int_equal(el_staged_wrap(&place, 1, 3, &backend, &wrapped), EL_OK);
    assert_string_equal(backend->name, "inner");
    assert_false(backend->ops->asynchronous);
    for (int i = 0; i < COUNT; i++) host[i] = (float)i;
    el_device_write(el_view_of(buffer, 0), host, sizeof host);
    struct el_comm_task task = {.verb = EL_COMM_ALL_REDUCE,
                                .count = COUNT,
                                .root = 1,
                                .data = (void *)buffer->address,
                                .result = (void *)buffer->address};
    assert_int_equal(backend->ops->run(wrapped, &task), EL_ERR_INTERNAL); /* nothing reserved */
    assert_int_equal(backend->ops->reserve(wrapped, &task), EL_OK);
    assert_int_equal(backend->ops->run(wrapped, &task), EL_OK);
    task.verb = EL_COMM_REDUCE;
    task.result = (void *)result->address;
    assert_int_equal(backend->ops->run(wrapped, &task), EL_OK);
    el_device_stream_synchronize(device, EL_STREAM_COMM);
    el_device_read(el_view_of(buffer, 0), host, sizeof host);
    assert_true(host[7] == 8); /* a reduce leaves the data alone */
    el_device_read(el_view_of(result, 0), host, sizeof host);
    assert_true(host[7] == 9);
    backend->ops->abort(wrapped);
    backend->ops->close(wrapped);
    assert_int_equal(inner.n_runs, 2);
    assert_int_equal(inner.n_aborted, 1);
    assert_int_equal(inner.n_closed, 1);
    el_device_close(device);
    assert_int_equal(fake.n_wrong, 0);
}

/* Stands for the group of which the staged member is rank 1 of TOGETHER: it looks at what that member gives, and gives
 * it what it would get. */
struct known {
    struct comm_case now;
    int n_runs, n_wrong;
};

static enum el_status known_run(void *state, const struct el_comm_task *task)
{
    struct known *known = state;
    const struct comm_case *c = &known->now;
    const struct el_comm_verb_row *row = el_comm_verb_row(c->verb);
    static char given[TOGETHER_BYTES];
    known->n_runs++;
    if (c->verb == EL_COMM_BARRIER) return EL_OK;
    for (size_t i = 0; i < together_elements(c, row->all_data); i++)
        case_store(given, c->dtype, i, case_value(c, TOGETHER, 1, i));
    if ((!row->data_on_root || c->root == 1) &&
        memcmp(task->data, given, together_elements(c, row->all_data) * el_dtype_bytes(c->dtype)) != 0)
        known->n_wrong++;
    if ((task->result != NULL) != (!row->result_on_root || c->root == 1)) known->n_wrong++;
    for (size_t i = 0; task->result && i < together_elements(c, row->all_result); i++)
        case_store(task->result, c->dtype, i, case_expected(c, TOGETHER, 1, i));
    return EL_OK;
}

static void known_end(void *state)
{
}

static const struct el_comm_ops known_ops = {
    .verbs = EL_COMM_COLLECTIVES, .run = known_run, .abort = known_end, .close = known_end};
static const struct el_comm_backend known_backend = {.name = "known", .ops = &known_ops};

static void staged_case(enum fake_policy policy, enum el_comm_verb verb, int root, bool in_place)
{
    static char host[TOGETHER_BYTES], expected[TOGETHER_BYTES];
    struct known known = {.now = {.verb = verb, .dtype = EL_I32, .count = 100, .root = root, .in_place = in_place}};
    const struct el_comm_verb_row *row = el_comm_verb_row(verb);
    size_t n_data = together_elements(&known.now, row->all_data) * 4;
    size_t n_result = together_elements(&known.now, row->all_result) * 4;
    struct el_view data, result;
    struct lane lane = {.now = known.now};
    bool given;
    void *wrapped = &known;
    const struct el_comm_backend *backend = &known_backend;
    fake_reset(policy);
    struct el_device *device = fake_device(0);
    const struct el_comm_place place = {.device = device, .stream = EL_STREAM_COMM};
    assert_int_equal(el_device_alloc(device, EL_TAG_GRAD, sizeof host, "data", &lane.data[1]), EL_OK);
    assert_int_equal(el_device_alloc(device, EL_TAG_GRAD, sizeof host, "result", &lane.result[1]), EL_OK);
    lane_views(&lane, 1, &data, &result, &given);
    for (size_t i = 0; i < n_data / 4; i++) case_store(host, EL_I32, i, case_value(&known.now, TOGETHER, 1, i));
    assert_int_equal(el_device_write(data, host, n_data), EL_OK);
    assert_int_equal(el_staged_wrap(&place, 1, TOGETHER, &backend, &wrapped), EL_OK);
    struct el_comm_task task = {.verb = verb, .dtype = EL_I32, .count = 100, .root = root};
    assert_int_equal(backend->ops->reserve(wrapped, &task), EL_OK);
    task.data = (void *)(data.buffer->address + data.offset);
    task.result = (void *)(result.buffer->address + result.offset);
    if (row->result_on_root && root != 1) task.result = NULL;
    if (backend->ops->run(wrapped, &task) != EL_OK) fail_msg("%s", el_error_message());
    assert_int_equal(el_device_stream_synchronize(device, EL_STREAM_COMM), EL_OK);
    assert_int_equal(el_device_read(result, host, n_result), EL_OK);
    for (size_t i = 0; i < n_result / 4; i++)
        case_store(expected, EL_I32, i, case_expected(&known.now, TOGETHER, 1, i));
    if (task.result && verb != EL_COMM_BARRIER) assert_memory_equal(host, expected, n_result);
    assert_int_equal(known.n_runs, 1);
    assert_int_equal(known.n_wrong, 0);
    backend->ops->close(wrapped);
    el_device_close(device);
    assert_int_equal(fake.n_wrong, 0);
}

static void staged_moves_each_verbs_sides(void **state)
{
    for (int policy = 0; policy < FAKE_POLICIES; policy++)
        for (int verb = 0; verb < EL_COMM_VERB_COUNT; verb++)
            for (int i = 0; i < 4 && !el_comm_verb_row(verb)->is_link; i++)
                staged_case((enum fake_policy)policy, (enum el_comm_verb)verb, i / 2, i % 2);
}

static void staged_local_has_what_local_has(void **state)
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

/* From card to card. */
static void members_of_a_process_exchange_messages(void **state)
{
    check_device_mail(&el_comm_staged_local_backend, fake_reset);
}

/* Ranks of one host, each with an asynchronous device: the whole check of communicators, staged through shm. */
static int be_staged_rank(struct star *star, void *context)
{
    (void)context;
    struct el_comm *comm = NULL;
    fake_reset((enum fake_policy)(star->base.rank % FAKE_POLICIES));
    struct el_device *device = fake_device(star->base.rank);
    enum el_status status = el_comm_open_ranks("shm", &star->base, device, &comm);
    if (status == EL_OK) status = check_product(comm);
    if (status == EL_OK && el_comm_size(comm) > 1) status = check_splits(comm);
    if (status != EL_OK) fprintf(stderr, "rank %d: %s\n", star->base.rank, el_error_message());
    el_comm_close(comm);
    el_device_close(device);
    return status == EL_OK && fake.n_wrong == 0 ? 0 : 1;
}

static void ranks_stage_through_shm(void **state)
{
    for (int size = 1; size <= 3; size++) assert_int_equal(star_ranks(size, be_staged_rank, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(staged_keeps_off_device_memory),  cmocka_unit_test(staged_moves_each_verbs_sides),
        cmocka_unit_test(staged_local_has_what_local_has), cmocka_unit_test(members_of_a_process_exchange_messages),
        cmocka_unit_test(ranks_stage_through_shm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
