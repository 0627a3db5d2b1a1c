/* Communicators of workers; see worlds.h. */
#include "runtime/train/worlds.h"

/* A group of those devices that `layout` has in `stage` (all: -1), at place `member` of their workers; each gets its
 * own in comms[]. */
static enum el_status open_group(const struct el_layout *layout, struct el_device *const *devices, int stage,
                                 int member, struct el_comm **comms)
{
    struct el_device *of_group[EL_MEMBERS_MAX] = {NULL};
    struct el_comm *made[EL_MEMBERS_MAX];
    int position[EL_MEMBERS_MAX], n = 0;
    for (int w = 0; w < layout->n_workers; w++) {
        int first;
        el_layout_of_worker(layout, w, &first);
        if (stage >= 0 && layout->devices[first].stage != stage) continue;
        position[n] = first + member;
        of_group[n++] = devices[first + member];
    }
    EL_TRY(el_comm_open_local(of_group, n, made));
    for (int i = 0; i < n; i++) comms[position[i]] = made[i];
    return EL_OK;
}

static bool has_copies(const struct el_layout *layout)
{
    return layout->n_stages > 1 && layout->n_data > 1;
}

static void name(struct el_worlds *worlds, const struct el_layout *layout, int position)
{
    for (int d = 0; d < worlds->n; d++) {
        const struct el_spot *spot = &layout->devices[position + d];
        int first;
        el_layout_of_worker(layout, spot->worker, &first);
        el_comm_name(worlds->world[d], layout->n_stages > 1 ? "pipeline" : "world", position + d - first);
        if (worlds->data[d]) el_comm_name(worlds->data[d], "data", spot->stage);
    }
}

enum el_status el_worlds_open_threads(struct el_worlds *worlds, const struct el_layout *layout,
                                      struct el_device *const *devices)
{
    *worlds = (struct el_worlds){.n = layout->n_devices};
    for (int m = 0; m < layout->n_devices / layout->n_workers; m++)
        EL_TRY(open_group(layout, devices, -1, m, worlds->world));
    for (int stage = 0; stage < layout->n_stages && has_copies(layout); stage++)
        EL_TRY(open_group(layout, devices, stage, 0, worlds->data));
    name(worlds, layout, 0);
    return EL_OK;
}

enum el_status el_worlds_open_rank(struct el_worlds *worlds, const struct el_layout *layout,
                                   struct el_device *const *devices, struct el_bootstrap *bootstrap, const char *kind)
{
    int position, n = el_layout_of_process(layout, el_bootstrap_rank(bootstrap), &position);
    const struct el_spot *spot = &layout->devices[position];
    *worlds = (struct el_worlds){.n = n};
    for (int m = 0; m < n; m++)
        EL_TRY(el_bootstrap_size(bootstrap) > 1 ? el_comm_open_ranks(kind, bootstrap, devices[m], &worlds->world[m])
                                                : el_comm_open_self(devices[m], &worlds->world[m]));
    if (has_copies(layout)) EL_TRY(el_comm_split(worlds->world[0], spot->stage, spot->data_rank, &worlds->data[0]));
    name(worlds, layout, position);
    return EL_OK;
}

void el_worlds_abort(struct el_worlds *worlds)
{
    for (int d = 0; d < worlds->n; d++) {
        if (worlds->world[d]) el_comm_abort(worlds->world[d]);
        if (worlds->data[d]) el_comm_abort(worlds->data[d]);
    }
}

void el_worlds_close(struct el_worlds *worlds)
{
    for (int d = 0; d < worlds->n; d++) {
        el_comm_close(worlds->data[d]);
        el_comm_close(worlds->world[d]);
    }
    worlds->n = 0;
}
