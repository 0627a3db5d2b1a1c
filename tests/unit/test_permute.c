/* The order of an epoch: each sample once, by seed and epoch, all orders equally likely. */
#include "tests/test.h"

#include "runtime/data/samples.h"

enum { LENGTH = 40 };

static void each_sample_comes_once(void **state)
{
    for (int length = 0; length <= LENGTH; length++) {
        int64_t order[LENGTH];
        int seen[LENGTH] = {0};
        el_permute(length, 7, 3, order);
        for (int i = 0; i < length; i++) {
            assert_in_range(order[i], 0, length - 1);
            assert_int_equal(seen[order[i]]++, 0);
        }
    }
}

static void orders_go_by_seed_and_epoch(void **state)
{
    int64_t first[LENGTH], again[LENGTH], other[LENGTH];
    const struct {
        uint64_t seed;
        int64_t epoch;
    } others[] = {{1, 1}, {2, 0}, {0, 1}, {1, (int64_t)1 << 32}, {(uint64_t)1 << 32 | 1, 0}};
    el_permute(LENGTH, 1, 0, first);
    el_permute(LENGTH, 1, 0, again);
    assert_memory_equal(first, again, sizeof first);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        el_permute(LENGTH, others[i].seed, others[i].epoch, other);
        assert_memory_not_equal(first, other, sizeof first);
    }
}

/* 24,000 epochs of 4 samples: each of the 24 orders about 1,000 times (standard deviation 31). */
static void orders_are_equally_likely(void **state)
{
    int times[256] = {0}, orders = 0;
    for (int epoch = 0; epoch < 24000; epoch++) {
        int64_t order[4];
        el_permute(4, 5, epoch, order);
        times[order[0] << 6 | order[1] << 4 | order[2] << 2 | order[3]]++;
    }
    for (int i = 0; i < 256; i++) {
        if (!times[i]) continue;
        orders++;
        assert_in_range(times[i], 840, 1160);
    }
    assert_int_equal(orders, 24);
}

RUN_TESTS(NULL, NULL, each_sample_comes_once, orders_go_by_seed_and_epoch, orders_are_equally_likely)
