/* Images: what becomes of their bytes, the same on any number of ranks, moved or not. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/data/samples.h"

enum { SIDE = 12, ROW = SIDE * SIDE * EL_COLOURS, CLASSES = 7, BATCH = 10, SEED = 5 };

static struct el_dataset *open_dummy(int64_t side, uint64_t seed)
{
    struct el_dataset *set = NULL;
    const struct el_dataset_spec spec = {
        .source = "dummy", .input = EL_INPUT_IMAGES, .image = side, .classes = CLASSES, .seed = seed, .held_out = 0.1};
    if (el_dataset_open(&spec, &set) != EL_OK) fail_msg("%s", el_error_message());
    return set;
}

static void fill(const struct el_dataset *set, struct el_loader_spec spec, uint64_t step, void *images, int32_t *labels)
{
    struct el_loader *loader = NULL;
    spec.input = EL_INPUT_IMAGES;
    if (!spec.ranks) spec.ranks = 1;
    if (!spec.image) spec.image = el_dataset_info(set)->image;
    if (el_loader_open(set, &spec, &loader) != EL_OK) fail_msg("%s", el_error_message());
    assert_int_equal(el_loader_fill(loader, step, images, labels), EL_OK);
    el_loader_close(loader);
}

/* Noise: uniform bytes, after (x / 255 - mean) / deviation of each colour. */
static void dummy_images_are_normalised_noise(void **state)
{
    const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
    static double images[BATCH][ROW], others[BATCH][ROW];
    static float singles[BATCH][ROW];
    int32_t labels[BATCH], seen = 0;
    struct el_dataset *set = open_dummy(SIDE, SEED), *again = open_dummy(SIDE, SEED), *other = open_dummy(SIDE, 6);
    struct el_loader_spec spec = {.global_batch = BATCH, .shuffle = true, .seed = 1, .dtype = EL_F64};
    fill(set, spec, 0, images, labels);
    for (int i = 0; i < BATCH * ROW; i++) {
        double byte = (images[i / ROW][i % ROW] * deviation[i % 3] + mean[i % 3]) * 255;
        assert_true(byte > -1e-9 && byte < 255 + 1e-9 && fabs(byte - round(byte)) < 1e-9);
        seen += byte > 127.5;
    }
    assert_in_range(seen, BATCH * ROW * 0.45, BATCH * ROW * 0.55);
    for (int i = 0; i < BATCH; i++) assert_in_range(labels[i], 0, CLASSES - 1);
    fill(again, spec, 0, others, labels);
    assert_memory_equal(images, others, sizeof images);
    fill(other, spec, 0, others, labels);
    assert_memory_not_equal(images, others, sizeof images);
    spec.dtype = EL_F32;
    fill(set, spec, 0, singles, labels);
    for (int i = 0; i < BATCH * ROW; i++) assert_true(singles[i / ROW][i % ROW] == (float)images[i / ROW][i % ROW]);
    el_dataset_close(set), el_dataset_close(again), el_dataset_close(other);
}

/* Of one class: 0 where the mean is below one half. */
static void one_class_is_labelled_by_the_mean(void **state)
{
    struct el_dataset *set = NULL;
    const struct el_dataset_spec spec = {
        .source = "dummy", .input = EL_INPUT_IMAGES, .image = SIDE, .classes = 1, .seed = SEED};
    int ones = 0;
    assert_int_equal(el_dataset_open(&spec, &set), EL_OK);
    assert_int_equal(el_dataset_info(set)->classes, 1);
    for (int i = 0; i < 1000; i++) {
        struct el_sample sample = el_dataset_sample(set, EL_SPLIT_TRAIN, i);
        double mean = 0;
        for (int b = 0; b < ROW; b++) mean += sample.pixels[b] / 255.0 / ROW;
        if (fabs(mean - 0.5) > 1e-9) assert_int_equal(sample.label, mean > 0.5);
        ones += sample.label;
    }
    assert_in_range(ones, 400, 600); /* deviation 16 */
    el_dataset_close(set);
}

static void ranks_make_up_the_batch(void **state)
{
    static float whole[BATCH][ROW], part[BATCH][ROW];
    int32_t whole_labels[BATCH], labels[BATCH];
    struct el_dataset *set = open_dummy(SIDE, SEED);
    for (int ranks = 1; ranks <= 4; ranks++)
        for (int rank = 0; rank < ranks; rank++) {
            struct el_loader_spec spec = {.global_batch = BATCH, .shuffle = true, .seed = 1};
            fill(set, spec, 2000, whole, whole_labels);
            spec.ranks = ranks, spec.rank = rank;
            fill(set, spec, 2000, part, labels);
            for (int64_t j = 0; j < el_share_size(BATCH, ranks, rank); j++) {
                assert_int_equal(labels[j], whole_labels[rank + j * ranks]);
                assert_memory_equal(part[j], whole[rank + j * ranks], sizeof part[j]);
            }
        }
    el_dataset_close(set);
}

/* Beyond the split's end there are zeros, label -1. */
static void evaluation_is_filled_up(void **state)
{
    struct el_dataset *set = open_dummy(1, SEED);
    int64_t size = el_dataset_size(set, EL_SPLIT_HELD_OUT), last = (size - 1) / BATCH, left = size - last * BATCH;
    float images[BATCH][EL_COLOURS];
    int32_t labels[BATCH];
    assert_true(left < BATCH);
    fill(set, (struct el_loader_spec){.split = EL_SPLIT_HELD_OUT, .global_batch = BATCH}, (uint64_t)last, images,
         labels);
    for (int i = 0; i < BATCH; i++) {
        assert_int_equal(labels[i] < 0, i >= left);
        assert_int_equal(images[i][0] == 0 && images[i][1] == 0 && images[i][2] == 0, i >= left);
    }
    el_dataset_close(set);
}

static void refuses_what_cannot_be(void **state)
{
    struct el_dataset *set = open_dummy(SIDE, SEED), *none = NULL;
    struct el_loader *loader = NULL;
    struct el_loader_spec spec = {.global_batch = 2, .ranks = 1, .input = EL_INPUT_IMAGES, .image = SIDE + 1};
    assert_int_equal(el_loader_open(set, &spec, &loader), EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "images of side 12, not 13"));
    spec.input = EL_INPUT_IDS;
    assert_int_equal(el_loader_open(set, &spec, &loader), EL_ERR_INVALID);
    el_dataset_close(set);
    assert_int_equal(
        el_dataset_open(&(struct el_dataset_spec){.source = "dummy", .input = EL_INPUT_IMAGES, .image = 5000}, &none),
        EL_ERR_INVALID);
    assert_non_null(strstr(el_error_message(), "image 5000"));
}

RUN_TESTS(NULL, NULL, one_class_is_labelled_by_the_mean, dummy_images_are_normalised_noise, ranks_make_up_the_batch,
          evaluation_is_filled_up, refuses_what_cannot_be)
