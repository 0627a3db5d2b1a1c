/* Traces as sides of `explain A B`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/traces/traces.h"

/* The one that waits least: the others wait for it, so it determines the step. */
static size_t slowest_of(const struct el_relation *relation)
{
    size_t slowest = 0;
    for (size_t m = 1; m < relation->n_members; m++)
        if (relation->members[m].row.wait_exposed_s < relation->members[slowest].row.wait_exposed_s) slowest = m;
    return slowest;
}

static struct el_parts parts_of(const double *s)
{
    double rest = s[EL_RELATION_STEP] - s[EL_RELATION_COMPUTE] - s[EL_RELATION_EXPOSED] - s[EL_RELATION_COPIES];
    struct el_parts parts = {{[EL_PART_COMPUTE] = s[EL_RELATION_COMPUTE] * 1e3,
                              [EL_PART_CONTENTION] = NAN,
                              [EL_PART_EXPOSED] = s[EL_RELATION_EXPOSED] * 1e3,
                              [EL_PART_SKEW] = s[EL_RELATION_WAIT_EXPOSED] * 1e3,
                              [EL_PART_DATA] = s[EL_RELATION_COPIES] * 1e3,
                              [EL_PART_IDLE] = fmax(rest, 0) * 1e3}};
    return parts;
}

static void fill_steps(const struct el_relation *relation, const struct el_relation_member *member,
                       struct el_side *side)
{
    for (size_t s = 0; s < relation->n_steps && side->n < EL_REPEATS_MAX; s++) {
        const double *of = member->parts_s + s * EL_RELATION_PARTS;
        if (!(of[EL_RELATION_STEP] > 0)) continue;
        side->launches[side->n] = parts_of(of);
        for (int p = 0; p < EL_PARTS; p++) side->mean.ms[p] += side->launches[side->n].ms[p];
        side->repeat[side->n] = (double)s;
        side->step_ms[side->n++] = of[EL_RELATION_STEP] * 1e3;
    }
    for (int p = 0; p < EL_PARTS && side->n; p++) side->mean.ms[p] /= (double)side->n;
}

static enum el_status make_side(const struct el_traces *traces, struct el_side *side)
{
    const struct el_relation *relation = &traces->relation;
    size_t slowest = slowest_of(relation);
    char name[EL_TRACES_NAME_BYTES];
    memset(side, 0, sizeof *side);
    if (!relation->has_steps)
        return el_fail(EL_ERR_INVALID,
                       "%s: its traces have no ProfilerStep annotations, so there are no steps to compare: call the "
                       "profiler's step() in the training loop",
                       traces->folder);
    snprintf(side->record, sizeof side->record, "%s", traces->folder);
    side->knows_launches = true;
    fill_steps(relation, &relation->members[slowest], side);
    if (side->n == 0) return el_fail(EL_ERR_INVALID, "%s: none of its steps has a length", traces->folder);
    el_traces_name(traces, &relation->members[slowest], name);
    json_t *device = el_json_of(EL_KEY("device", (const char *)name));
    side->run =
        el_json_of(EL_KEY("trial", el_json_of(EL_KEY("mode", "traces"), EL_KEY("verdict", "valid"),
                                              EL_KEY("devices", relation->n_members), EL_KEY("slowest_member", 0),
                                              EL_KEY("per_device", json_pack("[o]", device)))));
    side->trial = json_object_get(side->run, "trial");
    return EL_OK;
}

enum el_status el_traces_difference(const struct el_traces *a, const struct el_traces *b, json_t **document_p)
{
    struct el_side *sides = calloc(2, sizeof *sides);
    if (!sides) return el_fail(EL_ERR_HOST_MEMORY, "no memory for two jobs' steps");
    enum el_status status = make_side(a, &sides[0]);
    if (status == EL_OK) status = make_side(b, &sides[1]);
    if (status == EL_OK) {
        json_t *document = el_difference_document(&sides[0], &sides[1]);
        json_t *jobs[] = {el_traces_job(a), el_traces_job(b)};
        for (int i = 0; i < 2; i++) {
            json_t *side = json_object_get(document, i ? "b" : "a");
            el_json_put_text(side, "sentence", el_json_text(jobs[i], "blame.sentence", "no rank beside it"));
            json_decref(jobs[i]);
        }
        el_json_put(document, "memory", json_array());
        *document_p = document;
    }
    for (int i = 0; i < 2; i++) json_decref(sides[i].run);
    free(sides);
    return status;
}
