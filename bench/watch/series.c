/* Frames and the points in them. look.c decides what is put in, and when. */
#include "bench/watch/series.h"

#include <stdlib.h>

void el_frames_begin(struct el_frames *frames, int64_t now_ns)
{
    if (frames->looks_each == 0) frames->looks_each = 1;
    if (frames->looks++ % frames->looks_each == 0) frames->n++;
    frames->ns[frames->n - 1] = now_ns;
}

bool el_frames_are_many(const struct el_frames *frames)
{
    return frames->n == EL_FRAMES_MAX && frames->looks % frames->looks_each == 0;
}

void el_frames_halve(struct el_frames *frames)
{
    for (int i = 0; i < frames->n; i++) frames->ns[i / 2] = frames->ns[i];
    frames->n = (frames->n + 1) / 2;
    frames->looks_each *= 2;
}

static bool make_room(struct el_series *series)
{
    if (series->n < series->capacity) return true;
    int capacity = series->capacity * 2 + 16;
    struct el_series_point *points = realloc(series->points, (size_t)capacity * sizeof *points);
    if (!points) return false;
    series->points = points;
    series->capacity = capacity;
    return true;
}

static void merge(struct el_series_point *into, struct el_series_point later)
{
    if (later.bytes > into->bytes) into->bytes = later.bytes;
    into->cpu_ns = later.cpu_ns;
}

void el_series_put(const struct el_frames *frames, struct el_series *series, int64_t bytes, int64_t cpu_ns)
{
    struct el_series_point point = {bytes, cpu_ns};
    int frame = frames->n - 1;
    if (series->n == 0) series->first = frame;
    if (series->n > 0 && series->first + series->n - 1 == frame) {
        merge(&series->points[series->n - 1], point);
        return;
    }
    while (series->first + series->n < frame) {
        if (!make_room(series)) return;
        series->points[series->n] = series->points[series->n - 1];
        series->n++;
    }
    if (make_room(series)) series->points[series->n++] = point;
}

void el_series_halve(struct el_series *series)
{
    int first = series->first / 2, n = 0;
    for (int i = 0; i < series->n; i++) {
        int place = (series->first + i) / 2 - first;
        if (place < n) {
            merge(&series->points[place], series->points[i]);
        } else {
            series->points[n++] = series->points[i];
        }
    }
    series->first = first;
    series->n = n;
}

void el_series_free(struct el_series *series)
{
    free(series->points);
    *series = (struct el_series){0};
}
