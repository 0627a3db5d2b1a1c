/* Experts to ranks: the search is as good as trying every placement, and never worse than the most loaded first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/imbalance/placement.h"
#include "runtime/base/rng.h"
#include "tests/test.h"

static double most_of(const struct el_placement *p, const int *order)
{
    const int each = p->n / p->ranks;
    double most = 0;
    for (int r = 0; r < p->ranks; r++) {
        double sum = 0;
        for (int i = r * each; i < (r + 1) * each; i++) sum += p->load[order[i]];
        most = fmax(most, sum);
    }
    return most;
}

/* Every order of the experts. */
static void try_all(const struct el_placement *p, int *order, int at, double *least)
{
    if (at == p->n) *least = fmin(*least, most_of(p, order));
    for (int i = at; i < p->n; i++) {
        const int a = order[at], b = order[i];
        order[at] = b, order[i] = a;
        try_all(p, order, at + 1, least);
        order[at] = a, order[i] = b;
    }
}

static void read_order(const struct el_placement *p, int *order)
{
    char text[EL_PLACEMENT_BYTES], *rest;
    int n = 0;
    snprintf(text, sizeof text, "%s", p->text);
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) order[n++] = atoi(word);
    assert_int_equal(n, p->n);
}

static void check(struct el_placement *p)
{
    int order[EL_PLACED_MAX];
    double least = INFINITY;
    for (int e = 0; e < p->n; e++) order[e] = e;
    try_all(p, order, 0, &least);
    el_placement_find(p);
    assert_true(p->proven && fabs(p->own - most_of(p, order)) < 1e-12);
    assert_true(fabs(p->most - least) < 1e-12 && p->greedy >= p->most);
    if (!*p->text) assert_true(p->most >= p->own);
    if (!*p->text) return;
    read_order(p, order);
    assert_true(fabs(most_of(p, order) - p->most) < 1e-12);
}

static void best_of_all(void **state)
{
    const struct el_rng_key key = {.seed = 5, .use = EL_RNG_TEST};
    for (int i = 0; i < 60; i++) {
        struct el_placement p = {.n = 8, .ranks = i % 3 == 0 ? 2 : i % 3 == 1 ? 4 : 8};
        for (int e = 0; e < p.n; e++) p.load[e] = pow(el_rng_uniform(&key, (uint64_t)i, (uint64_t)e), 3);
        check(&p);
    }
}

static void zipf_of_eight(void **state)
{
    struct el_placement p = {.n = 8, .ranks = 2};
    for (int e = 0; e < 8; e++) p.load[e] = pow(e + 1, -1.2);
    check(&p);
    assert_string_equal(p.text, "0,5,6,7,1,2,3,4");
    for (int e = 0; e < 8; e++) p.load[e] = 1;
    check(&p);
    assert_string_equal(p.text, ""); /* none is better */
}

static void many_experts_end(void **state)
{
    struct el_placement p = {.n = 64, .ranks = 8};
    double all = 0;
    for (int e = 0; e < 64; e++) all += p.load[e] = pow(e + 1, -0.6);
    el_placement_find(&p);
    assert_true(p.most < p.greedy && p.most < 1.15 * all / 8 && *p.text && p.proven);
}

RUN_TESTS(NULL, NULL, best_of_all, zipf_of_eight, many_experts_end)
