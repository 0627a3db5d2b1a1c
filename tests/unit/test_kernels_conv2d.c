/* conv2d on stored weights: the layout is a permutation at known places; every row that may do the work gives the
 * reference's numbers on it; and the library has a real implementation for every convolution of the resnets. */
#include <math.h>

#include "kernels/cpu/conv2d.h"
#include "kernels/cpu/cpu.h"
#include "tests/unit/test_kernels_common.h"

static const enum el_op_kind ops[] = {EL_OP_CONV2D_FORWARD, EL_OP_CONV2D_BACKWARD_DATA, EL_OP_CONV2D_BACKWARD_WEIGHTS};
enum { OPS = sizeof ops / sizeof ops[0] };

static float *floats(int64_t n, int salt)
{
    float *values = aligned_alloc(64, ((size_t)n * sizeof *values + 63) / 64 * 64);
    assert_non_null(values);
    for (int64_t i = 0; i < n; i++) values[i] = (float)operand_value(IN, salt, i);
    return values;
}

static void test_layout(void **state)
{
    const int64_t shape[4] = {32, 3, 3, 48}, odd[4] = {64, 7, 7, 3}, n = 32 * 9 * 48;
    const struct el_weights_layout *layout = el_kernels_cpu()->weights(EL_F32, shape);
    assert_non_null(layout);
    assert_string_equal(layout->name, "OIhw16i16o");
    assert_null(el_kernels_cpu()->weights(EL_F64, shape));
    assert_null(el_kernels_cpu()->weights(EL_F32, odd));
    assert_null(el_kernels_reference()->weights);
    float *plain = floats(n, 1), *stored = floats(n, 2), *back = floats(n, 3);
    layout->pack(shape, plain, stored);
    /* Filter 17, row 2, column 1, channel 37: block 1 of filters, block 2 of three of channels. */
    assert_true(stored[(((1 * 3 + 2) * 3 + 2) * 3 + 1) * 256 + 5 * 16 + 1] == plain[((17 * 3 + 2) * 3 + 1) * 48 + 37]);
    layout->unpack(shape, stored, back);
    assert_memory_equal(back, plain, (size_t)n * sizeof *plain);
    layout->unpack_channels_first(shape, stored, back);
    for (int64_t i = 0; i < n; i++) /* by filter, tap and channel */
        assert_true(back[i / 432 * 432 + i % 48 * 9 + i / 48 % 9] == plain[i]);
    free(plain);
    free(stored);
    free(back);
}

/* One op on stored weights by `row`, on plain ones by the reference. */
static void check_stored(const struct el_kernel *row, enum el_op_kind op, const int64_t d[8], int acc, const char *name)
{
    const struct el_window s = el_window_of_conv2d(d);
    const int64_t shape[4] = {s.f, s.k, s.k, s.c}, w = s.f * s.k * s.k * s.c, x = s.b * s.h * s.w * s.c;
    const int64_t y = s.b * s.oh * s.ow * s.f;
    const struct el_weights_layout *layout = el_kernels_cpu()->weights(EL_F32, shape);
    int out = 2, weights = op == EL_OP_CONV2D_BACKWARD_WEIGHTS ? 2 : 1;
    int64_t n[3] = {op == EL_OP_CONV2D_BACKWARD_DATA ? y : x, weights == 2 ? y : w, weights == 2 ? w : x};
    if (op == EL_OP_CONV2D_FORWARD) n[out] = y;
    struct el_kernel_args plain = {.s = {acc}}, stored = {.s = {acc}, .k = {1}};
    memcpy(plain.d, d, sizeof plain.d);
    memcpy(stored.d, d, sizeof stored.d);
    for (int i = 0; i < 3; i++) {
        plain.p[i] = floats(n[i], i);
        stored.p[i] = floats(n[i], i);
    }
    layout->pack(shape, plain.p[weights], stored.p[weights]);
    assert_int_equal(el_kernels_reference()->find(op, EL_F32)->run(&plain), EL_OK);
    row_run(row, &stored, name);
    float *got = floats(n[out], 9), *wanted = plain.p[out];
    memcpy(got, stored.p[out], (size_t)n[out] * sizeof *got);
    if (weights == out) layout->unpack(shape, stored.p[out], got);
    for (int64_t i = 0; i < n[out]; i++)
        if (!(fabsf(got[i] - wanted[i]) <= 1e-4f))
            fail_msg("%s %s, %lld x %lld pixels, %lld -> %lld channels, window %lld, stride %lld, acc %d: %g at "
                     "%lld, not %g",
                     name, el_op_name(op), (long long)s.b, (long long)(s.h * s.w), (long long)s.c, (long long)s.f,
                     (long long)s.k, (long long)s.stride, acc, (double)got[i], (long long)i, (double)wanted[i]);
    for (int i = 0; i < 3; i++) {
        free(plain.p[i]);
        free(stored.p[i]);
    }
    free(got);
}

