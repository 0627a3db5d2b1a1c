/* The arithmetic that the CUDA kernels depend on and that needs no GPU: how many blocks, where things lie in a
 * workspace, sums that no order changes. */
#include "tests/test.h"

#include <stdlib.h>

#include "kernels/cuda/conv.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/exact_sum.h"
#include "kernels/cuda/layer.h"
#include "tests/unit/test_random_common.h"

/* CUDA refuses an empty grid and one beyond 2^31 - 1 blocks; every item must have a thread or be strided to. */
static void test_blocks(void **state)
{
    const int64_t sizes[] = {1, 255, 256, 257, 1 << 20, ((int64_t)1 << 31) - 1, (int64_t)1 << 31, (int64_t)1 << 40};
    assert_int_equal(el_cuda_blocks(0, 256), 0);
    assert_int_equal(el_cuda_blocks(-1, 256), 0);
    assert_int_equal(el_cuda_blocks(256, 256), 1);
    assert_int_equal(el_cuda_blocks(257, 256), 2);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned blocks = el_cuda_blocks(sizes[i], 256);
        assert_in_range(blocks, 1, EL_CUDA_BLOCKS_MAX);
        assert_true(blocks == EL_CUDA_BLOCKS_MAX || (int64_t)blocks * 256 >= sizes[i]);
        assert_true((int64_t)(blocks - 1) * 256 < sizes[i]); /* no block without work */
    }
    assert_true(el_cuda_ceil_div(INT64_MAX, 2) == INT64_MAX / 2 + 1);
    assert_int_equal(el_cuda_align(0), 0);
    assert_int_equal(el_cuda_align(1), 256);
    assert_int_equal(el_cuda_align(256), 256);
}

/* In any order of candidates the first of the largest wins; "none yet" loses to everything. */
static void test_first_maximum_in_any_order(void **state)
{
    const double x[] = {-3, 2, -1, 2, 2};
    struct random random = random_seeded(5);
    for (int trial = 0; trial < 200; trial++) {
        double best = 0;
        int64_t best_at = -1;
        int seen = 0;
        while (seen != 31) {
            int i = (int)(random_u64(&random) % 5);
            seen |= 1 << i;
            if (el_cuda_max_replaces(x[i], i, best, best_at)) best = x[i], best_at = i;
            assert_false(el_cuda_max_replaces(9, -1, best, best_at));
        }
        assert_int_equal(best_at, 1);
        assert_true(best == 2);
    }
}

static void test_stretches(void **state)
{
    const int64_t rows[] = {0, 1, 63, 64, 65, 100, 128, 4095, 4096, 4097, 1000003};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t stretches = el_cuda_stretches(rows[i], i % 2 ? 64 : 5000);
        assert_in_range(stretches, 1, EL_CUDA_STRETCHES_MAX);
        assert_true(stretches * el_cuda_ceil_div(rows[i], stretches) >= rows[i]); /* all rows are in one */
    }
    assert_int_equal(el_cuda_stretches(64, 10), 1);
    assert_int_equal(el_cuda_stretches(65, 10), 2);
    assert_int_equal(el_cuda_stretches(INT64_MAX / 2, 64), 256);
    assert_int_equal(el_cuda_stretches(INT64_MAX / 2, 64 * 1024), 1);
    assert_int_equal(el_cuda_sum_rows_bytes(65, 10, 3), 2 * 10 * 3 * 8);
}

/* Columns of 64 MiB at most, but for one sample's. */
static void test_columns(void **state)
{
    struct el_cuda_conv conv = {
        .b = 32, .c = 3, .kh = 7, .kw = 7, .oh = 112, .ow = 112}; /* 7,375,872 bytes per sample */
    assert_int_equal(el_cuda_columns_samples(&conv, EL_F32), 9);
    assert_int_equal(el_cuda_columns_samples(&conv, EL_F64), 4);
    conv.b = 8;
    assert_int_equal(el_cuda_columns_samples(&conv, EL_F32), 8);
    conv.c = 64;
    assert_int_equal(el_cuda_columns_samples(&conv, EL_F32), 1);
    conv.b = 0;
    assert_int_equal(el_cuda_columns_samples(&conv, EL_F32), 1);
}

