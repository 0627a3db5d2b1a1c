/* The convolution's weight gradient by AVX-512, offered only where the machine has it. */
#ifndef EL_KERNELS_CPU_CONV1D_H
#define EL_KERNELS_CPU_CONV1D_H

#include "kernels/kernels.h"

/* NULL without AVX-512. */
const struct el_kernel *el_cpu_conv1d_backward_weights(void);

#endif
