/* The cross entropy in f32, a row at a time: its largest logit, exp and their sum, and their shares, while the row is
 * in the core's cache. Squared error is the reference's. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"

EL_VECTOR static void scale_row(int64_t n, float factor, float *x)
{
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

/* dlogits[c] = the gradient of the row's loss / batch, where it may be the logits; returns the loss. */
static double cross_entropy_row(const float *logits, int64_t classes, int32_t label, double batch, float *dlogits)
{
    float largest = el_vector_largest(logits, classes), own = logits[label];
    double sum = el_vector_exp_sum(logits, classes, largest, dlogits);
    scale_row(classes, (float)(1 / (sum * batch)), dlogits);
    dlogits[label] = (float)((exp((double)own - (double)largest) / sum - 1) / batch);
    return log(sum) + (double)largest - (double)own;
}

/* Of bf16: a row is widened into the workspace, which has room for one. */
static enum el_status cross_entropy_bf16(const struct el_kernel_args *args)
{
    const uint16_t *logits = args->p[0]; /* [b, c] */
    const int32_t *labels = args->p[1];  /* [b] */
    float *loss = args->p[2];            /* [1] */
    uint16_t *dlogits = args->p[3];      /* [b, c] */
    float *row = args->workspace;
    int64_t batch = args->d[0], classes = args->d[1];
    EL_TRY(el_reference_check_index("cross_entropy", labels, batch, classes));
    double total = 0;
    for (int64_t b = 0; b < batch; b++) {
        el_vector_widen(logits + b * classes, classes, 1, 0, row);
        total += cross_entropy_row(row, classes, labels[b], (double)batch, row);
        el_vector_narrow(row, classes, 1, 0, dlogits + b * classes);
    }
    *loss = (float)(total / (double)batch);
    return EL_OK;
}

static enum el_status row_workspace(const struct el_kernel_args *args, struct el_workspace *workspace_p)
{
    *workspace_p = (struct el_workspace){.bytes = (size_t)args->d[1] * sizeof(float)};
    return EL_OK;
}

const struct el_kernel el_cpu_cross_entropy_bf16 = {.run = cross_entropy_bf16, .workspace = row_workspace};

enum el_status el_cpu_cross_entropy(const struct el_kernel_args *args)
{
    const float *logits = args->p[0];   /* [b, c] */
    const int32_t *labels = args->p[1]; /* [b] */
    float *loss = args->p[2];           /* [1] */
    float *dlogits = args->p[3];        /* [b, c] */
    int64_t batch = args->d[0], classes = args->d[1];
    EL_TRY(el_reference_check_index("cross_entropy", labels, batch, classes));
    double total = 0;
    for (int64_t b = 0; b < batch; b++)
        total += cross_entropy_row(logits + b * classes, classes, labels[b], (double)batch, dlogits + b * classes);
    *loss = (float)(total / (double)batch);
    return EL_OK;
}
