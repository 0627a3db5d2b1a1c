/* The CUDA table on emulated threads (emulator/emulator.h): every op in f32 and f64 against the reference in f64, with
 * the same bits whichever way blocks and threads run; convolutions without cuDNN and with it. Both libraries are loops
 * here (tests/cards/cublas.c, cudnn.c). */
#define SMALLER_CASES
#include "tests/unit/test_kernels_many.h"

#include "kernels/cuda/native.h"
#include "tests/cards/cards.h"
#include "tests/gpu/emulator/races.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A case runs three times: its races are the same in each, and to watch costs more than all else. 0: none is watched.
 */
static int watch_each = 1;

static void run_emulated(const struct el_kernel *row, struct el_kernel_args *args, struct outcome *out)
{
    static struct el_cuda_native native;
    static int runs;
    el_races_watch(watch_each && runs++ % watch_each == 0);
    if (!native.cublas) assert_int_equal(el_cuda_native_open_cublas(&native), EL_OK);
    args->native = &native;
    row_run(row, args, out->name);
}

/* Products are the emulator's slow loops: what takes long says no more than what is short, and under the address
 * sanitizer it takes six times as long. */
#ifdef __SANITIZE_ADDRESS__
enum { MOST_FLOPS = 1000000, FIRST_PLANTED = EL_PLANTED_MASK }; /* it watches for itself, and no races */
#else
enum { MOST_FLOPS = 10000000, FIRST_PLANTED = 0 };
#endif

static void check_all(enum el_dtype dtype, double half_ulp)
{
    watch_each = 3;
    assert_true(check_rows(el_kernels_cuda(), dtype, run_emulated, half_ulp, MOST_FLOPS) > CASES / 2);
    watch_each = 1;
}

static void test_f32(void **state)
{
    check_all(EL_F32, 0x1p-24);
}

/* Twice the roundings of one table: the reference rounds as well. */
static void test_f64(void **state)
{
    check_all(EL_F64, 0x1p-52);
}

/* Convolutions with cuDNN and without are f32's, between casts. */
static void test_bf16(void **state)
{
    check_all(EL_BF16, 0x1p-24);
}

static void test_many_tensors(void **state)
{
    check_many(el_kernels_cuda(), run_emulated);
}

static void test_values_of_a_step(void **state)
{
    watch_each = 0;
    for (int i = 0; i < 3; i++)
        assert_true(check_step_values(el_kernels_cuda(), (enum el_dtype[]){EL_F32, EL_F64, EL_BF16}[i], run_emulated) >
                    5);
    watch_each = 1;
}

static void test_f16(void **state)
{
    check_f16(el_kernels_cuda(), run_emulated);
}

static const struct el_kernel *find_convolution(enum el_op_kind op, enum el_dtype dtype)
{
    int over_time = op >= EL_OP_CONV1D_FORWARD && op <= EL_OP_CONV1D_BACKWARD_WEIGHTS;
    int over_images = op >= EL_OP_CONV2D_FORWARD && op <= EL_OP_CONV2D_BACKWARD_WEIGHTS;
    return over_time || over_images ? el_kernels_cuda()->find(op, dtype) : NULL;
}

static void run_with_cudnn(const struct el_kernel *row, struct el_kernel_args *args, struct outcome *out)
{
    struct el_cuda_native native = {.cudnn = NULL};
    assert_int_equal(el_cuda_native_open_cudnn(&native), EL_OK);
    args->native = &native;
    row_run(row, args, out->name);
    el_cuda_native_close(&native);
}

/* Each case is run twice on a line, and once off it, which goes without cuDNN. */
static void test_convolutions_by_cudnn(void **state)
{
    const struct el_kernel_table table = {.name = "cuda with cuDNN", .find = find_convolution};
    int checked = check_rows(&table, EL_F32, run_with_cudnn, 0x1p-24, MOST_FLOPS);
    assert_true(checked > 70);
    assert_int_equal(cards_cudnn_convolutions(), 2 * checked);
    assert_int_equal(cards_cudnn_descriptors(), 0);
}

static void test_table_is_complete(void **state)
{
    for (int op = 0; op < EL_OP_COUNT; op++) {
        assert_non_null(el_kernels_cuda()->find((enum el_op_kind)op, EL_F32));
        assert_non_null(el_kernels_cuda()->find((enum el_op_kind)op, EL_F64));
        assert_non_null(el_kernels_cuda()->find((enum el_op_kind)op, EL_BF16));
        assert_null(el_kernels_cuda()->find((enum el_op_kind)op, EL_I32));
    }
    assert_null(el_kernels_cuda()->find(EL_OP_COUNT, EL_F32));
}

