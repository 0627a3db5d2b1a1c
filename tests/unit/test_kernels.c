/* Every op of every f32 table against the reference in f64, over sizes of one, odd sizes and the models' own; with and
 * without acc, in place, off the cache line, between guard words; the same bits again, and on other threads.
 *
 * Tolerance. A sum of K products in f32, in any order, errs by about sqrt(K) roundings of its largest partial sum (the
 * roundings' signs are independent), and at most by K. Each element may be off by 4 (sqrt(K) + 8) half-ulps of the
 * largest element of its tensor: the factor 4 because the largest of millions of elements lies some 5 sigma out, the 8
 * for the few roundings that are not in a sum. A wrong term is off by 1/sqrt(K) of the largest element: ten
 * thousand times as much. */
#include "tests/unit/test_kernels_common.h"

#include <math.h>
#include <pthread.h>

#include "kernels/cpu/dnnl/dnnl_module.h"
#include "runtime/base/module.h"

struct test_case {
    enum el_op_kind op;
    int64_t d[EL_ARGS_SIZES];
    double s[EL_ARGS_SCALARS];
    int in_place; /* p[its last] is p[0] */
    uint64_t step;
};

#define LINEAR(...)                                                                                                    \
    {EL_OP_LINEAR_FORWARD, {__VA_ARGS__}, {0}, 0, 0}, {EL_OP_LINEAR_FORWARD, {__VA_ARGS__}, {1}, 0, 0},                \
        {EL_OP_LINEAR_BACKWARD_DATA, {__VA_ARGS__}, {0}, 0, 0},                                                        \
        {EL_OP_LINEAR_BACKWARD_DATA, {__VA_ARGS__}, {1}, 0, 0},                                                        \
        {EL_OP_LINEAR_BACKWARD_WEIGHTS, {__VA_ARGS__}, {0}, 0, 0},                                                     \
    {                                                                                                                  \
        EL_OP_LINEAR_BACKWARD_WEIGHTS, {__VA_ARGS__}, {1}, 0, 0                                                        \
    }
#define CONV1D(...)                                                                                                    \
    {EL_OP_CONV1D_FORWARD, {__VA_ARGS__}, {0}, 0, 0}, {EL_OP_CONV1D_FORWARD, {__VA_ARGS__}, {1}, 0, 0},                \
        {EL_OP_CONV1D_BACKWARD_DATA, {__VA_ARGS__}, {0}, 0, 0},                                                        \
        {EL_OP_CONV1D_BACKWARD_DATA, {__VA_ARGS__}, {1}, 0, 0},                                                        \
        {EL_OP_CONV1D_BACKWARD_WEIGHTS, {__VA_ARGS__}, {0}, 0, 0},                                                     \
    {                                                                                                                  \
        EL_OP_CONV1D_BACKWARD_WEIGHTS, {__VA_ARGS__}, {1}, 0, 0                                                        \
    }
#define EMBEDDING(...)                                                                                                 \
    {EL_OP_EMBEDDING_FORWARD, {__VA_ARGS__}, {0}, 0, 0}, {EL_OP_EMBEDDING_BACKWARD, {__VA_ARGS__}, {0}, 0, 0},         \
    {                                                                                                                  \
        EL_OP_EMBEDDING_BACKWARD, {__VA_ARGS__}, {1}, 0, 0                                                             \
    }
#define MAX_TIME(...)                                                                                                  \
    {EL_OP_MAX_TIME_FORWARD, {__VA_ARGS__}, {0}, 0, 0},                                                                \
    {                                                                                                                  \
        EL_OP_MAX_TIME_BACKWARD, {__VA_ARGS__}, {0}, 0, 0                                                              \
    }
#define LOSS(...)                                                                                                      \
    {EL_OP_CROSS_ENTROPY, {__VA_ARGS__}, {0}, 0, 0}, {EL_OP_MSE, {__VA_ARGS__}, {0}, 0, 0},                            \
    {                                                                                                                  \
        EL_OP_COUNT_CORRECT, {__VA_ARGS__}, {0}, 0, 0                                                                  \
    }
