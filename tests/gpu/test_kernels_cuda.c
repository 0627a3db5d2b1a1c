/* The CUDA table on the first GPU, through the module as the program opens it: every op in f32 and f64 against the
 * reference in f64, with TF32, with cuDNN and without, and in bf16; between guard words that lie on the device too.
 * Many tensors, values of a step and casts of f16 are in pinned memory. What needs no GPU runs everywhere. */
#include "tests/unit/test_kernels_many.h"

#include <cuda_runtime_api.h>

#include "kernels/cuda/native.h"
#include "runtime/base/module.h"

/* The module's functions, and the native of one stream. */
static struct fixture {
    const struct el_kernel_table *(*table)(void);
    enum el_status (*open_cublas)(struct el_cuda_native *native);
    enum el_status (*open_cudnn)(struct el_cuda_native *native);
    void (*close)(struct el_cuda_native *native);
    const char *(*libraries)(void);
    enum el_status (*check)(cudaError_t error, const char *call);
    struct el_cuda_native native;
    char ways[3][160]; /* what convolutions said of themselves: forward, data, weights */
} fixture;

static void find(const char *symbol, void *function_p)
{
    if (el_module_open("cuda", symbol, function_p) != EL_OK) fail_msg("%s", el_error_message());
}

static int set_up(void **state)
{
    find("el_kernels_cuda", &fixture.table);
    find("el_cuda_native_open_cublas", &fixture.open_cublas);
    find("el_cuda_native_open_cudnn", &fixture.open_cudnn);
    find("el_cuda_native_close", &fixture.close);
    find("el_cuda_libraries", &fixture.libraries);
    find("el_cuda_check", &fixture.check);
    return 0;
}

static void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) fail_msg("%s: %s", what, cudaGetErrorString(error));
}

static void must_be_ok(enum el_status status, const char *what)
{
    if (status != EL_OK) fail_msg("%s: %s", what, el_error_message());
}

/* Skips the test, with the reason, where there is no GPU; else makes the native. */
static void need_gpu(bool tf32, bool cudnn)
{
    int devices = 0;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices == 0) {
        print_message("# skip: %s\n", error != cudaSuccess ? cudaGetErrorString(error) : "no GPU is visible");
        skip();
    }
    cudaStream_t stream;
    must(cudaSetDevice(0), "cudaSetDevice");
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    fixture.native = (struct el_cuda_native){.stream = stream, .tf32 = tf32};
    must_be_ok(fixture.open_cublas(&fixture.native), "cuBLAS");
    if (cudnn) must_be_ok(fixture.open_cudnn(&fixture.native), "cuDNN");
}

static void leave_gpu(void)
{
    fixture.close(&fixture.native);
    must(cudaStreamDestroy(fixture.native.stream), "cudaStreamDestroy");
}

/* The whole of a guarded buffer, guards included, as it is on the device; the tensor lies as far off a line there. */
static unsigned char *to_device(const struct guarded *g)
{
    void *there;
    must(cudaMalloc(&there, guarded_whole_bytes(g)), "cudaMalloc");
    must(cudaMemcpy(there, g->whole, guarded_whole_bytes(g), cudaMemcpyHostToDevice), "copy to the device");
    return there;
}

static void from_device(unsigned char *there, struct guarded *g, const char *what)
{
    must(cudaMemcpy(g->whole, there, guarded_whole_bytes(g), cudaMemcpyDeviceToHost), what);
    must(cudaFree(there), "cudaFree");
}

/* What a convolution chose, printed once for each choice. */
static void keep_way(const struct el_kernel *row, const void *plan)
{
    if (!row->describe || !plan) return;
    const char *text = row->describe(plan);
    for (int i = 0; i < 3; i++) {
        if (!strcmp(fixture.ways[i], text)) return;
        if (fixture.ways[i][0]) continue;
        snprintf(fixture.ways[i], sizeof fixture.ways[i], "%s", text);
        print_message("# convolution: %s\n", text);
        return;
    }
}

