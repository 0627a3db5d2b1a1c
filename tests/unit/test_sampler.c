/* The sampler against torch's DistributedSampler: cases worked by hand from its published algorithm, and the properties
 * that hold for every length and number of ranks. Torch's own permutation is not compared: the generators differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/data.h"

enum { LENGTH_MAX = 40, RANKS_MAX = 9 };

static void expect(struct el_sampler_spec spec, int64_t count, const int64_t *wanted)
{
    int64_t indices[LENGTH_MAX];
    assert_int_equal(el_sampler_count(&spec), count);
    assert_int_equal(el_sampler_indices(&spec, 0, indices), EL_OK);
    for (int64_t k = 0; k < count; k++) assert_int_equal(indices[k], wanted[k]);
}

/* 10 samples, 3 ranks: ceil(10/3) = 4 each, total 12, so 0 and 1 are appended and ranks 1 and 2 repeat them. */
static void pads_from_the_start(void **state)
{
    (void)state;
    expect((struct el_sampler_spec){.length = 10, .ranks = 3, .rank = 0}, 4, (int64_t[]){0, 3, 6, 9});
    expect((struct el_sampler_spec){.length = 10, .ranks = 3, .rank = 1}, 4, (int64_t[]){1, 4, 7, 0});
    expect((struct el_sampler_spec){.length = 10, .ranks = 3, .rank = 2}, 4, (int64_t[]){2, 5, 8, 1});
}

/* 2 samples, 5 ranks: 3 are missing, more than there are: the list is repeated, [0, 1] * 2, and cut: 0 1 | 0 1 0. */
static void pads_more_than_once(void **state)
{
    (void)state;
    for (int rank = 0; rank < 5; rank++)
        expect((struct el_sampler_spec){.length = 2, .ranks = 5, .rank = rank}, 1, (int64_t[]){rank % 2});
}

/* 10 samples: ceil((10 - 3) / 3) = 3 each of 3 ranks, 9 is dropped; ceil((10 - 4) / 4) = 2 each of 4, 8 and 9 are. */
static void drops_the_tail(void **state)
{
    (void)state;
    const bool drop_last = true;
    expect((struct el_sampler_spec){.length = 10, .ranks = 3, .rank = 0, .drop_last = drop_last}, 3,
           (int64_t[]){0, 3, 6});
    expect((struct el_sampler_spec){.length = 10, .ranks = 3, .rank = 2, .drop_last = drop_last}, 3,
           (int64_t[]){2, 5, 8});
    expect((struct el_sampler_spec){.length = 10, .ranks = 4, .rank = 3, .drop_last = drop_last}, 2, (int64_t[]){3, 7});
    expect((struct el_sampler_spec){.length = 12, .ranks = 3, .rank = 1, .drop_last = drop_last}, 4,
           (int64_t[]){1, 4, 7, 10});
    expect((struct el_sampler_spec){.length = 3, .ranks = 5, .rank = 0, .drop_last = drop_last}, 0, NULL);
}

static void counts_as_torch_does(void **state)
{
    (void)state;
    for (int length = 0; length <= LENGTH_MAX; length++) {
        for (int ranks = 1; ranks <= RANKS_MAX; ranks++) {
            struct el_sampler_spec spec = {.length = length, .ranks = ranks};
            assert_int_equal(el_sampler_count(&spec), (int64_t)ceil((double)length / ranks));
            spec.drop_last = true;
            double torch = length % ranks ? ceil((double)(length - ranks) / ranks) : ceil((double)length / ranks);
            assert_int_equal(el_sampler_count(&spec), (int64_t)torch);
        }
    }
}

