/* Sets of images in memory, from any --data (readers: cifar.c, image_folder.c). */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/rng.h"
#include "runtime/data/samples.h"

enum { SIDE_MAX = 4096, DEFAULT_SIDE = 224, DUMMY_CLASSES = 1000, DUMMY_SAMPLES = 16384, NOISE_BYTES = 1 << 20 };
#define SET_BYTES_MAX ((int64_t)4 << 30)

enum el_status el_images_alloc(int64_t count, int64_t side, int64_t pixels, struct el_samples *samples_p)
{
    if (pixels > SET_BYTES_MAX)
        return el_fail(EL_ERR_INVALID,
                       "%lld images of %lld x %lld are %.1f GiB, which every process keeps in memory (at most %lld): "
                       "give fewer images or a smaller --image",
                       (long long)count, (long long)side, (long long)side, (double)pixels / 0x1p30,
                       (long long)(SET_BYTES_MAX >> 30));
    struct el_samples samples = {.count = count,
                                 .labels = malloc((size_t)(count + 1) * sizeof *samples.labels),
                                 .starts = malloc((size_t)(count + 1) * sizeof *samples.starts),
                                 .pixels = malloc((size_t)pixels + 1)};
    if (!samples.labels || !samples.starts || !samples.pixels) {
        el_samples_free(&samples);
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for %lld images of %lld x %lld", (long long)count,
                       (long long)side, (long long)side);
    }
    for (int64_t i = 0; i <= count; i++) samples.starts[i] = i * el_image_bytes(side);
    *samples_p = samples;
    return EL_OK;
}

static void draw_noise(uint64_t seed, int64_t bytes, uint8_t *noise)
{
    const struct el_rng_key key = {.seed = seed, .use = EL_RNG_DATA, .id = 2};
    uint32_t words[4];
    for (int64_t at = 0; at < bytes; at += (int64_t)sizeof words) {
        el_rng_draw4(&key, (uint64_t)at, 0, words);
        memcpy(noise + at, words, (size_t)(bytes - at) < sizeof words ? (size_t)(bytes - at) : sizeof words);
    }
}

/* With one class: label 0 (target 1 in squared error) if the mean of the unnormalised numbers is below 0.5, else 1
 * (target 0). */
static enum el_status label_by_mean(int64_t bytes, struct el_images *set)
{
    struct el_samples *train = &set->train;
    const int64_t n = el_image_bytes(set->image);
    int64_t *sums = malloc((size_t)(bytes + 1) * sizeof *sums);
    if (!sums) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the labels of images");
    sums[0] = 0;
    for (int64_t i = 0; i < bytes; i++) sums[i + 1] = sums[i] + train->pixels[i];
    for (int64_t i = 0; i < train->count; i++)
        train->labels[i] = 2 * (sums[train->starts[i] + n] - sums[train->starts[i]]) >= 255 * n;
    free(sums);
    return EL_OK;
}

/* Images begin anywhere in one stretch of noise: thousands cost a MiB and no time. */
static enum el_status open_dummy(const struct el_dataset_spec *spec, struct el_images *set)
{
    const struct el_rng_key key = {.seed = spec->seed, .use = EL_RNG_DATA, .id = 3};
    set->image = spec->image ? spec->image : DEFAULT_SIDE;
    set->classes = spec->classes ? spec->classes : DUMMY_CLASSES;
    const int64_t bytes = NOISE_BYTES + el_image_bytes(set->image);
    EL_TRY(el_images_alloc(DUMMY_SAMPLES, set->image, bytes, &set->train));
    draw_noise(spec->seed, bytes, set->train.pixels);
    for (int64_t i = 0; i < DUMMY_SAMPLES; i++) {
        uint32_t words[4];
        el_rng_draw4(&key, (uint64_t)i, 0, words);
        set->train.starts[i] = words[0] % NOISE_BYTES;
        set->train.labels[i] = (int32_t)((uint64_t)words[1] * (uint64_t)set->classes >> 32);
    }
    return set->classes == 1 ? label_by_mean(bytes, set) : EL_OK;
}

static enum el_status open_synthetic(const struct el_dataset_spec *spec, struct el_images *set)
{
    struct el_cifar_file train = {.path = "synthetic"}, test = {.path = "synthetic"};
    set->image = spec->image ? spec->image : EL_CIFAR_SIDE;
    set->classes = spec->classes ? spec->classes : EL_CIFAR_CLASSES;
    const struct el_cifar_labels labels = {.classes = set->classes, .folded = true};
    const struct el_synthetic_spec made = {.input = EL_INPUT_IMAGES, .seed = spec->seed};
    EL_TRY(el_synthetic_make(&made, &train.text, &test.text));
    enum el_status status = el_cifar_parse(&train, 1, &labels, set->image, &set->train);
    if (status == EL_OK) status = el_cifar_parse(&test, 1, &labels, set->image, &set->test);
    free(train.text.bytes);
    free(test.text.bytes);
    return status;
}

static enum el_status open_path(const struct el_dataset_spec *spec, struct el_images *set)
{
    struct stat info;
    if (stat(spec->source, &info) != 0) return el_fail_errno("data %s", el_path_tail(spec->source));
    if (!S_ISDIR(info.st_mode) || el_cifar_is_folder(spec->source)) {
        set->image = spec->image ? spec->image : EL_CIFAR_SIDE;
        set->classes = spec->classes ? spec->classes : EL_CIFAR_CLASSES;
        return el_cifar_open(spec, set);
    }
    set->image = spec->image ? spec->image : DEFAULT_SIDE;
    return el_image_folder_open(spec, set);
}

enum el_status el_images_open(const struct el_dataset_spec *spec, struct el_images *set)
{
    if (spec->image < 0 || spec->image > SIDE_MAX)
        return el_fail(EL_ERR_INVALID, "image %lld: a side from 1 to %d pixels", (long long)spec->image, SIDE_MAX);
    if (!strcmp(spec->source, "dummy")) return open_dummy(spec, set);
    return strcmp(spec->source, "synthetic") ? open_path(spec, set) : open_synthetic(spec, set);
}
