/* Files of images, each by itself: every format to the bytes it must give, scaled as it must be, and each bad one is a
 * line that names it. tests/unit/data/images were written by libpng and libjpeg-turbo: 24 x 16 pixels, red 10 times
 * the column, green 15 times the row, blue 77; the grey ones are their red. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/data/samples.h"
#include "tests/unit/error_words.h"

enum { WIDTH = 24, HEIGHT = 16, PIXELS_MAX = 32 * 32 * 3 };

static struct el_bitmap read_sample(const char *name, uint8_t *bytes, size_t room, size_t *length_p)
{
    char path[256];
    struct el_bitmap bitmap = {0};
    snprintf(path, sizeof path, "tests/unit/data/images/%s", name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s: run from the repository's root", path);
    *length_p = fread(bytes, 1, room, file);
    fclose(file);
    enum el_status status = el_bitmap_decode(name, bytes, *length_p, &bitmap);
    if (status == EL_ERR_ABSENT) return (struct el_bitmap){0};
    if (status != EL_OK) fail_msg("%s", el_error_message());
    return bitmap;
}

/* What pixel i of a sample must be. */
static void wanted(const char *name, int i, int rgb[3])
{
    int x = i % WIDTH, y = i / WIDTH, red = 10 * x;
    if (!strncmp(name, "one-bit", 7)) red = x % 2 * 255;
    rgb[0] = red, rgb[1] = 15 * y, rgb[2] = 77;
    if (!strncmp(name, "grey", 4) || !strncmp(name, "one-bit", 7)) rgb[1] = rgb[2] = red;
    if (!strncmp(name, "palette", 7)) rgb[0] = 10 * y, rgb[1] = 255 - 15 * y;
}

static void every_format_is_read(void **state)
{
    static const char *const names[] = {"rgb.png",     "interlaced.png", "alpha-16-bit.png", "grey.png", "palette.png",
                                        "one-bit.png", "rgb.jpg",        "progressive.jpg",  "grey.jpg", "cmyk.jpg"};
    int absent = 0;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        uint8_t bytes[2048];
        size_t length;
        struct el_bitmap bitmap = read_sample(names[n], bytes, sizeof bytes, &length);
        const int off = strstr(names[n], ".jpg") ? 12 : 0;
        if (!bitmap.rgb) {
            absent++;
            expect_words(off ? "libjpeg-dev|build again" : "libpng-dev|build again");
            continue;
        }
        assert_int_equal(bitmap.width, WIDTH);
        assert_int_equal(bitmap.height, HEIGHT);
        for (int i = 0; i < WIDTH * HEIGHT * 3; i++) {
            int rgb[3];
            wanted(names[n], i / 3, rgb);
            if (abs(bitmap.rgb[i] - rgb[i % 3]) > off)
                fail_msg("%s, byte %d: %d, not %d", names[n], i, bitmap.rgb[i], rgb[i % 3]);
        }
        free(bitmap.rgb);
    }
    if (absent) printf("# %d formats were not read: libpng or libjpeg was missing when this was built\n", absent);
}

static void ppm_is_read(void **state)
{
    static const struct {
        const char *text;
        size_t length;
    } good[] = {{"P6 2 1 255\n\1\2\3\4\5\6", 17},
                {"P6\n# a comment\n 2\t1\r\n#\n255 \1\2\3\4\5\6", 33},
                {"P6 2 1 255\n\1\2\3\4\5\6and more", 25},
                {"P6 2 1 65535\n\1\1\2\2\3\3\4\4\5\5\6\6", 25}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct el_bitmap bitmap;
        assert_int_equal(el_bitmap_decode("x", (const uint8_t *)good[i].text, good[i].length, &bitmap), EL_OK);
        assert_int_equal(bitmap.width * 10 + bitmap.height, 21);
        assert_memory_equal(bitmap.rgb, "\1\2\3\4\5\6", 6);
        free(bitmap.rgb);
    }
    struct el_bitmap grey;
    assert_int_equal(el_bitmap_decode("x", (const uint8_t *)"P5 2 1 15\n\0\17", 12, &grey), EL_OK);
    assert_memory_equal(grey.rgb, "\0\0\0\377\377\377", 6);
    free(grey.rgb);
}

