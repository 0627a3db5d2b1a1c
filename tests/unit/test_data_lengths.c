/* Lengths: rows as long as a batch's longest sentence, batches of sentences of similar length, and made-up sentences of
 * given lengths; by sets whose answers are known. */
#include "tests/test.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/data/data.h"
#include "runtime/data/samples.h"

enum { WORDS = 8, BATCH = 2, STEPS = WORDS / BATCH, EPOCHS = 5, VALUES_MAX = 4096 };
static char path[] = "/tmp/el-test-lengths-XXXXXX";

/* Sample i has i + 1 words, and label i. */
static int make_set(void **state)
{
    int descriptor = mkstemp(path);
    if (descriptor < 0) return -1;
    for (int i = 0; i < WORDS; i++) {
        dprintf(descriptor, "%d", i);
        for (int w = 0; w <= i; w++) dprintf(descriptor, " w");
        dprintf(descriptor, "\n");
    }
    return close(descriptor);
}

static int drop_set(void **state)
{
    return unlink(path);
}

static struct el_dataset *open_set(const struct el_dataset_spec *spec)
{
    struct el_dataset *set = NULL;
    if (el_dataset_open(spec, &set) != EL_OK) fail_msg("%s", el_error_message());
    return set;
}

static struct el_loader *open_loader(const struct el_dataset *set, const struct el_loader_spec *spec)
{
    struct el_loader *loader = NULL;
    if (el_loader_open(set, spec, &loader) != EL_OK) fail_msg("%s", el_error_message());
    return loader;
}

/* Words of the whole epoch's rows, each sample once; its labels in their order. Row by row what is no padding. */
static int64_t check_epoch(struct el_loader *loader, int64_t least, int epoch, int32_t labels[WORDS])
{
    int32_t rows[VALUES_MAX];
    bool met[WORDS] = {false};
    int64_t places = 0;
    for (int step = 0; step < STEPS; step++) {
        const uint64_t number = (uint64_t)(epoch * STEPS + step);
        int32_t *own = labels + step * BATCH;
        const int64_t length = el_loader_length(loader, number);
        memset(rows, 0xff, sizeof rows);
        assert_int_equal(el_loader_fill(loader, number, rows, own), EL_OK);
        int longest = own[0] > own[1] ? own[0] + 1 : own[1] + 1;
        assert_int_equal(length, longest > least ? longest : least);
        for (int i = 0; i < BATCH * length; i++)
            assert_int_equal(rows[i] == EL_ID_PADDING, i % length > own[i / length]);
        for (int i = 0; i < BATCH; i++) {
            assert_false(met[own[i]]);
            met[own[i]] = true;
        }
        places += BATCH * length;
    }
    return places;
}

static void a_batch_is_as_long_as_its_longest_sentence(void **state)
{
    static const bool stored[] = {false, true};
    for (int way = 0; way < 2; way++)
        for (int workers = 0; workers <= 2; workers++) {
            struct el_dataset *set = open_set(&(struct el_dataset_spec){.source = path, .in_files = stored[way]});
            struct el_loader_spec spec = {
                .global_batch = BATCH, .ranks = 1, .shuffle = true, .seed = 5, .least = 6, .loading.workers = workers};
            struct el_loader *loader = open_loader(set, &spec);
            struct el_load_account account;
            int32_t labels[WORDS];
            int64_t places = check_epoch(loader, spec.least, 0, labels);
            el_loader_account(loader, &account);
            assert_int_equal(account.times.places, places);
            assert_int_equal(account.times.words, WORDS * (WORDS + 1) / 2);
            assert_int_equal(account.times.longest, WORDS);
            el_loader_close(loader);
            el_dataset_close(set);
        }
}

static void without_it_rows_have_the_sets_length(void **state)
{
    struct el_dataset *set = open_set(&(struct el_dataset_spec){.source = path, .seq = 5});
    struct el_loader *loader = open_loader(set, &(struct el_loader_spec){.global_batch = WORDS, .ranks = 1});
    struct el_load_account account;
    int32_t rows[VALUES_MAX], labels[WORDS];
    assert_int_equal(el_loader_length(loader, 0), 5);
    assert_int_equal(el_loader_fill(loader, 0, rows, labels), EL_OK);
    el_loader_account(loader, &account);
    assert_int_equal(account.times.places, 5 * WORDS);
    assert_int_equal(account.times.words, 1 + 2 + 3 + 4 + 5 * 4); /* the rest is cut */
    el_loader_close(loader);
    el_dataset_close(set);
}

