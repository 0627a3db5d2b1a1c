/* Element types in a program's memory: a place that two ops use with different types would be misread silently.
 * Checked in sanitizer builds only. */
#include <stdlib.h>

#include "kernels/shapes.h"
#include "runtime/device/internal.h"

enum { CHAINS = 1024 };

struct place {
    struct place *next;
    const struct el_buffer *buffer;
    uintptr_t begin, end;
    enum el_dtype dtype;
};

struct el_types {
    struct place *chains[CHAINS];
};

static enum el_status check(struct el_types *types, const struct el_kernel_op *op, const struct place *own)
{
    struct place **chain = &types->chains[(uintptr_t)own->buffer / sizeof *own->buffer % CHAINS], *other = *chain;
    for (; other; other = other->next) {
        if (other->buffer != own->buffer || other->begin >= own->end || own->begin >= other->end) continue;
        if (other->dtype != own->dtype)
            return el_fail(EL_ERR_INTERNAL, "%s of '%s' takes '%s' for %s, which another op has as %s",
                           el_op_name(op->op), op->head.label ? op->head.label : "", own->buffer->name,
                           el_dtype_name(own->dtype), el_dtype_name(other->dtype));
        if (other->begin <= own->begin && own->end <= other->end) return EL_OK;
    }
    if (!(other = malloc(sizeof *other))) return el_fail_errno("an op's types");
    *other = *own;
    other->next = *chain;
    *chain = other;
    return EL_OK;
}

static enum el_status check_tensor(struct el_types *types, const struct el_kernel_op *op, const struct el_view *views,
                                   int n_views, const int64_t *d)
{
    struct el_op_operand operands[EL_ARGS_POINTERS];
    const int n = el_op_operands(el_op_name(op->op), el_dtype_name(op->dtype), d, operands);
    for (int i = 0; i < n && i < n_views; i++) {
        const enum el_dtype dtype = el_op_operand_dtype(op->op, op->dtype, &op->args, i);
        const size_t bytes = (size_t)el_operand_count(&operands[i]) * el_dtype_bytes(dtype);
        if (!views[i].buffer) continue;
        EL_TRY(check(
            types, op,
            &(struct place){
                .buffer = views[i].buffer, .begin = views[i].offset, .end = views[i].offset + bytes, .dtype = dtype}));
    }
    return EL_OK;
}

enum el_status el_types_check(struct el_program *program, const struct el_kernel_op *op)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    if (!program->types && !(program->types = calloc(1, sizeof *program->types))) return el_fail_errno("a program");
    for (int t = 0; t < op->n_tensors; t++)
        EL_TRY(check_tensor(program->types, op, op->tensors[t].views, EL_TENSOR_POINTERS,
                            (const int64_t[EL_ARGS_SIZES]){op->tensors[t].n}));
    if (op->n_tensors == 0) EL_TRY(check_tensor(program->types, op, op->views, EL_ARGS_POINTERS, op->args.d));
#else
    (void)program, (void)op, (void)check_tensor;
#endif
    return EL_OK;
}

void el_types_free(struct el_types *types)
{
    for (int c = 0; types && c < CHAINS; c++)
        for (struct place *next, *place = types->chains[c]; place; place = next) {
            next = place->next;
            free(place);
        }
    free(types);
}
