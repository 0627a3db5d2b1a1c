/* How far from the card's limits: what plain CUDA calls reach in copies and matrix products, and what the same work
 * reaches through our devices and kernels; and what the context and the libraries take of the card's memory. One JSON
 * object on standard output. It judges nothing: scripts/gpu-check prints the two columns beside each other.
 *
 * usage: limits [MIB [SIZE]]    copies of MIB (256; within the card of 8 times as much), products of SIZE x SIZE (8192)
 *
 * Units: bytes/s and FLOP/s, of the fastest of a few tries. A copy counts each byte once: within the card it is both
 * read and written. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/check.h"
#include "runtime/device/program.h"

/* WITHIN: a copy within the card is so many times as large, 2 GiB: by the host's clock, as ours is timed, launching it
 * and waiting for it are 2 % of its time then, where they would be 15 %. */
enum { TRIES = 8, MIB = 1 << 20, WITHIN = 8 };

/* A piece of work that is queued on `stream`. */
struct work {
    enum el_status (*queue)(const struct work *work, cudaStream_t stream);
    void *to;
    const void *from, *also;
    size_t bytes;
    int size;
    cublasHandle_t cublas;
    cublasComputeType_t type;
};

static enum el_status queue_copy(const struct work *work, cudaStream_t stream)
{
    EL_CUDA_TRY(cudaMemcpyAsync(work->to, work->from, work->bytes, cudaMemcpyDefault, stream));
    return EL_OK;
}

static enum el_status queue_product(const struct work *work, cudaStream_t stream)
{
    const float one = 1, zero = 0;
    int n = work->size;
    EL_CUBLAS_TRY(cublasSetStream(work->cublas, stream));
    EL_CUBLAS_TRY(cublasGemmEx(work->cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, work->from, CUDA_R_32F, n,
                               work->also, CUDA_R_32F, n, &zero, work->to, CUDA_R_32F, n, work->type,
                               CUBLAS_GEMM_DEFAULT));
    return EL_OK;
}

/* The shortest of TRIES, by events; one before them is not counted. */
static enum el_status time_work(const struct work *work, double *seconds_p)
{
    cudaStream_t stream;
    cudaEvent_t begin, end;
    float best_ms = 0;
    EL_CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    EL_CUDA_TRY(cudaEventCreate(&begin));
    EL_CUDA_TRY(cudaEventCreate(&end));
    for (int i = 0; i <= TRIES; i++) {
        float ms;
        EL_CUDA_TRY(cudaEventRecord(begin, stream));
        EL_TRY(work->queue(work, stream));
        EL_CUDA_TRY(cudaEventRecord(end, stream));
        EL_CUDA_TRY(cudaEventSynchronize(end));
        EL_CUDA_TRY(cudaEventElapsedTime(&ms, begin, end));
        if (i == 1 || (i > 1 && ms < best_ms)) best_ms = ms;
    }
    EL_CUDA_TRY(cudaEventDestroy(begin));
    EL_CUDA_TRY(cudaEventDestroy(end));
    EL_CUDA_TRY(cudaStreamDestroy(stream));
    *seconds_p = best_ms * 1e-3;
    return EL_OK;
}

static void print_rate(const char *name, double amount, double seconds)
{
    printf(",\n  \"%s\": %.4g", name, amount / seconds);
}

/* What plain calls reach: copies. */
static enum el_status limits_of_copies(size_t bytes)
{
    void *host, *a, *b;
    double seconds;
    EL_CUDA_TRY(cudaHostAlloc(&host, bytes, cudaHostAllocDefault));
    memset(host, 1, bytes);
    EL_CUDA_TRY(cudaMalloc(&a, WITHIN * bytes));
    EL_CUDA_TRY(cudaMalloc(&b, WITHIN * bytes));
    EL_TRY(time_work(&(struct work){.queue = queue_copy, .to = a, .from = host, .bytes = bytes}, &seconds));
    print_rate("host_to_device_limit_bytes_per_s", (double)bytes, seconds);
    EL_TRY(time_work(&(struct work){.queue = queue_copy, .to = host, .from = a, .bytes = bytes}, &seconds));
    print_rate("device_to_host_limit_bytes_per_s", (double)bytes, seconds);
    EL_TRY(time_work(&(struct work){.queue = queue_copy, .to = b, .from = a, .bytes = WITHIN * bytes}, &seconds));
    print_rate("within_device_limit_bytes_per_s", (double)(WITHIN * bytes), seconds);
    EL_CUDA_TRY(cudaFree(b));
    EL_CUDA_TRY(cudaFree(a));
    EL_CUDA_TRY(cudaFreeHost(host));
    return EL_OK;
}

