/* Traces of Kineto's form that were made by hand, with answers known beforehand; and damaged ones, each with its line.
 */
#include "tests/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "profiles/kineto.h"

static enum el_status read_text(const char *text, size_t bytes, const char *name, struct el_kineto_trace *trace)
{
    FILE *file = fmemopen((char *)(uintptr_t)text, bytes, "r");
    assert_non_null(file);
    enum el_status status = el_kineto_read(file, UINT64_MAX, name, NULL, trace);
    fclose(file);
    return status;
}

static struct el_kineto_trace read_trace(const char *text)
{
    struct el_kineto_trace trace;
    enum el_status status = read_text(text, strlen(text), "t", &trace);
    if (status != EL_OK) fail_msg("%s", el_error_message());
    return trace;
}

static void assert_us(double seconds, double us)
{
    if (fabs(seconds * 1e6 - us) > 1e-6) fail_msg("%.3f us, not %.3f", seconds * 1e6, us);
}

#define EVENT(cat, name, ts, dur)                                                                                      \
    "{\"ph\": \"X\", \"cat\": \"" cat "\", \"name\": \"" name "\", \"pid\": 0, \"ts\": " ts ", \"dur\": " dur "}"
#define KERNEL(name, device, ts, dur)                                                                                  \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" name "\", \"pid\": 5, \"ts\": " ts ", \"dur\": " dur           \
    ", \"args\": {\"device\": " device "}}"

/* Computation 0-10 and 20-40 (two streams, overlapping), communication 5-25 and 50-60, a copy 55-70 and one before all;
 * beside them what must not count: the host's ops, annotations, metadata, an instant. */
static void test_device(void **state)
{
    struct el_kineto_figures f;
    static const char text[] =
        "{\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 4}, \"schemaVersion\": 1, "
        "\"traceEvents\": [{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"args\": {\"name\": \"python\"}},"
        "{\"ph\": \"i\", \"cat\": \"kernel\", \"name\": \"x\", \"ts\": 900},"
        /* clang-format off */
        EVENT("cpu_op", "aten::mm", "0", "500") "," EVENT("gpu_user_annotation", "nccl:all_reduce", "0", "500") ","
        KERNEL("gemm", "0", "1000.000", "10.0") "," KERNEL("conv", "0", "1020", "12") ","
        KERNEL("relu", "0", "1030", "10") "," KERNEL("ncclDevKernel_AllReduce", "0", "1005", "20") ","
        EVENT("gpu_memcpy", "Memcpy PtoP (Device -> Device)", "1050", "10") ","
        EVENT("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", "1055", "15") ","
        EVENT("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", "990", "5") "," KERNEL("gemm", "1", "1000", "30") "]}";
    /* clang-format on */
    struct el_kineto_trace trace = read_trace(text);
    assert_int_equal(trace.rank, 3);
    assert_false(trace.cpu_only);
    assert_int_equal(trace.n_lanes, 2);
    assert_int_equal(el_kineto_figures(&trace.lanes[0], &f), EL_OK);
    assert_us(f.window_s, 80); /* 990 to 1070 */
    assert_us(f.compute_s, 30);
    assert_us(f.comm_s, 30);
    assert_us(f.overlapped_s, 10); /* 1005-1010, 1020-1025 */
    assert_us(f.exposed_s, 20);
    assert_us(f.other_s, 15); /* 990-995, 1060-1070 */
    assert_us(f.idle_s, 15);  /* 995-1000, 1040-1050 */
    assert_int_equal(trace.lanes[0].counts[EL_KINETO_COMPUTE], 3);
    assert_int_equal(trace.lanes[0].counts[EL_KINETO_COMM], 2);
    assert_int_equal(trace.lanes[0].counts[EL_KINETO_COPY], 2);
    assert_int_equal(el_kineto_figures(&trace.lanes[1], &f), EL_OK);
    assert_us(f.window_s, 30);
    assert_us(f.compute_s, 30);
    assert_us(f.idle_s, 0);
    el_kineto_free(&trace);
}

/* No device: the CPU's ops, in an array without a document round it, at a time since 1970. */
static void test_cpu_only(void **state)
{
    struct el_kineto_figures f;
    /* clang-format off */
    struct el_kineto_trace trace = read_trace(
        " [" EVENT("cpu_op", "aten::mm", "1790857026000000", "10") ","
        EVENT("cpu_op", "c10d::allreduce_", "1790857026000000", "900") ","
        EVENT("user_annotation", "gloo:all_reduce", "1790857026000005", "15") ","
        EVENT("user_annotation", "ProfilerStep#2", "1790857026000000", "900") ","
        EVENT("cpu_op", "aten::add", "1790857026000030", "10") "]");
    /* clang-format on */
    assert_true(trace.cpu_only);
    assert_int_equal(trace.rank, -1);
    assert_int_equal(el_kineto_figures(&trace.lanes[0], &f), EL_OK);
    assert_us(f.window_s, 40);
    assert_us(f.compute_s, 20);
    assert_us(f.exposed_s, 10);
    assert_us(f.overlapped_s, 5);
    assert_us(f.idle_s, 10);
    el_kineto_free(&trace);
}

