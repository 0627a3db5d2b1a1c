/* Loading from files and by workers: whatever the source, the kind and number of workers and how far they are ahead, a
 * step's batch has the bits of a set in memory without workers. What is read is counted; a file that goes bad, and a
 * worker that ends, are said at their batch. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/data/data.h"
#include "tests/unit/own_folder.h"

enum { SAMPLES = 23, BATCH = 5, STEPS = 11, SIDE = 8, FEATURES = 13, BATCH_BYTES = BATCH * SIDE * SIDE * 3 * 8 };
static char text[64], cifar[64], images[64];

static FILE *file_at(const char *path)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    return file;
}

static void image_path(int i, char path[96])
{
    snprintf(path, 96, "%s/%s/%02d.ppm", images, i % 2 ? "odd" : "even", i);
}

static int make_sets(void **state)
{
    char path[96];
    if (make_folder(state) != 0) return -1;
    snprintf(text, sizeof text, "%s/text.txt", folder);
    snprintf(cifar, sizeof cifar, "%s/set.bin", folder);
    snprintf(images, sizeof images, "%s/images", folder);
    FILE *lines = file_at(text), *records = file_at(cifar);
    fputs("\xEF\xBB\xBF", lines); /* and both kinds of line ends */
    for (int i = 0; i < SAMPLES; i++) {
        fprintf(lines, "%d w%d common w%d  w%d%s", i % 3, i, i / 2, i * 7 % 5, i % 2 ? "\r\n" : "\n");
        fputc(i % 10, records);
        for (int b = 0; b < 3072; b++) fputc((i * 31 + b * 7) % 256, records);
    }
    fclose(lines);
    fclose(records);
    mkdir(images, 0700);
    for (int c = 0; c < 2; c++) {
        snprintf(path, sizeof path, "%s/%s", images, c ? "odd" : "even");
        mkdir(path, 0700);
    }
    for (int i = 0; i < SAMPLES; i++) {
        image_path(i, path);
        FILE *image = file_at(path);
        fprintf(image, "P6 %d 9 255\n", 10 + i);
        for (int b = 0; b < (10 + i) * 9 * 3; b++) fputc((i * 13 + b) % 256, image);
        fclose(image);
    }
    return 0;
}

static struct el_dataset *open_set(const char *path, enum el_input_kind input, bool in_files)
{
    struct el_dataset *set = NULL;
    struct el_dataset_spec spec = {.source = path, .input = input, .in_files = in_files, .held_out = 0.2};
    if (input == EL_INPUT_IMAGES) spec.image = SIDE;
    if (input == EL_INPUT_IDS) spec.vocab = 12, spec.seq = 3;
    if (el_dataset_open(&spec, &set) != EL_OK) fail_msg("%s", el_error_message());
    return set;
}

static struct el_loader *open_loader(const struct el_dataset *set, enum el_input_kind input, struct el_loading loading)
{
    struct el_loader *loader = NULL;
    const struct el_loader_spec spec = {.global_batch = 2 * BATCH - 1,
                                        .ranks = 2,
                                        .shuffle = true,
                                        .seed = 3,
                                        .input = input,
                                        .features = FEATURES,
                                        .image = input == EL_INPUT_IMAGES ? SIDE : 0,
                                        .dtype = EL_F64,
                                        .loading = loading};
    if (el_loader_open(set, &spec, &loader) != EL_OK) fail_msg("%s", el_error_message());
    return loader;
}

struct batch {
    char inputs[BATCH_BYTES];
    int32_t labels[BATCH];
};

static void fill(struct el_loader *loader, uint64_t step, struct batch *batch)
{
    memset(batch, 0, sizeof *batch);
    if (el_loader_fill(loader, step, batch->inputs, batch->labels) != EL_OK) fail_msg("%s", el_error_message());
}

/* Steps in a row over several epochs, then back, then far ahead. */
static void check_steps(struct el_loader *plain, struct el_loader *loader)
{
    static const uint64_t jumps[] = {2, 3, 100, 101, 0};
    struct batch wanted, got;
    for (uint64_t s = 0; s < STEPS + sizeof jumps / sizeof jumps[0]; s++) {
        uint64_t step = s < STEPS ? s : jumps[s - STEPS];
        fill(plain, step, &wanted);
        fill(loader, step, &got);
        assert_memory_equal(&wanted, &got, sizeof got);
    }
}

static const struct source {
    const char *path;
    enum el_input_kind input;
} sources[] = {{text, EL_INPUT_IDS}, {text, EL_INPUT_FEATURES}, {cifar, EL_INPUT_IMAGES}, {images, EL_INPUT_IMAGES}};
enum { N_SOURCES = sizeof sources / sizeof sources[0] };

static void the_same_bits_whatever_loads(void **state)
{
    static const struct el_loading ways[] = {{.workers = 0},
                                             {.workers = 0, .cold = true},
                                             {.workers = 1, .prefetch = 1},
                                             {.workers = 2},
                                             {.workers = 3, .prefetch = 4}};
    for (int s = 0; s < N_SOURCES; s++) {
        struct el_dataset *memory = open_set(sources[s].path, sources[s].input, false),
                          *files = open_set(sources[s].path, sources[s].input, true);
        struct el_loader *plain = open_loader(memory, sources[s].input, ways[0]);
        assert_string_equal(el_dataset_info(memory)->description, el_dataset_info(files)->description);
        for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
            const struct el_dataset *sets[] = {memory, files};
            for (int k = 0; k < 2; k++) {
                struct el_loader *loader = open_loader(sets[k], sources[s].input, ways[w]);
                check_steps(plain, loader);
                el_loader_close(loader);
            }
        }
        el_loader_close(plain);
        el_dataset_close(memory);
        el_dataset_close(files);
    }
}