/* All ranks' lists, interleaved, against one rank's list of the same epoch: the same order, padded or cut. */
static void check_partition(int length, int ranks, bool drop_last)
{
    int64_t whole[LENGTH_MAX], part[LENGTH_MAX], seen[LENGTH_MAX] = {0};
    struct el_sampler_spec one = {.length = length, .ranks = 1, .shuffle = true, .seed = 7};
    struct el_sampler_spec spec = {
        .length = length, .ranks = ranks, .shuffle = true, .seed = 7, .drop_last = drop_last};
    assert_int_equal(el_sampler_indices(&one, 3, whole), EL_OK);
    int64_t count = el_sampler_count(&spec), total = count * ranks;
    for (spec.rank = 0; spec.rank < ranks; spec.rank++) {
        assert_int_equal(el_sampler_indices(&spec, 3, part), EL_OK);
        for (int64_t k = 0; k < count; k++) {
            assert_int_equal(part[k], whole[(spec.rank + k * ranks) % length]);
            seen[part[k]]++;
        }
    }
    int64_t least = total / length, covered = 0;
    for (int i = 0; i < length; i++) {
        assert_true(seen[i] == least || seen[i] == least + 1);
        covered += seen[i];
    }
    assert_int_equal(covered, total);
}

static void ranks_partition_an_epoch(void **state)
{
    (void)state;
    for (int length = 1; length <= LENGTH_MAX; length++) {
        for (int ranks = 1; ranks <= RANKS_MAX; ranks++) {
            check_partition(length, ranks, false);
            check_partition(length, ranks, true);
        }
    }
}

static void order_of(uint64_t seed, int64_t epoch, int64_t *order)
{
    struct el_sampler_spec spec = {.length = LENGTH_MAX, .ranks = 1, .shuffle = true, .seed = seed};
    assert_int_equal(el_sampler_indices(&spec, epoch, order), EL_OK);
}

static void orders_go_by_seed_and_epoch(void **state)
{
    (void)state;
    int64_t first[LENGTH_MAX], again[LENGTH_MAX], other[LENGTH_MAX];
    const struct {
        uint64_t seed;
        int64_t epoch;
    } others[] = {{1, 1}, {2, 0}, {0, 1}, {1, (int64_t)1 << 32}, {(uint64_t)1 << 32 | 1, 0}};
    order_of(1, 0, first);
    order_of(1, 0, again);
    assert_memory_equal(first, again, sizeof first);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        order_of(others[i].seed, others[i].epoch, other);
        assert_memory_not_equal(first, other, sizeof first);
    }
}

/* 24,000 epochs of 4 samples: each of the 24 orders about 1,000 times (standard deviation 31). */
static void orders_are_equally_likely(void **state)
{
    (void)state;
    int times[256] = {0}, orders = 0;
    const struct el_sampler_spec spec = {.length = 4, .ranks = 1, .shuffle = true, .seed = 5};
    for (int epoch = 0; epoch < 24000; epoch++) {
        int64_t order[4];
        assert_int_equal(el_sampler_indices(&spec, epoch, order), EL_OK);
        times[order[0] << 6 | order[1] << 4 | order[2] << 2 | order[3]]++;
    }
    for (int i = 0; i < 256; i++) {
        if (!times[i]) continue;
        orders++;
        assert_in_range(times[i], 840, 1160);
    }
    assert_int_equal(orders, 24);
}

static void refuses_ranks_that_are_none(void **state)
{
    (void)state;
    int64_t indices[LENGTH_MAX];
    const struct el_sampler_spec bad[] = {{.length = 4, .ranks = 0, .rank = 0},
                                          {.length = 4, .ranks = 2, .rank = 2},
                                          {.length = 4, .ranks = 2, .rank = -1},
                                          {.length = -1, .ranks = 2, .rank = 0}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(el_sampler_indices(&bad[i], 0, indices), EL_ERR_INVALID);
        assert_int_equal(el_sampler_count(&bad[i]), 0);
        assert_non_null(strstr(el_error_message(), "rank"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pads_from_the_start),
        cmocka_unit_test(pads_more_than_once),
        cmocka_unit_test(drops_the_tail),
        cmocka_unit_test(counts_as_torch_does),
        cmocka_unit_test(ranks_partition_an_epoch),
        cmocka_unit_test(orders_go_by_seed_and_epoch),
        cmocka_unit_test(orders_are_equally_likely),
        cmocka_unit_test(refuses_ranks_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
