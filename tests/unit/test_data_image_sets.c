/* Sets of images: CIFAR-10's files, folders a class and the synthetic set; and each bad one is a line that names it. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/data/samples.h"
#include "tests/unit/error_words.h"
#include "tests/unit/own_folder.h"
#include "tests/unit/whole_files.h"

enum { PIXELS_MAX = 32 * 32 * 3, RECORD = EL_CIFAR_RECORD_BYTES };

static void empty_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a fixed word */
}

static const char *in(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const void *bytes, size_t length)
{
    put_file(folder, in(name), bytes, length);
}

/* A PPM of one colour. */
static void put_plain(const char *name, int width, int height, int red)
{
    static char bytes[64 + 100 * 100 * 3];
    int header = snprintf(bytes, 64, "P6 %d %d 255\n", width, height);
    for (int i = 0; i < width * height * 3; i++) bytes[header + i] = (char)(i % 3 ? 0 : red);
    put(name, bytes, (size_t)(header + width * height * 3));
}

static void refuses(struct el_dataset_spec spec, enum el_status status, const char *words)
{
    struct el_dataset *set = NULL;
    spec.input = EL_INPUT_IMAGES;
    assert_int_equal(el_dataset_open(&spec, &set), status);
    expect_words(words);
}

static struct el_dataset *open_good(struct el_dataset_spec spec)
{
    struct el_dataset *set = NULL;
    spec.input = EL_INPUT_IMAGES;
    if (el_dataset_open(&spec, &set) != EL_OK) fail_msg("%s", el_error_message());
    return set;
}

/* A split in order: bytes [n, side, side, 3] and labels. */
static void read_split(const struct el_dataset *set, enum el_data_split split, uint8_t *bytes, int32_t *labels)
{
    static const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
    int64_t n = el_dataset_size(set, split), side = el_dataset_info(set)->image, count = n * side * side * 3;
    struct el_loader *loader = NULL;
    struct el_loader_spec spec = {
        .split = split, .global_batch = n, .ranks = 1, .input = EL_INPUT_IMAGES, .image = side, .dtype = EL_F64};
    double *images = malloc((size_t)count * sizeof *images);
    assert_int_equal(el_loader_open(set, &spec, &loader), EL_OK);
    assert_int_equal(el_loader_fill(loader, 0, images, labels), EL_OK);
    for (int64_t i = 0; i < count; i++) bytes[i] = (uint8_t)lround((images[i] * deviation[i % 3] + mean[i % 3]) * 255);
    el_loader_close(loader);
    free(images);
}

/* `n` records: label first + i, red 10 i + 1 but for the last of the first line, green 2, blue 3. */
static void put_cifar(const char *name, int n, int first)
{
    static uint8_t records[10][RECORD];
    for (int i = 0; i < n; i++) {
        records[i][0] = (uint8_t)(first + i);
        memset(records[i] + 1, 10 * i + 1, 1024);
        memset(records[i] + 1 + 1024, 2, 1024);
        memset(records[i] + 1 + 2048, 3, 1024);
        records[i][1 + 31] = 255;
    }
    put(name, records, (size_t)n * RECORD);
}

static void cifar_is_read(void **state)
{
    static uint8_t bytes[10 * PIXELS_MAX];
    int32_t labels[10];
    empty_folder();
    put_cifar("data_batch_1.bin", 2, 3);
    put_cifar("data_batch_2.bin", 3, 7);
    put_cifar("test_batch.bin", 1, 5);
    put("batches.meta.txt", "cat\n", 4);
    struct el_dataset *set = open_good((struct el_dataset_spec){.source = folder});
    assert_int_equal(el_dataset_size(set, EL_SPLIT_TRAIN), 5);
    assert_int_equal(el_dataset_size(set, EL_SPLIT_TEST), 1);
    assert_int_equal(el_dataset_info(set)->classes, 10);
    assert_int_equal(el_dataset_info(set)->image, 32);
    assert_non_null(
        strstr(el_dataset_info(set)->description, "5 samples, 10 classes, images of 32 x 32; test: 1 samples"));
    read_split(set, EL_SPLIT_TRAIN, bytes, labels);
    assert_memory_equal(labels, ((int32_t[]){3, 4, 7, 8, 9}), sizeof(int32_t) * 5);
    assert_memory_equal(bytes + PIXELS_MAX, "\13\2\3\13\2\3", 6);
    assert_memory_equal(bytes + 4 * PIXELS_MAX + 30 * 3, "\25\2\3\377\2\3\25\2\3", 9);
    read_split(set, EL_SPLIT_TEST, bytes, labels);
    assert_int_equal(labels[0], 5);
    el_dataset_close(set);
    set = open_good((struct el_dataset_spec){
        .source = in("data_batch_2.bin"), .test_path = in("data_batch_1.bin"), .image = 8, .classes = 12});
    assert_int_equal(el_dataset_size(set, EL_SPLIT_TRAIN) * 10 + el_dataset_size(set, EL_SPLIT_TEST), 32);
    assert_int_equal(el_dataset_info(set)->classes, 12);
    read_split(set, EL_SPLIT_TRAIN, bytes, labels);
    assert_memory_equal(bytes + 8 * 8 * 3, "\13\2\3\13\2\3", 6);
    el_dataset_close(set);
}

