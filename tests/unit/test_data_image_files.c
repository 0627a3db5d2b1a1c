/* Files of images: every format to the bytes it must give, CIFAR-10's files, folders a class; and each bad one is a
 * line that names it. tests/unit/data/images were written by libpng and libjpeg-turbo: 24 x 16 pixels, red 10 times
 * the column, green 15 times the row, blue 77; the grey ones are their red. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/data/samples.h"

enum { WIDTH = 24, HEIGHT = 16, PIXELS_MAX = 32 * 32 * 3, RECORD = EL_CIFAR_RECORD_BYTES };
static char folder[] = "/tmp/el-test-images-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static void empty_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/*", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a fixed word */
}

static int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    return rmdir(folder);
}

static const char *in(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* With the folders on its way. */
static void put(const char *name, const void *bytes, size_t length)
{
    char path[256];
    snprintf(path, sizeof path, "%s", in(name));
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* A PPM of one colour. */
static void put_plain(const char *name, int width, int height, int red)
{
    static char bytes[64 + 100 * 100 * 3];
    int header = snprintf(bytes, 64, "P6 %d %d 255\n", width, height);
    for (int i = 0; i < width * height * 3; i++) bytes[header + i] = (char)(i % 3 ? 0 : red);
    put(name, bytes, (size_t)(header + width * height * 3));
}

static void expect_words(const char *words)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok(copy, "|"); word; word = strtok(NULL, "|"))
        if (!strstr(el_error_message(), word)) fail_msg("no '%s' in '%s'", word, el_error_message());
    assert_null(strchr(el_error_message(), '\n'));
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

static struct el_bitmap read_sample(const char *name, uint8_t *bytes, size_t room, size_t *length_p)
{
    char path[256];
    struct el_bitmap bitmap = {0};
    snprintf(path, sizeof path, "tests/unit/data/images/%s", name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s: run from the repository's root", path);
    *length_p = fread(bytes, 1, room, file);
    fclose(file);
    enum el_status status = el_bitmap_decode(name, bytes, *length_p, &bitmap);
    if (status == EL_ERR_ABSENT) return (struct el_bitmap){0};
    if (status != EL_OK) fail_msg("%s", el_error_message());
    return bitmap;
}

/* What pixel i of a sample must be. */
static void wanted(const char *name, int i, int rgb[3])
{
    int x = i % WIDTH, y = i / WIDTH, red = 10 * x;
    if (!strncmp(name, "one-bit", 7)) red = x % 2 * 255;
    rgb[0] = red, rgb[1] = 15 * y, rgb[2] = 77;
    if (!strncmp(name, "grey", 4) || !strncmp(name, "one-bit", 7)) rgb[1] = rgb[2] = red;
    if (!strncmp(name, "palette", 7)) rgb[0] = 10 * y, rgb[1] = 255 - 15 * y;
}

static void every_format_is_read(void **state)
{
    (void)state;
    static const char *const names[] = {"rgb.png",     "interlaced.png", "alpha-16-bit.png", "grey.png", "palette.png",
                                        "one-bit.png", "rgb.jpg",        "progressive.jpg",  "grey.jpg", "cmyk.jpg"};
    int absent = 0;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        uint8_t bytes[2048];
        size_t length;
        struct el_bitmap bitmap = read_sample(names[n], bytes, sizeof bytes, &length);
        const int off = strstr(names[n], ".jpg") ? 12 : 0;
        if (!bitmap.rgb) {
            absent++;
            expect_words(off ? "libjpeg-dev|build again" : "libpng-dev|build again");
            continue;
        }
        assert_int_equal(bitmap.width, WIDTH);
        assert_int_equal(bitmap.height, HEIGHT);
        for (int i = 0; i < WIDTH * HEIGHT * 3; i++) {
            int rgb[3];
            wanted(names[n], i / 3, rgb);
            if (abs(bitmap.rgb[i] - rgb[i % 3]) > off)
                fail_msg("%s, byte %d: %d, not %d", names[n], i, bitmap.rgb[i], rgb[i % 3]);
        }
        free(bitmap.rgb);
    }
    if (absent) printf("# %d formats were not read: libpng or libjpeg was missing when this was built\n", absent);
}

static void ppm_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t length;
    } good[] = {{"P6 2 1 255\n\1\2\3\4\5\6", 17},
                {"P6\n# a comment\n 2\t1\r\n#\n255 \1\2\3\4\5\6", 33},
                {"P6 2 1 255\n\1\2\3\4\5\6and more", 25},
                {"P6 2 1 65535\n\1\1\2\2\3\3\4\4\5\5\6\6", 25}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct el_bitmap bitmap;
        assert_int_equal(el_bitmap_decode("x", (const uint8_t *)good[i].text, good[i].length, &bitmap), EL_OK);
        assert_int_equal(bitmap.width * 10 + bitmap.height, 21);
        assert_memory_equal(bitmap.rgb, "\1\2\3\4\5\6", 6);
        free(bitmap.rgb);
    }
    struct el_bitmap grey;
    assert_int_equal(el_bitmap_decode("x", (const uint8_t *)"P5 2 1 15\n\0\17", 12, &grey), EL_OK);
    assert_memory_equal(grey.rgb, "\0\0\0\377\377\377", 6);
    free(grey.rgb);
}

