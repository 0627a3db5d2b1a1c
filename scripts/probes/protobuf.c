/* Probe: is protobuf-c there, and which? Prints its version; the Makefile compiles, links and runs it. */
#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

int main(void)
{
    return printf("protobuf-c %s\n", protobuf_c_version()) < 0;
}
