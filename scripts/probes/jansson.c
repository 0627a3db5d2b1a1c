/* Probe: is jansson there, and which? Prints its version; the Makefile compiles, links and runs it. */
#include <jansson.h>
#include <stdio.h>

int main(void)
{
    json_decref(json_object());
    return puts(JANSSON_VERSION) < 0;
}
