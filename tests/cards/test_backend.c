/* The host's side of the backend `cuda`: what is missing is said, copies read host memory before they return, cards are
 * made to reach each other once, libraries' memory is separate. It is the module's own table of the run time, in which
 * a test may put a function of its own. */
#include "runtime/device/cuda.h"
#include "runtime/device/internal.h"
#include "tests/cards/cards_cases.h"

enum { MIB = 1 << 20, LARGE = 40 * MIB, GUEST_BYTES = 7 * MIB };

static struct el_cuda_module module;
static struct el_cuda_api api;

static int load_module(void **state)
{
    const struct el_cuda_module *loaded;
    if (el_cuda_module_load(&loaded) != EL_OK) fail_msg("%s", el_error_message());
    module = *loaded;
    api = *loaded->api;
    module.api = &api;
    return 0;
}

static enum el_status open_on_module(const struct el_device_spec *spec, void **state_p)
{
    return el_cuda_open_on(&module, spec, state_p);
}

static enum el_status try_open(int index, struct el_device **device_p)
{
    static struct el_device_ops ops;
    struct el_device_spec spec = {.backend = "cuda", .index = index, .position = index};
    ops = el_device_cuda;
    ops.open = open_on_module;
    return el_device_open_with(&ops, &spec, device_p);
}

static struct el_device *open_one(int index)
{
    struct el_device *device = NULL;
    if (try_open(index, &device) != EL_OK) fail_msg("%s", el_error_message());
    return device;
}

static struct el_buffer *alloc(struct el_device *device, size_t bytes)
{
    struct el_buffer *buffer = NULL;
    if (el_device_alloc(device, EL_TAG_INPUT, bytes, "x", &buffer) != EL_OK) fail_msg("%s", el_error_message());
    return buffer;
}

static void close_one(struct el_device *device)
{
    el_device_close(device);
    assert_nothing_left();
}

/* ---- what is missing ---- */

static struct driver {
    int code, version, n; /* what a run time says */
    const char *words;    /* of a refusal to open */
    int counted;          /* negative: counting cards is a failure too */
} driver;

static int count_cards(int *n_p)
{
    *n_p = driver.n;
    return driver.code;
}

static int tell_version(int *version_p)
{
    *version_p = driver.version;
    return EL_CUDA_SUCCESS;
}

/* No driver or no card is no failure: CPU devices are taken then. A driver that fails is one, and says how. */
static void a_driver_that_fails_is_not_an_absent_one(void **state)
{
    static const struct driver drivers[] = {
        {EL_CUDA_ERROR_OLD_DRIVER, 0, 3, "no NVIDIA driver found", 0},
        {EL_CUDA_ERROR_NO_DEVICE, 12040, 3, "no GPU that this process may use", 0},
        {EL_CUDA_SUCCESS, 12040, 0, "no GPU that this process may use", 0},
        {EL_CUDA_ERROR_OLD_DRIVER, 12040, 3,
         "the NVIDIA driver knows CUDA up to 12.4, evenload was built with CUDA 13.0: update the driver", -1},
        {EL_CUDA_ERROR_STUB_LIBRARY, 12040, 3, "update the driver", -1},
        {EL_CUDA_ERROR_SYSTEM_NOT_READY, 13000, 3, "fabric manager", -1},
        {EL_CUDA_ERROR_DRIVER_MISMATCH, 13000, 3, "kernel module differ", -1},
        {EL_CUDA_ERROR_UNKNOWN, 13000, 3, "nvidia_uvm", -1},
        {EL_CUDA_ERROR_BUSY, 13000, 3, "has the card for itself", -1},
        {EL_CUDA_SUCCESS, 13000, 3, NULL, 3}};
    api.GetDeviceCount = count_cards;
    api.DriverGetVersion = tell_version;
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        int n = 7;
        driver = drivers[i];
        assert_int_equal(el_cuda_find(&module, &n), driver.words ? EL_ERR_ABSENT : EL_OK);
        if (driver.words && !strstr(el_error_message(), driver.words)) fail_msg("%s", el_error_message());
        n = 7;
        assert_int_equal(el_cuda_count(&module, &n), driver.counted < 0 ? EL_ERR_ABSENT : EL_OK);
        assert_int_equal(n, driver.counted < 0 ? 7 : driver.counted);
        if (driver.counted < 0) assert_non_null(strstr(el_error_message(), "--devices cpu:2 trains without GPUs"));
        assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
    }
}

static void a_card_that_is_not_there_or_too_old_is_refused(void **state)
{
    struct el_device *device;
    assert_int_equal(try_open(CARDS, &device), EL_ERR_ABSENT);
    assert_non_null(strstr(el_error_message(), "cuda:4: this process sees 4 GPUs (cuda:0 to cuda:3)"));
    assert_non_null(strstr(el_error_message(), "leave --devices out, or name cuda:0 for each"));
    module.capability_min = 95;
    assert_int_equal(try_open(0, &device), EL_ERR_ABSENT);
    assert_string_equal(el_error_message(),
                        "cuda:0: NVIDIA H200 has compute capability 9.0, and the kernels were built for 9.5 and later: "
                        "take another card, or build for this one (make CUDA_ARCHS='90 ...')");
    module.capability_min = 90;
    close_one(open_one(0));
}

