/* The modules el_png.so and el_jpeg.so decode a file's bytes. Every image becomes 8-bit red, green and blue;
 * transparency is dropped, as in Pillow's convert("RGB"). Errors: EL_ERR_INVALID with the reason, beginning with
 * `name`. Threads: any. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

/* A file of a few bytes may claim any size. */
enum { EL_BITMAP_PIXELS_MAX = 1 << 26 };

struct el_bitmap {
    int width, height;
    uint8_t *rgb; /* [height, width, 3]; caller frees */
};

typedef enum el_status el_codec_decode(const char *name, const uint8_t *bytes, size_t length,
                                       struct el_bitmap *bitmap_p);

el_codec_decode el_png_decode, el_jpeg_decode;
