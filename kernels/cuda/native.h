/* What a CUDA kernel needs of the stream it runs on, and the table of the CUDA kernels. Plain C without CUDA's headers:
 * the program includes it, the module el_cuda.so defines it.
 *
 *     struct el_cuda_native native = {.stream = stream, .device = 0};    the device backend, once a stream
 *     el_cuda_native_open_cublas(&native); el_cuda_native_open_cudnn(&native);
 *     args.native = &native;  row->run(&args);                           the executor
 *     el_cuda_native_close(&native);
 *
 * Timing: run() enqueues on native->stream and returns; it neither allocates nor waits, so that a capturing stream
 * takes it too, once cuBLAS has memory of ours. workspace() needs no device. Threads: a native belongs to one host
 * thread at a time, whose current device is native->device; cuBLAS promises the same bits in every run only while a
 * handle serves one stream.
 */
#pragma once

#include <stdbool.h>

#include "kernels/kernels.h"

/* Operands that begin at multiples of so many bytes are all computed the same way: cuDNN wants no less. */
enum { EL_CUDA_ALIGNMENT = 16 };

struct el_cuda_native {
    void *stream;           /* cudaStream_t */
    void *cublas;           /* cublasHandle_t, set to that stream */
    void *cudnn;            /* cudnnHandle_t, set to that stream; NULL: convolutions are done by cuBLAS */
    void *cublas_workspace; /* what cuBLAS was given; NULL: it has its own */
    int device;
    bool tf32; /* matrix work in TF32 (10 bits of mantissa, sums in f32) instead of f32; set before the handles */
};

/* The CUDA table: every op in f32 and in f64. An id or a label out of its range gives NaN in what it would have chosen,
 * where other tables fail: a kernel cannot report. */
const struct el_kernel_table *el_kernels_cuda(void);

/* Make the library's handle on native->stream. The device must be current. cuDNN's does nothing where that is
 * missing. Each takes device memory of its own. Errors: EL_ERR_OOM, EL_ERR_INTERNAL with the call's name. */
enum el_status el_cuda_native_open_cublas(struct el_cuda_native *native);
enum el_status el_cuda_native_open_cudnn(struct el_cuda_native *native);

/* Gives cuBLAS device memory to work in, once: while a stream captures it would have to allocate its own. Errors: as
 * above. */
enum el_status el_cuda_native_give_cublas(struct el_cuda_native *native, size_t bytes);

/* Destroys both handles, and gives back what they were given; not the stream. */
void el_cuda_native_close(struct el_cuda_native *native);

/* "CUDA 13.0, cuBLAS 13.1.0, cuDNN 9.19.0": what was found at run time. */
const char *el_cuda_libraries(void);

/* Why cuDNN is missing, so that convolutions go without it; NULL where it is there. */
const char *el_cuda_cudnn_missing(void);
