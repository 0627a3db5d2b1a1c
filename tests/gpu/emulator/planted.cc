/* Kernels that the emulator must end at, compiled as those of kernels/cuda are. */
#include "tests/gpu/emulator/emulator.h"
#include "tests/gpu/emulator/races.h"

namespace
{

enum { BLOCKS = 2, THREADS = 64, HALF_A_WARP = 0xffff };

__global__ void sum_kernel(int *sum)
{
    if (threadIdx.x == 0) *sum += 1;
}

__global__ void turn_kernel(int *values)
{
    const int value = values[threadIdx.x ^ 1];
    values[threadIdx.x] = value;
}

__global__ void mask_kernel(int *values)
{
    values[threadIdx.x] = __shfl_xor_sync(HALF_A_WARP, 1, 2);
}

__global__ void part_kernel(int *values)
{
    if (threadIdx.x % 32 < 16) values[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1, 2);
}

__global__ void copy_kernel(const int *__restrict__ from, int *to)
{
    to[threadIdx.x] = from[threadIdx.x];
}

} // namespace

void el_planted_run(enum el_planted planted)
{
    void (*kernels[])(int *) = {sum_kernel, turn_kernel, mask_kernel, part_kernel};
    static int values[THREADS];
    if (planted == EL_PLANTED_RESTRICT) return el_emulator_check_restrict(copy_kernel, values, values);
    const auto kernel = kernels[planted];
    const unsigned blocks = planted == EL_PLANTED_BLOCKS ? BLOCKS : 1;
    el_emulator_launch(nullptr, reinterpret_cast<const void *>(kernel), blocks, THREADS, [=] { kernel(values); });
}
