/* The losses with their gradients, one op each: they share the expensive part, and a step needs both. */
#ifndef REAL

#include "kernels/reference/reference.h"

#include <math.h>

#define EL_BODY "kernels/reference/loss.c"
#include "kernels/reference/twice.h"

#else

static double LOCAL(largest_of)(const REAL *x, int64_t n)
{
    double largest = (double)x[0];
    for (int64_t i = 1; i < n; i++) largest = fmax(largest, (double)x[i]);
    return largest;
}

/* Subtracts the maximum before exp(), against overflow. */
enum el_status NAME(cross_entropy)(const struct el_kernel_args *args)
{
    const REAL *logits = args->p[0];
    const int32_t *labels = args->p[1];
    REAL *loss = args->p[2];
    REAL *dlogits = args->p[3];
    int64_t batch = args->d[0], classes = args->d[1];
    EL_TRY(el_reference_check_index("cross_entropy", labels, batch, classes));
    double total = 0;
    for (int64_t b = 0; b < batch; b++) {
        const REAL *row = logits + b * classes;
        double largest = LOCAL(largest_of)(row, classes), sum = 0;
        for (int64_t c = 0; c < classes; c++) sum += exp((double)row[c] - largest);
        total += log(sum) + largest - (double)row[labels[b]];
        for (int64_t c = 0; c < classes; c++) {
            double share = exp((double)row[c] - largest) / sum;
            dlogits[b * classes + c] = (REAL)((share - (c == labels[b])) / (double)batch);
        }
    }
    *loss = (REAL)(total / (double)batch);
    return EL_OK;
}

enum el_status NAME(cross_entropy_piece)(const struct el_kernel_args *args)
{
    const REAL *logits = args->p[0];
    const int32_t *labels = args->p[1];
    REAL *part = args->p[2];
    int64_t batch = args->d[0], classes = args->d[1], first = args->d[2];
    EL_TRY(el_reference_check_index("cross_entropy_piece", labels, batch, args->d[3]));
    for (int64_t b = 0; b < batch; b++) {
        const REAL *row = logits + b * classes;
        const int64_t label = labels[b] - first;
        double largest = LOCAL(largest_of)(row, classes), sum = 0;
        for (int64_t c = 0; c < classes; c++) sum += exp((double)row[c] - largest);
        part[3 * b] = (REAL)largest;
        part[3 * b + 1] = (REAL)sum;
        part[3 * b + 2] = label >= 0 && label < classes ? row[label] : 0;
    }
    return EL_OK;
}

enum el_status NAME(cross_entropy_join)(const struct el_kernel_args *args)
{
    const REAL *logits = args->p[0], *parts = args->p[2];
    const int32_t *labels = args->p[1];
    REAL *dlogits = args->p[4];
    int64_t batch = args->d[0], classes = args->d[1], first = args->d[2], pieces = args->d[4];
    double total = 0;
    for (int64_t b = 0; b < batch; b++) {
        double largest = -INFINITY, sum = 0, wanted = 0;
        for (int64_t m = 0; m < pieces; m++) largest = fmax(largest, (double)parts[3 * (m * batch + b)]);
        for (int64_t m = 0; m < pieces; m++) {
            const REAL *part = parts + 3 * (m * batch + b);
            sum += (double)part[1] * exp((double)part[0] - largest);
            wanted += (double)part[2];
        }
        total += log(sum) + largest - wanted;
        for (int64_t c = 0; c < classes; c++) {
            double share = exp((double)logits[b * classes + c] - largest) / sum;
            dlogits[b * classes + c] = (REAL)((share - (first + c == labels[b])) / (double)batch);
        }
    }
    *(REAL *)args->p[3] = (REAL)(total / (double)batch);
    return EL_OK;
}

/* With one output, label 0 has target 1 and label 1 target 0. */
enum el_status NAME(mse)(const struct el_kernel_args *args)
{
    const REAL *y = args->p[0];
    const int32_t *labels = args->p[1];
    REAL *loss = args->p[2];
    REAL *dy = args->p[3];
    int64_t batch = args->d[0], classes = args->d[1];
    EL_TRY(el_reference_check_index("mse", labels, batch, classes > 1 ? classes : 2));
    double total = 0, n = (double)(batch * classes);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t c = 0; c < classes; c++) {
            double off = (double)y[b * classes + c] - (c == labels[b]);
            total += off * off;
            dy[b * classes + c] = (REAL)(2 * off / n);
        }
    *loss = (REAL)(total / n);
    return EL_OK;
}

#endif
