/* The choice between cuDNN and the plain way, and the plan that keeps it. */
#include "kernels/cuda/conv.h"

#include <stdio.h>
#include <stdlib.h>

/* What prepare() chose. */
struct plan {
    struct el_cuda_conv_cudnn *cudnn; /* NULL: the plain way */
    char text[160];
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* What it asks for; false: the plain way is taken. */
static bool ask_cudnn(const struct el_cuda_native *native, const struct el_cuda_conv *conv, size_t *bytes_p)
{
    struct el_cuda_conv_cudnn *cudnn = NULL;
    if (!native->cudnn || el_cuda_conv_cudnn_make(native, conv, el_cuda_conv_cudnn_bytes(conv), &cudnn) != EL_OK)
        return false;
    *bytes_p = el_cuda_conv_cudnn_scratch(cudnn);
    el_cuda_conv_cudnn_destroy(cudnn);
    return true;
}

void el_cuda_conv_workspace(const struct el_cuda_conv_plain *plain, const struct el_kernel_args *args,
                            const struct el_cuda_conv *conv, enum el_dtype dtype, size_t own_bytes,
                            struct el_workspace *workspace_p)
{
    size_t used = plain->bytes(conv, dtype), all = used, asked;
#ifdef EL_HAVE_CUDNN
    if (dtype == EL_F32 && !args->native) {
        all = larger(all, el_cuda_conv_cudnn_bytes(conv));
        used = 0;
    }
#endif
    if (dtype == EL_F32 && args->native && ask_cudnn(args->native, conv, &asked)) {
        all = larger(all, asked);
        used = asked;
    }
    *workspace_p = (struct el_workspace){.bytes = own_bytes + all, .allowance_bytes = all - used};
}

/* cuDNN may load several numbers at once; views of a flat buffer lie anywhere. */
static bool is_aligned(const struct el_kernel_args *args, const struct el_cuda_conv *conv)
{
    uintptr_t all = (uintptr_t)conv->in[0] | (uintptr_t)conv->in[1] | (uintptr_t)conv->out;
    all |= (uintptr_t)args->workspace;
    return all % EL_CUDA_ALIGNMENT == 0;
}

static void say_plain(struct plan *plan, const struct el_cuda_conv_plain *plain, const char *why)
{
    snprintf(plan->text, sizeof plan->text, "cuBLAS, %s (%s)", plain->text, why);
}

enum el_status el_cuda_conv_prepare(const struct el_cuda_conv_plain *plain, const struct el_kernel_args *args,
                                    const struct el_cuda_conv *conv, enum el_dtype dtype, size_t scratch_bytes,
                                    void **plan_p)
{
    const struct el_cuda_native *native = args->native;
    size_t most = el_cuda_conv_cudnn_bytes(conv);
    const char *why = dtype == EL_F64 ? "f64" : "no cuDNN";
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan) return el_fail(EL_ERR_HOST_MEMORY, "cuda convolution: no memory for a plan");
    if (dtype == EL_F32 && native->cudnn && !is_aligned(args, conv))
        why = "operands that are not aligned";
    else if (dtype == EL_F32 && native->cudnn && el_cuda_conv_cudnn_make(native, conv, most, &plan->cudnn) != EL_OK)
        why = el_error_message();
    if (plan->cudnn && el_cuda_conv_cudnn_scratch(plan->cudnn) > scratch_bytes) {
        why = "cuDNN: an algorithm that wants more scratch than it asked for";
        el_cuda_conv_cudnn_destroy(plan->cudnn);
        plan->cudnn = NULL;
    }
    if (plan->cudnn)
        snprintf(plan->text, sizeof plan->text, "%s", el_cuda_conv_cudnn_text(plan->cudnn));
    else
        say_plain(plan, plain, why);
    *plan_p = plan;
    return EL_OK;
}

enum el_status el_cuda_conv_run(const struct el_cuda_conv_plain *plain, const struct el_kernel_args *args,
                                const struct el_cuda_conv *conv, enum el_dtype dtype, void *scratch)
{
    struct plan *plan = args->plan;
    if (!plan->cudnn) return plain->run(args, conv, dtype, scratch);
    enum el_status status = el_cuda_conv_cudnn_run(plan->cudnn, args->native, conv, scratch);
    if (status != EL_ERR_ABSENT) return status;
    /* It promised in prepare() what it cannot do (a library of its own is missing, or the card is another than its
     * tables know). It has done nothing: from now on the plain way. */
    say_plain(plan, plain, el_error_message());
    el_cuda_conv_cudnn_destroy(plan->cudnn);
    plan->cudnn = NULL;
    return plain->run(args, conv, dtype, scratch);
}

void el_cuda_conv_release(void *plan_or_null)
{
    struct plan *plan = plan_or_null;
    if (!plan) return;
    el_cuda_conv_cudnn_destroy(plan->cudnn);
    free(plan);
}

const char *el_cuda_conv_describe(const void *plan)
{
    return ((const struct plan *)plan)->text;
}