static void run_f32(enum el_op_kind op, struct el_kernel_args *args)
{
    static const struct el_cuda_native native;
    args->native = &native;
    row_run(el_kernels_cuda()->find(op, EL_F32), args, el_op_name(op));
}

static void test_batch_norm_far_from_zero(void **state)
{
    check_batch_norm_far_from_zero(el_kernels_cuda(), run_emulated);
}

/* The very elements: not near, but the same zeros. */
static void test_dropout_drops_what_the_cpu_drops(void **state)
{
    enum { ROWS = 9, N = 1001 };
    static float x[ROWS * N], here[ROWS * N], there[ROWS * N];
    for (int i = 0; i < ROWS * N; i++) x[i] = 1;
    struct el_kernel_args args = {.p = {x, here}, .d = {ROWS, N, 3, 4}, .s = {0.3}, .k = {99, 7}, .step = 12345};
    assert_int_equal(el_kernels_reference()->find(EL_OP_DROPOUT, EL_F32)->run(&args), EL_OK);
    args.p[1] = there;
    run_f32(EL_OP_DROPOUT, &args);
    int dropped = 0;
    for (int i = 0; i < ROWS * N; i++) {
        if ((here[i] == 0) != (there[i] == 0)) fail_msg("element %d is dropped on one of them only", i);
        dropped += here[i] == 0;
    }
    assert_in_range(dropped, ROWS * N / 4, ROWS * N / 3);
}

/* A kernel cannot fail: what has no answer becomes NaN, and memory outside stays alone. */
static void test_ids_out_of_range(void **state)
{
    int32_t ids[] = {1, 4, -1};
    float table[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[6], dtable[8];
    struct el_kernel_args forward = {.p = {ids, table, y}, .d = {3, 4, 2}};
    run_f32(EL_OP_EMBEDDING_FORWARD, &forward);
    assert_true(y[0] == 3 && y[1] == 4 && isnan(y[2]) && isnan(y[3]) && isnan(y[4]) && isnan(y[5]));
    float dy[] = {1, 2, 3, 4, 5, 6};
    struct el_kernel_args backward = {.p = {ids, dy, dtable}, .d = {3, 4, 2}};
    run_f32(EL_OP_EMBEDDING_BACKWARD, &backward);
    for (int i = 0; i < 8; i++) assert_true(dtable[i] == (i == 2 ? 1 : i == 3 ? 2 : 0));
    float logits[6] = {0}, loss, dlogits[6];
    struct el_kernel_args entropy = {.p = {logits, ids, &loss, dlogits}, .d = {3, 2}};
    run_f32(EL_OP_CROSS_ENTROPY, &entropy);
    assert_true(isnan(loss));
}

/* A gradient that is not finite must not vanish in whole numbers, and must stay in its own row. */
static void test_a_gradient_that_is_not_finite_shows(void **state)
{
    int32_t ids[] = {0, 1, 0};
    float dy[] = {1, 2, INFINITY}, dtable[2];
    struct el_kernel_args args = {.p = {ids, dy, dtable}, .d = {3, 2, 1}};
    run_f32(EL_OP_EMBEDDING_BACKWARD, &args);
    assert_true(isnan(dtable[0]) && dtable[1] == 2);
}

/* The reference's choices, as places go by them; where too few logits are numbers too. */
static void test_routes_of_what_is_no_number(void **state)
{
    enum { T = 5, E = 4 };
    float logits[T][E] = {{NAN, 1, NAN, 2},
                          {NAN, NAN, NAN, NAN},
                          {-INFINITY, NAN, -INFINITY, -INFINITY},
                          {INFINITY, 3, NAN, INFINITY},
                          {0, -INFINITY, 0, 0}};
    for (int k = 1; k <= E; k++) {
        float here[T * E], there[T * E];
        int32_t chosen[T * E], chosen_there[T * E];
        struct el_kernel_args args = {.p = {logits, NULL, here, chosen}, .d = {1, T, E, k}};
        assert_int_equal(el_kernels_reference()->find(EL_OP_ROUTE_FORWARD, EL_F32)->run(&args), EL_OK);
        args.p[2] = there, args.p[3] = chosen_there;
        run_f32(EL_OP_ROUTE_FORWARD, &args);
        assert_memory_equal(chosen, chosen_there, (size_t)(T * k) * sizeof *chosen);
        for (int i = 0; i < T * k; i++)
            assert_true(isnan(here[i]) ? isnan(there[i]) : fabsf(here[i] - there[i]) <= 1e-6f);
    }
}

/* Magnitudes far apart in one row: the unit goes by the largest, wherever it stands, and f64 keeps what lies 60 bits
 * below it in the second word. */
static void test_magnitudes_far_apart(void **state)
{
    static const struct el_cuda_native native;
    int32_t ids[] = {0, 0, 0, 1};
    float few[] = {1e-12f, 1e12f, -3e-12f, -2e12f, 1e-12f, 5e12f, 7, 8}, dfew[4];
    struct el_kernel_args f32 = {.p = {ids, few, dfew}, .d = {4, 2, 2}};
    run_f32(EL_OP_EMBEDDING_BACKWARD, &f32);
    assert_true(dfew[1] == 4e12f && dfew[2] == 7 && dfew[3] == 8);
    double terms[] = {1, 0x1p-60, -1, 0x1p-1000}, sums[2];
    struct el_kernel_args f64 = {.p = {ids, terms, sums}, .d = {4, 2, 1}, .native = &native};
    row_run(el_kernels_cuda()->find(EL_OP_EMBEDDING_BACKWARD, EL_F64), &f64, "embedding_backward f64");
    assert_true(sums[0] == 0x1p-60 && sums[1] == 0x1p-1000);
}

static void test_planted_faults_end_the_program(void **state)
{
    for (int planted = FIRST_PLANTED; planted < EL_PLANTED; planted++) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) {
            if (!freopen("/dev/null", "w", stderr)) _exit(1);
            el_planted_run((enum el_planted)planted);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) fail_msg("planted fault %d is not found", planted);
    }
}

