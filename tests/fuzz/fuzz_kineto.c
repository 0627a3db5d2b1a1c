/* A trace of anyone's, the figures made of it, and what it comes to beside another one that is nearly the same. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "profiles/relate.h"
#include "tests/fuzz/fuzz.h"

static bool read_trace(const uint8_t *data, size_t size, struct el_kineto_trace *trace)
{
    FILE *file = fmemopen((uint8_t *)(uintptr_t)data, size, "r");
    bool is_one = file && fuzz_status(el_kineto_read(file, UINT64_MAX, "trace", trace));
    if (file) fclose(file);
    return is_one;
}

static void check_lane(struct el_kineto_lane *lane)
{
    struct el_kineto_figures f;
    if (!fuzz_status(el_kineto_figures(lane, &f))) return;
    fuzz_expect(f.idle_s > -1e-6 && f.window_s + 1e-6 >= f.compute_s && f.exposed_s > -1e-6, "figures");
}

static void check_relation(struct el_kineto_trace *traces)
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
        check_relation(traces);
        el_kineto_free(&traces[1]);
    }
    el_kineto_free(&traces[0]);
    return 0;
}
