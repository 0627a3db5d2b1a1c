/* The host's side of the backend `cuda`, over a run time that is a fake: what is missing is said, copies read host
 * memory before they return, cards are made to reach each other once, libraries' memory is separate, nothing is left
 * open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/device/internal.h"
#include "tests/equivalence/cases.h"
#include "tests/unit/fake_cuda.h"

enum { MIB = 1 << 20, LARGE = 40 * MIB };

static struct el_device *open_one(int index)
{
    struct el_device *device = NULL;
    if (cuda_device(index, &device) != EL_OK) fail_msg("%s", el_error_message());
    return device;
}

static void nothing_is_left(void)
{
    assert_int_equal(cuda_n_allocations(), 0);
    assert_int_equal(cuda.n_pinned, 0);
    assert_int_equal(cuda.n_streams, 0);
    assert_int_equal(cuda.n_events, 0);
    assert_int_equal(cuda.n_handles, 0);
    assert_int_equal(cuda.last_error, 0);
    assert_int_equal(cuda.n_wrong, 0);
}

static struct el_buffer *alloc(struct el_device *device, size_t bytes)
{
    struct el_buffer *buffer = NULL;
    if (el_device_alloc(device, EL_TAG_INPUT, bytes, "x", &buffer) != EL_OK) fail_msg("%s", el_error_message());
    return buffer;
}

static void expect_absent(const char *words)
{
    struct el_device *device = NULL;
    assert_int_equal(cuda_device(0, &device), EL_ERR_ABSENT);
    if (!strstr(el_error_message(), words)) fail_msg("'%s' is not in '%s'", words, el_error_message());
    assert_int_equal(cuda.last_error, 0);
}

static void what_is_missing_is_said(void **state)
{
    struct el_device *device;
    cuda_reset();
    cuda.count_code = EL_CUDA_ERROR_OLD_DRIVER;
    cuda.driver = 0;
    expect_absent("no NVIDIA driver found");
    cuda.driver = 12040;
    expect_absent("the NVIDIA driver knows CUDA up to 12.4, evenload was built with CUDA 13.0: update");
    cuda.count_code = EL_CUDA_ERROR_NO_DEVICE;
    expect_absent("no GPU that this process may use");
    cuda.count_code = 0;
    cuda.n_cards = 0;
    expect_absent("no GPU that this process may use");
    cuda.n_cards = 1;
    assert_int_equal(cuda_device(1, &device), EL_ERR_ABSENT);
    assert_non_null(strstr(el_error_message(), "cuda:1: this process sees 1 GPU (cuda:0 to cuda:0)"));
    assert_non_null(strstr(el_error_message(), "leave --devices out, or name cuda:0 for each"));
    nothing_is_left();
}

/* No driver or no card is no failure: CPU devices are taken then. A driver that fails is one, and says how. */
static void a_driver_that_fails_is_not_an_absent_one(void **state)
{
    static const struct {
        int code;
        const char *words;
    } failures[] = {{EL_CUDA_ERROR_SYSTEM_NOT_READY, "fabric manager"},
                    {EL_CUDA_ERROR_DRIVER_MISMATCH, "kernel module differ"},
                    {EL_CUDA_ERROR_UNKNOWN, "nvidia_uvm"},
                    {EL_CUDA_ERROR_BUSY, "has the card for itself"},
                    {3, "a planted error"},
                    {EL_CUDA_ERROR_OLD_DRIVER, "update the driver"},
                    {EL_CUDA_ERROR_STUB_LIBRARY, "update the driver"}};
    int n = 7;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        cuda_reset();
        cuda.count_code = failures[i].code;
        assert_int_equal(el_cuda_count(&fake_module, &n), EL_ERR_ABSENT);
        if (!strstr(el_error_message(), failures[i].words)) fail_msg("%s", el_error_message());
        assert_non_null(strstr(el_error_message(), "--devices cpu:2 trains without GPUs"));
        assert_int_equal(n, 7);
        assert_int_equal(cuda.last_error, 0);
    }
    cuda_reset();
    cuda.count_code = EL_CUDA_ERROR_NO_DEVICE;
    assert_int_equal(el_cuda_count(&fake_module, &n), EL_OK);
    assert_int_equal(n, 0);
    n = 7;
    cuda.count_code = EL_CUDA_ERROR_OLD_DRIVER; /* what a run time says that finds a library and no driver */
    cuda.driver = 0;
    assert_int_equal(el_cuda_count(&fake_module, &n), EL_OK);
    assert_int_equal(n, 0);
}

