/* The synthetic set (same bytes for a seed, written whole or not at all, mended when damaged, learnable but not at a
 * glance) and the dummy set. */
#include "tests/test.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/data/data.h"
#include "tests/unit/own_folder.h"
#include "tests/unit/whole_files.h"

enum { CLASSES = 6, TRAIN = 4000, TEST = 500, FEATURES = 4096 };
static char cache[64]; /* two levels below: both must be made */

static int name_cache(void **state)
{
    if (make_folder(state) != 0) return -1;
    snprintf(cache, sizeof cache, "%s/a/b", folder);
    return 0;
}

/* Counts the files in the cache, and removes them if asked to. */
static int count_files(bool and_remove)
{
    int count = 0;
    DIR *dir = opendir(cache);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') continue;
        count++;
        if (and_remove) unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir) closedir(dir);
    return count;
}

static void is_a_function_of_the_seed(void **state)
{
    char train[PATH_MAX], test[PATH_MAX], other[PATH_MAX];
    size_t lengths[4];
    char *bytes[4];
    count_files(true);
    assert_int_equal(el_synthetic_write(cache, &(struct el_synthetic_spec){.input = EL_INPUT_IDS, .seed = 1}, train,
                                        test, sizeof train),
                     EL_OK);
    bytes[0] = read_whole(train, &lengths[0]);
    bytes[1] = read_whole(test, &lengths[1]);
    count_files(true);
    assert_int_equal(el_synthetic_write(cache, &(struct el_synthetic_spec){.input = EL_INPUT_IDS, .seed = 1}, train,
                                        test, sizeof train),
                     EL_OK);
    bytes[2] = read_whole(train, &lengths[2]);
    assert_int_equal(el_synthetic_write(cache, &(struct el_synthetic_spec){.input = EL_INPUT_IDS, .seed = 2}, other,
                                        test, sizeof train),
                     EL_OK);
    bytes[3] = read_whole(other, &lengths[3]);
    assert_int_equal(count_files(false), 4);
    assert_int_equal(lengths[0], lengths[2]);
    assert_memory_equal(bytes[0], bytes[2], lengths[0]);
    assert_true(lengths[0] != lengths[3] || memcmp(bytes[0], bytes[3], lengths[0]) != 0);
    assert_true(memcmp(bytes[0], bytes[1], 200) != 0);
    for (int i = 0; i < 4; i++) free(bytes[i]);
    assert_int_equal(
        el_synthetic_write(cache, &(struct el_synthetic_spec){.input = EL_INPUT_IDS, .seed = 1}, train, test, 10),
        EL_ERR_INVALID);
}

/* Reused when intact, whole again when damaged. */
static void is_written_once_and_mended(void **state)
{
    char train[PATH_MAX], test[PATH_MAX];
    struct stat first, second;
    size_t before, after;
    assert_int_equal(el_synthetic_write(cache, &(struct el_synthetic_spec){.input = EL_INPUT_IDS, .seed = 1}, train,
                                        test, sizeof train),
                     EL_OK);
    stat(train, &first);
    assert_int_equal(el_synthetic_write(cache, &(struct el_synthetic_spec){.input = EL_INPUT_IDS, .seed = 1}, train,
                                        test, sizeof train),
                     EL_OK);
    stat(train, &second);
    assert_int_equal(first.st_ino, second.st_ino);
    char *whole = read_whole(train, &before);
    assert_int_equal(truncate(train, (off_t)before / 2), 0);
    assert_int_equal(el_synthetic_write(cache, &(struct el_synthetic_spec){.input = EL_INPUT_IDS, .seed = 1}, train,
                                        test, sizeof train),
                     EL_OK);
    char *mended = read_whole(train, &after);
    assert_int_equal(before, after);
    assert_memory_equal(whole, mended, before);
    free(whole), free(mended);
}

static void several_may_write_at_once(void **state)
{
    count_files(true);
    for (int i = 0; i < 4; i++) {
        if (fork() != 0) continue;
        char train[PATH_MAX], test[PATH_MAX];
        _exit(el_synthetic_write(cache, &(struct el_synthetic_spec){.input = EL_INPUT_IDS, .seed = 3}, train, test,
                                 sizeof train) == EL_OK
                  ? 0
                  : 1);
    }
    for (int i = 0, how; i < 4; i++) {
        assert_true(wait(&how) > 0);
        assert_int_equal(how, 0);
    }
    assert_int_equal(count_files(false), 2);
}

/* `named`: what cannot be made. */
static void expect_no_writing(const char *dir, const char *named, const char *words)
{
    char train[PATH_MAX], test[PATH_MAX];
    assert_int_equal(el_synthetic_write(dir, &(struct el_synthetic_spec){.input = EL_INPUT_IDS, .seed = 1}, train, test,
                                        sizeof train),
                     EL_ERR_IO);
    if (!strstr(el_error_message(), named) || !strstr(el_error_message(), words)) fail_msg("%s", el_error_message());
}

/* A limit on the size of files stands for a full disk: a write comes back short and the next one fails. */
static void leaves_nothing_half_written(void **state)
{
    struct rlimit old, low;
    getrlimit(RLIMIT_FSIZE, &old);
    low = old, low.rlim_cur = 100000;
    count_files(true);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    expect_no_writing(cache, cache, "File too large");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(count_files(false), 0);
}

