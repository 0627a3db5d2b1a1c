/* The types of an op's operands, by its row in shapes.c: the op's own, or that which the row or the arguments say. */
#pragma once

#include "kernels/kernels.h"

enum el_dtype el_op_operand_dtype(enum el_op_kind op, enum el_dtype dtype, const struct el_kernel_args *args,
                                  int operand);
