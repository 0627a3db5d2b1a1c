/* The synthetic images, as a CIFAR-10 file: figures that a convolutional network can learn, unrelated to real images.
 * A class is one of five shapes, plain or striped. Place, size, rotation and colours are random, and every byte has
 * noise, so that no colour or pixel tells the class. Draws are by (seed, file, sample, position) in exact double
 * arithmetic: the bytes are a pure function of the seed. */
#include "runtime/data/samples.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/rng.h"

enum { SIDE = EL_CIFAR_SIDE, PIXELS = SIDE * SIDE, SHAPES = 5, NOISE = 24, STRIPES = 4 };

struct draws {
    struct el_rng_key key;
    uint64_t sample, next;
};

static double between(struct draws *draws, double low, double high)
{
    return low + (high - low) * el_rng_uniform(&draws->key, draws->sample, draws->next++);
}

struct figure {
    int shape;
    bool striped;
    double x, y, radius, cosine, sine;
    double ink[EL_COLOURS], ground[EL_COLOURS];
};

static struct figure draw_figure(struct draws *draws, int label)
{
    struct figure figure = {.shape = label % SHAPES, .striped = label >= SHAPES};
    figure.radius = between(draws, 10, 14);
    figure.x = between(draws, figure.radius, SIDE - figure.radius);
    figure.y = between(draws, figure.radius, SIDE - figure.radius);
    double half = between(draws, -0.15, 0.15); /* tangent of half the angle: 17 degrees at most */
    figure.cosine = (1 - half * half) / (1 + half * half);
    figure.sine = 2 * half / (1 + half * half);
    bool bright = between(draws, 0, 1) < 0.5;
    for (int c = 0; c < EL_COLOURS; c++) {
        double low = between(draws, 10, 110), high = between(draws, 140, 245);
        figure.ink[c] = bright ? high : low;
        figure.ground[c] = bright ? low : high;
    }
    return figure;
}

/* u, v: in the figure's coordinates, radius 1, v down. */
static bool covers(int shape, double u, double v)
{
    double far = fmax(fabs(u), fabs(v)), square = u * u + v * v;
    switch (shape) {
    case 0:
        return square < 1;
    case 1:
        return far < 0.85;
    case 2:
        return v < 0.75 && fabs(u) < (v + 1) * 0.6;
    case 3:
        return far < 1 && fmin(fabs(u), fabs(v)) < 0.3;
    default:
        return square < 1 && square > 0.36;
    }
}

static bool inked(const struct figure *figure, int x, int y)
{
    double right = (x + 0.5 - figure->x) / figure->radius, down = (y + 0.5 - figure->y) / figure->radius;
    double u = right * figure->cosine + down * figure->sine, v = down * figure->cosine - right * figure->sine;
    if (!covers(figure->shape, u, v)) return false;
    return !figure->striped || (int)((u + v + 4) * STRIPES) % 2 == 0;
}

static void put_record(struct draws *draws, uint8_t *record)
{
    record[0] = (uint8_t)between(draws, 0, EL_CIFAR_CLASSES);
    struct figure figure = draw_figure(draws, record[0]);
    for (int i = 0; i < PIXELS; i++) {
        const double *colour = inked(&figure, i % SIDE, i / SIDE) ? figure.ink : figure.ground;
        uint32_t words[4];
        el_rng_draw4(&draws->key, draws->sample, 1000 + (uint64_t)i, words);
        for (int c = 0; c < EL_COLOURS; c++) {
            double byte = colour[c] + words[c] % NOISE - NOISE / 2.0;
            record[1 + c * PIXELS + i] = (uint8_t)fmin(fmax(byte, 0), 255);
        }
    }
}

enum el_status el_shapes_compose(uint64_t seed, uint32_t file, int samples, char **bytes_p, size_t *length_p)
{
    const size_t length = (size_t)samples * EL_CIFAR_RECORD_BYTES;
    uint8_t *bytes = malloc(length);
    if (!bytes) return el_fail(EL_ERR_HOST_MEMORY, "no memory to make the synthetic images");
    struct draws draws = {.key = {.seed = seed, .use = EL_RNG_DATA, .id = 4 + file}};
    for (; draws.sample < (uint64_t)samples; draws.sample++, draws.next = 0)
        put_record(&draws, bytes + draws.sample * EL_CIFAR_RECORD_BYTES);
    *bytes_p = (char *)bytes;
    *length_p = length;
    return EL_OK;
}
