/* The loader: for any number of ranks, the ranks' rows of a step together are one device's batch of that step, in
 * whatever order steps are asked for; evaluation meets every sample once; features are unit vectors. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/rng.h"
#include "runtime/data/data.h"
#include "runtime/data/samples.h"

enum { SAMPLES = 53, SEQ = 3, BATCH_MAX = 60, FEATURES = 7, RANKS_MAX = 5 };
static char path[] = "/tmp/el-test-loader-XXXXXX";

/* Sample i is the word w<i> of label i; from sample 40 on there is another word twice. */
static int make_set(void **state)
{
    int descriptor = mkstemp(path);
    if (descriptor < 0) return -1;
    for (int i = 0; i < SAMPLES; i++) dprintf(descriptor, "%d w%d%s\n", i, i, i < 40 ? "" : " more more");
    close(descriptor);
    return el_dataset_open(&(struct el_dataset_spec){.source = path, .held_out = 0.2}, (struct el_dataset **)state);
}

static int drop_set(void **state)
{
    el_dataset_close(*state);
    return unlink(path);
}

static struct el_loader *open_good(const struct el_dataset *set, struct el_loader_spec spec)
{
    struct el_loader *loader = NULL;
    if (el_loader_open(set, &spec, &loader) != EL_OK) fail_msg("%s", el_error_message());
    return loader;
}

static void shares_differ_by_one(void **state)
{
    for (int batch = 0; batch <= BATCH_MAX; batch++) {
        for (int ranks = 1; ranks <= 9; ranks++) {
            int64_t sum = 0;
            for (int rank = 0; rank < ranks; rank++) {
                int64_t share = el_share_size(batch, ranks, rank);
                assert_int_equal(share, batch / ranks + (rank < batch % ranks));
                sum += share;
            }
            assert_int_equal(sum, batch);
        }
    }
}