static void errors_name_the_call(void **state)
{
    static const struct {
        const char *call;
        int code;
        enum el_status status;
        const char *words;
    } errors[] = {
        {"MemcpyAsync", 700, EL_ERR_INTERNAL,
         "cuda:0: cudaMemcpyAsync: an illegal memory access was encountered (cudaErrorIllegalAddress)"},
        {"HostAlloc", EL_CUDA_ERROR_MEMORY, EL_ERR_OOM,
         "cuda:0: cudaHostAlloc: out of memory (cudaErrorMemoryAllocation); take a smaller batch or model, or end "
         "other processes on the card"},
        {"Malloc", EL_CUDA_ERROR_OLD_DRIVER, EL_ERR_ABSENT, NULL}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(el_cuda_status(&api, "cuda:0", errors[i].call, errors[i].code), errors[i].status);
        if (errors[i].words) assert_string_equal(el_error_message(), errors[i].words);
    }
    assert_int_equal(el_cuda_status(&api, "cuda:0", "Malloc", 0), EL_OK);
}

/* ---- memory ---- */

static int64_t no_nvml(const char *uuid)
{
    (void)uuid;
    return -1;
}

static void memory_is_told_apart(void **state)
{
    static const char *const names[] = {"context", "cuBLAS", "cuDNN"};
    struct el_device *device = open_one(1);
    struct el_library_memory list[EL_LIBRARIES_MAX];
    struct cards_counts counts;
    int64_t bytes, libraries = 0;
    void *native;
    assert_int_equal(el_device_native_stream(device, EL_STREAM_COMPUTE, &native), EL_OK);
    cards_count(1, &counts);
    size_t before = counts.library_bytes;
    assert_int_equal(el_device_native_stream(device, EL_STREAM_COMM, &native), EL_OK);
    cards_count(1, &counts);
    assert_int_equal(counts.library_bytes, before); /* the communication stream has no libraries */
    assert_int_equal(el_device_library_memory(device, list), 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(list[i].name, names[i]);
        libraries += list[i].bytes;
    }
    assert_int_equal(list[0].bytes, CONTEXT_BYTES);
    assert_int_equal(libraries, counts.library_bytes);
    struct el_buffer *buffer = alloc(device, 3 * MIB);
    assert_int_equal(el_device_resident(device, &bytes), EL_OK);
    assert_int_equal(bytes, 4 * MIB + libraries); /* a segment is whole granules; nothing of another process's */
    assert_int_equal(el_device_reserved(device), 4 * MIB);
    assert_int_equal(el_device_ledger(device)->live_bytes, 3 * MIB);
    el_device_free(buffer);
    assert_int_equal(el_device_reserved(device), 4 * MIB); /* kept for later */
    assert_int_equal(el_device_ledger(device)->live_bytes, 0);
    assert_false(el_device_is_host_memory(device));
    close_one(device);
    module.used_bytes = no_nvml; /* then nobody knows of the context */
    device = open_one(0);
    assert_int_equal(el_device_library_memory(device, list), 0);
    assert_int_equal(el_device_resident(device, &bytes), EL_OK);
    assert_int_equal(bytes, CONTEXT_BYTES + GUEST_BYTES); /* all that is in use on the card */
    close_one(device);
}

/* ---- copies ---- */

static enum el_status scribble(const struct el_call_args *args)
{
    memset(args->context, (int)args->step + 1, LARGE);
    return EL_OK;
}

/* The loader's buffer is filled anew while the copies of before may still be under way; large ones go in pieces. */
static void host_copies_are_staged(void **state)
{
    cards_set_policy(CARDS_LAZY, 1);
    struct el_device *device = open_one(0);
    struct el_buffer *first = alloc(device, LARGE), *second = alloc(device, 100);
    char *host = malloc(LARGE), *out = malloc(LARGE);
    struct cards_counts counts;
    struct el_program *program;
    assert_true(host && out);
    assert_int_equal(el_program_create(&program), EL_OK);
    struct el_op_head head = {.phase = EL_PHASE_H2D}, back = {.phase = EL_PHASE_GATHER};
    struct el_call_op call = {.op_class = EL_CLASS_HOST, .run = scribble, .context = host};
    el_program_call(program, device, 0, &call, NULL);
    el_program_copy(program, device, 0, &head, el_view_of(first, 0), el_view_host(host), LARGE, NULL);
    el_program_copy(program, device, 0, &head, el_view_of(second, 0), el_view_host(host), 100, NULL);
    el_program_copy(program, device, 0, &back, el_view_host(out), el_view_of(first, 0), LARGE, NULL);
    assert_int_equal(el_program_end(program), EL_OK);
    size_t pinned = 0;
    for (uint64_t step = 0; step < 4; step++) {
        if (el_program_run(program, step, NULL) != EL_OK) fail_msg("%s", el_error_message());
        memset(host, 99, LARGE);
        for (size_t i = 0; i < LARGE; i += 4099) assert_int_equal(out[i], (int)step + 1);
        cards_count(0, &counts);
        if (step == 0) pinned = counts.pinned_bytes;
        assert_int_equal(counts.pinned_bytes, pinned); /* all pieces were made in the first step */
    }
    el_program_destroy(program);
    close_one(device);
    free(host);
    free(out);
    cards_set_policy(CARDS_FREE, 0);
}

