/* Layouts: what every mode's must hold, and the figures of each of the usual ones. */
#include "tests/test.h"

#include <pthread.h>
#include <stdio.h>

#include "runtime/train/train.h"

static struct el_layout layout_of(const char *mode, int n_devices, int64_t batch, int n_processes)
{
    struct el_train_config config = {.n_devices = n_devices, .global_batch = batch};
    struct el_layout layout;
    snprintf(config.mode, sizeof config.mode, "%s", mode);
    el_layout_of(&config, n_processes, &layout);
    return layout;
}

/* Workers and processes have their devices side by side, each device is in one of each, and each part has a source. */
static void check_groups(const struct el_layout *layout)
{
    int first, at = 0;
    for (int w = 0; w < layout->n_workers; w++) {
        int n = el_layout_of_worker(layout, w, &first);
        assert_true(n >= 1 && first == at);
        for (int d = at; d < at + n; d++)
            assert_int_equal(el_layout_spot(layout, d).process, el_layout_spot(layout, at).process);
        at += n;
    }
    assert_int_equal(at, layout->n_devices);
    at = 0;
    for (int p = 0; p < layout->n_processes; p++) {
        int n = el_layout_of_process(layout, p, &first);
        assert_true(n >= 1 && first == at);
        at += n;
    }
    assert_int_equal(at, layout->n_devices);
    for (int d = 0; d < layout->n_devices; d++) {
        const struct el_spot source = el_layout_spot(layout, el_layout_source(layout, d));
        assert_true(source.owns && (el_layout_is_cut(layout) || source.process == 0));
        assert_int_equal(source.at[EL_AXIS_STAGE], el_layout_spot(layout, d).at[EL_AXIS_STAGE]);
        assert_int_equal(source.at[EL_AXIS_SHARD], el_layout_spot(layout, d).at[EL_AXIS_SHARD]);
        assert_int_equal(source.at[EL_AXIS_TENSOR], el_layout_spot(layout, d).at[EL_AXIS_TENSOR]);
        assert_int_equal(source.at[EL_AXIS_EXPERT], el_layout_spot(layout, d).at[EL_AXIS_EXPERT]);
    }
}

/* Whether an earlier device computes with the same samples. */
static bool is_copy(const struct el_layout *layout, int device)
{
    for (int d = 0; d < device; d++)
        if (el_layout_spot(layout, d).at[EL_AXIS_DATA] == el_layout_spot(layout, device).at[EL_AXIS_DATA] &&
            el_layout_spot(layout, d).at[EL_AXIS_SHARD] == el_layout_spot(layout, device).at[EL_AXIS_SHARD] &&
            el_layout_spot(layout, d).at[EL_AXIS_EXPERT] == el_layout_spot(layout, device).at[EL_AXIS_EXPERT])
            return true;
    return false;
}

/* Data ranks share the batch: each sample is one's, and is loaded for it. */
static void check_samples(const struct el_layout *layout, int64_t batch)
{
    int64_t computed = 0, loaded = 0;
    int data_ranks = 0;
    for (int d = 0; d < layout->n_devices; d++) {
        const struct el_spot spot = el_layout_spot(layout, d);
        assert_in_range(spot.samples, 0, batch);
        if (is_copy(layout, d)) continue;
        computed += spot.samples;
        data_ranks += spot.samples > 0;
        if (spot.n_feeds > 0) loaded += el_share_size(batch, spot.n_feeds, spot.feed);
    }
    assert_int_equal(computed, batch);
    assert_int_equal(loaded, batch);
    assert_int_equal(data_ranks, layout->n[EL_AXIS_DATA] * layout->n[EL_AXIS_SHARD] * layout->n[EL_AXIS_EXPERT]);
}

static void every_mode_has_a_whole_layout(void **state)
{
    assert_int_equal(el_mode_devices("nomode", 2), 0);
    for (const struct el_mode_info *mode = el_mode_list(); mode->name; mode++)
        for (int n = 1; n <= 9; n++)
            for (int procs = 0; procs <= n; procs++)
                for (int64_t batch = n; batch < 3 * n; batch++) {
                    struct el_layout layout = layout_of(mode->name, n, batch, procs);
                    assert_in_range(layout.n_devices, 1, n);
                    assert_int_equal(layout.n_devices, el_mode_devices(mode->name, n));
                    assert_true(procs != 1 || layout.n_processes == 1);
                    check_groups(&layout);
                    check_samples(&layout, batch);
                }
}

