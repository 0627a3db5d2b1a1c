/* Probe: is NCCL there, and which? Prints the header's version; scripts/probes/cuda.sh compiles, links and runs it. */
#include <nccl.h>
#include <stdio.h>

int main(void)
{
    return printf("%d.%d.%d\n", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH) < 0;
}
