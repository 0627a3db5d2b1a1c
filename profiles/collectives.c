/* Arrivals, waits and transfers of collectives. */
#include "profiles/collectives.h"

#include <stdbool.h>
#include <stdlib.h>

#include "profiles/intervals.h"

void el_collectives_free(struct el_collectives *collectives)
{
    free(collectives->spans);
    free(collectives->ops);
    free(collectives->passes);
    *collectives = (struct el_collectives){0};
}

struct entry {
    uint64_t operation;
    size_t k;
};

static int by_operation(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->operation != y->operation) return x->operation < y->operation ? -1 : 1;
    return (x->k > y->k) - (x->k < y->k);
}

static struct entry *sorted(const struct el_collectives *member)
{
    struct entry *entries = calloc(member->n + 1, sizeof *entries);
    for (size_t k = 0; entries && k < member->n; k++) entries[k] = (struct entry){member->ops[k].operation, k};
    if (entries) qsort(entries, member->n, sizeof *entries, by_operation);
    return entries;
}

/* The j-th operation of a number matches the other member's j-th. */
static void join(const struct entry *own, size_t n_own, const struct entry *theirs, size_t n_theirs, int *matches,
                 int n_members)
{
    for (size_t i = 0, k = 0; i < n_own; i++) {
        while (k < n_theirs && theirs[k].operation < own[i].operation) k++;
        bool found = k < n_theirs && theirs[k].operation == own[i].operation;
        matches[own[i].k * (size_t)n_members] = found ? (int)theirs[k++].k : -1;
    }
}

int *el_collectives_match(const struct el_collectives *members, int n_members, int m)
{
    int *matches = calloc(members[m].n * (size_t)n_members + 1, sizeof *matches);
    struct entry *own = sorted(&members[m]);
    bool enough = matches && own;
    for (int i = 0; i < n_members && enough; i++) {
        struct entry *theirs = sorted(&members[i]);
        enough = theirs != NULL;
        if (enough) join(own, members[m].n, theirs, members[i].n, matches + i, n_members);
        free(theirs);
    }
    free(own);
    if (enough) return matches;
    free(matches);
    return NULL;
}

static struct el_span span_of(const struct el_collectives *member, size_t step, int k)
{
    return member->spans[step * member->n + (size_t)k];
}

static int64_t latest_of(const struct el_collectives *members, int n_members, const int *match, size_t step)
{
    int64_t latest = INT64_MIN;
    for (int m = 0; m < n_members; m++) {
        int64_t begin = match[m] < 0 ? latest : span_of(&members[m], step, match[m]).begin_ns;
        if (begin > latest) latest = begin;
    }
    return latest;
}

void el_collectives_latest(const struct el_collectives *members, int n_members, int m, const int *matches,
                           int64_t *latest_ns)
{
    const struct el_collectives *own = &members[m];
    for (size_t step = 0; step < own->n_steps; step++) {
        for (size_t k = 0; k < own->n; k++)
            latest_ns[step * own->n + k] = own->ops[k].link == EL_LINK_SEND
                                               ? own->spans[step * own->n + k].begin_ns
                                               : latest_of(members, n_members, matches + k * (size_t)n_members, step);
    }
}

static double late_ns(const struct el_collectives *members, int n_members, const int *match, int m, size_t step)
{
    int64_t own = span_of(&members[m], step, match[m]).begin_ns;
    double sum = 0;
    int n = 0;
    for (int q = 0; q < n_members; q++) {
        if (q == m || match[q] < 0) continue;
        sum += (double)(own - span_of(&members[q], step, match[q]).begin_ns);
        n++;
    }
    return n > 0 ? sum / n : 0;
}

/* Adds the transfer. */
static double look_at_step(const struct el_collectives *members, int n_members, const int *match, size_t step,
                           double *transfer_ns)
{
    int64_t latest = latest_of(members, n_members, match, step), first = latest, last = latest;
    for (int m = 0; m < n_members; m++) {
        if (match[m] < 0) continue;
        struct el_span span = span_of(&members[m], step, match[m]);
        if (span.begin_ns < first) first = span.begin_ns;
        if (span.end_ns > last) last = span.end_ns;
    }
    *transfer_ns += (double)(last - latest);
    return (double)(latest - first);
}

enum el_status el_collectives_figures(const struct el_collectives *members, int n_members, const int *match,
                                      struct el_collective_figures *figures_p, double *late_s)
{
    size_t n_steps = members->n_steps;
    struct el_collective_figures figures = {0};
    double skew_ns = 0, transfer_ns = 0;
    double *values = malloc((n_steps + 1) * sizeof *values);
    if (!values) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %zu steps of a collective", n_steps);
    for (size_t step = 0; step < n_steps; step++) {
        values[step] = look_at_step(members, n_members, match, step, &transfer_ns);
        skew_ns += values[step];
    }
    if (n_steps) figures.skew_median_s = el_median(values, n_steps) * 1e-9;
    for (int m = 0; m < n_members; m++) {
        late_s[m] = 0;
        if (match[m] < 0 || n_steps == 0) continue;
        for (size_t step = 0; step < n_steps; step++) values[step] = late_ns(members, n_members, match, m, step);
        late_s[m] = el_median(values, n_steps) * 1e-9;
    }
    free(values);
    if (n_steps) {
        figures.skew_s = skew_ns * 1e-9 / (double)n_steps;
        figures.transfer_s = transfer_ns * 1e-9 / (double)n_steps;
    }
    *figures_p = figures;
    return EL_OK;
}
