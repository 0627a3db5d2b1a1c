/* A convolution's windows as matrix rows (im2col), and their sum back into images (col2im). */
#include "kernels/cuda/common.cuh"

extern "C" {
#include "kernels/cuda/conv.h"
}
#include "kernels/window.h"

template <typename REAL>
__global__ void columns_kernel(const REAL *__restrict__ x, struct el_cuda_conv s, int64_t items,
                               REAL *__restrict__ columns)
{
    EL_CUDA_EACH(i, items)
    {
        int64_t c = i % s.c, tap = i / s.c % (s.kh * s.kw), place = i / (s.c * s.kh * s.kw);
        int64_t row = place / s.ow % s.oh * s.stride - s.pad + tap / s.kw;
        int64_t column = place % s.ow * s.stride - s.pad + tap % s.kw;
        bool inside = row >= 0 && row < s.h && column >= 0 && column < s.w;
        columns[i] = inside ? x[((place / (s.oh * s.ow) * s.h + row) * s.w + column) * s.c + c] : 0;
    }
}

template <typename REAL>
static enum el_status columns_of(const struct el_kernel_args *args, const struct el_cuda_conv *conv, int64_t samples,
                                 const void *x, void *columns)
{
    int64_t items = samples * conv->oh * conv->ow * conv->kh * conv->kw * conv->c;
    return launch(args, "a convolution's columns", items, columns_kernel<REAL>, static_cast<const REAL *>(x), *conv,
                  items, static_cast<REAL *>(columns));
}

enum el_status el_cuda_columns(const struct el_kernel_args *args, enum el_dtype dtype, const struct el_cuda_conv *conv,
                               int64_t samples, const void *x, void *columns)
{
    return dtype == EL_F64 ? columns_of<double>(args, conv, samples, x, columns)
                           : columns_of<float>(args, conv, samples, x, columns);
}

/* A thread per element of dx sums its values: no two threads add to one place. */
template <typename REAL>
__global__ void add_columns_kernel(const REAL *__restrict__ columns, struct el_cuda_conv s, int64_t items,
                                   REAL *__restrict__ dx)
{
    EL_CUDA_EACH(i, items)
    {
        int64_t c = i % s.c, column = i / s.c % s.w, row = i / (s.c * s.w) % s.h, sample = i / (s.c * s.w * s.h);
        double sum = s.acc ? static_cast<double>(dx[i]) : 0;
        for (int64_t ky = 0; ky < s.kh; ky++) {
            int64_t oy = el_window_place_of(row, ky, s.oh, s.stride, s.pad);
            if (oy < 0) continue;
            for (int64_t kx = 0; kx < s.kw; kx++) {
                int64_t ox = el_window_place_of(column, kx, s.ow, s.stride, s.pad);
                if (ox < 0) continue;
                int64_t place = (sample * s.oh + oy) * s.ow + ox;
                sum += static_cast<double>(columns[(place * s.kh * s.kw + ky * s.kw + kx) * s.c + c]);
            }
        }
        dx[i] = static_cast<REAL>(sum);
    }
}

template <typename REAL>
static enum el_status add_columns(const struct el_kernel_args *args, const struct el_cuda_conv *conv, int64_t samples,
                                  const void *columns, void *dx)
{
    int64_t items = samples * conv->h * conv->w * conv->c;
    return launch(args, "a convolution's sum of columns", items, add_columns_kernel<REAL>,
                  static_cast<const REAL *>(columns), *conv, items, static_cast<REAL *>(dx));
}

enum el_status el_cuda_add_columns(const struct el_kernel_args *args, enum el_dtype dtype,
                                   const struct el_cuda_conv *conv, int64_t samples, const void *columns, void *dx)
{
    return dtype == EL_F64 ? add_columns<double>(args, conv, samples, columns, dx)
                           : add_columns<float>(args, conv, samples, columns, dx);
}