/* Numbers in [-1, 1): products of zeros take less power and run at higher clocks. */
static void fill(float *numbers, size_t n)
{
    uint32_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        numbers[i] = (float)(state >> 8) / (1 << 23) - 1;
    }
}

static double product_flops(int size)
{
    return 2.0 * size * size * size;
}

/* What plain calls reach: matrix products, in f32 and with TF32 allowed. */
static enum el_status limits_of_products(const float *numbers, int size)
{
    size_t bytes = sizeof *numbers * (size_t)size * (size_t)size;
    struct work work = {.queue = queue_product, .size = size};
    void *matrices[3];
    double seconds;
    for (int i = 0; i < 3; i++) {
        EL_CUDA_TRY(cudaMalloc(&matrices[i], bytes));
        EL_CUDA_TRY(cudaMemcpy(matrices[i], numbers, bytes, cudaMemcpyDefault));
    }
    work.from = matrices[0], work.also = matrices[1], work.to = matrices[2];
    EL_CUBLAS_TRY(cublasCreate(&work.cublas));
    work.type = CUBLAS_COMPUTE_32F;
    EL_TRY(time_work(&work, &seconds));
    print_rate("product_f32_limit_flops_per_s", product_flops(size), seconds);
    work.type = CUBLAS_COMPUTE_32F_FAST_TF32;
    EL_TRY(time_work(&work, &seconds));
    print_rate("product_tf32_limit_flops_per_s", product_flops(size), seconds);
    EL_CUBLAS_TRY(cublasDestroy(work.cublas));
    for (int i = 0; i < 3; i++) EL_CUDA_TRY(cudaFree(matrices[i]));
    return EL_OK;
}

/* The shortest run of a program of one op: from the first submission to the last completion. */
static enum el_status time_program(struct el_program *program, double *seconds_p)
{
    int64_t best_ns = INT64_MAX;
    EL_TRY(el_program_end(program));
    for (uint64_t step = 0; step <= TRIES; step++) {
        EL_TRY(el_program_run(program, step, NULL));
        int64_t ns = el_program_elapsed_ns(program);
        if (step > 0 && ns < best_ns) best_ns = ns;
    }
    *seconds_p = (double)best_ns * 1e-9;
    return EL_OK;
}

static enum el_status time_our_copy(struct el_device *device, struct el_view to, struct el_view from, size_t bytes,
                                    double *seconds_p)
{
    struct el_program *program;
    struct el_op_head head = {.label = "copy", .phase = EL_PHASE_H2D};
    EL_TRY(el_program_create(&program));
    enum el_status status = el_program_copy(program, device, EL_STREAM_COMPUTE, &head, to, from, bytes, NULL);
    if (status == EL_OK) status = time_program(program, seconds_p);
    el_program_destroy(program);
    return status;
}

/* What ours reach: copies as a step makes them. */
static enum el_status ours_of_copies(struct el_device *device, void *host, size_t bytes)
{
    struct el_buffer *a, *b;
    double seconds;
    EL_TRY(el_device_alloc(device, EL_TAG_INPUT, WITHIN * bytes, "a", &a));
    EL_TRY(el_device_alloc(device, EL_TAG_INPUT, WITHIN * bytes, "b", &b));
    EL_TRY(time_our_copy(device, el_view_of(a, 0), el_view_host(host), bytes, &seconds));
    print_rate("host_to_device_ours_bytes_per_s", (double)bytes, seconds);
    EL_TRY(time_our_copy(device, el_view_of(b, 0), el_view_of(a, 0), WITHIN * bytes, &seconds));
    print_rate("within_device_ours_bytes_per_s", (double)(WITHIN * bytes), seconds);
    el_device_free(b);
    el_device_free(a);
    return EL_OK;
}

