/* Probe: is cuDNN there, and which? Prints the header's version; scripts/probes/cuda.sh compiles, links and runs it. */
#include <cudnn.h>
#include <stdio.h>

int main(void)
{
    return printf("%d.%d.%d\n", CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL) < 0;
}