#define LINKED(cat, name, correlation, ts, dur)                                                                        \
    "{\"ph\": \"X\", \"cat\": \"" cat "\", \"name\": \"" name "\", \"ts\": " ts ", \"dur\": " dur                      \
    ", \"args\": {\"device\": 0, \"correlation\": " correlation "}}"
#define LAUNCH(correlation, ts)        LINKED("cuda_runtime", "cudaLaunchKernel", correlation, ts, "1")
#define LAUNCHED(correlation, ts, dur) LINKED("kernel", "gemm", correlation, ts, dur)
#define STEP(name, ts)                 EVENT("user_annotation", "ProfilerStep#" name, ts, "50")

/* Of four kernels the first was queued before the trace began, and the last one after its last step; one knows of no
 * host. Without a second step all count. */
static void test_steps(void **state)
{
    struct el_kineto_figures f;
    /* clang-format off */
    static const char *const texts[] = {
        "[" LAUNCHED("9", "100", "10") "," LAUNCHED("1", "120", "10") "," LAUNCHED("2", "300", "10") ","
        KERNEL("relu", "0", "140", "5") "," STEP("4", "100") "," LAUNCH("1", "110") "," LAUNCH("2", "210") "]",
        "[" STEP("4", "100") "," LAUNCHED("9", "100", "10") "," LAUNCHED("1", "120", "10") "," LAUNCH("2", "210") ","
        LAUNCHED("2", "300", "10") "," KERNEL("relu", "0", "140", "5") "," LAUNCH("1", "110") "," STEP("5", "150") "]"};
    /* clang-format on */
    for (int several = 0; several < 2; several++) {
        struct el_kineto_trace trace = read_trace(texts[several]);
        assert_int_equal(trace.lanes[0].counts[EL_KINETO_COMPUTE], several ? 2 : 4);
        assert_int_equal(el_kineto_figures(&trace.lanes[0], &f), EL_OK);
        assert_us(f.window_s, several ? 25 : 210);
        assert_us(f.compute_s, several ? 15 : 35);
        el_kineto_free(&trace);
    }
}

static void test_damaged(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "no { or [ at byte 0"},
        {"PK\x03\x04", "no { or ["},
        {"{\"a\" 1}", "no name of a member"},
        {"{1: 1}", "no name of a member"},
        {"{\"traceEvents\": []}", "none of its events is counted"},
        {"{\"traceEvents\": [1, \"x\", null]}", "none of its events is counted"},
        {"{\"traceEvents\": [{\"ph\": \"X\"", "no JSON at byte 17"},
        {"{\"traceEvents\": [1 2]}", "no , or ]"},
        {"{\"traceEvents\": [1]", "no , or }"},
        {"[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"ts\": 1}]", "an event without a time"},
        {"[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"ts\": 1e300, \"dur\": 1}]", "without a time"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_kineto_trace trace;
        assert_int_equal(read_text(cases[i].text, strlen(cases[i].text), "a.json", &trace), EL_ERR_INVALID);
        if (!strstr(el_error_message(), cases[i].words) || strncmp(el_error_message(), "a.json: ", 8) != 0)
            fail_msg("case %zu: %s", i, el_error_message());
    }
}

/* A document of something else is no fault of a folder; values that are not needed are not judged; times may be
 * strings. */
static void test_as_people_have_them(void **state)
{
    static const char *const others[] = {"{}", "{\"schema\": \"1.1.1-chakra\", \"nodes\": [{\"id\": 1}]}"};
    static const char text[] = "\xef\xbb\xbf{\"loss\": NaN, \"traceEvents\": [{\"ph\": \"X\", \"cat\": \"kernel\", "
                               "\"name\": \"k\", \"ts\": \"1\", "
                               "\"dur\": 2, \"args\": {\"rate\": inf, \"mode\": fast, \"device\": 0}}]}";
    for (size_t i = 0; i < 2; i++) {
        struct el_kineto_trace trace = read_trace(others[i]);
        assert_true(trace.foreign && trace.n_lanes == 0);
        el_kineto_free(&trace);
    }
    struct el_kineto_figures f;
    struct el_kineto_trace trace = read_trace(text);
    assert_int_equal(el_kineto_figures(&trace.lanes[0], &f), EL_OK);
    assert_us(f.compute_s, 2);
    el_kineto_free(&trace);
}

#define ON(thread, cat, name, ts, dur)                                                                                 \
    "{\"ph\": \"X\", \"cat\": \"" cat "\", \"name\": \"" name "\", \"tid\": " thread ", \"ts\": " ts ", \"dur\": " dur \
    "}"

/* Own time: a container's is none, FSDP's annotation's is nobody's, a slow backward's is its own without the op in it.
 */