/* By largest remainder: 17 and 5 of 22 are 16.5 and 5.5, of which the first is rounded up; 8 of 3 alike are 3, 3, 2. */
static void weights_share_by_largest_remainder(void **state)
{
    static const struct {
        struct el_shares shares;
        int64_t batch, first[4], samples[4];
    } cases[] = {{{2, {3, 1}}, 22, {0, 17}, {17, 5}},
                 {{2, {1, 3}}, 22, {0, 6}, {6, 16}},
                 {{3, {1, 1, 1}}, 8, {0, 3, 6}, {3, 3, 2}},
                 {{3, {1, 2, 6}}, 10, {0, 1, 3}, {1, 2, 7}},
                 {{4, {1000000, 1, 1, 1}}, 9, {0, 9, 9, 9}, {9, 0, 0, 0}},
                 {{2, {17, 5}}, 22, {0, 17}, {17, 5}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int p = 0; p < cases[i].shares.n; p++) {
            struct el_batch_part part = el_batch_part(&cases[i].shares, cases[i].batch, cases[i].shares.n, p);
            assert_int_equal(part.samples, cases[i].samples[p]);
            if (part.samples) assert_int_equal(part.first, cases[i].first[p]);
            assert_int_equal(part.stride, 1);
        }
}

/* Pieces of 12 and 11 samples, each cut as 3 to 1. */
static void with_more_parts_each_piece_is_shared(void **state)
{
    static const struct el_batch_part wanted[] = {{0, 1, 9}, {9, 1, 3}, {12, 1, 8}, {20, 1, 3}};
    const struct el_shares shares = {2, {3, 1}}, none = {0};
    for (int p = 0; p < 4; p++) {
        struct el_batch_part part = el_batch_part(&shares, 23, 4, p), alike = el_batch_part(&none, 23, 4, p);
        assert_memory_equal(&part, &wanted[p], sizeof part);
        assert_int_equal(alike.first, p);
        assert_int_equal(alike.stride, 4);
        assert_int_equal(alike.samples, el_share_size(23, 4, p));
    }
}

/* Each sample is one part's. */
static void weighted_parts_make_up_the_batch(void **state)
{
    const struct el_rng_key key = {.seed = 5};
    for (uint64_t i = 0; i < 2000; i++) {
        struct el_shares shares = {.n = 2 + (int)(el_rng_u64(&key, i, 0) % 8)};
        int64_t batch = 1 + (int64_t)(el_rng_u64(&key, i, 1) % 500), next = 0;
        int parts = shares.n * (1 + (int)(el_rng_u64(&key, i, 2) % 3));
        for (int w = 0; w < shares.n; w++) shares.weight[w] = 1 + (int)(el_rng_u64(&key, i, 3 + (uint64_t)w) % 1000);
        for (int p = 0; p < parts; p++) {
            struct el_batch_part part = el_batch_part(&shares, batch, parts, p);
            assert_int_equal(part.first, next);
            next += part.samples;
        }
        assert_int_equal(next, batch);
    }
}

/* Every rank's rows of `step` against one device's: row j of rank r is row r + j * ranks. */
static void check_union(const struct el_dataset *set, struct el_loader_spec spec, int ranks, const uint64_t *steps,
                        int n_steps)
{
    spec.ranks = 1, spec.rank = 0;
    struct el_loader *one = open_good(set, spec);
    spec.ranks = ranks;
    const size_t row_bytes = spec.input == EL_INPUT_IDS ? SEQ * sizeof(int32_t) : FEATURES * sizeof(double);
    for (spec.rank = 0; spec.rank < ranks; spec.rank++) {
        struct el_loader *loader = open_good(set, spec);
        assert_int_equal(el_loader_steps_per_epoch(loader), el_loader_steps_per_epoch(one));
        for (int s = 0; s < n_steps; s++) {
            char whole[BATCH_MAX * FEATURES * sizeof(double)], part[sizeof whole];
            int32_t whole_labels[BATCH_MAX], part_labels[BATCH_MAX];
            assert_int_equal(el_loader_fill(one, steps[s], whole, whole_labels), EL_OK);
            assert_int_equal(el_loader_fill(loader, steps[n_steps - 1 - s], part, part_labels), EL_OK);
            assert_int_equal(el_loader_fill(loader, steps[s], part, part_labels), EL_OK);
            for (int64_t j = 0; j < el_share_size(spec.global_batch, ranks, spec.rank); j++) {
                size_t at = (size_t)(spec.rank + j * ranks);
                assert_int_equal(part_labels[j], whole_labels[at]);
                assert_memory_equal(part + (size_t)j * row_bytes, whole + at * row_bytes, row_bytes);
            }
        }
        el_loader_close(loader);
    }
    el_loader_close(one);
}

static void ranks_make_up_the_batch(void **state)
{
    static const int64_t batches[] = {1, 5, 7, 12, 16, 43};
    static const uint64_t steps[] = {3, 0, 17, 1, 40, 2, 41, 0};
    for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++) {
        for (int ranks = 1; ranks <= RANKS_MAX; ranks++) {
            struct el_loader_spec spec = {.global_batch = batches[b], .shuffle = true, .seed = 9};
            check_union(*state, spec, ranks, steps, sizeof steps / sizeof steps[0]);
            spec.shuffle = false;
            check_union(*state, spec, ranks, steps, sizeof steps / sizeof steps[0]);
            spec.shuffle = true, spec.input = EL_INPUT_FEATURES, spec.features = FEATURES, spec.dtype = EL_F64;
            check_union(*state, spec, ranks, steps, sizeof steps / sizeof steps[0]);
        }
    }
}

/* The labels of `n` steps from `first` on, one device. */
static void read_labels(const struct el_dataset *set, struct el_loader_spec spec, uint64_t first, int n,
                        int32_t *labels)
{
    int32_t ids[BATCH_MAX * SEQ];
    struct el_loader *loader = open_good(set, spec);
    for (int s = n - 1; s >= 0; s--)
        assert_int_equal(el_loader_fill(loader, first + (uint64_t)s, ids, labels + s * spec.global_batch), EL_OK);
    el_loader_close(loader);
}