/* What ours reach: a layer's product, bias included. */
static enum el_status ours_of_products(struct el_device *device, const float *numbers, int size)
{
    size_t bytes = sizeof *numbers * (size_t)size * (size_t)size, sizes[] = {bytes, bytes, bytes / (size_t)size, bytes};
    struct el_kernel_op op = {.head = {.label = "product", .phase = EL_PHASE_FORWARD},
                              .op = EL_OP_LINEAR_FORWARD,
                              .dtype = EL_F32,
                              .args = {.d = {size, size, size}}};
    struct el_program *program;
    double seconds;
    for (int i = 0; i < 4; i++) { /* x, w, bias -> y */
        struct el_buffer *buffer;
        EL_TRY(el_device_alloc(device, EL_TAG_ACTIVATION, sizes[i], "matrix", &buffer));
        EL_TRY(el_device_write(el_view_of(buffer, 0), numbers, sizes[i]));
        op.views[i] = el_view_of(buffer, 0);
    }
    EL_TRY(el_program_create(&program));
    enum el_status status = el_program_kernel(program, device, EL_STREAM_COMPUTE, &op, NULL);
    if (status == EL_OK) status = time_program(program, &seconds);
    el_program_destroy(program);
    if (status == EL_OK) print_rate("product_f32_ours_flops_per_s", product_flops(size), seconds);
    return status;
}

/* Our device before anything else touches CUDA: then the context's memory is told from the libraries'. */
static enum el_status ours(size_t bytes, float *numbers, int size)
{
    const struct el_device_spec spec = {.backend = "cuda"};
    struct el_library_memory libraries[EL_LIBRARIES_MAX];
    struct el_device_identity identity = {0};
    struct el_device *device;
    EL_TRY(el_device_open(&spec, &device));
    el_device_identify(device, &identity);
    printf("{\n  \"model\": \"%s\"", identity.model);
    enum el_status status = ours_of_copies(device, numbers, bytes);
    if (status == EL_OK) status = ours_of_products(device, numbers, size);
    int n = el_device_library_memory(device, libraries);
    printf(",\n  \"library_bytes\": {");
    for (int i = 0; i < n; i++)
        printf("%s\"%s\": %lld", i ? ", " : "", libraries[i].name, (long long)libraries[i].bytes);
    printf("}");
    el_device_close(device);
    return status;
}

static enum el_status measure(size_t bytes, int size)
{
    size_t n = (size_t)size * (size_t)size, n_copied = bytes / sizeof(float);
    n = n > n_copied ? n : n_copied;
    float *numbers = malloc(sizeof *numbers * n);
    if (!numbers) return el_fail_errno("limits: host memory");
    fill(numbers, n);
    enum el_status status = ours(bytes, numbers, size);
    if (status == EL_OK) status = limits_of_copies(bytes);
    if (status == EL_OK) status = limits_of_products(numbers, size);
    free(numbers);
    if (status == EL_OK) printf("\n}\n");
    return status;
}

int main(int argc, char **argv)
{
    long mib = argc > 1 ? strtol(argv[1], NULL, 10) : 256, size = argc > 2 ? strtol(argv[2], NULL, 10) : 8192;
    if (mib < 1 || mib > 65536 || size < 16 || size > 32768) {
        fprintf(stderr, "usage: limits [MIB [SIZE]]    1 to 65536 MiB, 16 to 32768\n");
        return 2;
    }
    enum el_status status = measure((size_t)mib * MIB, (int)size);
    if (status != EL_OK) fprintf(stderr, "limits: %s\n", el_error_message());
    return status == EL_OK ? 0 : status == EL_ERR_ABSENT ? 2 : 1;
}
