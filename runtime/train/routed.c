/* What routers did in each measured step. */
#include <stdlib.h>
#include <string.h>

#include "runtime/train/session.h"

enum { FIRST_STEPS = 64 };

/* [layers, 2, experts], summed over layers into sums[2 experts]. The device's counters only grow, and may wrap. */
static enum el_status read_counters(const struct el_shard *shard, struct el_routed *routed, int64_t *sums)
{
    const int64_t each = 2 * routed->experts, n = routed->layers * each;
    int32_t *now = routed->last + n;
    EL_TRY(el_device_read(el_view_of(shard->routed, 0), now, (size_t)n * sizeof *now));
    for (int64_t i = 0; i < n; i++) sums[i % each] += (uint32_t)now[i] - (uint32_t)routed->last[i];
    memcpy(routed->last, now, (size_t)n * sizeof *now);
    return EL_OK;
}

static enum el_status open_routed(const struct el_shard *shard, struct el_routed *routed)
{
    routed->experts = el_shard_routed(shard->graph, &routed->layers);
    routed->last = calloc((size_t)(2 * 2 * routed->layers * routed->experts), sizeof *routed->last);
    return routed->last ? EL_OK : el_fail_errno("routed tokens");
}

static enum el_status add_step(const struct el_shard *shard, bool measured, struct el_routed *routed)
{
    const int64_t each = 2 * routed->experts;
    if (routed->n_steps == routed->room) {
        const int64_t room = routed->room ? 2 * routed->room : FIRST_STEPS;
        int64_t *larger = realloc(routed->counts, (size_t)(room * each) * sizeof *larger);
        if (!larger) return el_fail_errno("routed tokens of %lld steps", (long long)room);
        routed->counts = larger;
        routed->room = room;
    }
    int64_t *sums = routed->counts + routed->n_steps * each;
    memset(sums, 0, (size_t)each * sizeof *sums);
    routed->n_steps += measured;
    return read_counters(shard, routed, sums);
}

/* On GPUs parts move whole, as the ops say. */
static void add_beyond(const struct el_comm *comm, bool measured, struct el_routed *routed)
{
    int64_t now[2];
    el_comm_beyond(comm, now);
    for (int i = 0; i < 2; i++) {
        if (measured) routed->beyond[i] += now[i] - routed->last_beyond[i];
        routed->last_beyond[i] = now[i];
    }
}

enum el_status el_run_routed(struct el_run *run, bool measured)
{
    for (int m = 0; m < run->worker.n_members; m++) {
        const struct el_shard *shard = &run->worker.members[m].shard;
        struct el_routed *routed = &run->session->result->routed[run->first + m];
        if (!shard->routed || !el_device_computes(shard->device)) continue;
        if (!routed->experts) EL_TRY(open_routed(shard, routed));
        EL_TRY(add_step(shard, measured, routed));
        if (run->worker.group[EL_AXIS_EXPERT]) add_beyond(run->worker.group[EL_AXIS_EXPERT], measured, routed);
    }
    return EL_OK;
}
