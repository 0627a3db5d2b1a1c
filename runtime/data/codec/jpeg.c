/* JPEG by libjpeg-turbo or libjpeg. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h> /* jpeglib.h needs it first */
#include <stdlib.h>

#include <jerror.h>
#include <jpeglib.h>

#include "runtime/data/codec/codec.h"

struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf failed;
    char problem[JMSG_LENGTH_MAX];
    uint8_t *rgb, *line; /* fields, because they must survive longjmp */
};

static void fail(j_common_ptr jpeg)
{
    struct reader *reader = jpeg->client_data;
    jpeg->err->format_message(jpeg, reader->problem);
    longjmp(reader->failed, 1);
}

/* The library fills missing data with grey: that is an error here. Its other warnings (surplus bytes, odd markers)
 * occur in valid images. */
static void warn(j_common_ptr jpeg, int level)
{
    int code = jpeg->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE)) fail(jpeg);
}

/* Adobe's programs write inverted CMYK, and mark it. */
static void from_cmyk(const uint8_t *line, int width, bool inverted, uint8_t *rgb)
{
    for (int x = 0; x < width; x++)
        for (int c = 0; c < 3; c++) {
            int ink = line[4 * x + c], black = line[4 * x + 3];
            rgb[3 * x + c] = (uint8_t)((inverted ? ink * black : (255 - ink) * (255 - black)) / 255);
        }
}

static bool begin(struct reader *reader, const uint8_t *bytes, size_t length)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    jpeg_mem_src(jpeg, bytes, length);
    jpeg_read_header(jpeg, TRUE);
    if ((uint64_t)jpeg->image_width * jpeg->image_height > EL_BITMAP_PIXELS_MAX) {
        snprintf(reader->problem, sizeof reader->problem, "%u x %u pixels; at most %d together", jpeg->image_width,
                 jpeg->image_height, EL_BITMAP_PIXELS_MAX);
        return false;
    }
    bool cmyk = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    jpeg->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(jpeg);
    reader->rgb = malloc((size_t)jpeg->output_width * jpeg->output_height * 3);
    reader->line = malloc((size_t)jpeg->output_width * 4);
    snprintf(reader->problem, sizeof reader->problem, "no memory for the image");
    return reader->rgb && reader->line;
}

static bool decode(struct reader *reader, const uint8_t *bytes, size_t length)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    if (setjmp(reader->failed)) return false;
    if (!begin(reader, bytes, length)) return false;
    while (jpeg->output_scanline < jpeg->output_height) {
        uint8_t *row = reader->rgb + (size_t)jpeg->output_scanline * jpeg->output_width * 3;
        bool cmyk = jpeg->out_color_space == JCS_CMYK;
        JSAMPROW line = cmyk ? reader->line : row;
        jpeg_read_scanlines(jpeg, &line, 1);
        if (cmyk) from_cmyk(line, (int)jpeg->output_width, jpeg->saw_Adobe_marker, row);
    }
    jpeg_finish_decompress(jpeg);
    return true;
}

enum el_status el_jpeg_decode(const char *name, const uint8_t *bytes, size_t length, struct el_bitmap *bitmap_p)
{
    struct reader reader = {.problem = ""};
    reader.jpeg.err = jpeg_std_error(&reader.errors);
    reader.errors.error_exit = fail;
    reader.errors.emit_message = warn;
    reader.jpeg.client_data = &reader;
    enum el_status status = EL_OK;
    jpeg_create_decompress(&reader.jpeg);
    if (decode(&reader, bytes, length)) {
        *bitmap_p = (struct el_bitmap){
            .width = (int)reader.jpeg.output_width, .height = (int)reader.jpeg.output_height, .rgb = reader.rgb};
    } else {
        status = el_fail(EL_ERR_INVALID, "%s: a JPEG that cannot be read: %s", name, reader.problem);
        free(reader.rgb);
    }
    free(reader.line);
    jpeg_destroy_decompress(&reader.jpeg);
    return status;
}
