/* Where a step goes, and what communication costs it: from the control blocks, in which it was on and off in turns. */
#include <math.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/record/stats.h"
#include "bench/stats/stats.h"

/* What a repeat's member spent, in ms a step. */
struct blocks {
    const json_t *on, *off;
};

static double compute_alone(struct blocks b)
{
    return el_json_number(b.off, "compute_ms");
}

static double contention(struct blocks b)
{
    return el_json_number(b.on, "compute_ms") - el_json_number(b.off, "compute_ms");
}

static double exposed(struct blocks b)
{
    return el_json_number(b.on, "exposed_ms");
}

static double other(struct blocks b)
{
    return el_json_number(b.on, "other_ms");
}

static double idle(struct blocks b)
{
    return el_json_number(b.on, "idle_ms");
}

static double step(struct blocks b)
{
    return el_json_number(b.on, "step_ms");
}

static double exposed_step(struct blocks b)
{
    return el_json_number(b.on, "step_ms") - el_json_number(b.off, "step_ms");
}

/* What is neither compute nor communication; a muted collective's microsecond is no communication. */
static double idle_change(struct blocks b)
{
    return other(b) + idle(b) - el_json_number(b.off, "step_ms") + el_json_number(b.off, "compute_ms");
}

static const struct {
    const char *name, *interval;
    double (*value)(struct blocks b);
} parts[] = {
    {"step_ms", NULL, step},
    {"compute_alone_ms", NULL, compute_alone},
    {"contention_ms", "contention_ci95", contention},
    {"exposed_ms", NULL, exposed},
    {"other_ms", NULL, other},
    {"idle_ms", NULL, idle},
    {"exposed_step_ms", "exposed_step_ci95", exposed_step},
    {"idle_change_ms", NULL, idle_change},
};

static void put(json_t *breakdown, size_t part, const double *values, size_t n)
{
    struct el_interval interval = el_stats_difference(values, n);
    json_object_set_new(breakdown, parts[part].name, el_json_real(el_stats_mean(values, n)));
    if (parts[part].interval == NULL) return;
    json_object_set_new(breakdown, parts[part].interval,
                        interval.valid ? json_pack("[o, o]", el_json_real(interval.low), el_json_real(interval.high))
                                       : json_null());
    if (!interval.valid) json_object_set_new(breakdown, "ci_reason", el_json_string(interval.reason));
}

/* The member's blocks of each repeat that has them; returns how many. */
static size_t find_blocks(const json_t *ok, int member, struct blocks *blocks)
{
    size_t n = 0;
    for (size_t i = 0; member >= 0 && i < json_array_size(ok); i++) {
        const json_t *members = json_object_get(json_array_get(ok, i), "members");
        const json_t *control = json_object_get(json_array_get(members, (size_t)member), "control");
        blocks[n] = (struct blocks){.on = json_object_get(control, "on"), .off = json_object_get(control, "off")};
        n += blocks[n].on != NULL && blocks[n].off != NULL;
    }
    return n;
}

static json_t *make(const struct blocks *blocks, double *values, size_t n)
{
    if (n == 0) return json_null();
    json_t *breakdown = json_object();
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        for (size_t i = 0; i < n; i++) values[i] = parts[p].value(blocks[i]);
        put(breakdown, p, values, n);
    }
    return breakdown;
}

json_t *el_trial_breakdown(const json_t *ok, int slowest)
{
    size_t room = json_array_size(ok) + 1;
    struct blocks *blocks = calloc(room, sizeof *blocks);
    double *values = calloc(room, sizeof *values);
    json_t *breakdown = blocks && values ? make(blocks, values, find_blocks(ok, slowest, blocks)) : json_null();
    free(blocks);
    free(values);
    return breakdown;
}
