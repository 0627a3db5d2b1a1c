/* Figures over time of many processes, in bounded memory. At first each sample is a frame. When there are too many
 * frames, each two become one, in all series. A frame keeps the highest memory and the last CPU time.
 *
 *     el_frames_begin(&frames, now_ns);                      a sample begins
 *     el_series_put(&frames, &series[i], bytes, cpu_ns);     of each that is there
 *     if (el_frames_are_many(&frames)) { el_frames_halve(&frames); el_series_halve(&series[i]) of every series; }
 *
 * A series begins at the frame of its first sample. A sample that failed leaves no gap: once there is another, the
 * frames between repeat the last value. */
#ifndef EL_BENCH_WATCH_SERIES_H
#define EL_BENCH_WATCH_SERIES_H

#include <stdbool.h>
#include <stdint.h>

enum { EL_FRAMES_MAX = 1000 };

struct el_frames {
    int64_t ns[EL_FRAMES_MAX]; /* of the last sample in each */
    int n, looks, looks_each;
};

struct el_series_point {
    int64_t bytes;  /* the highest of the frame */
    int64_t cpu_ns; /* since the process began, at the frame's end */
};

struct el_series {
    int first, n, capacity;
    struct el_series_point *points;
};

void el_frames_begin(struct el_frames *frames, int64_t now_ns);
bool el_frames_are_many(const struct el_frames *frames);
void el_frames_halve(struct el_frames *frames);

/* Into the present frame. Where no memory is left for it, the next value fills the gap. */
void el_series_put(const struct el_frames *frames, struct el_series *series, int64_t bytes, int64_t cpu_ns);
void el_series_halve(struct el_series *series);
void el_series_free(struct el_series *series);

#endif
