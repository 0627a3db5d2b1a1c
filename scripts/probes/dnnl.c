/* Probe: is oneDNN there, and which? Prints its version; the Makefile compiles, links and runs it. */
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>

int main(void)
{
    const dnnl_version_t *version = dnnl_version();
    return printf("%d.%d.%d\n", version->major, version->minor, version->patch) < 0;
}