static void a_card_that_is_too_old_is_refused_when_it_is_opened(void **state)
{
    struct el_device *device;
    cuda_reset();
    cuda.capability = 70;
    assert_int_equal(cuda_device(0, &device), EL_ERR_ABSENT);
    assert_string_equal(el_error_message(),
                        "cuda:0: Fake GPU has compute capability 7.0, and the kernels were built for 7.5 and later: "
                        "take another card, or build for this one (make CUDA_ARCHS='70 ...')");
    nothing_is_left();
    cuda.capability = 75;
    el_device_close(open_one(0));
    nothing_is_left();
}

static void errors_name_the_call(void **state)
{
    cuda_reset();
    assert_int_equal(el_cuda_status(&fake_api, "cuda:0", "MemcpyAsync", 700), EL_ERR_INTERNAL);
    assert_string_equal(el_error_message(), "cuda:0: cudaMemcpyAsync: a planted error (cudaErrorFake)");
    assert_int_equal(el_cuda_status(&fake_api, "cuda:0", "HostAlloc", EL_CUDA_ERROR_MEMORY), EL_ERR_OOM);
    assert_non_null(strstr(el_error_message(), "cudaHostAlloc: out of memory"));
    assert_non_null(strstr(el_error_message(), "smaller batch"));
    assert_int_equal(el_cuda_status(&fake_api, "cuda:0", "Malloc", EL_CUDA_ERROR_OLD_DRIVER), EL_ERR_ABSENT);
    assert_int_equal(el_cuda_status(&fake_api, "cuda:0", "Malloc", 0), EL_OK);
}

static void memory_is_told_apart(void **state)
{
    cuda_reset();
    cuda.used[0] = 7 * MIB; /* another process's */
    fake_api.InitContext(); /* a context of this process is there already: none is made */
    struct el_device *device = open_one(0), *second = open_one(1);
    struct el_library_memory list[EL_LIBRARIES_MAX];
    struct el_device_identity identity;
    void *native;
    int64_t bytes;
    assert_int_equal(el_device_native_stream(second, EL_STREAM_COMPUTE, &native), EL_OK);
    assert_int_equal(el_device_native_stream(second, EL_STREAM_COMM, &native), EL_OK);
    assert_int_equal(cuda.n_handles, 2); /* the communication stream has none */
    assert_int_equal(el_device_library_memory(second, list), 3);
    assert_string_equal(list[0].name, "context");
    assert_int_equal(list[0].bytes, 10 * MIB);
    assert_string_equal(list[1].name, "cuBLAS");
    assert_int_equal(list[1].bytes, 32 * MIB);
    assert_string_equal(list[2].name, "cuDNN");
    assert_int_equal(list[2].bytes, 4 * MIB);
    struct el_buffer *buffer = alloc(device, 3 * MIB);
    assert_int_equal(el_device_resident(device, &bytes), EL_OK);
    assert_int_equal(bytes, 4 * MIB); /* not the other process's 7; a segment is whole granules */
    assert_int_equal(el_device_reserved(device), 4 * MIB);
    assert_int_equal(el_device_ledger(device)->live_bytes, 3 * MIB);
    el_device_free(buffer);
    assert_int_equal(el_device_reserved(device), 4 * MIB); /* kept for later */
    assert_int_equal(el_device_ledger(device)->live_bytes, 0);
    el_device_identify(second, &identity);
    assert_string_equal(identity.uuid, "GPU-1");
    assert_false(el_device_is_host_memory(device));
    el_device_close(device);
    el_device_close(second);
    nothing_is_left();
}