static void bad_cifar_is_refused(void **state)
{
    static const uint8_t zeros[2 * RECORD + 2];
    empty_folder();
    put("cut.bin", zeros, 2 * RECORD - 1);
    put("hundred.bin", zeros, RECORD + 1);
    put("none.bin", zeros, 0);
    put_cifar("labels.bin", 3, 8);
    put_cifar("good.bin", 3, 0);
    refuses((struct el_dataset_spec){.source = in("cut.bin")}, EL_ERR_INVALID, "cut.bin: 6145 bytes|cut off");
    refuses((struct el_dataset_spec){.source = in("hundred.bin")}, EL_ERR_INVALID, "hundred.bin|CIFAR-100 is not read");
    refuses((struct el_dataset_spec){.source = in("none.bin")}, EL_ERR_INVALID, "none.bin: 0 bytes");
    refuses((struct el_dataset_spec){.source = in("labels.bin")}, EL_ERR_INVALID,
            "labels.bin, record 3: label 10, but there are 10 classes; is this CIFAR-10");
    refuses((struct el_dataset_spec){.source = in("good.bin"), .classes = 2}, EL_ERR_INVALID,
            "good.bin, record 3: label 2, but there are 2 classes");
    refuses((struct el_dataset_spec){.source = in("good.bin"), .test_path = in("cut.bin")}, EL_ERR_INVALID, "cut.bin");
    refuses((struct el_dataset_spec){.source = in("good.bin"), .test_path = in("no.bin")}, EL_ERR_IO, "no.bin|No such");
    refuses((struct el_dataset_spec){.source = in("no.bin")}, EL_ERR_IO, "no.bin|No such");
    refuses((struct el_dataset_spec){.source = "dummy", .image = 4097}, EL_ERR_INVALID, "image 4097");
    refuses((struct el_dataset_spec){.source = "synthetic", .test_path = in("good.bin")}, EL_ERR_INVALID, "test file");
    struct el_dataset *set;
    assert_int_equal(el_dataset_open(&(struct el_dataset_spec){.source = folder}, &set), EL_ERR_IO);
    expect_words("is a directory|give a file in it");
    struct el_samples samples;
    assert_int_equal(el_images_alloc(100, 4096, 100 * el_image_bytes(4096), &samples), EL_ERR_INVALID);
    expect_words("4.7 GiB|at most 4|--image");
}

static void count_images(void *context, int64_t done, int64_t total)
{
    int64_t *n = context;
    assert_int_equal(done, *n % 2 + 1); /* of training, then of the test */
    assert_int_equal(total, *n < 2 ? 2 : 1);
    ++*n;
}

static void reading_is_told_image_by_image(void **state)
{
    int64_t n = 0;
    empty_folder();
    put_plain("train/cat/a.ppm", 10, 8, 20);
    put_plain("train/dog/a.ppm", 8, 10, 10);
    put_plain("val/cat/d.ppm", 30, 20, 40);
    el_dataset_close(
        open_good((struct el_dataset_spec){.source = folder, .image = 8, .progress = count_images, .context = &n}));
    assert_int_equal(n, 3);
}

static void folders_are_read(void **state)
{
    static uint8_t bytes[10 * PIXELS_MAX];
    int32_t labels[10];
    empty_folder();
    put_plain("train/cat/b.ppm", 10, 8, 20);
    put_plain("train/cat/a.PPM", 8, 10, 10);
    put_plain("train/cat/.hidden.ppm", 8, 8, 99);
    put("train/cat/notes.txt", "no image", 8);
    put_plain("train/ant/deep/er/c.ppm", 8, 8, 30);
    put("train/.cache/x", "", 0);
    put_plain("val/cat/d.ppm", 30, 20, 40);
    put_plain("other/ant/e.ppm", 3, 2, 50);
    struct el_dataset *set = open_good((struct el_dataset_spec){.source = folder, .image = 8});
    assert_int_equal(el_dataset_size(set, EL_SPLIT_TRAIN), 3);
    assert_int_equal(el_dataset_info(set)->classes, 2);
    read_split(set, EL_SPLIT_TRAIN, bytes, labels);
    assert_memory_equal(labels, ((int32_t[]){0, 1, 1}), sizeof(int32_t) * 3); /* ant, cat, cat */
    const int reds[] = {30, 10, 20};
    for (int i = 0; i < 3; i++)
        for (int p = 0; p < 64; p++) assert_int_equal(bytes[(i * 64 + p) * 3], reds[i]);
    read_split(set, EL_SPLIT_TEST, bytes, labels);
    assert_int_equal(labels[0] * 100 + bytes[0], 140);
    el_dataset_close(set);
    set = open_good((struct el_dataset_spec){.source = in("train"), .test_path = in("other"), .classes = 5});
    assert_int_equal(el_dataset_size(set, EL_SPLIT_TEST), 1);
    assert_int_equal(el_dataset_info(set)->classes, 5);
    assert_int_equal(el_dataset_info(set)->image, 224);
    el_dataset_close(set);
}

