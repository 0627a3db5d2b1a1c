/* The reference kernels of images against answers worked out by hand: they are the truth for all other kernels. */
#include <math.h>

#include "tests/unit/test_kernels_common.h"

/* One image of 3 x 3, one filter of 3 x 3, both numbered row by row; stride 2 and a padding of 1 leave 2 x 2 places,
 * each with a corner of the image: y[0,0] = 1*5 + 2*6 + 4*8 + 5*9. */
static void test_conv2d(void **state)
{
    double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y[4];
    struct el_kernel_args args = {.p = {x, w, y}, .d = {1, 3, 3, 1, 1, 3, 2, 1}};
    run_f64(EL_OP_CONV2D_FORWARD, &args);
    assert_all_near(y, (double[]){94, 106, 106, 94}, 4);
    double dy[] = {1, 10, 100, 1000}, dx[9], dw[9];
    args.p[0] = dy, args.p[2] = dx;
    run_f64(EL_OP_CONV2D_BACKWARD_DATA, &args); /* the middle is under each window: 9*1 + 7*10 + 3*100 + 1*1000 */
    assert_all_near(dx, (double[]){5, 46, 50, 208, 1379, 2080, 500, 4600, 5000}, 9);
    args.p[0] = x, args.p[1] = dy, args.p[2] = dw;
    run_f64(EL_OP_CONV2D_BACKWARD_WEIGHTS, &args); /* the middle tap meets the corners: 1*1 + 3*10 + 7*100 + 9*1000 */
    assert_all_near(dw, (double[]){5000, 6400, 500, 8020, 9731, 802, 50, 64, 5}, 9);
    args.s[0] = 1;
    run_f64(EL_OP_CONV2D_BACKWARD_WEIGHTS, &args);
    assert_all_near(dw, (double[]){10000, 12800, 1000, 16040, 19462, 1604, 100, 128, 10}, 9);
    args.p[0] = dy, args.p[1] = w, args.p[2] = dx;
    run_f64(EL_OP_CONV2D_BACKWARD_DATA, &args);
    assert_all_near(dx, (double[]){10, 92, 100, 416, 2758, 4160, 1000, 9200, 10000}, 9);
}

/* A window of one pixel is a product at each of them; two samples of 1 x 1, two channels, two filters. */
static void test_conv2d_channels(void **state)
{
    double x[] = {1, 2, 3, 4}, w[] = {1, 10, 100, 1000}, y[4];
    struct el_kernel_args args = {.p = {x, w, y}, .d = {2, 1, 1, 2, 2, 1, 1, 0}};
    run_f64(EL_OP_CONV2D_FORWARD, &args);
    assert_all_near(y, (double[]){21, 2100, 43, 4300}, 4);
}

/* [4, 2]: the channels' means are 2 and 5, their biased variances 1 and 6; with eps = 3 rstd is 1/2 and 1/3. */
static double norm_x[] = {1, 1, 3, 7, 1, 7, 3, 5}, norm_scale[] = {2, 3}, norm_shift[] = {10, -1};

static void test_batch_norm_forward(void **state)
{
    double residual[] = {1, 5, 2, -2, 3, 0, 4, 1}, mean[] = {0, 10}, variance[] = {1, 1}, y[8], saved[4];
    struct el_kernel_args args = {
        .p = {norm_x, norm_scale, norm_shift, NULL, mean, variance, y, saved}, .d = {4, 2}, .s = {3, 0.1, 0}};
    run_f64(EL_OP_BATCH_NORM_FORWARD, &args);
    assert_all_near(y, (double[]){9, -5, 11, 1, 9, 1, 11, -1}, 8);
    assert_all_near(saved, (double[]){2, 5, 1.0 / 2, 1.0 / 3}, 4);
    assert_all_near(mean, (double[]){0.2, 9.5}, 2);
    assert_all_near(variance, (double[]){0.9 + 0.1 * 4 / 3, 0.9 + 0.1 * 8}, 2); /* divided by n - 1 */
    args.s[2] = 1;
    run_f64(EL_OP_BATCH_NORM_FORWARD, &args);
    assert_all_near(y, (double[]){9, 0, 11, 1, 9, 1, 11, 0}, 8);
    args.p[3] = residual;
    run_f64(EL_OP_BATCH_NORM_FORWARD, &args);
    assert_all_near(y, (double[]){10, 0, 13, 0, 12, 1, 15, 0}, 8);
    args.s[2] = 0;
    run_f64(EL_OP_BATCH_NORM_FORWARD, &args);
    assert_all_near(y, (double[]){10, 0, 13, -1, 12, 1, 15, 0}, 8);
}

static void test_batch_norm_inference(void **state)
{
    double residual[] = {1, 1, 1, 1, 1, 1, 1, 1}, mean[] = {1, 1}, variance[] = {1, 6}, y[8];
    struct el_kernel_args args = {
        .p = {norm_x, norm_scale, norm_shift, NULL, mean, variance, y}, .d = {4, 2}, .s = {3, 1}};
    run_f64(EL_OP_BATCH_NORM_INFERENCE, &args);
    assert_all_near(y, (double[]){10, 0, 12, 5, 10, 5, 12, 3}, 8);
    args.p[3] = residual, args.s[1] = 0;
    run_f64(EL_OP_BATCH_NORM_INFERENCE, &args);
    assert_all_near(y, (double[]){11, 0, 13, 6, 11, 6, 13, 4}, 8);
    assert_all_near(variance, (double[]){1, 6}, 2);
}