static void a_card_without_nvml_has_no_context_figure(void **state)
{
    cuda_reset();
    cuda.no_nvml = true;
    struct el_device *device = open_one(0);
    struct el_library_memory list[EL_LIBRARIES_MAX];
    int64_t bytes;
    assert_int_equal(el_device_library_memory(device, list), 0);
    assert_int_equal(el_device_resident(device, &bytes), EL_OK);
    assert_int_equal(bytes, 10 * MIB); /* all that is in use on the card */
    el_device_close(device);
    nothing_is_left();
}

static void blocking_copies(void **state)
{
    cuda_reset();
    struct el_device *device = open_one(0);
    struct el_buffer *buffer = alloc(device, 100);
    char in[100], out[100];
    memset(in, 5, sizeof in);
    assert_int_equal(el_device_write(el_view_of(buffer, 0), in, sizeof in), EL_OK);
    assert_int_equal(el_device_read(el_view_of(buffer, 0), out, sizeof out), EL_OK);
    assert_memory_equal(in, out, sizeof in);
    cuda.copy_code = 700;
    assert_int_equal(el_device_read(el_view_of(buffer, 0), out, sizeof out), EL_ERR_INTERNAL);
    assert_non_null(strstr(el_error_message(), "cuda:0: cudaMemcpyAsync"));
    el_device_close(device);
    nothing_is_left();
}

static enum el_status scribble(const struct el_call_args *args)
{
    memset(args->context, (int)args->step + 1, LARGE);
    return EL_OK;
}

/* The loader's buffer is filled anew while the copies of before may still be under way; large ones go in pieces. */
static void host_copies_are_staged(void **state)
{
    cuda_reset();
    struct el_device *device = open_one(0);
    struct el_buffer *first = alloc(device, LARGE), *second = alloc(device, 100);
    char *host = malloc(LARGE), *out = malloc(LARGE);
    struct el_program *program;
    assert_non_null(host);
    assert_non_null(out);
    assert_int_equal(el_program_create(&program), EL_OK);
    struct el_op_head head = {.phase = EL_PHASE_H2D};
    struct el_call_op call = {.op_class = EL_CLASS_HOST, .run = scribble, .context = host};
    el_program_call(program, device, 0, &call, NULL);
    el_program_copy(program, device, 0, &head, el_view_of(first, 0), el_view_host(host), LARGE, NULL);
    el_program_copy(program, device, 0, &head, el_view_of(second, 0), el_view_host(host), 100, NULL);
    struct el_op_head back = {.phase = EL_PHASE_GATHER};
    el_program_copy(program, device, 0, &back, el_view_host(out), el_view_of(first, 0), LARGE, NULL);
    assert_int_equal(el_program_end(program), EL_OK);
    int n_pinned = 0;
    for (uint64_t step = 0; step < 4; step++) {
        if (el_program_run(program, step, NULL) != EL_OK) fail_msg("%s", el_error_message());
        memset(host, 99, LARGE);
        for (size_t i = 0; i < LARGE; i += 4099) assert_int_equal(out[i], (int)step + 1);
        if (step == 0) n_pinned = cuda.n_pinned;
        assert_int_equal(cuda.n_pinned, n_pinned); /* all pieces were made in the first step */
    }
    el_program_destroy(program);
    el_device_close(device);
    nothing_is_left();
    free(host);
    free(out);
}

/* More copies in flight than pieces: the oldest are waited for. */
static void stages_are_bounded(void **state)
{
    cuda_reset();
    struct el_device *device = open_one(0);
    enum { COPIES = 200 };
    struct el_buffer *buffers[COPIES];
    void *native;
    int value;
    assert_int_equal(el_device_native_stream(device, 0, &native), EL_OK);
    for (int i = 0; i < COPIES; i++) {
        buffers[i] = alloc(device, sizeof i);
        assert_int_equal(el_device_enqueue_copy(device, 0, (void *)buffers[i]->address, device, &i, NULL, sizeof i),
                         EL_OK);
    }
    assert_true(cuda.n_pinned <= EL_CUDA_STAGES_MAX);
    assert_int_equal(el_device_stream_synchronize(device, 0), EL_OK);
    for (int i = 0; i < COPIES; i++) {
        assert_int_equal(el_device_read(el_view_of(buffers[i], 0), &value, sizeof value), EL_OK);
        assert_int_equal(value, i);
    }
    el_device_close(device);
    nothing_is_left();
}