#define ELEMENTS(n)                                                                                                    \
    {EL_OP_RELU_BACKWARD, {n}, {0}, 0, 0}, {EL_OP_RELU_BACKWARD, {n}, {0}, 1, 0}, {EL_OP_SCALE, {n}, {0.3}, 0, 0},     \
        {EL_OP_SCALE, {n}, {0.3}, 1, 0}, {EL_OP_ADD, {n}, {0}, 0, 0}, {EL_OP_FILL, {n}, {0.3}, 0, 0},                  \
        {EL_OP_SGD, {n}, {0.1}, 0, 0}, {EL_OP_MOMENTUM, {n}, {0.1, 0.9}, 0, 0},                                        \
        {EL_OP_ADAM, {n}, {1e-3, 0.9, 0.999, 1e-8}, 0, 0},                                                             \
    {                                                                                                                  \
        EL_OP_ADAM, {n}, {1e-3, 0.9, 0.999, 1e-8}, 0, 1000                                                             \
    }
#define DROPOUT(...)                                                                                                   \
    {EL_OP_DROPOUT, {__VA_ARGS__}, {0.5}, 0, 3}, {EL_OP_DROPOUT, {__VA_ARGS__}, {0.1}, 1, 0},                          \
    {                                                                                                                  \
        EL_OP_DROPOUT, {__VA_ARGS__}, {0}, 0, 0                                                                        \
    }
#define COPY(...)                                                                                                      \
    {EL_OP_COPY_COLUMNS, {__VA_ARGS__}, {0}, 0, 0},                                                                    \
    {                                                                                                                  \
        EL_OP_COPY_COLUMNS, {__VA_ARGS__}, {1}, 0, 0                                                                   \
    }

