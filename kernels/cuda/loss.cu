/* The losses with their gradients: a warp per sample, in double; then one block sums the samples' losses in fixed
 * order. */
#include "kernels/cuda/common.cuh"

template <typename REAL> __global__ void mean_kernel(const double *part, int64_t n, double divisor, REAL *loss)
{
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += part[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) *loss = static_cast<REAL>(sum / divisor);
}

/* An invalid label gives a loss of NaN. */
template <typename REAL>
__global__ void cross_entropy_kernel(const REAL *__restrict__ logits, const int32_t *__restrict__ labels, int64_t batch,
                                     int64_t classes, double *__restrict__ part, REAL *__restrict__ dlogits)
{
    int lane = threadIdx.x % EL_CUDA_WARP;
    EL_CUDA_EACH_WARP(b, batch)
    {
        const REAL *row = logits + b * classes;
        int64_t label = labels[b];
        double largest = -INFINITY, sum = 0;
        for (int64_t c = lane; c < classes; c += EL_CUDA_WARP) largest = fmax(largest, static_cast<double>(row[c]));
        largest = warp_max(largest);
        for (int64_t c = lane; c < classes; c += EL_CUDA_WARP) sum += exp(static_cast<double>(row[c]) - largest);
        sum = warp_sum(sum);
        for (int64_t c = lane; c < classes; c += EL_CUDA_WARP) {
            double share = exp(static_cast<double>(row[c]) - largest) / sum;
            dlogits[b * classes + c] = static_cast<REAL>((share - (c == label)) / static_cast<double>(batch));
        }
        bool valid = label >= 0 && label < classes;
        if (lane == 0) part[b] = valid ? log(sum) + largest - static_cast<double>(row[label]) : NAN;
    }
}

template <typename REAL> static enum el_status cross_entropy(const struct el_kernel_args *args)
{
    int64_t batch = args->d[0], classes = args->d[1];
    double *part = static_cast<double *>(args->workspace);
    EL_TRY(launch_warps(args, "cross_entropy", batch, cross_entropy_kernel<REAL>, static_cast<const REAL *>(args->p[0]),
                        static_cast<const int32_t *>(args->p[1]), batch, classes, part,
                        static_cast<REAL *>(args->p[3])));
    return launch_blocks(args, "cross_entropy's mean", 1, mean_kernel<REAL>, part, batch, static_cast<double>(batch),
                         static_cast<REAL *>(args->p[2]));
}

template <typename REAL>
__global__ void cross_entropy_piece_kernel(const REAL *__restrict__ logits, const int32_t *__restrict__ labels,
                                           int64_t batch, int64_t classes, int64_t first, int64_t of,
                                           REAL *__restrict__ part)
{
    int lane = threadIdx.x % EL_CUDA_WARP;
    EL_CUDA_EACH_WARP(b, batch)
    {
        const REAL *row = logits + b * classes;
        int64_t label = labels[b] - first;
        double largest = -INFINITY, sum = 0;
        for (int64_t c = lane; c < classes; c += EL_CUDA_WARP) largest = fmax(largest, static_cast<double>(row[c]));
        largest = warp_max(largest);
        for (int64_t c = lane; c < classes; c += EL_CUDA_WARP) sum += exp(static_cast<double>(row[c]) - largest);
        sum = warp_sum(sum);
        if (lane != 0) continue;
        bool valid = labels[b] >= 0 && labels[b] < of;
        part[3 * b] = static_cast<REAL>(largest);
        part[3 * b + 1] = static_cast<REAL>(sum);
        part[3 * b + 2] = label >= 0 && label < classes ? row[label] : static_cast<REAL>(valid ? 0 : NAN);
    }
}

template <typename REAL> static enum el_status cross_entropy_piece(const struct el_kernel_args *args)
{
    return launch_warps(args, "cross_entropy_piece", args->d[0], cross_entropy_piece_kernel<REAL>,
                        static_cast<const REAL *>(args->p[0]), static_cast<const int32_t *>(args->p[1]), args->d[0],
                        args->d[1], args->d[2], args->d[3], static_cast<REAL *>(args->p[2]));
}