/* Pairs of 1 and 2 words, 3 and 4, 5 and 6, 7 and 8: 2 (2 + 4 + 6 + 8) places, whatever the shuffle. */
static void similar_lengths_share_a_batch(void **state)
{
    struct el_dataset *set = open_set(&(struct el_dataset_spec){.source = path});
    struct el_loader_spec spec = {.global_batch = BATCH, .ranks = 1, .shuffle = true, .seed = 5, .least = 1};
    struct el_loader *shuffled = open_loader(set, &spec);
    spec.bucket = true;
    struct el_loader *sorted = open_loader(set, &spec), *again = open_loader(set, &spec);
    int32_t first[WORDS], labels[WORDS], same[WORDS];
    int n_orders = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int64_t places = check_epoch(sorted, 1, epoch, labels);
        assert_int_equal(places, 40);
        assert_true(places <= check_epoch(shuffled, 1, epoch, same));
        check_epoch(again, 1, epoch, same);
        assert_memory_equal(labels, same, sizeof same);
        for (int i = 0; i < WORDS; i += BATCH) assert_int_equal(labels[i] / BATCH, labels[i + 1] / BATCH);
        if (epoch == 0) memcpy(first, labels, sizeof first);
        n_orders += memcmp(first, labels, sizeof first) != 0;
    }
    assert_true(n_orders > 0);
    assert_true(check_epoch(shuffled, 1, 0, same) > 40);
    el_loader_close(again);
    el_loader_close(sorted);
    el_loader_close(shuffled);
    el_dataset_close(set);
}

/* What an epoch leaves out is the same as without sorting; ranks of a step have similar lengths. */
static void an_epoch_has_the_same_samples_and_ranks_are_alike(void **state)
{
    struct el_dataset *set = open_set(&(struct el_dataset_spec){.source = path});
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        int met[2] = {0, 0};
        for (int way = 0; way < 2; way++)
            for (int rank = 0; rank < 2; rank++) {
                struct el_loader_spec spec = {.global_batch = 3, .ranks = 2, .rank = rank, .shuffle = true, .least = 1};
                spec.bucket = way;
                struct el_loader *loader = open_loader(set, &spec);
                for (int step = 0; step < 2; step++) {
                    int32_t rows[VALUES_MAX], labels[2];
                    assert_int_equal(el_loader_fill(loader, (uint64_t)(epoch * 2 + step), rows, labels), EL_OK);
                    for (int i = 0; i < 2 - rank; i++) met[way] |= 1 << labels[i];
                }
                el_loader_close(loader);
            }
        assert_int_equal(met[0], met[1]);
        assert_int_equal(__builtin_popcount((unsigned)met[0]), 6);
    }
    el_dataset_close(set);
}

/* Made-up sentences: no shorter, no longer, all lengths; and as ever where nothing is asked for. */
static void made_up_sentences_have_the_lengths_asked_for(void **state)
{
    static const char *const sources[] = {"dummy", "synthetic"};
    for (int s = 0; s < 2; s++) {
        struct el_dataset_spec spec = {.source = sources[s], .seed = 2, .seq_min = 5, .shortest = 1, .longest = 12};
        struct el_dataset *set = open_set(&spec);
        const int64_t size = el_dataset_size(set, EL_SPLIT_TRAIN);
        int64_t n[13] = {0};
        assert_int_equal(el_dataset_info(set)->seq, 12);
        for (int64_t i = 0; i < size; i++) {
            int64_t length = el_dataset_sample(set, EL_SPLIT_TRAIN, i).length;
            assert_in_range(length, 1, 12);
            n[length]++;
        }
        for (int length = 1; length <= 12; length++)
            assert_in_range(n[length], size / 12 * 8 / 10, size / 12 * 12 / 10);
        el_dataset_close(set);
        spec.longest = spec.shortest = 3;
        set = open_set(&spec);
        assert_int_equal(el_dataset_info(set)->seq, 5);
        assert_int_equal(el_dataset_sample(set, EL_SPLIT_TRAIN, 7).length, 3);
        el_dataset_close(set);
    }
}

static void refuses_lengths_that_cannot_be(void **state)
{
    static const struct {
        const char *source;
        int64_t shortest, longest;
        const char *words;
    } cases[] = {{"dummy", 5, 4, "lengths 5-4: from 1"},
                 {"dummy", 0, 4, "lengths 0-4"},
                 {"synthetic", 1, 1 << 21, "from 1 to 1048576 words"},
                 {path, 4, 8, "have their own lengths: leave it out"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_dataset *set;
        struct el_dataset_spec spec = {
            .source = cases[i].source, .shortest = cases[i].shortest, .longest = cases[i].longest};
        assert_int_equal(el_dataset_open(&spec, &set), EL_ERR_INVALID);
        if (!strstr(el_error_message(), cases[i].words)) fail_msg("%s", el_error_message());
    }
}

RUN_TESTS(make_set, drop_set, a_batch_is_as_long_as_its_longest_sentence, without_it_rows_have_the_sets_length,
          similar_lengths_share_a_batch, an_epoch_has_the_same_samples_and_ranks_are_alike,
          made_up_sentences_have_the_lengths_asked_for, refuses_lengths_that_cannot_be)
