/* Probe: is libpng there, and which? Prints its version; the Makefile compiles, links and runs it. */
#include <png.h>
#include <stdio.h>

int main(void)
{
    return printf("libpng %s\n", png_get_libpng_ver(NULL)) < 0;
}