/* 43 training samples (10 of 53 are held out) in batches of 10: 4 steps an epoch, 3 samples left out. */
static void an_epoch_repeats_no_sample(void **state)
{
    const struct el_loader_spec spec = {.global_batch = 10, .ranks = 1, .shuffle = true, .seed = 9};
    int32_t first[40], again[40], second[40], seen[SAMPLES] = {0};
    struct el_loader *loader = open_good(*state, spec);
    assert_int_equal(el_loader_steps_per_epoch(loader), 4);
    el_loader_close(loader);
    read_labels(*state, spec, 0, 4, first);
    read_labels(*state, spec, 0, 4, again);
    read_labels(*state, spec, 4, 4, second);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, second, sizeof first);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(seen[first[i]]++, 0);
        assert_int_not_equal(first[i] % 5, 4); /* those are held out */
    }
    struct el_loader_spec reseeded = spec;
    reseeded.seed = 10;
    read_labels(*state, reseeded, 0, 4, again);
    assert_memory_not_equal(first, again, sizeof first);
}

/* As DistributedSampler deals: rank r has each n-th sample of the epoch's order, from place r on. */
static void ranks_are_dealt_the_order_in_turns(void **state)
{
    enum { SIZE = 43, BATCH = 43, RANKS = 4 };
    int64_t order[SIZE];
    int32_t labels[SIZE];
    el_permute(SIZE, 4, 2, order);
    for (int rank = 0; rank < RANKS; rank++) {
        const struct el_loader_spec spec = {
            .global_batch = BATCH, .ranks = RANKS, .rank = rank, .shuffle = true, .seed = 4};
        read_labels(*state, spec, 2, 1, labels);
        for (int64_t j = 0; j < el_share_size(BATCH, RANKS, rank); j++) {
            int64_t index = order[rank + j * RANKS];
            assert_int_equal(labels[j], index + index / 4); /* the fifth of five is held out */
        }
    }
}

static void evaluation_meets_each_once(void **state)
{
    for (int batch = 1; batch <= BATCH_MAX; batch += 3) {
        for (int ranks = 1; ranks <= RANKS_MAX; ranks++) {
            int seen[SAMPLES] = {0}, filled_up = 0;
            int64_t steps = 0;
            for (int rank = 0; rank < ranks; rank++) {
                struct el_loader *loader =
                    open_good(*state, (struct el_loader_spec){.global_batch = batch, .ranks = ranks, .rank = rank});
                steps = el_loader_steps_per_epoch(loader);
                for (int64_t step = 0; step < steps; step++) {
                    int32_t ids[BATCH_MAX][SEQ], labels[BATCH_MAX];
                    assert_int_equal(el_loader_fill(loader, (uint64_t)step, ids, labels), EL_OK);
                    for (int64_t j = 0; j < el_share_size(batch, ranks, rank); j++) {
                        if (labels[j] >= 0) seen[labels[j]]++;
                        if (labels[j] < 0) filled_up++, assert_int_equal(labels[j] + ids[j][0] + ids[j][SEQ - 1], -1);
                    }
                }
                el_loader_close(loader);
            }
            for (int i = 0; i < SAMPLES; i++) assert_int_equal(seen[i], i % 5 != 4 || i >= 50);
            assert_int_equal(filled_up, steps * batch - 43);
        }
    }
}

/* DistributedSampler(set, n, r, shuffle=False), by its own lines: the set's indices, then its first ones again until
 * they are a multiple of n; of these every n-th from r on. `labels` of a rank follow one another over its batches, and
 * what fills up the last one is not counted. */
