/* The parts of the model that a device holds; see held.h. */
#include "runtime/worker/held.h"

#include <stdlib.h>

/* Who has that part, for the device at `position`: a worker of the same copy of the model, which are neighbours. */
static int owner_of(const struct el_worker *worker, int position, int part)
{
    const struct el_spot own = el_layout_spot(worker->layout, position);
    if (part < 0 || part >= worker->parts->n) return EL_HELD_NOBODY;
    int stage = worker->parts->schedule.device[part];
    if (stage == own.at[EL_AXIS_STAGE]) return EL_HELD_HERE;
    return own.worker + (stage - own.at[EL_AXIS_STAGE]) * worker->layout->n[EL_AXIS_TENSOR];
}

static enum el_status find_arrays(const struct el_shard *shard, struct el_held_part *part)
{
    size_t n_params = (size_t)part->graph->n_params, n_buffers = (size_t)part->graph->n_buffers;
    part->place = calloc(n_params + 1, sizeof *part->place);
    part->params = calloc(n_params + n_buffers + 1, sizeof *part->params);
    if (!part->place || !part->params) return el_fail_errno("%zu parameters of a part", n_params);
    part->buffers = part->params + n_params;
    for (int p = 0; p < part->graph->n_params; p++) {
        int place = 0;
        while (shard->graph->params[place].origin != part->graph->params[p].origin) place++;
        part->place[p] = place;
        if (shard->params) part->params[p] = el_shard_computed(shard)[place];
    }
    for (int b = 0; b < part->graph->n_buffers && shard->params; b++) {
        int place = 0;
        while (shard->graph->buffers[place].origin != part->graph->buffers[b].origin) place++;
        part->buffers[b] = shard->buffers[place];
    }
    return EL_OK;
}

enum el_status el_held_open(const struct el_worker *worker, int member, struct el_held *held)
{
    const struct el_parts *parts = worker->parts;
    const int position = worker->first + member;
    const struct el_spot spot = el_layout_spot(worker->layout, position);
    *held = (struct el_held){.parts = calloc((size_t)parts->n, sizeof *held->parts)};
    if (!held->parts) return el_fail_errno("%d parts of the model", parts->n);
    for (int k = 0; k < parts->n; k++) {
        if (parts->schedule.device[k] != spot.at[EL_AXIS_STAGE]) continue;
        struct el_held_part *part = &held->parts[held->n++];
        part->graph = parts->part[k];
        part->number = k;
        part->before = owner_of(worker, position, k - 1);
        part->behind = owner_of(worker, position, k + 1);
        EL_TRY(find_arrays(&worker->members[member].shard, part));
    }
    return EL_OK;
}

void el_held_close(struct el_held *held)
{
    for (int i = 0; i < held->n; i++) {
        free(held->parts[i].place);
        free(held->parts[i].params);
    }
    free(held->parts);
    *held = (struct el_held){0};
}