static void bad_folders_are_refused(void **state)
{
    const struct el_dataset_spec spec = {.source = folder, .image = 8};
    empty_folder();
    refuses(spec, EL_ERR_INVALID, "no folders of classes|DIR/CLASS");
    put_plain("cat/a.ppm", 8, 8, 1);
    put("dog/readme", "x", 1);
    refuses(spec, EL_ERR_INVALID, "/dog: no image in this class's folder");
    put("dog/a.png", "hello", 5);
    refuses(spec, EL_ERR_INVALID, "dog/a.png: not an image");
    put("dog/a.png", "\x89PNG\r\n\x1a\n", 8);
    struct el_dataset *set;
    assert_int_not_equal(
        el_dataset_open(&(struct el_dataset_spec){.source = folder, .image = 8, .input = EL_INPUT_IMAGES}, &set),
        EL_OK);
    expect_words("dog/a.png: ");
    put_plain("dog/a.png", 8, 8, 2); /* by its bytes, not by its name */
    el_dataset_close(open_good(spec));
    refuses((struct el_dataset_spec){.source = folder, .classes = 1}, EL_ERR_INVALID,
            "2 folders of classes|--classes 1");
    put_plain("test/bird/a.ppm", 8, 8, 2);
    refuses((struct el_dataset_spec){.source = in("cat"), .test_path = in("test")}, EL_ERR_INVALID, "no folders");
    unlink(in("test/bird/a.ppm")), rmdir(in("test/bird")), rmdir(in("test"));
    assert_int_equal(symlink("nowhere.png", in("dog/gone.png")), 0);
    refuses(spec, EL_ERR_INVALID, "dog/gone.png: a symbolic link to nothing");
    unlink(in("dog/gone.png"));
    assert_int_equal(symlink("../dog", in("dog/again")), 0);
    refuses(spec, EL_ERR_INVALID, "dog/again: a symbolic link that leads back");
    unlink(in("dog/again"));
    if (geteuid() != 0) {
        chmod(in("dog/a.png"), 0);
        refuses(spec, EL_ERR_IO, "dog/a.png|denied");
    }
    empty_folder();
    put_plain("train/cat/a.ppm", 8, 8, 1);
    put_plain("val/dog/a.ppm", 8, 8, 1);
    refuses(spec, EL_ERR_INVALID, "val/dog: there is no class of this name in training");
}

/* Made in memory, and read back from what was written for others to read. */
static void synthetic_images_are_files(void **state)
{
    char train[256], test[256];
    empty_folder();
    assert_int_equal(el_synthetic_write(folder, &(struct el_synthetic_spec){.input = EL_INPUT_IMAGES, .seed = 1}, train,
                                        test, sizeof train),
                     EL_OK);
    struct el_dataset *made = open_good((struct el_dataset_spec){.source = "synthetic", .seed = 1});
    struct el_dataset *read = open_good((struct el_dataset_spec){.source = train, .test_path = test});
    struct el_dataset *other = open_good((struct el_dataset_spec){.source = "synthetic", .seed = 2, .classes = 4});
    int seen[10] = {0}, differ = 0;
    for (enum el_data_split split = EL_SPLIT_TRAIN; split <= EL_SPLIT_TEST; split += 2) {
        int64_t n = el_dataset_size(made, split);
        assert_int_equal(n, split == EL_SPLIT_TRAIN ? 3000 : 500);
        assert_int_equal(el_dataset_size(read, split), n);
        for (int64_t i = 0; i < n; i++) {
            struct el_sample a = el_dataset_sample(made, split, i), b = el_dataset_sample(read, split, i);
            struct el_sample c = el_dataset_sample(other, split, i);
            assert_int_equal(a.label, b.label);
            assert_memory_equal(a.pixels, b.pixels, PIXELS_MAX);
            assert_in_range(c.label, 0, 3);
            differ += memcmp(a.pixels, c.pixels, PIXELS_MAX) != 0;
            if (split == EL_SPLIT_TRAIN) seen[a.label]++;
        }
    }
    for (int c = 0; c < 10; c++) assert_in_range(seen[c], 230, 370); /* 300 each, deviation 16 */
    assert_int_equal(differ, 3500);
    el_dataset_close(made), el_dataset_close(read), el_dataset_close(other);
}

RUN_TESTS(make_folder, remove_folder, cifar_is_read, bad_cifar_is_refused, folders_are_read,
          reading_is_told_image_by_image, bad_folders_are_refused, synthetic_images_are_files)