static void padding_repeats_the_first(void **state)
{
    static const int sizes[] = {1, 2, 5, 8, 11}, worlds[] = {1, 2, 3, 4, 7}, rows[] = {1, 3};
    for (int c = 0; c < 5 * 5 * 2; c++) {
        char name[] = "/tmp/el-test-padding-XXXXXX";
        const int n = sizes[c % 5], ranks = worlds[c / 5 % 5], batch = rows[c / 25] * ranks;
        int descriptor = mkstemp(name), total = (n + ranks - 1) / ranks * ranks;
        struct el_dataset *set;
        for (int i = 0; i < n; i++) dprintf(descriptor, "%d w%d\n", i, i);
        close(descriptor);
        assert_int_equal(el_dataset_open(&(struct el_dataset_spec){.source = path, .test_path = name}, &set), EL_OK);
        for (int rank = 0; rank < ranks; rank++) {
            const struct el_loader_spec spec = {
                .split = EL_SPLIT_TEST, .global_batch = batch, .ranks = ranks, .rank = rank, .pad = true};
            struct el_loader *loader = open_good(set, spec);
            int place = rank;
            for (int64_t step = 0; step < el_loader_steps_per_epoch(loader); step++) {
                int32_t ids[BATCH_MAX][SEQ], labels[BATCH_MAX];
                assert_int_equal(el_loader_fill(loader, (uint64_t)step, ids, labels), EL_OK);
                for (int j = 0; j < rows[c / 25]; j++, place += ranks)
                    assert_int_equal(labels[j], place < total ? place % n : -1);
            }
            assert_true(place >= total);
            el_loader_close(loader);
        }
        el_dataset_close(set);
        unlink(name);
    }
}

static void features_are_unit_vectors(void **state)
{
    double rows[43][FEATURES];
    float singles[43][FEATURES];
    int32_t labels[43];
    struct el_loader_spec spec = {.global_batch = 43, .ranks = 1, .input = EL_INPUT_FEATURES, .features = FEATURES};
    spec.dtype = EL_F64;
    struct el_loader *loader = open_good(*state, spec);
    assert_int_equal(el_loader_fill(loader, 0, rows, labels), EL_OK);
    el_loader_close(loader);
    spec.dtype = EL_F32;
    loader = open_good(*state, spec);
    assert_int_equal(el_loader_fill(loader, 0, singles, labels), EL_OK);
    el_loader_close(loader);
    int bins_used = 0, two = 0;
    double used[FEATURES] = {0};
    for (int i = 0; i < 43; i++) {
        double squares = 0;
        int nonzero = 0;
        for (int f = 0; f < FEATURES; f++) {
            squares += rows[i][f] * rows[i][f];
            nonzero += rows[i][f] > 0;
            used[f] += rows[i][f];
            assert_true(fabs(rows[i][f] - (double)singles[i][f]) < 1e-6);
        }
        assert_true(fabs(squares - 1) < 1e-12);
        assert_in_range(nonzero, 1, labels[i] < 40 ? 1 : 2);
        two += nonzero == 2;
    }
    for (int f = 0; f < FEATURES; f++) bins_used += used[f] > 0;
    assert_int_equal(bins_used, FEATURES);
    assert_true(two > 0);
}

static void refuses_what_cannot_be(void **state)
{
    const struct {
        struct el_loader_spec spec;
        const char *word;
    } cases[] = {
        {{.global_batch = 64, .ranks = 2, .shuffle = true}, "43 training samples are less than one global batch of 64"},
        {{.split = EL_SPLIT_TEST, .global_batch = 4, .ranks = 1}, "no test samples"},
        {{.global_batch = 0, .ranks = 1}, "batch of 0"},
        {{.global_batch = 4, .ranks = 2, .rank = 2}, "rank 2 of 2"},
        {{.global_batch = 4, .ranks = 1, .input = EL_INPUT_FEATURES}, "0 features"},
        {{.global_batch = 4, .ranks = 1, .input = EL_INPUT_FEATURES, .features = 3, .dtype = EL_I32}, "f32 or f64"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_loader *loader = NULL;
        assert_int_equal(el_loader_open(*state, &cases[i].spec, &loader), EL_ERR_INVALID);
        assert_null(loader);
        if (!strstr(el_error_message(), cases[i].word)) fail_msg("%s", el_error_message());
    }
    el_loader_close(NULL);
}

RUN_TESTS(make_set, drop_set, shares_differ_by_one, weights_share_by_largest_remainder,
          with_more_parts_each_piece_is_shared, weighted_parts_make_up_the_batch, ranks_make_up_the_batch,
          an_epoch_repeats_no_sample, ranks_are_dealt_the_order_in_turns, evaluation_meets_each_once,
          padding_repeats_the_first, features_are_unit_vectors, refuses_what_cannot_be)
