/* The arithmetic of square windows over images, for convolutions and pools of every backend.
 *
 * Images are [b, h, w, c] with `pad` places added on each side of h and w. A window of k x k taps has oh x ow places,
 * `stride` apart; at place o it begins at o * stride - pad, maybe outside the image. Outside values are 0 in a
 * convolution and never the maximum in a pool. */
#pragma once

#include <stdint.h>

#include "runtime/base/host_device.h"

struct el_window {
    int64_t b, h, w, c;
    int64_t f; /* outputs per place: a convolution's filters, a pool's c */
    int64_t k, stride, pad;
    int64_t oh, ow;
};

EL_HOST_DEVICE static inline int64_t el_window_places(int64_t length, int64_t k, int64_t stride, int64_t pad)
{
    return (length + 2 * pad - k) / stride + 1;
}

/* From the d[] of conv2d_*: b h w c f k stride pad. */
static inline struct el_window el_window_of_conv2d(const int64_t *d)
{
    struct el_window s = {d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], 0, 0};
    s.oh = el_window_places(s.h, s.k, s.stride, s.pad);
    s.ow = el_window_places(s.w, s.k, s.stride, s.pad);
    return s;
}

/* From the d[] of max_pool_*: b h w c k stride pad. */
static inline struct el_window el_window_of_pool(const int64_t *d)
{
    const int64_t conv[] = {d[0], d[1], d[2], d[3], d[3], d[4], d[5], d[6]};
    return el_window_of_conv2d(conv);
}

/* Taps begin..end-1 along one side are inside the image; tap 0 is at `at`. */
struct el_window_taps {
    int64_t at, begin, end;
};

EL_HOST_DEVICE static inline struct el_window_taps el_window_taps(int64_t place, int64_t length, int64_t k,
                                                                  int64_t stride, int64_t pad)
{
    struct el_window_taps taps = {place * stride - pad, 0, k};
    if (taps.at < 0) taps.begin = -taps.at;
    if (length - taps.at < k) taps.end = length - taps.at;
    return taps;
}

/* The place where tap `tap` is at `at`; -1 if there is none. */
EL_HOST_DEVICE static inline int64_t el_window_place_of(int64_t at, int64_t tap, int64_t places, int64_t stride,
                                                        int64_t pad)
{
    int64_t begin = at + pad - tap;
    if (begin < 0 || begin % stride != 0 || begin / stride >= places) return -1;
    return begin / stride;
}
