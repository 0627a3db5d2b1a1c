/* Clocks of traces, by the ends of collectives that nobody leaves before all have come. */
#include <math.h>
#include <stdlib.h>

#include "profiles/relate_internal.h"

/* Of one trace: what its times lack, and when. */
struct difference {
    int64_t at_ns;
    double ns;
};
/* What is added at a time: base + slope * (time - from). */
struct line {
    double base_ns, slope;
    int64_t from_ns;
    bool known;
};

static int by_time(const void *a, const void *b)
{
    const struct difference *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static double at(const struct line *line, int64_t time_ns)
{
    return line->base_ns + line->slope * (double)(time_ns - line->from_ns);
}

static double median_of(const struct difference *d, size_t n, double *values)
{
    for (size_t i = 0; i < n; i++) values[i] = d[i].ns;
    return el_median(values, n);
}

static int64_t middle_of(const struct difference *d, size_t n)
{
    return d[(n - 1) / 2].at_ns + (d[n / 2].at_ns - d[(n - 1) / 2].at_ns) / 2;
}

/* What 9 of 10 differences from the line stay under. */
static double spread(const struct line *line, const struct difference *d, size_t n, double *values)
{
    for (size_t i = 0; i < n; i++) values[i] = fabs(d[i].ns - at(line, d[i].at_ns));
    el_median(values, n); /* sorts */
    return values[n * 9 / 10 < n ? n * 9 / 10 : n - 1];
}

/* values[n] is scratch. Returns the spread. */
static double fit(const struct difference *d, size_t n, double *values, struct line *line)
{
    const struct line flat = {.base_ns = median_of(d, n, values), .known = true};
    double of_flat = spread(&flat, d, n, values);
    size_t half = n / 2;
    *line = flat;
    if (n < 8) return of_flat;
    double early = median_of(d, half, values), late = median_of(d + half, n - half, values);
    int64_t from_ns = middle_of(d, half), to_ns = middle_of(d + half, n - half);
    if (to_ns <= from_ns) return of_flat;
    const struct line tilted = {
        .base_ns = early, .slope = (late - early) / (double)(to_ns - from_ns), .from_ns = from_ns, .known = true};
    double of_tilted = spread(&tilted, d, n, values);
    if (!(of_tilted < 0.7 * of_flat && fabs(late - early) > 2 * of_tilted)) return of_flat;
    *line = tilted;
    return of_tilted;
}

static size_t trace_of(const struct el_relate *relate, size_t entry)
{
    return relate->relation->members[relate->entries[entry].member].trace;
}

/* Of trace t against those that are known. */
static size_t differences(const struct el_relate *relate, const struct line *lines, size_t t, struct difference *d)
{
    size_t n = 0;
    for (size_t from = 0, to; from < relate->n; from = to) {
        size_t own = SIZE_MAX, other = SIZE_MAX;
        to = el_relate_run(relate, from);
        for (size_t i = from; i < to && relate->entries[i].syncs; i++) {
            if (trace_of(relate, i) == t) own = i;
            if (other == SIZE_MAX && lines[trace_of(relate, i)].known) other = i;
        }
        if (own == SIZE_MAX || other == SIZE_MAX) continue;
        int64_t own_ns = relate->entries[own].span.end_ns, other_ns = relate->entries[other].span.end_ns;
        double known_ns = (double)(other_ns - own_ns) + at(&lines[trace_of(relate, other)], other_ns);
        d[n++] = (struct difference){own_ns, known_ns};
    }
    qsort(d, n, sizeof *d, by_time);
    return n;
}

static void move(struct el_relate *relate, const struct line *lines)
{
    for (size_t i = 0; i < relate->n; i++) {
        struct el_span *span = &relate->entries[i].span;
        const struct line *line = &lines[trace_of(relate, i)];
        double ns = line->known ? at(line, span->begin_ns) : 0;
        int64_t by_ns = fabs(ns) < 2e18 ? llround(ns) : 0;
        span->begin_ns += by_ns;
        span->end_ns += by_ns;
    }
}

/* Traces that share collectives with one that is known become known, until there are no more. */
static void find_lines(const struct el_relate *relate, struct line *lines, struct difference *d, double *values)
{
    bool all_common = true;
    for (size_t t = 0; t < relate->n_traces; t++) all_common = all_common && relate->traces[t].common_clock;
    lines[0].known = true;
    for (bool found = true; found;) {
        found = false;
        for (size_t t = 1; t < relate->n_traces; t++) {
            size_t n = lines[t].known ? 0 : differences(relate, lines, t, d);
            if (n == 0) continue;
            struct el_relation_clock *clock = &relate->relation->clocks[t];
            double spread_ns = fit(d, n, values, &lines[t]);
            bool within = fabs(lines[t].base_ns) <= spread_ns && lines[t].slope == 0;
            clock->error_s = spread_ns * 1e-9;
            clock->n_ends = n;
            if (all_common) clock->error_s = NAN;
            if (all_common || within) lines[t] = (struct line){.known = true};
            clock->offset_s = lines[t].base_ns * 1e-9;
            clock->drift_ppm = lines[t].slope * 1e6;
            found = true;
        }
    }
}

enum el_status el_relate_clocks(struct el_relate *relate)
{
    struct line *lines = calloc(relate->n_traces + 1, sizeof *lines);
    struct difference *d = malloc((relate->n + 1) * sizeof *d);
    double *values = malloc((relate->n + 1) * sizeof *values);
    bool enough = lines && d && values;
    for (size_t t = 0; t < relate->n_traces; t++) relate->relation->clocks[t].error_s = NAN;
    if (enough) find_lines(relate, lines, d, values);
    if (enough) move(relate, lines);
    free(lines);
    free(d);
    free(values);
    return enough ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for the clocks of traces");
}
