/* Device conformance: what every backend with real memory must do. `test_device BACKEND...` tests those; without
 * arguments all that can be used here, and says why another cannot. Allocation, stream order, events' time, copies,
 * overlap, errors, ledger. Where there is one GPU, two devices are opened on it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/program.h"

enum { N = 1000 };

enum { LARGE_BYTES = 8 << 20, OVERLAP_BYTES = 64 << 20 };

static const char *backend = "cpu";
static int n_cards; /* that the backend has; 0: any number of devices */

static struct el_device *open_device(int index, size_t limit)
{
    struct el_device *device = NULL;
    struct el_device_spec spec = {
        .backend = backend, .index = n_cards ? index % n_cards : index, .position = index, .memory_limit_bytes = limit};
    if (el_device_open(&spec, &device) != EL_OK) fail_msg("%s", el_error_message());
    return device;
}

static struct el_program *begin(void)
{
    struct el_program *program = NULL;
    assert_int_equal(el_program_create(&program), EL_OK);
    return program;
}

static void run(struct el_program *program, uint64_t step, const struct el_probe *probe)
{
    if (el_program_end(program) != EL_OK) fail_msg("%s", el_error_message());
    if (el_program_run(program, step, probe) != EL_OK) fail_msg("%s", el_error_message());
}

static void memory_keeps_what_is_written(void **state)
{
    (void)state;
    struct el_device *device = open_device(0, 0);
    struct el_buffer *a, *b;
    float out[N], in[N];
    for (int i = 0; i < N; i++) in[i] = (float)i;
    assert_int_equal(el_device_alloc(device, EL_TAG_PARAM, sizeof in, "a", &a), EL_OK);
    assert_int_equal(el_device_alloc(device, EL_TAG_GRAD, sizeof in, "b", &b), EL_OK);
    assert_int_equal(a->address % 64, 0);
    assert_int_equal(el_device_write(el_view_of(a, 0), in, sizeof in), EL_OK);
    assert_int_equal(el_device_write(el_view_of(b, 4), in, 4), EL_OK);
    assert_int_equal(el_device_read(el_view_of(a, 0), out, sizeof out), EL_OK);
    assert_memory_equal(in, out, sizeof in);
    const struct el_ledger *ledger = el_device_ledger(device);
    assert_int_equal(ledger->live_bytes, 2 * sizeof in);
    el_device_free(b);
    assert_int_equal(ledger->live_bytes, sizeof in);
    assert_int_equal(ledger->peak_bytes, 2 * sizeof in);
    el_device_ledger_reset_peak(device);
    assert_int_equal(ledger->peak_bytes, sizeof in);
    assert_int_equal(ledger->peak_by_tag[EL_TAG_GRAD], 0);
    el_device_close(device); /* frees a */
}

static void a_limit_refuses_and_names_the_tag(void **state)
{
    (void)state;
    struct el_device *device = open_device(0, 1000);
    struct el_buffer *a, *b;
    assert_int_equal(el_device_alloc(device, EL_TAG_PARAM, 600, "weights", &a), EL_OK);
    assert_int_equal(el_device_alloc(device, EL_TAG_OPTIMIZER, 600, "slots", &b), EL_ERR_OOM);
    assert_non_null(strstr(el_error_message(), "optimizer"));
    struct el_program *program = begin();
    assert_int_equal(el_program_alloc(program, device, EL_TAG_ACTIVATION, 300, "x", &b), EL_OK);
    assert_int_equal(el_program_alloc(program, device, EL_TAG_ACTIVATION, 101, "y", &b), EL_ERR_OOM);
    assert_int_equal(el_program_end(program), EL_ERR_OOM);
    el_program_destroy(program);
    el_device_close(device);
}