static void test_stored_gives_the_same(void **state)
{
    const struct el_dnnl_module *dnnl = find_dnnl();
    /* b h w c f k stride pad: few pixels and many, windows that hang over two sides, images that are no squares */
    static const int64_t shapes[][8] = {{4, 2, 2, 32, 48, 3, 1, 1},   {3, 4, 4, 48, 32, 3, 2, 1},
                                        {5, 3, 2, 32, 64, 1, 1, 0},   {2, 5, 4, 16, 32, 1, 2, 0},
                                        {1, 1, 1, 32, 16, 3, 1, 1},   {2, 12, 9, 32, 64, 3, 1, 1},
                                        {4, 12, 12, 64, 32, 1, 1, 0}, {2, 16, 16, 16, 48, 7, 2, 3}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int o = 0; o < OPS; o++)
            for (int acc = 0; acc <= (ops[o] != EL_OP_CONV2D_FORWARD); acc++) {
                check_stored(el_kernels_cpu()->find(ops[o], EL_F32), ops[o], shapes[i], acc, "cpu");
                if (dnnl) check_stored(dnnl->find(ops[o], EL_F32), ops[o], shapes[i], acc, "oneDNN");
            }
}

/* What oneDNN would do for one convolution and its gradients. */
static void check_chosen(const struct el_dnnl_module *dnnl, const int64_t d[8])
{
    const int64_t shape[4] = {d[4], d[5], d[5], d[3]};
    for (int o = 0; o < OPS; o++) {
        const struct el_kernel *row = dnnl->find(ops[o], EL_F32);
        struct el_kernel_args args = {.k = {el_kernels_cpu()->weights(EL_F32, shape) != NULL}};
        static float nowhere[16]; /* prepare() reads no operands */
        memcpy(args.d, d, sizeof args.d);
        for (int i = 0; i < 3; i++) args.p[i] = nowhere;
        args.workspace = nowhere;
        assert_int_equal(row->prepare(&args, &args.plan), EL_OK);
        const char *how = row->describe(args.plan);
        if (strstr(how, " ref") || strstr(how, "unknown") || strstr(how, "simple"))
            fail_msg("%s of %lld -> %lld channels, window %lld, %lld x %lld: %s", el_op_name(ops[o]), (long long)d[3],
                     (long long)d[4], (long long)d[5], (long long)d[1], (long long)d[2], how);
        row->release(args.plan);
    }
}

/* The first block of a stage of resnet18 or resnet50, and a further one; returns the side that it leaves. */
static int64_t check_stage(const struct el_dnnl_module *dnnl, bool deep, int stage, int64_t side, int64_t *channels)
{
    int64_t width = INT64_C(64) << stage, stride = stage > 0 ? 2 : 1, out = (side - 1) / stride + 1;
    int64_t last = deep ? 4 * width : width;
    for (int block = 0; block < 2; block++) {
        int64_t h = block ? out : side, s = block ? 1 : stride, c = *channels;
        if (deep) check_chosen(dnnl, (int64_t[8]){4, h, h, c, width, 1, 1, 0});
        check_chosen(dnnl, (int64_t[8]){4, h, h, deep ? width : c, width, 3, s, 1});
        check_chosen(dnnl, (int64_t[8]){4, out, out, width, last, deep ? 1 : 3, 1, deep ? 0 : 1});
        if (block == 0 && c != last) check_chosen(dnnl, (int64_t[8]){4, h, h, c, last, 1, s, 0});
        *channels = last;
    }
    return out;
}

static void test_library_has_no_reference_for_resnets(void **state)
{
    const struct el_dnnl_module *dnnl = find_dnnl();
    if (!dnnl) skip();
    for (int deep = 0; deep < 2; deep++)
        for (int64_t image = 32; image <= 64; image *= 2) {
            int64_t channels = 64, side = image / 4;
            check_chosen(dnnl, (int64_t[8]){4, image, image, 3, 64, 7, 2, 3});
            for (int stage = 0; stage < 4; stage++) side = check_stage(dnnl, deep, stage, side, &channels);
        }
}

RUN_TESTS(NULL, NULL, test_layout, test_stored_gives_the_same, test_library_has_no_reference_for_resnets)