static void bad_images_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {{"P6 2 1 255\n\1\2\3\4\5", "x.ppm|1 bytes of pixels are missing"},
               {"P6 0 1 255\n\1", "header"},
               {"P6 2 1 0\n\1\2\3\4\5\6", "header"},
               {"P6 2 1 65536\n\1\2\3\4\5\6", "header"},
               {"P6 -2 1 255\n\1\2\3\4\5\6", "header"},
               {"P6 2 1 255", "header"},
               {"P6", "header"},
               {"P6 1000000 1000000 255\n\1", "1000000000000 pixels"},
               {"P6 99999999999999999999 1 255\n\1", "header"},
               {"P3 1 1 255 0 0 0", "x.ppm: not an image"},
               {"GIF89a", "not an image"},
               {"", "not an image"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct el_bitmap bitmap;
        const uint8_t *bytes = (const uint8_t *)bad[i].text;
        assert_int_equal(el_bitmap_decode("x.ppm", bytes, strlen(bad[i].text), &bitmap), EL_ERR_INVALID);
        expect_words(bad[i].words);
    }
}

/* Cut off anywhere; with a byte changed it may be an image or not, and nothing else. */
static void damaged_images_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"palette.png", "interlaced.png", "rgb.jpg", "progressive.jpg", "cmyk.jpg"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        uint8_t bytes[2048];
        size_t length;
        struct el_bitmap bitmap = read_sample(names[n], bytes, sizeof bytes, &length);
        if (!bitmap.rgb) continue;
        free(bitmap.rgb);
        bool png = strstr(names[n], ".png");
        for (size_t cut = 0; cut < length - (png ? 12 : 2); cut++) { /* the last chunk or marker says nothing */
            if (el_bitmap_decode(names[n], bytes, cut, &bitmap) != EL_ERR_INVALID)
                fail_msg("%s: taken with %zu of %zu bytes", names[n], cut, length);
            expect_words(cut < (png ? 8 : 3) ? "not an image" : png ? "a damaged PNG" : "a JPEG that cannot be read");
        }
        for (size_t at = 0; at < length; at++) {
            bytes[at] ^= 0x55;
            if (el_bitmap_decode(names[n], bytes, length, &bitmap) == EL_OK) free(bitmap.rgb);
            bytes[at] ^= 0x55;
        }
    }
}

static void sizes_are_believed_to_a_limit(void **state)
{
    (void)state;
    uint8_t bytes[2048];
    size_t length;
    struct el_bitmap bitmap = read_sample("rgb.png", bytes, sizeof bytes, &length);
    if (bitmap.rgb) {
        free(bitmap.rgb);
        memset(bytes + 16, 0x7F, 8);
        assert_int_equal(el_bitmap_decode("big.png", bytes, length, &bitmap), EL_ERR_INVALID);
        expect_words("big.png|pixels; at most 67108864");
    }
    bitmap = read_sample("rgb.jpg", bytes, sizeof bytes, &length);
    if (bitmap.rgb) {
        free(bitmap.rgb);
        for (size_t at = 0; at + 9 < length; at++)
            if (bytes[at] == 0xFF && bytes[at + 1] == 0xC0) memset(bytes + at + 5, 0xF0, 4);
        assert_int_equal(el_bitmap_decode("big.jpg", bytes, length, &bitmap), EL_ERR_INVALID);
        expect_words("big.jpg|61680 x 61680 pixels; at most 67108864");
    }
}