static void test_loops_past_32_bits(void **state)
{
    if (el_loops_wrong()) fail_msg("%s", el_loops_wrong());
}

/* What is empty launches nothing; sums over nothing are 0. */
static void test_nothing_to_do(void **state)
{
    float w[6] = {1, 1, 1, 1, 1, 1}, dbias[2] = {1, 1};
    struct el_kernel_args fill = {.p = {NULL}, .d = {0}};
    run_f32(EL_OP_FILL, &fill);
    struct el_kernel_args weights = {.p = {NULL, NULL, w, dbias}, .d = {0, 3, 2}};
    run_f32(EL_OP_LINEAR_BACKWARD_WEIGHTS, &weights);
    for (int i = 0; i < 6; i++) assert_true(w[i] == 0);
    assert_true(dbias[0] == 0 && dbias[1] == 0);
    int32_t counts[2] = {0};
    struct el_kernel_args experts = {.p = {NULL, NULL, counts, w}, .d = {0, 1, 3, 2, 1, 1}};
    for (int i = 0; i < 6; i++) w[i] = 1;
    run_f32(EL_OP_GROUPED_FORWARD, &experts);
    run_f32(EL_OP_GROUPED_BACKWARD_DATA, &experts);
    assert_true(w[0] == 1 && w[5] == 1);
    run_f32(EL_OP_GROUPED_BACKWARD_WEIGHTS, &experts);
    for (int i = 0; i < 6; i++) assert_true(w[i] == 0);
}

/* Scores of 10,000: exp() of one is no number, so the largest is taken out first. The workspace is a number a row.
 */
static void test_attention_of_large_scores(void **state)
{
    float qkv[2][3] = {{100, 100, 3}, {100, 101, 5}}, dy[2] = {1, 2}, y[2], saved[2], dqkv[2][3];
    struct el_kernel_args forward = {.p = {qkv, y, saved}, .d = {1, 2, 1, 1}};
    run_f32(EL_OP_ATTENTION_FORWARD, &forward);
    assert_true(y[0] == 3 && y[1] == 5 && saved[0] == 10000 && saved[1] == 10100);
    struct el_kernel_args backward = {.p = {dy, qkv, saved, dqkv}, .d = {1, 2, 1, 1}};
    run_f32(EL_OP_ATTENTION_BACKWARD, &backward);
    assert_true(dqkv[0][2] == 1 && dqkv[1][2] == 2 && fabsf(dqkv[0][1]) + fabsf(dqkv[1][0]) < 1e-30f);
    struct el_kernel_args many = {.d = {64, 50, 3, 7}};
    struct el_workspace workspace;
    assert_int_equal(el_kernels_cuda()->find(EL_OP_ATTENTION_BACKWARD, EL_F32)->workspace(&many, &workspace), EL_OK);
    assert_int_equal(workspace.bytes, sizeof(float) * 64 * 3 * 50);
}

static bool tf32;

