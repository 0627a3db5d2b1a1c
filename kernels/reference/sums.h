/* Sums for linear layers and convolutions, included once per type where REAL and LOCAL() are defined; hence no include
 * guard. */

/* Four interleaved sums in fixed order: a quarter of the time. */
static inline double LOCAL(dot)(const REAL *a, const REAL *b, int64_t n)
{
    double sum[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int lane = 0; lane < 4; lane++) sum[lane] += (double)a[i + lane] * (double)b[i + lane];
    for (; i < n; i++) sum[0] += (double)a[i] * (double)b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static inline void LOCAL(bias_gradient)(const REAL *dy, int64_t rows, int64_t out, int acc, REAL *dbias)
{
    for (int64_t o = 0; o < out; o++) {
        double sum = acc ? (double)dbias[o] : 0;
        for (int64_t b = 0; b < rows; b++) sum += (double)dy[b * out + o];
        dbias[o] = (REAL)sum;
    }
}

/* sum[n] += the gradient of n inputs from `rows` outputs dy, with weights w[row * stride + 0..n-1]. */
static inline void LOCAL(add_inputs)(const REAL *dy, const REAL *w, int64_t rows, int64_t stride, int64_t n,
                                     double *sum)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t j = 0; j < n; j++) sum[j] += (double)dy[row] * (double)w[row * stride + j];
}

static inline void LOCAL(put)(const double *sum, int64_t n, int acc, REAL *to)
{
    for (int64_t j = 0; j < n; j++) to[j] = (REAL)(acc ? (double)to[j] + sum[j] : sum[j]);
}
