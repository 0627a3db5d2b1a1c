/* The fast table: vector loops, oneDNN's module, and else the reference. */
#include "kernels/cpu/cpu.h"

#include <pthread.h>
#include <stdio.h>

#include "kernels/bf16.h"
#include "kernels/cpu/conv2d.h"
#include "kernels/cpu/tiles.h"
#include "runtime/base/module.h"

static const struct el_kernel loops[EL_OP_COUNT] = {
#define EL_CPU_ROW(op, name) [op] = {.run = el_cpu_##name},
    EL_CPU_LIST(EL_CPU_ROW)};

static const struct el_kernel bf16_loops[EL_OP_COUNT] = {EL_CPU_BF16_LIST(EL_CPU_ROW)};
#undef EL_CPU_ROW
static const struct el_kernel f16_cast = {.run = el_cpu_cast_f16};

static const struct el_kernel *find(enum el_op_kind op, enum el_dtype dtype);
static const struct el_bf16_way way = {find, 1 << 15, el_bf16_move};
#define EL_BF16_WAY &way
EL_OP_LIST(EL_BF16_FUNCTIONS)
static const struct el_kernel bf16_rows[EL_OP_COUNT] = {EL_OP_LIST(EL_BF16_ROW)};

/* Written once under `opened`, then only read. */
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static const struct el_dnnl_module *dnnl;
static char missing[EL_ERROR_TEXT_BYTES];

static void open_dnnl(void)
{
    void *symbol;
    if (el_module_open("dnnl", EL_DNNL_SYMBOL, &symbol) == EL_OK) {
        dnnl = symbol;
        return;
    }
    snprintf(missing, sizeof missing, "%s", el_error_message());
}

const struct el_kernel *el_cpu_dnnl(enum el_op_kind op, enum el_dtype dtype)
{
    pthread_once(&opened, open_dnnl);
    return dnnl ? dnnl->find(op, dtype) : NULL;
}

const char *el_kernels_cpu_no_bf16(void)
{
#if defined __x86_64__ && defined __GNUC__
    if (__builtin_cpu_supports("avx512bf16")) return el_kernels_cpu_missing();
#endif
    return "this processor has no AVX512-BF16";
}

static const struct el_kernel *find_bf16(enum el_op_kind op)
{
    const struct el_kernel *row = bf16_loops[op].run ? &bf16_loops[op] : NULL;
    if (op == EL_OP_ATTENTION_FORWARD && el_tiles_have_pairs()) row = &el_cpu_attention_forward[1];
    if (op == EL_OP_ATTENTION_BACKWARD && el_tiles_have_pairs()) row = &el_cpu_attention_backward[1];
    if (op == EL_OP_CROSS_ENTROPY) row = &el_cpu_cross_entropy_bf16;
    if (!row && !el_kernels_cpu_no_bf16()) row = el_cpu_dnnl(op, EL_BF16);
    return row ? row : &bf16_rows[op];
}

static const struct el_kernel *find(enum el_op_kind op, enum el_dtype dtype)
{
    if (dtype == EL_F32 && (unsigned)op < EL_OP_COUNT) {
        if (loops[op].run) return &loops[op];
        if (op == EL_OP_ATTENTION_FORWARD) return el_cpu_attention_forward;
        if (op == EL_OP_ATTENTION_BACKWARD) return el_cpu_attention_backward;
        const struct el_kernel *row = op == EL_OP_CONV1D_BACKWARD_WEIGHTS ? el_cpu_conv1d_backward_weights() : NULL;
        if (!row) row = el_cpu_conv2d(op);
        if (!row) row = el_cpu_blas(op);
        if (!row) row = el_cpu_dnnl(op, EL_F32);
        if (row) return row;
    }
    if (dtype == EL_BF16 && (unsigned)op < EL_OP_COUNT) return find_bf16(op);
    if (dtype == EL_F16 && op == EL_OP_CAST) return &f16_cast;
    return el_kernels_reference()->find(op, dtype);
}

const struct el_kernel_table *el_kernels_cpu(void)
{
    static const struct el_kernel_table table = {.name = "cpu", .find = find, .weights = el_cpu_conv2d_layout};
    return &table;
}

const char *el_kernels_cpu_missing(void)
{
    pthread_once(&opened, open_dnnl);
    return dnnl ? NULL : missing;
}

const char *el_kernels_cpu_library(void)
{
    pthread_once(&opened, open_dnnl);
    return dnnl ? dnnl->library() : "";
}