/* More than any device has: refused in words, and the device goes on. */
static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct el_device *device = open_device(0, 0);
    struct el_buffer *none = NULL, *some;
    char in[64] = "still here", out[64] = "";
    enum el_status status = el_device_alloc(device, EL_TAG_PARAM, (size_t)1 << 55, "monster", &none);
    assert_true(status == EL_ERR_OOM || status == EL_ERR_HOST_MEMORY);
    assert_true(strlen(el_error_message()) > 0);
    assert_null(none);
    assert_int_equal(el_device_ledger(device)->live_bytes, 0);
    assert_int_equal(el_device_alloc(device, EL_TAG_PARAM, sizeof in, "some", &some), EL_OK);
    assert_true(el_device_reserved(device) >= (int64_t)sizeof in);
    assert_int_equal(el_device_write(el_view_of(some, 0), in, sizeof in), EL_OK);
    assert_int_equal(el_device_read(el_view_of(some, 0), out, sizeof out), EL_OK);
    assert_string_equal(in, out);
    el_device_close(device);
}

/* A GPU has its own; no two devices on different cards share one. */
static void an_identity_is_told(void **state)
{
    (void)state;
    struct el_device *device = open_device(0, 0);
    struct el_device_identity identity;
    el_device_identify(device, &identity);
    assert_true((*identity.uuid != 0) == el_device_is_asynchronous(device));
    if (*identity.uuid)
        print_message("# %s %s, driver %s, %s\n", identity.model, identity.uuid, identity.driver, identity.libraries);
    el_device_close(device);
}

/* Calls that note their order. */
struct note {
    _Atomic int *clock;
    int order;
    uint64_t step;
};

static enum el_status take_note(const struct el_call_args *args)
{
    struct note *note = args->context;
    note->order = atomic_fetch_add(note->clock, 1);
    note->step = args->step;
    return EL_OK;
}

static int add_note(struct el_program *program, struct el_device *device, int stream, struct note *note)
{
    struct el_call_op op = {.head = {.label = "note", .phase = EL_PHASE_DATA},
                            .op_class = EL_CLASS_HOST,
                            .run = take_note,
                            .context = note};
    int id = -1;
    assert_int_equal(el_program_call(program, device, stream, &op, &id), EL_OK);
    return id;
}

static void streams_keep_order_and_waits(void **state)
{
    (void)state;
    enum { EACH = 50 };
    struct el_device *devices[] = {open_device(0, 0), open_device(1, 0)};
    _Atomic int clock = 0;
    struct note notes[2 * EACH];
    struct el_program *program = begin();
    int last = -1;
    for (int i = 0; i < 2 * EACH; i++) { /* a chain over two devices and two streams each */
        struct el_device *device = devices[i & 1];
        notes[i].clock = &clock;
        el_program_wait(program, device, i / 2 & 1, last);
        last = add_note(program, device, i / 2 & 1, &notes[i]);
    }
    assert_int_equal(el_program_end(program), EL_OK);
    for (uint64_t step = 5; step < 25; step++) {
        atomic_store(&clock, 0);
        assert_int_equal(el_program_run(program, step, NULL), EL_OK);
        for (int i = 0; i < 2 * EACH; i++) {
            assert_int_equal(notes[i].order, i);
            assert_int_equal(notes[i].step, step);
        }
    }
    el_program_destroy(program);
    for (int d = 0; d < 2; d++) el_device_close(devices[d]);
}

/* Work of the devices themselves: large blocks go round over two devices and three streams, each copy behind an event
 * of the one before. Where an event does not hold, a copy begins before the block has come. */
static void device_work_keeps_order_and_waits(void **state)
{
    (void)state;
    enum { HOPS = 12, STEPS = 5 };
    struct el_device *devices[] = {open_device(0, 0), open_device(1, 0)};
    struct el_buffer *blocks[HOPS + 1];
    unsigned char *host = malloc(LARGE_BYTES);
    assert_non_null(host);
    struct el_program *program = begin();
    int last = -1;
    for (int i = 0; i <= HOPS; i++)
        assert_int_equal(el_device_alloc(devices[i & 1], EL_TAG_INPUT, LARGE_BYTES, "block", &blocks[i]), EL_OK);
    for (int i = 0; i < HOPS; i++) {
        struct el_op_head head = {.label = "hop", .phase = EL_PHASE_SCATTER};
        struct el_device *device = devices[(i + 1) & 1];
        el_program_wait(program, device, i % 3, last);
        el_program_copy(program, device, i % 3, &head, el_view_of(blocks[i + 1], 0), el_view_of(blocks[i], 0),
                        LARGE_BYTES, &last);
    }
    if (el_program_end(program) != EL_OK) fail_msg("%s", el_error_message());
    for (int step = 0; step < STEPS; step++) {
        memset(host, step + 1, LARGE_BYTES);
        assert_int_equal(el_device_write(el_view_of(blocks[0], 0), host, LARGE_BYTES), EL_OK);
        if (el_program_run(program, (uint64_t)step, NULL) != EL_OK) fail_msg("%s", el_error_message());
        assert_int_equal(el_device_read(el_view_of(blocks[HOPS], 0), host, LARGE_BYTES), EL_OK);
        for (size_t i = 0; i < LARGE_BYTES; i += 509) assert_int_equal(host[i], step + 1);
    }
    el_program_destroy(program);
    for (int d = 0; d < 2; d++) el_device_close(devices[d]);
    free(host);
}

