/* One image's file into memory, whatever its format, which its first bytes tell and not its name. PPM and PGM are
 * read here; PNG and JPEG by modules (codec/), opened when the first such file is met. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/module.h"
#include "runtime/data/samples.h"

/* Where a PPM's header is read. */
struct cursor {
    const uint8_t *at, *end;
};

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next number of the header, after blanks and comments; -1: there is none below 2^20. */
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

/* Samples of one or two bytes, the higher first, scaled to 255; grey ones three times. */
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

/* "P6 width height highest", one blank, then rows; P5 is the same in grey. */
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

/* A module's decoder. */
static enum el_status open_codec(const char *module, const char *symbol, const char *package, const char *name,
                                 el_codec_decode **decode_p)
{
    void *found;
    struct el_error error;
    enum el_status status = el_module_open(module, symbol, &found);
    if (status == EL_OK) {
        memcpy(decode_p, &found, sizeof found); /* C has no conversion from an object's to a function's pointer */
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
