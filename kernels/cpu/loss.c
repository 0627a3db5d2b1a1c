/* The cross entropy in f32, a row at a time: its largest logit, exp and their sum, and their shares, while the row is
 * in the core's cache. Squared error is the reference's. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"

EL_VECTOR static void scale_row(int64_t n, float factor, float *x)
{
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

/* dlogits[c] = the gradient of the row's loss / batch; returns the loss. */
static double cross_entropy_row(const float *logits, int64_t classes, int32_t label, double batch, float *dlogits)
{
    float largest = el_vector_largest(logits, classes);
    double sum = el_vector_exp_sum(logits, classes, largest, dlogits);
    scale_row(classes, (float)(1 / (sum * batch)), dlogits);
    dlogits[label] = (float)((exp((double)logits[label] - (double)largest) / sum - 1) / batch);
    return log(sum) + (double)largest - (double)logits[label];
}

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