/* What Pillow's resize with BILINEAR gives for the same numbers. */
static void images_are_scaled_and_cut(void **state)
{
    (void)state;
    uint8_t line[4 * 3], wide[4 * 2 * 3], out[PIXELS_MAX], plain[100 * 80 * 3];
    uint8_t square[4 * 4 * 3];
    for (int i = 0; i < 4 * 4; i++) memset(square + 3 * i, i % 4 < 2 ? 0 : 255, 3);
    assert_int_equal(el_image_fit(square, 4, 4, 2, out), EL_OK);
    assert_int_equal(out[0], 36);
    assert_int_equal(out[3], 219);
    assert_memory_equal(out, out + 6, 6);
    for (int i = 0; i < 4; i++) memset(line + 3 * i, i, 3);
    memcpy(wide, line, sizeof line);
    memcpy(wide + sizeof line, line, sizeof line);
    assert_int_equal(el_image_fit(wide, 4, 2, 2, out), EL_OK); /* the middle two columns, as they are */
    assert_memory_equal(out, "\1\1\1\2\2\2\1\1\1\2\2\2", 12);
    assert_int_equal(el_image_fit(line, 1, 4, 1, out), EL_OK);
    assert_in_range(out[0], 1, 2);
    memset(plain, 200, sizeof plain);
    for (int side = 1; side <= 32; side++) {
        memset(out, 0, sizeof out);
        assert_int_equal(el_image_fit(plain, 100, 80, side, out), EL_OK);
        for (int i = 0; i < side * side * 3; i++) assert_int_equal(out[i], 200);
        assert_int_equal(el_image_fit(plain, 3, 7, side, out), EL_OK);
        for (int i = 0; i < side * side * 3; i++) assert_int_equal(out[i], 200);
    }
}

/* A split in order: bytes [n, side, side, 3] and labels. */
static void read_split(const struct el_dataset *set, enum el_data_split split, uint8_t *bytes, int32_t *labels)
{
    static const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
    int64_t n = el_dataset_size(set, split), side = el_dataset_image(set), count = n * side * side * 3;
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
    (void)state;
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
    assert_int_equal(el_dataset_classes(set), 10);
    assert_int_equal(el_dataset_image(set), 32);
    assert_non_null(strstr(el_dataset_describe(set), "5 samples, 10 classes, images of 32 x 32; test: 1 samples"));
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
    assert_int_equal(el_dataset_classes(set), 12);
    read_split(set, EL_SPLIT_TRAIN, bytes, labels);
    assert_memory_equal(bytes + 8 * 8 * 3, "\13\2\3\13\2\3", 6);
    el_dataset_close(set);
}

static void bad_cifar_is_refused(void **state)
{
    (void)state;
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
    expect_words("is a directory|a folder is for images");
    struct el_samples samples;
    assert_int_equal(el_images_alloc(100, 4096, 100 * el_image_bytes(4096), &samples), EL_ERR_INVALID);
    expect_words("4.7 GiB|at most 4|--image");
}

static void folders_are_read(void **state)
{
    (void)state;
    static uint8_t bytes[10 * PIXELS_MAX];
    int32_t labels[10];
    empty_folder();
    put_plain("train/cat/b.ppm", 10, 8, 20);
    put_plain("train/cat/a.PPM", 8, 10, 10);
    put_plain("train/cat/.hidden.ppm", 8, 8, 99);
    put("train/cat/notes.txt", "no image", 10);
    put_plain("train/ant/deep/er/c.ppm", 8, 8, 30);
    put("train/.cache/x", "", 0);
    put_plain("val/cat/d.ppm", 30, 20, 40);
    put_plain("other/ant/e.ppm", 3, 2, 50);
    struct el_dataset *set = open_good((struct el_dataset_spec){.source = folder, .image = 8});
    assert_int_equal(el_dataset_size(set, EL_SPLIT_TRAIN), 3);
    assert_int_equal(el_dataset_classes(set), 2);
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
    assert_int_equal(el_dataset_classes(set), 5);
    assert_int_equal(el_dataset_image(set), 224);
    el_dataset_close(set);
}

static void bad_folders_are_refused(void **state)
{
    (void)state;
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
    (void)state;
    char train[256], test[256];
    empty_folder();
    assert_int_equal(el_synthetic_write(folder, EL_INPUT_IMAGES, 1, train, test, sizeof train), EL_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_is_read),
        cmocka_unit_test(ppm_is_read),
        cmocka_unit_test(bad_images_are_refused),
        cmocka_unit_test(damaged_images_are_refused),
        cmocka_unit_test(sizes_are_believed_to_a_limit),
        cmocka_unit_test(images_are_scaled_and_cut),
        cmocka_unit_test(cifar_is_read),
        cmocka_unit_test(bad_cifar_is_refused),
        cmocka_unit_test(folders_are_read),
        cmocka_unit_test(bad_folders_are_refused),
        cmocka_unit_test(synthetic_images_are_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
