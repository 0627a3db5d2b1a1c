/* Probe: is libjpeg there (libjpeg-turbo's, or another with decompression from memory)? Prints its version; the
 * Makefile compiles, links and runs it. */
#include <stdio.h>

#include <jpeglib.h>

int main(void)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char byte = 0;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, &byte, 1);
    jpeg_destroy_decompress(&jpeg);
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
    int version = LIBJPEG_TURBO_VERSION_NUMBER;
    return printf("libjpeg-turbo %d.%d.%d\n", version / 1000000, version / 1000 % 1000, version % 1000) < 0;
#else
    return printf("libjpeg %d\n", JPEG_LIB_VERSION) < 0;
#endif
}