static void test_own_time(void **state)
{
    struct el_kineto_figures f;
    /* clang-format off */
    struct el_kineto_trace trace = read_trace(
        "[" ON("1", "cpu_op", "autograd::engine::evaluate_function: SlowBackward", "0", "100") ","
        ON("1", "cpu_op", "SlowBackward", "10", "40") "," ON("1", "cpu_op", "aten::mm", "20", "5") ","
        ON("1", "cpu_op", "RegisterPostBackwardFunctionBackward", "200", "100") ","
        ON("1", "user_annotation", "FSDP::post_backward_reduce", "210", "80") ","
        ON("1", "cpu_op", "fsdp::all_gather_copy_in", "220", "7") "," ON("1", "cpu_op", "aten::sum", "400", "30") ","
        ON("1", "user_annotation", "FSDP::all_gather", "405", "20") ","
        ON("2", "user_annotation", "gloo:all_gather", "225", "60") "," ON("3", "cpu_op", "aten::relu", "15", "10") "]");
    /* clang-format on */
    assert_int_equal(el_kineto_figures(&trace.lanes[0], &f), EL_OK);
    assert_us(f.compute_s, 40 + 7 + 10);
    assert_us(f.comm_s, 60);
    assert_us(f.overlapped_s, 2);
    assert_int_equal(trace.lanes[0].counts[EL_KINETO_COMPUTE], 5);
    el_kineto_free(&trace);
}

/* Kernels of libraries, and one that says itself what it is; another one is only called so. */
static void test_libraries(void **state)
{
    static const char *const names[] = {"rcclGenericKernel<1, false>(x)",
                                        "mscclKernel_Sum_half_LL",
                                        "void deep_ep::intranode::dispatch<8>(int4*)",
                                        "void deep_ep::internode::combine(x)",
                                        "nvshmemi_transfer_rma",
                                        "symm_mem::multimem_all_reduce_kernel",
                                        "void vllm::cross_device_reduce_2stage<half, 4>(x)",
                                        "ncclDevKernel_AllGather",
                                        "my_fused_kernel\", \"args\": {\"Collective name\": \"allreduce\"}, \"x\": \""};
    char text[512];
    for (size_t i = 0; i <= sizeof names / sizeof names[0]; i++) {
        const bool known = i < sizeof names / sizeof names[0];
        snprintf(text, sizeof text,
                 "[{\"ph\": \"X\", \"cat\": \"kernel\", \"pid\": 0, \"ts\": 1, \"dur\": 2, \"name\": \"%s\"}]",
                 known ? names[i] : "my_all_reduce_2stage");
        struct el_kineto_trace trace = read_trace(text);
        assert_int_equal(trace.lanes[0].counts[EL_KINETO_COMM], known);
        assert_int_equal(trace.n_calls, known);
        assert_int_equal(trace.n_doubtful, !known);
        if (!known) assert_string_equal(trace.doubtful, "my_all_reduce_2stage");
        el_kineto_free(&trace);
    }
}

static void test_many_devices(void **state)
{
    static char text[1 << 16];
    struct el_kineto_trace trace;
    size_t n = 0;
    for (int d = 0; d <= EL_KINETO_LANES_MAX; d++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "%c{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":%d,\"ts\":1,\"dur\":1}",
                              d ? ',' : '[', d);
    snprintf(text + n, sizeof text - n, "]");
    assert_int_equal(read_text(text, strlen(text), "t", &trace), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "more than 255 devices"));
}

static ssize_t read_broken(void *cookie, char *to, size_t most)
{
    const char **left = cookie;
    if (!**left) errno = EIO;
    if (!**left) return -1;
    (void)most;
    *to = *(*left)++;
    return 1;
}

/* Numbers end where the next character is read. */
static void a_trace_that_ends_is_read_and_one_that_breaks_or_is_too_long_is_not(void **state)
{
    /* clang-format off */
    static const char text[] = "{\"a\":1,\"b\" : 2.5 ,\"traceEvents\":[ 17," KERNEL("k\xC3\xA9", "0", "1", "3") " ,\n"
        KERNEL("relu", "0", "5", "3") ",9],\"z\":3} ";
    /* clang-format on */
    struct el_kineto_trace trace = read_trace(text);
    assert_int_equal(trace.lanes[0].counts[EL_KINETO_COMPUTE], 2);
    el_kineto_free(&trace);
    for (uint64_t most = 0; most <= sizeof text; most++) {
        const char *left = text;
        FILE *file = fopencookie(&left, "r", (cookie_io_functions_t){.read = read_broken});
        assert_int_equal(el_kineto_read(file, most, "t", NULL, &trace), EL_ERR_INVALID);
        assert_non_null(strstr(el_error_message(),
                               most < sizeof text - 1 ? "t: unpacks to more than 50 times" : "t could not be read"));
        fclose(file);
    }
}

static void a_value_of_gigabytes_is_refused_before_it_is_in_memory(void **state)
{
    struct el_kineto_trace trace;
    size_t n = (size_t)9 << 20;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, '1', n);
    memcpy(text, "[{\"name\":\"", 10);
    assert_int_equal(read_text(text, n, "t", &trace), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "a value of more than 8 MiB at byte 1"));
    free(text);
}

RUN_TESTS(NULL, NULL, test_device, test_cpu_only, test_steps, test_damaged, test_as_people_have_them, test_own_time,
          test_libraries, test_many_devices, a_trace_that_ends_is_read_and_one_that_breaks_or_is_too_long_is_not,
          a_value_of_gigabytes_is_refused_before_it_is_in_memory)