static void bad_images_are_refused(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {{"P6 2 1 255\n\1\2\3\4\5", "x.ppm|1 bytes of pixels are missing"},
               {"P6 0 1 255\n\1", "header"},
               {"P6 2 1 0\n\1\2\3\4\5\6", "header"},
               {"P6 2 1 65536\n\1\2\3\4\5\6", "header"},
               {"P6 -2 1 255\n\1\2\3\4\5\6", "header"},
               {"P6 2 1 255", "header"},
               {"P6", "header"},
               {"P6 1000000 1000000 255\n\1", "1000000000000 pixels"},
               {"P6 99999999999999999999 1 255\n\1", "header"},
               {"P3 1 1 255 0 0 0", "x.ppm: not an image"},
               {"GIF89a", "not an image"},
               {"", "not an image"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct el_bitmap bitmap;
        const uint8_t *bytes = (const uint8_t *)bad[i].text;
        assert_int_equal(el_bitmap_decode("x.ppm", bytes, strlen(bad[i].text), &bitmap), EL_ERR_INVALID);
        expect_words(bad[i].words);
    }
}

/* Cut off anywhere; with a byte changed it may be an image or not, and nothing else. */
static void damaged_images_are_refused(void **state)
{
    static const char *const names[] = {"palette.png", "interlaced.png", "rgb.jpg", "progressive.jpg", "cmyk.jpg"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        uint8_t bytes[2048];
        size_t length;
        struct el_bitmap bitmap = read_sample(names[n], bytes, sizeof bytes, &length);
        if (!bitmap.rgb) continue;
        free(bitmap.rgb);
        bool png = strstr(names[n], ".png");
        for (size_t cut = 0; cut < length - (png ? 12 : 2); cut++) { /* the last chunk or marker says nothing */
            if (el_bitmap_decode(names[n], bytes, cut, &bitmap) != EL_ERR_INVALID)
                fail_msg("%s: taken with %zu of %zu bytes", names[n], cut, length);
            expect_words(cut < (png ? 8 : 3) ? "not an image" : png ? "a damaged PNG" : "a JPEG that cannot be read");
        }
        for (size_t at = 0; at < length; at++) {
            bytes[at] ^= 0x55;
            if (el_bitmap_decode(names[n], bytes, length, &bitmap) == EL_OK) free(bitmap.rgb);
            bytes[at] ^= 0x55;
        }
    }
}

static void sizes_are_believed_to_a_limit(void **state)
{
    uint8_t bytes[2048];
    size_t length;
    struct el_bitmap bitmap = read_sample("rgb.png", bytes, sizeof bytes, &length);
    if (bitmap.rgb) {
        free(bitmap.rgb);
        memset(bytes + 16, 0x7F, 8);
        assert_int_equal(el_bitmap_decode("big.png", bytes, length, &bitmap), EL_ERR_INVALID);
        expect_words("big.png|pixels; at most 67108864");
    }
    bitmap = read_sample("rgb.jpg", bytes, sizeof bytes, &length);
    if (bitmap.rgb) {
        free(bitmap.rgb);
        for (size_t at = 0; at + 9 < length; at++)
            if (bytes[at] == 0xFF && bytes[at + 1] == 0xC0) memset(bytes + at + 5, 0xF0, 4);
        assert_int_equal(el_bitmap_decode("big.jpg", bytes, length, &bitmap), EL_ERR_INVALID);
        expect_words("big.jpg|61680 x 61680 pixels; at most 67108864");
    }
}

/* What Pillow's resize with BILINEAR gives for the same numbers. */
static void images_are_scaled_and_cut(void **state)
{
    uint8_t line[4 * 3], wide[4 * 2 * 3], out[PIXELS_MAX], plain[100 * 80 * 3];
    uint8_t square[4 * 4 * 3];
    for (int i = 0; i < 4 * 4; i++) memset(square + 3 * i, i % 4 < 2 ? 0 : 255, 3);
    assert_int_equal(el_image_fit(square, 4, 4, 2, out), EL_OK);
    assert_int_equal(out[0], 36);
    assert_int_equal(out[3], 219);
    assert_memory_equal(out, out + 6, 6);
    for (int i = 0; i < 4; i++) memset(line + 3 * i, i, 3);
    memcpy(wide, line, sizeof line);
    memcpy(wide + sizeof line, line, sizeof line);
    assert_int_equal(el_image_fit(wide, 4, 2, 2, out), EL_OK); /* the middle two columns, as they are */
    assert_memory_equal(out, "\1\1\1\2\2\2\1\1\1\2\2\2", 12);
    assert_int_equal(el_image_fit(line, 1, 4, 1, out), EL_OK);
    assert_in_range(out[0], 1, 2);
    memset(plain, 200, sizeof plain);
    for (int side = 1; side <= 32; side++) {
        memset(out, 0, sizeof out);
        assert_int_equal(el_image_fit(plain, 100, 80, side, out), EL_OK);
        for (int i = 0; i < side * side * 3; i++) assert_int_equal(out[i], 200);
        assert_int_equal(el_image_fit(plain, 3, 7, side, out), EL_OK);
        for (int i = 0; i < side * side * 3; i++) assert_int_equal(out[i], 200);
    }
}

RUN_TESTS(NULL, NULL, every_format_is_read, ppm_is_read, bad_images_are_refused, damaged_images_are_refused,
          sizes_are_believed_to_a_limit, images_are_scaled_and_cut)
