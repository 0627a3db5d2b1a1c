/* Device conformance: what every backend with real memory must do. `test_device BACKEND...` tests those; without
 * arguments all that can be used here, and says why another cannot. Allocation, ledger, errors, kernels; streams are
 * device_streams.h. Where there is one GPU, two devices are opened on it. */
#include "tests/test.h"

#include <stdio.h>

#include "tests/conformance/device_checks.h"
#include "tests/conformance/device_streams.h"

enum { N = 1000 };

static void memory_keeps_what_is_written(void **state)
{
    struct el_device *device = devices[0];
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
}

static void a_limit_refuses_and_names_the_tag(void **state)
{
    el_device_close(devices[0]);
    struct el_device *device = devices[0] = open_device(0, 1000);
    struct el_buffer *a, *b;
    assert_int_equal(el_device_alloc(device, EL_TAG_PARAM, 600, "weights", &a), EL_OK);
    assert_int_equal(el_device_alloc(device, EL_TAG_OPTIMIZER, 600, "slots", &b), EL_ERR_OOM);
    assert_non_null(strstr(el_error_message(), "optimizer"));
    assert_int_equal(el_program_alloc(program, device, EL_TAG_ACTIVATION, 300, "x", &b), EL_OK);
    assert_int_equal(el_program_alloc(program, device, EL_TAG_ACTIVATION, 101, "y", &b), EL_ERR_OOM);
    assert_int_equal(el_program_end(program), EL_ERR_OOM);
}

/* More than any device has: refused in words, and the device goes on. */
static void what_does_not_fit_is_refused(void **state)
{
    struct el_device *device = devices[0];
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
}

/* A GPU has its own; no two devices on different cards share one. */
static void an_identity_is_told(void **state)
{
    struct el_device *device = devices[0];
    struct el_device_identity identity;
    el_device_identify(device, &identity);
    assert_true((*identity.uuid != 0) == el_device_is_asynchronous(device));
    if (*identity.uuid)
        print_message("# %s %s, driver %s, %s\n", identity.model, identity.uuid, identity.driver, identity.libraries);
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
    struct el_device *device = devices[0];
    _Atomic int failures = 0;
    struct note after = {.order = -1};
    struct el_call_op op = {.head = {.label = "break"}, .op_class = EL_CLASS_HOST, .run = break_down};
    int id;
    el_program_on_failure(program, count_failure, &failures);
    el_program_call(program, device, 0, &op, &id);
    el_program_wait(program, device, 1, id);
    add_note(device, 1, &after);
    assert_int_equal(el_program_end(program), EL_OK);
    assert_int_equal(el_program_run(program, 0, NULL), EL_ERR_INTERNAL);
    assert_string_equal(el_error_message(), "planted failure");
    assert_int_equal(after.order, -1);
    assert_int_equal(failures, 1);
}

/* The step says what the plant said: out of memory, not some failure. */
static void a_planted_leak_that_does_not_fit(void **state)
{
    struct el_device_spec spec = {.backend = backend, .inject = {.leak_bytes = 64, .most_bytes = 100}};
    struct note note;
    el_device_close(devices[0]);
    must(el_device_open(&spec, &devices[0]));
    add_note(devices[0], EL_STREAM_COMPUTE, &note);
    run(0, NULL);
    assert_int_equal(el_program_run(program, 1, NULL), EL_ERR_OOM);
    assert_non_null(strstr(el_error_message(), "injected"));
    assert_int_equal(clock_now, 1);
}

static void count_release(void *owner)
{
    ++*(int *)owner;
}