static void test_embedding_layout(void **state)
{
    struct el_embedding_layout one = el_embedding_layout(3, 5, 7, 1), two = el_embedding_layout(3, 5, 7, 2);
    assert_int_equal(one.sums, 0);
    assert_int_equal(one.peaks, 3 * 7 * 8);
    assert_true(one.heads >= one.peaks + 3 * 8 && one.heads % 64 == 0);
    assert_int_equal(one.bytes, one.heads + 5 * 4);
    assert_int_equal(two.peaks, 2 * one.peaks);
    /* Beyond what an int counts: 2^20 positions of 4,096 values. */
    struct el_embedding_layout large = el_embedding_layout(1 << 20, 400000, 4096, 2);
    assert_true(large.peaks == (size_t)1 << 36);
    int32_t none;
    memset(&none, EL_EMBEDDING_NONE_BYTE, sizeof none);
    assert_int_equal(none, EL_EMBEDDING_POSITIONS_MAX);
}

struct sum {
    int64_t words[EL_EXACT_WORDS_MAX];
};

/* As the kernel does, in the order that `step` gives (it and n have no common divisor). */
static struct sum sum_of(const double *x, int64_t n, int64_t step, int shift, int digits)
{
    struct sum sum = {{0, 0}};
    for (int64_t i = 0; i < n; i++) {
        int64_t words[EL_EXACT_WORDS_MAX];
        el_exact_split(x[i * step % n], shift, digits, words);
        for (int w = 0; w < EL_EXACT_WORDS_MAX; w++)
            assert_false(__builtin_add_overflow(sum.words[w], words[w], &sum.words[w]));
    }
    return sum;
}

/* Terms of one sign that fill the range, of both, of very different sizes, at both ends of what a double holds. */
static void check_sum(double scale, double spread, double offset)
{
    enum { N = 4099 };
    static double x[N];
    struct random random = random_seeded(11);
    double peak = 0;
    long double truth = 0, magnitude = 0;
    for (int i = 0; i < N; i++) {
        x[i] = (random_uniform(&random) * 2 - 1 + offset) * exp2(-spread * random_uniform(&random)) * scale;
        peak = fmax(peak, fabs(x[i]));
        truth += x[i];
        magnitude += fabsl((long double)x[i]);
    }
    int digits = el_exact_digits(N), shift = el_exact_shift(peak, digits);
    struct sum first = sum_of(x, N, 1, shift, digits), other = sum_of(x, N, 1009, shift, digits);
    assert_memory_equal(&first, &other, sizeof first);
    double two = el_exact_value(first.words[0], first.words[1], shift, digits);
    double one = el_exact_value(first.words[0], 0, shift, digits);
    assert_true(fabsl(two - truth) <= magnitude * 0x1p-52L);
    assert_true(fabsl(one - truth) <= (long double)peak * N * exp2l(-digits));
}

static void test_exact_sums(void **state)
{
    check_sum(1, 0, 0);
    check_sum(1, 0, 5);
    check_sum(1, 40, 0);
    check_sum(1e-30, 20, 0);
    check_sum(1e300, 3, 1);
    check_sum(1e-290, 3, 0);
}

/* One term comes back as it was; none has a sum of 0; the largest that may come still fits. */
static void test_exact_sum_ends(void **state)
{
    const double terms[] = {1, -1, 0x1.fffffep-1, -0x1p-149, 3.4e38, 1e-300, 0x1.fffffffffffffp1023};
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        for (int log2_n = 0; log2_n <= 30; log2_n += 15) {
            int digits = el_exact_digits((int64_t)1 << log2_n), shift = el_exact_shift(fabs(terms[i]), digits);
            int64_t words[EL_EXACT_WORDS_MAX];
            assert_int_equal(digits, EL_EXACT_BITS - log2_n);
            el_exact_split(terms[i], shift, digits, words);
            assert_true(el_exact_value(words[0], words[1], shift, digits) == terms[i]);
            assert_true(llabs(words[0]) <= (int64_t)1 << digits);
        }
    }
    int64_t words[EL_EXACT_WORDS_MAX];
    el_exact_split(0, el_exact_shift(0, 50), 50, words);
    assert_true(words[0] == 0 && words[1] == 0);
    assert_int_equal(el_exact_digits(1), 62);
    assert_int_equal(el_exact_digits(3), 60);
}

RUN_TESTS(NULL, NULL, test_blocks, test_first_maximum_in_any_order, test_stretches, test_columns, test_embedding_layout,
          test_exact_sums, test_exact_sum_ends)