/* Two calls that can only end if both run at the same time. */
struct meeting {
    _Atomic int mine, *other;
};

static enum el_status meet(const struct el_call_args *args)
{
    struct meeting *meeting = args->context;
    atomic_store(&meeting->mine, 1);
    while (!atomic_load(meeting->other)) sched_yield();
    return EL_OK;
}

static void calls_meet(struct el_device *device)
{
    struct meeting meetings[2] = {{.mine = 0}, {.mine = 0}};
    struct el_program *program = begin();
    for (int s = 0; s < 2; s++) {
        meetings[s].other = &meetings[1 - s].mine;
        struct el_call_op op = {
            .head = {.label = "meet"}, .op_class = EL_CLASS_HOST, .run = meet, .context = &meetings[s]};
        el_program_call(program, device, s, &op, NULL);
    }
    run(program, 0, NULL);
    el_program_destroy(program);
}

static void keep_spans(void *context, const struct el_step_event *event)
{
    memcpy(context, event->spans, (size_t)event->n_ops * sizeof *event->spans);
}

/* A long copy on one stream and a short one on another, issued behind it: it begins before the long one has ended. */
static void copies_overlap(struct el_device *device)
{
    enum { COPIES = 32 };
    struct el_buffer *from, *to;
    struct el_span spans[COPIES + 1];
    assert_int_equal(el_device_alloc(device, EL_TAG_INPUT, OVERLAP_BYTES, "from", &from), EL_OK);
    assert_int_equal(el_device_alloc(device, EL_TAG_INPUT, OVERLAP_BYTES + 64, "to", &to), EL_OK);
    struct el_program *program = begin();
    struct el_op_head head = {.label = "copy", .phase = EL_PHASE_SCATTER};
    for (int i = 0; i < COPIES; i++)
        el_program_copy(program, device, 0, &head, el_view_of(to, 0), el_view_of(from, 0), OVERLAP_BYTES, NULL);
    el_program_copy(program, device, 1, &head, el_view_of(to, OVERLAP_BYTES), el_view_of(from, 0), 64, NULL);
    struct el_probe probe = {.context = spans, .spans = true, .step = keep_spans};
    run(program, 0, NULL); /* what is made at the first use is made */
    if (el_program_run(program, 1, &probe) != EL_OK) fail_msg("%s", el_error_message());
    assert_true(spans[COPIES].begin_ns < spans[COPIES - 1].end_ns);
    el_program_destroy(program);
}

static void streams_run_at_the_same_time(void **state)
{
    (void)state;
    struct el_device *device = open_device(0, 0);
    if (el_device_is_asynchronous(device))
        copies_overlap(device);
    else
        calls_meet(device);
    el_device_close(device);
}

