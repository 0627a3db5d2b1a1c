/* Fast embedding: copies whole rows; the dense gradient is a memset, nearly all of the time (10 MB for 20,000 x 128),
 * and a scatter. */
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"

static enum el_status copy_rows(const struct el_kernel_args *args, size_t width)
{
    const int32_t *ids = args->p[0];
    const char *table = args->p[1];
    char *y = args->p[2];
    const int64_t n = args->d[0];
    const size_t bytes = (size_t)args->d[2] * width;
    EL_TRY(el_reference_check_index("embedding_forward", ids, n, el_embedding_limit(args->d)));
    for (int64_t i = 0; i < n; i++, y += bytes) {
        const int64_t row = el_embedding_row(args->d, ids[i]);
        if (row < 0)
            memset(y, 0, bytes);
        else
            memcpy(y, table + (size_t)row * bytes, bytes);
    }
    return EL_OK;
}

enum el_status el_cpu_embedding_forward(const struct el_kernel_args *args)
{
    return copy_rows(args, sizeof(float));
}

enum el_status el_cpu_embedding_forward_bf16(const struct el_kernel_args *args)
{
    return copy_rows(args, sizeof(uint16_t));
}

/* In the order of positions, like the reference. */
EL_VECTOR static void scatter(const int64_t *d, const int32_t *ids, const float *dy, float *dtable)
{
    const int64_t n = d[0], e = d[2];
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = el_embedding_row(d, ids[i]);
        const float *restrict from = dy + i * e;
        float *restrict to = dtable + row * e;
        for (int64_t j = 0; j < e && row >= 0; j++) to[j] += from[j];
    }
}

enum el_status el_cpu_embedding_backward(const struct el_kernel_args *args)
{
    const int32_t *ids = args->p[0];
    const float *dy = args->p[1];
    float *dtable = args->p[2];
    int64_t n = args->d[0], v = args->d[1], e = args->d[2];
    EL_TRY(el_reference_check_index("embedding_backward", ids, n, el_embedding_limit(args->d)));
    if (args->s[0] == 0) memset(dtable, 0, (size_t)(v * e) * sizeof *dtable);
    scatter(args->d, ids, dy, dtable);
    return EL_OK;
}
