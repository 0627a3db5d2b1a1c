/* The cpu table's layout of conv2d's weights, and its rows.
 * f32 weights with filters and channels both multiples of 16 are stored as oneDNN's OIhw16i16o, which convolutions use
 * directly; reordering plain weights in every step would move as much memory as resnet50's convolutions in small
 * batches. The layout depends on the shape alone, so that any two hosts can add gradients. */
#pragma once

#include "kernels/kernels.h"

enum { EL_CONV2D_SIDE = 16, EL_CONV2D_BLOCK = EL_CONV2D_SIDE * EL_CONV2D_SIDE };

/* NULL if they are plain. */
const struct el_weights_layout *el_cpu_conv2d_layout(enum el_dtype dtype, const int64_t shape[4]);

/* NULL for other ops. By shape: our loops for few pixels, else oneDNN, else the reference on plain copies. */
const struct el_kernel *el_cpu_conv2d(enum el_op_kind op);

/* NULL for many pixels, plain weights, or without AVX-512. */
const struct el_kernel *el_cpu_conv2d_few(enum el_op_kind op, const struct el_kernel_args *args);
