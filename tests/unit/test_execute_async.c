/* Running programs on asynchronous devices, on a fake whose streams run as far out of step as events allow: copies,
 * kernels, calls and their groups, spans, failures, the ledger. That the fake finds a missing wait is tested too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiles/recorder.h"
#include "tests/unit/fake_async.h"

enum { N = 16, DEVICES = 3, BUFFERS = 8, SEEDS = 40 };

struct bench {
    struct el_device *devices[DEVICES];
    struct el_buffer *buffers[BUFFERS]; /* buffer b on device b % DEVICES */
    struct el_program *program;
};

static void open_bench(struct bench *bench, enum fake_policy policy, unsigned seed)
{
    fake_reset(policy);
    fake.seed = seed;
    for (int d = 0; d < DEVICES; d++) bench->devices[d] = fake_device(d);
    for (int b = 0; b < BUFFERS; b++) {
        float values[N];
        for (int i = 0; i < N; i++) values[i] = (float)(b * N + i + 1);
        assert_int_equal(
            el_device_alloc(bench->devices[b % DEVICES], EL_TAG_PARAM, sizeof values, "x", &bench->buffers[b]), EL_OK);
        assert_int_equal(el_device_write(el_view_of(bench->buffers[b], 0), values, sizeof values), EL_OK);
    }
    assert_int_equal(el_program_create(&bench->program), EL_OK);
}

static void close_bench(struct bench *bench)
{
    el_program_destroy(bench->program);
    for (int d = 0; d < DEVICES; d++) el_device_close(bench->devices[d]);
    assert_int_equal(fake.n_events, 0);
    assert_int_equal(fake.n_devices, 0);
    assert_int_equal(fake.n_wrong, 0);
}

static void run(struct bench *bench, uint64_t step, const struct el_probe *probe)
{
    if (el_program_run(bench->program, step, probe) != EL_OK) fail_msg("%s", el_error_message());
}

static float read_one(const struct bench *bench, int b)
{
    float values[N];
    assert_int_equal(el_device_read(el_view_of(bench->buffers[b], 0), values, sizeof values), EL_OK);
    return values[N - 1];
}

/* y = s * x on the device of y; a copy where x is elsewhere. */
static int add_scale(struct bench *bench, int stream, int x, int y, double s)
{
    int id = -1;
    struct el_kernel_op op = {.op = EL_OP_SCALE,
                              .dtype = EL_F32,
                              .views = {el_view_of(bench->buffers[x], 0), el_view_of(bench->buffers[y], 0)},
                              .args = {.d = {N}, .s = {s}}};
    assert_int_equal(el_program_kernel(bench->program, bench->buffers[y]->device, stream, &op, &id), EL_OK);
    return id;
}

static int add_copy(struct bench *bench, int stream, int x, int y)
{
    int id = -1;
    struct el_op_head head = {.label = "copy", .phase = EL_PHASE_SCATTER};
    assert_int_equal(el_program_copy(bench->program, bench->buffers[y]->device, stream, &head,
                                     el_view_of(bench->buffers[y], 0), el_view_of(bench->buffers[x], 0),
                                     N * sizeof(float), &id),
                     EL_OK);
    return id;
}

/* buffer 0 doubled on one stream, copied to device 1 on another, scaled there. */
static float chain(enum fake_policy policy, unsigned seed, bool with_waits)
{
    struct bench bench;
    open_bench(&bench, policy, seed);
    int id = add_scale(&bench, 0, 0, 0, 2);
    if (with_waits) el_program_wait(bench.program, bench.devices[1], 1, id);
    id = add_copy(&bench, 1, 0, 1);
    if (with_waits) el_program_wait(bench.program, bench.devices[1], 0, id);
    id = add_scale(&bench, 0, 1, 1, 3);
    if (with_waits) el_program_wait(bench.program, bench.devices[0], 2, id);
    add_copy(&bench, 2, 1, 3);
    assert_int_equal(el_program_end(bench.program), EL_OK);
    run(&bench, 0, NULL);
    float got = read_one(&bench, 3);
    close_bench(&bench);
    return got;
}

