/* Every op of every f32 table of this machine against the reference in f64 (test_kernels_cases.h says how close), and
 * the same bits on other threads. */
#include "tests/unit/test_kernels_many.h"

#include <pthread.h>

#include "kernels/bf16.h"

static void test_reference(void **state)
{
    /* It is slow, and its loops are the same at any size. */
    assert_true(check_rows(el_kernels_reference(), EL_F32, run_here, 0x1p-24, 1e6) > CASES / 2);
    assert_true(check_rows(el_kernels_reference(), EL_BF16, run_here, 0x1p-24, 1e6) > CASES / 2);
}

static void test_cpu(void **state)
{
    print_message("cpu: %s\n", el_kernels_cpu_missing() ? el_kernels_cpu_missing() : el_kernels_cpu_library());
    assert_int_equal(check_rows(el_kernels_cpu(), EL_F32, run_here, 0x1p-24, INFINITY), CASES);
}

/* By the processor's own products of bf16, where it has them. */
static void test_cpu_bf16(void **state)
{
    print_message("bf16: %s\n", el_kernels_cpu_no_bf16() ? el_kernels_cpu_no_bf16() : "by the processor");
    assert_int_equal(check_rows(el_kernels_cpu(), EL_BF16, run_here, 0x1p-24, INFINITY), CASES);
}

/* As on a processor that has no products of bf16: all is made of the cpu table's rows of f32, but casts. */
static const struct el_kernel *find_f32(enum el_op_kind op, enum el_dtype dtype)
{
    return el_kernels_cpu()->find(op, dtype);
}

static const struct el_bf16_way by_f32 = {find_f32, 1 << 15, el_bf16_move};
#define EL_BF16_WAY &by_f32
EL_OP_LIST(EL_BF16_FUNCTIONS)
static const struct el_kernel rows_by_f32[EL_OP_COUNT] = {EL_OP_LIST(EL_BF16_ROW)};

static const struct el_kernel *find_by_f32(enum el_op_kind op, enum el_dtype dtype)
{
    return op == EL_OP_CAST ? el_kernels_cpu()->find(op, dtype) : &rows_by_f32[op];
}

static void test_bf16_by_f32(void **state)
{
    const struct el_kernel_table table = {.name = "bf16 by f32", .find = find_by_f32};
    assert_int_equal(check_rows(&table, EL_BF16, run_here, 0x1p-24, INFINITY), CASES);
}

static void test_batch_norm_far_from_zero(void **state)
{
    check_batch_norm_far_from_zero(el_kernels_reference(), run_here);
    check_batch_norm_far_from_zero(el_kernels_cpu(), run_here);
}

static const struct el_dnnl_module *module;

/* What the cpu table does not have: test_cpu has the rest. */
static const struct el_kernel *find_in_module(enum el_op_kind op, enum el_dtype dtype)
{
    const struct el_kernel *row = module->find(op, dtype);
    return row == el_kernels_cpu()->find(op, dtype) ? NULL : row;
}

/* Where the vector loops do an op, the cpu table hides oneDNN's row; another machine uses it. */
static void test_dnnl(void **state)
{
    module = find_dnnl();
    if (!module) skip();
    const struct el_kernel_table table = {.name = "dnnl", .find = find_in_module};
    if (check_rows(&table, EL_F32, run_here, 0x1p-24, INFINITY) == 0) print_message("the cpu table has all its rows\n");
}