/* The injected time of a read is a lower limit of what was measured, on any machine. */
static void times_what_it_does(void **state)
{
    struct batch batch;
    struct el_load_account account;
    for (int s = 0; s < N_SOURCES; s++) {
        for (int workers = 0; workers < 2; workers++) {
            struct el_dataset *set = open_set(sources[s].path, sources[s].input, true);
            struct el_loader *loader =
                open_loader(set, sources[s].input, (struct el_loading){.workers = workers, .disk_ms = 0.5});
            fill(loader, 0, &batch);
            el_loader_reset(loader);
            for (uint64_t step = 1; step < 4; step++) fill(loader, step, &batch);
            el_loader_account(loader, &account);
            assert_int_equal(account.times.batches, 3);
            assert_int_equal(account.times.samples, 3 * BATCH);
            assert_int_equal(account.times.reads, 3 * BATCH);
            assert_true(account.times.read_ns >= 3 * BATCH * 500000);
            assert_true(account.times.decode_ns > 0 && account.times.collate_ns > 0);
            if (sources[s].path == cifar) assert_int_equal(account.times.read_bytes, 3 * BATCH * 3073);
            assert_int_equal(account.n_lengths, 3);
            assert_int_equal(account.lengths[2].step, 3);
            assert_true((account.times.take_ns > 0) == (workers > 0));
            assert_true((account.queue_bytes > 0) == (workers > 0));
            el_loader_close(loader);
            el_dataset_close(set);
        }
    }
    struct el_dataset *memory = open_set(text, EL_INPUT_IDS, false);
    struct el_loader *loader = open_loader(memory, EL_INPUT_IDS, (struct el_loading){.workers = 0});
    fill(loader, 0, &batch);
    el_loader_account(loader, &account);
    assert_int_equal(account.times.reads + account.times.read_ns + account.times.decode_ns, 0);
    assert_true(account.times.collate_ns > 0);
    el_loader_close(loader);
    el_dataset_close(memory);
}

/* Takes steps until one fails; says at which. */
static uint64_t fails_at(const char *path, enum el_input_kind input, struct el_loading loading, const char *words)
{
    struct el_dataset *set = open_set(path, input, true);
    struct el_loader *loader = open_loader(set, input, loading);
    struct batch batch;
    uint64_t step = 0;
    enum el_status status = EL_OK;
    const int64_t begin_ns = el_clock_ns();
    for (; step < 100 && status == EL_OK; step++) status = el_loader_fill(loader, step, batch.inputs, batch.labels);
    if (status == EL_OK || !strstr(el_error_message(), words)) fail_msg("'%s' and not '%s'", el_error_message(), words);
    assert_int_equal(status, EL_ERR_IO);
    assert_true(el_clock_ns() - begin_ns < 5000000000);
    el_loader_close(loader);
    el_dataset_close(set);
    return step - 1;
}

static void a_dead_worker_is_named_at_its_batch(void **state)
{
    const struct el_loading loading = {.workers = 2, .dies_at = 5};
    assert_int_equal(fails_at(text, EL_INPUT_IDS, loading, "loader worker 1 ended before batch 5 was ready"), 5);
}

static void a_file_that_is_gone_is_named(void **state)
{
    char path[96];
    for (int workers = 0; workers < 3; workers++) {
        struct el_dataset *set = open_set(images, EL_INPUT_IMAGES, true);
        struct el_loader *loader = open_loader(set, EL_INPUT_IMAGES, (struct el_loading){.workers = workers});
        struct batch batch;
        enum el_status status = EL_OK;
        image_path(7, path);
        assert_int_equal(rename(path, cifar), 0); /* the set has been opened */
        for (uint64_t step = 0; step < 10 && status == EL_OK; step++)
            status = el_loader_fill(loader, step, batch.inputs, batch.labels);
        assert_int_equal(rename(cifar, path), 0);
        assert_int_equal(status, EL_ERR_IO);
        if (!strstr(el_error_message(), "odd/07.ppm: No such file")) fail_msg("%s", el_error_message());
        el_loader_close(loader);
        el_dataset_close(set);
    }
}

static void refuses_what_cannot_be(void **state)
{
    struct el_dataset *set = NULL;
    const char *const made[] = {"synthetic", "dummy"};
    for (int i = 0; i < 2; i++) {
        const struct el_dataset_spec spec = {.source = made[i], .in_files = true};
        assert_int_equal(el_dataset_open(&spec, &set), EL_ERR_INVALID);
        assert_non_null(strstr(el_error_message(), "--data-in disk"));
    }
}

RUN_TESTS(make_sets, remove_folder, the_same_bits_whatever_loads, times_what_it_does,
          a_dead_worker_is_named_at_its_batch, refuses_what_cannot_be, a_file_that_is_gone_is_named)