template <typename REAL>
__global__ void cross_entropy_join_kernel(const REAL *__restrict__ logits, const int32_t *__restrict__ labels,
                                          const REAL *__restrict__ parts, int64_t batch, int64_t classes, int64_t first,
                                          int64_t pieces, double *__restrict__ loss, REAL *__restrict__ dlogits)
{
    int lane = threadIdx.x % EL_CUDA_WARP;
    EL_CUDA_EACH_WARP(b, batch)
    {
        double largest = -INFINITY, sum = 0, wanted = 0;
        for (int64_t m = 0; m < pieces; m++) largest = fmax(largest, static_cast<double>(parts[3 * (m * batch + b)]));
        for (int64_t m = 0; m < pieces; m++) {
            const REAL *part = parts + 3 * (m * batch + b);
            sum += static_cast<double>(part[1]) * exp(static_cast<double>(part[0]) - largest);
            wanted += static_cast<double>(part[2]);
        }
        for (int64_t c = lane; c < classes; c += EL_CUDA_WARP) {
            double share = exp(static_cast<double>(logits[b * classes + c]) - largest) / sum;
            dlogits[b * classes + c] =
                static_cast<REAL>((share - (first + c == labels[b])) / static_cast<double>(batch));
        }
        if (lane == 0) loss[b] = log(sum) + largest - wanted;
    }
}

template <typename REAL> static enum el_status cross_entropy_join(const struct el_kernel_args *args)
{
    int64_t batch = args->d[0];
    double *part = static_cast<double *>(args->workspace);
    EL_TRY(launch_warps(args, "cross_entropy_join", batch, cross_entropy_join_kernel<REAL>,
                        static_cast<const REAL *>(args->p[0]), static_cast<const int32_t *>(args->p[1]),
                        static_cast<const REAL *>(args->p[2]), batch, args->d[1], args->d[2], args->d[4], part,
                        static_cast<REAL *>(args->p[4])));
    return launch_blocks(args, "cross_entropy's mean", 1, mean_kernel<REAL>, part, batch, static_cast<double>(batch),
                         static_cast<REAL *>(args->p[3]));
}

template <typename REAL>
__global__ void mse_kernel(const REAL *__restrict__ y, const int32_t *__restrict__ labels, int64_t batch,
                           int64_t classes, double *__restrict__ part, REAL *__restrict__ dy)
{
    int lane = threadIdx.x % EL_CUDA_WARP;
    double n = static_cast<double>(batch * classes);
    EL_CUDA_EACH_WARP(b, batch)
    {
        int64_t label = labels[b];
        double sum = 0;
        for (int64_t c = lane; c < classes; c += EL_CUDA_WARP) {
            double off = static_cast<double>(y[b * classes + c]) - (c == label);
            sum += off * off;
            dy[b * classes + c] = static_cast<REAL>(2 * off / n);
        }
        sum = warp_sum(sum);
        if (lane == 0) part[b] = label >= 0 && label < (classes > 1 ? classes : 2) ? sum : NAN;
    }
}

template <typename REAL> static enum el_status mse(const struct el_kernel_args *args)
{
    int64_t batch = args->d[0], classes = args->d[1];
    double *part = static_cast<double *>(args->workspace);
    EL_TRY(launch_warps(args, "mse", batch, mse_kernel<REAL>, static_cast<const REAL *>(args->p[0]),
                        static_cast<const int32_t *>(args->p[1]), batch, classes, part,
                        static_cast<REAL *>(args->p[3])));
    return launch_blocks(args, "mse's mean", 1, mean_kernel<REAL>, part, batch, static_cast<double>(batch * classes),
                         static_cast<REAL *>(args->p[2]));
}

template <typename REAL> static size_t part_bytes(const struct el_kernel_args *args)
{
    return static_cast<size_t>(args->d[0]) * sizeof(double);
}

EL_CUDA_RUN(cross_entropy)
EL_CUDA_WORKSPACE(cross_entropy, part_bytes)
EL_CUDA_RUN(cross_entropy_piece)
EL_CUDA_RUN(cross_entropy_join)
EL_CUDA_WORKSPACE(cross_entropy_join, part_bytes)
EL_CUDA_RUN(mse)
EL_CUDA_WORKSPACE(mse, part_bytes)