/* row_run() on the device; work runs on the stream alone, so that a kernel on another would show. */
static void run_prepared(const struct el_kernel *row, struct el_kernel_args *args, const char *what)
{
    struct el_workspace workspace = {0};
    args->native = &fixture.native;
    if (row->workspace) must_be_ok(row->workspace(args, &workspace), what);
    struct guarded scratch = guarded_alloc(workspace.bytes, 0);
    memset(scratch.data, 0xff, workspace.bytes);
    unsigned char *there = to_device(&scratch);
    args->workspace = there + scratch.front_bytes;
    args->workspace_bytes = workspace.bytes;
    args->plan = NULL;
    if (row->prepare) must_be_ok(row->prepare(args, &args->plan), what);
    keep_way(row, args->plan);
    /* Copies from pageable memory may still be under way, and this stream does not wait for the default one. */
    must(cudaDeviceSynchronize(), "upload");
    must_be_ok(el_kernel_run(row, args), what);
    must(cudaStreamSynchronize(fixture.native.stream), what);
    if (row->release) row->release(args->plan);
    from_device(there, &scratch, what);
    guarded_free(&scratch, what);
}

static void run_on_device(const struct el_kernel *row, struct el_kernel_args *args, struct outcome *out)
{
    unsigned char *there[EL_ARGS_POINTERS] = {NULL};
    for (int i = 0; i < out->n; i++) {
        if (!out->tensors[i].whole) continue;
        there[i] = to_device(&out->tensors[i]);
        args->p[i] = there[i] + out->tensors[i].front_bytes;
    }
    for (int i = 0; i < out->n; i++)
        if (!there[i] && args->p[i]) args->p[i] = args->p[0]; /* in place */
    run_prepared(row, args, out->name);
    for (int i = 0; i < out->n; i++)
        if (there[i]) from_device(there[i], &out->tensors[i], out->name);
}

static void test_rows_are_complete_and_sized_without_a_gpu(void **state)
{
    print_message("# %s\n", fixture.libraries());
    for (int i = 0; i < CASES; i++)
        for (int dtype = EL_F32; dtype <= EL_F64; dtype++) {
            const struct el_kernel *row = fixture.table()->find(cases[i].op, (enum el_dtype)dtype);
            struct el_kernel_args args = {.step = 0};
            struct el_workspace workspace = {0};
            assert_non_null(row);
            memcpy(args.d, cases[i].d, sizeof args.d);
            memcpy(args.s, cases[i].s, sizeof args.s);
            if (row->workspace) must_be_ok(row->workspace(&args, &workspace), el_op_name(cases[i].op));
            assert_true(workspace.padding_bytes == 0);
        }
}

static void test_errors_name_the_call(void **state)
{
    assert_int_equal(fixture.check(cudaSuccess, "cudaMalloc(&p, 8)"), EL_OK);
    assert_int_equal(fixture.check(cudaErrorMemoryAllocation, "cudaMalloc(&p, 8)"), EL_ERR_OOM);
    assert_string_equal(el_error_message(), "cudaMalloc: out of memory (cudaErrorMemoryAllocation)");
    assert_int_equal(fixture.check(cudaErrorNoDevice, "cudaSetDevice(0)"), EL_ERR_ABSENT);
    assert_int_equal(fixture.check(cudaErrorIllegalAddress, "cudaStreamSynchronize(s)"), EL_ERR_INTERNAL);
}

static void test_f32(void **state)
{
    need_gpu(false, true);
    assert_int_equal(check_rows(fixture.table(), EL_F32, run_on_device, 0x1p-24, INFINITY), CASES);
    leave_gpu();
}

static void test_f32_without_cudnn(void **state)
{
    need_gpu(false, false);
    assert_int_equal(check_rows(fixture.table(), EL_F32, run_on_device, 0x1p-24, INFINITY), CASES);
    leave_gpu();
}

