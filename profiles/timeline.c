/* Interval sets as sorted arrays: a union by one sort and one sweep, an intersection by one merge. */
#include "profiles/timeline.h"

#include <stdlib.h>

static bool grow(struct el_timeline *timeline)
{
    size_t capacity = timeline->capacity == 0 ? 64 : timeline->capacity * 2;
    struct el_span *spans = realloc(timeline->spans, capacity * sizeof *spans);
    if (spans == NULL) {
        timeline->failed = true;
        return false;
    }
    timeline->spans = spans;
    timeline->capacity = capacity;
    return true;
}

/* An empty interval has no length and joins nothing, so it is not kept. */
void el_timeline_add(struct el_timeline *timeline, struct el_span span)
{
    if (span.end_ns <= span.begin_ns) return;
    if (timeline->n == timeline->capacity && !grow(timeline)) return;
    timeline->spans[timeline->n++] = span;
}

static int by_begin(const void *a, const void *b)
{
    const struct el_span *x = a, *y = b;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

void el_timeline_unite(struct el_timeline *timeline)
{
    if (timeline->n < 2) return;
    qsort(timeline->spans, timeline->n, sizeof timeline->spans[0], by_begin);
    size_t last = 0;
    for (size_t i = 1; i < timeline->n; i++) {
        struct el_span *open = &timeline->spans[last], next = timeline->spans[i];
        if (next.begin_ns > open->end_ns) {
            timeline->spans[++last] = next;
        } else if (next.end_ns > open->end_ns) {
            open->end_ns = next.end_ns;
        }
    }
    timeline->n = last + 1;
}

int64_t el_timeline_measure(const struct el_timeline *timeline)
{
    int64_t sum = 0;
    for (size_t i = 0; i < timeline->n; i++) sum += timeline->spans[i].end_ns - timeline->spans[i].begin_ns;
    return sum;
}

int64_t el_timeline_common(const struct el_timeline *a, const struct el_timeline *b)
{
    int64_t sum = 0;
    size_t i = 0, j = 0;
    while (i < a->n && j < b->n) {
        const struct el_span *x = &a->spans[i], *y = &b->spans[j];
        int64_t begin = x->begin_ns > y->begin_ns ? x->begin_ns : y->begin_ns;
        int64_t end = x->end_ns < y->end_ns ? x->end_ns : y->end_ns;
        if (end > begin) sum += end - begin;
        if (x->end_ns < y->end_ns) {
            i++;
        } else {
            j++;
        }
    }
    return sum;
}

void el_timeline_clear(struct el_timeline *timeline)
{
    timeline->n = 0;
}

void el_timeline_free(struct el_timeline *timeline)
{
    free(timeline->spans);
    *timeline = (struct el_timeline){0};
}
