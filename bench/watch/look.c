/* Samples of the activities, and their time series. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/watch/late.h"
#include "bench/watch/watch.h"
#include "runtime/base/clock.h"
#include "runtime/base/grow.h"

/* ---- frames, and the points in them ---- */

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
        if (!EL_GROW(series->points, series->room, (size_t)series->n + 1)) return;
        series->points[series->n] = series->points[series->n - 1];
        series->n++;
    }
    if (EL_GROW(series->points, series->room, (size_t)series->n + 1)) series->points[series->n++] = point;
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

static const int64_t SAMPLE_HOLDS_NS = 1000000000;

static void sum_resident(struct el_watching *watch)
{
    int64_t sum_bytes = 0;
    for (int i = 0; i < watch->tree->n; i++) {
        const struct el_tree_process *p = watch->tree->list[i];
        if (p->alive && p->look.resident_bytes > 0) sum_bytes += p->look.resident_bytes;
    }
    if (sum_bytes > watch->resident_peak_bytes) watch->resident_peak_bytes = sum_bytes;
}

static void look(struct el_watching *watch)
{
    el_process_tree_look(watch->tree);
    if (el_frames_are_many(&watch->frames)) {
        el_frames_halve(&watch->frames);
        for (int i = 0; i < watch->tree->n; i++) el_series_halve(&watch->series[i]);
        for (int k = 0; k < watch->n_uses; k++) el_series_halve(&watch->uses[k].series);
    }
    el_frames_begin(&watch->frames, el_clock_ns());
    for (int i = 0; i < watch->tree->n; i++) {
        const struct el_tree_process *p = watch->tree->list[i];
        if (!p->alive || p->look.resident_bytes <= 0) continue;
        el_series_put(&watch->frames, &watch->series[i], p->look.resident_bytes, p->look.cpu_ns);
    }
    for (int k = 0; k < watch->n_uses; k++)
        if (watch->uses[k].there) el_series_put(&watch->frames, &watch->uses[k].series, watch->uses[k].bytes, 0);
    sum_resident(watch);
}

static struct el_watch_use *find_use(struct el_watching *watch, int process, int gpu)
{
    for (int k = 0; k < watch->n_uses; k++)
        if (watch->uses[k].process == process && watch->uses[k].gpu == gpu) return &watch->uses[k];
    if (watch->n_uses == EL_WATCH_USES_MAX) return NULL;
    struct el_watch_use *use = &watch->uses[watch->n_uses++];
    *use = (struct el_watch_use){.process = process, .gpu = gpu};
    return use;
}

/* Per period of at most a second, the driver samples only processes that worked. */
static void take_busy(struct el_watch_use *use, double sample_pct, double seconds, int64_t now_ns)
{
    if (!isnan(sample_pct)) {
        use->busy_pct = sample_pct;
        use->busy_ns = now_ns;
    } else if (now_ns - use->busy_ns > SAMPLE_HOLDS_NS) {
        use->busy_pct = 0;
    }
    use->busy_pct_s += seconds * use->busy_pct;
    use->told_s += seconds;
}

static void take_use(struct el_watch_use *use, const struct el_gpu_use *seen, double seconds)
{
    use->there = true;
    use->bytes = seen->used_bytes > 0 ? seen->used_bytes : 0;
    if (use->bytes > use->peak_bytes) use->peak_bytes = use->bytes;
    use->byte_s += seconds * (double)use->bytes;
    use->looked_s += seconds;
}

static void raise_to(int64_t *highest, int64_t value)
{
    if (value > *highest) *highest = value;
}

static void take_gpus(struct el_watching *watch, const int64_t *ours_bytes, const int64_t *others_bytes)
{
    for (int i = 0; i < watch->gpus->n; i++) {
        const struct el_gpu_state *state = &watch->gpus->gpus[i];
        struct el_watch_gpu *gpu = &watch->gpu[i];
        raise_to(&gpu->ours_peak_bytes, ours_bytes[i]);
        raise_to(&gpu->others_peak_bytes, others_bytes[i]);
        raise_to(&gpu->used_peak_bytes, state->used_bytes);
        raise_to(&gpu->total_bytes, state->total_bytes);
        if (isnan(state->busy_pct)) continue;
        gpu->busy_sum += state->busy_pct;
        gpu->n_busy++;
    }
}

static void look_at_gpus(struct el_watching *watch)
{
    int64_t now_ns = el_clock_ns(), ours_bytes[EL_GPUS_MAX] = {0}, others_bytes[EL_GPUS_MAX] = {0};
    double seconds = watch->gpu_look_ns ? 1e-9 * (double)(now_ns - watch->gpu_look_ns) : 0;
    el_gpu_processes_look(watch->gpus);
    watch->gpu_look_ns = now_ns;
    for (int k = 0; k < watch->n_uses; k++) watch->uses[k].there = false;
    for (int k = 0; k < watch->gpus->n_uses; k++) {
        const struct el_gpu_use *seen = &watch->gpus->uses[k];
        int process = el_process_tree_find(watch->tree, seen->pid);
        struct el_watch_use *use = process < 0 ? NULL : find_use(watch, process, seen->gpu);
        if (use) take_use(use, seen, seconds);
        if (use && watch->gpus->gpus[seen->gpu].tells_processes) take_busy(use, seen->busy_pct, seconds, now_ns);
        if (seen->used_bytes > 0) (use ? ours_bytes : others_bytes)[seen->gpu] += seen->used_bytes;
    }
    take_gpus(watch, ours_bytes, others_bytes);
}

enum el_status el_watch_do(struct el_watching *watch, enum el_watch_activity activity)
{
    if (activity == EL_WATCH_DISCOVER) {
        EL_TRY(el_process_tree_discover(watch->tree));
        if (el_process_tree_look_young(watch->tree)) sum_resident(watch);
    } else if (activity == EL_WATCH_LOOK) {
        look(watch);
    } else if (activity == EL_WATCH_SHARED) {
        el_process_tree_look_shared(watch->tree);
    } else if (activity == EL_WATCH_GPUS && watch->gpus) {
        look_at_gpus(watch);
    } else if (activity == EL_WATCH_LIVE && watch->live) {
        json_t *training = el_late_document(&watch->hook);
        el_late_print(training, stderr);
        json_decref(training);
    } else if (activity == EL_WATCH_SO_FAR && watch->so_far) {
        el_watch_conclude(watch);
        watch->so_far(watch, watch->so_far_context);
    }
    return EL_OK;
}