static void copy_across(struct el_device *to, struct el_device *from)
{
    struct el_buffer *a = alloc(from, 8), *b = alloc(to, 8);
    char in[8] = "moved", out[8] = "";
    assert_int_equal(el_device_write(el_view_of(a, 0), in, sizeof in), EL_OK);
    struct el_program *program;
    struct el_op_head head = {.phase = EL_PHASE_SCATTER};
    assert_int_equal(el_program_create(&program), EL_OK);
    el_program_copy(program, to, 0, &head, el_view_of(b, 0), el_view_of(a, 0), sizeof in, NULL);
    assert_int_equal(el_program_end(program), EL_OK);
    for (uint64_t step = 0; step < 3; step++) {
        if (el_program_run(program, step, NULL) != EL_OK) fail_msg("%s", el_error_message());
    }
    assert_int_equal(el_device_read(el_view_of(b, 0), out, sizeof out), EL_OK);
    assert_string_equal(in, out);
    el_program_destroy(program);
}

static void cards_reach_each_other_once(void **state)
{
    static const struct {
        bool reach;
        int enable_code, n_enabled;
    } cases[] = {{true, 0, 2}, {true, EL_CUDA_ERROR_PEER_ALREADY, 2}, {true, 711, 2}, {false, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cuda_reset();
        cuda.reach = cases[i].reach;
        cuda.enable_code = cases[i].enable_code;
        struct el_device *first = open_one(0), *second = open_one(2);
        copy_across(first, second);
        copy_across(second, first);
        assert_int_equal(cuda.n_enabled, cases[i].n_enabled);
        assert_int_equal(cuda.n_peer_copies, 6);
        el_device_close(first);
        el_device_close(second);
        nothing_is_left();
    }
}

/* Two devices on one card: plain copies, and memory of each its own. */
static void devices_may_share_a_card(void **state)
{
    cuda_reset();
    struct el_device *first = open_one(0), *second = open_one(0);
    copy_across(first, second);
    assert_int_equal(cuda.n_peer_copies, 0);
    assert_int_equal(el_device_ledger(first)->live_bytes, 8);
    el_device_close(second);
    el_device_close(first);
    nothing_is_left();
}

static void keep_spans(void *context, const struct el_step_event *event)
{
    memcpy(context, event->spans, (size_t)event->n_ops * sizeof *event->spans);
}

static void events_are_pooled_and_timed(void **state)
{
    cuda_reset();
    struct el_device *device = open_one(0);
    struct el_buffer *a = alloc(device, 8), *b = alloc(device, 8);
    struct el_span spans[3];
    struct el_probe probe = {.context = spans, .spans = true, .step = keep_spans};
    int n_made = 0;
    for (int round = 0; round < 5; round++) {
        struct el_program *program;
        struct el_op_head head = {.phase = EL_PHASE_REDUCE};
        int id = -1;
        assert_int_equal(el_program_create(&program), EL_OK);
        for (int i = 0; i < 3; i++) {
            el_program_wait(program, device, i & 1, id);
            el_program_copy(program, device, i & 1, &head, el_view_of(b, 0), el_view_of(a, 0), 8, &id);
        }
        assert_int_equal(el_program_end(program), EL_OK);
        assert_int_equal(el_program_run(program, 0, &probe), EL_OK);
        for (int i = 1; i < 3; i++) assert_true(spans[i].begin_ns >= spans[i - 1].end_ns);
        el_program_destroy(program);
        if (round == 0) n_made = cuda.n_events_made;
        assert_int_equal(cuda.n_events_made, n_made);
    }
    el_device_close(device);
    nothing_is_left();
}

/* Whether each step had spans, in order. */
struct told {
    int n;
    bool spans[64];
};

static void tell_spans(void *context, const struct el_step_event *event)
{
    struct told *told = context;
    assert_true(told->n < 64);
    told->spans[told->n++] = event->spans != NULL;
}

static struct told train(struct el_device *const *devices, const char *mode, int n, struct el_train_result *result)
{
    struct told told = {0};
    struct el_train_config config;
    struct el_bootstrap *self;
    struct el_dataset *dataset;
    assert_int_equal(el_case_dataset(&dataset), EL_OK);
    assert_int_equal(el_bootstrap_open("self", &self), EL_OK);
    assert_int_equal(el_case_config(&el_cases[2], mode, n, &config), EL_OK);
    struct el_train_place place = {.devices = devices, .n_devices = n, .bootstrap = self, .dataset = dataset};
    struct el_probe probes[3] = {
        {.context = &told, .spans = true, .step = tell_spans}, {.spans = true}, {.spans = true}};
    struct el_train_hooks hooks = {.probes = probes};
    if (el_train(&config, &place, &hooks, result) != EL_OK) fail_msg("%s: %s", mode, el_error_message());
    el_bootstrap_close(self);
    el_dataset_close(dataset);
    return told;
}

/* On a card every second measured step is recorded, the headline is of the others; a CPU's are all recorded. */
static void every_second_step_is_recorded(const struct told *cpu, const struct told *card,
                                          const struct el_train_result *result)
{
    assert_true(result->n_steps >= 4 && result->alternates);
    assert_int_equal(card->n, result->n_warmup + result->n_steps);
    for (int s = 0; s < card->n; s++) {
        bool measured = s >= result->n_warmup;
        assert_true(cpu->spans[s]);
        assert_true(card->spans[s] == (measured ? (s - result->n_warmup) % 2 == 1 : s == 0));
        if (measured) assert_true(result->wall_ns[s - result->n_warmup] >= result->step_ns[s - result->n_warmup]);
    }
}

/* The whole backend at work: a model trained on three cards, with staged inputs, copies from card to card, timed
 * events and buffers that come and go, gives the bits of CPU devices with the same kernels. */
static void a_model_trains(void **state)
{
    static const char *const modes[] = {"single", "dp", "ddp"};
    for (int m = 0; m < 3; m++) {
        struct el_device *cpus[3], *cards[3];
        struct el_train_result wanted, result;
        int n = m == 1 ? 3 : 1; /* ddp by threads needs a run time that several may call: not this fake */
        cuda_reset();
        cuda.eager = cuda.one_uuid = true;
        for (int d = 0; d < n; d++) {
            struct el_device_spec spec = {
                .backend = "cpu", .index = d, .position = d, .kernels = el_kernels_reference()};
            assert_int_equal(el_device_open(&spec, &cpus[d]), EL_OK);
            cards[d] = open_one(d);
        }
        struct told of_cpus = train(cpus, modes[m], n, &wanted), of_cards = train(cards, modes[m], n, &result);
        assert_false(wanted.alternates);
        every_second_step_is_recorded(&of_cpus, &of_cards, &result);
        assert_int_equal(result.n_warmup + result.n_steps, wanted.n_warmup + wanted.n_steps);
        assert_memory_equal(wanted.loss, result.loss, (size_t)(wanted.n_warmup + wanted.n_steps) * sizeof *wanted.loss);
        assert_true((cuda.n_peer_copies > 0) == (n > 1));
        assert_true(el_device_reserved(cards[0]) > 0 && el_device_ledger(cards[0])->live_bytes == 0);
        for (int d = 0; d < n; d++) {
            el_device_close(cpus[d]);
            el_device_close(cards[d]);
        }
        el_train_result_free(&wanted);
        el_train_result_free(&result);
        nothing_is_left();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(a_driver_that_fails_is_not_an_absent_one),
        cmocka_unit_test(a_card_that_is_too_old_is_refused_when_it_is_opened),
        cmocka_unit_test(errors_name_the_call),
        cmocka_unit_test(memory_is_told_apart),
        cmocka_unit_test(a_card_without_nvml_has_no_context_figure),
        cmocka_unit_test(blocking_copies),
        cmocka_unit_test(host_copies_are_staged),
        cmocka_unit_test(stages_are_bounded),
        cmocka_unit_test(cards_reach_each_other_once),
        cmocka_unit_test(devices_may_share_a_card),
        cmocka_unit_test(events_are_pooled_and_timed),
        cmocka_unit_test(a_model_trains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
