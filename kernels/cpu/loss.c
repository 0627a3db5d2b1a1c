/* The cross entropy, row by row while the row is in cache. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"
#include "runtime/base/half.h"

EL_VECTOR static void scale_row(int64_t n, float factor, float *x)
{
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

/* A row's gradient of loss / batch: `factor` times its share, and `of_label` for the label. */
struct row_gradient {
    float factor, of_label;
};

/* Into `shares`, which may be the logits; returns the loss. */
static double cross_entropy_row(const float *logits, int64_t classes, int32_t label, double batch, float *shares,
                                struct row_gradient *gradient_p)
{
    float largest = el_vector_largest(logits, classes), own = logits[label];
    double sum = el_vector_exp_sum(logits, classes, largest, shares);
    gradient_p->factor = (float)(1 / (sum * batch));
    gradient_p->of_label = (float)((exp((double)own - (double)largest) / sum - 1) / batch);
    return log(sum) + (double)largest - (double)own;
}

static enum el_status cross_entropy_bf16(const struct el_kernel_args *args)
{
    const uint16_t *logits = args->p[0];
    const int32_t *labels = args->p[1];
    float *loss = args->p[2];
    uint16_t *dlogits = args->p[3];
    float *row = args->workspace;
    struct row_gradient gradient;
    int64_t batch = args->d[0], classes = args->d[1];
    EL_TRY(el_reference_check_index("cross_entropy", labels, batch, classes));
    double total = 0;
    for (int64_t b = 0; b < batch; b++) {
        el_vector_widen(logits + b * classes, classes, 1, 0, row);
        total += cross_entropy_row(row, classes, labels[b], (double)batch, row, &gradient);
        el_vector_narrow(row, classes, gradient.factor, 0, dlogits + b * classes);
        dlogits[b * classes + labels[b]] = el_bf16_of_f32(gradient.of_label);
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
    const float *logits = args->p[0];
    const int32_t *labels = args->p[1];
    float *loss = args->p[2];
    float *dlogits = args->p[3];
    struct row_gradient gradient;
    int64_t batch = args->d[0], classes = args->d[1];
    EL_TRY(el_reference_check_index("cross_entropy", labels, batch, classes));
    double total = 0;
    for (int64_t b = 0; b < batch; b++, logits += classes, dlogits += classes) {
        total += cross_entropy_row(logits, classes, labels[b], (double)batch, dlogits, &gradient);
        scale_row(classes, gradient.factor, dlogits);
        dlogits[labels[b]] = gradient.of_label;
    }
    *loss = (float)(total / (double)batch);
    return EL_OK;
}

enum { BLOCK = 1024 }; /* shares that nobody wants stay in the cache */

enum el_status el_cpu_cross_entropy_piece(const struct el_kernel_args *args)
{
    const float *row = args->p[0];
    const int32_t *labels = args->p[1];
    float *part = args->p[2], shares[BLOCK];
    const int64_t batch = args->d[0], classes = args->d[1], first = args->d[2];
    EL_TRY(el_reference_check_index("cross_entropy_piece", labels, batch, args->d[3]));
    for (int64_t b = 0; b < batch; b++, row += classes, part += 3) {
        const int64_t label = labels[b] - first;
        double sum = 0;
        part[0] = el_vector_largest(row, classes);
        for (int64_t c = 0; c < classes; c += BLOCK)
            sum += el_vector_exp_sum(row + c, classes - c < BLOCK ? classes - c : BLOCK, part[0], shares);
        part[1] = (float)sum;
        part[2] = label >= 0 && label < classes ? row[label] : 0;
    }
    return EL_OK;
}

/* Of a row over all pieces. */
struct whole_row {
    double largest, sum, own;
};

static struct whole_row join_row(const float *part, int64_t pieces, int64_t stride)
{
    struct whole_row whole = {.largest = -INFINITY};
    for (int64_t m = 0; m < pieces; m++) whole.largest = fmax(whole.largest, (double)part[m * stride]);
    for (int64_t m = 0; m < pieces; m++) {
        whole.sum += (double)part[m * stride + 1] * exp((double)part[m * stride] - whole.largest);
        whole.own += (double)part[m * stride + 2];
    }
    return whole;
}

enum el_status el_cpu_cross_entropy_join(const struct el_kernel_args *args)
{
    const float *logits = args->p[0], *parts = args->p[2];
    const int32_t *labels = args->p[1];
    float *dlogits = args->p[4];
    const int64_t batch = args->d[0], classes = args->d[1], first = args->d[2], pieces = args->d[4];
    double total = 0;
    for (int64_t b = 0; b < batch; b++, logits += classes, dlogits += classes) {
        const struct whole_row row = join_row(parts + 3 * b, pieces, 3 * batch);
        const int64_t label = labels[b] - first;
        el_vector_exp_sum(logits, classes, (float)row.largest, dlogits);
        scale_row(classes, (float)(1 / (row.sum * (double)batch)), dlogits);
        if (label >= 0 && label < classes)
            dlogits[label] = (float)((exp((double)logits[label] - row.largest) / row.sum - 1) / (double)batch);
        total += log(row.sum) + row.largest - row.own;
    }
    *(float *)args->p[3] = (float)(total / (double)batch);
    return EL_OK;
}