static void names_the_folder_it_cannot_write(void **state)
{
    char train[PATH_MAX], test[PATH_MAX];
    expect_no_writing("/proc/absent/data", "/proc/absent", "cannot make this folder: No such file");
    expect_no_writing("/dev/null/data", "/dev/null/data", "Not a directory");
    if (geteuid() != 0) {
        count_files(true);
        chmod(cache, 0555);
        expect_no_writing(cache, cache, "denied");
        chmod(cache, 0755);
    }
    assert_int_equal(el_synthetic_write("", &(struct el_synthetic_spec){.input = EL_INPUT_IDS, .seed = 1}, train, test,
                                        sizeof train),
                     EL_ERR_INVALID);
}

static void add_rows(const struct el_dataset *set, enum el_data_split split, float *rows, int32_t *labels)
{
    struct el_loader *loader = NULL;
    const struct el_loader_spec spec = {.split = split,
                                        .global_batch = el_dataset_size(set, split),
                                        .ranks = 1,
                                        .input = EL_INPUT_FEATURES,
                                        .features = FEATURES,
                                        .dtype = EL_F32};
    assert_int_equal(el_loader_open(set, &spec, &loader), EL_OK);
    assert_int_equal(el_loader_fill(loader, 0, rows, labels), EL_OK);
    el_loader_close(loader);
}

/* One pass of a perceptron a class over bags of words: well above chance (1/6), well below what there is to learn. */
static void can_be_learned(void **state)
{
    struct el_dataset *set = NULL;
    count_files(true);
    assert_int_equal(el_dataset_open(&(struct el_dataset_spec){.source = "synthetic", .seed = 1}, &set), EL_OK);
    assert_int_equal(count_files(false), 0);
    assert_int_equal(el_dataset_size(set, EL_SPLIT_TRAIN), TRAIN);
    assert_int_equal(el_dataset_size(set, EL_SPLIT_TEST), TEST);
    assert_int_equal(el_dataset_info(set)->classes, CLASSES);
    assert_int_equal(el_dataset_info(set)->seq, 64);
    assert_in_range(el_dataset_info(set)->vocab, 3000, 5000);
    float *rows = malloc(sizeof *rows * TRAIN * FEATURES), *weights = calloc(CLASSES * FEATURES, sizeof *weights);
    int32_t *labels = malloc(sizeof *labels * TRAIN), right = 0;
    for (int pass = 0; pass < 2; pass++) { /* train, then test */
        int count = pass ? TEST : TRAIN;
        add_rows(set, pass ? EL_SPLIT_TEST : EL_SPLIT_TRAIN, rows, labels);
        for (int i = 0; i < count; i++) {
            float best = -1e30f;
            int found = 0;
            for (int c = 0; c < CLASSES; c++) {
                float score = 0;
                for (int f = 0; f < FEATURES; f++) score += weights[c * FEATURES + f] * rows[i * FEATURES + f];
                if (score > best) best = score, found = c;
            }
            right += pass && found == labels[i];
            if (pass || found == labels[i]) continue;
            for (int f = 0; f < FEATURES; f++) {
                weights[labels[i] * FEATURES + f] += rows[i * FEATURES + f];
                weights[found * FEATURES + f] -= rows[i * FEATURES + f];
            }
        }
    }
    print_message("a perceptron over bags of words: %d of %d\n", right, TEST);
    assert_in_range(right, TEST * 40 / 100, TEST * 85 / 100);
    el_dataset_close(set);
    free(rows), free(weights), free(labels);
}

static void dummy_has_random_samples(void **state)
{
    enum { BATCH = 1000, SEQ = 5, VOCAB = 9, KINDS = 3 };
    int32_t ids[2][BATCH * SEQ], labels[2][BATCH], words[VOCAB] = {0}, classes[KINDS] = {0};
    for (int seed = 0; seed < 2; seed++) {
        struct el_dataset *set = NULL;
        struct el_loader *loader = NULL;
        const struct el_dataset_spec spec = {
            .source = "dummy", .vocab = VOCAB, .seq = SEQ, .classes = KINDS, .seed = (uint64_t)seed};
        assert_int_equal(el_dataset_open(&spec, &set), EL_OK);
        assert_true(el_dataset_size(set, EL_SPLIT_TRAIN) >= 4096);
        assert_int_equal(el_dataset_info(set)->vocab + el_dataset_info(set)->seq + el_dataset_info(set)->classes,
                         VOCAB + SEQ + KINDS);
        assert_int_equal(el_loader_open(set, &(struct el_loader_spec){.global_batch = BATCH, .ranks = 1}, &loader), 0);
        assert_int_equal(el_loader_fill(loader, 0, ids[seed], labels[seed]), EL_OK);
        el_loader_close(loader);
        el_dataset_close(set);
    }
    for (int i = 0; i < BATCH; i++) {
        assert_in_range(labels[0][i], 0, KINDS - 1);
        classes[labels[0][i]]++;
    }
    for (int t = 0; t < BATCH * SEQ; t++) {
        assert_in_range(ids[0][t], 2, VOCAB - 1);
        words[ids[0][t]]++;
    }
    for (int c = 0; c < KINDS; c++) assert_in_range(classes[c], 270, 400);
    for (int w = 2; w < VOCAB; w++) assert_in_range(words[w], 600, 830);
    assert_memory_not_equal(ids[0], ids[1], sizeof ids[0]);
}

RUN_TESTS(name_cache, remove_folder, is_a_function_of_the_seed, is_written_once_and_mended, several_may_write_at_once,
          leaves_nothing_half_written, names_the_folder_it_cannot_write, can_be_learned, dummy_has_random_samples)
