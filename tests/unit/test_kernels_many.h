/* What a device's table has beside the cases. Ops of many tensors: the bits of as many ops of one, whether a row takes
 * them at once or not. Values of a step, as a graph gives them: the bits of the step itself. Casts to f16 and back: the
 * reference's bits. Runners get operands as they are. */
#pragma once

#include "tests/unit/test_kernels_cases.h"

#include "runtime/base/half.h"

/* Where operands lie; a test of GPUs gives memory of the host that they reach. */
static struct {
    void *(*take)(size_t n, size_t bytes); /* zeros */
    void (*give)(void *memory);
} many_memory = {calloc, free};

/* More than a launch of CUDA's takes; some are empty, and one is larger than a group of bf16's. */
enum { MANY = 130 };

static inline int64_t many_size(int t)
{
    return t == 77 ? 40000 : t * 37 % 700;
}

static inline enum el_dtype type_named(const char *name)
{
    enum el_dtype dtype = EL_F32;
    while (strcmp(el_dtype_name(dtype), name) != 0) dtype++;
    return dtype;
}

/* The operands of tensor t, and what they are of; a sum is the first tensor's. */
static inline void fill_many(enum el_op_kind op, enum el_dtype dtype, int t, struct el_kernel_tensor *tensors,
                             size_t bytes[EL_ARGS_POINTERS])
{
    struct operand operands[EL_ARGS_POINTERS];
    struct el_op_operand told[EL_ARGS_POINTERS];
    const int64_t d[EL_ARGS_SIZES] = {many_size(t)};
    const int sum = op == EL_OP_SUM_SQUARES ? 1 : op == EL_OP_CLIP ? 0 : -1;
    int n = op_operands(op, d, operands);
    el_op_operands(el_op_name(op), el_dtype_name(dtype), d, told);
    tensors[t].n = d[0];
    for (int i = 0; i < n; i++) {
        const enum el_dtype type = op == EL_OP_CAST && i == 0 ? EL_F32 : type_named(told[i].dtype);
        bytes[i] = (size_t)operands[i].n * el_dtype_bytes(type);
        tensors[t].p[i] = i == sum && t > 0 ? tensors[0].p[i] : many_memory.take(bytes[i] + 1, 1);
        assert_non_null(tensors[t].p[i]);
        if (i != sum || t == 0) operand_fill(&operands[i], 10 * t + i, 0, type, 0, tensors[t].p[i]);
    }
}

static inline void check_many_of(const struct el_kernel_table *table, enum el_op_kind op, enum el_dtype dtype,
                                 row_runner runner)
{
    static struct el_kernel_tensor one[MANY], many[MANY];
    const struct el_kernel_args scalars = {.s = {1e-3, 1e-4, 0.9, 0.999, 1e-8, 0.1}, .step = 1000};
    struct el_kernel_args all = scalars;
    size_t bytes[MANY][EL_ARGS_POINTERS] = {{0}};
    struct outcome out = {.n = 0};
    snprintf(out.name, sizeof out.name, "%s: %s of many %s", table->name, el_op_name(op), el_dtype_name(dtype));
    memset(one, 0, sizeof one);
    memset(many, 0, sizeof many);
    for (int t = 0; t < MANY; t++) {
        struct el_kernel_args args = scalars;
        fill_many(op, dtype, t, one, bytes[t]);
        fill_many(op, dtype, t, many, bytes[t]);
        memcpy(args.p, one[t].p, sizeof one[t].p);
        args.d[0] = one[t].n;
        all.d[0] += one[t].n;
        runner(table->find(op, dtype), &args, &out);
    }
    memcpy(all.p, many[0].p, sizeof many[0].p);
    all.tensors = many;
    all.n_tensors = MANY;
    runner(table->find(op, dtype), &all, &out);
    for (int t = MANY - 1; t >= 0; t--)
        for (int i = 0; i < EL_TENSOR_POINTERS; i++) {
            if (bytes[t][i] && memcmp(one[t].p[i], many[t].p[i], bytes[t][i]))
                fail_msg("%s: operand %d of tensor %d differs", out.name, i, t);
            if (t > 0 && one[t].p[i] == one[0].p[i]) continue;
            if (one[t].p[i]) many_memory.give(one[t].p[i]);
            if (many[t].p[i]) many_memory.give(many[t].p[i]);
        }
}