static void copies_move_bytes_and_are_booked(void **state)
{
    (void)state;
    struct el_device *a = open_device(0, 0), *b = open_device(1, 0);
    struct el_buffer *on_a, *on_b;
    char in[N], out[N];
    for (int i = 0; i < N; i++) in[i] = (char)(i * 7);
    assert_int_equal(el_device_alloc(a, EL_TAG_INPUT, N, "a", &on_a), EL_OK);
    assert_int_equal(el_device_alloc(b, EL_TAG_INPUT, N, "b", &on_b), EL_OK);
    struct el_program *program = begin();
    struct el_op_head head = {.label = "copy", .phase = EL_PHASE_H2D};
    int id;
    el_program_copy(program, a, 0, &head, el_view_of(on_a, 0), el_view_host(in), N, &id);
    el_program_wait(program, b, 0, id);
    head.phase = EL_PHASE_SCATTER;
    el_program_copy(program, b, 0, &head, el_view_of(on_b, 0), el_view_of(on_a, 0), N, NULL);
    run(program, 0, NULL);
    assert_int_equal(el_device_read(el_view_of(on_b, 0), out, N), EL_OK);
    assert_memory_equal(in, out, N);
    const struct el_op_info *ops = el_program_ops(program);
    assert_int_equal(ops[0].received_bytes, N);
    assert_int_equal(ops[0].peer, -1);
    assert_int_equal(ops[1].received_bytes, N);
    assert_int_equal(ops[1].device, 1);
    assert_int_equal(ops[1].peer, 0);
    el_program_destroy(program);
    el_device_close(a);
    el_device_close(b);
}

static void keep_event(void *context, const struct el_step_event *event)
{
    struct el_span *spans = context;
    assert_non_null(event->spans);
    memcpy(spans, event->spans, (size_t)event->n_ops * sizeof *spans);
    for (int i = 0; i < event->n_ops; i++) {
        assert_true(spans[i].begin_ns >= event->whole.begin_ns && spans[i].end_ns <= event->whole.end_ns);
        assert_true(spans[i].end_ns >= spans[i].begin_ns);
    }
}

static void spans_follow_the_waits(void **state)
{
    (void)state;
    struct el_device *device = open_device(0, 0);
    struct el_program *program = begin();
    _Atomic int clock = 0;
    struct note notes[4];
    struct el_span spans[4];
    for (int i = 0; i < 4; i++) {
        notes[i].clock = &clock;
        el_program_wait(program, device, i & 1, i - 1);
        add_note(program, device, i & 1, &notes[i]);
    }
    struct el_probe probe = {.context = spans, .spans = true, .step = keep_event};
    run(program, 0, &probe);
    for (int i = 1; i < 4; i++) assert_true(spans[i].begin_ns >= spans[i - 1].end_ns);
    el_program_destroy(program);
    el_device_close(device);
}

/* Events carry times: a chain of copies has spans one behind the other, each longer than nothing, within what the host
 * saw; and the host's clock does not contradict them. */
static void spans_of_device_work(void **state)
{
    (void)state;
    enum { HOPS = 6 };
    struct el_device *device = open_device(0, 0);
    struct el_buffer *a, *b;
    struct el_span spans[HOPS];
    assert_int_equal(el_device_alloc(device, EL_TAG_INPUT, OVERLAP_BYTES, "a", &a), EL_OK);
    assert_int_equal(el_device_alloc(device, EL_TAG_INPUT, OVERLAP_BYTES, "b", &b), EL_OK);
    struct el_program *program = begin();
    int id = -1;
    for (int i = 0; i < HOPS; i++) {
        struct el_op_head head = {.label = "copy", .phase = EL_PHASE_SCATTER};
        el_program_wait(program, device, i & 1, id);
        el_program_copy(program, device, i & 1, &head, el_view_of(i & 1 ? a : b, 0), el_view_of(i & 1 ? b : a, 0),
                        OVERLAP_BYTES, &id);
    }
    struct el_probe probe = {.context = spans, .spans = true, .step = keep_event};
    run(program, 0, &probe);
    for (uint64_t step = 1; step < 3; step++) {
        if (el_program_run(program, step, &probe) != EL_OK) fail_msg("%s", el_error_message());
        for (int i = 0; i < HOPS; i++) {
            assert_true(spans[i].end_ns > spans[i].begin_ns);
            if (i) assert_true(spans[i].begin_ns >= spans[i - 1].end_ns);
        }
    }
    el_program_destroy(program);
    el_device_close(device);
}

static enum el_status break_down(const struct el_call_args *args)
{
    (void)args;
    return el_fail(EL_ERR_INTERNAL, "planted failure");
}

static void count_failure(void *context)
{
    atomic_fetch_add((_Atomic int *)context, 1);
}