/* What others mapped is counted like any allocation, and goes back once: when it is freed, or the device is closed. */
static void lent_memory_is_counted_and_given_back(void **state)
{
    static _Alignas(64) char memory[4096];
    struct el_device *device = open_device(0, 6000);
    struct el_buffer *buffer, *kept;
    int n_released = 0;
    struct el_lent_memory lent = {.address = (uintptr_t)memory, .release = count_release, .owner = &n_released};
    assert_int_equal(el_device_has_room(device, EL_TAG_BUCKET, 6000, "bucket"), EL_OK);
    assert_int_equal(el_device_adopt(device, EL_TAG_BUCKET, sizeof memory, "bucket", &lent, &buffer), EL_OK);
    assert_int_equal(buffer->address, (uintptr_t)memory);
    assert_int_equal(el_device_ledger(device)->live_by_tag[EL_TAG_BUCKET], sizeof memory);
    assert_int_equal(el_device_has_room(device, EL_TAG_BUCKET, 6000, "bucket"), EL_ERR_OOM);
    assert_int_equal(el_device_adopt(device, EL_TAG_BUCKET, sizeof memory, "bucket", &lent, &kept), EL_ERR_OOM);
    assert_int_equal(n_released, 0);
    el_device_free(buffer);
    assert_int_equal(n_released, 1);
    assert_int_equal(el_device_ledger(device)->live_bytes, 0);
    assert_int_equal(el_device_adopt(device, EL_TAG_BUCKET, sizeof memory, "bucket", &lent, &kept), EL_OK);
    el_device_close(device);
    assert_int_equal(n_released, 2);
}

/* Buffers that live together do not overlap; freed memory is used again; the ledger knows the peak and its make-up. */
static void a_step_reuses_memory(void **state)
{
    struct el_device *device = devices[0];
    struct el_buffer *a, *b, *c;
    el_program_alloc(program, device, EL_TAG_ACTIVATION, 6400, "a", &a);
    el_program_alloc(program, device, EL_TAG_GRAD, 3200, "b", &b);
    el_program_free(program, a);
    el_program_alloc(program, device, EL_TAG_ACTIVATION, 6000, "c", &c);
    struct note note;
    add_note(device, 0, &note);
    run(0, NULL);
    assert_int_equal(a->address, c->address);
    assert_true(b->address >= a->address + 6400 || b->address + 3200 <= a->address);
    const struct el_ledger *ledger = el_device_ledger(device);
    assert_int_equal(ledger->peak_bytes, 9600);
    assert_int_equal(ledger->at_peak_by_tag[EL_TAG_ACTIVATION], 6400);
    assert_int_equal(ledger->live_bytes, 0);
}

static void kernels_run_only_where_they_compute(void **state)
{
    struct el_device *device = devices[0];
    float values[N] = {0};
    struct el_buffer *x = alloc(device, sizeof values);
    assert_int_equal(el_device_write(el_view_of(x, 0), values, sizeof values), EL_OK);
    struct el_kernel_op op = {
        .op = EL_OP_FILL, .dtype = EL_F32, .views = {el_view_of(x, 0)}, .args = {.d = {N}, .s = {3}}};
    el_program_kernel(program, device, 0, &op, NULL);
    run(0, NULL);
    assert_int_equal(el_device_read(el_view_of(x, 0), values, sizeof values), EL_OK);
    assert_true(values[N - 1] == (el_device_computes(device) ? 3.0f : 0.0f));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

static int run_backend(const char *name)
{
    const struct CMUnitTest tests[] = {
        CASE(lent_memory_is_counted_and_given_back),
        CASE(memory_keeps_what_is_written),
        CASE(a_limit_refuses_and_names_the_tag),
        CASE(what_does_not_fit_is_refused),
        CASE(an_identity_is_told),
        CASE(streams_keep_order_and_waits),
        CASE(device_work_keeps_order_and_waits),
        CASE(streams_run_at_the_same_time),
        CASE(copies_move_bytes_and_are_booked),
        CASE(spans_follow_the_waits),
        CASE(spans_of_device_work),
        CASE(a_failure_ends_the_step),
        CASE(a_planted_leak_that_does_not_fit),
        CASE(a_step_reuses_memory),
        CASE(kernels_run_only_where_they_compute),
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
