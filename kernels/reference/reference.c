/* The reference table: each op's row for f32, f64 and bf16. */
#include "kernels/reference/reference.h"

#include "kernels/bf16.h"

static const struct el_kernel rows[EL_OP_COUNT][2] = {
#define EL_REFERENCE_ROW(op, name)                                                                                     \
    [op] = {[EL_F32] = {.run = el_reference_##name##_f32}, [EL_F64] = {.run = el_reference_##name##_f64}},
    EL_OP_LIST(EL_REFERENCE_ROW)
#undef EL_REFERENCE_ROW
};

static const struct el_kernel *find(enum el_op_kind op, enum el_dtype dtype);
static const struct el_bf16_way way = {find, 1 << 15, el_bf16_move};
#define EL_BF16_WAY &way
EL_OP_LIST(EL_BF16_FUNCTIONS)
static const struct el_kernel bf16_rows[EL_OP_COUNT] = {EL_OP_LIST(EL_BF16_ROW)};
static const struct el_kernel bf16_cast = {.run = el_reference_cast_bf16}, f16_cast = {.run = el_reference_cast_f16},
                              f16_fill = {.run = el_reference_fill_f16};

static const struct el_kernel *find(enum el_op_kind op, enum el_dtype dtype)
{
    if ((unsigned)op < EL_OP_COUNT && dtype == EL_BF16) return op == EL_OP_CAST ? &bf16_cast : &bf16_rows[op];
    if (dtype == EL_F16) return op == EL_OP_CAST ? &f16_cast : op == EL_OP_FILL ? &f16_fill : NULL;
    if ((unsigned)op >= EL_OP_COUNT || (dtype != EL_F32 && dtype != EL_F64)) return NULL;
    return &rows[op][dtype];
}

const struct el_kernel_table *el_kernels_reference(void)
{
    static const struct el_kernel_table table = {.name = "reference", .find = find};
    return &table;
}

enum el_status el_reference_check_index(const char *op, const int32_t *index, int64_t n, int64_t limit)
{
    for (int64_t i = 0; i < n; i++) {
        if (index[i] < 0 || index[i] >= limit)
            return el_fail(EL_ERR_INTERNAL, "%s: index %d at position %lld is not in 0..%lld", op, (int)index[i],
                           (long long)i, (long long)limit - 1);
    }
    return EL_OK;
}
