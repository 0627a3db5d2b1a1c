/* From an image's bytes to a model's input: moved and mirrored where training wants that, then normalised by a table,
 * which takes less than a nanosecond a byte. This runs inside the step. */
#include <string.h>

#include "runtime/base/rng.h"
#include "runtime/data/samples.h"

/* torchvision's, of ImageNet's images. */
static const double MEAN[EL_COLOURS] = {0.485, 0.456, 0.406}, DEVIATION[EL_COLOURS] = {0.229, 0.224, 0.225};

void el_tones_make(struct el_tones *tones)
{
    for (int colour = 0; colour < EL_COLOURS; colour++)
        for (int byte = 0; byte < 256; byte++) {
            tones->f64[colour][byte] = (byte / 255.0 - MEAN[colour]) / DEVIATION[colour];
            tones->f32[colour][byte] = (float)tones->f64[colour][byte];
        }
}

void el_tones_row(const struct el_tones *tones, const uint8_t *pixels, int64_t side, enum el_dtype dtype, void *row)
{
    const int64_t n = el_image_bytes(side);
    if (dtype == EL_F64) {
        double *out = row;
        for (int64_t i = 0; i < n; i += EL_COLOURS)
            for (int c = 0; c < EL_COLOURS; c++) out[i + c] = tones->f64[c][pixels[i + c]];
    } else {
        float *out = row;
        for (int64_t i = 0; i < n; i += EL_COLOURS)
            for (int c = 0; c < EL_COLOURS; c++) out[i + c] = tones->f32[c][pixels[i + c]];
    }
}

static void mirror(uint8_t *line, int64_t side)
{
    for (int64_t left = 0, right = side - 1; left < right; left++, right--) {
        uint8_t kept[EL_COLOURS];
        memcpy(kept, line + left * EL_COLOURS, sizeof kept);
        memcpy(line + left * EL_COLOURS, line + right * EL_COLOURS, sizeof kept);
        memcpy(line + right * EL_COLOURS, kept, sizeof kept);
    }
}

/* torchvision's RandomCrop, of the image padded with black by an eighth of its side (4 at 32), and then its
 * RandomHorizontalFlip. */
void el_image_augment(const uint8_t *pixels, int64_t side, uint64_t seed, int64_t epoch, int64_t position,
                      uint8_t *moved)
{
    const struct el_rng_key key = {.seed = seed, .use = EL_RNG_AUGMENT, .id = (uint32_t)epoch};
    const int64_t pad = side / 8, line_bytes = side * EL_COLOURS;
    uint32_t words[4];
    el_rng_draw4(&key, (uint64_t)position, (uint64_t)epoch >> 32, words);
    const int64_t down = words[0] % (2 * pad + 1) - pad, right = words[1] % (2 * pad + 1) - pad;
    const int64_t first = right > 0 ? right : 0, kept = side - (right > 0 ? right : -right);
    memset(moved, 0, (size_t)el_image_bytes(side));
    for (int64_t y = 0; y < side; y++) {
        uint8_t *line = moved + y * line_bytes;
        if (y - down < 0 || y - down >= side) continue;
        memcpy(line + first * EL_COLOURS, pixels + (y - down) * line_bytes + (first - right) * EL_COLOURS,
               (size_t)(kept * EL_COLOURS));
        if (words[2] & 1) mirror(line, side);
    }
}