/* Twice the roundings of one table: the reference rounds as well. */
static void test_f64(void **state)
{
    need_gpu(false, true);
    assert_int_equal(check_rows(fixture.table(), EL_F64, run_on_device, 0x1p-52, INFINITY), CASES);
    leave_gpu();
}

/* One product, large enough for cuBLAS to take the tensor cores when it may. */
static void multiply(bool tf32, struct outcome *out)
{
    const struct test_case c = {EL_OP_LINEAR_FORWARD, {64, 1024, 1024}, {0}, 0, 0, 0};
    need_gpu(tf32, true);
    compute(fixture.table(), EL_F32, &c, 0, run_on_device, out);
    leave_gpu();
}

/* TF32 rounds each factor to 11 bits: near the truth within its own bound, and not what f32 gives, which would mean
 * that the option does nothing. */
static void test_tf32(void **state)
{
    need_gpu(true, true);
    assert_int_equal(check_rows(fixture.table(), EL_F32, run_on_device, 0x1p-11, INFINITY), CASES);
    leave_gpu();
    struct outcome coarse, fine;
    multiply(true, &coarse);
    multiply(false, &fine);
    assert_memory_not_equal(coarse.tensors[3].data, fine.tensors[3].data, fine.tensors[3].bytes);
    outcome_free(&coarse);
    outcome_free(&fine);
}

static void test_bf16(void **state)
{
    need_gpu(false, true);
    assert_int_equal(check_rows(fixture.table(), EL_BF16, run_on_device, 0x1p-24, INFINITY), CASES);
    leave_gpu();
}

/* A piece of pinned memory that pieces are taken from, and that is empty when all were given back: to pin each would
 * take longer than all kernels. */
static struct {
    char *memory;
    size_t used;
    int taken;
} pinned;
enum { PINNED_BYTES = 32 << 20 };

static void *take_pinned(size_t n, size_t bytes)
{
    char *piece = pinned.memory + pinned.used;
    pinned.used += (n * bytes + EL_STEP_VALUES_BYTES) / EL_STEP_VALUES_BYTES * EL_STEP_VALUES_BYTES;
    assert_true(pinned.used <= PINNED_BYTES);
    pinned.taken++;
    return memset(piece, 0, n * bytes);
}

static void give_pinned(void *piece)
{
    if (piece && --pinned.taken == 0) pinned.used = 0;
}

static void need_gpu_and_pinned(void)
{
    need_gpu(false, true);
    must(cudaMallocHost((void **)&pinned.memory, PINNED_BYTES), "cudaMallocHost");
    many_memory.take = take_pinned;
    many_memory.give = give_pinned;
}

static void leave_gpu_and_pinned(void)
{
    assert_int_equal(pinned.taken, 0);
    must(cudaFreeHost(pinned.memory), "cudaFreeHost");
    leave_gpu();
}

static void test_many_tensors(void **state)
{
    need_gpu_and_pinned();
    check_many(fixture.table(), run_on_device);
    leave_gpu_and_pinned();
}

static void test_values_of_a_step(void **state)
{
    need_gpu_and_pinned();
    for (int i = 0; i < 3; i++)
        assert_true(check_step_values(fixture.table(), (enum el_dtype[]){EL_F32, EL_F64, EL_BF16}[i], run_on_device) >
                    5);
    leave_gpu_and_pinned();
}

static void test_f16(void **state)
{
    need_gpu_and_pinned();
    check_f16(fixture.table(), run_on_device);
    leave_gpu_and_pinned();
}

RUN_TESTS(set_up, NULL, test_rows_are_complete_and_sized_without_a_gpu, test_errors_name_the_call, test_f32,
          test_f32_without_cudnn, test_f64, test_tf32, test_bf16, test_many_tensors, test_values_of_a_step, test_f16)
