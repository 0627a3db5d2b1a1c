/* Arrival, wait and transfer of collectives. It knows no recorder, device or clock: spans are on one clock already. */
#include "profiles/collectives.h"

#include <stdlib.h>

#include "profiles/median.h"

void el_collectives_free(struct el_collectives *collectives)
{
    free(collectives->spans);
    free(collectives->phases);
    free(collectives->bytes);
    *collectives = (struct el_collectives){0};
}

static struct el_span span_of(const struct el_collectives *member, size_t step, size_t k)
{
    return member->spans[step * member->n + k];
}

static int64_t latest_of(const struct el_collectives *members, int n_members, size_t step, size_t k)
{
    int64_t latest = span_of(&members[0], step, k).begin_ns;
    for (int m = 1; m < n_members; m++) {
        int64_t begin = span_of(&members[m], step, k).begin_ns;
        if (begin > latest) latest = begin;
    }
    return latest;
}

void el_collectives_latest(const struct el_collectives *members, int n_members, int64_t *latest_ns)
{
    for (size_t step = 0; step < members->n_steps; step++) {
        for (size_t k = 0; k < members->n; k++)
            latest_ns[step * members->n + k] = latest_of(members, n_members, step, k);
    }
}

/* Member m's arrival after the mean of the others', in nanoseconds. */
static double late_ns(const struct el_collectives *members, int n_members, int m, size_t step, size_t k)
{
    int64_t own = span_of(&members[m], step, k).begin_ns;
    double sum = 0;
    for (int q = 0; q < n_members; q++)
        if (q != m) sum += (double)(own - span_of(&members[q], step, k).begin_ns);
    return n_members > 1 ? sum / (n_members - 1) : 0;
}

/* The skew of one step; adds its transfer. */
static double look_at_step(const struct el_collectives *members, int n_members, size_t step, size_t k,
                           double *transfer_ns)
{
    int64_t latest = latest_of(members, n_members, step, k), first = latest, last = latest;
    for (int m = 0; m < n_members; m++) {
        struct el_span span = span_of(&members[m], step, k);
        if (span.begin_ns < first) first = span.begin_ns;
        if (span.end_ns > last) last = span.end_ns;
    }
    *transfer_ns += (double)(last - latest);
    return (double)(latest - first);
}

enum el_status el_collectives_figures(const struct el_collectives *members, int n_members, size_t k,
                                      struct el_collective_figures *figures_p)
{
    size_t n_steps = members->n_steps;
    struct el_collective_figures figures = {0};
    double skew_ns = 0, transfer_ns = 0;
    double *values = malloc((n_steps + 1) * sizeof *values);
    if (!values) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu steps of a collective", n_steps);
    for (size_t step = 0; step < n_steps; step++) {
        values[step] = look_at_step(members, n_members, step, k, &transfer_ns);
        skew_ns += values[step];
    }
    if (n_steps) figures.skew_median_s = el_median(values, n_steps) * 1e-9;
    for (int m = 0; m < n_members && n_steps; m++) {
        for (size_t step = 0; step < n_steps; step++) values[step] = late_ns(members, n_members, m, step, k);
        figures.late_s[m] = el_median(values, n_steps) * 1e-9;
    }
    free(values);
    if (n_steps) {
        figures.skew_s = skew_ns * 1e-9 / (double)n_steps;
        figures.transfer_s = transfer_ns * 1e-9 / (double)n_steps;
    }
    *figures_p = figures;
    return EL_OK;
}