/* Two copies of two stages: a group of two for each place along the other axis, and none of all four. */
static void groups_differ_along_one_axis(void **state)
{
    struct el_train_config config = {
        .mode = "pipeline", .n_devices = 4, .global_batch = 8, .mesh = {[EL_AXIS_DATA] = 2}};
    struct el_layout layout;
    el_layout_of(&config, 1, &layout);
    for (int d = 0; d < 4; d++) {
        assert_int_equal(el_layout_group(&layout, EL_AXIS_DATA, d), d % 2);
        assert_int_equal(el_layout_group(&layout, EL_AXIS_STAGE, d), d / 2);
    }
    for (enum el_axis axis = 0; axis < EL_AXIS_COUNT; axis++) {
        assert_int_equal(el_layout_differs(&layout, axis), axis <= EL_AXIS_STAGE);
        assert_false(el_layout_is_whole(&layout, axis));
    }
    layout = layout_of("pipeline", 4, 8, 1);
    assert_true(el_layout_is_whole(&layout, EL_AXIS_STAGE) && !el_layout_differs(&layout, EL_AXIS_DATA));
    layout = layout_of("dp", 4, 8, 1); /* one worker has no other to talk to */
    assert_false(el_layout_differs(&layout, EL_AXIS_DATA));
}

/* tensor.chunk's pieces: the last ones are smaller, or there are fewer than devices. */
static void one_worker_has_chunks(void **state)
{
    static const int64_t sizes[][5] = {{2, 2, 2, 2, 0}, {3, 3, 3, 3, 1}};
    for (int i = 0; i < 2; i++) {
        struct el_layout layout = layout_of("dp", 5, i ? 13 : 8, 5);
        assert_int_equal(layout.n_workers, 1);
        assert_int_equal(layout.n_processes, 1);
        assert_int_equal(layout.n[EL_AXIS_DATA], i ? 5 : 4);
        for (int d = 0; d < 5; d++) {
            assert_int_equal(el_layout_spot(&layout, d).samples, sizes[i][d]);
            assert_int_equal(el_layout_spot(&layout, d).owns, d == 0);
        }
    }
}

static void a_worker_each_is_threads_or_processes(void **state)
{
    static const struct {
        int asked, n_processes;
    } cases[] = {{0, 3}, {1, 1}, {2, 3}, {3, 3}}; /* two processes for three devices: as it would have them */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_layout layout = layout_of("ddp", 3, 8, cases[i].asked);
        assert_int_equal(layout.n_processes, cases[i].n_processes);
        assert_int_equal(layout.n_workers, 3);
        for (int d = 0; d < 3; d++) {
            assert_int_equal(el_layout_spot(&layout, d).samples, d == 2 ? 2 : 3);
            assert_int_equal(el_layout_spot(&layout, d).feed, d);
            assert_int_equal(el_layout_source(&layout, d), 0);
        }
    }
}

/* Ranks of several devices: shares as ddp's ranks have them, cut as dp cuts a batch. */
static void workers_of_several_devices_cut_their_shares(void **state)
{
    static const int64_t sizes[] = {2, 2, 1, 2, 2, 1}; /* 11 in shares of 6 and 5: of three devices each */
    static const struct {
        int asked, n_ranks, n_processes, n_workers;
    } cases[] = {{0, 0, 1, 1}, {2, 0, 2, 2}, {1, 2, 1, 2}, {0, 2, 2, 2}, {4, 0, 1, 1}}; /* 4: not among 6 devices */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_train_config config = {
            .mode = "spmg", .n_devices = 6, .global_batch = 11, .mesh = {[EL_AXIS_DATA] = cases[i].n_ranks}};
        struct el_layout layout;
        el_layout_of(&config, cases[i].asked, &layout);
        check_groups(&layout);
        check_samples(&layout, 11);
        assert_int_equal(layout.n_processes, cases[i].n_processes);
        assert_int_equal(layout.n_workers, cases[i].n_workers);
        for (int d = 0; d < 6 && cases[i].n_workers == 2; d++) {
            assert_int_equal(el_layout_spot(&layout, d).samples, d == 2 ? 2 : sizes[d]);
            assert_int_equal(el_layout_spot(&layout, d).owns, d % 3 == 0);
            assert_int_equal(el_layout_spot(&layout, d).n_feeds, d % 3 ? 0 : 2);
        }
    }
}

static void *list_all(void *unused)
{
    (void)unused;
    assert_string_equal(el_mode_list()->name, "single");
    assert_string_equal(el_model_list()->name, "textcnn");
    return NULL;
}

/* The thread sanitizer sees a list that is made anew at each call. */
static void lists_are_for_any_thread(void **state)
{
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, list_all, NULL), 0);
    list_all(NULL);
    pthread_join(other, NULL);
}

RUN_TESTS(NULL, NULL, lists_are_for_any_thread, every_mode_has_a_whole_layout, groups_differ_along_one_axis,
          one_worker_has_chunks, a_worker_each_is_threads_or_processes, workers_of_several_devices_cut_their_shares)