/* What comes back is 1 at one element of the first channel, 3 at one of the second. There scale * rstd = 1, so that dx
 * is g - 1/4 + x^/8, and g - 3/4 - x^/2, of normalised x^: -1/2, 1/2, ... and -4/3, 2/3, 2/3, 0. */
static void test_batch_norm_backward(void **state)
{
    double dy[] = {1, 0, 0, 3, 0, 0, 0, 0}, saved[] = {2, 5, 1.0 / 2, 1.0 / 3}, dx[8], dscale[2], dshift[2];
    struct el_kernel_args args = {.p = {dy, norm_x, NULL, norm_scale, saved, dx, dscale, dshift, NULL}, .d = {4, 2}};
    run_f64(EL_OP_BATCH_NORM_BACKWARD, &args);
    const double want[] = {0.6875, -1.0 / 12, -0.1875, 23.0 / 12, -0.3125, -13.0 / 12, -0.1875, -9.0 / 12};
    assert_all_near(dx, want, 8);
    assert_all_near(dscale, (double[]){-0.5, 2}, 2);
    assert_all_near(dshift, (double[]){1, 3}, 2);
    /* The ReLU was shut at the first channel's element. */
    double y[] = {0, 1, 1, 1, 1, 0, 0, 1}, dresidual[] = {7, 7, 7, 7, 7, 7, 7, 7};
    args.p[2] = y, args.p[8] = dresidual, args.s[0] = 1, args.s[1] = 1;
    run_f64(EL_OP_BATCH_NORM_BACKWARD, &args);
    for (int i = 0; i < 8; i++) assert_near(dx[i], i % 2 ? want[i] : 0);
    assert_all_near(dscale, (double[]){-0.5, 4}, 2);
    assert_all_near(dshift, (double[]){1, 6}, 2);
    assert_all_near(dresidual, (double[]){7, 7, 7, 10, 7, 7, 7, 7}, 8);
    args.p[8] = dy, args.s[1] = 0; /* in place */
    run_f64(EL_OP_BATCH_NORM_BACKWARD, &args);
    assert_all_near(dy, (double[]){0, 0, 0, 3, 0, 0, 0, 0}, 8);
}

static void test_batch_norm_of_one_value_is_refused(void **state)
{
    double one[2] = {1, 1};
    const struct el_kernel_table *tables[] = {el_kernels_reference(), el_kernels_cpu()};
    struct el_kernel_args args = {.p = {one, one, one, NULL, one, one, one, one}, .d = {1, 1}, .s = {1e-5, 0.1}};
    for (int t = 0; t < 2; t++) {
        assert_int_equal(tables[t]->find(EL_OP_BATCH_NORM_FORWARD, EL_F64)->run(&args), EL_ERR_INTERNAL);
        assert_non_null(strstr(el_error_message(), "at least 2 samples"));
    }
}

/* Windows of 3 x 3, stride 2, padding 1 on 3 x 3: the first 5 wins, for two windows at once. */
static void test_max_pool(void **state)
{
    double x[] = {1, 5, 5, 2, 0, 5, -1, -2, -3}, y[4], dy[] = {1, 10, 100, 1000}, dx[9];
    int32_t at[4];
    struct el_kernel_args args = {.p = {x, y, at}, .d = {1, 3, 3, 1, 3, 2, 1}};
    run_f64(EL_OP_MAX_POOL_FORWARD, &args);
    assert_all_near(y, (double[]){5, 5, 2, 5}, 4);
    assert_memory_equal(at, ((int32_t[]){5, 3, 1, 1}), sizeof at);
    struct el_kernel_args back = {.p = {dy, at, dx}, .d = {1, 3, 3, 1, 3, 2, 1}};
    run_f64(EL_OP_MAX_POOL_BACKWARD, &back);
    assert_all_near(dx, (double[]){0, 11, 0, 100, 0, 1000, 0, 0, 0}, 9);
    double below[] = {-1, -2}; /* one pixel of two channels: the padding round it is not larger */
    struct el_kernel_args one = {.p = {below, y, at}, .d = {1, 1, 1, 2, 3, 1, 1}};
    run_f64(EL_OP_MAX_POOL_FORWARD, &one);
    assert_all_near(y, below, 2);
    assert_memory_equal(at, ((int32_t[]){4, 4}), 2 * sizeof *at);
}

static void test_mean_pool(void **state)
{
    double x[] = {1, 10, 2, 20, 3, 30, 6, 40}, y[2], dy[] = {4, 8}, dx[8];
    struct el_kernel_args args = {.p = {x, y}, .d = {1, 4, 2}};
    run_f64(EL_OP_MEAN_POOL_FORWARD, &args);
    assert_all_near(y, (double[]){3, 25}, 2);
    args.p[0] = dy, args.p[1] = dx;
    run_f64(EL_OP_MEAN_POOL_BACKWARD, &args);
    assert_all_near(dx, (double[]){1, 2, 1, 2, 1, 2, 1, 2}, 8);
    args.s[0] = 1;
    run_f64(EL_OP_MEAN_POOL_BACKWARD, &args);
    assert_all_near(dx, (double[]){2, 4, 2, 4, 2, 4, 2, 4}, 8);
}

RUN_TESTS(NULL, NULL, test_conv2d, test_conv2d_channels, test_batch_norm_forward, test_batch_norm_inference,
          test_batch_norm_backward, test_batch_norm_of_one_value_is_refused, test_max_pool, test_mean_pool)
