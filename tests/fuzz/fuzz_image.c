/* An image of any format, and the same bytes as a file of CIFAR-10's. */
#include <stdlib.h>

#include "runtime/data/samples.h"
#include "tests/fuzz/fuzz.h"

enum { SIDE = 5 };

static void parse_records(const uint8_t *data, size_t size)
{
    const struct el_cifar_file file = {.path = "records", .text = {.bytes = (char *)(uintptr_t)data, .length = size}};
    struct el_samples samples;
    if (!fuzz_status(el_cifar_parse(&file, 1, &(struct el_cifar_labels){.classes = 10}, SIDE, &samples))) return;
    for (int64_t i = 0; i < samples.count; i++)
        fuzz_expect(samples.labels[i] >= 0 && samples.labels[i] < 10, "labels are below the number of classes");
    el_samples_free(&samples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t pixels[SIDE * SIDE * EL_COLOURS];
    struct el_bitmap bitmap;
    if (fuzz_status(el_bitmap_decode("image", data, size, &bitmap))) {
        fuzz_expect(bitmap.width > 0 && bitmap.height > 0, "an image has pixels");
        fuzz_status(el_image_fit(bitmap.rgb, bitmap.width, bitmap.height, SIDE, pixels));
        free(bitmap.rgb);
    }
    parse_records(data, size);
    return 0;
}
