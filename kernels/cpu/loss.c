/* The cross entropy in f32. It is small next to a model's layers (batch x classes), so that it is only kept from being
 * silly: exp() once an element, rows from first to last, sums in double. Squared error is the reference's. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"

/* dlogits[c] = the gradient of the row's loss / batch; returns the loss. */
static double cross_entropy_row(const float *logits, int64_t classes, int32_t label, double batch, float *dlogits)
{
    float largest = logits[0];
    for (int64_t c = 1; c < classes; c++) largest = logits[c] > largest ? logits[c] : largest;
    double sum = 0;
    for (int64_t c = 0; c < classes; c++) {
        dlogits[c] = expf(logits[c] - largest);
        sum += (double)dlogits[c];
    }
    double share = 1 / (sum * batch);
    for (int64_t c = 0; c < classes; c++) dlogits[c] = (float)((double)dlogits[c] * share);
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