static int n_pinned;

static int count_pinned(void **memory_p, size_t bytes)
{
    n_pinned++;
    return cudaHostAlloc(memory_p, bytes, cudaHostAllocPortable);
}

/* More copies in flight than pieces: the oldest are waited for. */
static void stages_are_bounded(void **state)
{
    enum { COPIES = 200 };
    api.HostAlloc = count_pinned;
    cards_set_policy(CARDS_LAZY, 1);
    struct el_device *device = open_one(0);
    struct el_buffer *buffers[COPIES];
    void *stream;
    int value;
    assert_int_equal(el_device_stream(device, 0, &stream), EL_OK);
    for (int i = 0; i < COPIES; i++) {
        buffers[i] = alloc(device, sizeof i);
        struct el_copy copy = {
            .destination = (void *)buffers[i]->address, .to = device->state, .source = &i, .bytes = sizeof i};
        assert_int_equal(device->ops->async->copy(stream, &copy), EL_OK);
    }
    assert_in_range(n_pinned, 1, EL_CUDA_STAGES_MAX);
    assert_int_equal(el_device_stream_synchronize(device, 0), EL_OK);
    for (int i = 0; i < COPIES; i++) {
        assert_int_equal(el_device_read(el_view_of(buffers[i], 0), &value, sizeof value), EL_OK);
        assert_int_equal(value, i);
    }
    close_one(device);
    cards_set_policy(CARDS_FREE, 0);
}

/* A member's call may copy while other members of its process wait for it on their cards. */
static void a_call_copies_from_the_host_without_pinned_memory(void **state)
{
    api.HostAlloc = count_pinned;
    n_pinned = 0;
    cards_set_policy(CARDS_LAZY, 1);
    struct el_device *device = open_one(0);
    struct el_buffer *buffer = alloc(device, 8);
    void *native;
    char host[8] = "source", out[8] = "";
    assert_int_equal(el_device_native_stream(device, 0, &native), EL_OK);
    assert_int_equal(el_device_enqueue_copy(device, 0, (void *)buffer->address, device, host, NULL, sizeof host),
                     EL_OK);
    memset(host, 0, sizeof host);
    assert_int_equal(n_pinned, 0);
    assert_int_equal(el_device_stream_synchronize(device, 0), EL_OK);
    assert_int_equal(el_device_read(el_view_of(buffer, 0), out, sizeof out), EL_OK);
    assert_string_equal(out, "source");
    close_one(device);
    cards_set_policy(CARDS_FREE, 0);
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

static int n_enabled, enable_code;

static int enable_peer(int peer)
{
    n_enabled++;
    cudaDeviceEnablePeerAccess(peer, 0);
    return enable_code ? enable_code : EL_CUDA_SUCCESS;
}

static void cards_reach_each_other_once(void **state)
{
    static const struct {
        bool reach;
        int enable_code, n_enabled;
    } cases[] = {{true, 0, 2}, {true, EL_CUDA_ERROR_PEER_ALREADY, 2}, {true, 711, 2}, {false, 0, 0}};
    api.DeviceEnablePeerAccess = enable_peer;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cards_set_peer(cases[i].reach);
        n_enabled = 0;
        enable_code = cases[i].enable_code;
        struct el_device *first = open_one(0), *second = open_one(2);
        copy_across(first, second);
        copy_across(second, first);
        assert_int_equal(n_enabled, cases[i].n_enabled);
        el_device_close(first);
        close_one(second);
    }
    cards_set_peer(true);
}

int main(void)
{
    set_up_cards();
    setenv("FAKE_CARDS_GUEST", "7340032", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_driver_that_fails_is_not_an_absent_one, load_module),
        cmocka_unit_test_setup(a_card_that_is_not_there_or_too_old_is_refused, load_module),
        cmocka_unit_test_setup(errors_name_the_call, load_module),
        cmocka_unit_test_setup(memory_is_told_apart, load_module),
        cmocka_unit_test_setup(host_copies_are_staged, load_module),
        cmocka_unit_test_setup(stages_are_bounded, load_module),
        cmocka_unit_test_setup(a_call_copies_from_the_host_without_pinned_memory, load_module),
        cmocka_unit_test_setup(cards_reach_each_other_once, load_module),
    };
    return cmocka_run_group_tests_name("the backend cuda on fake cards", tests, NULL, NULL);
}
