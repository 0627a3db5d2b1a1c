/* What a CUDA kernel needs of its stream, and the CUDA table, in plain C: the program includes it, the module
 * el_cuda.so implements it.
 *
 *     struct el_cuda_native native = {.stream = stream, .device = 0};    the device backend, once per stream
 *     el_cuda_native_open_cublas(&native); el_cuda_native_open_cudnn(&native);
 *     args.native = &native;  row->run(&args);                           the executor
 *     el_cuda_native_close(&native);
 *
 * run() enqueues on native->stream; it neither allocates nor waits, so that a stream can capture it, once cuBLAS has
 * memory of ours. Threads: a native belongs to one host thread at a time, with native->device current; cuBLAS is
 * deterministic only with one stream per handle. */
#pragma once

#include <stdbool.h>

#include "kernels/kernels.h"

/* Operands at multiples of so many bytes are computed the same way: cuDNN's requirement. */
enum { EL_CUDA_ALIGNMENT = 16 };

/* Streams of a process with cuBLAS, at most. */
enum { EL_CUDA_SLOTS = 64 };

struct el_cuda_native {
    void *stream;           /* cudaStream_t */
    void *cublas;           /* cublasHandle_t, set to that stream */
    void *cudnn;            /* cudnnHandle_t, set to that stream; NULL: cuBLAS does convolutions */
    void *cublas_workspace; /* given to cuBLAS; NULL: it uses its own */
    int device,
        slot;  /* ..., and the stream's place among those with cuBLAS: sums count there which blocks have ended */
    bool tf32; /* products in TF32 (10-bit mantissa, f32 sums); set it before the handles */
};

/* The CUDA table. An id or label out of range gives NaN, because a kernel cannot report errors. */
const struct el_kernel_table *el_kernels_cuda(void);

/* Make the library's handle on native->stream; the device must be current. Without cuDNN its call does nothing. Each
 * takes device memory. Errors: EL_ERR_OOM, EL_ERR_INTERNAL with the call's name. */
enum el_status el_cuda_native_open_cublas(struct el_cuda_native *native);
enum el_status el_cuda_native_open_cudnn(struct el_cuda_native *native);

/* Gives cuBLAS a device workspace, once: during capture it would allocate. Errors: as above. */
enum el_status el_cuda_native_give_cublas(struct el_cuda_native *native, size_t bytes);

/* Destroys both handles and frees their workspace; not the stream. */
void el_cuda_native_close(struct el_cuda_native *native);

const char *el_cuda_libraries(void);

/* Why cuDNN is missing; NULL if it is there. */
const char *el_cuda_cudnn_missing(void);
