/* Probe: are CUDA's run time and cuBLAS there, and which? Prints both versions from the headers; scripts/probes/cuda.sh
 * compiles and links it, and runs it without loading them. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void)
{
    return printf("%d.%d (nvcc), cuBLAS %d.%d.%d\n", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10,
                  CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH) < 0;
}