static inline void check_many(const struct el_kernel_table *table, row_runner runner)
{
    static const enum el_op_kind ops[] = {EL_OP_SGD,  EL_OP_MOMENTUM, EL_OP_ADAM, EL_OP_SUM_SQUARES,
                                          EL_OP_CLIP, EL_OP_SCALE,    EL_OP_CAST, EL_OP_FILL};
    static const enum el_dtype types[] = {EL_F32, EL_F64, EL_BF16};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        for (int k = 0; k < 3; k++) check_many_of(table, ops[i], types[k], runner);
}

static row_runner step_runner;
static int by_values;

/* With the step's values, and another step. */
static inline void run_by_values(const struct el_kernel *row, struct el_kernel_args *args, struct outcome *out)
{
    char *memory = many_memory.take(2, EL_STEP_VALUES_BYTES);
    void *values = memory + -(uintptr_t)memory % EL_STEP_VALUES_BYTES;
    if (row->step_values && row->step_values(args, values)) {
        args->step_values = values;
        args->step += 7;
        by_values++;
    }
    step_runner(row, args, out);
    many_memory.give(memory);
}

/* Returns how many cases depend on the step. */
static inline int check_step_values(const struct el_kernel_table *table, enum el_dtype dtype, row_runner runner)
{
    by_values = 0;
    step_runner = runner;
    for (int i = 0; i < CASES; i++) {
        const struct el_kernel *row = table->find(cases[i].op, dtype);
        struct outcome plain, valued;
        if (!row || !row->step_values) continue;
        compute(table, dtype, &cases[i], 0, runner, &plain);
        compute(table, dtype, &cases[i], 0, run_by_values, &valued);
        same_bits(&valued, &plain);
        outcome_free(&plain);
        outcome_free(&valued);
    }
    return by_values;
}

/* Subnormal numbers and those beyond the largest one too; half of each, so that no product is rounded. */
static inline void check_f16(const struct el_kernel_table *table, row_runner runner)
{
    enum { N = 700 };
    float *x = many_memory.take(2 * N, sizeof *x), *back = x + N, want_back[N];
    uint16_t *half = many_memory.take(2 * N, sizeof *half), *filled = half + N, want[N] = {0};
    struct outcome out = {.name = "casts of f16"};
    for (int i = 0; i < N; i++) x[i] = ldexpf((float)operand_value(IN, 0, i), i % 48 - 28);
    for (int acc = 0; acc < 2; acc++) {
        struct el_kernel_args to = {.p = {x, half}, .d = {N}, .s = {0.5, acc}, .k = {EL_F32}};
        struct el_kernel_args from = {.p = {half, back}, .d = {N}, .s = {0.5, acc}, .k = {EL_F16}}, here;
        runner(table->find(EL_OP_CAST, EL_F16), &to, &out);
        runner(table->find(EL_OP_CAST, EL_F32), &from, &out);
        here = (struct el_kernel_args){.p = {x, want}, .d = {N}, .s = {0.5, acc}, .k = {EL_F32}};
        assert_int_equal(el_kernels_reference()->find(EL_OP_CAST, EL_F16)->run(&here), EL_OK);
        here = (struct el_kernel_args){.p = {want, want_back}, .d = {N}, .s = {0.5, acc}, .k = {EL_F16}};
        assert_int_equal(el_kernels_reference()->find(EL_OP_CAST, EL_F32)->run(&here), EL_OK);
        assert_memory_equal(half, want, sizeof want);
        assert_memory_equal(back, want_back, sizeof want_back);
    }
    struct el_kernel_args fill = {.p = {filled}, .d = {N}, .s = {-1.5}};
    runner(table->find(EL_OP_FILL, EL_F16), &fill, &out);
    for (int i = 0; i < N; i++) assert_true(el_f32_of_f16(filled[i]) == -1.5f);
    many_memory.give(x);
    many_memory.give(half);
}
