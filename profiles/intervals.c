/* Interval sets as sorted arrays. */
#include "profiles/intervals.h"

#include <stdlib.h>

#include "runtime/base/grow.h"

/* An empty interval joins nothing, so it is not kept. */
void el_intervals_add(struct el_intervals *set, struct el_span span)
{
    if (span.end_ns <= span.begin_ns) return;
    set->failed |= !EL_GROW(set->spans, set->room, set->n + 1);
    if (!set->failed) set->spans[set->n++] = span;
}

static int by_begin(const void *a, const void *b)
{
    const struct el_span *x = a, *y = b;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

void el_intervals_unite(struct el_intervals *set)
{
    if (set->n < 2) return;
    qsort(set->spans, set->n, sizeof set->spans[0], by_begin);
    size_t last = 0;
    for (size_t i = 1; i < set->n; i++) {
        struct el_span *open = &set->spans[last], next = set->spans[i];
        if (next.begin_ns > open->end_ns) {
            set->spans[++last] = next;
        } else if (next.end_ns > open->end_ns) {
            open->end_ns = next.end_ns;
        }
    }
    set->n = last + 1;
}

int64_t el_intervals_measure(const struct el_intervals *set)
{
    int64_t sum = 0;
    for (size_t i = 0; i < set->n; i++) sum += set->spans[i].end_ns - set->spans[i].begin_ns;
    return sum;
}

int64_t el_intervals_common(const struct el_intervals *a, const struct el_intervals *b)
{
    int64_t sum = 0;
    size_t i = 0, j = 0;
    while (i < a->n && j < b->n) {
        const struct el_span *x = &a->spans[i], *y = &b->spans[j];
        int64_t begin = x->begin_ns > y->begin_ns ? x->begin_ns : y->begin_ns;
        int64_t end = x->end_ns < y->end_ns ? x->end_ns : y->end_ns;
        if (end > begin) sum += end - begin;
        if (x->end_ns < y->end_ns)
            i++;
        else
            j++;
    }
    return sum;
}

void el_intervals_less(const struct el_intervals *a, const struct el_intervals *b, struct el_intervals *rest)
{
    for (size_t i = 0, j = 0; i < a->n; i++) {
        struct el_span left = a->spans[i];
        while (j < b->n && b->spans[j].end_ns <= left.begin_ns) j++;
        for (size_t k = j; k < b->n && b->spans[k].begin_ns < left.end_ns; k++) {
            el_intervals_add(rest, (struct el_span){left.begin_ns, b->spans[k].begin_ns});
            left.begin_ns = b->spans[k].end_ns;
        }
        el_intervals_add(rest, left);
    }
}

size_t el_intervals_after(const struct el_intervals *set, int64_t ns)
{
    size_t low = 0, high = set->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (set->spans[middle].end_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void el_intervals_clear(struct el_intervals *set)
{
    set->n = 0;
}

void el_intervals_free(struct el_intervals *set)
{
    free(set->spans);
    *set = (struct el_intervals){0};
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double el_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, ascending);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}