/* The rest is skipped, nobody waits for ever, and the first failure's words come back. */
static void a_failure_ends_the_step(void **state)
{
    (void)state;
    struct el_device *device = open_device(0, 0);
    struct el_program *program = begin();
    _Atomic int clock = 0, failures = 0;
    struct note after = {.clock = &clock, .order = -1};
    struct el_call_op op = {.head = {.label = "break"}, .op_class = EL_CLASS_HOST, .run = break_down};
    int id;
    el_program_on_failure(program, count_failure, &failures);
    el_program_call(program, device, 0, &op, &id);
    el_program_wait(program, device, 1, id);
    add_note(program, device, 1, &after);
    assert_int_equal(el_program_end(program), EL_OK);
    assert_int_equal(el_program_run(program, 0, NULL), EL_ERR_INTERNAL);
    assert_string_equal(el_error_message(), "planted failure");
    assert_int_equal(after.order, -1);
    assert_int_equal(failures, 1);
    el_program_destroy(program);
    el_device_close(device);
}

/* Buffers that live together do not overlap; what has died is used again; the ledger knows the peak and its make-up. */
static void a_step_reuses_memory(void **state)
{
    (void)state;
    struct el_device *device = open_device(0, 0);
    struct el_program *program = begin();
    struct el_buffer *a, *b, *c;
    el_program_alloc(program, device, EL_TAG_ACTIVATION, 6400, "a", &a);
    el_program_alloc(program, device, EL_TAG_GRAD, 3200, "b", &b);
    el_program_free(program, a);
    el_program_alloc(program, device, EL_TAG_ACTIVATION, 6000, "c", &c);
    _Atomic int clock = 0;
    struct note note = {.clock = &clock};
    add_note(program, device, 0, &note);
    run(program, 0, NULL);
    assert_int_equal(a->address, c->address);
    assert_true(b->address >= a->address + 6400 || b->address + 3200 <= a->address);
    const struct el_ledger *ledger = el_device_ledger(device);
    assert_int_equal(ledger->peak_bytes, 9600);
    assert_int_equal(ledger->at_peak_by_tag[EL_TAG_ACTIVATION], 6400);
    assert_int_equal(ledger->live_bytes, 0);
    el_program_destroy(program);
    el_device_close(device);
}

static void kernels_run_only_where_they_compute(void **state)
{
    (void)state;
    struct el_device *device = open_device(0, 0);
    struct el_buffer *x;
    float values[N] = {0};
    assert_int_equal(el_device_alloc(device, EL_TAG_PARAM, sizeof values, "x", &x), EL_OK);
    assert_int_equal(el_device_write(el_view_of(x, 0), values, sizeof values), EL_OK);
    struct el_program *program = begin();
    struct el_kernel_op op = {
        .op = EL_OP_FILL, .dtype = EL_F32, .views = {el_view_of(x, 0)}, .args = {.d = {N}, .s = {3}}};
    el_program_kernel(program, device, 0, &op, NULL);
    run(program, 0, NULL);
    assert_int_equal(el_device_read(el_view_of(x, 0), values, sizeof values), EL_OK);
    assert_true(values[N - 1] == (el_device_computes(device) ? 3.0f : 0.0f));
    el_program_destroy(program);
    el_device_close(device);
}

static int run_backend(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_keeps_what_is_written),
        cmocka_unit_test(a_limit_refuses_and_names_the_tag),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(an_identity_is_told),
        cmocka_unit_test(streams_keep_order_and_waits),
        cmocka_unit_test(device_work_keeps_order_and_waits),
        cmocka_unit_test(streams_run_at_the_same_time),
        cmocka_unit_test(copies_move_bytes_and_are_booked),
        cmocka_unit_test(spans_follow_the_waits),
        cmocka_unit_test(spans_of_device_work),
        cmocka_unit_test(a_failure_ends_the_step),
        cmocka_unit_test(a_step_reuses_memory),
        cmocka_unit_test(kernels_run_only_where_they_compute),
    };
    backend = name;
    n_cards = 0;
    if (el_device_count(name, &n_cards) != EL_OK) {
        printf("1..0 # SKIP %s\n", el_error_message());
        return 0;
    }
    if (strcmp(name, "cuda") != 0) n_cards = 0;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int n_failed = 0;
    if (argc == 1) return run_backend("cpu") + run_backend("null") + run_backend("cuda");
    for (int i = 1; i < argc; i++) n_failed += run_backend(argv[i]);
    return n_failed;
}