static void waits_are_kept_and_a_missing_one_is_found(void **state)
{
    int n_wrong = 0;
    for (int policy = 0; policy < FAKE_POLICIES; policy++) {
        for (unsigned seed = 1; seed < SEEDS; seed++) {
            assert_true(chain((enum fake_policy)policy, seed, true) == 6.0f * N);
            n_wrong += chain((enum fake_policy)policy, seed, false) != 6.0f * N;
        }
    }
    assert_true(n_wrong > 0);
}

/* Texts of a choice: with the op from the program's end on, the recorder's own when the program has gone. */
static void what_was_chosen_is_told_with_the_op(void **state)
{
    struct bench bench;
    struct el_recorder *recorder = NULL;
    struct el_op_figures *figures;
    size_t n;
    open_bench(&bench, FAKE_LAZY, 1);
    int id = -1;
    struct el_kernel_op fill = {
        .op = EL_OP_FILL, .dtype = EL_F32, .views = {el_view_of(bench.buffers[0], 0)}, .args = {.d = {N}, .s = {2}}};
    assert_int_equal(el_program_kernel(bench.program, bench.devices[0], 0, &fill, &id), EL_OK);
    el_program_wait(bench.program, bench.devices[1], 0, id);
    add_copy(&bench, 0, 0, 1);
    assert_null(el_program_ops(bench.program)[0].how);
    assert_int_equal(el_program_end(bench.program), EL_OK);
    assert_string_equal(el_program_ops(bench.program)[0].how, "fake: 16 at once");
    assert_null(el_program_ops(bench.program)[1].how);
    assert_int_equal(el_recorder_create(0, 2, &recorder), EL_OK);
    struct el_probe probe = el_recorder_probe(recorder);
    run(&bench, 0, &probe);
    close_bench(&bench);
    assert_int_equal(el_recorder_ops(recorder, 0, &figures, &n), EL_OK);
    assert_int_equal(n, 1);
    assert_string_equal(figures[0].how, "fake: 16 at once");
    free(figures);
    assert_int_equal(el_recorder_ops(recorder, 1, &figures, &n), EL_OK);
    assert_int_equal(n, 1);
    assert_null(figures[0].how);
    free(figures);
    el_recorder_destroy(recorder);
}

static enum el_status slow_call(const struct el_call_args *args)
{
    (void)args;
    el_clock_sleep_until(el_clock_ns() + 20000000);
    return EL_OK;
}

static void keep_event(void *context, const struct el_step_event *event)
{
    *(struct el_step_event *)context = *event;
}

/* What the host works for a step is told: queueing and loading, but not the calls that wait for others. */
static void the_hosts_work_is_timed_without_waiting(void **state)
{
    bool blocks = *state != NULL;
    struct bench bench;
    struct el_step_event event = {0};
    struct el_probe probe = {.context = &event, .step = keep_event};
    struct el_call_op call = {.head = {.label = "load"}, .op_class = EL_CLASS_HOST, .blocks = blocks, .run = slow_call};
    open_bench(&bench, FAKE_LAZY, 1);
    for (int i = 0; i < 8; i++) add_scale(&bench, 0, 0, 0, 2);
    el_program_call(bench.program, bench.devices[0], 0, &call, NULL);
    assert_int_equal(el_program_end(bench.program), EL_OK);
    for (uint64_t step = 0; step < 2; step++) {
        run(&bench, step, &probe);
        int64_t whole_ns = event.whole.end_ns - event.whole.begin_ns;
        assert_true(event.queue_ns > (blocks ? 0 : 20000000));
        assert_true(event.queue_ns <= whole_ns - (blocks ? 20000000 : 0));
    }
    close_bench(&bench);
}

/* Random ops; each waits for all earlier ones that touch a buffer of its own and lie on another stream. */
struct random_op {
    int x, y, stream, id;
};

static void add_random(struct bench *bench, struct random_op *ops, int n, float *truth)
{
    struct random_op *op = &ops[n];
    *op = (struct random_op){.x = fake_random() % BUFFERS, .y = fake_random() % BUFFERS, .stream = fake_random() % 3};
    if (op->x == op->y) op->x = (op->y + 1) % BUFFERS;
    bool same_device = op->x % DEVICES == op->y % DEVICES;
    for (int i = 0; i < n; i++) {
        if (ops[i].y == op->x || ops[i].y == op->y || ops[i].x == op->y)
            el_program_wait(bench->program, bench->buffers[op->y]->device, op->stream, ops[i].id);
    }
    op->id = same_device ? add_scale(bench, op->stream, op->x, op->y, n % 2 ? 2 : 0.5)
                         : add_copy(bench, op->stream, op->x, op->y);
    truth[op->y] = truth[op->x] * (!same_device ? 1 : n % 2 ? 2.0f : 0.5f);
}

