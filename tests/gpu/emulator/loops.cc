/* The kernels' loops past 2^31 items, which no test has the time to fill: the first and the last threads of a launch
 * that strides over them, and of one that has a thread for each. */
#include "kernels/cuda/common.cuh"

#include "tests/gpu/emulator/races.h"

namespace
{

constexpr int64_t N = (int64_t{1} << 31) + 9;

template <typename LOOP> bool visits_its_own(int64_t items_a_block, LOOP loop)
{
    for (int64_t grid : {int64_t{65536}, N / items_a_block + 1})
        for (int64_t item : {int64_t{0}, items_a_block - 1, N / items_a_block * items_a_block, N - 1}) {
            int64_t next = item % (grid * items_a_block), step = grid * items_a_block;
            blockDim.x = EL_CUDA_THREADS, gridDim.x = static_cast<unsigned>(grid);
            blockIdx.x = static_cast<unsigned>(next / items_a_block);
            threadIdx.x = static_cast<unsigned>(next % items_a_block * EL_CUDA_THREADS / items_a_block);
            const bool in_order = loop([&](int64_t i) { return i == next && (next += step) > 0; });
            if (!in_order || next < N) return false;
        }
    return true;
}

} // namespace

const char *el_loops_wrong(void)
{
    const struct {
        unsigned first, blocks;
        int64_t n;
    } most = {0, 65536, N}, each = {0, N / EL_CUDA_THREADS + 1, N};
    if (!visits_its_own(EL_CUDA_THREADS, [](auto is_next) {
            EL_CUDA_EACH(i, N) if (!is_next(i)) return false;
            return true;
        }))
        return "EL_CUDA_EACH";
    if (!visits_its_own(WARPS_A_BLOCK, [](auto is_next) {
            EL_CUDA_EACH_WARP(i, N) if (!is_next(i)) return false;
            return true;
        }))
        return "EL_CUDA_EACH_WARP";
    if (!visits_its_own(EL_CUDA_THREADS, [&](auto is_next) {
            EL_CUDA_EACH_OF(i, (gridDim.x == most.blocks ? most : each)) if (!is_next(i)) return false;
            return true;
        }))
        return "EL_CUDA_EACH_OF";
    return NULL;
}
