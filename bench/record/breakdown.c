/* Where a step goes, and what communication costs it: from the control blocks, in which it was on and off in turns. */
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/record/parts.h"

/* A part is a sum of what a member's blocks spent, in ms a step: of those with communication on, and off. */
struct term {
    int sign;
    const char *path;
};

static const struct {
    const char *name, *interval;
    struct term terms[4]; /* ended by a sign of 0 */
} parts[] = {
    {"step_ms", NULL, {{1, "on.step_ms"}}},
    {"compute_alone_ms", NULL, {{1, "off.compute_ms"}}},
    {"contention_ms", "contention_ci95", {{1, "on.compute_ms"}, {-1, "off.compute_ms"}}},
    {"exposed_ms", NULL, {{1, "on.exposed_ms"}}},
    {"other_ms", NULL, {{1, "on.other_ms"}}},
    {"idle_ms", NULL, {{1, "on.idle_ms"}}},
    {"exposed_step_ms", "exposed_step_ci95", {{1, "on.step_ms"}, {-1, "off.step_ms"}}},
    /* What is neither compute nor communication; a muted collective's microsecond is no communication. */
    {"idle_change_ms", NULL, {{1, "on.other_ms"}, {1, "on.idle_ms"}, {-1, "off.step_ms"}, {1, "off.compute_ms"}}},
};

static double sum_of(const struct term terms[4], const json_t *blocks)
{
    double sum = 0;
    for (int i = 0; i < 4 && terms[i].sign; i++) sum += terms[i].sign * el_json_number(blocks, terms[i].path);
    return sum;
}

static void put_part(json_t *breakdown, size_t part, const double *values, size_t n)
{
    struct el_interval interval = el_stats_difference(values, n);
    el_json_put_real(breakdown, parts[part].name, el_stats_mean(values, n));
    if (parts[part].interval == NULL) return;
    el_json_put(breakdown, parts[part].interval, el_trial_interval(&interval));
    if (!interval.valid) el_json_put_text(breakdown, "ci_reason", interval.reason);
}

/* The member's blocks of each repeat that has both kinds. New reference. */
static json_t *find_blocks(const json_t *ok, int member)
{
    json_t *blocks = json_array();
    for (size_t i = 0; member >= 0 && i < json_array_size(ok); i++) {
        const json_t *members = json_object_get(json_array_get(ok, i), "members");
        json_t *control = json_object_get(json_array_get(members, (size_t)member), "control");
        if (json_object_get(control, "on") && json_object_get(control, "off")) json_array_append(blocks, control);
    }
    return blocks;
}

json_t *el_trial_breakdown(const json_t *ok, int slowest)
{
    json_t *blocks = find_blocks(ok, slowest);
    size_t n = json_array_size(blocks);
    double *values = calloc(n + 1, sizeof *values);
    json_t *breakdown = n && values ? json_object() : json_null();
    for (size_t p = 0; p < sizeof parts / sizeof parts[0] && n && values; p++) {
        for (size_t i = 0; i < n; i++) values[i] = sum_of(parts[p].terms, json_array_get(blocks, i));
        put_part(breakdown, p, values, n);
    }
    free(values);
    json_decref(blocks);
    return breakdown;
}
