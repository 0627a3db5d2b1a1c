/* The two groupings against published and hand-worked answers. */
#include "tests/test.h"

#include "runtime/gradients/reducer.h"

enum { MIB = 1 << 20, RESNET18_TENSORS = 62 };

/* ResNet-18's parameters in order of registration, f32: convolutions, batch norms (weight, bias), down-samplings, fc.
 */
static int resnet18(size_t *bytes)
{
    int n = 0;
    bytes[n++] = 64 * 3 * 7 * 7;
    bytes[n++] = 64;
    bytes[n++] = 64;
    for (size_t stage = 0, in = 64; stage < 4; stage++) {
        size_t out = (size_t)64 << stage;
        for (int block = 0; block < 2; block++) {
            bytes[n++] = out * in * 9;
            bytes[n++] = out;
            bytes[n++] = out;
            bytes[n++] = out * out * 9;
            bytes[n++] = out;
            bytes[n++] = out;
            if (stage > 0 && block == 0) {
                bytes[n++] = out * in;
                bytes[n++] = out;
                bytes[n++] = out;
            }
            in = out;
        }
    }
    bytes[n++] = 1000 * 512;
    bytes[n++] = 1000;
    for (int i = 0; i < n; i++) bytes[i] *= 4;
    return n;
}

static void sizes_of(const size_t *bytes, const int *order, int n, size_t cap, size_t *sizes, int *n_buckets)
{
    int group[RESNET18_TENSORS];
    const size_t limits[] = {MIB, cap};
    *n_buckets = el_buckets_assign(bytes, order, n, limits, 2, group);
    for (int b = 0; b < *n_buckets; b++) sizes[b] = 0;
    for (int i = 0; i < n; i++) sizes[group[i]] += bytes[order[i]];
}

/* pytorch#48880, gradient-ready order (the reverse of registration). */
static void resnet18_buckets_are_the_published_ones(void **state)
{
    size_t bytes[RESNET18_TENSORS], sizes[RESNET18_TENSORS], sum = 0;
    int order[RESNET18_TENSORS], n_buckets;
    assert_int_equal(resnet18(bytes), RESNET18_TENSORS);
    for (int i = 0; i < RESNET18_TENSORS; i++) {
        order[i] = RESNET18_TENSORS - 1 - i;
        sum += bytes[i];
    }
    assert_int_equal(sum, 46758048);
    sizes_of(bytes, order, RESNET18_TENSORS, 25 * MIB, sizes, &n_buckets);
    assert_int_equal(n_buckets, 3);
    assert_int_equal(sizes[0], 2052000);
    assert_int_equal(sizes[1], 28852224);
    assert_int_equal(sizes[2], 15853824);
    sizes_of(bytes, order, RESNET18_TENSORS, 35 * MIB, sizes, &n_buckets);
    assert_int_equal(n_buckets, 3);
    assert_int_equal(sizes[0], 2052000);
    assert_int_equal(sizes[1], 38297600);
    assert_int_equal(sizes[2], 6408448);
}

static void a_bucket_closes_after_the_tensor_that_fills_it(void **state)
{
    const size_t bytes[] = {4, 4, 9, 1, 10}, limits[] = {8, 10};
    const int order[] = {0, 1, 2, 3, 4};
    int group[5];
    assert_int_equal(el_buckets_assign(bytes, order, 5, limits, 2, group), 3);
    assert_int_equal(group[1], 0);
    assert_int_equal(group[2], 1);
    assert_int_equal(group[3], 1);
    assert_int_equal(group[4], 2);
    const size_t whole[] = {SIZE_MAX};
    assert_int_equal(el_buckets_assign(bytes, order, 5, whole, 1, group), 1);
}

static void a_chunk_closes_before_the_tensor_that_overflows_it(void **state)
{
    const size_t bytes[] = {4, 4, 9, 1, 30, 2};
    int group[6];
    assert_int_equal(el_chunks_take(bytes, 6, 10, group), 4);
    assert_int_equal(group[1], 0);
    assert_int_equal(group[2], 1);
    assert_int_equal(group[3], 1);
    assert_int_equal(group[4], 2); /* larger than the limit: alone, never split */
    assert_int_equal(group[5], 3);
    assert_int_equal(el_chunks_take(bytes, 0, 10, group), 0);
}

RUN_TESTS(NULL, NULL, resnet18_buckets_are_the_published_ones, a_bucket_closes_after_the_tensor_that_fills_it,
          a_chunk_closes_before_the_tensor_that_overflows_it)
