/* PNG by libpng. */
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/codec/codec.h"

struct source {
    const uint8_t *bytes;
    size_t left;
    char problem[160];
};

static void give(png_structp png, png_bytep to, size_t wanted)
{
    struct source *source = png_get_io_ptr(png);
    if (wanted > source->left) png_error(png, "the file is cut off");
    memcpy(to, source->bytes, wanted);
    source->bytes += wanted;
    source->left -= wanted;
}

static void fail(png_structp png, png_const_charp problem)
{
    struct source *source = png_get_error_ptr(png);
    strncpy(source->problem, problem, sizeof source->problem - 1);
    png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp warning)
{
    (void)png, (void)warning;
}

/* false: the reason is in `source`. Only libpng's memory may be allocated here, since it jumps on errors. */
static bool read_rows(png_structp png, png_infop info, struct source *source)
{
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_read_fn(png, source, give);
    png_read_png(png, info,
                 PNG_TRANSFORM_STRIP_16 | PNG_TRANSFORM_EXPAND | PNG_TRANSFORM_STRIP_ALPHA | PNG_TRANSFORM_GRAY_TO_RGB,
                 NULL);
    if (png_get_rowbytes(png, info) != 3 * (size_t)png_get_image_width(png, info)) png_error(png, "unknown colours");
    return true;
}

static enum el_status copy_rows(const char *name, png_structp png, png_infop info, struct el_bitmap *bitmap_p)
{
    struct el_bitmap bitmap = {.width = (int)png_get_image_width(png, info),
                               .height = (int)png_get_image_height(png, info)};
    const size_t row_bytes = 3 * (size_t)bitmap.width;
    png_bytepp rows = png_get_rows(png, info);
    bitmap.rgb = malloc(row_bytes * (size_t)bitmap.height);
    if (!bitmap.rgb) return el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for the image", name);
    for (int y = 0; y < bitmap.height; y++) memcpy(bitmap.rgb + row_bytes * (size_t)y, rows[y], row_bytes);
    *bitmap_p = bitmap;
    return EL_OK;
}

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

enum el_status el_png_decode(const char *name, const uint8_t *bytes, size_t length, struct el_bitmap *bitmap_p)
{
    enum { WIDTH_AT = 16, HEIGHT_AT = 20, HEADER_BYTES = 24 };
    struct source source = {.bytes = bytes, .left = length, .problem = "the file is cut off"};
    if (length < HEADER_BYTES) return el_fail(EL_ERR_INVALID, "%s: a damaged PNG: %s", name, source.problem);
    uint64_t pixels = (uint64_t)big_endian(bytes + WIDTH_AT) * big_endian(bytes + HEIGHT_AT);
    if (pixels > EL_BITMAP_PIXELS_MAX)
        return el_fail(EL_ERR_INVALID, "%s: a PNG of %llu pixels; at most %d", name, (unsigned long long)pixels,
                       EL_BITMAP_PIXELS_MAX);
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, fail, ignore);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    enum el_status status;
    if (!info)
        status = el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for a PNG", name);
    else if (!read_rows(png, info, &source))
        status = el_fail(EL_ERR_INVALID, "%s: a damaged PNG: %s", name, source.problem);
    else
        status = copy_rows(name, png, info, bitmap_p);
    png_destroy_read_struct(&png, &info, NULL);
    return status;
}