static void assert_way(enum el_op_kind op, bool cudnn, const char *text)
{
    static _Alignas(16) float memory[128];
    struct el_cuda_native native = {.tf32 = tf32};
    if (cudnn) assert_int_equal(el_cuda_native_open_cudnn(&native), EL_OK);
    const struct el_kernel *row = el_kernels_cuda()->find(op, EL_F32);
    struct el_kernel_args args = {.d = {1, 5, 1, 1, 1, 1, 1, 0}, .native = &native};
    struct el_workspace workspace;
    for (int i = 0; i < 4; i++) args.p[i] = memory;
    assert_int_equal(row->workspace(&args, &workspace), EL_OK);
    args.workspace_bytes = workspace.bytes;
    assert_int_equal(row->prepare(&args, &args.plan), EL_OK);
    assert_string_equal(row->describe(args.plan), text);
    row->release(args.plan);
    row->release(NULL);
    el_cuda_native_close(&native);
}

static void test_a_convolution_says_how_it_is_done(void **state)
{
    assert_way(EL_OP_CONV1D_FORWARD, false, "cuBLAS, a product over columns (no cuDNN)");
    assert_way(EL_OP_CONV2D_FORWARD, false, "cuBLAS, a product over columns (no cuDNN)");
    assert_way(EL_OP_CONV1D_BACKWARD_DATA, true, "cuDNN data algorithm 1, f32, 4096 bytes of scratch");
    assert_way(EL_OP_CONV2D_BACKWARD_WEIGHTS, true, "cuDNN weights algorithm 1, f32, 4096 bytes of scratch");
    tf32 = true;
    assert_way(EL_OP_CONV2D_BACKWARD_WEIGHTS, true, "cuDNN weights algorithm 1, tf32, 4096 bytes of scratch");
    setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
    assert_way(EL_OP_CONV2D_BACKWARD_WEIGHTS, true, "cuDNN weights algorithm 1, f32, 4096 bytes of scratch");
    unsetenv("NVIDIA_TF32_OVERRIDE");
    tf32 = false;
    cards_cudnn_set_useless(true);
    assert_way(EL_OP_CONV2D_FORWARD, true,
               "cuBLAS, a product over columns (cuDNN: none of 4 algorithms is deterministic, plain and within 1048620 "
               "bytes)");
    cards_cudnn_set_useless(false);
    assert_int_equal(cards_cudnn_descriptors(), 0);
}

/* cuDNN's statuses. */
enum { BAD_PARAM = 2000, SUBLIBRARY_LOADING_FAILED = 1008 };

/* What cuDNN promised and then cannot do goes the other way, and says so; any other failure is one. */
static void test_a_convolution_that_cudnn_gives_up(void **state)
{
    static _Alignas(16) float x[8] = {1, 2, 3, 4, 5}, w[4] = {2, 3}, y[4], scratch[1 << 19];
    const struct el_kernel *row = el_kernels_cuda()->find(EL_OP_CONV1D_BACKWARD_WEIGHTS, EL_F32);
    struct el_cuda_native native = {.cudnn = NULL};
    float bias[1];
    struct el_kernel_args args = {.d = {1, 5, 1, 1, 2},
                                  .p = {x, y, w, bias},
                                  .native = &native,
                                  .workspace = scratch,
                                  .workspace_bytes = sizeof scratch};
    for (int i = 0; i < 4; i++) y[i] = (float)(i + 1);
    assert_int_equal(el_cuda_native_open_cudnn(&native), EL_OK);
    assert_int_equal(row->prepare(&args, &args.plan), EL_OK);
    cards_cudnn_set_refusal(BAD_PARAM);
    assert_int_equal(row->run(&args), EL_ERR_INTERNAL);
    assert_non_null(strstr(row->describe(args.plan), "cuDNN weights"));
    cards_cudnn_set_refusal(SUBLIBRARY_LOADING_FAILED);
    for (int again = 0; again < 2; again++) {
        w[0] = w[1] = 7;
        assert_int_equal(row->run(&args), EL_OK);
        assert_true(w[0] == 1 + 4 + 9 + 16 && w[1] == 2 + 6 + 12 + 20);
        assert_non_null(
            strstr(row->describe(args.plan), "cuBLAS, a product over columns (cudnnConvolutionBackwardFilter: "));
        assert_int_equal(cards_cudnn_descriptors(), 0);
        cards_cudnn_set_refusal(0);
    }
    row->release(args.plan);
    el_cuda_native_close(&native);
}

RUN_TESTS(NULL, NULL, test_table_is_complete, test_f32, test_f64, test_bf16, test_many_tensors, test_values_of_a_step,
          test_f16, test_convolutions_by_cudnn, test_batch_norm_far_from_zero, test_dropout_drops_what_the_cpu_drops,
          test_ids_out_of_range, test_a_gradient_that_is_not_finite_shows, test_routes_of_what_is_no_number,
          test_magnitudes_far_apart, test_planted_faults_end_the_program, test_loops_past_32_bits, test_nothing_to_do,
          test_attention_of_large_scores, test_a_convolution_says_how_it_is_done,
          test_a_convolution_that_cudnn_gives_up)
