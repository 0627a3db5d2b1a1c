/* Sums that a linear layer and a convolution share, once a type: included by a body, where REAL and LOCAL() stand. No
 * include guard, as twice.h has none. */

/* Four interleaved sums: a quarter of the time of one, and still one fixed order. */
static double LOCAL(dot)(const REAL *a, const REAL *b, int64_t n)
{
    double sum[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int lane = 0; lane < 4; lane++) sum[lane] += (double)a[i + lane] * (double)b[i + lane];
    for (; i < n; i++) sum[0] += (double)a[i] * (double)b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* dbias[o] (+)= sum over b of dy[b, o]. */
static void LOCAL(bias_gradient)(const REAL *dy, int64_t rows, int64_t out, int acc, REAL *dbias)
{
    for (int64_t o = 0; o < out; o++) {
        double sum = acc ? (double)dbias[o] : 0;
        for (int64_t b = 0; b < rows; b++) sum += (double)dy[b * out + o];
        dbias[o] = (REAL)sum;
    }
}