/* The shapes that observers are told against what the tests know of each op's operands. */
static void test_shapes(void **state)
{
    for (size_t i = 0; i < CASES; i++) {
        const struct test_case *c = &cases[i];
        struct operand known[EL_ARGS_POINTERS] = {0};
        struct el_op_operand told[EL_ARGS_POINTERS];
        if (c->op == EL_OP_COPY_COLUMNS) continue; /* its operands lie in wider ones, which is no matter of shape */
        int n = op_operands(c->op, c->d, known);
        assert_int_equal(el_op_operands(el_op_name(c->op), "f64", c->d, told), n);
        for (int k = 0; k < n; k++) {
            int64_t product = 1;
            for (int side = 0; side < told[k].n; side++) product *= told[k].d[side];
            if (product != known[k].n || told[k].written != operand_is_output(known[k].kind))
                fail_msg("%s: operand %s has %lld elements", el_op_name(c->op), told[k].name, (long long)product);
            assert_string_equal(told[k].dtype, operand_is_id(known[k].kind) ? "i32" : "f64");
        }
    }
    assert_int_equal(el_op_operands("no_such_op", "f32", cases[0].d, (struct el_op_operand[EL_ARGS_POINTERS]){0}), 0);
}

/* The library's own names of what it does a product by, in a record's words. */
static void test_dnnl_says_what_it_chose(void **state)
{
    void *plan = NULL;
    const struct el_dnnl_module *dnnl = find_dnnl();
    if (!dnnl) skip();
    const struct el_kernel *row = dnnl->find(EL_OP_LINEAR_FORWARD, EL_F32);
    float x[4 * 8] = {0}, w[2 * 8] = {0}, bias[2] = {0}, y[4 * 2];
    struct el_kernel_args args = {.p = {x, w, bias, y}, .d = {4, 8, 2}};
    struct el_workspace workspace = {0};
    assert_int_equal(row->workspace(&args, &workspace), EL_OK);
    args.workspace = aligned_alloc(64, (workspace.bytes + 64) / 64 * 64);
    assert_non_null(args.workspace);
    assert_int_equal(row->prepare(&args, &plan), EL_OK);
    const char *text = row->describe(plan);
    print_message("linear_forward: %s\n", text);
    assert_ptr_equal(strstr(text, "oneDNN: "), text);
    assert_true(strlen(text) > strlen("oneDNN: ") && !strstr(text, "unknown"));
    row->release(plan);
    free(args.workspace);
}

static void test_every_op_has_a_case_and_the_references_f64_row(void **state)
{
    for (int op = 0; op < EL_OP_COUNT; op++) {
        int found = 0;
        for (int i = 0; i < CASES; i++) found |= cases[i].op == (enum el_op_kind)op;
        if (!found) fail_msg("no case for %s", el_op_name((enum el_op_kind)op));
        assert_ptr_equal(el_kernels_cpu()->find((enum el_op_kind)op, EL_F64),
                         el_kernels_reference()->find((enum el_op_kind)op, EL_F64));
    }
}

/* A device's thread: sizes are asked for by the thread that captures, the rest happens here. */
struct worker {
    pthread_t thread;
    struct outcome outcomes[CASES];
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (int i = 0; i < CASES; i++) compute(el_kernels_cpu(), EL_F32, &cases[i], 0, run_here, &worker->outcomes[i]);
    return NULL;
}

static void test_threads_agree(void **state)
{
    enum { WORKERS = 2 };
    struct worker *workers = calloc(WORKERS, sizeof *workers);
    assert_non_null(workers);
    for (int i = 0; i < WORKERS; i++) assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (int i = 0; i < WORKERS; i++) assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    for (int i = 0; i < CASES; i++) {
        same_bits(&workers[1].outcomes[i], &workers[0].outcomes[i]);
        for (int j = 0; j < WORKERS; j++) outcome_free(&workers[j].outcomes[i]);
    }
    free(workers);
}

static void test_many_tensors(void **state)
{
    check_many(el_kernels_reference(), run_here);
    check_many(el_kernels_cpu(), run_here);
}

RUN_TESTS(NULL, NULL, test_every_op_has_a_case_and_the_references_f64_row, test_reference, test_shapes, test_cpu,
          test_cpu_bf16, test_bf16_by_f32, test_batch_norm_far_from_zero, test_dnnl, test_dnnl_says_what_it_chose,
          test_threads_agree, test_many_tensors)