static const struct test_case cases[] = {
    LINEAR(1, 1, 1),
    LINEAR(1, 7, 1),
    LINEAR(5, 1, 3),
    LINEAR(3, 17, 33),
    LINEAR(2, 10, 5),
    LINEAR(64, 300, 2),
    LINEAR(13, 1024, 10),
    LINEAR(64, 1024, 1024),
    LINEAR(16, 3, 65),
    LINEAR(33, 200, 150),
    LINEAR(1, 130, 70),
    CONV1D(1, 1, 1, 1, 1),
    CONV1D(1, 5, 1, 1, 5),
    CONV1D(2, 7, 3, 5, 2),
    CONV1D(3, 9, 17, 33, 4),
    CONV1D(1, 6, 300, 100, 3),
    CONV1D(5, 64, 128, 100, 3),
    CONV1D(5, 64, 128, 100, 4),
    CONV1D(5, 64, 128, 100, 5),
    CONV1D(64, 64, 128, 100, 3),
    EMBEDDING(1, 1, 1),
    EMBEDDING(50, 7, 3),
    EMBEDDING(33, 100, 17),
    EMBEDDING(4096, 20000, 128),
    MAX_TIME(1, 1, 1),
    MAX_TIME(2, 3, 1),
    MAX_TIME(3, 7, 65),
    MAX_TIME(2, 5, 64),
    MAX_TIME(64, 62, 100),
    LOSS(1, 1),
    LOSS(1, 2),
    LOSS(7, 3),
    LOSS(64, 10),
    LOSS(5, 131),
    ELEMENTS(1),
    ELEMENTS(15),
    ELEMENTS(1003),
    ELEMENTS(100000),
    DROPOUT(1, 1, 0, 1),
    DROPOUT(3, 17, 2, 1),
    DROPOUT(64, 300, 1, 2),
    COPY(1, 1, 1, 1),
    COPY(3, 5, 5, 9),
    COPY(64, 100, 300, 100),
    {EL_OP_MAX_NORM, {1, 1}, {0.1}, 0, 0},
    {EL_OP_MAX_NORM, {7, 13}, {2}, 0, 0},
    {EL_OP_MAX_NORM, {100, 300}, {9.9}, 0, 0},
    {EL_OP_MAX_NORM, {2, 300}, {0}, 0, 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* The longest sum that makes one element of an output. */
static double terms(const struct test_case *c)
{
    const int64_t *d = c->d;
    switch (c->op) {
    case EL_OP_LINEAR_FORWARD:
        return (double)d[1];
    case EL_OP_LINEAR_BACKWARD_DATA:
        return (double)d[2];
    case EL_OP_LINEAR_BACKWARD_WEIGHTS:
        return (double)d[0];
    case EL_OP_CONV1D_FORWARD:
        return (double)(d[2] * d[4]);
    case EL_OP_CONV1D_BACKWARD_DATA:
        return (double)(d[3] * d[4]);
    case EL_OP_CONV1D_BACKWARD_WEIGHTS:
        return (double)(d[0] * (d[1] - d[4] + 1));
    case EL_OP_EMBEDDING_BACKWARD:
        return (double)d[0];
    default:
        return 1;
    }
}

/* Whether OUT operands are read: ops with acc as their only scalar. */
static int accumulates(const struct test_case *c)
{
    switch (c->op) {
    case EL_OP_LINEAR_BACKWARD_DATA:
    case EL_OP_LINEAR_BACKWARD_WEIGHTS:
    case EL_OP_CONV1D_BACKWARD_DATA:
    case EL_OP_CONV1D_BACKWARD_WEIGHTS:
    case EL_OP_EMBEDDING_BACKWARD:
        return c->s[0] != 0;
    default:
        return 0;
    }
}

/* One case's operands in one data type, and what a run made of them. */
struct outcome {
    int n;
    struct operand operands[EL_ARGS_POINTERS];
    struct guarded tensors[EL_ARGS_POINTERS];
    char name[160];
};

static void outcome_free(struct outcome *out)
{
    for (int i = 0; i < out->n; i++)
        if (out->tensors[i].whole) guarded_free(&out->tensors[i], out->name);
}

static void fill_tensor(const struct test_case *c, const struct operand *o, int index, enum el_dtype dtype,
                        struct guarded *tensor)
{
    if ((o->kind == OUT || o->kind == OUT_ID) && !accumulates(c))
        memset(tensor->data, 0xff, tensor->bytes); /* NaN: what is not written shows */
    else
        operand_fill(o, index, c->d[1], dtype, tensor->data);
}

static void compute(const struct el_kernel_table *table, enum el_dtype dtype, const struct test_case *c, size_t skew,
                    struct outcome *out)
{
    struct el_kernel_args args = {.step = c->step, .k = {11, 4}};
    memcpy(args.d, c->d, sizeof args.d);
    memcpy(args.s, c->s, sizeof args.s);
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s %s %s d: %lld %lld %lld %lld %lld s: %g%s", table->name,
             el_dtype_name(dtype), el_op_name(c->op), (long long)c->d[0], (long long)c->d[1], (long long)c->d[2],
             (long long)c->d[3], (long long)c->d[4], c->s[0], c->in_place ? " in place" : "");
    out->n = op_operands(c->op, c->d, out->operands);
    for (int i = 0; i < out->n; i++) {
        const struct operand *o = &out->operands[i];
        if (c->in_place && i == out->n - 1) {
            args.p[i] = args.p[0];
            break;
        }
        size_t bytes = (size_t)o->n * el_dtype_bytes(operand_is_id(o->kind) ? EL_I32 : dtype);
        out->tensors[i] = guarded_alloc(bytes, skew * el_dtype_bytes(dtype));
        fill_tensor(c, o, i, dtype, &out->tensors[i]);
        args.p[i] = out->tensors[i].data;
    }
    row_run(table->find(c->op, dtype), &args, out->name);
}

/* The bytes of output i, wherever it lies. */
static const void *output(const struct outcome *out, int i)
{
    return out->tensors[i].data ? out->tensors[i].data : out->tensors[0].data;
}

static void compare_reals(const struct test_case *c, const struct outcome *got, const struct outcome *want, int i)
{
    const float *g = output(got, i);
    const double *w = output(want, i);
    double largest = 0;
    for (int64_t j = 0; j < got->operands[i].n; j++) largest = fmax(largest, fabs(w[j]));
    double allowed = 4 * (sqrt(terms(c)) + 8) * 0x1p-24 * largest;
    for (int64_t j = 0; j < got->operands[i].n; j++)
        if (!(fabs((double)g[j] - w[j]) <= allowed))
            fail_msg("%s: output %d, element %lld is %.9g, should be %.9g within %.2g", got->name, i, (long long)j,
                     (double)g[j], w[j], allowed);
}

static void compare(const struct test_case *c, const struct outcome *got, const struct outcome *want)
{
    for (int i = 0; i < got->n; i++) {
        if (!operand_is_output(got->operands[i].kind)) continue;
        if (!operand_is_id(got->operands[i].kind))
            compare_reals(c, got, want, i);
        else if (memcmp(output(got, i), output(want, i), (size_t)got->operands[i].n * sizeof(int32_t)))
            fail_msg("%s: output %d differs", got->name, i);
    }
}

static void same_bits(const struct outcome *a, const struct outcome *b)
{
    for (int i = 0; i < a->n; i++)
        if (a->tensors[i].whole && memcmp(a->tensors[i].data, b->tensors[i].data, a->tensors[i].bytes))
            fail_msg("%s: operand %d differs from the first run's", a->name, i);
}

/* Checks the cases whose rows the table has; returns how many. */
static int check_table(const struct el_kernel_table *table)
{
    int checked = 0;
    for (int i = 0; i < CASES; i++) {
        if (!table->find(cases[i].op, EL_F32)) continue;
        checked++;
        struct test_case plain = cases[i];
        plain.in_place = 0;
        struct outcome want, got, again;
        compute(el_kernels_reference(), EL_F64, &plain, 0, &want);
        compute(table, EL_F32, &cases[i], 0, &got);
        compare(&cases[i], &got, &want);
        compute(table, EL_F32, &cases[i], 0, &again);
        same_bits(&again, &got);
        outcome_free(&again);
        compute(table, EL_F32, &cases[i], 1, &again);
        compare(&cases[i], &again, &want);
        outcome_free(&again);
        outcome_free(&got);
        outcome_free(&want);
    }
    return checked;
}

static void test_reference(void **state)
{
    (void)state;
    assert_int_equal(check_table(el_kernels_reference()), CASES);
}

static void test_cpu(void **state)
{
    (void)state;
    print_message("cpu: %s\n", el_kernels_cpu_lack() ? el_kernels_cpu_lack() : el_kernels_cpu_library());
    assert_int_equal(check_table(el_kernels_cpu()), CASES);
}

static const struct el_dnnl_module *module;

static const struct el_kernel *find_in_module(enum el_op_kind op, enum el_dtype dtype)
{
    return dtype == EL_F32 ? module->find(op) : NULL;
}

/* Where the vector loops do an op, the cpu table hides oneDNN's row; another machine uses it. */
static void test_dnnl(void **state)
{
    (void)state;
    void *symbol;
    if (el_module_open("dnnl", EL_DNNL_SYMBOL, &symbol) != EL_OK) {
        print_message("%s\n", el_error_message());
        skip();
    }
    module = symbol;
    const struct el_kernel_table table = {.name = "dnnl", .find = find_in_module};
    assert_true(check_table(&table) > 0);
}

static void test_every_op_has_a_case(void **state)
{
    (void)state;
    for (int op = 0; op < EL_OP_COUNT; op++) {
        int found = 0;
        for (int i = 0; i < CASES; i++) found |= cases[i].op == (enum el_op_kind)op;
        if (!found) fail_msg("no case for %s", el_op_name((enum el_op_kind)op));
    }
}

static void test_f64_rows_are_the_references(void **state)
{
    (void)state;
    for (int op = 0; op < EL_OP_COUNT; op++)
        assert_ptr_equal(el_kernels_cpu()->find((enum el_op_kind)op, EL_F64),
                         el_kernels_reference()->find((enum el_op_kind)op, EL_F64));
}

/* A device's thread: sizes are asked for by the thread that captures, the rest happens here. */
struct worker {
    pthread_t thread;
    struct outcome outcomes[CASES];
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (int i = 0; i < CASES; i++) compute(el_kernels_cpu(), EL_F32, &cases[i], 0, &worker->outcomes[i]);
    return NULL;
}

static void test_threads_agree(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_has_a_case),
        cmocka_unit_test(test_f64_rows_are_the_references),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_dnnl),
        cmocka_unit_test(test_threads_agree),
    };
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
