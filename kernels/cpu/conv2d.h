/* How the cpu table stores the weights of conv2d, and its rows for those ops.
 *
 * Stored are f32 weights whose filters and channels are both multiples of 16: blocks of 16 channels by 16 filters, a
 * filter's elements last, which a vector of AVX-512 holds (oneDNN's OIhw16i16o). Its convolutions read this layout and
 * write gradients in it as they are, where plain weights would be re-ordered in every step: for resnet50 in small
 * batches that is as much memory as the convolutions themselves move. What it is depends on the shape alone, neither on
 * the processor nor on whether oneDNN is there, so that gradients of any two hosts can be added. */
#pragma once

#include "kernels/kernels.h"

enum { EL_CONV2D_SIDE = 16, EL_CONV2D_BLOCK = EL_CONV2D_SIDE * EL_CONV2D_SIDE };

/* NULL where they stand plain. */
const struct el_weights_layout *el_cpu_conv2d_layout(enum el_dtype dtype, const int64_t shape[4]);

/* NULL for other ops. Each does its work by what is fastest for its shape: loops of our own over few pixels, else
 * oneDNN, else the reference on plain copies of the weights. */
const struct el_kernel *el_cpu_conv2d(enum el_op_kind op);

/* The loops for few pixels, which need no plan; NULL where there are too many, where weights are not stored, and
 * without AVX-512. */
const struct el_kernel *el_cpu_conv2d_few(enum el_op_kind op, const struct el_kernel_args *args);
