/* Decodes image files, recognised by their first bytes; PNG and JPEG by modules (codec/), opened at the first such
 * file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/module.h"
#include "runtime/base/rng.h"
#include "runtime/data/samples.h"

struct cursor {
    const uint8_t *at, *end;
};

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The header's next number, after blanks and comments; -1: none below 2^20. */
static int next_number(struct cursor *cursor)
{
    while (cursor->at < cursor->end && (is_space(*cursor->at) || *cursor->at == '#')) {
        if (*cursor->at++ != '#') continue;
        while (cursor->at < cursor->end && *cursor->at != '\n') cursor->at++;
    }
    int number = -1;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
        number = (number < 0 ? 0 : number) * 10 + (*cursor->at - '0');
        if (number >= 1 << 20) return -1;
    }
    return number;
}

/* One- or two-byte samples, big-endian, scaled to 255; grey is repeated three times. */
static void read_samples(const uint8_t *at, int64_t pixels, int colours, int highest, uint8_t *rgb)
{
    for (int64_t i = 0; i < pixels; i++)
        for (int c = 0; c < EL_COLOURS; c++) {
            int64_t place = i * colours + (colours > 1 ? c : 0);
            int value = highest > 255 ? at[2 * place] << 8 | at[2 * place + 1] : at[place];
            if (value > highest) value = highest;
            rgb[i * EL_COLOURS + c] = (uint8_t)((value * 255 + highest / 2) / highest);
        }
}

/* "P6 width height maximum", one blank, then rows; P5 is grey. */
static enum el_status read_ppm(const char *name, const uint8_t *bytes, size_t length, struct el_bitmap *bitmap_p)
{
    struct cursor cursor = {bytes + 2, bytes + length};
    int width = next_number(&cursor), height = next_number(&cursor), highest = next_number(&cursor);
    int colours = bytes[1] == '6' ? EL_COLOURS : 1;
    if (width < 1 || height < 1 || highest < 1 || highest > 65535 || cursor.at == cursor.end || !is_space(*cursor.at))
        return el_fail(EL_ERR_INVALID, "%s: a damaged PPM: its header is not 'P6 width height highest'", name);
    cursor.at++;
    const int64_t pixels = (int64_t)width * height, wanted = pixels * colours * (highest > 255 ? 2 : 1);
    if (pixels > EL_BITMAP_PIXELS_MAX)
        return el_fail(EL_ERR_INVALID, "%s: a PPM of %lld pixels; at most %d", name, (long long)pixels,
                       EL_BITMAP_PIXELS_MAX);
    if (cursor.end - cursor.at < wanted)
        return el_fail(EL_ERR_INVALID, "%s: a damaged PPM: %lld bytes of pixels are missing", name,
                       (long long)(wanted - (cursor.end - cursor.at)));
    uint8_t *rgb = malloc((size_t)(pixels * EL_COLOURS));
    if (!rgb) return el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for the image", name);
    read_samples(cursor.at, pixels, colours, highest, rgb);
    *bitmap_p = (struct el_bitmap){.width = width, .height = height, .rgb = rgb};
    return EL_OK;
}

static enum el_status open_codec(const char *module, const char *symbol, const char *package, const char *name,
                                 el_codec_decode **decode_p)
{
    void *found;
    struct el_error error;
    enum el_status status = el_module_open(module, symbol, &found);
    if (status == EL_OK) {
        memcpy(decode_p, &found, sizeof found); /* C cannot convert an object pointer to a function pointer */
        return EL_OK;
    }
    el_error_take(status, &error);
    return el_fail(status, "%s: cannot be read: %.200s; install %s and build again", name, error.text, package);
}

static bool begins(const uint8_t *bytes, size_t length, const char *with, size_t n)
{
    return length >= n && memcmp(bytes, with, n) == 0;
}

enum el_status el_bitmap_decode(const char *name, const uint8_t *bytes, size_t length, struct el_bitmap *bitmap_p)
{
    el_codec_decode *decode;
    if (begins(bytes, length, "P6", 2) || begins(bytes, length, "P5", 2))
        return read_ppm(name, bytes, length, bitmap_p);
    if (begins(bytes, length, "\x89PNG\r\n\x1a\n", 8))
        EL_TRY(open_codec("png", "el_png_decode", "libpng-dev", name, &decode));
    else if (begins(bytes, length, "\xff\xd8\xff", 3))
        EL_TRY(open_codec("jpeg", "el_jpeg_decode", "libjpeg-dev", name, &decode));
    else
        return el_fail(EL_ERR_INVALID,
                       "%s: not an image: neither PNG nor JPEG nor binary PPM or PGM by its first bytes", name);
    return decode(name, bytes, length, bitmap_p);
}

/* Scales by the short side and crops the middle. The filter is a triangle as wide as the scale, as in Pillow's and
 * torchvision's antialiased bilinear. */

/* Place i of the result is the sum of weights[i * most + k] * input[first[i] + k], k < n[i]. */
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

static void down(const struct axis *axis, const float *lines, int64_t i, int64_t side, float *sums, uint8_t *out)
{
    const float *weights = axis->weights + i * axis->most;
    const int64_t n = side * EL_COLOURS;
    lines += (axis->first[i] - axis->first[0]) * n;
    for (int64_t x = 0; x < n; x++) sums[x] = 0.5F;
    for (int k = 0; k < axis->n[i]; k++, lines += n)
        for (int64_t x = 0; x < n; x++) sums[x] += weights[k] * lines[x];
    for (int64_t x = 0; x < n; x++) out[x] = (uint8_t)sums[x]; /* weights are positive and sum to 1 */
}

static enum el_status scale(const uint8_t *rgb, int width, const struct axis *x, const struct axis *y, int64_t side,
                            uint8_t *pixels)
{
    const int64_t first = y->first[0], n = y->first[side - 1] + y->n[side - 1] - first;
    float *lines = malloc((size_t)((n + 1) * side) * EL_COLOURS * sizeof *lines);
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

/* Normalised by a table (under 1 ns per byte), because this runs inside the step. */

/* torchvision's for ImageNet. */
static const double MEAN[EL_COLOURS] = {0.485, 0.456, 0.406}, DEVIATION[EL_COLOURS] = {0.229, 0.224, 0.225};

void el_tones_make(struct el_tones *tones)
{
    for (int colour = 0; colour < EL_COLOURS; colour++)
        for (int byte = 0; byte < 256; byte++) {
            tones->f64[colour][byte] = (byte / 255.0 - MEAN[colour]) / DEVIATION[colour];
            tones->f32[colour][byte] = (float)tones->f64[colour][byte];
        }
}

void el_tones_row(const struct el_tones *tones, const uint8_t *pixels, int64_t side, enum el_dtype dtype, void *row)
{
    const int64_t n = el_image_bytes(side);
    if (dtype == EL_F64) {
        double *out = row;
        for (int64_t i = 0; i < n; i += EL_COLOURS)
            for (int c = 0; c < EL_COLOURS; c++) out[i + c] = tones->f64[c][pixels[i + c]];
    } else {
        float *out = row;
        for (int64_t i = 0; i < n; i += EL_COLOURS)
            for (int c = 0; c < EL_COLOURS; c++) out[i + c] = tones->f32[c][pixels[i + c]];
    }
}