static void random_programs_equal_their_order_of_issue(void **state)
{
    enum { OPS = 60 };
    for (unsigned seed = 1; seed < SEEDS; seed++) {
        struct bench bench;
        struct random_op ops[OPS];
        float truth[BUFFERS];
        struct el_probe probe = {.spans = seed % 2};
        open_bench(&bench, (enum fake_policy)(seed % FAKE_POLICIES), seed);
        for (int b = 0; b < BUFFERS; b++) truth[b] = read_one(&bench, b);
        for (int i = 0; i < OPS; i++) add_random(&bench, ops, i, truth);
        assert_int_equal(el_program_end(bench.program), EL_OK);
        run(&bench, 0, &probe);
        for (int b = 0; b < BUFFERS; b++) assert_true(read_one(&bench, b) == truth[b]);
        close_bench(&bench);
    }
}

/* A host buffer that is filled anew while the device is behind, as a loader's is. */
static float host_values[N];

static enum el_status fill_host(const struct el_call_args *args)
{
    for (int i = 0; i < N; i++) host_values[i] = (float)(10 * args->step) + *(const float *)args->context;
    return EL_OK;
}

static void host_buffers_can_be_filled_again_at_once(void **state)
{
    struct bench bench;
    float first = 1, second = 2;
    open_bench(&bench, FAKE_LAZY, 1);
    for (int k = 0; k < 2; k++) {
        struct el_call_op call = {
            .op_class = EL_CLASS_HOST, .run = fill_host, .context = k ? (void *)&second : (void *)&first};
        struct el_op_head head = {.phase = EL_PHASE_H2D};
        el_program_call(bench.program, bench.devices[0], 0, &call, NULL);
        el_program_copy(bench.program, bench.devices[0], 0, &head, el_view_of(bench.buffers[k ? 3 : 0], 0),
                        el_view_host(host_values), sizeof host_values, NULL);
    }
    assert_int_equal(el_program_end(bench.program), EL_OK);
    for (uint64_t step = 0; step < 3; step++) {
        run(&bench, step, NULL);
        assert_true(read_one(&bench, 0) == (float)(10 * step + 1));
        assert_true(read_one(&bench, 3) == (float)(10 * step + 2));
    }
    close_bench(&bench);
}

/* What a copy reads where the host fills its buffer anew as soon as it goes on: from pinned memory what lies there when
 * the stream comes to it, from any other what lay there before, and also from pinned memory if the host waits. */
