/* The type of an op's operand, from its row in shapes.c. */
#pragma once

#include "kernels/kernels.h"

enum el_dtype el_op_operand_dtype(enum el_op_kind op, enum el_dtype dtype, const struct el_kernel_args *args,
                                  int operand);
