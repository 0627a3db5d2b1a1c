/* Any image to a square one: scaled until its short side fits, then cut in the middle. The filter is a triangle as
 * wide as the scale, as of Pillow's and torchvision's bilinear with antialias: no pixel of a large image is skipped.
 * Across first, then down. */
#include "runtime/data/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One direction: place i of the result is the sum of weights[i * most + k] times input first[i] + k, k below n[i]. */
struct axis {
    int most, *first, *n;
    float *weights;
};

static enum el_status no_memory(void)
{
    return el_fail(EL_ERR_HOST_MEMORY, "no memory to scale an image");
}

static void axis_free(struct axis *axis)
{
    free(axis->first);
    free(axis->n);
    free(axis->weights);
}

static void weigh(int length, double scale, double centre, float *weights, int *first_p, int *n_p)
{
    double reach = fmax(scale, 1), sum = 0;
    int first = (int)fmax(centre - reach + 0.5, 0), end = (int)fmin(centre + reach + 0.5, length);
    for (int k = first; k < end; k++) sum += fmax(1 - fabs((k + 0.5 - centre) / reach), 0);
    for (int k = first; k < end; k++) weights[k - first] = (float)(fmax(1 - fabs((k + 0.5 - centre) / reach), 0) / sum);
    *first_p = first;
    *n_p = end - first;
}

/* `length` pixels become `scaled`, of which the middle `side` are wanted. */
static enum el_status axis_make(int length, int64_t scaled, int64_t side, struct axis *axis)
{
    const double scale = (double)length / (double)scaled;
    const int64_t left = (scaled - side) / 2;
    *axis = (struct axis){.most = 2 * (int)ceil(fmax(scale, 1)) + 1};
    axis->first = malloc((size_t)side * sizeof *axis->first);
    axis->n = malloc((size_t)side * sizeof *axis->n);
    axis->weights = malloc((size_t)(side * axis->most) * sizeof *axis->weights);
    if (!axis->first || !axis->n || !axis->weights) return no_memory();
    for (int64_t i = 0; i < side; i++) {
        double centre = ((double)(i + left) + 0.5) * scale;
        weigh(length, scale, centre, axis->weights + i * axis->most, &axis->first[i], &axis->n[i]);
    }
    return EL_OK;
}

static void across(const struct axis *axis, const uint8_t *line, int64_t side, float *out)
{
    for (int64_t i = 0; i < side; i++) {
        const uint8_t *from = line + (int64_t)axis->first[i] * EL_COLOURS;
        const float *weights = axis->weights + i * axis->most;
        float red = 0, green = 0, blue = 0;
        for (int k = 0; k < axis->n[i]; k++, from += EL_COLOURS) {
            red += weights[k] * (float)from[0];
            green += weights[k] * (float)from[1];
            blue += weights[k] * (float)from[2];
        }
        out[i * EL_COLOURS] = red, out[i * EL_COLOURS + 1] = green, out[i * EL_COLOURS + 2] = blue;
    }
}

/* `lines` are those from the first that is wanted on; sums: [side, 3]. */
static void down(const struct axis *axis, const float *lines, int64_t i, int64_t side, float *sums, uint8_t *out)
{
    const float *weights = axis->weights + i * axis->most;
    const int64_t n = side * EL_COLOURS;
    lines += (axis->first[i] - axis->first[0]) * n;
    for (int64_t x = 0; x < n; x++) sums[x] = 0.5F;
    for (int k = 0; k < axis->n[i]; k++, lines += n)
        for (int64_t x = 0; x < n; x++) sums[x] += weights[k] * lines[x];
    for (int64_t x = 0; x < n; x++) out[x] = (uint8_t)sums[x]; /* weights are positive and come to 1 */
}

static enum el_status scale(const uint8_t *rgb, int width, const struct axis *x, const struct axis *y, int64_t side,
                            uint8_t *pixels)
{
    const int64_t first = y->first[0], n = y->first[side - 1] + y->n[side - 1] - first;
    float *lines = malloc((size_t)((n + 1) * side) * EL_COLOURS * sizeof *lines); /* [n, side, 3], then the sums */
    if (!lines) return no_memory();
    for (int64_t i = 0; i < n; i++)
        across(x, rgb + (first + i) * width * EL_COLOURS, side, lines + i * side * EL_COLOURS);
    for (int64_t i = 0; i < side; i++)
        down(y, lines, i, side, lines + n * side * EL_COLOURS, pixels + i * side * EL_COLOURS);
    free(lines);
    return EL_OK;
}

enum el_status el_image_fit(const uint8_t *rgb, int width, int height, int64_t side, uint8_t *pixels)
{
    if (width == side && height == side) {
        memcpy(pixels, rgb, (size_t)el_image_bytes(side));
        return EL_OK;
    }
    int64_t wide = width > height ? side * width / height : side, high = height > width ? side * height / width : side;
    struct axis x = {0}, y = {0};
    enum el_status status = axis_make(width, wide, side, &x);
    if (status == EL_OK) status = axis_make(height, high, side, &y);
    if (status == EL_OK) status = scale(rgb, width, &x, &y, side, pixels);
    axis_free(&x);
    axis_free(&y);
    return status;
}