static void the_host_waits_where_a_copy_says_so(void **state)
{
    static const struct {
        unsigned how;
        float read;
    } cases[] = {{0, 1},
                 {EL_COPY_PAGEABLE, 1},
                 {EL_COPY_PAGEABLE | EL_COPY_WAITS, 1},
                 {EL_COPY_PINNED | EL_COPY_WAITS, 1},
                 {EL_COPY_PINNED, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench bench;
        float values[] = {1, 2};
        int id = -1;
        open_bench(&bench, FAKE_LAZY, 1);
        for (int k = 0; k < 2; k++) {
            struct el_call_op call = {.op_class = EL_CLASS_HOST, .run = fill_host, .context = &values[k]};
            struct el_op_head head = {.phase = EL_PHASE_H2D};
            el_program_call(bench.program, bench.devices[0], 0, &call, NULL);
            if (k == 1) continue;
            el_program_copy(bench.program, bench.devices[0], 0, &head, el_view_of(bench.buffers[0], 0),
                            el_view_host(host_values), sizeof host_values, &id);
            el_program_copy_how(bench.program, id, cases[i].how);
        }
        assert_int_equal(el_program_end(bench.program), EL_OK);
        run(&bench, 0, NULL);
        assert_true(read_one(&bench, 0) == cases[i].read);
        close_bench(&bench);
    }
}

/* A collective whose last member queues the work of all, on each member's stream: as a group of NCCL's does. */
struct group {
    int n_calls, n_members;
    void *streams[DEVICES];
    float *data[DEVICES];
};

static enum el_status join_group(const struct el_call_args *args)
{
    struct group *group = args->context;
    if (args->member != group->n_calls++) return el_fail(EL_ERR_INTERNAL, "a group's calls are not side by side");
    group->n_members = args->n_members;
    group->streams[args->member] = args->stream;
    group->data[args->member] = args->p[0];
    if (args->member < args->n_members - 1) return EL_OK;
    for (int m = 0; m < args->n_members; m++) {
        struct el_kernel_args work = {.d = {N}, .s = {10}, .native = group->streams[m]};
        work.p[0] = work.p[1] = group->data[m];
        fake_active = ((struct fake_stream *)group->streams[m])->device;
        EL_TRY(fake_f32_EL_OP_SCALE(&work));
    }
    group->n_calls = 0;
    return EL_OK;
}

static void groups_are_called_together(void **state)
{
    for (int policy = 0; policy < FAKE_POLICIES; policy++) {
        struct bench bench;
        struct group group = {0};
        open_bench(&bench, (enum fake_policy)policy, 1);
        for (int d = 0; d < DEVICES; d++) { /* behind each member's call comes work that needs its result */
            int id = add_scale(&bench, EL_STREAM_COMPUTE, d, d, 2);
            struct el_call_op call = {.op_class = EL_CLASS_COMM,
                                      .run = join_group,
                                      .context = &group,
                                      .views = {el_view_of(bench.buffers[d], 0)},
                                      .group = {.of = &group, .number = 7}};
            el_program_wait(bench.program, bench.devices[d], EL_STREAM_COMM, id);
            el_program_call(bench.program, bench.devices[d], EL_STREAM_COMM, &call, &id);
            el_program_wait(bench.program, bench.devices[d], EL_STREAM_COMPUTE, id);
            add_scale(&bench, EL_STREAM_COMPUTE, d, d, 0.5);
        }
        assert_int_equal(el_program_end(bench.program), EL_OK);
        struct el_probe probe = {.spans = true};
        run(&bench, 0, &probe);
        assert_int_equal(group.n_members, DEVICES);
        for (int d = 0; d < DEVICES; d++) assert_true(read_one(&bench, d) == 10.0f * (float)(d + 1) * N);
        close_bench(&bench);
    }
}

static void check_spans(void *context, const struct el_step_event *event)
{
    *(int *)context += 1;
    assert_non_null(event->spans);
    assert_null(event->cpu_ns);
    assert_true(event->span_error_ns > 0);
    for (int i = 0; i < event->n_ops; i++) {
        assert_true(event->spans[i].begin_ns >= event->whole.begin_ns);
        assert_true(event->spans[i].end_ns >= event->spans[i].begin_ns);
        assert_true(event->spans[i].end_ns <= event->whole.end_ns);
        if (i) assert_true(event->spans[i].begin_ns >= event->spans[i - 1].end_ns);
    }
}

static void spans_follow_the_waits(void **state)
{
    struct bench bench;
    int n_events = 0, id = -1;
    open_bench(&bench, FAKE_RANDOM, 3);
    for (int i = 0; i < 20; i++) {
        el_program_wait(bench.program, bench.devices[0], i % 3, id);
        id = add_scale(&bench, i % 3, 0, 0, 1);
    }
    assert_int_equal(el_program_end(bench.program), EL_OK);
    struct el_probe probe = {.context = &n_events, .spans = true, .step = check_spans};
    for (uint64_t step = 0; step < 5; step++) run(&bench, step, &probe);
    assert_int_equal(n_events, 5);
    close_bench(&bench);
}

static void count(void *context)
{
    ++*(int *)context;
    fake.stuck = false;
}

static void expect_failure(struct bench *bench, enum el_status expected, const char *words)
{
    int n_hooks = 0;
    el_program_on_failure(bench->program, count, &n_hooks);
    assert_int_equal(el_program_end(bench->program), EL_OK);
    assert_int_equal(el_program_run(bench->program, 0, NULL), expected);
    assert_non_null(strstr(el_error_message(), words));
    assert_int_equal(n_hooks, 1);
    fake.broken = false;
    close_bench(bench);
}

static void a_refused_op_ends_the_step(void **state)
{
    struct bench bench;
    open_bench(&bench, FAKE_LAZY, 1);
    struct el_kernel_op op = {.op = EL_OP_FILL, .dtype = EL_F32, .args = {.d = {N}}};
    fake.refuse = EL_OP_FILL + 1;
    add_scale(&bench, 0, 0, 0, 2);
    el_program_kernel(bench.program, bench.devices[0], 0, &op, NULL);
    add_scale(&bench, 0, 0, 0, 2);
    expect_failure(&bench, EL_ERR_INTERNAL, "a kernel was refused");
    open_bench(&bench, FAKE_LAZY, 1);
    fake.fail_copy = 1;
    add_copy(&bench, 0, 0, 1);
    expect_failure(&bench, EL_ERR_INTERNAL, "a copy was refused");
}

static void a_failed_device_is_noticed_at_the_end(void **state)
{
    struct bench bench;
    open_bench(&bench, FAKE_LAZY, 1);
    fake.broken = true;
    add_scale(&bench, 0, 0, 0, 2);
    expect_failure(&bench, EL_ERR_INTERNAL, "the device failed");
}

static enum el_status peer_is_gone(void *context)
{
    return ++*(int *)context < 3 ? EL_OK : el_fail(EL_ERR_PEER, "planted: a peer is gone");
}

/* The streams stand still, as a collective without its peer does: the hook ends the run. */
static void a_hook_ends_a_wait_that_would_not(void **state)
{
    struct bench bench;
    int n_asked = 0;
    open_bench(&bench, FAKE_LAZY, 1);
    add_scale(&bench, 0, 0, 0, 2);
    assert_int_equal(el_program_on_wait(bench.program, peer_is_gone, &n_asked), EL_OK);
    assert_int_equal(el_program_on_wait(bench.program, peer_is_gone, &n_asked), EL_OK);
    fake.stuck = true;
    expect_failure(&bench, EL_ERR_PEER, "a peer is gone");
    assert_int_equal(n_asked, 3);
}

static void the_ledger_is_that_of_the_marks(void **state)
{
    struct bench bench;
    struct el_buffer *a, *b, *c;
    open_bench(&bench, FAKE_LAZY, 1);
    size_t before = el_device_ledger(bench.devices[0])->live_bytes;
    el_program_alloc(bench.program, bench.devices[0], EL_TAG_ACTIVATION, 6400, "a", &a);
    el_program_alloc(bench.program, bench.devices[0], EL_TAG_GRAD, 3200, "b", &b);
    el_program_free(bench.program, a);
    el_program_alloc(bench.program, bench.devices[0], EL_TAG_ACTIVATION, 6000, "c", &c);
    add_scale(&bench, 0, 0, 0, 2);
    assert_int_equal(el_program_end(bench.program), EL_OK);
    run(&bench, 0, NULL);
    const struct el_ledger *ledger = el_device_ledger(bench.devices[0]);
    assert_int_equal(ledger->peak_bytes, before + 9600);
    assert_int_equal(ledger->live_bytes, before);
    assert_int_equal(a->address, c->address);
    close_bench(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_kept_and_a_missing_one_is_found),
        cmocka_unit_test(what_was_chosen_is_told_with_the_op),
        cmocka_unit_test_prestate(the_hosts_work_is_timed_without_waiting, NULL),
        cmocka_unit_test_prestate(the_hosts_work_is_timed_without_waiting, "blocks"),
        cmocka_unit_test(random_programs_equal_their_order_of_issue),
        cmocka_unit_test(host_buffers_can_be_filled_again_at_once),
        cmocka_unit_test(the_host_waits_where_a_copy_says_so),
        cmocka_unit_test(groups_are_called_together),
        cmocka_unit_test(spans_follow_the_waits),
        cmocka_unit_test(a_refused_op_ends_the_step),
        cmocka_unit_test(a_failed_device_is_noticed_at_the_end),
        cmocka_unit_test(a_hook_ends_a_wait_that_would_not),
        cmocka_unit_test(the_ledger_is_that_of_the_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
