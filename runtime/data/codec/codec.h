/* What the modules el_png.so and el_jpeg.so offer: a file's bytes become an image. They name nothing of their
 * libraries, so that who opens one need not have its headers.
 *
 * Grey, palettes, 16 bits, CMYK and all else become 8-bit red, green and blue; transparency is left out, as Pillow's
 * convert("RGB") does. Errors: EL_ERR_INVALID with what is wrong, beginning with `name`. Threads: any.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

/* A file of a few bytes may claim any size. */
enum { EL_BITMAP_PIXELS_MAX = 1 << 26 };

struct el_bitmap {
    int width, height;
    uint8_t *rgb; /* [height, width, 3]; free() */
};

typedef enum el_status el_codec_decode(const char *name, const uint8_t *bytes, size_t length,
                                       struct el_bitmap *bitmap_p);

/* The symbols. */
el_codec_decode el_png_decode, el_jpeg_decode;
