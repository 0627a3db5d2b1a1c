/* A trace of anyone's, the figures made of it, and what it comes to beside another one that is nearly the same: who is
 * late, the step without each cause, and both as one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "profiles/causes.h"
#include "profiles/merge.h"
#include "profiles/replay.h"
#include "tests/fuzz/fuzz.h"

static bool read_trace(const uint8_t *data, size_t size, struct el_kineto_trace *trace)
{
    FILE *file = fmemopen((uint8_t *)(uintptr_t)data, size, "r");
    bool is_one = file && fuzz_status(el_kineto_read(file, UINT64_MAX, "trace", "a", trace));
    if (file) fclose(file);
    return is_one;
}

static void check_lane(struct el_kineto_lane *lane)
{
    struct el_kineto_figures f;
    if (!fuzz_status(el_kineto_figures(lane, &f))) return;
    fuzz_expect(f.idle_s > -1e-6 && f.window_s + 1e-6 >= f.compute_s && f.exposed_s > -1e-6, "figures");
}

static void check_replay(struct el_kineto_trace *traces, const struct el_relation *relation)
{
    struct el_replay *replay;
    const bool members[2 * EL_KINETO_LANES_MAX] = {true};
    if (!fuzz_status(el_replay_begin(traces, relation, &replay))) return;
    for (enum el_replay_kind kind = EL_REPLAY_NOTHING; kind <= EL_REPLAY_NAMED; kind++) {
        double step_s = NAN;
        if (!fuzz_status(el_replay_step(replay, &(struct el_replay_cause){kind, members}, &step_s))) continue;
        fuzz_expect(isfinite(step_s), "a step");
        if (kind == EL_REPLAY_NOTHING)
            fuzz_expect(fabs(step_s - relation->step_s) <= 1e-6 * fabs(relation->step_s) + 1e-6, "nothing is changed");
    }
    el_replay_free(replay);
}

static void check_merge(const char *path, const struct el_kineto_trace *traces, const struct el_relation *relation)
{
    char *paths[] = {(char *)(uintptr_t)path, (char *)(uintptr_t)path};
    const char *names[2 * EL_KINETO_LANES_MAX];
    for (size_t m = 0; m < relation->n_members; m++) names[m] = "rank \"1\"";
    struct el_merge_figures figures = {0};
    const struct el_merge_job job = {traces, relation, paths, names, 2};
    if (fuzz_status(el_merge_write(&job, "/dev/null", &figures)))
        fuzz_expect(figures.wait_s >= 0 && isfinite(figures.wait_s), "waits");
}

/* The parts add up. */
static void check_causes(const struct el_kineto_trace *traces, const struct el_relation *relation)
{
    struct el_step_parts *parts = calloc(relation->n_members + 1, sizeof *parts);
    struct el_causes causes;
    double sum = 0;
    if (relation->n_members && fuzz_status(el_causes_find(traces, relation, 0, -INFINITY, &causes))) {
        for (int p = 0; p < EL_CAUSE_PARTS; p++) sum += causes.parts_s[p];
        fuzz_expect(fabs(sum - causes.late_s) <= 1e-6 * fabs(causes.late_s) + 1e-3, "causes");
    }
    if (parts && fuzz_status(el_causes_steps(traces, relation, parts)))
        for (size_t m = 0; m < relation->n_members; m++)
            fuzz_expect(parts[m].wait_s >= 0 && parts[m].parts_s[EL_CAUSE_FORWARD] >= 0, "parts of a step");
    free(parts);
}

static void check_relation(const char *path, struct el_kineto_trace *traces)
{
    struct el_relation r;
    struct el_ranks_blame blame;
    if (!fuzz_status(el_relate(traces, 2, &r))) return;
    struct el_rank_row *rows = calloc(r.n_members + 1, sizeof *rows);
    for (size_t m = 0; m < r.n_members && rows; m++) {
        rows[m] = r.members[m].row;
        fuzz_expect(isfinite(rows[m].late_s) && rows[m].last_pct >= 0 && rows[m].last_pct <= 100 + 1e-9, "arrivals");
        fuzz_expect(rows[m].wait_s >= 0 && rows[m].exposed_s >= 0 && rows[m].caused_s >= 0, "times");
        fuzz_expect(r.members[m].n_alone <= r.members[m].n_calls, "calls");
    }
    if (rows) el_ranks_blame(rows, (int)r.n_members, r.step_s, &blame);
    free(rows);
    check_replay(traces, &r);
    check_causes(traces, &r);
    check_merge(path, traces, &r);
    el_relation_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct el_kineto_trace traces[2];
    if (!read_trace(data, size, &traces[0])) return 0;
    for (size_t i = 0; i < traces[0].n_lanes; i++) check_lane(&traces[0].lanes[i]);
    if (read_trace(data, size, &traces[1])) {
        traces[1].n_calls -= traces[1].n_calls > 0 && data[size / 2] % 2;      /* its trace ends earlier, */
        traces[1].base_ns += (int64_t)data[size / 3] << (data[size / 4] % 50); /* and its clock is another one */
        check_relation(fuzz_file("trace.json", data, size), traces);
        el_kineto_free(&traces[1]);
    }
    el_kineto_free(&traces[0]);
    return 0;
}
